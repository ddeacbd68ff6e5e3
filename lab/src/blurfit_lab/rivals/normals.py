"""The distributions that rivals draw from, beyond the normal one."""

import numpy as np

from blurfit.arrays import FloatArray


def on_sphere(dimension: int, generator: np.random.Generator) -> FloatArray:
    """A uniform direction: a standard normal vector over its length."""
    direction = generator.standard_normal(dimension)
    return np.asarray(direction / np.linalg.norm(direction))


def exponential_in_norm(dimension: int, rate: float, generator: np.random.Generator) -> FloatArray:
    """b with density ∝ e^{−rate·‖b‖}: a uniform direction, and ‖b‖ ~ Gamma(d, 1/rate).

    The shell at radius r has area ∝ r^{d−1}, and r^{d−1}e^{−rate·r} is the Gamma density. For two
    outputs that one person moves by Δ the densities differ by a factor of at most e^{rate·Δ}.
    """
    return on_sphere(dimension, generator) * generator.gamma(dimension, 1.0 / rate)


def gaussian(dimension: int, deviation: float, generator: np.random.Generator) -> FloatArray:
    """b ~ N(0, deviation²·I)."""
    return np.asarray(deviation * generator.standard_normal(dimension))
