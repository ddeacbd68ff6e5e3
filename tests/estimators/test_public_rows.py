"""Public rows of the features: exact logistic and Poisson models, and when they do not match."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from blurfit import Budget, BudgetExceededError, InvalidValueError
from blurfit.errors import InfeasibleError
from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor
from blurfit.theory.moments import sensitivity

pytestmark = pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
BOUNDS = {"age": (18, 90), "region": ["north", "south", "west"]}


def people(count: int, seed: int, youngest: float = 18) -> tuple[pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(seed)
    age = generator.uniform(youngest, 90, count)
    region = generator.choice(BOUNDS["region"], count)
    odds = (age - 50) / 6 + 1.0 * (region == "west")
    return pd.DataFrame({"age": age, "region": region}), (
        generator.uniform(size=count) < 1 / (1 + np.exp(-odds))
    ).astype(int)


def test_labels_are_learned_by_exact_logistic_regression() -> None:
    X, y = people(60_000, 0)
    public, _ = people(40_000, 1)
    fitted = MomentPerturbationClassifier(
        epsilon=5.0, bounds=BOUNDS, classes=[0, 1], public_X=public, random_state=0
    ).fit(X, y)
    design = np.column_stack([X["age"], X["region"] == "south", X["region"] == "west"])
    plain = LogisticRegression(C=1e6, max_iter=1000).fit(design, y)
    assert fitted.model_.link == "logistic"
    assert fitted.coef_[0] == pytest.approx(plain.coef_[0], abs=0.12)
    fresh, _ = people(2000, 2)
    expected = plain.predict_proba(
        np.column_stack([fresh["age"], fresh["region"] == "south", fresh["region"] == "west"])
    )
    assert np.abs(fitted.predict_proba(fresh) - expected).max() < 0.03
    np.testing.assert_allclose(fitted.predict_proba(fresh), fitted.model_.predict_proba(fresh))
    assert fitted.predict(fresh).tolist() == fitted.model_.predict(fresh).astype(int).tolist()
    for one, truth in zip(fitted.estimates(0.9999), [-50 / 6, 1 / 6, 0, 1], strict=True):
        assert one.lower < truth < one.upper, one.name
    assert fitted.balance_.effective_rows > 30_000
    assert "public rows" in fitted.model_.method
    assert "log-odds" in str(fitted.summary())
    assert fitted.model_.public_rows == 40_000


def test_the_target_weighs_as_much_as_all_others() -> None:
    """ω = R makes the noise on Σyx as small as if it alone were released: 2R/μ."""
    X, y = people(1000, 0)
    model = MomentPerturbationClassifier(bounds=BOUNDS, classes=[0, 1], public_X=X).fit(X, y)
    form, calibration = model.agreement_.form, model.agreement_.calibration
    weights = model.agreement_.weights
    *features, target = weights.columns
    radius = math.hypot(weights.constant, *features)
    assert target == pytest.approx(radius)
    noise = calibration.sigma / math.sqrt(2) / target
    assert noise == pytest.approx(2 * radius / calibration.mu, rel=1e-3)
    for other in (0.8 * target, 1.25 * target):
        length = math.hypot(*features, other)
        assert (
            sensitivity(form.constant, length) / other
            > sensitivity(form.constant, form.radius) / target
        )


def test_counts_are_learned_by_poissons() -> None:
    generator = np.random.default_rng(0)
    hours = generator.uniform(0, 40, (40_000, 1))
    visits = generator.poisson(np.exp(0.5 + 0.03 * hours[:, 0])).clip(0, 20)
    fitted = MomentPerturbationRegressor(
        epsilon=5.0,
        bounds=(0, 40),
        target_bounds=(0, 20),
        family="poisson",
        public_X=generator.uniform(0, 40, (20_000, 1)),
        random_state=0,
    ).fit(hours, visits)
    assert fitted.coef_ == pytest.approx([0.03], abs=0.002)
    assert fitted.predict([[20.0]]) == pytest.approx(np.exp(1.1), rel=0.05)
    assert fitted.predict([[20.0]]) == pytest.approx(fitted.model_.predict({"x0": [20.0]}))
    assert fitted.moments_.fit(public={"x0": hours[:, 0]}).link == "linear"


def test_numbers_are_learned_with_public_rows_too() -> None:
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 1, (30_000, 2))
    y = X[:, 0] - X[:, 1] + generator.normal(0, 0.1, 30_000)
    fitted = MomentPerturbationRegressor(
        epsilon=5.0,
        bounds=(0, 1),
        target_bounds=(-2, 2),
        public_X=generator.uniform(0, 1, (10_000, 2)),
        random_state=0,
    ).fit(X, y)
    assert fitted.coef_ == pytest.approx([1, -1], abs=0.1)
    (low, high), *_ = fitted.model_.prediction_intervals({"x0": [0.5], "x1": [0.5]})
    assert high - low == pytest.approx(2 * 1.96 * 0.1, rel=0.3)


def test_public_rows_that_cannot_match_are_refused_and_the_release_stands() -> None:
    X, y = people(50_000, 0)
    old, _ = people(3000, 1, youngest=85)
    model = MomentPerturbationClassifier(
        epsilon=10.0, bounds=BOUNDS, classes=[0, 1], public_X=old, random_state=0
    )
    with pytest.raises(InfeasibleError, match=r"public rows.*moments_\.fit\(\) learns"):
        model.fit(X, y)
    assert model.moments_.fit().link == "linear"


def test_an_earlier_promise_does_not_outlive_a_fit_that_fails() -> None:
    X, y = people(50_000, 0)
    old, _ = people(3000, 1, youngest=85)
    model = MomentPerturbationClassifier(epsilon=0.5, bounds=BOUNDS, classes=[0, 1]).fit(X, y)
    with Budget(epsilon=0.1, delta=1e-6), pytest.raises(BudgetExceededError):
        model.fit(X, y)  # nothing is spent, so what was found before stands
    assert model.guarantee_.epsilon == 0.5
    model.set_params(epsilon=10.0, public_X=old, random_state=0)
    with pytest.raises(InfeasibleError):
        model.fit(X, y)
    assert model.moments_.agreement.epsilon == 10.0
    assert not hasattr(model, "guarantee_")
    assert not hasattr(model, "model_")


def test_several_classes_have_a_curve_each() -> None:
    X, y = people(20_000, 0)
    y = y + (X["age"] > 80)  # young and not, old and not, very old
    model = MomentPerturbationClassifier(
        epsilon=10.0, bounds=BOUNDS, classes=[0, 1, 2], public_X=people(2000, 1)[0], random_state=0
    ).fit(X, y)
    chances = model.predict_proba(X)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert chances == pytest.approx(model.model_.predict_proba(X))
    assert model.model_.link == "logistic"
    assert chances.mean(axis=0) == pytest.approx(np.bincount(y) / len(y), abs=0.08)
    assert np.mean(model.predict(X) == y) > 0.6


def test_what_public_rows_cannot_do() -> None:
    X, y = people(500, 0)
    numbers = X[["age"]]
    with pytest.raises(ValueError, match="feature names should match"):
        MomentPerturbationClassifier(bounds=(18, 90), classes=[0, 1], public_X=X).fit(numbers, y)
    with pytest.raises(InvalidValueError, match="family='gamma' to be one of"):
        MomentPerturbationRegressor(bounds=(18, 90), target_bounds=(0, 1), family="gamma").fit(
            numbers, y
        )
    with pytest.raises(InvalidValueError, match="lower bound 0"):
        MomentPerturbationRegressor(
            bounds=(18, 90), target_bounds=(-1, 1), family="poisson", public_X=numbers
        ).fit(numbers, y)
