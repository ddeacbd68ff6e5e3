"""Surveys that were made elsewhere: Frictionless Table Schema, tables; `xlsforms` has XLSForm.

Nothing is guessed. A number needs public bounds and a choice needs its levels; where a file does
not say them, the refusal names each question that lacks something, all of them at once.

| Table Schema | here |
| --- | --- |
| integer, number, year with constraints.minimum and maximum | numeric, with these bounds |
| boolean | binary |
| string, or a number, with constraints.enum (or categories) | categorical |
| constraints.required = false | optional; where nothing is said, everybody answers |
| title, description | title, question |
| "blurfit", which other tools ignore | all else, so that what was written here is read unchanged |

**A table of records** (`TableGlance`) says which columns there are and of what kind, and nothing
about bounds: those of the data are somebody's data. The choices that occur are shown to the table's
owner alone, who says which choices there are.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal

from blurfit.errors import InvalidValueError, optional
from blurfit.schema.columns import (
    About,
    Binary,
    Categorical,
    Feature,
    Label,
    Numeric,
    Question,
    Wording,
)
from blurfit.schema.schema import Schema
from blurfit.schema.table_files import UTF8, lines_of, separator_of
from blurfit.wording import Message, Series, join_messages

OWN = "blurfit"
_NUMBER_TYPES = ("integer", "number", "year")
_YES_OR_NO = {"0", "1", "false", "true", "no", "yes", "nein", "ja"}
_LIKE_NUMBER = re.compile(r"[+-]?[\d.,'  ]*\d(?:[eE][+-]?\d+)?")
_LIKE_DATE = re.compile(
    r"\d{1,2}([./-])\d{1,2}\1(\d{2}|\d{4})|\d{4}([./-])\d{1,2}\3\d{1,2}([T ]\d{1,2}:\d{2}.*)?"
)
_NAMES_PEOPLE = re.compile(r"(?i)(^|[\W_])(p|u)?(id|nr|no|key)$|nummer|number|kennung|identifier")
_MOST_CHOICES, _ROWS_SEEN = 20, 10_000
# Numbers of a record that are blurred, one for each choice of a list; more need too many people.
_MOST_ENCODED = 5000
_MOST_LETTERS = 2**24  # of questions and choices; those of a list count at each of its questions


@dataclass(frozen=True)
class Imported:
    """A schema, and what somebody should know about how it came about."""

    schema: Schema
    notes: tuple[Message, ...]


@dataclass
class SurveyReader:
    """Questions as they are read from a file."""

    source: Message | str
    columns: list[Feature] = field(default_factory=list)
    lacking: list[Message] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)  # by hand, not yet used
    asked_of_some: set[str] = field(default_factory=set)  # so that they cannot be predicted

    def lacks(self, name: str, what: Message) -> Feature | None:
        """Remember what a question lacks, of which there is no column then."""
        self.lacking.append(Message("{name!r} {what}", name=name, what=what))
        return None

    def finish(self, about: About, target: str | None) -> Imported:
        """Return the schema, with one of the questions as its target, or refuse what is lacking.

        Args:
            about: who asks, and what for.
            target: the question to be predicted; "" the last that everybody is asked.
        """
        for name in self.bounds:
            self.lacks(name, Message("has `--bounds`, and no number is called so"))
        if self.lacking:
            raise InvalidValueError(
                "{source} cannot be imported as it is: {lacking}.",
                source=self.source,
                lacking=Series(self.lacking, "; "),
            )
        names = [one.name for one in self.columns if one.name not in self.asked_of_some]
        if not names or len(self.columns) < 2:
            raise InvalidValueError(
                "{source} must have at least two questions that can be blurred (a number, a "
                "choice, or yes or no), one of them asked of everybody, to be predicted, got "
                "{count:,} questions, {common:,} of them asked of everybody. {notes}",
                source=self.source,
                count=len(self.columns),
                common=len(names),
                notes=join_messages(self.notes),
            )
        if target == "":
            target = names[-1]
        if target not in names:
            raise InvalidValueError(
                "`target` must be one of the questions of {source} that everybody is asked, "
                "{names}, got {target!r}. Name the one to be predicted with `--target`.",
                source=self.source,
                names=Series(map(repr, names)),
                target=target,
            )
        aim = next(one for one in self.columns if one.name == target)
        features, freed = [], []
        for column in self.columns:
            only = column.wording.only_if
            if only is not None and only.name == target:  # which is asked last
                freed.append(column.name)
                column = replace(column, wording=replace(column.wording, only_if=None))
            if column.name != target:
                features.append(column)
        notes = list(self.notes)
        if freed:
            notes.append(
                Message(
                    "Asked of everybody, because {target!r} is asked last: {names}.",
                    target=target,
                    names=Series(map(repr, freed)),
                )
            )
        if aim.optional:
            aim = replace(aim, optional=False)
            notes.append(
                Message("{target!r} is to be predicted, so everybody answers it.", target=target)
            )
        if unsaid := [one.name for one in features if one.optional]:
            notes.append(Message("May be left unsaid: {unsaid}.", unsaid=Series(map(repr, unsaid))))
        return Imported(Schema(features, aim, about=about), tuple(notes))


@dataclass(frozen=True)
class TableGlance:
    """What a table of records looks like, for its owner: `choices` holds answers of its people."""

    kinds: dict[str, Literal["number", "yes or no", "choice", "text", "identifier", "date"]]
    choices: dict[str, list[str]]
    gaps: frozenset[str]  # columns in which something is missing

    @classmethod
    def at(cls, path: Path, encoding: str = UTF8) -> "TableGlance":
        """Look at the first rows of a table in a CSV file, a workbook or a Parquet file."""
        columns = _first_rows(path, encoding)
        kinds: dict[str, Any] = {}
        choices: dict[str, list[str]] = {}
        for name, cells in columns.items():
            words = {str(cell).strip() for cell in cells} - {""}
            if {word.casefold() for word in words} <= _YES_OR_NO:
                kinds[name] = "yes or no"
            elif words and all(map(_LIKE_DATE.fullmatch, words)):
                kinds[name] = "date"
            elif _is_identifier(name, words, len(cells)):
                kinds[name] = "identifier"
            elif all(map(_LIKE_NUMBER.fullmatch, words)):
                kinds[name] = "number"
            elif len(words) <= _MOST_CHOICES:
                kinds[name], choices[name] = "choice", sorted(words)
            else:
                kinds[name] = "text"
        gaps = (name for name, cells in columns.items() if "" in map(str, cells))
        return cls(kinds, choices, frozenset(gaps))


def _is_identifier(name: str, words: set[str], rows: int) -> bool:
    """Tell numbers that name people, one each: those in a sequence, or under such a heading."""
    if not len(words) == rows > 2 or not all(re.fullmatch(r"\d{1,15}", word) for word in words):
        return False
    numbers = list(map(int, words))
    return max(numbers) - min(numbers) < rows or _NAMES_PEOPLE.search(name) is not None


def _first_rows(path: Path, encoding: str) -> dict[str, list[Any]]:
    if path.suffix.lower() == ".parquet":
        parquet = optional("pyarrow.parquet")
        try:
            with parquet.ParquetFile(path) as file:
                _refuse_if_wide(path, len(file.schema_arrow.names))
                first = next(file.iter_batches(batch_size=_ROWS_SEEN), None)
        except InvalidValueError:
            raise
        except (OSError, ValueError):
            raise InvalidValueError(
                "Expected {path_name!r} to be a Parquet file.", path_name=path.name
            ) from None
        found = {} if first is None else first.to_pydict()
        return {
            name: ["" if cell is None else cell for cell in cells] for name, cells in found.items()
        }
    with lines_of(path, separator_of(path, len, encoding), encoding) as lines:
        heading = [str(name) for name in next(lines, ())]
        _refuse_if_wide(path, len(heading))
        rows = list(islice(lines, _ROWS_SEEN))
    if not rows:
        raise InvalidValueError(
            "The table {path_name!r} must have rows below its first, which names its columns.",
            path_name=path.name,
        )
    if wrong := _wrong_headings(heading):
        raise InvalidValueError(
            "The first row of {path_name!r} must name each column once: {wrong}. "
            "Remove what stands above the headings, and name the columns apart.",
            path_name=path.name,
            wrong=Series(wrong, "; "),
        )
    cells = zip_longest(*rows, fillvalue="")
    return dict(zip(heading, map(list, cells), strict=False))


def _refuse_if_wide(path: Path, columns: int) -> None:
    if columns > _MOST_ENCODED:
        raise InvalidValueError(
            "{path_name!r} must have at most {most:,} columns, got {columns:,}. Leave out those "
            "that are not asked.",
            path_name=path.name,
            most=_MOST_ENCODED,
            columns=columns,
        )


def _wrong_headings(heading: list[str]) -> list[str]:
    """Name columns by their places: where headings are missing, these are a person's answers."""
    places: dict[str, list[str]] = {}
    for place, name in enumerate(heading, start=1):
        places.setdefault(name, []).append(str(place))
    nameless = places.pop("", [])
    found = [f"columns {', '.join(nameless)} have no name"] if len(nameless) > 1 else []
    found += [f"column {nameless[0]} has no name"] if len(nameless) == 1 else []
    repeated = (" and ".join(each) for each in places.values() if len(each) > 1)
    return found + [f"columns {each} have the same name" for each in repeated]


