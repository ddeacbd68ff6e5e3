"""The paper's four figures, and the methods that are their lines.

**Methods.** The lines of the figures, and ours beside them, from one window's sums or rows. Each
takes a ridge (in all, not per record) or None for its public default. All keep the same
promise, (ε, δ) for neighbours that replace one record (or ε alone), except "input (published)",
whose promise is the paper's: for zeroing one out, and not proved.

**Figures.** Error against n for each method, tuned as in the paper, and not.

"With each method we found the best parameter for the largest size of training dataset, then used it
for other sizes": variant "tuned", which reads the test scores of private data and so is not
private. Variant "default" uses public defaults only.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import structs

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.data import FloatArray
from blurfit.estimators.mechanisms import DEFAULT_SPLIT, public_ball
from blurfit.model.release import moments_of
from blurfit.simulation.sampler import Generator, sampler_for, totals_of_products, weights_of
from blurfit.simulation.waves import fit_in_waves
from blurfit_lab.experiments.cohort import Cohort, Window, WindowSums
from blurfit_lab.experiments.runner import Row, seeded
from blurfit_lab.rivals import ObjectivePerturbationClassifier, ObjectivePerturbationRegressor
from blurfit_lab.rivals.perturbation import forecast_ridge, into_ball, sensitivity
from blurfit_lab.rivals.rival import LogisticRisk, Risk, SquaredRisk, exponential_in_norm, gaussian

NO_PRIVACY, CONSTANT = "no privacy", "constant"
OUTPUT, OBJECTIVE = "output (Laplace)", "objective (Gaussian, published)"
CERTIFIED_OBJECTIVE = "objective (Gaussian, certified)"
PUBLISHED_INPUT, INPUT, MOMENT = "input (published)", "input (certified)", "moment"
WAVES = "waves"
FROM_MINIMISERS = (NO_PRIVACY, OUTPUT, OBJECTIVE, CERTIFIED_OBJECTIVE)
FROM_SUMS = (PUBLISHED_INPUT, INPUT, MOMENT)
LINES = (CONSTANT, *FROM_MINIMISERS, *FROM_SUMS, WAVES)
TUNED = (*FROM_MINIMISERS, *FROM_SUMS)


@dataclass(frozen=True)
class Promise:
    """ε and δ, which all lines keep."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Perturbed:
    """A minimisation that a line asks for: its ridge and linear term, and noise to add after."""

    ridge: float
    linear: FloatArray
    after: FloatArray


def agreement(
    line: str, population: Cohort, promise: Promise, n: int, *, label: bool, **terms: Any
) -> Agreement:
    """The contract of input or moment perturbation with an estimator's own defaults."""
    schema = population.label_schema if label else population.schema
    given: dict[str, Any] = {"epsilon": promise.epsilon, "delta": promise.delta, "quorum": n}
    if line not in (MOMENT, WAVES):
        ball = public_ball(schema.dimension, n, promise.epsilon, promise.delta, label=label)
        given |= {"mechanism": "input", "weight_bound": ball}
        given |= {"rule": "published"} if line == PUBLISHED_INPUT else {"split": DEFAULT_SPLIT}
    return _proposed(schema, **(given | terms))


_proposed = lru_cache(maxsize=64)(Agreement.propose)  # trials repeat it, and it reads no data


def from_sums(
    contract: Agreement, sums: WindowSums, ridge: float | None, generator: Generator, *, label: bool
) -> FloatArray:
    """Blur the sums as the contract says, and learn: weights of x.

    Without a ridge, what would be published. A ridge of input perturbation is its Ω =
    ½·ridge·‖w‖², which the theorem allows; for joint moments it takes the place of shrinkage, and
    leaves the intercept free.
    """
    clean = totals_of_products(contract, sums.count, sums.products(label=label))
    drawn = sampler_for(contract, clean).draw(generator)
    if ridge is None:
        (weights,) = weights_of(contract, drawn)
    elif contract.objective is None:
        each = ridge / (sums.count * sums.scale**2)  # of a person, for weights of v
        (weights,) = moments_of(contract, drawn).fit(ridge=each).weights
    else:
        objective = structs.replace(contract.objective, l2=contract.objective.l2 + ridge)
        (weights,) = weights_of(replace(contract, objective=objective), drawn)
    return np.append(weights[1:], weights[0]) / sums.scale


