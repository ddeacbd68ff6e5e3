"""Frictionless Table Schema: constraints become bounds, and what is written is read back."""

import json

import pytest

from blurfit import Binary, Categorical, Numeric, Schema, Wording
from blurfit.errors import InvalidValueError
from blurfit.schema.imports import from_table_schema, to_table_schema
from support.surveys import survey_schema

AGE = {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 90}}
INCOME = {"name": "income", "type": "number", "constraints": {"minimum": 0, "maximum": 1e5}}


@pytest.mark.parametrize(
    "schema", [survey_schema(), Schema([Binary("a")], Numeric("b", 0, 9).above(3), intercept=False)]
)
def test_written_and_read(schema) -> None:
    document = json.loads(json.dumps(to_table_schema(schema)))
    assert from_table_schema(document).schema == schema
    assert from_table_schema({"resources": [{"schema": document}]}).schema == schema


def test_what_other_tools_read() -> None:
    fields = {one["name"]: one for one in to_table_schema(survey_schema())["fields"]}
    assert fields["age"]["type"] == "number"
    assert fields["age"]["constraints"] == {"required": False, "minimum": 18, "maximum": 90}
    assert fields["field"]["constraints"] == {"required": True, "enum": ["a", "b", "c"]}
    assert (fields["age"]["title"], fields["age"]["description"]) == ("Age", "How old are you?")
    assert fields["married"]["type"] == "boolean"


def test_constraints_become_bounds_and_levels() -> None:
    document = {
        "title": "Work",
        "fields": [
            {**AGE, "title": "Age", "description": "How old?"},
            {"name": "sex", "constraints": {"enum": ["f", "m"], "required": False}},
            {"name": "size", "type": "integer", "constraints": {"enum": [1, 2, 3]}},
            {
                "name": "state",
                "type": "string",
                "categories": [{"value": "n", "label": "North"}, "s"],
            },
            {"name": "married", "type": "boolean", "constraints": {"required": True}},
            INCOME,
        ],
    }
    found = from_table_schema(document, "income")
    assert found.schema.features == (
        Numeric("age", 18, 90, wording=Wording(title="Age", question="How old?")),
        Categorical("sex", ["f", "m"], optional=True),
        Categorical("size", ["1", "2", "3"]),
        Categorical("state", ["n", "s"], wording=Wording(labels={"n": "North"})),
        Binary("married"),
    )
    assert found.schema.target == Numeric("income", 0, 1e5)
    assert str(found.schema.about.title) == "Work"
    assert found.notes == ("May be left unsaid: 'sex'.",)


def test_what_is_missing_is_named() -> None:
    fields = [
        {"name": "age", "type": "integer", "constraints": {"minimum": 18}},
        {"name": "weight", "type": "number"},
        {"name": "name", "type": "string"},
        {"name": "born", "type": "date"},
        INCOME,
    ]
    with pytest.raises(InvalidValueError) as refused:
        from_table_schema({"fields": fields}, "income")
    for words in (
        "'age' is a number without constraints.maximum;",
        "'weight' is a number without constraints.minimum and maximum",
        "'name' is text without constraints.enum",
        "'born' is of type 'date'",
    ):
        assert words in str(refused.value)


@pytest.mark.parametrize("document", [[], {}, {"fields": "x"}, {"fields": [3]}, {"resources": []}])
def test_what_is_no_table_schema(document) -> None:
    with pytest.raises(InvalidValueError, match="Expected a Table Schema in JSON"):
        from_table_schema(document, "income")
