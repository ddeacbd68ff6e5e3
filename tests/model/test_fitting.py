"""From sums to a model: against least squares of the rows, where noise hardly matters."""

import numpy as np
import pytest

from blurfit import Schema
from blurfit.errors import InvalidValueError
from blurfit.learning.inference import infer
from blurfit.model.fitting import coefficient_path
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.schema.formulas import Formula
from blurfit.schema.schema import units
from support.joint_release import SCHEMA, TRUTH, people, release

COUNT = 20_000
CLEAR = release(COUNT, epsilon=1e6)  # noise far below what rounding shows
ALL = Formula("income", ("age", "education", "region", "married"))


def fit(moments: PublishedMoments, formula: Formula, **options: float) -> PublishedModel:
    return moments.fit(target=formula.target, features=formula.features, **options)


def design(table: dict[str, np.ndarray]) -> np.ndarray:
    """In the user's units, with contrasts to the north."""
    regions = [table["region"] == level for level in ("south", "west")]
    columns = [table["age"], table["education"], *regions, table["married"]]
    return np.column_stack([np.ones(len(table["age"])), *columns])


def least_squares() -> np.ndarray:
    table = people(COUNT, 0)
    return np.linalg.lstsq(design(table), table["income"], rcond=None)[0]


def test_without_noise_inference_is_least_squares_of_the_rows() -> None:
    (found,) = fit(CLEAR, ALL).inference
    names = ("(intercept)", "age", "education", "region=south", "region=west", "married")
    assert found.names == names
    assert found.coefficients == pytest.approx(least_squares(), rel=1e-3, abs=1)
    table = people(COUNT, 0)
    rest = table["income"] - design(table) @ least_squares()
    variance = rest @ rest / (COUNT - 6)
    expected = variance * np.linalg.inv(design(table).T @ design(table))
    assert np.sqrt(np.diag(found.sampling)) == pytest.approx(np.sqrt(np.diag(expected)), rel=0.02)
    assert found.residual_variance == pytest.approx(variance, rel=0.01)


def test_predictions_are_those_of_the_rows() -> None:
    fresh = people(500, 5)
    expected = design(fresh) @ least_squares()
    for options in ({}, {"ridge": 0.0}):
        assert fit(CLEAR, ALL, **options).predict(fresh) == pytest.approx(expected, rel=2e-3)


def test_a_class_is_told_for_each_level_and_a_reason_stands_for_all() -> None:
    model = fit(CLEAR, Formula("region", ("income", "age")))
    assert model.weights.shape == (3, 3)
    assert len(model.inference) == 3
    total = sum(one.coefficients for one in model.inference)
    assert total == pytest.approx([1, 0, 0], abs=1e-4)  # probabilities of all classes sum to one
    dim = fit(release(400, epsilon=0.1), Formula("region", ("income", "age")))
    assert dim.inference == ()
    assert dim.refusal


def test_methods_are_told_by_their_names() -> None:
    assert fit(CLEAR, ALL).method.startswith("least squares; shrunk ")
    assert fit(CLEAR, ALL, ridge=0.0).method == "least squares"
    assert fit(CLEAR, ALL, ridge=0.5, lasso=0.25).method == "ridge 0.5 and lasso 0.25"
    for penalty in ({"ridge": -1.0}, {"lasso": float("nan")}):
        with pytest.raises(InvalidValueError, match=next(iter(penalty))):
            fit(CLEAR, ALL, **penalty)


def test_a_ridge_path_is_the_fits_one_by_one() -> None:
    penalties = [1.0, 0.1, 0.0]
    found = CLEAR.ridge_path("income ~ .", penalties=penalties)
    assert found.penalties.tolist() == penalties
    for row, penalty in zip(found.coefficients, penalties, strict=True):
        told = fit(CLEAR, ALL, ridge=penalty).coefficients
        assert row == pytest.approx([told.intercept, *told.effects.values()])
    assert found.names[1:] == tuple(told.effects)


