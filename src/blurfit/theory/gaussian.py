"""Exact Gaussian privacy: μ ↔ (ε, δ) by the profile, and quantiles on the safe side.

Used wherever a guarantee is computed or checked. Releasing a quantity of sensitivity Δ with noise
N(0, σ²) is μ-GDP with μ = Δ/σ, and μ-GDP is (ε, δ)-DP exactly for

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)

(Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13). The two terms may agree in
all their digits. With a = ε/μ − μ/2, b = a + μ and Mills' ratio m(x) = Φ(−x)/φ(x)

    δ = φ(a)·(m(a) − m(b)) = φ(a)·∫_a^b g(x) dx,      g = −m' = 1 − x·m(x) > 0.

The first form is used if m(b) ≤ m(a)/2, the second elsewhere: it adds positive numbers only.

Quantiles are rounded so that the stated probability is never exceeded. A library's quantile is
nudged outwards, and its probability is evaluated again. If that fails, and wherever the library's
distribution function is known to err, a tail bound with a proof replaces it.

Proofs: `docs/theory/gaussian-privacy.md`. Tests: `tests/theory/test_gaussian.py` (50 digits,
another library), `tests/theory/test_quantiles.py`.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import (
    erf,
    erfcx,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    ndtr,
    ndtri,
)

from blurfit.data import FloatArray
from blurfit.errors import NotCertifiedError, inside_unit_interval, nonnegative

Point = FloatArray  # any real numbers: logarithms, log-odds

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

_FRACTION_TERMS = 120
_TWO_OVER_ROOT_PI = Decimal("1.1283791670955125738961589031215451716881012586580")


def unit_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss and Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


_UNIT_NODES, _UNIT_WEIGHTS = unit_rule(24)


def delta_of(mu: float, epsilon: float) -> float:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ): what is left of δ when a μ-GDP release is given ε.

    >>> delta_of(mu=1.0, epsilon=1.0)
    0.1269367375...
    """
    nonnegative(mu=mu, epsilon=epsilon)
    return math.exp(log_delta_of(mu, epsilon))


