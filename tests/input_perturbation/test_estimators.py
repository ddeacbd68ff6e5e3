"""Sums in one pass are what contributors would send; several models share one promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import (
    Binary,
    Budget,
    InfeasibleError,
    InvalidValueError,
    NotPrivateWarning,
    Numeric,
    Schema,
)
from blurfit.estimators import InputPerturbationClassifier, InputPerturbationRegressor
from blurfit.estimators.passes import Rows
from blurfit.input_perturbation.calibration import PublicInput
from blurfit.input_perturbation.estimators import (
    InputModel,
    clean_sums,
    gaussian_share,
    guarantee_of,
    share,
)
from blurfit.input_perturbation.losses import LogisticLoss
from blurfit.theory.gaussian import delta_of, mu_of

COLUMNS = (Numeric("a", -1, 3), Numeric("b", 0, 10), Numeric("c", -5, 5))
ROWS = np.random.default_rng(0).uniform(-2, 8, (3000, 3))  # some are outside of the bounds
TARGETS = (Numeric("y", 0, 100), Binary("z"))
ANSWERS = (
    np.random.default_rng(1).uniform(0, 100, 3000),
    np.random.default_rng(2).integers(0, 2, 3000),
)
KINDS = (InputPerturbationRegressor, InputPerturbationClassifier)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("place", [0, 1])
def test_one_pass_is_the_sum_of_what_each_row_would_send(place: int, intercept: bool) -> None:
    target = TARGETS[place]
    schema = Schema(COLUMNS, target, intercept)
    public = KINDS[place](epsilon=20.0).public_input_for(schema, len(ROWS))
    encoded = np.column_stack(
        [one.scale(answers) for one, answers in zip(TARGETS, ANSWERS, strict=True)]
    )
    found = clean_sums(public, schema, Rows(ROWS, encoded, COLUMNS).joint, len(ROWS), place)
    records = dict(zip("abc", ROWS.T, strict=True)) | {target.name: ANSWERS[place]}
    q, p, _ = public.loss.terms(*schema.encode(records))
    assert found.count == 3000
    np.testing.assert_allclose(found.gram, q.T @ q, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(found.moment, p.sum(axis=0), rtol=1e-10, atol=1e-9)


def test_several_classes_share_the_promise_and_the_ball_is_public() -> None:
    schema = Schema(COLUMNS, TARGETS[1])
    estimator = InputPerturbationClassifier(
        epsilon=30.0, delta=1e-6, local_epsilon=200.0, local_delta=1e-6
    )
    one, three = (estimator.public_input_for(schema, 3000, models) for models in (1, 3))
    assert (one.epsilon, one.delta) == (30.0, 1e-6)
    # as they are stated: rounded up in the twelfth digit
    assert 3 * three.epsilon <= 30.0 * (1 + 1e-11)
    assert 3 * three.delta <= 1e-6 * (1 + 1e-11)
    assert 3 * three.calibration.kept.epsilon <= 30.0
    local = three.calibration.local
    assert mu_of(local.epsilon, local.delta) * np.sqrt(3) <= mu_of(200.0, 1e-6) * (1 + 1e-6)
    schema = Schema(COLUMNS, TARGETS[0])
    by_default = InputPerturbationRegressor(epsilon=20.0).public_input_for(schema, 3000)
    again = InputPerturbationRegressor(epsilon=20.0).public_input_for(schema, 3000)
    assert by_default == again  # of public terms alone
    stated = InputPerturbationRegressor(epsilon=20.0, weight_bound=0.7)
    setting = stated.public_input_for(schema, 3000).calibration.setting
    assert setting.weight_bound == 0.7
    assert by_default.calibration.setting.weight_bound != 0.7


@given(st.floats(0.01, 20), st.floats(1e-12, 1e-3), st.integers(2, 50))
def test_gaussian_shares_compose_to_the_whole(epsilon, delta, releases) -> None:
    """√K·μ(ε', δ/K) is at most μ(ε, δ), and not below it by more than rounding."""
    each, each_delta = gaussian_share(epsilon, delta, releases)
    together = math.sqrt(releases) * mu_of(each, each_delta)
    assert delta_of(together * (1 - 1e-9), epsilon) <= delta
    assert delta_of(together * (1 + 1e-9), epsilon) >= delta


@given(st.floats(0, 1e-6), st.floats(1e-12, 0.999), st.integers(2, 100))
def test_a_share_is_never_nothing(epsilon, delta, models) -> None:
    """However little ε is: a share of zero could not be calibrated."""
    assert gaussian_share(epsilon, delta, models)[0] > 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (-1, 0.1), ("1", 0.1), (1, 0), (1, 1)])
