"""Do intervals hold what they are of, who is told them, and how wide are they? One record.

    population × n × ε × method ─ a process each ─► CSV, a line for each cell ─► one page

A population is a table of rows: of a textbook (`textbooks`), or generated (`hard`, `populations`).
In each draw n people are taken from it with replacement, and a default learns from them. What its
intervals are of is the model's own `estimand` in the whole table; of versions that have none, least
squares or maximum likelihood. lab/docs/coverage.md says what the columns are.
"""

import json
import math
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from blurfit.data import FloatArray
from blurfit.errors import BlurfitError, InvalidValueError, Progress, silent
from blurfit_lab.experiments import hard, populations, textbooks
from blurfit_lab.experiments.everywhere import (
    HOLDER,
    MEAN,
    SEND,
    best_fit,
    curve,
    design,
    fit,
    loss_of,
)
from blurfit_lab.experiments.lines import filled, markdown
from blurfit_lab.experiments.populations import People, Task

POOL = 2**16
COLUMNS = 8  # of the populations that may have any number
CONFIDENCE = 0.95
LEAST_TOLD = 5  # a coefficient that is told less often is not called the worst
WILD = 1.3  # times the private mean's error
KINDS: tuple[Task, ...] = ("number", "label", "count")


class Case(NamedTuple):
    """A cell of the record; n = 0: as many people as the table has rows."""

    task: Task
    population: str
    n: int
    epsilon: float
    method: str


KEY = ["commit", *Case._fields, "draws"]


def cases(
    tasks: Sequence[Task],
    chosen: Sequence[str],
    groups: Sequence[str],
    sizes: Sequence[int],
    epsilons: Sequence[float],
    methods: Sequence[str] = (),
) -> list[Case]:
    """Return cells of populations, or of groups of them.

    Args:
        tasks: Of the tasks of `KINDS`.
        chosen: Names of populations; of a task that has none of that name they are left out.
        groups: Where none is chosen: "textbooks", "generated", "aside".
        sizes: How many people; textbooks have their own number.
        epsilons: Under which ε.
        methods: Of the methods of `everywhere`; default: the holder and one send.
    """
    found = []
    for task in tasks:
        books = textbooks.REGRESSIONS[task]
        of: dict[str, Iterable[str]] = {
            "textbooks": books,
            "generated": hard.CHOICES,
            "aside": hard.ASIDE,
        }
        for name in chosen or [name for group in groups for name in of[group]]:
            known = name in books or name in hard.CHOICES | hard.ASIDE
            if known or name in populations.CHOICES[task] | populations.ASIDE[task]:
                each = product([0] if name in books else sizes, epsilons, methods or (HOLDER, SEND))
                found += [Case(task, name, *one) for one in each]
    if not found:
        raise InvalidValueError(f"Expected populations, and {', '.join(chosen)} is none.")
    return found


def people_of(name: str, task: Task) -> People:
    """Return a population by its name."""
    if name in textbooks.REGRESSIONS[task]:
        return textbooks.textbook(name, task)
    if name in hard.CHOICES or name in hard.ASIDE:
        return hard.hard(name, task, POOL)
    return populations.people(name, task, COLUMNS)


@lru_cache(maxsize=2)
def exact_of(crowd: People) -> tuple[FloatArray, float, float]:
    """Fit the population without privacy: coefficients, loss, and what excess is divided by."""
    rows = crowd.tested
    x = design(crowd, rows.X)
    best = best_fit(crowd.task, x, rows.y)
    loss = loss_of(crowd.task, curve(crowd.task, x @ best)[0], rows.y)
    return best, loss, float(np.var(rows.y)) if crowd.task == "number" else 1.0


def measure(case: Case, draws: int) -> dict[str, Any]:
    """Draw people again and again, and count what was told and what held."""
    begin, crowd = time.process_time(), people_of(case.population, case.task)
    with threadpool_limits(limits=1):
        found = [_draw(crowd, case, seed) for seed in range(draws)]
    best, floor, unit = exact_of(crowd)
    return {**summed(found, len(best), floor, unit), "seconds": time.process_time() - begin}


