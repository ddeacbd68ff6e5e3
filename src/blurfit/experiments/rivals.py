"""All methods beside one another: over ε at one n, and over n for the goals that we set ourselves.

Public defaults only; everyone under `replace`. The noisy methods that have to look at single
records run beside one another on the same window.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.baselines import (
    AdaSSPRegressor,
    FunctionalMechanismClassifier,
    FunctionalMechanismRegressor,
    GradientPerturbationClassifier,
    GradientPerturbationRegressor,
    LaplaceObjectivePerturbationClassifier,
    LaplaceObjectivePerturbationRegressor,
)
from blurfit.baselines.descent import logistic_slope, squared_slope
from blurfit.baselines.functional import LOGISTIC, SQUARED
from blurfit.baselines.gradient import published_descent, published_deviation
from blurfit.baselines.local import local_descent
from blurfit.experiments.cells import Untuned, seeded
from blurfit.experiments.cohort import BLOCK, Cohort, Window
from blurfit.experiments.figures import DELTA, PaperFigure
from blurfit.experiments.methods import CONSTANT, INPUT, LINES, MOMENT, WAVES, Promise, squared_risk
from blurfit.experiments.trials import Row
from blurfit.simulation.entropy import Generator

LAPLACE_OBJECTIVE, FUNCTIONAL = "objective (Laplace)", "functional mechanism"
ADASSP, EXACT_ADASSP, GRADIENT = "AdaSSP", "AdaSSP (exact)", "gradient (modern accounting)"
PUBLISHED_GRADIENT, LOCAL = "gradient (published)", "local gradients"
FROM_ROWS = (PUBLISHED_GRADIENT, LOCAL)
MORE_LINES = (LAPLACE_OBJECTIVE, FUNCTIONAL, ADASSP, EXACT_ADASSP, GRADIENT)
FOR_NUMBERS = (ADASSP, EXACT_ADASSP)  # not for labels
PUBLISHED_STEPS = 2**15
TEST_ROWS = 2**16
TRIALS_AT_ONCE = 20


def more_weights(
    line: str,
    population: Cohort,
    window: Window,
    promise: Promise,
    *,
    label: bool,
    generator: Generator,
) -> FloatArray:
    """The weights of a rival that is not in the paper's figures."""
    terms: dict[str, Any] = {"epsilon": promise.epsilon}
    sums = population.training_sums(window)
    if line == FUNCTIONAL:
        family = FunctionalMechanismClassifier if label else FunctionalMechanismRegressor
        polynomial = LOGISTIC if label else SQUARED
        return family(**terms).from_sums(sums.statistics(label=label), polynomial, generator)
    risk = population.training_risk(window) if label else squared_risk(sums)
    rivals: tuple[Any, ...]
    if line == LAPLACE_OBJECTIVE:
        rivals = LaplaceObjectivePerturbationRegressor, LaplaceObjectivePerturbationClassifier
    else:
        terms["delta"] = promise.delta
        rivals = GradientPerturbationRegressor, GradientPerturbationClassifier
    if line in FOR_NUMBERS:
        rivals = (AdaSSPRegressor,)
        terms["accounting"] = "exact" if line == EXACT_ADASSP else "published"
    return np.asarray(rivals[label](**terms).release(risk, generator))


def weights_from_rows(
    line: str,
    population: Cohort,
    window: Window,
    promise: Promise,
    *,
    label: bool,
    runs: int,
    generator: Generator,
) -> FloatArray:
    """The weights of a rival that looks at single records: `runs` of them on the same window."""
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


def scored(population: Cohort, window: Window, weights: FloatArray, *, label: bool) -> list[float]:
    """RMSE or accuracy of each row of weights on the window's test rows."""
    if label:
        return [float(value) for value in population.accuracies(window, weights)]
    tested = population.test_sums(window)
    return [tested.rmse(one) for one in weights]


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
        problem, *numbers = cell.split(":")
        epsilon, n = float(numbers[0]), int(numbers[1])
        trials = range(int(numbers[2]), int(numbers[3]))
        label, promise = problem == "logistic", Promise(epsilon, DELTA)
        figure = PaperFigure(self.name, label, epsilon, (n,))
        more = [line for line in MORE_LINES if not (label and line in FOR_NUMBERS)]
        words = f"{self.name} {problem} {epsilon} {n}"  # without the trials: more begin like fewer
        rows = []
        for trial in trials:
            window = self._window(population, n, trial)
            values = figure.scores(population, window, [(line, None) for line in LINES], trial)
            weights = [
                more_weights(
                    line,
                    population,
                    window,
                    promise,
                    label=label,
                    generator=seeded(population.seed, f"{words} {line}", trial),
                )
                for line in more
            ]
            values += scored(population, window, np.array(weights), label=label)
            rows += [
                Row(line, problem, epsilon, n, trial, value)
                for line, value in zip([*LINES, *more], values, strict=True)
            ]
        if self.from_rows:
            window = self._window(population, n, trials.start)
            for line in FROM_ROWS:
                found = weights_from_rows(
                    line,
                    population,
                    window,
                    promise,
                    label=label,
                    runs=len(trials),
                    generator=seeded(population.seed, f"{words} {line}", trials.start),
                )
                values = scored(population, window, found, label=label)
                rows += [
                    Row(line, problem, epsilon, n, trial, value)
                    for trial, value in zip(trials, values, strict=True)
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
