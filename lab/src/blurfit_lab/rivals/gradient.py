"""Gradient perturbation: descend along noisy gradients.

Bassily, Smith and Thakurta 2014 descend in n² steps along single records' gradients, for neighbours
that replace one record. With today's accounting fewer and larger steps do better: T along the whole
gradient,

    w ← Π(w − (Σ∇ℓ + b_t)/(nλ)),   b_t ~ N(0, σ²I),   σ = √T·Δ/μ(ε, δ)

and the mean of the last half of the iterates as the model. One person changes each gradient by at
most Δ, whatever the steps before told, and T such Gaussian steps are one: μ-GDP with μ = √T·Δ/σ,
exactly (Dong, Roth and Su 2022, Corollary 3.3). The tests hold that against privacy loss
distributions of another library.
"""

import math
from dataclasses import dataclass

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import positive
from blurfit.theory.gaussian import mu_of
from blurfit_lab.rivals.rival import ApproximateRival, InBall, Risk, RivalClassifier

_ROUNDING = 1 + 1e-6


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
) -> FloatArray:
    """T noisy gradients, `runs` times at once: (runs, d)."""
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
class GradientPerturbation(ApproximateRival):
    """Noisy gradient descent.

    Args:
        steps: T. More approach the minimum more closely; their noise together is the same.
    """

    source = "Bassily, Smith and Thakurta 2014, noisy gradient descent"
    published_neighbours = "replace"
    wholes = ("steps",)

    steps: int = 512

    def _radius(self, dimension: int, /) -> float:
        raise NotImplementedError  # pragma: no cover

    def deviation(self, risk: Risk) -> float:
        """σ of each step's noise."""
        multiplier = math.sqrt(self.steps) / mu_of(self.epsilon, self.delta) * _ROUNDING
        return multiplier * risk.gradient_change(self.neighbours)

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The descent along whole gradients, which a risk can tell."""
        (weights,) = descend(
            risk,
            radius=self._radius(risk.dimension),
            deviation=self.deviation(risk),
            steps=self.steps,
            runs=1,
            generator=generator,
        )
        return np.asarray(weights)


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