class Draw(NamedTuple):
    """One fit: its loss, the private mean's, and a row (value, error, lower, upper, estimand, exact
    one) for each coefficient: nan where none is told.
    """

    loss: float
    mean: float
    told: FloatArray | None = None


def _draw(crowd: People, case: Case, seed: int) -> Draw:
    size = case.n or len(crowd.tested.y)
    generator = np.random.default_rng([zlib.crc32(case.population.encode()), size, seed])
    rows = crowd.tested.at(generator.integers(len(crowd.tested.y), size=size))
    mean = fit(MEAN, crowd, rows, case.epsilon, seed).predicted
    base = loss_of(crowd.task, mean, crowd.tested.y)
    try:
        predicted, model = fit(case.method, crowd, rows, case.epsilon, seed)
    except (BlurfitError, np.linalg.LinAlgError):
        return Draw(math.nan, base)
    loss = loss_of(crowd.task, predicted, crowd.tested.y)
    try:
        estimates = model.estimates(CONFIDENCE)
    except BlurfitError:
        return Draw(loss, base)
    exact, _, _ = exact_of(crowd)
    try:
        aim = model.estimand(*crowd.tested) if hasattr(model, "estimand") else exact
    except BlurfitError:  # a wave's own equation without a solution in these rows
        aim = np.full(len(exact), np.nan)
    told = [(one.value, one.standard_error, one.lower, one.upper) for one in estimates]
    return Draw(loss, base, np.column_stack([np.array(told), aim, exact]))


def summed(found: Sequence[Draw], width: int, floor: float, unit: float) -> dict[str, Any]:
    """Sum up the draws of a cell.

    Args:
        found: One of each fit.
        width: How many coefficients there are.
        floor: The loss of the best model of the population.
        unit: What excess loss is divided by.

    Returns:
        The columns of the record, by name.
    """
    losses, means = (np.array([getattr(one, name) for one in found]) for name in ("loss", "mean"))
    learned = np.isfinite(losses)
    told = [one.told for one in found if one.told is not None]
    each = np.array(told) if told else np.zeros((0, width, 6))
    each = np.where(np.isfinite(each[:, :, 1:2]), each, np.nan)
    value, error, lower, upper, aim, exact = np.moveaxis(each, 2, 0)
    limited = np.isfinite(error)
    facts: dict[str, Any] = {
        "learned": learned.mean(),
        "told": len(told) / len(found),
        "coefficients": limited.sum() / (len(found) * width),
    }
    for head, truth in (("held", aim), ("exact", exact)):
        holds = (lower <= truth) & (truth <= upper) & limited
        often = limited.sum(axis=0) >= LEAST_TOLD
        facts[head] = holds.sum() / limited.sum() if limited.any() else math.nan
        share = holds.sum(axis=0)[often] / limited.sum(axis=0)[often]
        facts[f"{head}_worst"] = share.min() if often.any() else math.nan
    ratios = [  # of each coefficient, the mean standard error over the spread of the errors
        np.mean(error[seen, k]) / np.sqrt(np.nanmean((value - aim)[seen, k] ** 2))
        for k, seen in enumerate(limited.T)
        if seen.sum() >= LEAST_TOLD
    ]
    facts["width"] = np.median(ratios) if ratios else math.nan
    over = losses[learned]
    facts["loss"] = over.mean() if len(over) else math.nan
    facts["excess"] = (facts["loss"] - floor) / unit
    facts["mean_excess"] = (means.mean() - floor) / unit
    facts["wild"] = int(np.sum(over > WILD * means[learned]))
    return {name: round(float(value), 6) for name, value in facts.items()}


# ---- running


