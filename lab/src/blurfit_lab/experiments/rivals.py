"""All methods beside one another: over ε at one n, and over n for the goals that we set ourselves.

Public defaults only; everyone under `replace`. The noisy methods that have to look at single
records run beside one another on the same window.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.simulation.entropy import Generator
from blurfit_lab.experiments.cells import Untuned, seeded
from blurfit_lab.experiments.cohort import BLOCK, Cohort, Window
from blurfit_lab.experiments.figures import DELTA, PaperFigure
from blurfit_lab.experiments.methods import (
    CONSTANT,
    INPUT,
    LINES,
    MOMENT,
    WAVES,
    Promise,
    squared_risk,
)
from blurfit_lab.experiments.trials import Row
from blurfit_lab.rivals import (
    AdaSSPRegressor,
    FunctionalMechanismClassifier,
    FunctionalMechanismRegressor,
    GradientPerturbationClassifier,
    GradientPerturbationRegressor,
    LaplaceObjectivePerturbationClassifier,
    LaplaceObjectivePerturbationRegressor,
)
from blurfit_lab.rivals.descent import logistic_slope, squared_slope
from blurfit_lab.rivals.functional import LOGISTIC, SQUARED
from blurfit_lab.rivals.gradient import published_descent, published_deviation
from blurfit_lab.rivals.local import local_descent
from blurfit_lab.rivals.risk import Risk

LAPLACE_OBJECTIVE, FUNCTIONAL = "objective (Laplace)", "functional mechanism"
ADASSP, EXACT_ADASSP, GRADIENT = "AdaSSP", "AdaSSP (exact)", "gradient (modern accounting)"
PUBLISHED_GRADIENT, LOCAL = "gradient (published)", "local gradients"
FROM_ROWS = (PUBLISHED_GRADIENT, LOCAL)
MORE_LINES = (LAPLACE_OBJECTIVE, FUNCTIONAL, ADASSP, EXACT_ADASSP, GRADIENT)
FOR_NUMBERS = (ADASSP, EXACT_ADASSP)  # not for labels
PUBLISHED_STEPS = 2**15
TEST_ROWS = 2**16
TRIALS_AT_ONCE = 20


@dataclass(frozen=True, eq=False)
class Problem:
    """What a line is to learn, from which rows, under which promise."""

    population: Cohort
    window: Window
    promise: Promise
    label: bool

    def scores(self, weights: FloatArray) -> list[float]:
        """RMSE or accuracy of each row of weights on the window's test rows."""
        return self.population.scores(self.window, weights, label=self.label)


def more_weights(line: str, problem: Problem, generator: Generator) -> FloatArray:
    """The weights of a rival that is not in the paper's figures."""
    label = problem.label
    terms: dict[str, Any] = {"epsilon": problem.promise.epsilon}
    sums = problem.population.training_sums(problem.window)
    if line == FUNCTIONAL:
        family = FunctionalMechanismClassifier if label else FunctionalMechanismRegressor
        polynomial = LOGISTIC if label else SQUARED
        return family(**terms).from_sums(sums.statistics(label=label), polynomial, generator)
    risk: Risk = squared_risk(sums)
    if label:
        risk = problem.population.training_risk(problem.window)
    rivals: tuple[Any, ...]
    if line == LAPLACE_OBJECTIVE:
        rivals = LaplaceObjectivePerturbationRegressor, LaplaceObjectivePerturbationClassifier
    else:
        terms["delta"] = problem.promise.delta
        rivals = GradientPerturbationRegressor, GradientPerturbationClassifier
    if line in FOR_NUMBERS:
        rivals = (AdaSSPRegressor,)
        terms["accounting"] = "exact" if line == EXACT_ADASSP else "published"
    return np.asarray(rivals[label](**terms).release(risk, generator))


