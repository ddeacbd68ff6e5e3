"""Floating-point numbers in exact arithmetic."""

from fractions import Fraction

import numpy as np


def norm_excess(u: np.ndarray) -> float:
    """‖u‖² − 1 in exact arithmetic, of the floats as they are."""
    return float(sum(Fraction(float(value)) ** 2 for value in u) - 1)
