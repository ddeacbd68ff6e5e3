"""The estimators on real data, over 20 seeds, beside no privacy: ACS income and Adult labels.

`python lab/experiments/estimators.py`; finds the data by BLURFIT_DATA, and writes CSV into
build/figures. Bounds are public (`blurfit_lab.datasets`), nothing is tuned, and the test set is
never trained on. `--waves` compares waves="auto" with one wave instead, on generated people, each
pair of fits to the same rows.
"""

import csv
import math
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.linear_model import LinearRegression, LogisticRegression  # type: ignore[import-untyped]

from blurfit.errors import NotPrivateWarning
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
)
from blurfit.schema.schema import Numeric, Schema
from blurfit.simulation import Census, make_census
from blurfit_lab.datasets import load_acs, load_adult

EPSILONS, DELTA = (0.1, 1.0), 1e-6
SIZES, TEST_ROWS = (2**11, 2**13, 2**15), 2**14
COLUMNS: dict[int, tuple[str, ...] | None] = {
    2: ("age", "education"),
    4: ("age", "is_male", "education", "hours_per_week"),
    13: None,
}


def encoded(census: Census, schema: Schema) -> tuple[Any, Any]:
    """The schema's own columns in [−1, 1] (without the intercept), and the target."""
    x, y = schema.encode(census.table)
    return x[:, :-1] / schema.scale, y


def problems() -> dict[str, tuple[bool, Any, Any, Any, Any]]:
    """Name → (is a label, training X and y, test X and y)."""
    acs = load_acs()
    train, test = acs.head(2**17), acs.take(2**16, start=2**17)
    adult = load_adult()
    taught, held = adult.where(~adult.is_test), adult.where(adult.is_test)
    found = {
        "ACS income": (False, *encoded(train, acs.schema), *encoded(test, acs.schema)),
        "ACS income above 37,000": (
            True,
            *encoded(train, acs.label_schema),
            *encoded(test, acs.label_schema),
        ),
        "Adult income over 50,000": (
            True,
            *encoded(taught, adult.label_schema),
            *encoded(held, adult.label_schema),
        ),
    }
    assert isinstance(acs.schema.target, Numeric)
    return found


def estimators(label: bool, epsilon: float, seed: int) -> dict[str, BaseEstimator]:
    """Seeded, so that the run can be repeated; the fits warn that this is not private."""
    warnings.simplefilter("ignore", NotPrivateWarning)  # the data are public
    common: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "bounds": (-1, 1)}
    common |= {"random_state": seed}
    if label:
        common |= {"classes": (-1, 1)}
        return {
            "moment": MomentPerturbationClassifier(**common),
            "input": InputPerturbationClassifier(**common),
        }
    common |= {"target_bounds": (-1, 1)}
    return {
        "moment": MomentPerturbationRegressor(**common),
        "input": InputPerturbationRegressor(**common),
    }


def score(label: bool, model: BaseEstimator, X: Any, y: Any) -> float:
    """Accuracy for labels, root mean squared error (of the target's half range) for numbers."""
    predicted = model.predict(X)
    return float(np.mean(predicted == y) if label else np.sqrt(np.mean((predicted - y) ** 2)))