def test_bad_promises_are_named(epsilon, delta) -> None:
    assert share(1.0, 1e-6, 5) == (0.2, 1e-6 / 5)
    with pytest.raises(InvalidValueError, match=f"epsilon={epsilon!r}|delta={delta!r}"):
        share(epsilon, delta, 3)


@pytest.mark.parametrize("models", range(1, 60))
def test_what_division_rounds_is_put_back(models) -> None:
    classes = list(range(models)) if models > 2 else [0, 1]
    estimator = InputPerturbationClassifier(bounds=(0, 1), classes=classes)
    public = estimator.public_input_for(Schema(COLUMNS, TARGETS[1]), 30, models)
    found = guarantee_of(public, 30, models, ())
    assert (found.epsilon, found.delta) == (1.0, 1e-6)
    assert ("divided among" in found.statement) == (models > 1)


def test_words_and_the_papers_rule_which_is_not_proved() -> None:
    X, y = np.linspace(0, 1, 300)[:, None], np.linspace(0, 1, 300)
    bounds = {"bounds": (0, 1), "target_bounds": (0, 1), "neighbours": "zero-out"}
    kept = InputPerturbationRegressor(**bounds).fit(X, y).guarantee_
    assert kept.statement.startswith("The coefficients are (epsilon=1, delta=1e-06)")
    assert "leaving one row out" in kept.statement
    assert "nothing is promised against them" in kept.statement
    paper = InputPerturbationRegressor(rule="published", delta=0.01, **bounds)
    kept = paper.fit(X, y).guarantee_
    assert (kept.epsilon, kept.delta, kept.private) == (None, None, False)
    assert kept.statement.startswith("NOT PROVED")
    with pytest.warns(NotPrivateWarning):
        both = paper.set_params(random_state=1).fit(X, y).guarantee_.statement
    assert "NOT PRIVATE" in both
    assert "NOT PROVED" in both


@pytest.mark.parametrize("approximation", ["taylor", "chebyshev"])
def test_probabilities_are_calibrated_as_far_as_linear_ones_can_be(approximation) -> None:
    """Labels drawn with P = ½ + x·v/2: the exact minimiser of the quadratic must give P back."""
    generator, count = np.random.default_rng(0), 200_000
    schema = Schema(COLUMNS, TARGETS[1])
    values = generator.uniform((-1, 0, -5), (3, 10, 5), (count, 3))
    table = dict(zip("abc", values.T, strict=True)) | {"z": np.zeros(count)}
    x = schema.encode(table).features
    effects = np.array([0.5, 0.3, -0.2, 0.1])
    y = np.where(generator.random(count) < 0.5 + x @ effects / 2, 1.0, -1.0)
    loss = LogisticLoss(1.0, approximation, 3.0)
    q, p, _ = loss.terms(x, y)
    best = np.linalg.lstsq(q.T @ q, p.sum(axis=0), rcond=None)[0]
    facts = {"dimension": 4, "quorum": 1000, "epsilon": 100, "delta": 1e-6, "weight_bound": 3.0}
    model = InputModel(PublicInput.agree(loss, **facts), schema, best, count)
    told = model.coefficients
    likely = told.intercept + values @ np.array(list(told.effects.values()))
    assert np.abs(likely - (0.5 + x @ effects / 2)).max() < 0.02


def test_noise_beyond_its_grid_is_refused_before_anything_is_spent() -> None:
    """Seen before: an ε this small was paid, and the noise then refused."""
    X = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    with (
        Budget(epsilon=1.0, delta=1e-3) as budget,
        pytest.raises(InfeasibleError, match="`epsilon` must be"),
    ):
        InputPerturbationClassifier(epsilon=1e-7, delta=1e-9, bounds=(-1, 1)).fit(X, X[:, 0] > 0)
    assert budget.spent().epsilon == 0
