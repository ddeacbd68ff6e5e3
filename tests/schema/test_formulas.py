"""Formulas over a release: columns and sums of columns, and nothing that would need records."""

import pytest

from blurfit import Binary, Categorical, Cross, Curve, Numeric, Schema
from blurfit.errors import InvalidValueError
from blurfit.schema.formulas import Formula, parsed
from support.joint_release import SCHEMA


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
    assert parsed(text, SCHEMA) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("income ~ log(age)", "transformation needs the records"),
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
        ("income ~ C(region, 1)", "transformation needs the records"),
    ],
)
def test_what_cannot(text, words) -> None:
    with pytest.raises(InvalidValueError, match=words):
        parsed(text, SCHEMA)


def test_a_source_is_no_column() -> None:
    source, curve = Numeric("a", 0, 9), Curve("a", knots=[0, 5, 9])
    choice = Categorical("b", ["x", "y"])
    schema = Schema([curve, Cross("b", "c")], Binary("y"), sources=[source, choice, Binary("c")])
    assert parsed("y ~ .", schema).features == ("curve(a)", "b:c")
    assert parsed("y ~ curve(a) + b:c", schema).features == ("curve(a)", "b:c")
    for text in ("y ~ a", "y ~ C(b)"):
        with pytest.raises(InvalidValueError, match="asked only for what is derived"):
            parsed(text, schema)


def test_only_agreed_targets() -> None:
    with pytest.raises(InvalidValueError, match="'age' to be one of 'income'"):
        parsed("age ~ income", SCHEMA, ["income"])
