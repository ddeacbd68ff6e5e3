"""Do intervals cover? 95 % intervals of public defaults against a population's own best model.

A pool of rows is the population: its least squares, or its maximum likelihood, is the truth,
whether or not the model is true of it. In each draw n people are taken from it with replacement,
and each method tells an estimate with an interval for every coefficient, or refuses.
lab/docs/everywhere.md says what the columns of the table are.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from blurfit.data import FloatArray
from blurfit.errors import Progress, silent
from blurfit_lab.experiments import lines
from blurfit_lab.experiments.everywhere import HOLDER, ONE, SEND, best_fit, curve, design, fit
from blurfit_lab.experiments.lines import CELL, Cell
from blurfit_lab.experiments.populations import People, Rows, Task, people

POOL = 2**17
CONFIDENCE = 0.95
WORST_DRAWS = 5  # a coefficient that is told less often is not called the worst
# Which populations the goal is about; `strong` beside with few rows a column.
GOAL: dict[Task, tuple[str, ...]] = {
    "number": (
        *("gauss", "rare", "loose", "sparse", "cond1000", "age", "inter", "uneven"),
        *("strong", "heavy", "lognormal", "outliers"),
    ),
    "label": ("gauss", "few", "steps", "cauchy", "hump"),
    "count": ("poisson", "overdispersed"),
}
# One wave of labels or counts is a line, which has other coefficients than the curve.
METHODS: dict[Task, tuple[str, ...]] = {
    "number": (HOLDER, SEND, ONE),
    "label": (HOLDER, SEND),
    "count": (HOLDER, SEND),
}


class Pool(NamedTuple):
    """The population, its truth by coefficient, and √n times the ideal standard errors."""

    rows: Rows
    truth: FloatArray
    ideal: FloatArray


@lru_cache(maxsize=2)
def pool_of(crowd: People) -> Pool:
    """Draw the pool, and fit it without privacy."""
    rows = crowd.draw(min(POOL, crowd.rows or POOL), 0)
    x = design(crowd, rows.X)
    truth = best_fit(crowd.task, x, rows.y)
    rate, weight = curve(crowd.task, x @ truth)
    inverse = np.linalg.inv((x * weight[:, None]).T @ x)
    middle = (x * (rows.y - rate)[:, None] ** 2).T @ x
    ideal = np.sqrt(np.diagonal(inverse @ middle @ inverse) * len(x))
    return Pool(rows, truth, np.asarray(ideal))


def run(
    task: Task,
    cells: Sequence[Cell],
    draws: int,
    methods: Sequence[str],
    out: Path,
    tell: Progress = silent,
) -> None:
    """Compute the draws that `out` lacks; one line for each draw and method."""

    def prepare(cell: Cell, seed: int) -> lines.Measured:
        crowd = people(cell.population, task, cell.d)
        pool = pool_of(crowd).rows
        rows = pool.at(np.random.default_rng([seed, cell.n]).integers(len(pool.y), size=cell.n))
        return lambda method: _draw(crowd, rows, cell.epsilon, seed, method)

    lines.run(task, list(product(cells, range(draws))), methods, out, prepare, tell)


def _draw(crowd: People, rows: Rows, epsilon: float, seed: int, method: str) -> dict[str, Any]:
    """Each coefficient's error and standard error, and whether its interval holds the truth."""
    truth, ideal = pool_of(crowd).truth, pool_of(crowd).ideal
    found = fit(method, crowd, rows, epsilon, seed).model.estimates(CONFIDENCE)
    errors = np.array([one.value for one in found]) - truth
    covers = [bool(one.lower <= t <= one.upper) for one, t in zip(found, truth, strict=True)]
    deviations = np.array([one.standard_error for one in found])
    return {
        "names": [one.name for one in found],
        "errors": (errors / ideal * math.sqrt(len(rows.y))).tolist(),  # in ideal standard errors
        "deviations": (deviations / ideal * math.sqrt(len(rows.y))).tolist(),
        "covers": covers,
    }


def table(draws: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell and method."""
    found = []
    for key, part in draws.groupby([*CELL, "method"], sort=False):
        told = part[part.covers.notna()] if "covers" in part else part[:0]
        row = [*key, len(part), len(part) - len(told)]
        if told.empty:
            found.append([*row, *[math.nan] * 4, ""])
            continue
        covers, errors, deviations = (
            np.array(told[name].tolist(), dtype=float)
            for name in ("covers", "errors", "deviations")
        )
        each = covers.mean(axis=0)
        worst = int(each.argmin())
        name = told.names.iloc[0][worst] if len(told) >= WORST_DRAWS else ""
        spread = np.sqrt(np.mean(errors**2, axis=0))
        width = float(np.median(deviations / spread))
        found.append([*row, covers.mean(), each[worst], width, float(np.median(deviations)), name])
    heads = ["draws", "refused", "covered", "worst", "width", "ideal", "worst one"]
    return pd.DataFrame(found, columns=[*CELL, "method", *heads])
