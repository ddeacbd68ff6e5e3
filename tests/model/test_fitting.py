"""From sums to a model: against least squares of the rows, where noise hardly matters."""

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.learning.inference import infer
from blurfit.model.fitting import fit, in_units, path
from blurfit.schema.formulas import Formula
from blurfit.schema.vectors import units
from support.joint_release import SCHEMA, people, release

COUNT = 20_000
CLEAR = release(COUNT, epsilon=1e6)  # noise far below what rounding shows
ALL = Formula("income", ("age", "education", "region", "married"))


def design(table: dict[str, np.ndarray]) -> np.ndarray:
    """In the user's units, with contrasts to the north."""
    return np.column_stack(
        [
            np.ones(len(table["age"])),
            table["age"],
            table["education"],
            table["region"] == "south",
            table["region"] == "west",
            table["married"],
        ]
    )


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
    found = path(CLEAR, ALL, "ridge", penalties=penalties)
    assert found.penalties.tolist() == penalties
    for row, penalty in zip(found.coefficients, penalties, strict=True):
        told = fit(CLEAR, ALL, ridge=penalty).coefficients
        assert row == pytest.approx([told.intercept, *told.effects.values()])
    assert found.names[1:] == tuple(told.effects)


def test_a_lasso_path_begins_where_every_feature_is_left_out() -> None:
    found = path(CLEAR, ALL, "lasso", points=8)
    assert len(found.penalties) == 8
    assert (np.diff(found.penalties) < 0).all()
    assert (found.coefficients[0, 1:] == 0).all()
    used = (np.abs(found.coefficients[:, 1:]) > 1e-9).sum(axis=1)
    assert used[-1] > used[1] > 0
    with pytest.raises(InvalidValueError, match="3 classes"):
        path(CLEAR, Formula("region", ("age",)), "lasso")
    with pytest.raises(InvalidValueError, match="points"):
        path(CLEAR, ALL, "lasso", points=0)


def test_units_are_an_affine_map_that_covariances_follow() -> None:
    """Predictions in units are those on the encoded scale; an error is that of a contrast."""
    told = units(SCHEMA, "income", ("age",))
    raw = infer(CLEAR.joint.submodel("income", ["age"]))
    found = in_units(raw, told)
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