def plan(population: Cohort, promise: Promise, n: int, *, label: bool) -> Plan:
    """As many waves as help by public facts, which may be one; everybody is honest here."""
    schema = population.label_schema if label else population.schema
    terms = {"epsilon": promise.epsilon, "delta": promise.delta, "quorum": n, "colluders": 0.0}
    return _planned(schema, **terms)


_planned = lru_cache(maxsize=64)(Plan.propose)


def in_waves(
    chosen: Plan, population: Cohort, window: Window, generator: Generator, *, label: bool
) -> FloatArray:
    """Go through the waves of a plan: weights of x, for the score or the log-odds."""
    values = population.training_values(window, label=label)
    (weights,) = fit_in_waves(chosen, values, generator).model.weights
    return np.append(weights[1:], weights[0]) / population.intercept


def constant(population: Cohort, sums: WindowSums, *, label: bool) -> FloatArray:
    """The weights whose score is the mean of y, or of the label: its sign is the commoner one."""
    weights = np.zeros(len(sums.moment))
    total = (sums.label_moment if label else sums.moment)[-1] / population.intercept
    weights[-1] = total / sums.count / population.intercept
    return weights


def perturbed(
    line: str, risk: Risk, promise: Promise, ridge: float | None, generator: Generator
) -> Perturbed:
    """What a line of `FROM_MINIMISERS` minimises, with its noise drawn."""
    nothing = np.zeros(risk.dimension)
    if line == NO_PRIVACY:
        return Perturbed(ridge or 0.0, nothing, nothing)
    if line == OUTPUT:
        chosen = forecast_ridge(risk, promise.epsilon, "replace") if ridge is None else ridge
        chosen = max(chosen, 1e-3)
        rate = promise.epsilon / sensitivity(risk, chosen, "replace")
        return Perturbed(chosen, nothing, exponential_in_norm(risk.dimension, rate, generator))
    label = isinstance(risk, LogisticRisk)
    family = ObjectivePerturbationClassifier if label else ObjectivePerturbationRegressor
    rule: Any = "certified" if line == CERTIFIED_OBJECTIVE else "published"
    found = family(
        epsilon=promise.epsilon, delta=promise.delta, ridge=ridge or 0.0, rule=rule
    ).perturbation(risk)
    noise = gaussian(risk.dimension, found.scale, generator)
    return Perturbed(found.ridge, noise, nothing)


def minimised(risk: Risk, problems: list[Perturbed]) -> FloatArray:
    """The weights of all of them, sharing the passes; what two ask for alike is done once."""
    if not problems:
        return np.zeros((0, risk.dimension))
    keys = [(problem.ridge, problem.linear.tobytes()) for problem in problems]
    first = dict(zip(keys, problems, strict=True))
    found = risk.minimisers(
        np.array([problem.ridge for problem in first.values()]),
        np.array([problem.linear for problem in first.values()]),
    )
    of = dict(zip(first, found, strict=True))
    return np.array(
        [
            into_ball(of[key] + problem.after, risk.weight_bound)
            for key, problem in zip(keys, problems, strict=True)
        ]
    )


def least_squares(sums: WindowSums) -> FloatArray:
    """The weights without privacy, for the number."""
    nothing = np.zeros(len(sums.moment))
    (weights,) = minimised(squared_risk(sums), [Perturbed(0.0, nothing, nothing)])
    return np.asarray(weights)


def squared_risk(sums: WindowSums) -> SquaredRisk:
    """Least squares in the ball that rivals take by default: √m."""
    return SquaredRisk(sums.statistics(label=False), math.sqrt(len(sums.moment)))


QUORUMS = tuple(2**k for k in range(7, 22, 2))
DELTA = 0.01
RIDGES = (0.0, 10.0, 100.0, 1e3, 1e4)
TUNING_TRIALS = 3
TRIALS_AT_ONCE = 5