def log_delta_of(mu: float, epsilon: float) -> float:
    """ln δ(ε), finite where δ itself underflows, and −inf for μ = 0: nothing is told at all."""
    nonnegative(mu=mu, epsilon=epsilon)
    if mu == 0:
        return -math.inf
    a = epsilon / mu - mu / 2
    if a < 0:  # here δ is not small, and Mills' ratio of a would overflow before δ reaches 1
        surely = float(ndtr(-a))
        possibly = math.exp(_log_density(a)) * float(mills(a + mu))
        if possibly <= surely / 2:
            return math.log(surely - possibly)
    near, far = float(mills(a)), float(mills(a + mu))
    difference = near - far
    if difference < near / 2:
        difference = mu * float(_UNIT_WEIGHTS @ _mills_slope(a + mu * _UNIT_NODES))
    if difference == 0:  # it has underflowed; g(x) = 1 − x·m(x) is below x⁻²
        return _log_density(a) + math.log(mu) - 2 * math.log(a)
    return _log_density(a) + math.log(difference)


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest μ whose release is (ε, δ)-DP: the root of δ(ε; μ) = δ, increasing in μ.

    >>> mu_of(epsilon=1.0, delta=delta_of(mu=1.0, epsilon=1.0))
    1.0...
    """
    nonnegative(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    return _mu_of(float(epsilon), float(delta))


@lru_cache(maxsize=1024)  # whoever verifies an agreement asks for what its proposer asked for
def _mu_of(epsilon: float, delta: float) -> float:
    target = math.log(delta)
    return root_of_increasing(
        lambda mu: log_delta_of(mu, epsilon) - target, guess=math.sqrt(2 * epsilon) + delta
    )


def epsilon_of(mu: float, delta: float) -> float:
    """Return the least ε ≥ 0 such that a μ-GDP release is (ε, δ)-DP; 0 if δ alone covers it.

    If δ is close to δ(0) = erf(μ/√8), the profile hardly depends on ε, and its drop δ(0) − δ(ε) =
    ∫_0^ε e^t Φ(−μ/2 − t/μ) dt is inverted instead.

    >>> epsilon_of(mu=1.0, delta=1e-6)
    4.886554...
    """
    nonnegative(mu=mu)
    inside_unit_interval(delta=delta)
    return _epsilon_of(float(mu), float(delta))


@lru_cache(maxsize=1024)
def _epsilon_of(mu: float, delta: float) -> float:
    if mu < 2 and erf(mu / math.sqrt(8)) < 2 * delta:
        drop = _drop_to(mu, delta)
        if drop <= 0:
            return 0.0
        return root_of_increasing(
            lambda epsilon: _drop_of_delta(mu, epsilon) - drop, guess=drop / float(ndtr(-mu / 2))
        )
    target = math.log(delta)
    if log_delta_of(mu, 0) <= target:
        return 0.0
    return root_of_increasing(
        lambda epsilon: target - log_delta_of(mu, epsilon), guess=mu * (mu + 1)
    )


def _drop_to(mu: float, delta: float) -> float:
    """δ(0) − δ, by the series of erf in 40 digits: for ε = 1e-6 the two agree in all but the last
    ten of sixteen.
    """
    with localcontext(prec=40):
        x = Decimal(mu) / Decimal(8).sqrt()
        power, total = x, Decimal(0)
        for k in range(1, 60):
            total += power / (2 * k - 1)
            power *= -x * x / k
        return float(total * _TWO_OVER_ROOT_PI - Decimal(delta))


def _drop_of_delta(mu: float, epsilon: float) -> float:
    """δ(0) − δ(ε) as the integral of e^t Φ(−μ/2 − t/μ) = φ(μ/2 − t/μ) m(μ/2 + t/μ), all of it
    positive.
    """
    t = epsilon * _UNIT_NODES
    density = np.exp(-((mu / 2 - t / mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    return epsilon * float(_UNIT_WEIGHTS @ (density * mills(mu / 2 + t / mu)))


def _log_density(x: float) -> float:
    return -x * x / 2 - math.log(2 * math.pi) / 2


def mills(x: ArrayLike) -> FloatArray:
    """m(x) = Φ(−x)/φ(x), without overflow for any x that is not below −37."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(np.asarray(x) / math.sqrt(2)))


def _mills_slope(x: FloatArray) -> FloatArray:
    """Return g(x) = 1 − x·m(x), for large x by a continued fraction, in which nothing cancels.

    Laplace: m = 1/(x + k), k = 1/(x + 2/(x + 3/(x + …))), so g = k/(x + k). A few more than 600/x²
    terms, at most 120 from x = 2 on, give all digits.
    """
    slope: FloatArray = 1 - x * math.sqrt(math.pi / 2) * erfcx(np.minimum(x, 2.0) / math.sqrt(2))
    large = x[x > 2]
    if large.size:
        k = np.zeros_like(large)
        least = float(large.min())  # whose square may overflow
        terms = min(_FRACTION_TERMS, 16 + math.ceil(650 / least / least))
        for term in range(terms, 0, -1):
            np.divide(term, np.add(large, k, out=k), out=k)
        slope[x > 2] = k / (large + k)
    return slope


def root_of_increasing(
    function: Callable[[float], float], guess: float, tolerance: float = 0.0
) -> float:
    """Return the x > 0 at which an increasing function changes its sign, to `tolerance` of itself.

    The search runs over ln x: it brackets the root by doubling steps around the guess, and finishes
    with Brent's method.
    """
    if not 0 < guess < math.inf:  # so neither is NaN, from which no search would come back
        raise NotCertifiedError(
            "Expected a finite guess={guess!r} > 0 to search from.", guess=guess
        )
    known: dict[float, float] = {}  # Brent's method asks for both ends of its bracket once more

    def of_logarithm(logarithm: float) -> float:
        if logarithm not in known:
            known[logarithm] = function(math.exp(logarithm))
        return known[logarithm]

    low = high = math.log(guess)
    step = 0.25
    if of_logarithm(low) > 0:
        while of_logarithm(low) > 0:
            high, low, step = low, low - step, 2 * step
            if low < -700:
                raise NotCertifiedError(
                    "The root is below 1e-304, which floating point cannot tell from zero."
                )
    else:
        while of_logarithm(high) < 0:
            low, high, step = high, high + step, 2 * step
            if high > 700:
                raise NotCertifiedError(
                    "The root is above 1e304, beyond the range of floating point."
                )
    return math.exp(brent(of_logarithm, low, high, xtol=max(tolerance, 1e-300)))


