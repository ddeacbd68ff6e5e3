"""How often somebody guesses right who tells two answers apart: a privacy loss in plain numbers.

Somebody knows everything about a person but which of two records is hers, and considers both
equally likely: a coin is right with probability ½. Whoever sees the release says "the first" on
some event S, and is right with probability ½(P(S) + 1 − Q(S)) ≤ ½(1 + TV), TV the largest P(S) −
Q(S).

* (ε, δ): **TV ≤ (e^ε − 1 + 2δ)/(e^ε + 1)** (Kairouz, Oh and Viswanath 2015). From P(S) ≤ e^ε·Q(S) +
  δ and 1 − Q(S) ≤ e^ε(1 − P(S)) + δ, added: (1 + e^ε)(P(S) − Q(S)) ≤ e^ε − 1 + 2δ. ∎ It is
  attained.
* μ-GDP: **TV ≤ 2Φ(μ/2) − 1**, that of N(0, 1) and N(μ, 1), by the definition of μ-GDP; a Gaussian
  mechanism attains it. It is δ(0) of the mechanism's profile.

Two records of the `zero-out` relation are two steps apart, over the blank one: (2ε, (1 + e^ε)δ), or
2μ for a Gaussian mechanism, whose shifts add.
"""

import math

from scipy.special import ndtr

from blurfit.theory.setting import NEIGHBOURS, Neighbours
from blurfit.validate import nonnegative, one_of

_DISCRETE = 1e-3  # far more than discrete noise differs from a Gaussian's, see `agreement.grid`


def right_by_approximate(epsilon: float, delta: float, neighbours: Neighbours = "replace") -> float:
    """How often, at most, a guess between two records is right if a release is (ε, δ)-private.

    >>> right_by_approximate(0.0, 0.0), round(right_by_approximate(1.0, 1e-6), 4)
    (0.5, 0.7311)
    """
    nonnegative(epsilon=epsilon, delta=delta)
    one_of(NEIGHBOURS, neighbours=neighbours)
    if neighbours == "zero-out":
        steep = math.exp(min(epsilon, 700.0))
        epsilon, delta = 2 * epsilon, min(1.0, (1 + steep) * delta)
    apart = math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700.0)))
    return min(1.0, 0.5 + apart / 2)


def right_by_gaussian(mu: float, neighbours: Neighbours = "replace") -> float:
    """How often, at most, a guess between two records is right if a release is μ-GDP.

    >>> right_by_gaussian(0.0), round(right_by_gaussian(0.2246), 3)
    (0.501, 0.546)
    """
    nonnegative(mu=mu)
    one_of(NEIGHBOURS, neighbours=neighbours)
    steps = 2 if neighbours == "zero-out" else 1
    return min(1.0, float(ndtr(steps * mu / 2)) + _DISCRETE)


def in_hundred(right: float) -> int:
    """A share in 100, rounded up: what is promised is never less than what holds."""
    return min(100, math.ceil(100 * right * (1 + 1e-12)))
