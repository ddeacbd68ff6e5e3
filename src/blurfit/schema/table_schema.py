"""Frictionless Table Schema, in and out: what other tools know about the columns of a table.

| Table Schema | here |
| --- | --- |
| integer, number, year with constraints.minimum and maximum | numeric, with these bounds |
| boolean | binary |
| string, or a number, with constraints.enum (or categories) | categorical |
| constraints.required = false | optional; where nothing is said, everybody answers |
| title, description | title, question |

What Table Schema has no word for (languages, hints, units, labels, sections, the target) is written
under "blurfit", which other tools ignore: so what was written here is read back unchanged.
"""

from collections.abc import Mapping
from typing import Any

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Categorical, Feature, Label, Numeric, Question
from blurfit.schema.content import Wording, about_from
from blurfit.schema.imported import Imported, SurveyReader
from blurfit.schema.schema import Schema

OWN = "blurfit"
_NUMBERS = ("integer", "number", "year")


def to_table_schema(schema: Schema) -> dict[str, Any]:
    """The schema for other tools; `from_table_schema` is the inverse."""
    own = schema.to_dict()
    del own["features"]
    own["target"] = schema.target.name
    return {
        "$schema": "https://datapackage.org/profiles/1.0/tableschema.json",
        "fields": [_field(one) for one in schema.questions],
        "missingValues": [""],
        OWN: own,
    }


def from_table_schema(document: Any, target: str | None = None) -> Imported:
    """A schema from a Table Schema, or from the first resource of a Data Package.

    Args:
        document: the JSON, read.
        target: the column to be predicted; what blurfit wrote says it itself.
    """
    if isinstance(document, Mapping) and "resources" in document:
        resources = document["resources"]
        first = resources[0] if isinstance(resources, list) and resources else {}
        document = first.get("schema") if isinstance(first, Mapping) else None
    fields = document.get("fields") if isinstance(document, Mapping) else None
    if not isinstance(fields, list) or not all(isinstance(one, Mapping) for one in fields):
        raise InvalidValueError(
            "Expected a Table Schema in JSON: an object with a list of `fields`, or a Data Package "
            "whose first resource has one."
        )
    own = document.get(OWN)
    if isinstance(own, Mapping) and target in (None, own.get("target")):
        return Imported(_read_back(fields, own), ())
    reading = SurveyReader("The Table Schema")
    for field in fields:
        if (column := _column(field, reading)) is not None:
            reading.columns.append(column)
    return reading.finish(about_from(document), target)


def _field(one: Question) -> dict[str, Any]:
    entry = one.to_dict()
    constraints: dict[str, Any] = {"required": not one.optional}
    kind = "boolean" if isinstance(one, Binary) else "string"
    if isinstance(one, Numeric | Label):
        kind = "number"
        constraints |= {"minimum": one.lower, "maximum": one.upper}
    if isinstance(one, Categorical):
        constraints["enum"] = list(one.levels)
    found: dict[str, Any] = {"name": one.name, "type": kind}
    if one.wording.title is not None:
        found["title"] = str(one.wording.title)
    if one.wording.question is not None:
        found["description"] = str(one.wording.question)
    return found | {"constraints": constraints, OWN: entry}


def _read_back(fields: list[Any], own: Mapping[str, Any]) -> Schema:
    entries = {str(field.get("name")): field.get(OWN) for field in fields}
    aim = entries.pop(str(own.get("target")), None)
    rest = {key: value for key, value in own.items() if key != "target"}
    return Schema.from_dict({**rest, "features": list(entries.values()), "target": aim})


def _column(field: Mapping[str, Any], reading: SurveyReader) -> Feature | None:
    name, kind = field.get("name"), field.get("type", "string")
    limits = field.get("constraints", {})
    if not isinstance(name, str) or not isinstance(limits, Mapping):
        raise InvalidValueError(f"Expected a field with a name and constraints, and got {field!r}.")
    optional = limits.get("required") is False
    words: dict[str, Any] = {"title": field.get("title"), "question": field.get("description")}
    levels, labels = _levels(field, limits)
    if kind == "boolean":
        return Binary(name, optional, Wording(**words))
    if levels is not None and len(levels) > 1:
        return Categorical(name, levels, optional, Wording(**words, labels=labels))
    if kind in _NUMBERS:
        lower = limits.get("minimum", limits.get("exclusiveMinimum"))
        upper = limits.get("maximum", limits.get("exclusiveMaximum"))
        absent = [word for word, value in (("minimum", lower), ("maximum", upper)) if value is None]
        if lower is not None and upper is not None:
            return Numeric(name, lower, upper, optional=optional, wording=Wording(**words))
        reading.lacks(name, f"is a number without constraints.{' and '.join(absent)}")
        return None
    what = "is text without constraints.enum" if kind == "string" else f"is of type {kind!r}"
    reading.lacks(name, f"{what}, and only numbers, yes/no and choices can be blurred")
    return None


def _levels(
    field: Mapping[str, Any], limits: Mapping[str, Any]
) -> tuple[list[str] | None, list[tuple[str, Any]]]:
    """What may be chosen, by constraints.enum or by categories, and what each is called."""
    labels: list[tuple[str, Any]] = []
    if isinstance(limits.get("enum"), list):
        return [str(one) for one in limits["enum"]], labels
    categories = field.get("categories")
    if not isinstance(categories, list):
        return None, labels
    levels = []
    for one in categories:
        value = one.get("value") if isinstance(one, Mapping) else one
        levels.append(str(value))
        if isinstance(one, Mapping) and one.get("label"):
            labels.append((str(value), one["label"]))
    return levels, labels
