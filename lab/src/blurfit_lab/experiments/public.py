"""Public features on real data: exact models from Σyx, and a local promise worth having.

`blurfit-lab public --draws 20` finds the American Community Survey by BLURFIT_DATA, and prints its
tables. `--goals` runs the cells alone that a goal is about. Every draw is written down as it is
made, with a seed of its own: a run that is stopped goes on where it was, and more draws are added
to those that are there.

Rows are used once: the first 2²¹ take part (a smaller n is a window of them that starts at random),
the next 40,000 are public features, the rest the test.

* `local`: incomes, every submission (ε_l, 10⁻⁶)-private; how far the model goes on the way from a
  constant to least squares without privacy, with public rows and without.
* `labels`: incomes above the median; accuracy and log loss of the exact logistic model against
  those of logistic regression without privacy, with 1,000, 5,000 and 40,000 public rows.
* `shifted`: public rows that are fifteen years too young, taken as they are and re-weighted.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import log_expit

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.public_features import Family, fit_with_public_rows
from blurfit.learning.shrinkage import shrink
from blurfit.learning.sums import JointSums
from blurfit.schema.schema import Schema
from blurfit.schema.vectors import joint_form, kind_of, values
from blurfit.theory.forms import JointForm
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import sensitivity
from blurfit.theory.planning import public_weights
from blurfit_lab.datasets import load_acs
from blurfit_lab.experiments.everywhere import best_fit, markdown

CONTRIBUTORS, PUBLIC = 2**21, 40_000
YOUNGER = 15.0  # years
LOCAL_CELLS = [(n, target) for n in (2**17, 2**21) for target in (0.5, 1.0, 2.0, 4.0, 8.0)]
LOCAL_GOALS = {(2**21, 1.0): 0.72, (2**21, 4.0): 0.94}
LABEL_CELLS = [(1.0, 1e-6, 2**15)]
LABEL_CELLS += [(e, 0.01, 2**k) for e in (0.1, 1.0) for k in (9, 11, 13, 15, 17)]
LABEL_GOALS = [(1.0, 1e-6, 2**15), (0.1, 0.01, 2**13)]
SHIFTED_CELLS = [(1.0, 1e-6, 2**15), (1.0, 1e-6, 2**17)]
SIZES = (1000, 5000, 40_000)  # of public rows
Values = dict[str, float]


@dataclass(frozen=True, eq=False)
class People:
    """Encoded columns of everyone, the target last, and who is what."""

    schema: Schema
    columns: FloatArray
    age: FloatArray

    @property
    def public(self) -> FloatArray:
        """The features of the public rows."""
        return self.columns[CONTRIBUTORS : CONTRIBUTORS + PUBLIC, :-1]

    @property
    def test(self) -> FloatArray:
        """Rows that nobody has seen."""
        return self.columns[CONTRIBUTORS + PUBLIC :]

    def too_young(self, count: int, generator: np.random.Generator) -> FloatArray:
        """Public rows drawn such that their mean age is about fifteen years below the others'."""
        age = self.age[CONTRIBUTORS : CONTRIBUTORS + PUBLIC]
        low, high = 0.0, 0.3
        for _ in range(40):  # the tilt e^(−s·age) that moves the mean so far
            tilt = (low + high) / 2
            weights = np.exp(-tilt * age)
            moved = age.mean() - float(weights @ age / weights.sum())
            low, high = (tilt, high) if moved < YOUNGER else (low, tilt)
        chosen = generator.choice(PUBLIC, count, replace=False, p=weights / weights.sum())
        return self.public[chosen]


@cache
def load(label: bool) -> People:
    """Everyone of the survey, encoded by public bounds."""
    acs = load_acs()
    schema = acs.label_schema if label else acs.schema
    parts = [
        values(schema, acs.take(2**17, start=start).table).astype(np.float32)
        for start in range(0, len(acs) - 2**17 + 1, 2**17)
    ]
    done = sum(len(part) for part in parts)
    if done < len(acs):
        rest = values(schema, acs.take(len(acs) - done, start=done).table)
        parts.append(rest.astype(np.float32))
    return People(schema, np.vstack(parts), np.asarray(acs.table["age"], dtype=np.float64))


