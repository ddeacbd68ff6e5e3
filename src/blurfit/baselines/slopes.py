"""ℓ'(z) at z = w·x: one record's gradient is ℓ'(z)·x, for methods that look at single records."""

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from blurfit.arrays import FloatArray

Slope = Callable[[FloatArray, FloatArray], FloatArray]


def squared_slope(z: FloatArray, y: FloatArray) -> FloatArray:
    """Of ½(y − z)²: z − y."""
    return z - y


def logistic_slope(z: FloatArray, y: FloatArray) -> FloatArray:
    """Of ln(1 + e^{−yz}), y = ±1: −y·σ(−yz)."""
    return np.asarray(-y * expit(-y * z))
