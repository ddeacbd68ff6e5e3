"""What descents along noisy gradients share: slopes of single records, and the ball of weights.

The slope is ℓ'(z) at z = w·x: one record's gradient is ℓ'(z)·x.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from blurfit.arrays import FloatArray
from blurfit.validate import positive
from blurfit_lab.rivals.rival import InBall, Rival, RivalClassifier

Slope = Callable[[FloatArray, FloatArray], FloatArray]


def squared_slope(z: FloatArray, y: FloatArray) -> FloatArray:
    """Of ½(y − z)²: z − y."""
    return z - y


def logistic_slope(z: FloatArray, y: FloatArray) -> FloatArray:
    """Of ln(1 + e^{−yz}), y = ±1: −y·σ(−yz)."""
    return np.asarray(-y * expit(-y * z))


def into_balls(weights: FloatArray, radius: float) -> None:
    """Each row to the nearest point of the ball, in place."""
    norms = np.sqrt(np.einsum("kd,kd->k", weights, weights))
    weights *= (radius / np.maximum(norms, radius))[:, None]


@dataclass(kw_only=True, eq=False, repr=False)
class Descent(Rival):
    """A rival that descends along noisy gradients within a ball."""

    slope: ClassVar[Any]

    def _radius(self, dimension: int, /) -> float:
        raise NotImplementedError  # pragma: no cover


@dataclass(kw_only=True, eq=False, repr=False)
class DescentRegressor(Descent, InBall):
    """Least squares; η is √m unless given."""

    slope = staticmethod(squared_slope)

    def _radius(self, dimension: int, /) -> float:
        return float(self._ball(dimension) or 0.0)


@dataclass(kw_only=True, eq=False, repr=False)
class DescentClassifier(Descent, RivalClassifier):
    """Logistic regression.

    Args:
        weight_bound: η, the ball that w is projected onto; None takes 4√m.
    """

    slope = staticmethod(logistic_slope)

    weight_bound: float | None = None

    def _radius(self, dimension: int, /) -> float:
        if self.weight_bound is None:
            return 4 * math.sqrt(dimension)
        positive(weight_bound=self.weight_bound)
        return self.weight_bound
