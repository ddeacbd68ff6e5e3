"""Numerical methods that the theory rests on: roots, minima, and quantiles on the safe side.

**Quantiles** are rounded so that the stated probability is never exceeded.
A library's quantile is a number near the true one, on either side of it. Here each is nudged
outwards, and its probability is evaluated again. Where that fails, and wherever the library's
distribution function itself is known to err, a tail bound with a proof takes the quantile's place.
"""

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv, ndtri

from blurfit.errors import NotCertifiedError

Point = npt.NDArray[np.float64]  # any real numbers: logarithms, log-odds

_TOLERANCE = 4 * np.finfo(float).eps
_NUDGE = 1e-12
_SLACK = 1 + 1e-9  # to which the library's own distribution functions are trusted
# SciPy cuts the series of the incomplete gamma function after 2000 terms. With m degrees of freedom
# that leaves out e^{−(k²/2 + 4.5k)} of it, k = 2000·√(2/m): below 10⁻¹⁰ up to here, 10⁻⁸ at 10⁶.
_EXACT_FREEDOM = 6e5
_EXACT_NONCENTRALITY = 1e6
# The noncentral tail is a sum over Poisson weights that the library begins at the largest weight.
# Where the noncentrality rules, that first term's own tail is about γ², which loses digits below
# 10⁻³⁰⁸, that is for γ < 10⁻¹⁵⁴, and is 0 below 10⁻³²⁴: then the library finds a larger tail to be
# 0 as well, and takes a quantile that is exceeded 10²⁹ times too often. Here γ² is 10⁻²⁰⁰.
LEAST_EXACT_PROBABILITY = 1e-100
_SHARE_OF_REST = 0.01


def root_of_increasing(
    function: Callable[[float], float], guess: float, tolerance: float = 0.0, step: float = 0.25
) -> float:
    """Return the x > 0 at which an increasing function changes its sign, to `tolerance` of itself.

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
    """Return the root between two points of different sign, by Brent's method."""
    from scipy.optimize import brentq  # half a second to import, and verifying never needs it

    return float(brentq(function, low, high, xtol=xtol, rtol=rtol, maxiter=maxiter))


def descend(
    function: Callable[[Point], float],
    start: Point,
    *,
    steps: int,
    reach: float = 0.7,
    tolerance: float = 1e-2,
) -> Point:
    """Return a point near the minimum by Nelder and Mead's simplex, after at most so many steps.

    It needs no derivatives, is deterministic, and is meant for a handful of parameters. `reach` is
    the first simplex's size. Optima are flat here, so a few dozen steps do.
    """
    from scipy.optimize import minimize  # half a second to import

    found = minimize(
        function,
        start,
        method="Nelder-Mead",
        options={
            "maxfev": steps,
            "xatol": tolerance,
            "fatol": 1e-5,
            "initial_simplex": np.vstack([start, start + reach * np.eye(len(start))]),
        },
    )
    return np.asarray(found.x)


def chi_square_floor(probability: float, freedom: float) -> float:
    """x with P(χ²_m < x) ≤ γ; the fallback is m − 2√(m ln(1/γ)) (Laurent and Massart 2000, Lemma
    1).

    Beyond m = 6·10⁵ it is always taken: there the library's quantile and its distribution function
    err together, on the unsafe side (at m = 10⁹, γ = 10⁻⁹ the stated probability is exceeded by a
    factor of two).
    """
    if freedom <= _EXACT_FREEDOM:
        quantile = 2 * float(gammaincinv(freedom / 2, probability)) * (1 - _NUDGE)
        if gammainc(freedom / 2, quantile / 2) <= probability * _SLACK:
            return quantile
    return max(0.0, freedom - 2 * math.sqrt(freedom * math.log(1 / probability)))


def chi_square_ceiling(probability: float, freedom: float) -> float:
    """x with P(χ²_m > x) ≤ γ; the fallback is Chernoff's bound."""
    quantile = 2 * float(gammainccinv(freedom / 2, probability)) * (1 + _NUDGE)
    if gammaincc(freedom / 2, quantile / 2) <= probability * _SLACK:
        return quantile
    return _chernoff_ceiling(probability, freedom, 0.0)


