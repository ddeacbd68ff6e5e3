"""From a score to numbers, labels, classes, counts and probabilities."""

import numpy as np
import pytest

from blurfit import InfeasibleError
from blurfit.agreement.agreement import Agreement
from blurfit.model.model import predicted, probabilities
from blurfit.model.release import published
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
from blurfit.schema.vectors import units, values

FEATURES = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
INCOME = Numeric("income", 0, 200_000)
PARTY = Categorical("party", ["red", "green", "blue"])
LABEL = INCOME.above(37_000)


def test_a_number_is_in_its_own_units_and_a_count_is_finite() -> None:
    np.testing.assert_allclose(predicted(INCOME, "linear", np.array([-1, 0, 1])), [0, 1e5, 2e5])
    counts = predicted(Numeric("visits", 0, 10), "log", np.array([0.0, 1.0, 1e6]))
    np.testing.assert_allclose(counts[:2], [1, np.e])
    assert np.isfinite(counts).all()
    with pytest.raises(InfeasibleError, match="Use predict"):
        probabilities(INCOME, "linear", np.zeros(1))


def test_a_label_is_likely_where_its_score_is_positive() -> None:
    score = np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    for link, likely in (
        ("linear", [0, 0.25, 0.5, 0.75, 1]),
        ("logistic", 1 / (1 + np.exp(-score))),
    ):
        told = probabilities(LABEL, link, score)
        np.testing.assert_allclose(told[:, 1], likely)
        np.testing.assert_allclose(told.sum(axis=1), 1)
        np.testing.assert_array_equal(predicted(LABEL, link, score), told[:, 1] > 0.5)


def test_the_largest_score_of_a_row_is_the_class() -> None:
    score = np.array([[0.1, 0.7, 0.2], [-0.2, 0.4, 0.8], [-1.0, -1.0, -1.0]])
    assert predicted(PARTY, "linear", score).tolist()[:2] == ["green", "blue"]
    told = probabilities(PARTY, "linear", score)
    np.testing.assert_allclose(told, [[0.1, 0.7, 0.2], [0, 1 / 3, 2 / 3], [1 / 3] * 3], atol=1e-9)


def test_features_return_to_the_users_units() -> None:
    schema = Schema(FEATURES, INCOME)
    table = {"age": [20.0, 60.0], "married": [0, 1], "sex": ["m", "f"]}
    told = units(schema, "income", ["sex", "age", "married"])
    found = told.rows(values(schema, table, ["sex", "age", "married"]))
    assert told.names == ("(intercept)", "sex=m", "age", "married")
    np.testing.assert_allclose(found, [[1, 1, 20, 0], [1, 0, 60, 1]], atol=1e-12)


@pytest.mark.parametrize("approximation", ["taylor", "chebyshev"])
def test_probabilities_are_calibrated_as_far_as_linear_ones_can_be(approximation) -> None:
    """Labels drawn with P = ½ + x·v/2: the exact minimiser of the quadratic must give P back."""
    generator = np.random.default_rng(0)
    schema = Schema(FEATURES, Numeric("income", 0, 200_000).above(37_000))
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 1000, "weight_bound": 3.0}
    agreement = Agreement.propose(schema, mechanism="input", approximation=approximation, **promise)
    table = {
        "age": generator.uniform(0, 100, 200_000),
        "married": generator.integers(0, 2, 200_000),
        "sex": generator.choice(["f", "m"], 200_000),
    }
    x = schema.encode_features(table)
    likely = 0.5 + x @ np.array([0.5, 0.3, -0.2, 0.2, 0.1]) / 2
    y = np.where(generator.random(200_000) < likely, 1.0, -1.0)
    q, p, _ = agreement.loss.terms(x, y)
    best = np.linalg.lstsq(q.T @ q, p.sum(axis=0), rcond=None)[0]
    found = published(agreement, best, 1000)
    told = found.predict_proba(table)
    np.testing.assert_allclose(told.sum(axis=1), 1)
    assert np.abs(told[:, 1] - likely).max() < 0.02
    assert np.abs(told[:, 1] - likely).mean() < 0.005
    np.testing.assert_array_equal(found.predict(table), told[:, 1] > 0.5)
