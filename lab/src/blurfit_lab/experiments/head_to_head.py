"""The head to head with rivals of 2026.

**The sets.** The sets of the head to head: which rows a trial trains on, tests on, and takes for
public.

Twelve small UCI sets, whose rows are all used (4 : 1, nothing is left to be public), and samples of
people: of the population at hand (the American Community Survey, where its file is), of Adult and
of a generated one. Samples of people are for numbers or for labels, and have rows besides that
nobody trains or tests on: `PUBLIC` of them, features only, for the lines that use public rows.

**The lines.** Head to head with the best of 2026, on their data and settings, and on ours.

The sets have numbers to predict, and labels. ε takes
six values from 0.1 to 10, δ = 1/n², each neighbouring relation by itself, everyone under the same
one. In a trial every line trains and tests on the same rows: trials are paired. All have the same
public bounds and the same encoding, and predicted numbers are clipped to the target's bounds, which
costs no privacy. The error is the mean square for a target in [0, 1], and the share of mistakes for
labels.

A line is a name and a function from a `Task` and a generator to weights; `fitted` makes one of any
estimator that is fitted like scikit-learn's. To compare your own, add it to `LINES`.
"""

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from blurfit.agreement.numbers import DISCRETE_SHARE
from blurfit.arrays import FloatArray, IntArray
from blurfit.errors import InfeasibleError, NotPrivateWarning
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
)
from blurfit.schema.columns import Categorical
from blurfit.schema.schema import Schema
from blurfit.simulation import make_census
from blurfit.simulation.census import Census
from blurfit.simulation.sampler import Generator, generator_for
from blurfit.theory.gaussian import mu_of
from blurfit.theory.guarantees import NEIGHBOURS, Neighbours
from blurfit.theory.planning import choose_plan
from blurfit_lab.datasets import UCI_SETS, load_adult, load_uci
from blurfit_lab.datasets.data_files import VARIABLE
from blurfit_lab.datasets.uci import FILENAME as ADULT
from blurfit_lab.datasets.uci import FOLDER
from blurfit_lab.experiments.beyond import ADASSP, EXACT_ADASSP, GRADIENT
from blurfit_lab.experiments.cohort import Cohort
from blurfit_lab.experiments.figures import CERTIFIED_OBJECTIVE, INPUT, MOMENT, NO_PRIVACY
from blurfit_lab.experiments.runner import Row, Untuned, seeded
from blurfit_lab.rivals import (
    AdaSSPRegressor,
    BinAggRegressor,
    BoostedAdaSSPRegressor,
    GaussMixRegressor,
    GeneralisedObjectivePerturbationClassifier,
    GeneralisedObjectivePerturbationRegressor,
    GradientPerturbationClassifier,
    GradientPerturbationRegressor,
    IterativeHessianMixingRegressor,
    NonPrivateClassifier,
    ObjectivePerturbationClassifier,
    PublicMomentRegressor,
    TukeyRegressor,
)

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


PRIVATE_MEAN = "private mean"
PUBLISHED_IHM, IHM, GAUSSMIX = "IHM", "IHM (exact)", "GaussMix (exact)"
BOOSTED, BINAGG, TUKEY = "BoostedAdaSSP (20 rounds)", "BinAgg", "TukeyEM"
GENERALISED, PUBLIC_MOMENT = "objective (generalised)", "public second moment"
WAVES, PUBLIC_FEATURES = "moment in waves", "moment, public rows"
EPSILONS = tuple(float(f"{value:.4g}") for value in np.logspace(-1, 1, 6))
BLOCK = 20  # trials of one cell, so that a long run has some of every cell early