# Another checkout's `blurfit` is of another version than this laboratory, whose own __init__ would
# refuse it: so the package is made here, without.
_CELL = f"""
import json, sys, types
package = sys.modules["blurfit_lab"] = types.ModuleType("blurfit_lab")
package.__path__ = [{str(Path(__file__).parents[1])!r}]
from blurfit_lab.experiments.coverage import Case, measure
*case, draws = json.loads(sys.argv[1])
print(json.dumps(measure(Case(*case), draws)))
"""


def run(
    cases: Sequence[Case],
    draws: int,
    out: Path,
    checkout: Path | None = None,
    jobs: int = 2,
    tell: Progress = silent,
) -> str:
    """Measure the cells that `out` lacks of a commit, each in a process of its own.

    Args:
        cases: What to measure.
        draws: Fits of each cell.
        out: The CSV file, to which lines are added.
        checkout: Another checkout, whose `blurfit` is measured instead of this one.
        jobs: How many processes run at once.
        tell: Called with how many cells are done, and of how many.

    Returns:
        The commit that was measured.
    """
    here = Path(__file__).parent if checkout is None else checkout
    commit = _commit(here)
    path = [str(here / "src")] if checkout else []
    known = {*map(tuple, read(out)[KEY].astype(str).to_numpy())} if out.exists() else set()
    wanted = [one for one in cases if (commit, *map(str, one), str(draws)) not in known]

    def work(case: Case) -> dict[str, Any]:
        told = subprocess.run(
            [sys.executable, "-c", _CELL, json.dumps([*case, draws])],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*path, *filter(None, sys.path)])},
            stdout=subprocess.PIPE,
            check=True,
        )
        return {**dict(zip(KEY, (commit, *case, draws), strict=True)), **json.loads(told.stdout)}

    with ThreadPoolExecutor(jobs) as pool:
        for place, line in enumerate(pool.map(work, wanted)):
            out.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame([line]).to_csv(out, mode="a", header=not out.exists(), index=False)
            tell(place + 1, len(wanted))
    return commit


def _commit(folder: Path) -> str:
    words = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "released"


def read(out: Path) -> pd.DataFrame:
    """Return the cells of a record."""
    return pd.read_csv(out, dtype={"commit": str}).astype({"wild": int})


# ---- telling


def record(cells: pd.DataFrame, commit: str, other: str | None = None) -> pd.DataFrame:
    """Return the cells of a commit, and beside them how its losses compare with another's.

    Args:
        cells: The lines of a record.
        commit: Whose.
        other: The commit to divide losses by.
    """
    mine = cells[cells.commit == commit].drop(columns="commit")
    if other is None:
        return mine.reset_index(drop=True)
    theirs = cells[cells.commit == other]
    both = mine.merge(theirs, on=KEY[1:], suffixes=("", "_other"))
    both["ratio"] = both.loss / both.loss_other
    return both[[*mine.columns, "ratio", "told_other", "exact_other", "width_other", "wild_other"]]


def in_words(found: pd.DataFrame) -> str:
    """Write a table for each task, with means over its cells below."""
    parts = []
    for task, part in found.groupby("task", sort=False):
        shown = part.drop(columns=["task", "loss", "seconds"]).copy()
        shown["n"] = shown.n.replace(0, "all")
        words = (
            f"Means over {len(part)} cells: told {part.told.mean():.3f}, held "
            f"{part.held.mean():.3f}, {int(part.wild.sum())} of {int(part.draws.sum())} fits wild"
        )
        if "ratio" in part:
            words += (
                f"; geometric mean of the ratios of loss {np.exp(np.log(part.ratio).mean()):.3f}"
            )
        parts += [f"**{str(task).capitalize()}s**", markdown(shown, 3), f"{words}."]
    return "\n\n".join(parts)


def page(found: pd.DataFrame, commit: str, other: str | None) -> str:
    """Write the page of a record."""
    against = f", against commit {other}" if other else ""
    return filled("coverage.md.in", {"commit": f"{commit}{against}", "tables": in_words(found)})
