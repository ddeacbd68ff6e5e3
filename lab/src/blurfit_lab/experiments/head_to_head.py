"""Head to head with the best of 2026, on their data and settings, and on ours.

The sets are those of `blurfit_lab.experiments.contests`: numbers to predict, and labels. ε takes
six values from 0.1 to 10, δ = 1/n², each neighbouring relation by itself, everyone under the same
one. In a trial every line trains and tests on the same rows: trials are paired. All have the same
public bounds and the same encoding, and predicted numbers are clipped to the target's bounds, which
costs no privacy. The error is the mean square for a target in [0, 1], and the share of mistakes for
labels.

A line is a name and a function from a `Task` and a generator to weights; `fitted` makes one of any
estimator that is fitted like scikit-learn's. To compare your own, add it to `LINES`.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit.agreement.grid import DISCRETE_SHARE
from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, NotPrivateWarning
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
)
from blurfit.simulation.entropy import Generator
from blurfit.theory.gaussian import mu_of
from blurfit.theory.guarantees import NEIGHBOURS, Neighbours
from blurfit.theory.planning import choose_plan
from blurfit_lab.experiments.cells import Untuned, seeded
from blurfit_lab.experiments.cohort import Cohort
from blurfit_lab.experiments.contests import contests
from blurfit_lab.experiments.methods import CERTIFIED_OBJECTIVE, INPUT, MOMENT, NO_PRIVACY
from blurfit_lab.experiments.rivals import ADASSP, EXACT_ADASSP, GRADIENT
from blurfit_lab.experiments.trials import Row
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