def form_for(schema: Schema, count: int, mu: float, *, public: bool) -> JointForm:
    """The default weights; with public rows the target's weight is that of all the rest, ω = R."""
    found = public_weights([kind_of(one) for one in schema.features], count, mu)
    if not public:
        return joint_form(schema, found.constant, [*found.features, found.target])
    constant = 0.4
    target = math.sqrt((1 + constant**2) / 2)
    shrink_by = math.sqrt((1 - target**2) / sum(w**2 for w in found.features))
    return joint_form(schema, constant, [*(shrink_by * w for w in found.features), target])


def release(
    people: People, form: JointForm, n: int, deviation: float, generator: np.random.Generator
) -> JointSums:
    """The blurred sums of n people, a window of the contributors."""
    start = int(generator.integers(0, CONTRIBUTORS - n + 1))
    z = np.empty((n, form.size), dtype=np.float64)
    z[:, 0] = form.constant
    z[:, 1:] = people.columns[start : start + n] * [column.weight for column in form.columns]
    noise = np.triu(generator.normal(size=(form.size, form.size)) * deviation / math.sqrt(2))
    noise[np.diag_indices_from(noise)] *= math.sqrt(2)
    blurred = np.triu(z.T @ z) + noise
    blurred += np.triu(blurred, 1).T
    return JointSums(form.columns, form.constant, n, blurred, deviation)


def fitted(
    sums: JointSums, target: str, rows: FloatArray, family: Family, *, match: bool
) -> FloatArray:
    """Coefficients of (1, v); of a constant where the public rows are refused."""
    try:
        return fit_with_public_rows(sums.submodel(target), rows, family, match=match).coefficients
    except InfeasibleError:
        return shrink(sums.submodel(target)).coefficients


def local_draw(cell: tuple[int, float], generator: np.random.Generator) -> Values:
    """Income under a local promise: how far each model goes."""
    n, target = cell
    people = load(label=False)
    name = people.schema.target.name
    constant, best = _ends()
    mu = mu_of(target, 1e-6)
    found = {}
    for way in ("alone", "with public rows"):
        public = way != "alone"
        form = form_for(people.schema, n, mu, public=public)
        # σ = √n·Δ/μ_l for each submission's promise, all of it in the sum
        deviation = math.sqrt(n) * sensitivity(form.constant, form.radius) / mu
        sums = release(people, form, n, deviation, generator)
        if public:
            w = fitted(sums, name, people.public, "linear", match=True)
        else:
            w = shrink(sums.submodel(name)).coefficients
        found[way] = (constant - _error(w)) / (constant - best)
    return found


def _error(w: FloatArray) -> float:
    test = load(label=False).test
    return float(np.sqrt(np.mean((w[0] + test[:, :-1] @ w[1:] - test[:, -1]) ** 2)))


@cache
def _ends() -> tuple[float, float]:
    """The errors of a constant, and of least squares without privacy."""
    people = load(label=False)
    part = people.columns[: CONTRIBUTORS : 2**3]
    design = np.column_stack([np.ones(len(part)), part[:, :-1]])
    best = np.linalg.lstsq(design, part[:, -1])[0]
    return float(np.std(people.test[:, -1])), _error(np.asarray(best, dtype=np.float64))


def label_draw(cell: tuple[float, float, int], generator: np.random.Generator) -> Values:
    """Labels under a promise for the model, with public rows of three sizes."""
    sums, name, people = _labels_of(cell, generator)
    found: Values = {}
    for size in SIZES:
        rows = people.public[generator.choice(PUBLIC, size, replace=False)]
        w = fitted(sums, name, rows, "logistic", match=True)
        found |= _scores(f"{size:,} rows", w)
    return found | _scores("no privacy", _best_labels())


