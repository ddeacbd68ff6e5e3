"""Experiments beyond the paper's figures.

**All methods.** All methods beside one another: over ε at one n, and over n for the goals that we
set ourselves.

Public defaults only; everyone under `replace`. The noisy methods that have to look at single
records run beside one another on the same window.

**The paper's claims.** What the paper does not show: its rate, its noise and its local ε, measured
or evaluated exactly.

* risk: the excess empirical risk J(w) − J(ŵ) of least squares against n, beside Theorem 2's 1/n.
* noise: σ_u and σ_b of the published and of the certified rule, from public facts alone.
* local: a submission's exact ε against Corollary 1's, which is for ε < 1 only.
* target: the error if a submission, too, must keep ε_l, with and without debiasing.

**Probabilities.** Can probabilities be believed? Of all to whom a model gives 70 %, seven in ten
should be +1.

Predicted probabilities are put into 15 bins of equal width. A bin's row of the CSV has the variant
"predicted 07", "observed 07" or "weight 07": the mean probability in it, the share of +1 among its
test rows, and the share of the test rows that it holds. "error" is the expected calibration error,
Σ weight·|observed − predicted|. The shares of a fit without privacy are off, too: by the sampling
of test rows, and because no curve is the truth.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.estimators.mechanisms import DEFAULT_SPLIT, public_ball
from blurfit.simulation.sampler import Generator
from blurfit.theory.gaussian import mu_of
from blurfit.theory.input_calibration import calibrate
from blurfit.theory.moments import Reach, calibrate_moment, sensitivity
from blurfit.theory.planning import public_weights
from blurfit_lab.experiments.cohort import BLOCK, Cohort, Window
from blurfit_lab.experiments.figures import (
    CONSTANT,
    DELTA,
    INPUT,
    LINES,
    MOMENT,
    NO_PRIVACY,
    OBJECTIVE,
    PUBLISHED_INPUT,
    QUORUMS,
    WAVES,
    PaperFigure,
    Promise,
    agreement,
    from_sums,
    in_waves,
    least_squares,
    minimised,
    perturbed,
    plan,
    squared_risk,
)
from blurfit_lab.experiments.runner import Row, SweepCell, Untuned, cell_names, seeded
from blurfit_lab.rivals import (
    AdaSSPRegressor,
    FunctionalMechanismClassifier,
    FunctionalMechanismRegressor,
    GradientPerturbationClassifier,
    GradientPerturbationRegressor,
    LaplaceObjectivePerturbationClassifier,
    LaplaceObjectivePerturbationRegressor,
)
from blurfit_lab.rivals.gradient import (
    local_descent,
    logistic_slope,
    published_descent,
    published_deviation,
    squared_slope,
)
from blurfit_lab.rivals.noisy_sums import LOGISTIC, SQUARED
from blurfit_lab.rivals.rival import Risk

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


EPSILONS = (0.1, 1.0)
LOCAL_TARGETS = (1.0, 2.0, 4.0, 8.0, 16.0)
DEBIASED, BIASED = "input, debiased", "input, not debiased"


@dataclass(frozen=True)
class ExcessRisk(Untuned):
    """Mean of ½(y − w·x)² over the training rows, above its least value."""

    name: str = "risk"
    quorums: tuple[int, ...] = QUORUMS

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """ε:n:trials."""
        return cell_names(population, EPSILONS, self.quorums, trials)

    def rows(self, population: Cohort, cell: str) -> list[Row]:
        """From the sums alone."""
        epsilon, n, trials = SweepCell.read(cell)
        promise, rows = Promise(epsilon, DELTA), []
        for trial in range(trials):
            window = population.window(n, trial)
            sums = population.training_sums(window)
            least = sums.mean_squared_error(least_squares(sums)) / 2
            for line in (OBJECTIVE, PUBLISHED_INPUT, INPUT, MOMENT, GRADIENT):
                drawn = seeded(population.seed, f"{cell} {line}", trial)
                if line == OBJECTIVE:
                    risk = squared_risk(sums)
                    (weights,) = minimised(risk, [perturbed(line, risk, promise, None, drawn)])
                elif line == GRADIENT:
                    problem = Problem(population, window, promise, label=False)
                    weights = more_weights(line, problem, drawn)
                else:
                    contract = agreement(line, population, promise, n, label=False)
                    weights = from_sums(contract, sums, None, drawn, label=False)
                excess = sums.mean_squared_error(weights) / 2 - least
                rows.append(Row(line, "", epsilon, n, trial, excess))
        return rows


@dataclass(frozen=True)
class PublicNumbers(Untuned):
    """Noise and local ε as calibrated for d = 14, R_q = R_p = η = 1 (input), and for 13 numbers and
    their target (moment): no data.
    """

    name: str
    quorums: tuple[int, ...] = QUORUMS

    def cells(self, population: Cohort, trials: int) -> list[str]:  # noqa: ARG002
        """One."""
        return ["all"]

    def rows(self, population: Cohort, cell: str) -> list[Row]:  # noqa: ARG002
        """For each ε and n of the paper."""
        rows = []
        for epsilon in EPSILONS:
            for n in self.quorums:
                common: dict[str, Any] = {"dimension": 14, "quorum": n, "weight_bound": 1.0}
                for line, terms in (
                    (PUBLISHED_INPUT, {"rule": "published"}),
                    (INPUT, {"split": DEFAULT_SPLIT}),
                ):
                    found = calibrate(epsilon, DELTA, q_bound=1.0, p_bound=1.0, **common, **terms)
                    values = {"exact local epsilon": found.local.epsilon}
                    values |= {"sigma_u": found.sigma_u, "sigma_b": found.sigma_b}
                    if found.local_claim is not None:
                        values["Corollary 1"] = found.local_claim.epsilon
                    rows += [Row(line, name, epsilon, n, 0, v) for name, v in values.items()]
                weights = public_weights(["numeric"] * 13, n, mu_of(epsilon, DELTA))
                reach = sensitivity(weights.constant, 1.0)
                joint = calibrate_moment(epsilon, DELTA, reach=Reach(reach, reach), quorum=n)
                values = {"exact local epsilon": joint.local.epsilon, "sigma": joint.sigma}
                rows += [Row(MOMENT, name, epsilon, n, 0, v) for name, v in values.items()]
        return rows


@dataclass(frozen=True)
class LocalTarget(Untuned):
    """RMSE at model ε = 1 if each submission keeps (ε_l, δ) too."""

    name: str = "target"
    quorums: tuple[int, ...] = (2**15, 2**17, 2**19, 2**21)

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """ε_l:n:trials."""
        return cell_names(population, LOCAL_TARGETS, self.quorums, trials)

    def rows(self, population: Cohort, cell: str) -> list[Row]:
        """Input with and without debiasing, moment, and no privacy at all."""
        target, n, trials = SweepCell.read(cell)
        d = population.schema.dimension
        ball = public_ball(d, n, 1.0, DELTA, label=False)
        contracts = {
            line: Agreement.propose(
                population.schema,
                epsilon=1.0,
                delta=DELTA,
                quorum=n,
                local_epsilon=target,
                local_delta=DELTA,
                mechanism="moment" if line == MOMENT else "input",
                weight_bound=None if line == MOMENT else ball,
                debias=line != BIASED,
            )
            for line in (DEBIASED, BIASED, MOMENT)
        }
        rows = []
        for trial in range(trials):
            window = population.window(n, trial)
            sums, tested = population.training_sums(window), population.test_sums(window)
            plain = tested.rmse(least_squares(sums))
            rows.append(Row(NO_PRIVACY, f"{target:g}", 1.0, n, trial, plain))
            for line, contract in contracts.items():
                drawn = seeded(population.seed, f"{cell} {line}", trial)
                weights = from_sums(contract, sums, None, drawn, label=False)
                rows.append(Row(line, f"{target:g}", 1.0, n, trial, tested.rmse(weights)))
        return rows


BINS = 15
PREDICTED, OBSERVED, WEIGHT, ERROR = "predicted", "observed", "weight", "error"


@dataclass(frozen=True, eq=False)
class Bins:
    """Of the bins that are not empty: their places, mean probabilities, shares of +1, weights."""

    places: npt.NDArray[np.int64]
    predicted: FloatArray
    observed: FloatArray
    weight: FloatArray

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return float(self.weight @ np.abs(self.observed - self.predicted))


def binned(probability: FloatArray, label: FloatArray) -> Bins:
    """Put probabilities of +1 into bins of equal width.

    >>> found = binned(np.array([0.1, 0.1, 0.9, 0.9]), np.array([-1.0, 1.0, 1.0, 1.0]))
    >>> found.observed.tolist(), round(found.error, 3)
    ([0.5, 1.0], 0.25)
    """
    places = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(places, minlength=BINS)
    held = np.flatnonzero(counts)
    predicted, observed = (
        np.bincount(places, weights=values, minlength=BINS)[held] / counts[held]
        for values in (probability, label > 0)
    )
    return Bins(held, predicted, observed, counts[held] / len(label))


@dataclass(frozen=True)
class Reliability(Untuned):
    """Waves, one wave and no privacy, in cells of one ε and n each."""

    name: str = "reliability"
    epsilons: tuple[float, ...] = (0.1, 1.0)
    quorums: tuple[int, ...] = (2**13, 2**15, 2**17)

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """ε:n:trials."""
        return cell_names(population, self.epsilons, self.quorums, trials, largest_share=0.75)

    def rows(self, population: Cohort, cell: str) -> list[Row]:
        """The bins of each line in each trial, and its calibration error."""
        epsilon, n, trials = SweepCell.read(cell)
        rows = []
        for trial in range(trials):
            for line in (NO_PRIVACY, MOMENT, WAVES):
                generator = seeded(population.seed, f"{self.name} {epsilon} {n} {line}", trial)
                found = self._bins(population, line, Promise(epsilon, DELTA), n, trial, generator)
                values = {
                    f"{word} {place:02d}": value
                    for word, column in (
                        (PREDICTED, found.predicted),
                        (OBSERVED, found.observed),
                        (WEIGHT, found.weight),
                    )
                    for place, value in zip(found.places, column, strict=True)
                }
                rows += [
                    Row(line, variant, epsilon, n, trial, float(value))
                    for variant, value in {**values, ERROR: found.error}.items()
                ]
        return rows

    def _bins(
        self,
        population: Cohort,
        line: str,
        promise: Promise,
        n: int,
        trial: int,
        generator: Generator,
    ) -> Bins:
        tested = min(2**16, (len(population) - n) // BLOCK * BLOCK)
        window = replace(population.window(n, trial), tested=tested)
        if line == NO_PRIVACY:
            risk = population.training_risk(window)
            (weights,) = minimised(risk, [perturbed(line, risk, promise, None, generator)])
        elif line == WAVES and len(waves := plan(population, promise, n, label=True)) > 1:
            weights = in_waves(waves, population, window, generator, label=True)
        else:
            contract = agreement(line, population, promise, n, label=True)
            sums = population.training_sums(window)
            weights = from_sums(contract, sums, None, generator, label=True)
        is_line = line == MOMENT or (line == WAVES and len(waves) == 1)
        parts = population.test_rows(window)
        score = np.concatenate([x @ weights for x, _ in parts])
        label = np.concatenate([one for _, one in parts])
        return binned(np.clip((score + 1) / 2, 0, 1) if is_line else expit(score), label)
