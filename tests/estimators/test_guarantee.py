import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import InvalidValueError
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.grid import DISCRETE_SHARE
from blurfit.estimators.guarantee import SEEDED, FitGuarantee, gaussian_share, share
from blurfit.model.published import PublishedModel
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.theory.gaussian import delta_of, mu_of


def model(**terms) -> PublishedModel:
    schema = Schema([Numeric("a", 0, 1)], Binary("b"))
    settings = {"epsilon": 1.0, "delta": 1e-6, "quorum": 100, **terms}
    return PublishedModel(
        Agreement.propose(schema, **settings), np.zeros(2), 100, 0.0, None, "blurfit"
    )


@given(
    st.floats(0.01, 20), st.floats(1e-12, 1e-3), st.integers(2, 50), st.sampled_from([1.0, 0.999])
)
def test_gaussian_shares_compose_to_the_whole(epsilon, delta, models, usable) -> None:
    """√K·μ(ε', δ'/K) is at most μ(ε, δ'), and not below it by more than rounding."""
    each, each_delta = gaussian_share(epsilon, delta, models, usable)
    together = math.sqrt(models) * mu_of(each, usable * each_delta)
    assert delta_of(together * (1 - 1e-9), epsilon) <= usable * delta
    assert delta_of(together * (1 + 1e-9), epsilon) >= usable * delta


@given(st.floats(0.01, 20), st.integers(2, 20))
def test_moments_compose_better_than_basic_composition(epsilon, models) -> None:
    assert share("moment", epsilon, 1e-6, models)[0] > epsilon / models


@pytest.mark.parametrize("models", [2, 3, 10])
def test_the_calibrated_noise_of_all_models_keeps_the_promise(models) -> None:
    epsilon, delta = share("moment", 1.0, 1e-6, models)
    calibration = model(epsilon=epsilon, delta=delta).agreement.calibration
    total = math.sqrt(models) * calibration.mu
    assert delta_of(total, 1.0) <= 1e-6 * (1 - DISCRETE_SHARE)
    assert delta_of(1.001 * total, 1.0) > 1e-6 * (1 - DISCRETE_SHARE)


@pytest.mark.parametrize("mechanism", ["input", "moment"])
def test_one_model_spends_all(mechanism) -> None:
    assert share(mechanism, 0.7, 1e-5, 1) == (0.7, 1e-5)


def test_input_is_divided() -> None:
    assert share("input", 1.0, 1e-6, 5) == (0.2, 1e-6 / 5)


@given(st.floats(0, 1e-6), st.floats(1e-12, 0.999), st.integers(2, 100))
def test_a_share_is_never_nothing(epsilon, delta, models) -> None:
    """However little ε is: a share of zero could not be calibrated."""
    assert gaussian_share(epsilon, delta, models)[0] > 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (-1, 0.1), ("1", 0.1), (1, 0), (1, 1)])
def test_bad_promises_are_named(epsilon, delta) -> None:
    with pytest.raises(InvalidValueError, match=f"epsilon={epsilon!r}|delta={delta!r}"):
        share("input", epsilon, delta, 3)


def test_words() -> None:
    kept = FitGuarantee.of([model()], 1.0, 1e-6)
    assert (kept.epsilon, kept.delta, kept.neighbours, kept.private) == (1.0, 1e-6, "replace", True)
    assert "replacing one row by any other" in kept.statement
    assert "epsilon=1, delta=1e-06" in kept.statement
    assert "100 rows" in kept.statement
    assert "NOT" not in kept.statement
    assert "split" not in kept.statement


def test_words_for_the_weaker_relation() -> None:
    kept = FitGuarantee.of([model(neighbours="zero-out")], 1.0, 1e-6)
    assert kept.neighbours == "zero-out"
    assert "leaving one row out" in kept.statement


def test_a_seed_voids_it() -> None:
    kept = FitGuarantee.of([model()], 1.0, 1e-6, caveats=[SEEDED])
    assert not kept.private
    assert kept.statement.startswith(SEEDED)


def test_the_papers_rule_is_not_proved() -> None:
    paper = model(mechanism="input", rule="published", weight_bound=1.0, delta=0.01)
    kept = FitGuarantee.of([paper], 1.0, 0.01)
    assert not kept.private
    assert kept.statement.startswith("NOT PROVED")
    both = FitGuarantee.of([paper], 1.0, 0.01, caveats=[SEEDED])
    assert "NOT PRIVATE" in both.statement
    assert "NOT PROVED" in both.statement


@pytest.mark.parametrize(
    ("mechanism", "word"), [("input", "basic composition"), ("moment", "Gaussian composition")]
)
def test_a_split_promise_is_said(mechanism, word) -> None:
    some = [model(mechanism=mechanism, weight_bound=1.0)] * 3
    statement = FitGuarantee.of(some, 1.0, 1e-6).statement
    assert "split over 3 models" in statement
    assert word in statement
