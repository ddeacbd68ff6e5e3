"""Exact Gaussian privacy: μ ↔ (ε, δ) by the profile itself, never by a bound.

Releasing a quantity of sensitivity Δ with noise N(0, σ²) is μ-GDP with μ = Δ/σ, and μ-GDP is (ε,
δ)-DP exactly for

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)

(Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13). Written so, it is the
difference of two numbers that may agree in all their digits, one of them a product of an overflow
and an underflow. With a = ε/μ − μ/2 and b = a + μ we have b² − a² = 2ε, so e^ε = φ(a)/φ(b), and
with Mills' ratio m(x) = Φ(−x)/φ(x)

    δ = φ(a)·(m(a) − m(b)) = φ(a)·∫_a^b g(x) dx,      g = −m' = 1 − x·m(x) > 0.

The first form is used where m(b) ≤ m(a)/2, the second elsewhere: it adds positive numbers only.

| here | usual symbol | meaning |
| --- | --- | --- |
| `mu` | μ | the distance of the two Gaussians that an attacker must tell apart |
| `epsilon`, `delta` | ε, δ | the same promise in the language of (ε, δ)-differential privacy |
"""

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfcx, ndtr

from blurfit.errors import inside_unit_interval, nonnegative
from blurfit.theory.numerics import root_of_increasing

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_UNIT_NODES, _UNIT_WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
_FRACTION_TERMS = 120
_TWO_OVER_ROOT_PI = Decimal("1.1283791670955125738961589031215451716881012586580")


def delta_of(mu: float, epsilon: float) -> float:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ): what is left of δ when a μ-GDP release is given ε.

    >>> delta_of(mu=1.0, epsilon=1.0)
    0.1269367375...
    """
    nonnegative(mu=mu, epsilon=epsilon)
    return math.exp(log_delta_of(mu, epsilon))


def log_delta_of(mu: float, epsilon: float) -> float:
    """ln δ(ε), which stays finite where δ itself underflows (−inf for μ = 0: nothing is told at
    all).
    """
    nonnegative(mu=mu, epsilon=epsilon)
    if mu == 0:
        return -math.inf
    a = epsilon / mu - mu / 2
    if a < 0:  # here δ is not small, and Mills' ratio of a would overflow before δ reaches 1
        surely = float(ndtr(-a))
        possibly = math.exp(_log_density(a)) * _mills(a + mu)
        if possibly <= surely / 2:
            return math.log(surely - possibly)
    difference = _mills(a) - _mills(a + mu)
    if difference < _mills(a) / 2:
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

    Where δ is close to δ(0) = erf(μ/√8), which for δ ≤ ½ needs μ < 1.35, the profile hardly depends
    on ε, so there we solve for the drop instead: δ(0) − δ(ε) = ∫_0^ε e^t Φ(−μ/2 − t/μ) dt, because
    ∂δ/∂ε = −e^ε Φ(−μ/2 − ε/μ).

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
    mills = math.sqrt(math.pi / 2) * erfcx((mu / 2 + t / mu) / math.sqrt(2))
    return epsilon * float(_UNIT_WEIGHTS @ (density * mills))


def _log_density(x: float) -> float:
    return -x * x / 2 - math.log(2 * math.pi) / 2


def _mills(x: float) -> float:
    """m(x) = Φ(−x)/φ(x), without overflow for any x that is not below −37."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _mills_slope(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """g(x) = 1 − x·m(x), for large x by Laplace's continued fraction m = 1/(x + k), k = 1/(x + 2/(x
    + 3/(x + …))).

    Then g = k/(x + k), in which nothing cancels. 120 terms give all digits from x = 2 on, and a few
    more than 600/x² of them do: what is left out shrinks as e^{−2x√terms}.
    """
    slope: NDArray[np.float64] = 1 - x * math.sqrt(math.pi / 2) * erfcx(
        np.minimum(x, 2.0) / math.sqrt(2)
    )
    large = x[x > 2]
    if large.size:
        k = np.zeros_like(large)
        least = float(large.min())  # whose square may overflow
        terms = min(_FRACTION_TERMS, 16 + math.ceil(650 / least / least))
        for term in range(terms, 0, -1):
            np.divide(term, np.add(large, k, out=k), out=k)
        slope[x > 2] = k / (large + k)
    return slope
