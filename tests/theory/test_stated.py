"""What is stated is on the safe side of the exact number, and hardly beyond; nothing else is taken.

The exact numbers come from another route: mpmath, with forty digits, from the stated ones alone.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from blurfit.errors import NotCertifiedError
from blurfit.theory.moments import (
    BITS,
    Reach,
    calibrate_moment,
    ceiling,
    require_above,
    require_equal,
    rounded_down,
    rounded_up,
)

GENERATOR = np.random.default_rng(27)
HARDLY = Fraction(1, 2**24)


def delta_by_mpmath(mu, epsilon) -> mpmath.mpf:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), whatever cancels."""
    with mpmath.workdps(60):  # of which some twenty cancel
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        sure = mpmath.ncdf(mu / 2 - epsilon / mu)
        return sure - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("sign", [1, -1])
def test_few_bits_on_the_safe_side(sign: int) -> None:
    values = sign * np.exp(GENERATOR.uniform(-600, 600, 2000))
    for value in [*values.tolist(), sign * 1.0, sign * (1 - 2.0**-53), sign * 2.0**-20]:
        above, below, least = rounded_up(value), rounded_down(value), ceiling(value)
        for one in (above, below, least):
            assert math.ldexp(math.frexp(one)[0], BITS) % 1 == 0
        exact = Fraction(value)
        assert Fraction(below) < exact <= Fraction(least) <= Fraction(above)
        assert exact < Fraction(above)
        for one in (above, below):
            assert abs(Fraction(one) - exact) <= abs(exact) * HARDLY / 4
        require_above("it", above, value * (1 + sign * 1e-10))  # what another machine might find
    assert rounded_up(0.0) == rounded_down(0.0) == ceiling(0.0) == 0
    assert math.copysign(1, rounded_down(0.0)) == 1


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("local_epsilon", [None, 0.01, 3.0])
def test_stated_noise_keeps_the_promise_exactly(neighbours: str, local_epsilon) -> None:
    """(ε, δ) of the sums, μ and ε of a submission: from σ and the reach as they are stated."""
    for _ in range(60):
        epsilon = math.exp(GENERATOR.uniform(math.log(1e-3), math.log(20)))
        delta = math.exp(GENERATOR.uniform(math.log(1e-12), math.log(0.1)))
        reach = Reach(*GENERATOR.uniform(0.5, 3, 2).tolist())
        quorum = int(math.exp(GENERATOR.uniform(0, 14)))
        local = {} if local_epsilon is None else {"local_epsilon": local_epsilon}
        asked = {"reach": reach, "quorum": quorum, "neighbours": neighbours, "local_delta": 1e-6}
        found = calibrate_moment(epsilon, delta, **asked, **local)
        assert Fraction(found.reach.sums) >= Fraction(reach.sums)
        assert Fraction(found.reach.submission) >= Fraction(reach.submission)
        assert Fraction(found.mu) * Fraction(found.sigma) >= Fraction(found.reach.sums)
        assert delta_by_mpmath(found.mu, epsilon) <= mpmath.mpf(delta)
        square = Fraction(found.local.mu * found.sigma / found.reach.submission) ** 2
        assert Fraction(quorum) <= square <= Fraction(quorum) * (1 + 4 * HARDLY)
        assert delta_by_mpmath(found.local.mu, found.local.epsilon) <= mpmath.mpf(1e-6)
        if local_epsilon is not None:
            assert found.local.epsilon <= local_epsilon
        least = [delta_by_mpmath(found.mu * (1 + 2.0**-21), epsilon) > delta]
        if local_epsilon is not None:
            more = found.local.mu * (1 + 2.0**-21)
            least.append(delta_by_mpmath(more, local_epsilon) > mpmath.mpf(1e-6))
        assert any(least), "hardly more noise than is needed"


def test_less_or_far_more_than_what_follows_is_refused() -> None:
    require_above("mu", 0.3 * (1 + 1e-9), 0.3)
    require_above("epsilon", 0.0, 0.0)
    for wrong in (0.3 * (1 - 1e-9), 0.3 * (1 + 1e-6), 0.0, math.nan, math.inf):
        with pytest.raises(NotCertifiedError, match=r"Expected mu to be no less than 0\.3, and"):
            require_above("mu", wrong, 0.3)


def test_words_are_equal() -> None:
    require_equal("releases", ("any", True), ("any", True))
    with pytest.raises(NotCertifiedError, match="but 1 is stated"):
        require_equal("releases", 1, "any")