def to_table_schema(schema: Schema) -> dict[str, Any]:
    """Write the schema for other tools; `from_table_schema` is the inverse."""
    own = schema.to_dict()
    del own["features"]
    own["target"] = schema.target.name
    return {
        "$schema": "https://datapackage.org/profiles/1.0/tableschema.json",
        "fields": [_field(one) for one in schema.asked],
        "missingValues": [""],
        OWN: own,
    }


def from_table_schema(
    document: Any,
    target: str | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Imported:
    """Read a schema from a Table Schema, or from the first resource of a Data Package.

    Args:
        document: the JSON, read.
        target: the column to be predicted; what blurfit wrote says it itself.
        bounds: the lowest and the highest value of numbers, before those of the document.
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
        if bounds:
            raise InvalidValueError(
                "`--bounds` cannot be combined with a Table Schema that blurfit wrote: its bounds "
                "are in it."
            )
        return Imported(_read_back(fields, own), ())
    reading = SurveyReader("The Table Schema", bounds=dict(bounds or {}))
    refuse_if_large(reading.source, map(_size_of_field, fields))
    for entry in fields:
        if (column := _column(entry, reading)) is not None:
            reading.columns.append(column)
    return reading.finish(About.of(document), target)


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
    entries = {str(entry.get("name")): entry.get(OWN) for entry in fields}
    aim = entries.pop(str(own.get("target")), None)
    rest = {key: value for key, value in own.items() if key != "target"}
    return Schema.from_dict({**rest, "features": list(entries.values()), "target": aim})


def _size_of_field(described: Mapping[str, Any]) -> tuple[int, int]:
    limits = described.get("constraints")
    enum = limits.get("enum") if isinstance(limits, Mapping) else None
    lists = [one for one in (enum, described.get("categories")) if isinstance(one, list)]
    return max([1, *map(len, lists)]), 0  # a document is never longer than what was sent


def _column(described: Mapping[str, Any], reading: SurveyReader) -> Feature | None:
    name, kind = described.get("name"), described.get("type", "string")
    limits = described.get("constraints", {})
    if not isinstance(name, str) or not isinstance(limits, Mapping):
        raise InvalidValueError(
            "Expected a field with a name and constraints, and got {described!r}.",
            described=described,
        )
    unsaid = limits.get("required") is False
    words: dict[str, Any] = {
        "title": described.get("title"),
        "question": described.get("description"),
    }
    # what may be chosen, by constraints.enum or by categories, and what each is called
    levels, labels = limits.get("enum"), []
    if not isinstance(levels, list):
        given = described.get("categories")
        entries = given if isinstance(given, list) else []
        pairs = [one if isinstance(one, Mapping) else {"value": one} for one in entries]
        levels = [one.get("value") for one in pairs]
        labels = [(str(one.get("value")), one["label"]) for one in pairs if one.get("label")]
    levels = list(map(str, levels))
    if kind == "boolean":
        return Binary(name, unsaid, Wording(**words))
    if len(levels) > 1:
        return Categorical(name, levels, unsaid, Wording(**words, labels=labels))
    if kind in _NUMBER_TYPES:
        lower = limits.get("minimum", limits.get("exclusiveMinimum"))
        upper = limits.get("maximum", limits.get("exclusiveMaximum"))
        if name in reading.bounds:
            lower, upper = reading.bounds.pop(name)
        absent = [word for word, value in (("minimum", lower), ("maximum", upper)) if value is None]
        if lower is not None and upper is not None:
            return Numeric(name, lower, upper, optional=unsaid, wording=Wording(**words))
        return reading.lacks(
            name,
            Message("is a number without constraints.{absent}", absent=Series(absent, " and ")),
        )
    what = Message("is of type {kind!r}", kind=kind)
    if kind == "string":
        what = Message("is text without constraints.enum")
    return reading.lacks(
        name, Message("{what}, and only numbers, yes/no and choices can be blurred", what=what)
    )


def refuse_if_large(source: Message | str, sizes: Iterable[tuple[int, int]]) -> None:
    """Refuse what would make too much, before any of it is made."""
    columns, letters = map(sum, zip((0, 0), *sizes, strict=True))
    if columns > _MOST_ENCODED:
        raise InvalidValueError(
            "{source} must make at most {most:,} columns, one for each choice of a list, got "
            "{columns:,}. Leave questions out, or put choices together.",
            source=source,
            most=_MOST_ENCODED,
            columns=columns,
        )
    if letters > _MOST_LETTERS:
        raise InvalidValueError(
            "{source} must have at most {most:,} letters, those of a list at each of its "
            "questions, got {letters:,}. Shorten texts, or leave languages out.",
            source=source,
            most=_MOST_LETTERS,
            letters=letters,
        )


# ---- a schema's own file


def to_toml(schema: Schema) -> str:
    """Return the text of a schema's file, as `Schema.from_toml` reads it, without terms.

    >>> from blurfit import Binary, Numeric
    >>> print(to_toml(Schema([Binary("a")], Numeric("b", 0, 1))))
    targets = ["a", "b"]
    <BLANKLINE>
    [[features]]
    name = "a"
    kind = "binary"
    <BLANKLINE>
    [target]
    name = "b"
    kind = "numeric"
    lower = 0
    upper = 1
    """
    entry = schema.to_dict()
    features, target, sources = (entry.pop(name, []) for name in ("features", "target", "sources"))
    if entry["intercept"]:
        del entry["intercept"]  # which is understood
    parts = ["\n".join(_toml_lines(entry))]
    for part, ones in (("sources", sources), ("features", features)):
        parts += ["\n".join([f"[[{part}]]", *_toml_lines(one)]) for one in ones]
    parts.append("\n".join(["[target]", *_toml_lines(target)]))
    return "\n\n".join(part for part in parts if part)


def _toml_lines(table: Mapping[str, Any]) -> list[str]:
    return _pairs({key: one for key, one in table.items() if (key, one) != ("outside", "clip")})


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in table.items()]


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_text(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, str):
        return _toml_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(_pairs(value)) + "}"
    return "[" + ", ".join(_toml_value(one) for one in value) + "]"


def _toml_text(text: str) -> str:
    """Write a text with JSON's escapes, which are TOML's, but for U+007F."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