def shifted_energy_ceiling(probability: float, dimension: int, shift: float, scale: float) -> float:
    """x with P(‖v + N(0, s²I)‖² > x) ≤ γ for every v with ‖v‖ ≤ r: s² times a noncentral χ²_d
    quantile.

    ‖v‖ = r is the worst case. For r/s beyond 10³ the library's series becomes slow and then fails,
    so there the smaller of two bounds is used. First, along v one normal and across it a χ²_{d−1},
    γ shared 99 to 1 between them: (r + s·z)² + s²·χ²_{d−1}; the normal's other tail, Φ(−2r/s − z) <
    10^(−800,000), vanishes in the rounding. Second, the exact quantile at r/s = 10³: more noise
    means a larger quantile, because the ball ‖·‖² ≤ x, seen from a v inside it, is star-shaped, so
    scaling the noise up only takes probability out of it. (γ ≤ ½ puts v inside.)
    """
    if scale == 0:
        return shift**2
    noncentrality = (shift / scale) ** 2
    if noncentrality <= _EXACT_NONCENTRALITY:
        return scale**2 * _noncentral_ceiling(probability, dimension, noncentrality)
    along = shift - scale * float(ndtri(probability * (1 - _SHARE_OF_REST)))
    across = (
        chi_square_ceiling(probability * _SHARE_OF_REST, dimension - 1) if dimension > 1 else 0.0
    )
    at_limit = _noncentral_ceiling(probability, dimension, _EXACT_NONCENTRALITY)
    return min(
        along**2 * (1 + _NUDGE) + scale**2 * across, shift**2 * at_limit / _EXACT_NONCENTRALITY
    )


@lru_cache(maxsize=1024)  # a search asks for the same quantile twice for each candidate
def _noncentral_ceiling(probability: float, dimension: int, noncentrality: float) -> float:
    if noncentrality == 0:
        return chi_square_ceiling(probability, dimension)
    if probability >= LEAST_EXACT_PROBABILITY:
        upper_quantile, upper_tail = _noncentral_chi_square()
        with np.errstate(over="ignore"):
            quantile = float(upper_quantile(probability, dimension, noncentrality)) * (1 + _NUDGE)
            if upper_tail(quantile, dimension, noncentrality) <= probability * _SLACK:
                return quantile
    return _chernoff_ceiling(probability, dimension, noncentrality)


@cache
def _noncentral_chi_square() -> tuple[Any, Any]:
    """Return `scipy.stats.ncx2.isf` and `.sf`.

    Those check and broadcast what they are given, which takes twenty times as long as the functions
    beneath them (and `scipy.stats` half a second to import), and a search calls them hundreds of
    times. So the functions beneath are called where this SciPy has them by their usual names.
    """
    try:
        from scipy.special._ufuncs import _ncx2_isf, _ncx2_sf
    except ImportError:  # pragma: no cover
        from scipy.stats import ncx2

        return ncx2.isf, ncx2.sf
    return _ncx2_isf, _ncx2_sf


def _chernoff_ceiling(probability: float, freedom: float, noncentrality: float) -> float:
    """x with P(χ²_m(θ) > x) ≤ γ, by Chernoff's bound; never above Birgé's (2001, Lemma 8.1).

    E exp(λχ²_m(θ)) = (1 − 2λ)^{−m/2}·exp(θλ/(1 − 2λ)), so by Markov's inequality every λ in (0, ½)
    gives such an x, with t = ln(1/γ):

        x = θ/(1 − 2λ) + (t − ½m·ln(1 − 2λ))/λ.

    Birgé bounds ½m·ln(1/(1 − 2λ)) + θλ/(1 − 2λ) by λ(m + θ) + λ²(m + 2θ)/(1 − 2λ), and takes the
    λ that is best for this: 1/λ = 2 + √((m + 2θ)/t), which gives m + θ + 2√((m + 2θ)t) + 2t. So
    with the same λ the exact logarithm gives no more.
    """
    t = -math.log(probability)
    slope = 1 / (2 + math.sqrt((freedom + 2 * noncentrality) / t))
    bound = noncentrality / (1 - 2 * slope) + (t - freedom / 2 * math.log1p(-2 * slope)) / slope
    return bound * (1 + _NUDGE)
