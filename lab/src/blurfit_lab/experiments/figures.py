"""The paper's four figures, what it claims and does not show, and the methods that are their lines.

Methods are the lines of the figures, and ours beside them, from one window's sums or rows. Each
takes a ridge (in all, not per record) or None for its public default. All keep the same promise, ε
and δ = 0.01 for neighbours that replace one record (or ε alone), except "input (published)", whose
promise is the paper's: for zeroing one out, and not proved. What is measured, and what *tuned* and
*default* mean, says `paper.md.in`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.data import FloatArray
from blurfit.input_perturbation.algorithms import Sums, blur_sums, solve
from blurfit.input_perturbation.calibration import PublicInput, calibrate
from blurfit.input_perturbation.estimators import DEFAULT_SPLIT, public_ball
from blurfit.input_perturbation.losses import LogisticLoss, SquaredLoss
from blurfit.model.release import moments_of
from blurfit.schema.schema import Schema
from blurfit.simulation import Generator, fit_in_waves, sampler_for, totals_of_products, weights_of
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import Reach, calibrate_moment, sensitivity
from blurfit.theory.planning import public_weights
from blurfit_lab import rivals
from blurfit_lab.experiments.cohort import Cohort, Window, WindowSums
from blurfit_lab.experiments.runner import Row, seeded
from blurfit_lab.rivals.perturbation import Minimising, Perturbed, forecast_ridge
from blurfit_lab.rivals.rival import LogisticRisk, Risk, SquaredRisk, into_ball

NO_PRIVACY, CONSTANT = "no privacy", "constant"
OUTPUT, OBJECTIVE = "output (Laplace)", "objective (Gaussian, published)"
CERTIFIED_OBJECTIVE = "objective (Gaussian, certified)"
PUBLISHED_INPUT, INPUT, MOMENT = "input (published)", "input (certified)", "moment"
WAVES = "waves"
FROM_MINIMISERS = (NO_PRIVACY, OUTPUT, OBJECTIVE, CERTIFIED_OBJECTIVE)
FROM_SUMS = (PUBLISHED_INPUT, INPUT, MOMENT)
LINES = (CONSTANT, *FROM_MINIMISERS, *FROM_SUMS, WAVES)
TUNED = (*FROM_MINIMISERS, *FROM_SUMS)
GRADIENT = "gradient (modern accounting)"
DEBIASED, BIASED = "input, debiased", "input, not debiased"

QUORUMS = tuple(2**k for k in range(7, 22, 2))
EPSILONS = (0.1, 1.0)
LOCAL_TARGETS = (1.0, 2.0, 4.0, 8.0, 16.0)
DELTA = 0.01
RIDGES = (0.0, 10.0, 100.0, 1e3, 1e4)
TUNING_TRIALS = 3
TRIALS_AT_ONCE = 5
Asked = tuple[str, float | None]  # a line, and its ridge


# ---- methods


Contract = Agreement | PublicInput


def agreement(
    line: str, population: Cohort, epsilon: float, n: int, *, label: bool = False
) -> Contract:
    """The contract of input or moment perturbation with an estimator's own defaults."""
    schema = population.label_schema if label else population.schema
    given: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "quorum": n}
    if line in (MOMENT, WAVES):
        return _proposed(schema, **given)
    how = {"rule": "published"} if line == PUBLISHED_INPUT else {"split": DEFAULT_SPLIT}
    return public_input(schema, **given, **how)


def public_input(schema: Schema, *, epsilon: float, quorum: int, **given: Any) -> PublicInput:
    """The public input of the paper's algorithms, in the estimators' own ball."""
    d, label = schema.dimension, schema.is_label
    return PublicInput.agree(
        LogisticLoss() if label else SquaredLoss(),
        dimension=d,
        quorum=quorum,
        epsilon=epsilon,
        weight_bound=public_ball(d, quorum, epsilon, DELTA, label=label),
        **given,
    )


_proposed = lru_cache(maxsize=64)(Agreement.propose)  # trials repeat it, and it reads no data
_planned = lru_cache(maxsize=64)(Plan.propose)


