"""Joint moments, one wave: how good the models are, and whether the intervals are honest.

`python lab/experiments/joint.py` writes CSV and Markdown into build/joint; `--only`
chooses tables, `--trials` how many collections stand behind each cell. Data are found by
BLURFIT_DATA.

* regression, labels: the American Community Survey, δ = 0.01, `replace`. The rows after the first
  2²¹ are the test; a trial is a block of n of the others. RMSE is over that of least squares on
  every fourth of them (2¹⁹ rows); the private mean is blurred with the whole promise.
* small: twelve small sets with the bounds of `blurfit_lab.datasets.uci`, δ = 1/n², `replace`. Four
  fifths are for learning, drawn anew in each trial; the mean squared error on the rest is over that
  of the private mean.
* coverage: nominal 95 % intervals of coefficients, mean responses, a contrast and one more person,
  on the survey and on a generated population, from which people are drawn with replacement.
"""

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track

from blurfit.arrays import FloatArray
from blurfit.learning.inference import Inference, infer, refusal
from blurfit.learning.shrinkage import information, linear_bayes, reading, shrink
from blurfit.learning.sums import JointSums, Submodel
from blurfit.simulation import Census, make_census
from blurfit.simulation.sampler import clean_sums, draw_joint_sums
from blurfit.theory.forms import JointColumn
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import sensitivity
from blurfit.theory.planning import Kind, public_weights
from blurfit_lab.datasets import UCI_SETS, load_acs, load_uci

Row = dict[str, Any]

TARGET = "y"
TRAINING, BASELINE_STEP = 2**21, 4  # rows to draw trials from; every fourth gives the baseline


@dataclass(frozen=True, eq=False)
class People:
    """Rows v in [−1, 1] with the target last, and the kinds of the columns."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: npt.NDArray[np.float32]

    @classmethod
    def of_census(cls, census: Census, *, label: bool = False) -> "People":
        """The 13 features of a census, and income as a number or as above 37,000."""
        columns: list[Any] = []
        kinds: list[Kind] = []
        target = census.schema.target
        for attribute in (*census.schema.features, target):
            value = census.table[attribute.name].astype(np.float32)
            lower, upper = (getattr(attribute, bound, None) for bound in ("lower", "upper"))
            if lower is None or upper is None:
                value = 2 * value - 1
            else:
                value = np.clip(2 * (value - lower) / (upper - lower) - 1, -1, 1)
            columns.append(value)
            kinds.append("sign" if lower is None else "numeric")
        if label:
            columns[-1] = np.where(census.table[target.name] > 37_000, 1, -1)
            kinds[-1] = "sign"
        names = tuple(attribute.name for attribute in census.schema.features)
        return cls(names, tuple(kinds), np.column_stack(columns).astype(np.float32))

    def collect(
        self, rows: FloatArray, epsilon: float, delta: float, generator: np.random.Generator
    ) -> JointSums:
        """Blurred joint sums of these rows by the public default weights."""
        mu = mu_of(epsilon, delta)
        weights = public_weights(self.kinds[:-1], len(rows), mu)
        columns = [
            JointColumn(name, weight, "sign" if kind == "sign" else "numeric")
            for name, weight, kind in zip(self.names, weights.features, self.kinds, strict=False)
        ]
        is_label = self.kinds[-1] == "sign"
        columns.append(JointColumn(TARGET, weights.target, "sign" if is_label else "numeric"))
        clean = clean_sums(columns, weights.constant, rows)
        deviation = sensitivity(weights.constant, 1.0) / mu
        found: JointSums = draw_joint_sums(
            columns, weights.constant, len(rows), clean, deviation, generator
        )
        return found


def least_squares(rows: FloatArray) -> FloatArray:
    """Coefficients of (1, v) without privacy."""
    x = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    return np.asarray(np.linalg.lstsq(x, rows[:, -1], rcond=None)[0], dtype=np.float64)


def private_mean(
    rows: FloatArray, epsilon: float, delta: float, generator: np.random.Generator
) -> float:
    """The target's mean, blurred with the whole promise (Δ = 2 for `replace`), within bounds."""
    noise = 2 / (mu_of(epsilon, delta) * len(rows)) * generator.normal()
    return float(np.clip(rows[:, -1].mean() + noise, -1, 1))


def squared_error(rows: FloatArray, coefficients: FloatArray) -> float:
    """The mean over rows."""
    found = coefficients[0] + rows[:, :-1] @ coefficients[1:]
    return float(np.mean((rows[:, -1] - found) ** 2))


