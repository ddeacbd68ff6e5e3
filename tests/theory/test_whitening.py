"""Norms that neither overflow nor vanish, and public numbers that are checked before any record."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blurfit.errors import InvalidValueError
from blurfit.theory.maps import Whitening, into_ball, norms
from support.exact import norm_excess


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=15),
    st.floats(0.01, 1e4),
)
@settings(max_examples=300, deadline=None)
def test_the_ball_is_kept_in_floating_point(values: list[float], reach: float) -> None:
    u = into_ball(np.array(values), reach)
    assert norm_excess(u) <= 2 * (len(values) + 8) * 2.0**-52
    with np.errstate(over="ignore"):
        inside = norms(np.array(values)) <= reach
    if inside:
        assert np.allclose(u, np.array(values) / reach, rtol=1e-14, atol=1e-300)


def test_the_ball_is_kept_in_many_dimensions() -> None:
    generator = np.random.default_rng(3)
    for p in (1, 13, 200):
        x = generator.normal(size=(50, p)) * np.exp(generator.normal(size=(50, 1)) * 200)
        excess = max(norm_excess(u) for u in into_ball(x, 1.0))
        assert excess <= 2 * (p + 8) * 2.0**-52


def test_a_naive_solve_would_fail_for_some_records_and_not_for_others() -> None:
    """With L = diag(1, 1e-320) it overflows for one record and not for the other; W = L⁻¹ cannot
    even be announced."""
    lower = np.diag([1.0, 1e-320])
    with np.errstate(all="ignore"):
        ordinary, other = (np.linalg.solve(lower, v) for v in ([0.5, 0.0], [0.5, 0.5]))
        inverse = np.diag(1 / np.diagonal(lower))
    assert np.isfinite(ordinary).all()
    assert not np.isfinite(other).all()
    with pytest.raises(InvalidValueError, match="matrix"):
        Whitening([0.0, 0.0], inverse, [0.0, 0.0])


@pytest.mark.parametrize(
    "change",
    [
        *({"mean": one} for one in ([math.nan, 0.0], [1e7, 0.0], [0.0])),
        *({"matrix": [[1.0, 0.0], one]} for one in ([0.0, 0.0], [math.inf, 1.0], [1e13, 1.0])),
        {"matrix": [[1.0, 1e-9], [0.0, 1.0]]},
        {"matrix": "words"},
        {"coefficients": [0.0, math.inf]},
        *({"intercept": one} for one in (math.nan, 1e7)),
    ],
)
def test_public_numbers_are_refused_before_a_record_is_read(change) -> None:
    fine = {"mean": [0.0, 0.0], "matrix": np.eye(2), "coefficients": [0.0, 0.0], "intercept": 0.0}
    Whitening(**fine)
    with pytest.raises(InvalidValueError):
        Whitening(**(fine | change))
