"""The lines of the paper's figures, and ours beside them, from one window's sums or rows.

Each takes a ridge (in all, not per record) or None for its public default. All keep the same
promise, (ε, δ) for neighbours that replace one record (or ε alone), except "input (published)",
whose promise is the paper's: for zeroing one out, and not proved.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.baselines import (
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
)
from blurfit.baselines.normals import exponential_in_norm, gaussian
from blurfit.baselines.output import forecast_ridge, into_ball, sensitivity
from blurfit.baselines.risk import LogisticRisk, SquaredRisk
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
)
from blurfit.experiments.cohort import Population, WindowSums
from blurfit.learning.learner import weights_of
from blurfit.learning.statistics import Statistics
from blurfit.simulation.entropy import Generator
from blurfit.simulation.sampler import clean_sums, sampler_for

FloatArray = npt.NDArray[np.float64]

NO_PRIVACY, CONSTANT = "no privacy", "constant"
OUTPUT, OBJECTIVE = "output (Laplace)", "objective (Gaussian, published)"
CERTIFIED_OBJECTIVE = "objective (Gaussian, certified)"
PUBLISHED_INPUT, INPUT, MOMENT = "input (published)", "input (certified)", "moment"
FROM_MINIMISERS = (NO_PRIVACY, OUTPUT, OBJECTIVE, CERTIFIED_OBJECTIVE)
FROM_SUMS = (PUBLISHED_INPUT, INPUT, MOMENT)
LINES = (CONSTANT, *FROM_MINIMISERS, *FROM_SUMS)
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
    line: str, population: Population, promise: Promise, n: int, *, label: bool, **terms: Any
) -> Agreement:
    """The contract of input or moment perturbation with an estimator's own defaults."""
    families: dict[tuple[bool, bool], type[Any]] = {
        (False, True): MomentPerturbationRegressor,
        (True, True): MomentPerturbationClassifier,
        (False, False): InputPerturbationRegressor,
        (True, False): InputPerturbationClassifier,
    }
    if line == PUBLISHED_INPUT:
        terms = {"rule": "published", **terms}
    family = families[label, line == MOMENT]
    estimator = family(epsilon=promise.epsilon, delta=promise.delta, **terms)
    contract: Agreement = estimator.agreement_for(
        population.label_schema if label else population.schema, n
    )
    return contract


def from_sums(
    contract: Agreement, sums: Statistics, ridge: float | None, generator: Generator
) -> FloatArray:
    """Blur the sums as the contract says, and minimise; `ridge` adds to what the line has itself.

    A ridge of input perturbation is its Ω = ½·ridge·‖w‖², which the theorem allows.
    """
    clean = clean_sums(contract.loss, sums.count, sums.gram, sums.moment)
    blurred = sampler_for(contract.calibration, clean).draw(generator)
    return weights_of(replace(contract, l2=contract.l2 + (ridge or 0.0)), blurred)


def constant(population: Population, sums: WindowSums, *, label: bool) -> FloatArray:
    """The weights whose score is the mean of y, or of the label: its sign is the commoner one."""
    weights = np.zeros(len(sums.moment))
    total = (sums.label_moment if label else sums.moment)[-1] / population.intercept
    weights[-1] = total / sums.count / population.intercept
    return weights


def perturbed(
    line: str,
    risk: SquaredRisk | LogisticRisk,
    promise: Promise,
    ridge: float | None,
    generator: Generator,
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


def minimised(risk: SquaredRisk | LogisticRisk, problems: list[Perturbed]) -> FloatArray:
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


def squared_risk(sums: WindowSums) -> SquaredRisk:
    """Least squares in the ball that rivals take by default: √m."""
    return SquaredRisk(sums.statistics(label=False), math.sqrt(len(sums.moment)))