def census_rows(trials: int, *, label: bool) -> Iterator[Row]:
    """RMSE over non-private, or accuracy, for each n and ε."""
    people = People.of_census(load_acs(), label=label)
    test = people.rows[TRAINING:].astype(np.float64)
    known = least_squares(people.rows[:TRAINING:BASELINE_STEP].astype(np.float64))

    def score(coefficients: FloatArray) -> float:
        if label:
            guess = coefficients[0] + test[:, :-1] @ coefficients[1:] > 0
            return float(np.mean(guess == (test[:, -1] > 0)))
        return math.sqrt(squared_error(test, coefficients) / squared_error(test, known))

    for epsilon in (0.1, 1.0):
        for power in (9, 11, 13, 15):
            cells: dict[str, list[float]] = {"private mean": [], "linear Bayes": [], "default": []}
            n, psi, used = 2**power, 0.0, ""
            for trial in track(range(trials), description=f"ε = {epsilon:g}, n = {n}"):
                generator = np.random.default_rng((trial, power, int(10 * epsilon)))
                start = int(generator.integers(0, TRAINING - n))
                rows = people.rows[start : start + n].astype(np.float64)
                sums = people.collect(rows, epsilon, 0.01, generator).submodel(TARGET)
                psi, used = information(sums), reading(sums)
                linear = linear_bayes(sums).coefficients
                chosen = linear if used == "linear-bayes" else shrink(sums).coefficients
                mean = private_mean(rows, epsilon, 0.01, generator)
                constant = np.append(mean, np.zeros(len(people.names)))
                for name, found in zip(cells, (constant, linear, chosen), strict=True):
                    cells[name].append(score(found))
            yield {
                "epsilon": epsilon,
                "n": n,
                "psi": f"{psi:.1f}",
                **{name: f"{np.mean(found):.4f}" for name, found in cells.items()},
                "±": f"{np.std(cells['default']) / math.sqrt(trials):.4f}",
                "reading": used,
                "non-private": f"{score(known):.4f}",
            }


def small_rows(trials: int) -> Iterator[Row]:
    """MSE over the private mean's for each small set, and their geometric means."""
    for epsilon in (0.3, 1.0, 5.0):
        ratios: list[list[float]] = []
        for name in track(UCI_SETS, description=f"ε = {epsilon:g}"):
            people = People.of_census(load_uci(name))
            n = len(people.rows) * 4 // 5
            errors = np.zeros(4)
            psi = 0.0
            for trial in range(trials):
                generator = np.random.default_rng((trial, int(10 * epsilon)))
                rows = people.rows[generator.permutation(len(people.rows))].astype(np.float64)
                train, test = rows[:n], rows[n:]
                sums = people.collect(train, epsilon, n**-2, generator).submodel(TARGET)
                psi = information(sums)
                mean = private_mean(train, epsilon, n**-2, generator)
                models = [linear_bayes(sums), shrink(sums)]
                errors += [
                    float(np.mean((test[:, -1] - mean) ** 2)),
                    *(squared_error(test, model.coefficients) for model in models),
                    squared_error(test, least_squares(train)),
                ]
            ratios.append(list(errors[1:] / errors[0]))
            yield _small_row(epsilon, name, ratios[-1], f"{psi:.1f}")
        for words, chosen in (
            ("geometric mean of all", ratios),
            (
                "geometric mean without autos",
                [r for name, r in zip(UCI_SETS, ratios, strict=True) if name != "autos"],
            ),
        ):
            yield _small_row(epsilon, words, list(np.exp(np.log(chosen).mean(axis=0))), "")


def _small_row(epsilon: float, name: str, ratios: list[float], psi: str) -> Row:
    linear, default, without = (f"{ratio:.3f}" for ratio in ratios)
    return {
        "epsilon": epsilon,
        "set": name,
        "psi": psi,
        "linear Bayes": linear,
        "default": default,
        "non-private": without,
    }


