"""Descend along noisy gradients.

**Accounting.** How much noise T noisy gradient steps need: privacy loss distributions instead of
bounds.

A step releases the sum of the gradients of a Poisson sample (each record with probability q) plus
N(0, (z·L)²I), where one record's gradient is at most L long. `dp-accounting` composes the exact
privacy loss distribution of T such steps, on a grid that is rounded to the safe side, and finds
the least noise.

With q = 1 nothing is sampled and T Gaussian steps are one: μ-GDP with μ = √T·Δ/σ, exactly. The
tests hold the two against each other.

**Gradient perturbation**: descend along noisy gradients.

Bassily, Smith and Thakurta 2014 descend in n² steps along single records' gradients, for neighbours
that replace one record. With today's accounting fewer and larger steps do better: T along the whole
gradient (or a Poisson sample's, `sampling_rate` < 1),

    w ← Π(w − (Σ∇ℓ + b_t)/(nλ)),   b_t ~ N(0, σ²I),   σ = z·Δ

with the least z, and the mean of the last half of the
iterates as the model. Without sampling Δ is what one person can change, and T Gaussians are one;
with sampling Δ = L/q, and a sample's gradient is divided by q, so that steps have the same mean.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import (
    InvalidValueError,
    NotCertifiedError,
    inside_unit_interval,
    positive,
    whole,
)
from blurfit.estimators.base import FitGuarantee
from blurfit.theory.gaussian import mu_of
from blurfit.theory.guarantees import Neighbours
from blurfit_lab.rivals.rival import (
    ApproximateRival,
    InBall,
    Risk,
    RivalClassifier,
)

_ROUNDING = 1 + 1e-6
_TOLERANCE = 1e-4  # of z, to the safe side
# Zeroing a record out is what its removal does to the sum that is released.
_RELATIONS: dict[Neighbours, str] = {"replace": "REPLACE_ONE", "zero-out": "ADD_OR_REMOVE_ONE"}


def _accountant(neighbours: Neighbours) -> Any:
    import dp_accounting as accounting  # type: ignore[import-untyped]
    from dp_accounting.pld import PLDAccountant  # type: ignore[import-untyped]

    return PLDAccountant(getattr(accounting.NeighboringRelation, _RELATIONS[neighbours]))


def _event(noise_multiplier: float, steps: int, sampling_rate: float) -> Any:
    import dp_accounting as accounting

    step = accounting.GaussianDpEvent(noise_multiplier)
    if sampling_rate < 1:
        step = accounting.PoissonSampledDpEvent(sampling_rate, step)
    return accounting.SelfComposedDpEvent(step, steps)


def delta_of_steps(
    noise_multiplier: float,
    epsilon: float,
    *,
    steps: int,
    sampling_rate: float,
    neighbours: Neighbours,
) -> float:
    """δ at ε of T steps with z = `noise_multiplier`, never too small."""
    accountant = _accountant(neighbours)
    accountant.compose(_event(noise_multiplier, steps, sampling_rate))
    return float(accountant.get_delta(epsilon))


@lru_cache(maxsize=256)
def least_noise_multiplier(
    epsilon: float, delta: float, *, steps: int, sampling_rate: float, neighbours: Neighbours
) -> float:
    """The least z that keeps (ε, δ) over T steps, to within 0.01% and on the safe side.

    Without sampling by the closed form, z = √T·Δ/μ(ε, δ), which is also enough with sampling.
    """
    positive(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    whole(steps=steps)
    distance = 2.0 if neighbours == "replace" else 1.0
    most = distance * math.sqrt(steps) / mu_of(epsilon, delta) * _ROUNDING
    if sampling_rate == 1:
        return most
    import dp_accounting as accounting

    try:
        found = accounting.calibrate_dp_mechanism(
            lambda: _accountant(neighbours),
            lambda z: _event(z, steps, sampling_rate),
            epsilon,
            delta,
            accounting.ExplicitBracketInterval(most * sampling_rate / 2, 2 * most),
            tol=_TOLERANCE * most * sampling_rate,
        )
    except (accounting.mechanism_calibration.NoBracketIntervalFoundError, ValueError) as error:
        raise NotCertifiedError(
            f"No noise was found that keeps epsilon={epsilon} and delta={delta} over "
            f"steps={steps}: the accountant cannot tell so small a delta."
        ) from error
    return float(found)


def into_balls(weights: FloatArray, radius: float) -> None:
    """Each row to the nearest point of the ball, in place."""
    norms = np.sqrt(np.einsum("kd,kd->k", weights, weights))
    weights *= (radius / np.maximum(norms, radius))[:, None]


def descend(
    risk: Risk,
    *,
    radius: float,
    deviation: float,
    steps: int,
    runs: int,
    generator: np.random.Generator,
    gradients: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """T noisy gradients, whole ones unless others are given, `runs` times at once: (runs, d)."""
    weights, mean = np.zeros((runs, risk.dimension)), np.zeros((runs, risk.dimension))
    rate = 1.0 / (risk.count * risk.curvature)
    for step in range(steps):
        noise = deviation * generator.standard_normal(weights.shape)
        weights = weights - rate * ((gradients or risk.gradients)(weights) + noise)
        into_balls(weights, radius)
        if step >= steps // 2:
            mean += weights / (steps - steps // 2)
    return mean


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbation(ApproximateRival):
    """Noisy gradient descent.

    Args:
        steps: T. More approach the minimum more closely; their noise together is the same.
        sampling_rate: the probability with which a step sees a record.
    """

    source = "Bassily, Smith and Thakurta 2014, noisy gradient descent"
    published_neighbours = "replace"
    wholes = ("steps",)

    steps: int = 512
    sampling_rate: float = 1.0

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP."""
        positive(sampling_rate=self.sampling_rate)
        if self.sampling_rate > 1:
            raise InvalidValueError(f"Expected sampling_rate={self.sampling_rate!r} <= 1.")
        return super().promise()

    def _radius(self, dimension: int, /) -> float:
        raise NotImplementedError  # pragma: no cover

    def deviation(self, risk: Risk, sampling_rate: float = 1.0) -> float:
        """σ of each step's noise."""
        neighbours: Neighbours = "zero-out" if sampling_rate == 1 else self.neighbours
        z = least_noise_multiplier(
            self.epsilon,
            self.delta,
            steps=self.steps,
            sampling_rate=sampling_rate,
            neighbours=neighbours,
        )
        if sampling_rate == 1:  # one Gaussian: only how far one person moves it matters
            return z * risk.gradient_change(self.neighbours)
        return z * risk.gradient_change("zero-out") / sampling_rate

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The descent along whole gradients, which a risk can tell."""
        return self._descended(risk, 1.0, generator, risk.gradients)

    def _descended(
        self,
        risk: Risk,
        sampling_rate: float,
        generator: np.random.Generator,
        gradients: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        (weights,) = descend(
            risk,
            radius=self._radius(risk.dimension),
            deviation=self.deviation(risk, sampling_rate),
            steps=self.steps,
            runs=1,
            generator=generator,
            gradients=gradients,
        )
        return np.asarray(weights)

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        risk = self._risk(x, y)
        if (q := self.sampling_rate) == 1:
            return self.release(risk, generator)

        def sampled(weights: FloatArray) -> FloatArray:
            chosen = generator.random(len(y)) < q
            if not chosen.any():
                return np.zeros_like(weights)
            return self._risk(x[chosen], y[chosen]).gradients(weights) / q

        return self._descended(risk, q, generator, sampled)


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbationRegressor(GradientPerturbation, InBall):
    """Least squares by noisy gradients; η is √m unless given."""

    def _radius(self, dimension: int, /) -> float:
        return float(self._ball(dimension) or 0.0)


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbationClassifier(GradientPerturbation, RivalClassifier):
    """Logistic regression by noisy gradients.

    Args:
        weight_bound: η, the ball that w is projected onto; None takes 4√m.
    """

    weight_bound: float | None = None

    def _radius(self, dimension: int, /) -> float:
        if self.weight_bound is None:
            return 4 * math.sqrt(dimension)
        positive(weight_bound=self.weight_bound)
        return self.weight_bound
