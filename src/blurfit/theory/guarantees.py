"""The public facts, the two promises that follow from them, and how they are stated.

**What a document states** is rounded to the safe side when it is made, and checked by inequality
when it is read. Two machines do not compute the same bits: another kernel of the linear algebra,
another library or a browser rounds otherwise. So nobody computes a stated number again to compare
it for equality. Whoever makes a document rounds what was computed to `BITS` bits, to the side on
which the promise still follows; whoever reads it computes the number on their own machine and
checks that what is stated is on that side, and not far beyond.

**Why honest documents are never refused.** Let x be the exact number, x̂ the maker's and x̃ the
reader's, each within a factor of 1 ± 2⁻³² of x (every function here is far more exact; the tests
measure it). `rounded_up` gives s with x̂·(1 + 2⁻³⁰) ≤ s ≤ x̂·(1 + 2⁻³⁰)(1 + 2⁻²⁷). So

    s ≥ x(1 − 2⁻³²)(1 + 2⁻³⁰) > x(1 + 2⁻³²) ≥ x̃      and      s ≤ x̃·(1 + 2⁻²⁶) < x̃·(1 + `BEYOND`):

`require_above` holds, strictly and with room. `rounded_down` and `require_below` are the mirror
image.

**Why a document that is read keeps its promise.** What is stated is itself what is used: noise is
drawn with the stated deviation, and sentences quote the stated guarantee. Each number is checked to
be on the safe side of what follows from the other stated numbers, so the promise holds for the
numbers as they stand there, whoever made them and however. ∎

**In plain numbers** a promise is how often somebody guesses right who tells two answers apart.
Somebody knows everything about a person but which of two records is theirs, and considers both
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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from blurfit.errors import (
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    inside_unit_interval,
    nonnegative,
    one_of,
    positive,
    whole,
)

Calibration = TypeVar("Calibration")
Neighbours = Literal["replace", "zero-out"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace", "zero-out")
Rule = Literal["certified", "published"]
RULES: tuple[Rule, ...] = ("certified", "published")
Approximation = Literal["taylor", "chebyshev", "least-squares"]
APPROXIMATIONS: tuple[Approximation, ...] = ("taylor", "chebyshev", "least-squares")

LEAST_PROBABILITY = 1e-300  # of an event that a proof gives away: quantiles are exact down to here
LEAST_DELTA = 1e-290  # that is stated, so that events of the least probability cost nothing of it
BITS = 28  # of a stated number
BEYOND = 2.0**-24  # how much further than necessary a stated number may lie on its safe side
_MARGIN = 2.0**-30  # far more than machines differ by
_DISCRETE = 1e-3  # far more than discrete noise differs from a Gaussian's, see `agreement.grid`


@dataclass(frozen=True)
class Setting:
    """The public facts of a collection.

    | name | paper | meaning |
    | --- | --- | --- |
    | `dimension` | d | length of q, p and the weights |
    | `quorum` | n | least number of honest records; each carries noise of variance σ²/n |
    | `q_bound` | √λ | bound R_q on ‖q‖ |
    | `p_bound` | ≤ ζ | bound R_p on ‖p‖ |
    | `weight_bound` | η | the model is sought in the ball ‖w‖ ≤ η |
    | `neighbours` | – | what one person may change: "replace" their record, or "zero-out" it |
    """

    dimension: int
    quorum: int
    q_bound: float
    p_bound: float
    weight_bound: float | None = None
    neighbours: Neighbours = "replace"

    def __post_init__(self) -> None:
        whole(dimension=self.dimension, quorum=self.quorum)
        positive(q_bound=self.q_bound, p_bound=self.p_bound)
        if self.weight_bound is not None:
            positive(weight_bound=self.weight_bound)
        one_of(NEIGHBOURS, neighbours=self.neighbours)

    @property
    def smoothness(self) -> float:
        """λ = R_q², because ∇²ℓ = qqᵀ."""
        return self.q_bound**2

    @property
    def ball(self) -> float:
        """η, which input perturbation cannot do without: the gradient is bounded only where the
        weights are.
        """
        if self.weight_bound is None:
            raise InfeasibleError(
                "mechanism='input' needs a weight_bound (η): its proof bounds the gradient over "
                "the ball ‖w‖ <= η. Give weight_bound=1.0, say, or use mechanism='moment'."
            )
        return self.weight_bound

    @property
    def gradient_bound(self) -> float:
        """ζ = λη + R_p ≥ ‖qqᵀw − p‖ over the ball."""
        return self.smoothness * self.ball + self.p_bound


@dataclass(frozen=True)
class ModelGuarantee:
    """What the published model promises: (ε, δ)-DP under a neighbouring relation, for so many
    releases.

    `proved` is False for numbers that the paper prints but that do not follow (lab/docs/errata.md).
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    releases: int | Literal["any"]
    proved: bool = True

    def __post_init__(self) -> None:
        nonnegative(epsilon=self.epsilon)
        positive(delta=self.delta)
        one_of(NEIGHBOURS, neighbours=self.neighbours)
        once_or_any = self.releases in (1, "any") and self.releases is not True
        if self.delta > 1 or type(self.proved) is not bool or not once_or_any:
            raise InvalidValueError(
                f"Expected delta={self.delta!r} <= 1, releases={self.releases!r} to be 1 or 'any', "
                f"and proved={self.proved!r} to be true or false."
            )


