"""Roots of increasing functions of a positive quantity, from a guess."""

import math
from collections.abc import Callable

import numpy as np

from blurfit.errors import NotCertifiedError

_TOLERANCE = 4 * np.finfo(float).eps


def root_of_increasing(
    function: Callable[[float], float], guess: float, tolerance: float = 0.0, step: float = 0.25
) -> float:
    """The x > 0 at which an increasing function changes its sign, to `tolerance` of itself.

    The search runs over ln x: it brackets the root by doubling steps around the guess, the first of
    which is `step`, and finishes with Brent's method.
    """
    if not 0 < guess < math.inf:  # so neither is NaN, from which no search would come back
        raise NotCertifiedError(f"Expected a finite guess={guess!r} > 0 to search from.")
    known: dict[float, float] = {}  # Brent's method asks for both ends of its bracket once more

    def of_logarithm(logarithm: float) -> float:
        if logarithm not in known:
            known[logarithm] = function(math.exp(logarithm))
        return known[logarithm]

    low = high = math.log(guess)
    at_guess = of_logarithm(low)
    if at_guess > 0:
        while at_guess > 0:
            high, low, step = low, low - step, 2 * step
            if low < -700:
                raise NotCertifiedError(
                    "The root is below 1e-304, which floating point cannot tell from zero."
                )
            at_guess = of_logarithm(low)
    else:
        while at_guess < 0:
            low, high, step = high, high + step, 2 * step
            if high > 700:
                raise NotCertifiedError(
                    "The root is above 1e304, beyond the range of floating point."
                )
            at_guess = of_logarithm(high)
    return math.exp(brent(of_logarithm, low, high, xtol=max(tolerance, 1e-300)))


def brent(
    function: Callable[[float], float],
    low: float,
    high: float,
    xtol: float = 2e-12,
    rtol: float = _TOLERANCE,
    maxiter: int = 100,
) -> float:
    """The root between two points of different sign, by Brent's method."""
    from scipy.optimize import brentq  # half a second to import, and who only verifies never does

    return float(brentq(function, low, high, xtol=xtol, rtol=rtol, maxiter=maxiter))
