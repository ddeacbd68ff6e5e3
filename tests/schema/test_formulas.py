"""Formulas over a release: columns and sums of columns, and nothing that would need records."""

import numpy as np
import pytest

from blurfit import Binary, Categorical, Cross, Curve, Numeric, Schema
from blurfit.errors import InvalidValueError
from blurfit.schema.formulas import Formula, parsed
from blurfit.schema.schema import joint_form, kind_of, units, values
from support.joint_release import SCHEMA as WORKERS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("income ~ age + C(region)", Formula("income", ("age", "region"))),
        ("income ~ .", Formula("income", ("age", "education", "region", "married"))),
        ("age ~ region + region", Formula("age", ("region",))),
        ("income ~ 1", Formula("income", ())),
        (
            "married ~ C(region, 'west') + age",
            Formula("married", ("region", "age"), {"region": "west"}),
        ),
    ],
)
def test_what_can_be_asked(text, expected) -> None:
    assert parsed(text, WORKERS) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("income ~ log(age)", "It needs the records themselves"),
        ("income ~ age:education", "interaction 'age:education'"),
        ("income ~ age*education", "interaction"),
        ("income ~ age - 1", "with an intercept"),
        ("income ~ wage", "'wage' in .* to be one of the columns"),
        ("wage ~ age", "'wage' in .* to be one of the columns"),
        ("income ~ C(age)", "to be categorical in the schema"),
        ("income ~ C(wage)", "'wage'"),
        ("income ~ income + age", "one side of ~ only"),
        ("income + age ~ education", "a model has one target"),
        ("income", "a target, ~ and features"),
        ("income ~ age +", "a formula such as"),
        ("income ~ C(region, 1)", "It needs the records themselves"),
    ],
)
def test_what_cannot(text, words) -> None:
    with pytest.raises(InvalidValueError, match=words):
        parsed(text, WORKERS)


def test_a_source_is_no_column() -> None:
    source, curve = Numeric("a", 0, 9), Curve("a", knots=[0, 5, 9])
    choice = Categorical("b", ["x", "y"])
    schema = Schema([curve, Cross("b", "c")], Binary("y"), sources=[source, choice, Binary("c")])
    assert parsed("y ~ .", schema).features == ("curve(a)", "b:c")
    assert parsed("y ~ curve(a) + b:c", schema).features == ("curve(a)", "b:c")
    for text in ("y ~ a", "y ~ C(b)"):
        with pytest.raises(InvalidValueError, match="asked only for what is derived"):
            parsed(text, schema)


def test_columns_targets_and_weights_that_are_none_are_named() -> None:
    with pytest.raises(InvalidValueError, match="'age' to be one of 'income'"):
        parsed("age ~ income", WORKERS, ["income"])
    with pytest.raises(InvalidValueError, match="4 weights, one for each of"):
        joint_form(SCHEMA.questions, 1.0, [0.5, 0.5])
    with pytest.raises(InvalidValueError, match="'wage' to be one of the columns"):
        SCHEMA.question("wage")


SCHEMA = Schema(
    features=[
        Numeric("age", 20, 60),
        Binary("married"),
        Categorical("region", ["north", "south", "west"]),
    ],
    target=Numeric("income", 0, 1000),
)
PEOPLE = {"age": [20, 40, 55], "married": [True, False, True]}
PEOPLE |= {"region": ["south", "north", "west"], "income": [100, 500, 900]}


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


def test_a_label_is_a_sign_with_units_of_probabilities_or_log_odds() -> None:
    label = Schema([Numeric("age", 0, 1)], Numeric("income", 0, 10).above(5))
    assert joint_form(label.questions, 1.0, [0.5, 0.5]).columns[1].kind == "sign"
    classes = Schema([Numeric("age", 0, 1)], Categorical("party", ["a", "b", "c"]))
    form = joint_form(classes.questions, 1.0, [0.5, 0.5])
    assert [column.group for column in form.columns] == [None, "party", "party", "party"]
    schema = Schema([Binary("smokes")], Numeric("income", 0, 10).above(5))
    linear = units(schema, "income", ["smokes"])
    assert linear.apply(np.array([0.2, 0.4])).tolist() == pytest.approx([0.4, 0.4])
    odds = units(schema, "income", ["smokes"], log_odds=True)
    assert odds.apply(np.array([0.2, 0.4])).tolist() == pytest.approx([-0.2, 0.8])


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


@pytest.mark.parametrize(
    ("references", "words"),
    [({"region": "east"}, "reference level 'east'"), ({"age": "20"}, "categorical features only")],
)
def test_reference_levels_are_levels(references, words) -> None:
    with pytest.raises(InvalidValueError, match=words):
        units(SCHEMA, "income", ["age", "region"], references=references)