def from_sums(
    contract: Contract, sums: WindowSums, ridge: float | None, generator: Generator
) -> FloatArray:
    """Blur the sums as the contract says, and learn: weights of x.

    Without a ridge, what would be published. A ridge of input perturbation is its Ω =
    ½·ridge·‖w‖², which the theorem allows; for joint moments it takes the place of shrinkage, and
    leaves the intercept free.
    """
    if isinstance(contract, PublicInput):
        return _by_input(contract, sums, ridge or 0.0, generator)
    clean = totals_of_products(contract, sums.count, sums.products())
    drawn = sampler_for(contract, clean).draw(generator)
    if ridge is None:
        (weights,) = weights_of(contract, drawn)
    else:
        each = ridge / (sums.count * sums.scale**2)  # of a person, for weights of v
        (weights,) = moments_of(contract, drawn).fit(ridge=each).weights
    return np.append(weights[1:], weights[0]) / sums.scale


def _by_input(
    public: PublicInput, sums: WindowSums, ridge: float, generator: Generator
) -> FloatArray:
    """Algorithms 1 and 2 of the paper: q = R_q·x and p = R_p·yx for both losses."""
    loss = public.loss
    clean = Sums(sums.count, loss.q_bound**2 * sums.gram, loss.p_bound * sums.moment)
    weights = solve(replace(public, l2=ridge), blur_sums(public, clean, generator))
    if isinstance(loss, LogisticLoss):  # the quadratic is least squares in disguise
        weights = 2 * loss.parabola.curvature * weights
    return weights


def constant(population: Cohort, sums: WindowSums) -> FloatArray:
    """The weights whose score is the mean of y, or of the label: its sign is the commoner one."""
    weights = np.zeros(len(sums.moment))
    weights[-1] = sums.moment[-1] / sums.count / population.intercept**2
    return weights


def perturbed(
    line: str, risk: Risk, epsilon: float, ridge: float | None, generator: Generator
) -> Perturbed:
    """What a line of `FROM_MINIMISERS` minimises, with its noise drawn."""
    family = "Classifier" if isinstance(risk, LogisticRisk) else "Regressor"
    terms: dict[str, Any] = {"ridge": ridge or 0.0}
    if line == OUTPUT:
        chosen = forecast_ridge(risk, epsilon, "replace") if ridge is None else ridge
        terms = {"ridge": max(chosen, 1e-3), "epsilon": epsilon}
    elif line != NO_PRIVACY:
        rule = "certified" if line == CERTIFIED_OBJECTIVE else "published"
        terms |= {"epsilon": epsilon, "delta": DELTA, "rule": rule}
    name = {NO_PRIVACY: "NonPrivate", OUTPUT: "OutputPerturbation"}
    rival: Minimising = getattr(rivals, name.get(line, "ObjectivePerturbation") + family)(**terms)
    return rival.perturbed(risk, generator)


def minimised(risk: Risk, problems: Sequence[Perturbed]) -> FloatArray:
    """The weights of all of them; what two ask for alike is done once."""
    keys = [(one.ridge, np.asarray(one.linear).tobytes()) for one in problems]
    first = dict(zip(keys, problems, strict=True))
    found = {key: risk.minimiser(one.ridge, one.linear) for key, one in first.items()}
    weights = [found[key] + one.after for key, one in zip(keys, problems, strict=True)]
    return into_ball(np.array(weights), risk.weight_bound)


def squared_risk(sums: WindowSums) -> SquaredRisk:
    """Least squares in the ball that rivals take by default: √m."""
    return SquaredRisk(sums, math.sqrt(len(sums.moment)))


# ---- figures


def within(population: Cohort, quorums: Iterable[int]) -> list[int]:
    """Those n that leave 3 % of the population to test on."""
    return [n for n in quorums if n <= 0.97 * len(population)]