@dataclass(frozen=True, eq=False)
class Task:
    """Encoded rows, ‖x‖ ≤ 1 with the constant last, targets |y| ≤ 1, and the promise to keep.

    `public` are rows of x that are neither trained nor tested on, where there are some.
    """

    x: FloatArray
    y: FloatArray
    epsilon: float
    delta: float
    neighbours: Neighbours
    label: bool = False
    public: FloatArray | None = None

    @property
    def root(self) -> float:
        """What encoded columns are multiplied by to be in [−1, 1]."""
        return math.sqrt(self.x.shape[1])

    @property
    def public_columns(self) -> FloatArray:
        """The features of the public rows, in [−1, 1]."""
        assert self.public is not None
        return np.asarray(self.public[:, :-1] * self.root)


Line = Callable[[Task, Generator], FloatArray]


def fitted(regressor: type[Any], classifier: type[Any] | None = None, **terms: Any) -> Line:
    """The line of an estimator: fitted to columns that are scaled to [−1, 1], which is public."""

    def line(task: Task, generator: Generator) -> FloatArray:
        family = classifier if task.label and classifier is not None else regressor
        aim = {} if task.label else {"target_bounds": (-1, 1)}
        model = family(
            epsilon=task.epsilon,
            delta=task.delta,
            neighbours=task.neighbours,
            bounds=(-1, 1),
            random_state=int(generator.integers(2**31)),
            **aim,
            **terms,
        )
        with warnings.catch_warnings():  # seeds are meant here: nobody is protected by a comparison
            warnings.simplefilter("ignore", NotPrivateWarning)
            model.fit(task.x[:, :-1] * task.root, task.y)
        return np.append(model.coef_, model.intercept_) * task.root

    return line


def is_one_wave(task: Task) -> bool:
    """Whether the default takes one wave there, by public facts: it is `MOMENT` then."""
    n, columns = task.x.shape
    mu = mu_of(task.epsilon, task.delta * (1 - DISCRETE_SHARE))
    kind: Any = "label" if task.label else "number"
    return len(choose_plan(kind, coefficients=columns - 1, count=n, mu=mu).stages) == 1


def with_public_rows(task: Task, generator: Generator) -> FloatArray:
    """Joint moments beside public rows; without them where the fit with them is refused."""
    ours = MomentPerturbationRegressor, MomentPerturbationClassifier
    try:
        return fitted(*ours, public_X=task.public_columns)(task, generator)
    except InfeasibleError:
        return fitted(*ours, waves=1)(task, generator)


def with_public_moment(task: Task, generator: Generator) -> FloatArray:
    """The rival that takes public rows, which it whitens with."""
    return fitted(PublicMomentRegressor, public_X=task.public_columns)(task, generator)


def no_privacy(task: Task, generator: Generator) -> FloatArray:
    """Least squares, or logistic regression: the floor."""
    del generator
    if not task.label:
        return np.asarray(np.linalg.lstsq(task.x, task.y, rcond=None)[0])
    model = NonPrivateClassifier(bounds=(-1, 1)).fit(task.x[:, :-1] * task.root, task.y)
    return np.append(model.coef_, model.intercept_) * task.root


def private_mean(task: Task, generator: Generator) -> FloatArray:
    """The mean target with Gaussian noise that spends all of (ε, δ): what features have to beat."""
    reach = 2.0 if task.neighbours == "replace" else 1.0
    noise = reach / mu_of(task.epsilon, task.delta) * float(generator.standard_normal())
    weights = np.zeros(task.x.shape[1])
    mean = min(1.0, max(-1.0, (float(task.y.sum()) + noise) / len(task.y)))
    weights[-1] = mean * task.root
    return weights