@dataclass(frozen=True)
class LocalGuarantee:
    """What one submission tells a database that nobody trusts: μ-GDP, and the exact ε of that at δ.

    It compares any two records ("replace"), whatever relation the model's guarantee uses.
    """

    mu: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        nonnegative(mu=self.mu, epsilon=self.epsilon)
        inside_unit_interval(delta=self.delta)


def rounded_up(value: float) -> float:
    """Return the least number of 28 bits above what any machine computes for the same."""
    return ceiling(value + abs(value) * _MARGIN)


def rounded_down(value: float) -> float:
    """Return the largest number of 28 bits below what any machine computes for the same."""
    return 0.0 - rounded_up(-value)


def ceiling(value: float) -> float:
    """Return the least number of 28 bits that is not below: for what was chosen, and not computed.

    >>> ceiling(1.0), ceiling(1.0 + 2**-40) == 1 + 2**-27, ceiling(-0.1) >= -0.1
    (1.0, True, True)
    """
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.ceil(math.ldexp(mantissa, BITS)), exponent - BITS)


def require_above(name: str, stated: float, follows: float) -> None:
    """Refuse a number that is less than what follows, or absurdly more."""
    if not (follows <= stated <= follows + BEYOND * abs(follows)):
        _refuse(name, stated, f"no less than {follows!r}, and hardly more")


def require_below(name: str, stated: float, follows: float) -> None:
    """Refuse a number that is more than what follows, or absurdly less."""
    if not (follows - BEYOND * abs(follows) <= stated <= follows):
        _refuse(name, stated, f"no more than {follows!r}, and hardly less")


def require_close(name: str, stated: float, follows: float) -> None:
    """Refuse a number that differs by more than rounding: for what bounds nothing."""
    if not math.isclose(stated, follows, rel_tol=BEYOND, abs_tol=1e-300):
        _refuse(name, stated, f"close to {follows!r}")


def require_equal(name: str, stated: object, follows: object) -> None:
    """Refuse anything else than what follows."""
    if stated != follows:
        _refuse(name, stated, repr(follows))


def local_guarantee(mu: float, delta: float) -> LocalGuarantee:
    """State what a submission that is μ-GDP keeps: μ rounded up, and its ε at δ too."""
    from blurfit.theory import gaussian  # `--help` reads this module and waits for no numbers

    stated = rounded_up(mu)
    return LocalGuarantee(stated, rounded_up(gaussian.epsilon_of(stated, delta)), delta)


def require_local(stated: LocalGuarantee, mu: float) -> None:
    """Refuse a statement about a submission that tells of less than its μ, or of absurdly more."""
    from blurfit.theory import gaussian  # `--help` reads this module and waits for no numbers

    require_above("local.mu", stated.mu, mu)
    kept = gaussian.epsilon_of(stated.mu, stated.delta)
    require_above("local.epsilon", stated.epsilon, kept)


def require_one(epsilon: float | None, delta: float | None) -> None:
    """Refuse a question that does not fix exactly one of ε and δ, or fixes it out of range."""
    if (epsilon is None) == (delta is None):
        raise InvalidValueError(
            f"Expected one of epsilon={epsilon!r} and delta={delta!r}: give the one that is "
            "fixed, and the other is computed."
        )
    if epsilon is not None:
        nonnegative(epsilon=epsilon)
    if delta is not None:
        inside_unit_interval(delta=delta)


def calibration_from(
    kind: type[Calibration],
    parts: Mapping[str, Any],
    fields: Mapping[str, Any],
    optional: tuple[str, ...] = (),
) -> Calibration:
    """Read what a calibration's `to_dict` wrote; refuse missing and unknown fields."""
    try:
        given = {
            name: parts[name](**value)
            if name in parts and (value is not None or name not in optional)
            else value
            for name, value in fields.items()
        }
        return kind(**given)
    except (AttributeError, TypeError) as error:
        raise InvalidValueError(
            f"Expected a calibration as `to_dict` writes it: {error}. Was it written by "
            "another version of blurfit?"
        ) from error


def _refuse(name: str, stated: object, expected: str) -> None:
    raise NotCertifiedError(
        f"Expected {name} to be {expected}, which follows from public facts and the noise, but "
        f"{stated!r} is stated. Do not rely on this calibration; make a new one."
    )


def right_by_approximate(epsilon: float, delta: float, neighbours: Neighbours = "replace") -> float:
    """Return how often, at most, a guess between two records is right under (ε, δ)-DP.

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
    """Return how often, at most, a guess between two records is right under μ-GDP.

    >>> right_by_gaussian(0.0), round(right_by_gaussian(0.2246), 3)
    (0.501, 0.546)
    """
    from scipy.special import ndtr

    nonnegative(mu=mu)
    one_of(NEIGHBOURS, neighbours=neighbours)
    steps = 2 if neighbours == "zero-out" else 1
    return min(1.0, float(ndtr(steps * mu / 2)) + _DISCRETE)


def in_hundred(right: float) -> int:
    """Round a share up to a number in 100: no promise is smaller than what holds."""
    return min(100, math.ceil(100 * right * (1 + 1e-12)))


def at_most(value: float, digits: int = 4) -> str:
    """Return a bound in so many digits, never rounded down.

    >>> at_most(2.00001), at_most(0.5), at_most(1234567.0)
    ('2.001', '0.5', '1.235e+06')
    """
    text = f"{value:.{digits}g}"
    if math.isfinite(value) and float(text) < value:
        step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
        text = f"{float(text) + step:.{digits}g}"
    return text
