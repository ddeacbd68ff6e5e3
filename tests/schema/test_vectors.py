"""From a record to the columns that joint moments blur, and from weights to the user's units."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import Binary, Categorical, Numeric, Schema
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.schema import values
from blurfit.schema.vectors import (
    coefficients,
    joint_form,
    kind_of,
    units,
    user_units_matrix,
)
from support.schemas import moderate, schemas, tables, weights_for

SCHEMA = Schema(
    features=[
        Numeric("age", 20, 60),
        Binary("married"),
        Categorical("region", ["north", "south", "west"]),
    ],
    target=Numeric("income", 0, 1000),
)
PEOPLE = {
    "age": [20, 40, 55],
    "married": [True, False, True],
    "region": ["south", "north", "west"],
    "income": [100, 500, 900],
}


def test_every_question_has_its_columns() -> None:
    assert [one.name for one in SCHEMA.questions] == ["age", "married", "region", "income"]
    assert [kind_of(one) for one in SCHEMA.questions] == ["numeric", "sign", 3, "numeric"]
    assert SCHEMA.question("region").columns == ("region=north", "region=south", "region=west")
    v = values(SCHEMA, PEOPLE)
    assert v.tolist() == [
        [-1, 1, 0, 1, 0, -0.8],
        [0, -1, 1, 0, 0, 0],
        [0.75, 1, 0, 0, 1, pytest.approx(0.8)],
    ]
    assert values(SCHEMA, {name: column[0] for name, column in PEOPLE.items()}).shape == (6,)
    assert values(SCHEMA, PEOPLE, ["region", "age"]).shape == (3, 4)


def test_a_label_is_a_sign_and_a_categorical_target_has_classes() -> None:
    label = Schema([Numeric("age", 0, 1)], Numeric("income", 0, 10).above(5))
    assert joint_form(label.questions, 1.0, [0.5, 0.5]).columns[1].kind == "sign"
    classes = Schema([Numeric("age", 0, 1)], Categorical("party", ["a", "b", "c"]))
    form = joint_form(classes.questions, 1.0, [0.5, 0.5])
    assert [column.group for column in form.columns] == [None, "party", "party", "party"]


def test_weights_are_one_for_each_question() -> None:
    with pytest.raises(InvalidValueError, match="4 weights, one for each of"):
        joint_form(SCHEMA.questions, 1.0, [0.5, 0.5])


@pytest.mark.parametrize("reference", [None, "west"])
def test_units_predict_what_the_weights_predict(reference) -> None:
    """The affine map, against predictions: every record, every level."""
    generator = np.random.default_rng(4)
    weights = generator.normal(size=6)
    features = ["age", "married", "region"]
    told = units(
        SCHEMA, "income", features, references={"region": reference} if reference else None
    )
    intercept, *effects = told.apply(weights)
    effect = dict(zip(told.names[1:], effects, strict=True))
    left_out = f"region={reference or 'north'}"
    assert left_out not in effect
    assert told.places == ((0, 1, 2, 3, 4) if reference else (0, 1, 2, 4, 5))
    assert told.without(["age"]).places == told.places[:1] + told.places[2:]
    for age, married, region in [(20, 1, "north"), (33, 0, "south"), (60, 1, "west")]:
        record = {"age": age, "married": bool(married), "region": region}
        score = weights[0] + values(SCHEMA, record, features) @ weights[1:]
        expected = 500 + 500 * score
        said = intercept + effect["age"] * age + effect["married"] * married
        assert said + effect.get(f"region={region}", 0.0) == pytest.approx(expected)


def test_covariances_follow_the_units() -> None:
    told = units(SCHEMA, "income", ["age"])
    assert told.scale == pytest.approx(1 / 500)
    assert told.matrix @ [0, 1] == pytest.approx([500 * -2, 500 / 20])


def test_a_labels_units_are_probabilities_or_log_odds() -> None:
    schema = Schema([Binary("smokes")], Numeric("income", 0, 10).above(5))
    linear = units(schema, "income", ["smokes"])
    assert linear.apply(np.array([0.2, 0.4])).tolist() == pytest.approx([0.4, 0.4])
    odds = units(schema, "income", ["smokes"], log_odds=True)
    assert odds.apply(np.array([0.2, 0.4])).tolist() == pytest.approx([-0.2, 0.8])


@pytest.mark.parametrize(
    ("references", "words"),
    [({"region": "east"}, "reference level 'east'"), ({"age": "20"}, "categorical features only")],
)
def test_reference_levels_are_levels(references, words) -> None:
    with pytest.raises(InvalidValueError, match=words):
        units(SCHEMA, "income", ["age", "region"], references=references)


def test_unknown_columns_are_named() -> None:
    with pytest.raises(InvalidValueError, match="'wage' to be one of the columns"):
        SCHEMA.question("wage")


# ---- weights in the user's units: by hand, by another route, and refused where they mean nothing


FEATURES = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
INCOME = Numeric("income", 0, 200_000)
INCOMES = Schema(FEATURES, INCOME)
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
    found = coefficients(INCOMES, [0.4, 0.1, -0.2, 0.3, 0.6])
    assert found.effects == pytest.approx(
        {"age": 400, "married": 10_000, "sex=f": -10_000, "sex=m": 15_000}
    )
    assert found.intercept == pytest.approx(100_000 - 20_000 - 5_000 + 30_000)
    assert list(found.effects) == list(INCOMES.columns[:-1])


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


@pytest.mark.parametrize("weights", [[1.0] * 4, [1.0] * 6, [[1.0] * 5], [math.nan] * 5, 1.0])
def test_weights_are_one_for_each_column(weights):
    with pytest.raises(InvalidValueError, match="5 finite numbers, one for each of the col"):
        coefficients(INCOMES, weights)


def test_effects_beyond_floats():
    schema = Schema([Binary("b"), Numeric("v", 0, 1e-300)], Numeric("y", 0, 1e300))
    with pytest.raises(InfeasibleError, match=r"effect of 'v' on 'y' is beyond 1\.8e308"):
        coefficients(schema, np.ones(3))
