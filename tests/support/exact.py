"""Floating-point numbers in exact arithmetic, and probabilities by closed forms in many digits."""

from fractions import Fraction

import mpmath
import numpy as np


def norm_excess(u: np.ndarray) -> float:
    """‖u‖² − 1 in exact arithmetic, of the floats as they are."""
    return float(sum(Fraction(float(value)) ** 2 for value in u) - 1)


def noncentral_tail(x: float, dimension: int, noncentrality: float) -> mpmath.mpf:
    """P(χ²_d(θ) > x) = Q_{d/2}(√θ, √x) (Marcum's), by what d = 1 or 2 have and
    Q_{m+1}(a, b) = Q_m(a, b) + (b/a)^m e^{−(a² + b²)/2} I_m(ab), in which all terms are positive.
    """
    a, b = mpmath.sqrt(mpmath.mpf(noncentrality)), mpmath.sqrt(mpmath.mpf(x))
    if dimension % 2:
        first = (mpmath.erfc((b - a) / mpmath.sqrt(2)) + mpmath.erfc((b + a) / mpmath.sqrt(2))) / 2
    else:

        def density(r: mpmath.mpf) -> mpmath.mpf:
            return r * mpmath.exp(-((r - a) ** 2) / 2 - a * r) * mpmath.besseli(0, a * r)

        panels = [b + step / (1 + b - a) for step in (0, 1, 3, 7, 15, 30, 60)]
        first = mpmath.quad(density, panels)
    orders = [mpmath.mpf(2 - dimension % 2) / 2 + step for step in range((dimension - 1) // 2)]
    common = mpmath.exp(-(a**2 + b**2) / 2)
    return first + sum((b / a) ** m * common * mpmath.besseli(m, a * b) for m in orders)
