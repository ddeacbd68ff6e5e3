"""Defaults depend on public facts alone, in the way that their formulas say."""

import inspect
import math

import pytest

from blurfit.input_perturbation.estimators import DEFAULT_SPLIT, public_ball
from blurfit.theory.gaussian import mu_of


def ball(rows: int = 2**15, epsilon: float = 1.0, *, dimension: int = 14, label: bool = False):
    return public_ball(dimension, rows, epsilon, 0.01, label=label)


def test_the_ball_is_that_of_the_formula() -> None:
    assert ball(2**25) == math.sqrt(14)
    assert ball(2**25, label=True) == 3 * math.sqrt(14)
    assert ball(100, epsilon=1e6) <= math.sqrt(14)
    small, smaller = ball(2**12), ball(2**8)
    assert small / smaller == pytest.approx(2.0)
    ratio = mu_of(0.2, 0.01) / mu_of(0.1, 0.01)
    assert ball(2**8, 0.2) / ball(2**8, 0.1) == pytest.approx(ratio**0.25)
    whole = math.ceil(256 * 14**1.5 / mu_of(1.0, 0.01))
    assert ball(whole) == pytest.approx(math.sqrt(14))
    assert ball(whole // 16) == pytest.approx(math.sqrt(14) / 2, rel=1e-3)


def test_no_default_can_read_data() -> None:
    """Nothing but numbers that are public goes in."""
    public = ["dimension", "rows", "epsilon", "delta", "label"]
    assert sorted(inspect.signature(public_ball).parameters) == sorted(public)
    assert 0 < DEFAULT_SPLIT < 1