def shifted_draw(cell: tuple[float, float, int], generator: np.random.Generator) -> Values:
    """Labels, with rows that match, and with rows that are too young."""
    sums, name, people = _labels_of(cell, generator)
    same = people.public[generator.choice(PUBLIC, 5000, replace=False)]
    young = people.too_young(5000, generator)
    ways = {
        "matching rows": (same, True),
        "young, weighted": (young, True),
        "young, as they are": (young, False),
    }
    found: Values = {}
    for way, (rows, match) in ways.items():
        found |= _scores(way, fitted(sums, name, rows, "logistic", match=match))
    return found | _scores("no privacy", _best_labels())


def _labels_of(
    cell: tuple[float, float, int], generator: np.random.Generator
) -> tuple[JointSums, str, People]:
    epsilon, delta, n = cell
    people = load(label=True)
    mu = mu_of(epsilon, delta)
    form = form_for(people.schema, n, mu, public=True)
    sums = release(people, form, n, sensitivity(form.constant, form.radius) / mu, generator)
    return sums, people.schema.target.name, people


def _scores(way: str, w: FloatArray) -> Values:
    test = load(label=True).test
    score, y = w[0] + test[:, :-1] @ w[1:], test[:, -1]
    return {
        f"{way}: accuracy": float(np.mean((score > 0) == (y > 0))),
        f"{way}: log loss": float(-np.mean(log_expit(y * score))),
    }


@cache
def _best_labels() -> FloatArray:
    """Logistic regression without privacy."""
    rows = load(label=True).columns[: 2**18].astype(np.float64)
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    return best_fit("label", design, rows[:, -1] > 0)


@dataclass(frozen=True)
class Table:
    """Cells, how one draw of a cell is made, and which cells a goal is about."""

    heads: tuple[str, ...]
    cells: list[tuple[Any, ...]]
    goals: list[tuple[Any, ...]]
    draw: Callable[[Any, np.random.Generator], Values]

    def run(self, draws: int, out: Path, *, goals: bool = False) -> None:
        """Make the draws that are missing, the first of all cells before the second of any."""
        out.mkdir(parents=True, exist_ok=True)
        known = {(*cell, place) for *cell, place in self._lines(out)[[*self.heads, "draw"]].values}
        for place in range(draws):
            for cell in self.goals if goals else self.cells:
                if (*cell, place) in known:
                    continue
                seed = [2017, self.cells.index(cell), place]
                values = self.draw(cell, np.random.default_rng(seed))
                line = {**dict(zip(self.heads, cell, strict=True)), "draw": place, **values}
                with self._file(out).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")

    def told(self, out: Path) -> str:
        """Means and standard errors of each cell that has draws."""
        found = self._lines(out).groupby(list(self.heads), sort=False)
        means, errors = found.mean().drop(columns="draw"), found.sem().drop(columns="draw")
        told = means.map("{:.4f}".format) + " ± " + errors.map("{:.4f}".format)
        told.insert(0, "draws", found.size())
        return markdown(told.reset_index())

    def _lines(self, out: Path) -> pd.DataFrame:
        path = self._file(out)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return pd.DataFrame(
            [json.loads(line) for line in lines], columns=None if lines else [*self.heads, "draw"]
        )

    def _file(self, out: Path) -> Path:
        return out / f"{self.draw.__name__}.jsonl"


TABLES = {
    "local": Table(("n", "local ε"), LOCAL_CELLS, list(LOCAL_GOALS), local_draw),
    "labels": Table(("ε", "δ", "n"), LABEL_CELLS, LABEL_GOALS, label_draw),
    "shifted": Table(("ε", "δ", "n"), SHIFTED_CELLS, SHIFTED_CELLS[1:], shifted_draw),
}
