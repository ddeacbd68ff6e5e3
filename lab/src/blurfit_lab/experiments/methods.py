"""The lines of the paper's figures, and ours beside them, from one window's sums or rows.

Each takes a ridge (in all, not per record) or None for its public default. All keep the same
promise, (ε, δ) for neighbours that replace one record (or ε alone), except "input (published)",
whose promise is the paper's: for zeroing one out, and not proved.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.arrays import FloatArray
from blurfit.estimators.defaults import DEFAULT_SPLIT, public_ball
from blurfit.model.learner import moments_of
from blurfit.simulation.entropy import Generator
from blurfit.simulation.sampler import sampler_for, totals_of_products
from blurfit.simulation.weights import weights_of
from blurfit.simulation.whole_plan import fit_in_waves
from blurfit_lab.experiments.cohort import Cohort, Window, WindowSums
from blurfit_lab.rivals import ObjectivePerturbationClassifier, ObjectivePerturbationRegressor
from blurfit_lab.rivals.normals import exponential_in_norm, gaussian
from blurfit_lab.rivals.output import forecast_ridge, into_ball, sensitivity
from blurfit_lab.rivals.risk import LogisticRisk, Risk, SquaredRisk

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
        objective = replace(contract.objective, l2=contract.objective.l2 + ridge)
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