OURS: dict[str, Line] = {
    WAVES: fitted(MomentPerturbationRegressor, MomentPerturbationClassifier),
    MOMENT: fitted(MomentPerturbationRegressor, MomentPerturbationClassifier, waves=1),
    PUBLIC_FEATURES: with_public_rows,
    INPUT: fitted(InputPerturbationRegressor, InputPerturbationClassifier),
}
RIVAL_LINES: dict[str, Line] = {
    ADASSP: fitted(AdaSSPRegressor),
    EXACT_ADASSP: fitted(AdaSSPRegressor, accounting="exact"),
    BOOSTED: fitted(BoostedAdaSSPRegressor, rounds=20),
    GAUSSMIX: fitted(GaussMixRegressor, accounting="exact"),
    PUBLISHED_IHM: fitted(IterativeHessianMixingRegressor),
    IHM: fitted(IterativeHessianMixingRegressor, accounting="exact"),
    BINAGG: fitted(BinAggRegressor),
    TUKEY: fitted(TukeyRegressor),
    PUBLIC_MOMENT: with_public_moment,
    CERTIFIED_OBJECTIVE: fitted(
        ObjectivePerturbationClassifier, ObjectivePerturbationClassifier, rule="certified"
    ),
    GENERALISED: fitted(
        GeneralisedObjectivePerturbationRegressor, GeneralisedObjectivePerturbationClassifier
    ),
    GRADIENT: fitted(GradientPerturbationRegressor, GradientPerturbationClassifier, steps=100),
}
FOR_LABELS = (CERTIFIED_OBJECTIVE, GENERALISED, GRADIENT)  # the rivals that take labels
ONLY_LABELS = (CERTIFIED_OBJECTIVE,)
NEED_PUBLIC_ROWS = (PUBLIC_FEATURES, PUBLIC_MOMENT)
REFERENCES: dict[str, Line] = {NO_PRIVACY: no_privacy, PRIVATE_MEAN: private_mean}
LINES: dict[str, Line] = {**REFERENCES, **RIVAL_LINES, **OURS}


def takes(line: str, task: Task) -> bool:
    """Whether a line can be run on a task: some take no labels, two need public rows."""
    if line in NEED_PUBLIC_ROWS and task.public is None:
        return False
    if line not in RIVAL_LINES:
        return True
    return line in FOR_LABELS if task.label else line not in ONLY_LABELS


@dataclass(frozen=True)
class HeadToHead(Untuned):
    """Cells of one set, one relation, one ε and twenty trials each."""

    name: str = "rivals2026"

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """set:relation:ε:first trial:one after the last; the first trials of all sets first."""
        return [
            f"{name}:{neighbours}:{epsilon}:{first}:{min(first + BLOCK, trials)}"
            for first in range(0, trials, BLOCK)
            for name in contests(population)
            for neighbours in NEIGHBOURS
            for epsilon in EPSILONS
        ]

    def rows(self, population: Cohort, cell: str) -> list[Row]:
        """The test error of every line in every trial."""
        name, neighbours, *numbers = cell.split(":")
        epsilon, first, last = float(numbers[0]), int(numbers[1]), int(numbers[2])
        contest = contests(population)[name]
        relation: Neighbours = "replace" if neighbours == "replace" else "zero-out"
        rows = []
        for trial in range(first, last):
            drawn = contest.drawn(population, trial)
            n = len(drawn.y)
            task = Task(drawn.x, drawn.y, epsilon, 1 / n**2, relation, contest.label, drawn.public)
            weights: dict[str, FloatArray] = {}
            for line in LINES:
                if not takes(line, task):
                    continue
                run = MOMENT if line == WAVES and is_one_wave(task) else line
                if run not in weights:
                    words = f"{name}:{neighbours}:{epsilon} {run}"
                    random = seeded(population.seed, words, trial)
                    weights[run] = LINES[run](task, random)
                score = drawn.test_x @ weights[run]
                value = error_of(score, drawn.test_y, label=contest.label)
                rows.append(Row(line, f"{name}, {neighbours}", epsilon, n, trial, value))
        return rows


def error_of(score: FloatArray, y: FloatArray, *, label: bool) -> float:
    """The share of mistakes, or the mean square for a target that is scaled to [0, 1]."""
    if label:
        return float(np.mean((score > 0) != (y > 0)))
    return float(np.mean((np.clip(score, -1, 1) - y) ** 2)) / 4


RIVALS_2026 = HeadToHead()
