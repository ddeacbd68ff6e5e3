"""Output perturbation: minimise, then add noise to the minimiser.

Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 1, which is ε-differentially private for
neighbours that replace one record (Theorem 6):

    w = argmin Σℓ + ½Λ‖w‖² + b,    b with density ∝ e^{−ε‖b‖/Δ},    Δ = change/Λ.

The objective is Λ-strongly convex, so two minimisers are no further apart than the gradients of
their objectives differ, over Λ (their Lemma 7, in the sum's scale instead of the mean's: Λ = nΛ',
and change = 2 for a loss whose gradient is at most 1 long). The same holds in a ball, which squared
loss needs. Projecting back onto the ball is post-processing.

They leave Λ to the user. The default minimises a public forecast of the loss, ½Λη² for the bias
plus ½(n/d)·E‖b‖² for the noise, E‖b‖² ≈ (d·Δ/ε)², where n/d is the curvature in a typical direction
of the unit ball and η = √d a typical weight:  Λ³ = 2·n·d·change²/(ε²η²).
"""

import math
from dataclasses import dataclass

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.estimators.guarantee import FitGuarantee
from blurfit.theory.guarantees import Neighbours
from blurfit.validate import positive
from blurfit_lab.rivals.normals import exponential_in_norm
from blurfit_lab.rivals.risk import Risk, minimiser
from blurfit_lab.rivals.rival import InBall, PureRival, RivalClassifier


def forecast_ridge(risk: Risk, epsilon: float, neighbours: Neighbours) -> float:
    """Λ = (2·n·d·change²/(ε²η²))^⅓, from public facts alone."""
    eta = risk.weight_bound or math.sqrt(risk.dimension)
    spread = risk.gradient_change(neighbours) / (epsilon * eta)
    return float((2 * risk.count * risk.dimension * spread**2) ** (1 / 3))


def sensitivity(risk: Risk, ridge: float, neighbours: Neighbours) -> float:
    """Δ = change/Λ: how far one person can move the minimiser."""
    return risk.gradient_change(neighbours) / ridge


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbation(PureRival):
    """The minimiser plus noise.

    Args:
        ridge: Λ, in all and not per record; None for a public forecast of the best.
    """

    source = "Chaudhuri, Monteleoni and Sarwate 2011, output perturbation"
    published_neighbours = "replace"

    ridge: float | None = None

    def promise(self) -> FitGuarantee:
        """ε-DP, for a positive ridge."""
        if self.ridge is not None:
            if self.ridge == 0:
                raise InvalidValueError(
                    f"Expected ridge={self.ridge!r} > 0: without it one person can move the "
                    "minimiser without bound. None takes a public default."
                )
            positive(ridge=self.ridge)
        return super().promise()

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The minimiser, the noise, and the way back into the ball."""
        ridge = self.ridge or forecast_ridge(risk, self.epsilon, self.neighbours)
        rate = self.epsilon / sensitivity(risk, ridge, self.neighbours)
        noise = exponential_in_norm(risk.dimension, rate, generator)
        return into_ball(minimiser(risk, ridge) + noise, risk.weight_bound)


def into_ball(weights: FloatArray, radius: float | None) -> FloatArray:
    """The nearest point of the ball."""
    norm = float(np.linalg.norm(weights))
    if radius is None or norm <= radius:
        return weights
    return weights * (radius / norm)


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbationRegressor(OutputPerturbation, InBall):
    """Least squares in a ball, plus noise."""


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbationClassifier(OutputPerturbation, RivalClassifier):
    """Logistic regression, plus noise."""