def paired(seeds: int) -> list[list[Any]]:
    """waves="auto" less one wave: mean and standard error, where more than one wave is planned."""
    warnings.simplefilter("ignore", NotPrivateWarning)  # nobody is in generated data
    lines: list[list[Any]] = []
    census = make_census(2**18, seed=1)
    for width, only in COLUMNS.items():
        for label in (False, True):
            schema = census.label_schema if label else census.schema
            features = [one for one in schema.features if only is None or one.name in only]
            X, y = encoded(census, Schema(features, schema.target))
            for epsilon, n in [(epsilon, n) for epsilon in EPSILONS for n in SIZES]:
                common = {"epsilon": epsilon, "delta": DELTA, "bounds": (-1, 1)}
                known = {"classes": (-1, 1)} if label else {"target_bounds": (-1, 1)}
                kind: Any = MomentPerturbationClassifier if label else MomentPerturbationRegressor
                found = []
                for seed in range(seeds):
                    generator = np.random.default_rng([seed, n, width])
                    rows = generator.choice(len(y), n + TEST_ROWS, replace=False)
                    train, test = rows[:n], rows[n:]
                    pair = []
                    for place, waves in enumerate(("auto", 1)):
                        model = kind(**common, **known, waves=waves, random_state=2 * seed + place)
                        model.fit(X[train], y[train])
                        if model.plan_ is None and waves == "auto":
                            break
                        pair.append(measures(label, model, X[test], y[test]))
                    if not pair:
                        break
                    found.append(pair)
                lines += _lines(width, label, epsilon, n, np.array(found))
                click.echo("\n".join(map(str, lines[-2 if label and found else -1 :])))
    return lines


def measures(label: bool, model: BaseEstimator, X: Any, y: Any) -> list[float]:
    """RMSE of a number; of a label accuracy, and the mean squared error of its probability."""
    if not label:
        return [score(label, model, X, y)]
    likely = model.predict_proba(X)[:, 1]
    return [score(label, model, X, y), float(np.mean((likely - (y > 0)) ** 2))]


def _lines(width: int, label: bool, epsilon: float, n: int, found: Any) -> list[list[Any]]:
    names = ["accuracy", "squared error of P"] if label else ["RMSE"]
    if not len(found):
        return [[width, names[0], epsilon, n, "one wave is planned", "", "", ""]]
    lines = []
    for place, name in enumerate(names):
        auto, one = found[:, 0, place], found[:, 1, place]
        error = float((auto - one).std(ddof=1) / math.sqrt(len(found)))
        means = [float(part.mean()) for part in (auto, one, auto - one)]
        lines.append([width, name, epsilon, n, *means, error])
    return lines


@click.command()
@click.option("--seeds", default=20, show_default=True, help="Fits for each line.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/figures"),
    show_default=True,
)
@click.option("--waves", is_flag=True, help="Compare waves='auto' with one wave.")
def main(seeds: int, out: Path, waves: bool) -> None:
    """Fit, score, and write."""
    if waves:
        header = ["columns", "measure", "epsilon", "n", "auto", "one wave", "difference", "error"]
        _write(out / "estimators_waves.csv", header, paired(seeds), seeds)
        return
    rows: list[list[Any]] = []
    for name, (label, X, y, X_test, y_test) in problems().items():
        plain = LogisticRegression(max_iter=1000) if label else LinearRegression()
        rows.append([name, "no privacy", "", score(label, plain.fit(X, y), X_test, y_test), 0.0])
        guess = (
            np.mean(y_test == np.sign(y.mean()))
            if label
            else np.sqrt(np.mean((y_test - y.mean()) ** 2))
        )
        rows.append([name, "always the same", "", float(guess), 0.0])
        for epsilon in EPSILONS:
            scores: dict[str, list[float]] = {}
            for seed in track(range(seeds), description=f"{name}, ε = {epsilon:g}"):
                for line, model in estimators(label, epsilon, seed).items():
                    found = score(label, model.fit(X, y), X_test, y_test)
                    scores.setdefault(line, []).append(found)
            for line, values in scores.items():
                rows.append([name, line, epsilon, float(np.mean(values)), float(np.std(values))])
    header = ["problem", "method", "epsilon", "score", "deviation"]
    _write(out / "estimators.csv", header, rows, seeds)


def _write(path: Path, header: list[str], rows: list[list[Any]], seeds: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    table = Table(*header, title=f"RMSE or accuracy, δ = {DELTA:g}, {seeds} seeds")
    for row in rows:
        table.add_row(*(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row))
    Console().print(table)
    click.echo(f"Wrote {path}.")


if __name__ == "__main__":
    main()