def weights_from_rows(line: str, problem: Problem, runs: int, generator: Generator) -> FloatArray:
    """The weights of a rival that looks at single records: `runs` of them on the same window."""
    population, window = problem.population, problem.window
    promise, label = problem.promise, problem.label
    places = (window.start + np.arange(window.count)) % (len(population) // BLOCK * BLOCK)
    x = population.x[places]
    y = (population.label if label else population.y)[places]
    root = math.sqrt(x.shape[1])
    radius, lipschitz = (4 * root, 1.0) if label else (root, root + 1.0)
    terms: dict[str, Any] = {
        "radius": radius,
        "lipschitz": lipschitz,
        "runs": runs,
        "generator": generator,
    }
    slope = logistic_slope if label else squared_slope
    if line == LOCAL:
        return local_descent(x, y, slope, epsilon=promise.epsilon, **terms)
    deviation = published_deviation(
        promise.epsilon, promise.delta, count=window.count, lipschitz=lipschitz
    )
    steps = min(window.count**2, PUBLISHED_STEPS)
    return published_descent(x, y, slope, deviation=deviation, steps=steps, **terms)


@dataclass(frozen=True)
class Comparison(Untuned):
    """Every method at some n and ε, in cells of one problem, ε and n each."""

    name: str
    quorums: tuple[int, ...]
    epsilons: tuple[float, ...]
    from_rows: bool

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """problem:ε:n:first:last, the first trials of everything before the next ones.

        A population with a label alone has no linear problem.
        """
        problems = ("logistic",) if population.schema.is_label else ("linear", "logistic")
        return [
            f"{problem}:{epsilon}:{n}:{first}:{min(first + TRIALS_AT_ONCE, trials)}"
            for first in range(0, trials, TRIALS_AT_ONCE)
            for problem in problems
            for epsilon in self.epsilons
            for n in self.quorums
            if n <= 0.75 * len(population)
        ]

    def rows(self, population: Cohort, cell: str) -> list[Row]:
        """All methods, trial by trial; those from rows all trials at once, on the first window."""
        kind, *numbers = cell.split(":")
        epsilon, n = float(numbers[0]), int(numbers[1])
        trials = range(int(numbers[2]), int(numbers[3]))
        label, promise = kind == "logistic", Promise(epsilon, DELTA)
        figure = PaperFigure(self.name, label, epsilon, (n,))
        more = [line for line in MORE_LINES if not (label and line in FOR_NUMBERS)]
        words = f"{self.name} {kind} {epsilon} {n}"  # without the trials: more begin like fewer
        rows = []

        def drawn(line: str, trial: int) -> Generator:
            return seeded(population.seed, f"{words} {line}", trial)

        for trial in trials:
            window = self._window(population, n, trial)
            problem = Problem(population, window, promise, label)
            values = figure.scores(population, window, [(line, None) for line in LINES], trial)
            weights = [more_weights(line, problem, drawn(line, trial)) for line in more]
            values += problem.scores(np.array(weights))
            rows += [
                Row(line, kind, epsilon, n, trial, value)
                for line, value in zip([*LINES, *more], values, strict=True)
            ]
        if self.from_rows:
            window, first = self._window(population, n, trials.start), trials.start
            problem = Problem(population, window, promise, label)
            for line in FROM_ROWS:
                found = weights_from_rows(line, problem, len(trials), drawn(line, first))
                rows += [
                    Row(line, kind, epsilon, n, trial, value)
                    for trial, value in zip(trials, problem.scores(found), strict=True)
                ]
        return rows

    def _window(self, population: Cohort, n: int, trial: int) -> Window:
        """With more test rows than the paper's n/4, so that trials tell small differences."""
        tested = min(TEST_ROWS, (len(population) - n) // BLOCK * BLOCK)
        return replace(population.window(n, trial), tested=tested)


RIVALS = Comparison("rivals", (2**17,), (0.1, 0.3, 1.0, 3.0), from_rows=True)
UTILITY = Comparison(
    "utility", tuple(2**k for k in (9, 11, 13, 15, 17)), (0.1, 1.0), from_rows=False
)
assert {CONSTANT, INPUT, MOMENT, WAVES} < set(LINES)
