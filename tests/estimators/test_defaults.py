"""Defaults depend on public facts alone, in the way that their formulas say."""

import inspect
import math

import pytest

from blurfit.estimators.defaults import DEFAULT_SPLIT, PublicFacts
from blurfit.theory.gaussian import mu_of


def facts(rows: int = 2**15, epsilon: float = 1.0, *, dimension: int = 14, label: bool = False):
    return PublicFacts(dimension, rows, epsilon, 0.01, label=label)


def test_the_ball_is_whole_for_many_rows_and_never_larger() -> None:
    assert facts(2**25).ball() == math.sqrt(14)
    assert facts(2**25, label=True).ball() == 3 * math.sqrt(14)
    assert facts(100, epsilon=1e6).ball() <= math.sqrt(14)


def test_the_ball_falls_with_the_fourth_root_of_rows_and_of_mu() -> None:
    small, smaller = facts(2**12).ball(), facts(2**8).ball()
    assert small / smaller == pytest.approx(2.0)
    ratio = mu_of(0.2, 0.01) / mu_of(0.1, 0.01)
    assert facts(2**8, 0.2).ball() / facts(2**8, 0.1).ball() == pytest.approx(ratio**0.25)


def test_the_ball_begins_to_shrink_where_the_formula_says() -> None:
    whole = math.ceil(256 * 14**1.5 / mu_of(1.0, 0.01))
    assert facts(whole).ball() == pytest.approx(math.sqrt(14))
    assert facts(whole // 16).ball() == pytest.approx(math.sqrt(14) / 2, rel=1e-3)


def test_no_default_can_read_data() -> None:
    """Nothing but numbers that are public goes in."""
    assert set(inspect.signature(PublicFacts).parameters) == {
        "dimension",
        "rows",
        "epsilon",
        "delta",
        "label",
    }
    assert 0 < DEFAULT_SPLIT < 1