@dataclass(frozen=True)
class PaperFigure:
    """One of the four: linear or logistic, at one ε."""

    name: str
    label: bool
    epsilon: float
    quorums: tuple[int, ...] = QUORUMS

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """First "tuning", which the others need, then n:first:last, the largest n first."""
        blocks = [
            f"{n}:{first}:{min(first + TRIALS_AT_ONCE, trials)}"
            for n in reversed(within(population, self.quorums))
            for first in range(0, trials, TRIALS_AT_ONCE)
        ]
        return ["tuning", *blocks]

    def compute(self, population: Cohort, cell: str, known: Mapping[str, list[Row]]) -> list[Row]:
        """The rows of one cell."""
        if cell == "tuning":
            return self._tune(population)
        ridges = {row.line: row.value for row in known["tuning"]}
        n, first, last = map(int, cell.split(":"))
        asked: list[Asked] = [(line, None) for line in LINES]
        asked += [(line, ridges[line]) for line in TUNED]
        rows = []
        for trial in range(first, last):
            values = self.scores(population, population.window(n, trial), asked)
            rows += [
                Row(line, "default" if ridge is None else "tuned", self.epsilon, n, trial, value)
                for (line, ridge), value in zip(asked, values, strict=True)
            ]
        return rows

    def scores(self, population: Cohort, window: Window, asked: Sequence[Asked]) -> list[float]:
        """RMSE or accuracy of each (line, ridge) on the window's test rows.

        All ridges of a line have the same noise, so that tuning compares ridges alone. Waves are as
        many as help by public facts, everybody being honest here; one wave is moment itself.
        """
        sums, n = population.training_sums(window, label=self.label), window.count
        risk = population.training_risk(window) if self.label else squared_risk(sums)
        problems, weights = {}, np.zeros((len(asked), len(sums.moment)))
        schema = population.label_schema if self.label else population.schema
        terms = {"epsilon": self.epsilon, "delta": DELTA, "quorum": n, "colluders": 0.0}
        waves, one_wave = _planned(schema, **terms), (MOMENT, None)
        for k, (line, ridge) in enumerate(asked):
            generator = seeded(population.seed, f"{self.name} {line}", n, window.trial)
            if line == CONSTANT:
                weights[k] = constant(population, sums)
            elif line in FROM_MINIMISERS:
                problems[k] = perturbed(line, risk, self.epsilon, ridge, generator)
            elif line == WAVES and len(waves) > 1:
                values = population.training_values(window, label=self.label)
                (found,) = fit_in_waves(waves, values, generator).model.weights
                weights[k] = np.append(found[1:], found[0]) / population.intercept
            elif line == WAVES and one_wave in asked:  # with its own noise
                weights[k] = weights[asked.index(one_wave)]
            else:
                contract = agreement(line, population, self.epsilon, n, label=self.label)
                weights[k] = from_sums(contract, sums, ridge, generator)
        if problems:
            weights[list(problems)] = minimised(risk, list(problems.values()))
        return population.scores(window, weights, label=self.label)

    def _tune(self, population: Cohort) -> list[Row]:
        """The best ridge of each line, on average over a few trials at the largest n."""
        n = max(within(population, self.quorums))
        asked = [(line, ridge) for line in TUNED for ridge in RIDGES]
        total = np.zeros(len(asked))
        for trial in range(TUNING_TRIALS):
            total += self.scores(population, population.window(n, trial), asked)
        scores = (total if self.label else -total).reshape(len(TUNED), len(RIDGES))
        best = scores.argmax(axis=1)
        return [
            Row(line, "ridge", self.epsilon, n, 0, RIDGES[k])
            for line, k in zip(TUNED, best, strict=True)
        ]


FIGURES = (
    PaperFigure("fig1a", label=False, epsilon=0.1),
    PaperFigure("fig1b", label=False, epsilon=1.0),
    PaperFigure("fig2a", label=True, epsilon=0.1),
    PaperFigure("fig2b", label=True, epsilon=1.0),
)


# ---- claims


class _Claim:
    """Cells are number:n:trials."""

    quorums: tuple[int, ...]
    numbers: tuple[float, ...]

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """Every number, of every n that the population has people for."""
        sizes = within(population, self.quorums)
        return [f"{number}:{n}:{trials}" for number in self.numbers for n in sizes]

    def compute(self, population: Cohort, cell: str, known: Any) -> list[Row]:  # noqa: ARG002
        """Return the rows of one cell."""
        number, n, trials = cell.split(":")
        windows = (population.window(int(n), trial) for trial in range(int(trials)))
        return [row for one in windows for row in self._rows(population, cell, float(number), one)]

    def _rows(self, population: Cohort, cell: str, number: float, window: Window) -> Iterator[Row]:
        raise NotImplementedError  # pragma: no cover


