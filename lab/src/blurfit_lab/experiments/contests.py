"""The sets of the head to head: which rows a trial trains on, tests on, and takes for public.

Twelve small UCI sets, whose rows are all used (4 : 1, nothing is left to be public), and samples of
people: of the population at hand (the American Community Survey, where its file is), of Adult and
of a generated one. Samples of people are for numbers or for labels, and have rows besides that
nobody trains or tests on: `PUBLIC` of them, features only, for the lines that use public rows.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from blurfit.arrays import FloatArray, IntArray
from blurfit.schema.columns import Categorical
from blurfit.schema.schema import Schema
from blurfit.simulation import make_census
from blurfit.simulation.census import Census
from blurfit.simulation.entropy import generator_for
from blurfit_lab.datasets import UCI_SETS, load_adult, load_uci
from blurfit_lab.datasets.adult import FILENAME as ADULT
from blurfit_lab.datasets.data_files import VARIABLE
from blurfit_lab.datasets.uci import FOLDER
from blurfit_lab.experiments.cells import seeded
from blurfit_lab.experiments.cohort import Cohort

TRAINING = 0.8  # of a UCI set
TESTED, PUBLIC = 2**12, 2000  # people to test on, and people whose features are public
SMALL, LARGE = 2**10, 2**13  # people to train on
# Sets whose target is yes or no: their error is a share of mistakes.
LABEL_SETS = ("people 2¹⁰, high income", "people 2¹³, high income", "Adult 2¹³, income")
Rows = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class TrialRows:
    """One trial's rows: encoded, ‖x‖ ≤ 1 with the constant last, |y| ≤ 1."""

    x: FloatArray
    y: FloatArray
    test_x: FloatArray
    test_y: FloatArray
    public: FloatArray | None


@dataclass(frozen=True)
class Contest:
    """A set: where its rows come from, whether y is a label, and how many to train on (or 80%)."""

    name: str
    rows: Callable[[Cohort], Rows]
    label: bool = False
    training: int | None = None

    def drawn(self, population: Cohort, trial: int) -> TrialRows:
        """Rows of one trial: the same for every ε, relation and line."""
        x, y = self.rows(population)
        train, test, public = self._places(population.seed, len(y), trial)
        return TrialRows(
            x[train], y[train], x[test], y[test], x[public] if self.training is not None else None
        )

    def _places(self, seed: int, rows: int, trial: int) -> tuple[IntArray, IntArray, IntArray]:
        generator = seeded(seed, self.name, trial)
        if self.training is None:
            order = generator.permutation(rows)
            n = int(TRAINING * rows)
            return order[:n], order[n:], order[rows:]
        ends = np.cumsum([0, self.training, TESTED, PUBLIC])
        start = int(generator.integers(rows - int(ends[-1]) + 1))  # rows are in random order
        train, test, public = (np.arange(start + low, start + high) for low, high in pairwise(ends))
        return train, test, public


def contests(population: Cohort) -> dict[str, Contest]:
    """All sets that can be had: UCI and Adult where their files are."""
    found = []
    if _has(*(f"{FOLDER}/{name}.parquet" for name in UCI_SETS)):
        found += [_uci(name) for name in UCI_SETS]
    found += [
        Contest("people 2¹⁰", _numbers, training=SMALL),
        Contest("people 2¹³", _numbers, training=LARGE),
        Contest(LABEL_SETS[0], _labels, label=True, training=SMALL),
        Contest(LABEL_SETS[1], _labels, label=True, training=LARGE),
    ]
    if _has(ADULT):
        found += [
            Contest("Adult 2¹³, hours", lambda p: _adult_rows(p.seed, hours=True), training=LARGE),
            Contest(
                LABEL_SETS[2],
                lambda p: _adult_rows(p.seed, hours=False),
                label=True,
                training=LARGE,
            ),
        ]
    if not population.synthetic:
        found.append(Contest("generated 2¹³", lambda p: _generated_rows(p.seed), training=LARGE))
    return {
        one.name: one
        for one in found
        if one.training is None or one.training + TESTED + PUBLIC <= len(population)
    }


def _numbers(population: Cohort) -> Rows:
    return population.x, population.y


def _labels(population: Cohort) -> Rows:
    return population.x, population.label


def _uci(name: str) -> Contest:
    return Contest(name, lambda _: _uci_rows(name))


@lru_cache(maxsize=16)
def _uci_rows(name: str) -> Rows:
    census = load_uci(name)
    x, y = census.schema.encode(census.table)
    return x, y


@lru_cache(maxsize=1)
def _generated_rows(seed: int) -> Rows:
    found = Cohort.of(make_census(2**16, seed), seed)
    return found.x, found.y


@lru_cache(maxsize=2)
def _adult_rows(seed: int, *, hours: bool) -> Rows:
    """Adult without its categories, which most rivals cannot take, in a random order."""
    census = plain(load_adult())
    if hours:
        features = [one for one in census.schema.features if one.name != "hours_per_week"]
        (target,) = (one for one in census.schema.features if one.name == "hours_per_week")
        census = replace(census, schema=Schema(features, target))
    order = generator_for([seed, 1994]).permutation(len(census))
    x, y = census.schema.encode(census.table)
    return np.ascontiguousarray(x[order]), y[order]


def plain(census: Census) -> Census:
    """A census with its numbers and truth values alone."""
    features = [one for one in census.schema.features if not isinstance(one, Categorical)]
    return replace(census, schema=Schema(features, census.schema.target))


def _has(*files: str) -> bool:
    place = os.environ.get(VARIABLE)
    return bool(place) and all((Path(str(place)) / file).is_file() for file in files)
