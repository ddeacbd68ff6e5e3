"""Waves against one wave: real people, Adult, and generated ones, by public defaults alone.

`python lab/experiments/waves.py --trials 100`; finds the data by BLURFIT_DATA, and
writes waves.csv and waves.md into build/waves. Each trial takes n rows and others to test on; both
methods and the fit without privacy see the same rows. `replace`, δ = 0.01. Numbers: test RMSE over
that of least squares without privacy. Labels: test accuracy below that of logistic regression
without privacy.
"""

import csv
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit

from blurfit.agreement.plan import Plan
from blurfit.agreement.waves import kept_columns
from blurfit.arrays import FloatArray
from blurfit.learning.waves import on_curve
from blurfit.schema.vectors import values as encoded
from blurfit.simulation import Census, make_census
from blurfit.simulation.waves import collect_in_waves, fit_in_waves, score
from blurfit.theory.gaussian import mu_of
from blurfit.theory.maps import LogisticNewton
from blurfit.theory.planning import Kind, Task, choose_plan, information
from blurfit_lab.datasets import UCI_SETS, load_acs, load_adult, load_uci
from blurfit_lab.experiments import standings
from blurfit_lab.experiments.beyond import binned
from blurfit_lab.experiments.figures import WAVES
from blurfit_lab.experiments.standings import table

DELTA, TEST_ROWS, GENERATED_ROWS = 0.01, 2**16, 2**19
SIZES = tuple(2**k for k in (9, 11, 13, 15, 17))
EPSILONS = (0.1, 1.0)
GOALS: dict[tuple[Task, float, int], float] = {
    ("number" if one.problem == "linear" else "label", one.epsilon, one.n): abs(one.bound)
    for one in standings.GOALS
    if one.line == WAVES
}
SUBSETS = {
    2: ("age", "education"),
    4: ("age", "is_male", "education", "hours_per_week"),
    7: (
        "age",
        "is_male",
        "is_married",
        "education",
        "has_disability",
        "hours_per_week",
        "owns_dwelling",
    ),
}
HEADER = (
    "population",
    "columns",
    "task",
    "epsilon",
    "n",
    "psi",
    "waves",
    "one wave",
    "auto",
    "auto - one",
    "se",
    "goal",
    "calibration error",
)


SMALL_EPSILONS = (1.0, 10.0)
SMALL_HEADER = ("set", "columns", "epsilon", "n", "psi", "waves", "auto / one", "se", "verdict")


@dataclass(frozen=True, eq=False)
class People:
    """Encoded rows: features, the number (if there is one), the label, the features' kinds."""

    name: str
    values: FloatArray
    number: FloatArray | None
    label: FloatArray
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, name: str, census: Census, only: tuple[str, ...] | None = None) -> "People":
        """Some features, or all, each scaled to [−1, 1] by its public bounds."""
        schema = census.schema
        features = [one for one in schema.features if only is None or one.name in only]
        parts = [np.asarray(one.scale(census.table[one.name])) for one in features]
        values = np.column_stack(parts).astype(np.float64)
        goal = census.label_schema.target
        label = goal.scale(census.table[goal.name])
        number = None
        if not schema.is_label:
            number = np.asarray(schema.target.scale(census.table[schema.target.name]))
        return cls(name, values, number, np.asarray(label), tuple(_kind(one) for one in features))

    @property
    def coefficients(self) -> int:
        """p."""
        return sum(kind - 1 if isinstance(kind, int) else 1 for kind in self.kinds)


def _kind(feature: Any) -> Kind:
    entry = feature.to_dict()
    if entry["kind"] == "categorical":
        return len(entry["levels"])
    return "sign" if entry["kind"] == "binary" else "numeric"


def least_squares(values: FloatArray, target: FloatArray) -> FloatArray:
    """The fit without privacy."""
    rows = np.column_stack([np.ones(len(values)), values])
    return np.asarray(np.linalg.lstsq(rows, target, rcond=None)[0])