def test_a_lasso_path_begins_where_every_feature_is_left_out() -> None:
    found = CLEAR.lasso_path("income ~ .", points=8)
    assert len(found.penalties) == 8
    assert (np.diff(found.penalties) < 0).all()
    assert (found.coefficients[0, 1:] == 0).all()
    used = (np.abs(found.coefficients[:, 1:]) > 1e-9).sum(axis=1)
    assert used[-1] > used[1] > 0
    with pytest.raises(InvalidValueError, match="3 classes"):
        coefficient_path(CLEAR, Formula("region", ("age",)), "lasso")
    with pytest.raises(InvalidValueError, match="points"):
        coefficient_path(CLEAR, ALL, "lasso", points=0)


def test_units_are_an_affine_map_that_covariances_follow() -> None:
    """Predictions in units are those on the encoded scale; an error is that of a contrast."""
    told = units(SCHEMA, "income", ("age",))
    raw = infer(CLEAR.joint.submodel("income", ["age"]))
    found = raw.in_units(told)
    age = np.array([18.0, 40.0, 90.0])
    v = SCHEMA.features[0].scale(age)
    scaled = raw.coefficients[0] + raw.coefficients[1] * v  # of the target in [-1, 1]
    assert found.coefficients[0] + found.coefficients[1] * age == pytest.approx(
        50_000 * (scaled + 1)
    )
    at = np.array([1.0, 40.0])
    assert at @ found.sampling @ at == pytest.approx(
        50_000**2 * np.array([1, v[1]]) @ raw.sampling @ np.array([1, v[1]])
    )
    assert found.residual_variance == pytest.approx(raw.residual_variance * 50_000**2)


# ---- collect once, ask anything linear: models, correlations, components, paths, files
MOMENTS = release()


def test_the_agreed_model_finds_the_truth_and_new_people_within_its_errors() -> None:
    model = MOMENTS.fit()
    assert (model.target, model.features) == ("income", ("age", "education", "region", "married"))
    for one in model.estimates(0.9999):
        if one.name in TRUTH:
            assert one.lower < TRUTH[one.name] < one.upper, one.name
    assert model.inference[0].r_squared == pytest.approx(0.63, abs=0.03)
    assert np.sqrt(model.inference[0].residual_variance) == pytest.approx(8000, rel=0.1)
    fresh = people(2000, 11)
    bounds = MOMENTS.fit().prediction_intervals(fresh, 0.9)
    inside = (bounds[:, 0] <= fresh["income"]) & (fresh["income"] <= bounds[:, 1])
    assert inside.mean() == pytest.approx(0.9, abs=0.03)


def test_any_column_is_a_target_also_of_labels_and_classes() -> None:
    north = MOMENTS.fit("income ~ age + C(region)")
    south = MOMENTS.fit("income ~ age + C(region, 'south')")
    some = {name: column[:50] for name, column in people(50, 9).items()}
    assert north.predict(some) == pytest.approx(south.predict(some))
    assert "region=south" in north.coefficients.effects
    assert "region=north" in south.coefficients.effects
    assert MOMENTS.fit("age ~ income").target == "age"
    some = people(200, 10)
    married = MOMENTS.fit("married ~ income + age")
    assert married.predict(some).dtype == bool
    assert married.predict_proba(some).sum(axis=1) == pytest.approx(1)
    region = MOMENTS.fit("region ~ income")
    assert set(region.predict(some)) <= {"north", "south", "west"}
    assert region.predict_proba(some).shape == (200, 3)
    assert region.predict_proba(some).sum(axis=1) == pytest.approx(1)
    assert [one.name for one in region.estimates(output="west")] == ["(intercept)", "income"]


def test_where_noise_rules_there_is_a_model_and_no_interval() -> None:
    drowned = release(500, epsilon=0.1)
    model = drowned.fit()
    assert not model.inference
    assert model.refusal is not None
    assert np.isfinite(model.predict(people(5, 3))).all()
    assert "No standard errors" in str(model.summary())


def test_only_what_the_agreement_allows_is_predicted() -> None:
    schema = Schema(SCHEMA.features, SCHEMA.target, targets=["income"])
    only = release(2000, schema=schema)
    assert only.fit("income ~ age").target == "income"
    with pytest.raises(InvalidValueError, match="may be predicted"):
        only.fit("age ~ income")
    with pytest.raises(InvalidValueError, match="may be predicted"):
        only.fit(target="age")
