"""What a document states: rounded to the safe side when made, checked by inequality when read.

Two machines do not compute the same bits: another kernel of the linear algebra, another library or
a browser rounds otherwise. So nobody computes a stated number again to compare it for equality.
Whoever makes a document rounds what was computed to `BITS` bits, to the side on which the promise
still follows; whoever reads it computes the number on their own machine and checks that what is
stated is on that side, and not far beyond.

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
"""

import math

from blurfit.errors import NotCertifiedError
from blurfit.theory import gaussian
from blurfit.theory.setting import LocalGuarantee

BITS = 28
BEYOND = 2.0**-24  # how much further than necessary a stated number may lie on its safe side
_MARGIN = 2.0**-30  # far more than machines differ by


def rounded_up(value: float) -> float:
    """The least number of 28 bits that is above what any machine computes for the same."""
    return ceiling(value + abs(value) * _MARGIN)


def rounded_down(value: float) -> float:
    """The largest number of 28 bits that is below what any machine computes for the same."""
    return 0.0 - rounded_up(-value)


def ceiling(value: float) -> float:
    """The least number of 28 bits that is not below: for what was chosen, and not computed.

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
    """What a submission that is μ-GDP keeps, as it is stated: μ rounded up, and its ε at δ too."""
    stated = rounded_up(mu)
    return LocalGuarantee(stated, rounded_up(gaussian.epsilon_of(stated, delta)), delta)


def require_local(stated: LocalGuarantee, mu: float) -> None:
    """Refuse a statement about a submission that tells of less than its μ, or of absurdly more."""
    require_above("local.mu", stated.mu, mu)
    kept = gaussian.epsilon_of(stated.mu, stated.delta)
    require_above("local.epsilon", stated.epsilon, kept)


def _refuse(name: str, stated: object, expected: str) -> None:
    raise NotCertifiedError(
        f"Expected {name} to be {expected}, which follows from public facts and the noise, but "
        f"{stated!r} is stated. Do not rely on this calibration; make a new one."
    )
