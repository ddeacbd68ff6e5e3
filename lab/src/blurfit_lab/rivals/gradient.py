"""Gradient perturbation: descend along noisy gradients.

**published**: Bassily, Smith and Thakurta 2014, Algorithm 1, for neighbours that replace one
record. T = n² steps, each along the gradient of one record drawn at random, n times enlarged,
plus noise:

    w ← Π(w − η_t·(n·∇ℓ(w; x_i, y_i) + b_t)),   b_t ~ N(0, σ²I),   σ² = 32L²n²·ln(n/δ)·ln(1/δ)/ε²
    η_t = 2η/√(t·(n²L² + dσ²)),   L ≥ ‖∇ℓ‖

n² steps are out of reach for most n. `most_steps` cuts them: fewer steps tell less, so the promise
stands, and the noise, which is for n² steps, stays as printed. Their theorem needs ε ≤ 2√(ln(1/δ)),
beyond which it is refused.

**modern**: T steps along the whole gradient (or a Poisson sample's, `sampling_rate` < 1),

    w ← Π(w − (Σ∇ℓ + b_t)/(nλ)),   b_t ~ N(0, σ²I),   σ = z·Δ

with the least z that `blurfit_lab.rivals.accounting` allows, and the mean of the last half of the
iterates as the model. Without sampling Δ is what one person can change, and T Gaussians are one;
with sampling Δ = L/q, and a sample's gradient is divided by q, so that steps have the same mean.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.estimators.guarantee import FitGuarantee
from blurfit.theory.guarantees import Neighbours
from blurfit.validate import positive
from blurfit_lab.rivals.accounting import least_noise_multiplier
from blurfit_lab.rivals.descent import (
    Descent,
    DescentClassifier,
    DescentRegressor,
    Slope,
    into_balls,
)
from blurfit_lab.rivals.risk import Risk
from blurfit_lab.rivals.rival import ApproximateRival

Accounting = Literal["published", "modern"]
ACCOUNTINGS: tuple[Accounting, ...] = ("published", "modern")
STEPS_AT_ONCE = 4096  # whose noise is drawn in one go


def published_deviation(epsilon: float, delta: float, *, count: int, lipschitz: float) -> float:
    """σ = L·n·√(32·ln(n/δ)·ln(1/δ))/ε."""
    factor = 32 * math.log(count / delta) * math.log(1 / delta)
    return lipschitz * count * math.sqrt(factor) / epsilon


def published_descent(
    x: FloatArray,
    y: FloatArray,
    slope: Slope,
    *,
    radius: float,
    lipschitz: float,
    deviation: float,
    steps: int,
    runs: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Bassily, Smith and Thakurta's Algorithm 1, `runs` times beside one another: (runs, d)."""
    n, d = x.shape
    weights = np.zeros((runs, d))
    rate = 2 * radius / math.sqrt((n * lipschitz) ** 2 + d * deviation**2)
    for first in range(0, steps, STEPS_AT_ONCE):
        count = min(STEPS_AT_ONCE, steps - first)
        chosen = generator.integers(0, n, (count, runs))
        noise = deviation * generator.standard_normal((count, runs, d))
        for t in range(count):
            rows = x[chosen[t]]
            z = np.einsum("kd,kd->k", rows, weights)
            gradient = (n * slope(z, y[chosen[t]]))[:, None] * rows + noise[t]
            weights -= rate / math.sqrt(first + t + 1) * gradient
            into_balls(weights, radius)
    return weights


def modern_descent(
    risk: Risk,
    *,
    radius: float,
    deviation: float,
    steps: int,
    runs: int,
    generator: np.random.Generator,
) -> FloatArray:
    """T whole noisy gradients, `runs` times beside one another: (runs, d)."""
    weights, mean = np.zeros((runs, risk.dimension)), np.zeros((runs, risk.dimension))
    rate = 1.0 / (risk.count * risk.curvature)
    for step in range(steps):
        noise = deviation * generator.standard_normal(weights.shape)
        weights = weights - rate * (risk.gradients(weights) + noise)
        into_balls(weights, radius)
        if step >= steps // 2:
            mean += weights / (steps - steps // 2)
    return mean


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbation(Descent, ApproximateRival):
    """Noisy gradient descent.

    Args:
        accounting: "published", or "modern" for the least noise that is known to do.
        steps: of the modern descent. More approach the minimum more closely; their noise together
            is the same.
        sampling_rate: of the modern descent: the probability with which a step sees a record.
        most_steps: of the published descent, which asks for n².
    """

    source = "Bassily, Smith and Thakurta 2014, noisy gradient descent"
    published_neighbours = "replace"
    choices = (("accounting", ACCOUNTINGS),)
    wholes = ("steps", "most_steps")

    accounting: Accounting = "modern"
    steps: int = 512
    sampling_rate: float = 1.0
    most_steps: int = 2**17

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP."""
        positive(sampling_rate=self.sampling_rate)
        if self.sampling_rate > 1:
            raise InvalidValueError(f"Expected sampling_rate={self.sampling_rate!r} <= 1.")
        promise = super().promise()
        largest = 2 * math.sqrt(math.log(1 / self.delta))
        if self.accounting == "published" and self.epsilon > largest:
            raise InfeasibleError(
                f"Expected epsilon={self.epsilon:g} <= {largest:.3g} at delta={self.delta:g}, "
                "which the published theorem needs; accounting='modern' takes any."
            )
        return promise

    def deviation(self, risk: Risk, sampling_rate: float = 1.0) -> float:
        """σ of each modern step's noise."""
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
        """The modern descent along whole gradients, which a risk can tell."""
        (weights,) = modern_descent(
            risk,
            radius=self._radius(risk.dimension),
            deviation=self.deviation(risk),
            steps=self.steps,
            runs=1,
            generator=generator,
        )
        return np.asarray(weights)

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        risk = self._risk(x, y)
        if self.accounting == "modern" and self.sampling_rate == 1:
            return self.release(risk, generator)
        if self.accounting == "modern":
            return self._sampled_descent(x, y, risk, generator)
        count, lipschitz = len(y), risk.gradient_change("zero-out")
        (weights,) = published_descent(
            x,
            y,
            type(self).slope,
            radius=self._radius(x.shape[1]),
            lipschitz=lipschitz,
            deviation=published_deviation(
                self.epsilon, self.delta, count=count, lipschitz=lipschitz
            ),
            steps=min(count**2, self.most_steps),
            runs=1,
            generator=generator,
        )
        return np.asarray(weights)

    def _sampled_descent(
        self, x: FloatArray, y: FloatArray, risk: Risk, generator: np.random.Generator
    ) -> FloatArray:
        q, radius = self.sampling_rate, self._radius(x.shape[1])
        deviation = self.deviation(risk, q)
        weights, mean = np.zeros((1, x.shape[1])), np.zeros(x.shape[1])
        for step in range(self.steps):
            chosen = generator.random(len(y)) < q
            gradient = deviation * generator.standard_normal(weights.shape)
            if chosen.any():
                gradient = gradient + self._risk(x[chosen], y[chosen]).gradients(weights) / q
            weights = weights - gradient / (risk.count * risk.curvature)
            into_balls(weights, radius)
            if step >= self.steps // 2:
                mean += weights[0] / (self.steps - self.steps // 2)
        return mean


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbationRegressor(GradientPerturbation, DescentRegressor):
    """Least squares by noisy gradients; η is √m unless given."""


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbationClassifier(GradientPerturbation, DescentClassifier):
    """Logistic regression by noisy gradients; η is 4√m unless given."""
