"""Table Schema and tables: what is stated becomes a schema, what is lacking is named."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import About, Binary, Categorical, Numeric, Schema, Wording
from blurfit.errors import InvalidValueError
from blurfit.schema import imports
from blurfit.schema.imports import SurveyReader, from_table_schema, to_table_schema
from support.surveys import survey_schema

INCOMES = Numeric("income", 0, 9)


@pytest.mark.parametrize(
    "only_if", ["kids", "kids = perhaps", "kids > yes", "age = old", "self = yes", "income > 3", ""]
)
def test_a_skip_that_nobody_can_follow_is_refused(only_if) -> None:
    with pytest.raises(InvalidValueError):
        Schema(
            [
                Numeric("age", 0, 99),
                Binary("kids"),
                Binary("self", optional=True, wording=Wording(only_if=only_if)),
            ],
            INCOMES,
        )
    with pytest.raises(InvalidValueError, match="to be optional"):
        Schema([Binary("kids"), Binary("x", wording=Wording(only_if="kids = yes"))], INCOMES)


# ---- what surveys from elsewhere have in common: a target, and all that is lacking at once
def test_the_target_is_answered_by_everybody() -> None:
    columns = [Binary("a", optional=True), Numeric("b", 0, 1, optional=True)]
    found = SurveyReader("It", columns).finish(About(), "b")
    assert found.schema.target == Numeric("b", 0, 1)
    assert found.schema.features == (Binary("a", optional=True),)
    assert found.notes == (
        "'b' is to be predicted, so everybody answers it.",
        "May be left unsaid: 'a'.",
    )
    with pytest.raises(
        InvalidValueError, match=r"`target` must be one of the questions of It .* 'a', 'b', got"
    ):
        SurveyReader("It", columns).finish(About(), None)


AGE = {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 90}}
PAID = {"name": "income", "type": "number", "constraints": {"minimum": 0, "maximum": 1e5}}


@pytest.mark.parametrize(
    "schema", [survey_schema(), Schema([Binary("a")], Numeric("b", 0, 9).above(3), intercept=False)]
)
def test_table_schemas_are_written_and_read(schema) -> None:
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
            PAID,
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


def test_what_a_table_schema_lacks_is_named() -> None:
    fields = [
        {"name": "age", "type": "integer", "constraints": {"minimum": 18}},
        {"name": "weight", "type": "number"},
        {"name": "name", "type": "string"},
        {"name": "born", "type": "date"},
        PAID,
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


def test_a_table_schema_that_makes_too_much_is_refused(monkeypatch) -> None:
    def made(*_columns: object) -> None:
        raise AssertionError("a column was made")

    monkeypatch.setattr(imports, "Categorical", made)
    fields = [{"name": "a", "constraints": {"enum": list(range(5000))}}, {"name": "b"}]
    with pytest.raises(InvalidValueError, match=r"The Table Schema must .* got 5,001\."):
        from_table_schema({"fields": fields})


def test_a_table_that_is_too_wide_is_refused_by_its_heading(tmp_path) -> None:
    wide = [f"c{number}" for number in range(5001)]
    (tmp_path / "wide.csv").write_text(",".join(wide) + "\n")
    pq.write_table(pa.table({name: [1] for name in wide}), tmp_path / "wide.parquet")
    for name in ("wide.csv", "wide.parquet"):
        with pytest.raises(InvalidValueError, match=rf"'{name}' must .* 5,000 columns, got 5,001"):
            imports.TableGlance.at(tmp_path / name)