@dataclass(frozen=True)
class ExcessRisk(_Claim):
    """Mean of ½(y − w·x)² over the training rows, above its least value."""

    name: str = "risk"
    quorums: tuple[int, ...] = QUORUMS
    numbers: tuple[float, ...] = EPSILONS

    def _rows(self, population: Cohort, cell: str, number: float, window: Window) -> Iterator[Row]:
        sums = population.training_sums(window)
        risk = squared_risk(sums)
        least = sums.mean_squared_error(risk.minimiser(0.0)) / 2
        for line in (OBJECTIVE, PUBLISHED_INPUT, INPUT, MOMENT, GRADIENT):
            drawn = seeded(population.seed, f"{cell} {line}", window.trial)
            if line == OBJECTIVE:
                (weights,) = minimised(risk, [perturbed(line, risk, number, None, drawn)])
            elif line == GRADIENT:
                rival = rivals.GradientPerturbationRegressor(epsilon=number, delta=DELTA)
                weights = rival.release(risk, drawn)
            else:
                contract = agreement(line, population, number, window.count)
                weights = from_sums(contract, sums, None, drawn)
            excess = sums.mean_squared_error(weights) / 2 - least
            yield Row(line, "", number, window.count, window.trial, excess)


@dataclass(frozen=True)
class PublicNumbers:
    """Noise and local ε as calibrated for d = 14, R_q = R_p = η = 1 (input), and for 13 numbers and
    their target (moment): no data.
    """

    name: str = "noise"
    quorums: tuple[int, ...] = QUORUMS

    def cells(self, population: Cohort, trials: int) -> list[str]:  # noqa: ARG002
        """One."""
        return ["all"]

    def compute(self, population: Cohort, cell: str, known: Any) -> list[Row]:  # noqa: ARG002
        """For each ε and n of the paper."""
        return [
            Row(line, name, epsilon, n, 0, value)
            for epsilon, n in product(EPSILONS, self.quorums)
            for line, told in _calibrated(epsilon, n).items()
            for name, value in told.items()
        ]


def _calibrated(epsilon: float, n: int) -> dict[str, dict[str, float]]:
    common: dict[str, Any] = {"dimension": 14, "quorum": n, "weight_bound": 1.0}
    common |= {"q_bound": 1.0, "p_bound": 1.0}
    told = {}
    for line, terms in (
        (PUBLISHED_INPUT, {"rule": "published"}),
        (INPUT, {"split": DEFAULT_SPLIT}),
    ):
        found = calibrate(epsilon, DELTA, **common, **terms)
        told[line] = {"exact local epsilon": found.local.epsilon}
        told[line] |= {"sigma_u": found.sigma_u, "sigma_b": found.sigma_b}
        told[line]["certified excess risk"] = found.excess_risk
        if found.local_claim is not None:
            told[line]["Corollary 1"] = found.local_claim.epsilon
    weights = public_weights(["numeric"] * 13, n, mu_of(epsilon, DELTA))
    reach = sensitivity(weights.constant, 1.0)
    joint = calibrate_moment(epsilon, DELTA, reach=Reach(reach, reach), quorum=n)
    told[MOMENT] = {"exact local epsilon": joint.local.epsilon, "sigma": joint.sigma}
    return told


@dataclass(frozen=True)
class LocalTarget(_Claim):
    """RMSE at model ε = 1 if each submission keeps (ε_l, δ) too: input with and without debiasing,
    moment, and no privacy at all.
    """

    name: str = "target"
    quorums: tuple[int, ...] = (2**15, 2**17, 2**19, 2**21)
    numbers: tuple[float, ...] = LOCAL_TARGETS

    def _rows(self, population: Cohort, cell: str, number: float, window: Window) -> Iterator[Row]:
        sums, tested = population.training_sums(window), population.test_sums(window)
        n, trial, best = window.count, window.trial, squared_risk(sums).minimiser(0.0)
        yield Row(NO_PRIVACY, f"{number:g}", 1.0, n, trial, tested.rmse(best))
        terms: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "quorum": n}
        terms |= {"local_epsilon": number, "local_delta": DELTA}
        for line in (DEBIASED, BIASED, MOMENT):
            contract: Contract
            if line == MOMENT:
                contract = _proposed(population.schema, **terms)
            else:
                contract = public_input(population.schema, **terms, debias=line == DEBIASED)
            drawn = seeded(population.seed, f"{cell} {line}", trial)
            found = tested.rmse(from_sums(contract, sums, None, drawn))
            yield Row(line, f"{number:g}", 1.0, n, trial, found)
