import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import InvalidValueError
from blurfit.agreement.agreement import Agreement
from blurfit.estimators.base import SEEDED, FitGuarantee, gaussian_share, share
from blurfit.model.model import PublishedModel
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.theory.gaussian import delta_of, mu_of


def model(**terms) -> PublishedModel:
    schema = Schema([Numeric("a", 0, 1)], Binary("b"))
    settings = {"epsilon": 1.0, "delta": 1e-6, "quorum": 100, **terms}
    agreement, weights = Agreement.propose(schema, **settings), np.zeros((1, 2))
    return PublishedModel(agreement, "b", ("a",), weights, 100, "by hand", held=True)


@given(st.floats(0.01, 20), st.floats(1e-12, 1e-3), st.integers(2, 50))
def test_gaussian_shares_compose_to_the_whole(epsilon, delta, releases) -> None:
    """√K·μ(ε', δ/K) is at most μ(ε, δ), and not below it by more than rounding."""
    each, each_delta = gaussian_share(epsilon, delta, releases)
    together = math.sqrt(releases) * mu_of(each, each_delta)
    assert delta_of(together * (1 - 1e-9), epsilon) <= delta
    assert delta_of(together * (1 + 1e-9), epsilon) >= delta


def test_input_is_divided() -> None:
    assert share(1.0, 1e-6, 5) == (0.2, 1e-6 / 5)
    assert share(0.7, 1e-5, 1) == (0.7, 1e-5)


@given(st.floats(0, 1e-6), st.floats(1e-12, 0.999), st.integers(2, 100))
def test_a_share_is_never_nothing(epsilon, delta, models) -> None:
    """However little ε is: a share of zero could not be calibrated."""
    assert gaussian_share(epsilon, delta, models)[0] > 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (-1, 0.1), ("1", 0.1), (1, 0), (1, 1)])
def test_bad_promises_are_named(epsilon, delta) -> None:
    with pytest.raises(InvalidValueError, match=f"epsilon={epsilon!r}|delta={delta!r}"):
        share(epsilon, delta, 3)


def test_words() -> None:
    kept = FitGuarantee.of(model())
    assert (kept.epsilon, kept.delta, kept.neighbours, kept.private) == (1.0, 1e-6, "replace", True)
    assert "replacing one row by any other" in kept.statement
    assert "epsilon=1, delta=1e-06" in kept.statement
    assert "100 rows" in kept.statement
    assert "NOT" not in kept.statement
    assert "split" not in kept.statement
    assert "They saw every record, before any noise: nothing is promised against them" in (
        kept.statement
    )
    kept = FitGuarantee.of(model(neighbours="zero-out"))
    assert kept.neighbours == "zero-out"
    assert "leaving one row out" in kept.statement
    one = replace(model(mechanism="input", weight_bound=1.0, epsilon=1 / 3), models=3)
    kept = FitGuarantee.of(one)
    assert kept.epsilon == 1.0
    assert "divided among 3 models" in kept.statement
    assert "basic composition" in kept.statement
    assert "Further models of `moments_` are free" in FitGuarantee.of(model()).statement
    by_input = FitGuarantee.of(model(mechanism="input", weight_bound=1.0)).statement
    assert "moments_" not in by_input


def test_the_papers_rule_is_not_proved() -> None:
    paper = model(mechanism="input", rule="published", weight_bound=1.0, delta=0.01)
    kept = FitGuarantee.of(paper)
    assert (kept.epsilon, kept.delta, kept.private) == (None, None, False)
    assert kept.statement.startswith("NOT PROVED")
    both = FitGuarantee.of(replace(paper, caveats=(SEEDED,)))
    assert "NOT PRIVATE" in both.statement
    assert "NOT PROVED" in both.statement