def brent(
    function: Callable[[float], float], low: float, high: float, xtol: float = 2e-12
) -> float:
    """Return the root between two points of different sign, by Brent's method."""
    from scipy.optimize import brentq  # half a second to import, and verifying never needs it

    return float(brentq(function, low, high, xtol=xtol, rtol=_TOLERANCE))


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

    simplex = np.vstack([start, start + reach * np.eye(len(start))])
    options: Any = {"maxfev": steps, "xatol": tolerance, "fatol": 1e-5, "initial_simplex": simplex}
    return np.asarray(minimize(function, start, method="Nelder-Mead", options=options).x)


def chi_square_floor(probability: float, freedom: float) -> float:
    """Return x with P(χ²_m < x) ≤ γ, else m − 2√(m ln(1/γ)) (Laurent and Massart 2000, Lemma 1).

    Beyond m = 6·10⁵ the bound is always used: there the library errs on the unsafe side.
    """
    if freedom <= _EXACT_FREEDOM:
        quantile = 2 * float(gammaincinv(freedom / 2, probability)) * (1 - _NUDGE)
        if gammainc(freedom / 2, quantile / 2) <= probability * _SLACK:
            return quantile
    return max(0.0, freedom - 2 * math.sqrt(freedom * math.log(1 / probability)))


def chi_square_ceiling(probability: float, freedom: float) -> float:
    """x with P(χ²_m > x) ≤ γ, else Chernoff's bound."""
    quantile = 2 * float(gammainccinv(freedom / 2, probability)) * (1 + _NUDGE)
    if gammaincc(freedom / 2, quantile / 2) <= probability * _SLACK:
        return quantile
    return _chernoff_ceiling(probability, freedom, 0.0)


def shifted_energy_ceiling(probability: float, dimension: int, shift: float, scale: float) -> float:
    """Return x with P(‖v + N(0, s²I)‖² > x) ≤ γ for all ‖v‖ ≤ r: s² times a noncentral quantile.

    For r/s beyond 10³ the library's series fails, and the smaller of two bounds with a proof is
    used (`docs/theory/gaussian-privacy.md`).
    """
    if scale == 0:
        return shift**2
    noncentrality = (shift / scale) ** 2
    if noncentrality <= _EXACT_NONCENTRALITY:
        return scale**2 * _noncentral_ceiling(probability, dimension, noncentrality)
    along = shift - scale * float(ndtri(probability * (1 - _SHARE_OF_REST)))
    rest = probability * _SHARE_OF_REST
    across = chi_square_ceiling(rest, dimension - 1) if dimension > 1 else 0.0
    apart = along**2 * (1 + _NUDGE) + scale**2 * across
    at_limit = _noncentral_ceiling(probability, dimension, _EXACT_NONCENTRALITY)
    return min(apart, shift**2 * at_limit / _EXACT_NONCENTRALITY)


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
    """Return x with P(χ²_m(θ) > x) ≤ γ, by Chernoff's bound; never above Birgé's (2001, Lemma 8.1).

    x = θ/(1 − 2λ) + (t − ½m·ln(1 − 2λ))/λ with t = ln(1/γ) and 1/λ = 2 + √((m + 2θ)/t).
    """
    t = -math.log(probability)
    slope = 1 / (2 + math.sqrt((freedom + 2 * noncentrality) / t))
    bound = noncentrality / (1 - 2 * slope) + (t - freedom / 2 * math.log1p(-2 * slope)) / slope
    return bound * (1 + _NUDGE)