@dataclass(frozen=True)
class PaperFigure:
    """One of the four: linear or logistic, at one ε."""

    name: str
    label: bool
    epsilon: float
    quorums: tuple[int, ...] = QUORUMS

    @property
    def promise(self) -> Promise:
        """(ε, δ), with the paper's δ."""
        return Promise(self.epsilon, DELTA)

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """First "tuning", which the others need, then n:first:last, the largest n first."""
        last = self._quorums(population)
        blocks = [
            f"{n}:{first}:{min(first + TRIALS_AT_ONCE, trials)}"
            for n in reversed(last)
            for first in range(0, trials, TRIALS_AT_ONCE)
        ]
        return ["tuning", *blocks]

    def compute(self, population: Cohort, cell: str, known: Mapping[str, list[Row]]) -> list[Row]:
        """The rows of one cell."""
        if cell == "tuning":
            return self._tune(population)
        ridges = {row.line: row.value for row in known["tuning"]}
        n, first, last = map(int, cell.split(":"))
        rows = []
        for trial in range(first, last):
            asked: list[tuple[str, float | None]] = [(line, None) for line in LINES]
            asked += [(line, ridges[line]) for line in TUNED]
            values = self.scores(population, population.window(n, trial), asked, trial)
            rows += [
                Row(line, "default" if ridge is None else "tuned", self.epsilon, n, trial, value)
                for (line, ridge), value in zip(asked, values, strict=True)
            ]
        return rows

    def scores(
        self,
        population: Cohort,
        window: Window,
        asked: Iterable[tuple[str, float | None]],
        trial: int,
    ) -> list[float]:
        """RMSE or accuracy of each (line, ridge) on the window's test rows."""
        asked, sums = list(asked), population.training_sums(window)
        risk = population.training_risk(window) if self.label else squared_risk(sums)
        problems, weights = {}, np.zeros((len(asked), len(sums.moment)))
        waves = plan(population, self.promise, window.count, label=self.label)
        one_wave = (MOMENT, None)
        for k, (line, ridge) in enumerate(asked):
            generator = self._generator(population, window, trial, line)
            if line == CONSTANT:
                weights[k] = constant(population, sums, label=self.label)
            elif line in FROM_MINIMISERS:
                problems[k] = perturbed(line, risk, self.promise, ridge, generator)
            elif line == WAVES and len(waves) > 1:
                weights[k] = in_waves(waves, population, window, generator, label=self.label)
            elif line == WAVES and one_wave in asked:  # moment itself, with its own noise
                weights[k] = weights[asked.index(one_wave)]
            else:
                contract = agreement(line, population, self.promise, window.count, label=self.label)
                weights[k] = from_sums(contract, sums, ridge, generator, label=self.label)
        weights[list(problems)] = minimised(risk, list(problems.values()))
        return population.scores(window, weights, label=self.label)

    def _tune(self, population: Cohort) -> list[Row]:
        """The best ridge of each line, on average over a few trials at the largest n."""
        n = max(self._quorums(population))
        asked = [(line, ridge) for line in TUNED for ridge in RIDGES]
        total = np.zeros(len(asked))
        for trial in range(TUNING_TRIALS):
            total += self.scores(population, population.window(n, trial), asked, trial)
        best: dict[str, tuple[float, float]] = {}
        for (line, ridge), score in zip(asked, total if self.label else -total, strict=True):
            if line not in best or score > best[line][0]:
                best[line] = (float(score), ridge)
        return [Row(line, "ridge", self.epsilon, n, 0, ridge) for line, (_, ridge) in best.items()]

    def _quorums(self, population: Cohort) -> list[int]:
        return [n for n in self.quorums if n <= 0.97 * len(population)]

    def _generator(self, population: Cohort, window: Window, trial: int, line: str) -> Generator:
        """One and the same for all ridges of a line, so that tuning compares ridges alone."""
        return seeded(population.seed, f"{self.name} {line}", window.count, trial)


FIGURES = (
    PaperFigure("fig1a", label=False, epsilon=0.1),
    PaperFigure("fig1b", label=False, epsilon=1.0),
    PaperFigure("fig2a", label=True, epsilon=0.1),
    PaperFigure("fig2b", label=True, epsilon=1.0),
)
assert set(FROM_SUMS) < set(TUNED)