def logistic(values: FloatArray, label: FloatArray) -> FloatArray:
    """Maximum likelihood without privacy, by Newton (a ridge of 10⁻³ for separable rows)."""
    rows = np.column_stack([np.ones(len(values)), values])
    w, loss = np.zeros(rows.shape[1]), LogisticNewton()
    for _ in range(25):
        g, h = loss.slopes(rows @ w, label)
        hessian = (rows * h[:, None]).T @ rows + 1e-3 * np.eye(len(w))
        step = np.linalg.solve(hessian, rows.T @ g + 1e-3 * w)
        w = w - step
        if np.abs(step).max() < 1e-8:
            break
    return w


def rmse(coefficients: FloatArray, values: FloatArray, target: FloatArray) -> float:
    """Of the rows."""
    return math.sqrt(float(np.mean((target - coefficients[0] - values @ coefficients[1:]) ** 2)))


def accuracy(coefficients: FloatArray, values: FloatArray, label: FloatArray) -> float:
    """Of the rows."""
    return float(np.mean((coefficients[0] + values @ coefficients[1:] > 0) == (label > 0)))


def cells(people: People) -> Iterator[tuple[Task, float, int]]:
    """Every task, ε and n that the rows suffice for."""
    for task in ("number", "label"):
        if task == "number" and people.number is None:
            continue
        for epsilon in EPSILONS:
            for n in SIZES:
                if n <= 0.75 * len(people.label):
                    yield task, epsilon, n


def measure(people: People, task: Task, epsilon: float, n: int, trials: int) -> list[Any]:
    """One line of the table."""
    mu, p = mu_of(epsilon, DELTA), people.coefficients
    plans = [choose_plan(task, coefficients=p, count=n, mu=mu, waves=k) for k in (1, None)]
    target = people.number if task == "number" and people.number is not None else people.label
    found, gaps = np.empty((trials, 2)), []
    tested = min(TEST_ROWS, len(target) - n)
    for trial in range(trials):
        generator = np.random.default_rng([2017, trial, n, round(10 * epsilon), len(task)])
        if len(target) < 10**5:
            rows = generator.permutation(len(target))[: n + tested]
        else:  # rows are in random order, so a window of them is a sample
            rows = generator.integers(len(target) - n - tested) + np.arange(n + tested)
        v, y, test_v, test_y = (
            part[chosen] for chosen in (rows[:n], rows[n:]) for part in (people.values, target)
        )
        free = least_squares(v, y) if task == "number" else logistic(v, y)
        for place, plan in enumerate(plans):
            if place and plan == plans[0]:
                found[trial, 1] = found[trial, 0]
                continue
            got = collect_in_waves(v, y, people.kinds, plan=plan, mu=mu, generator=generator)
            if task == "number":
                best = rmse(free, test_v, test_y)
                found[trial, place] = rmse(got.coefficients, test_v, test_y) / best
            else:
                best = accuracy(free, test_v, test_y)
                found[trial, place] = best - accuracy(got.coefficients, test_v, test_y)
        if task == "label":
            likely = expit(score(on_curve(got.model), test_v[:, got.kept]))
            gaps.append(binned(likely, test_y).error)
    one, auto = found.mean(axis=0)
    difference = found[:, 1] - found[:, 0]
    goal = GOALS.get((task, epsilon, n)) if (people.name, p) == ("ACS", 13) else None
    error = float(difference.std() / math.sqrt(trials))
    words = " ".join(plans[1].kinds)
    psi = f"{information(n, mu, p):.1f}"
    numbers = [f"{one:.4f}", f"{auto:.4f}", f"{difference.mean():+.4f}", f"{error:.4f}"]
    reached = "" if goal is None else f"{goal:g} {'met' if auto <= goal else 'missed'}"
    calibration = f"{np.mean(gaps):.4f}" if gaps else ""
    return [people.name, p, task, epsilon, n, psi, words, *numbers, reached, calibration]


