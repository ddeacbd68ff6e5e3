"""Weights in the user's units: by hand, by another route, and refused where they mean nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
from blurfit.schema.vectors import coefficients, user_units_matrix
from support.schemas import moderate, schemas, tables, weights_for

FEATURES = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
INCOME = Numeric("income", 0, 200_000)
SCHEMA = Schema(FEATURES, INCOME)
RICH = Schema(FEATURES, INCOME.above(37_000))


def predicted_by(schema, weights, records):
    """The target in the user's units, from the encoded record; for a label the score."""
    score = schema.encode_features(records) @ weights
    if isinstance(schema.target, Numeric):
        return schema.target.centre + schema.target.width / 2 * score
    return score


def by_coefficients(found, schema, record):
    """(intercept + Σ effect·value, the sum of the sizes of what was added)."""
    terms = [found.intercept]
    for column in schema.features:
        if isinstance(column, Categorical):
            terms.append(found.effects[f"{column.name}={record[column.name]}"])
        else:
            terms.append(found.effects[column.name] * record[column.name])
    return math.fsum(terms), math.fsum(abs(term) for term in terms)


def test_by_hand():
    # m = 4, so x = z/2: age (v − 50)/100, married (2v − 1)/2, each level ½, intercept ½;
    # income is 100 000 + 100 000·y.
    found = coefficients(SCHEMA, [0.4, 0.1, -0.2, 0.3, 0.6])
    assert found.effects == pytest.approx(
        {"age": 400, "married": 10_000, "sex=f": -10_000, "sex=m": 15_000}
    )
    assert found.intercept == pytest.approx(100_000 - 20_000 - 5_000 + 30_000)
    assert list(found.effects) == list(SCHEMA.columns[:-1])


def test_log_odds_by_hand():
    found = coefficients(RICH, [0.4, 0.1, -0.2, 0.3, 0.6])
    assert found.effects == pytest.approx(
        {"age": 0.004, "married": 0.1, "sex=f": -0.1, "sex=m": 0.15}
    )
    assert found.intercept == pytest.approx(-0.2 - 0.05 + 0.3)


@given(st.data(), schemas(numeric=moderate, most=8))
def test_two_routes_to_a_prediction(data, schema):
    w = data.draw(weights_for(schema))
    table = data.draw(tables(schema, anywhere=False))
    found = coefficients(schema, w)
    assert list(found.effects) == [c for c in schema.columns if c != "(intercept)"]
    for row, expected in enumerate(predicted_by(schema, w, table)):
        record = {name: column[row] for name, column in table.items()}
        other, size = by_coefficients(found, schema, record)
        # beside its own size, each route may lose that of the weights in the target's units
        unit = schema.target.width / 2 if isinstance(schema.target, Numeric) else 1.0
        assert abs(expected - other) <= 1e-12 * (size + unit * np.abs(w).sum())


@given(st.data(), schemas(numeric=moderate, most=8))
def test_the_matrix_is_the_map(data, schema):
    T, t = user_units_matrix(schema)
    assert T.shape == (1 + schema.dimension - schema.intercept, schema.dimension)
    assert t.shape == T.shape[:1]
    w = data.draw(weights_for(schema))
    found = coefficients(schema, w)
    assert (T @ w + t).tolist() == [found.intercept, *found.effects.values()]
    zero = coefficients(schema, np.zeros(schema.dimension))
    assert [zero.intercept, *zero.effects.values()] == t.tolist()


def test_variances_are_those_of_sampled_coefficients():
    rng = np.random.default_rng(8)
    root = rng.normal(size=(5, 5))
    T, _ = user_units_matrix(SCHEMA)
    samples = rng.normal(size=(40_000, 5)) @ root.T
    units = [coefficients(SCHEMA, w) for w in samples[:4000]]
    found = np.std([[c.intercept, *c.effects.values()] for c in units], axis=0)
    assert found == pytest.approx(np.sqrt(np.diag(T @ root @ root.T @ T.T)), rel=0.06)


def test_a_perfect_model_gives_back_the_target():
    # income = 1000·age + 20 000·married, exactly linear in the user's units
    w = np.linalg.solve(
        user_units_matrix(SCHEMA)[0],
        np.array([0.0, 1000, 20_000, 0, 0]) - user_units_matrix(SCHEMA)[1],
    )
    records = {"age": [0, 33.3, 90], "married": [1, 0, 1], "sex": ["f", "m", "f"]}
    assert predicted_by(SCHEMA, w, records) == pytest.approx([20_000, 33_300, 110_000])


@pytest.mark.parametrize("weights", [[1.0] * 4, [1.0] * 6, [[1.0] * 5], [math.nan] * 5, 1.0])
def test_weights_are_one_for_each_column(weights):
    with pytest.raises(InvalidValueError, match="5 finite numbers, one for each of the col"):
        coefficients(SCHEMA, weights)


def test_effects_beyond_floats():
    schema = Schema([Binary("b"), Numeric("v", 0, 1e-300)], Numeric("y", 0, 1e300))
    with pytest.raises(InfeasibleError, match=r"effect of 'v' on 'y' is beyond 1\.8e308"):
        coefficients(schema, np.ones(3))