def coverage_rows(trials: int) -> Iterator[Row]:
    """Coverage and width of intervals, or how often they are refused."""
    sources: dict[str, Callable[[], Census]] = {
        "generated": lambda: make_census(400_000, seed=2017),
        "ACS": load_acs,
    }
    for source, load in sources.items():
        people = People.of_census(load())
        truth = least_squares(people.rows[: 2**20].astype(np.float64))
        pool = min(len(people.rows), 2**20)
        points = people.rows[:3, :-1].astype(np.float64)
        contrast = np.zeros(len(truth))
        contrast[1 + people.names.index("is_married")] = 1
        contrast[1 + people.names.index("is_single")] = -1
        for n in (2000, 20_000, 200_000):
            for epsilon in (0.3, 1.0, 3.0):
                cell = _Coverage(truth, points, contrast)
                for trial in track(range(trials), description=f"{source}, {n}, ε = {epsilon:g}"):
                    generator = np.random.default_rng((trial, n, int(10 * epsilon)))
                    drawn = people.rows[generator.integers(0, pool, n)].astype(np.float64)
                    sums = people.collect(drawn, epsilon, 0.01, generator).submodel(TARGET)
                    one = people.rows[generator.integers(0, pool)].astype(np.float64)
                    cell.add(sums, one)
                yield {"people": source, "n": n, "epsilon": epsilon, **cell.summary()}


class _Coverage:
    """What happened to the intervals of one cell."""

    def __init__(self, truth: FloatArray, points: FloatArray, contrast: FloatArray) -> None:
        responses = np.column_stack([np.ones(len(points)), points])
        self.combinations = np.vstack([np.eye(len(truth)), responses, contrast])
        self.truth = self.combinations @ truth
        self.coefficients = len(truth)
        self.values: list[FloatArray] = []
        self.errors: list[FloatArray] = []
        self.inside: list[FloatArray] = []
        self.cautious: list[FloatArray] = []
        self.new: list[bool] = []
        self.refused = 0

    def add(self, sums: Submodel, one: FloatArray) -> None:
        """One collection, and one more person."""
        if refusal(sums) is not None:
            self.refused += 1
            return
        found = infer(sums)
        self.inside.append(self._covered(found))
        self.cautious.append(self._covered(infer(sums, uneven=True)))
        self.values.append(self.combinations @ found.coefficients)
        self.errors.append(
            np.sqrt(np.sum(self.combinations @ found.covariance * self.combinations, axis=1))
        )
        told = found.prediction(one[:-1])
        self.new.append(told.lower <= float(one[-1]) <= told.upper)

    def _covered(self, found: Inference) -> FloatArray:
        told = [found.combination(row) for row in self.combinations]
        pairs = zip(told, self.truth, strict=True)
        return np.array([one.lower <= truth <= one.upper for one, truth in pairs], dtype=float)

    def summary(self) -> Row:
        """The row of the table; means over the trials that were not refused."""
        total = self.refused + len(self.inside)
        row: Row = {"refused": f"{self.refused / total:.2f}"}
        names = ("coefficients", "least", "responses", "contrast", "width", "√3", "one more person")
        if len(self.inside) < max(2, total / 10):
            return {**row, **dict.fromkeys(names, "–")}
        k = self.coefficients
        inside = np.mean(self.inside, axis=0)
        width = np.mean(self.errors, axis=0) / np.std(self.values, axis=0)
        found = (
            *(inside[:k].mean(), inside[:k].min(), inside[k:-1].mean(), inside[-1]),
            *(width.mean(), np.mean(self.cautious), np.mean(self.new)),
        )
        return {**row, **{name: f"{x:.3f}" for name, x in zip(names, found, strict=True)}}


TABLES: dict[str, Callable[[int], Iterator[Row]]] = {
    "regression": lambda trials: census_rows(trials, label=False),
    "labels": lambda trials: census_rows(trials, label=True),
    "small": small_rows,
    "coverage": coverage_rows,
}


def write(name: str, rows: list[Row], out: Path) -> str:
    """CSV for machines, Markdown for people."""
    header = list(rows[0])
    with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header)
        writer.writeheader()
        writer.writerows(rows)
    lines = [header, ["---"] * len(header), *([str(row[key]) for key in header] for row in rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    return text


@click.command()
@click.option("--trials", default=100, show_default=True, help="Collections for each cell.")
@click.option("--only", multiple=True, type=click.Choice(list(TABLES)), help="Default: all tables.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/joint"),
    show_default=True,
)
def main(trials: int, only: tuple[str, ...], out: Path) -> None:
    """Measure, and write tables."""
    out.mkdir(parents=True, exist_ok=True)
    for name in only or TABLES:
        rows: list[Row] = []
        text = ""
        for row in TABLES[name](trials):  # kept as they come: a long run may be cut short
            rows.append(row)
            text = write(name, rows, out)
        Console(width=160).print(text)


if __name__ == "__main__":
    main()