def measure_small(name: str, epsilon: float, trials: int) -> list[Any]:
    """A small set: four fifths to learn from, drawn anew; the test error of auto over one wave's.

    δ = 1/n²; predictions are cut to the target's bounds. Where one wave is planned both are one.
    """
    census = load_uci(name)
    rows = encoded(census.schema, census.table)
    n = int(0.8 * len(rows))
    # Everybody is honest here: the noise is that of all n.
    terms: dict[str, Any] = {"epsilon": epsilon, "delta": n**-2, "quorum": n, "colluders": 0.0}
    plans = [Plan.propose(census.schema, waves=k, **terms) for k in (1, "auto")]
    ratios = np.zeros(trials)
    if len(plans[1]) > 1:
        for trial in range(trials):
            generator = np.random.default_rng([2017, trial, n, round(10 * epsilon)])
            order = generator.permutation(len(rows))
            train, test = rows[order[:n]], rows[order[n:]]
            errors = []
            for plan in plans:
                (weights,) = fit_in_waves(plan, train, generator).model.weights
                guess = np.clip(weights[0] + test[:, :-1] @ weights[1:], -1, 1)
                errors.append(np.mean((guess - test[:, -1]) ** 2))
            ratios[trial] = math.log(errors[1] / errors[0])
    mean, error = float(ratios.mean()), float(ratios.std(ddof=1) / math.sqrt(trials))
    words = "same" if len(plans[1]) == 1 else "better" if mean < -2 * error else "even"
    words = "worse" if mean > 2 * error > 0 else words
    p = len(kept_columns(census.schema))
    psi = f"{information(n, plans[0].mu, p):.1f}"
    kinds = " ".join(plans[1].kinds)
    return [name, p, epsilon, n, psi, kinds, f"{math.exp(mean):.3f}", f"{error:.3f}", words]


def populations(names: tuple[str, ...]) -> Iterator[People]:
    """Those that are asked for."""
    if "acs" in names or "columns" in names:
        census = load_acs()
    if "acs" in names:
        yield People.of("ACS", census)
    if "generated" in names:
        yield People.of("generated", make_census(GENERATED_ROWS, seed=1))
    if "adult" in names:
        yield People.of("Adult", load_adult())
    if "columns" in names:
        for only in SUBSETS.values():
            yield People.of("ACS", census, only)


@click.command()
@click.option("--trials", default=20, show_default=True, help="Collections for each line.")
@click.option(
    "--population",
    "names",
    type=click.Choice(["acs", "generated", "adult", "columns", "small"]),
    multiple=True,
    default=("acs", "generated", "adult", "columns"),
    help="Which people; 'columns' are 2, 4 and 7 columns of ACS, 'small' twelve sets of UCI.",
)
@click.option(
    "--task",
    "tasks",
    type=click.Choice(["number", "label"]),
    multiple=True,
    default=("number", "label"),
    show_default=True,
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/waves"),
    show_default=True,
)
def main(trials: int, names: tuple[str, ...], tasks: tuple[str, ...], out: Path) -> None:
    """Measure all cells, and write them as CSV and as a table in Markdown."""
    out.mkdir(parents=True, exist_ok=True)
    lines: list[list[Any]] = []
    if "small" in names:
        for name, epsilon in track(list(itertools.product(UCI_SETS, SMALL_EPSILONS))):
            lines.append(measure_small(name, epsilon, trials))
            write(out, "small", SMALL_HEADER, lines, trials)
        return
    for people in populations(names):
        wanted = [cell for cell in cells(people) if cell[0] in tasks]
        for task, epsilon, n in track(wanted, description=people.name):
            lines.append(measure(people, task, epsilon, n, trials))
            write(out, "waves", HEADER, lines, trials)
    shown = Table(*HEADER, title=f"{trials} trials, δ = {DELTA}, replace")
    for line in lines:
        shown.add_row(*map(str, line))
    Console(width=160).print(shown)


def write(
    out: Path, name: str, header: tuple[str, ...], lines: list[list[Any]], trials: int
) -> None:
    """After each line, so that what was measured is kept if the run is stopped."""
    with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*header, "trials"], *([*line, trials] for line in lines)])
    text = table(header, [list(map(str, line)) for line in lines])
    (out / f"{name}.md").write_text(f"{trials} trials, replace.\n\n{text}\n", "utf-8")


if __name__ == "__main__":
    main()
