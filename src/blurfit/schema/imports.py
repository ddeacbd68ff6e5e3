"""Surveys that were made elsewhere: XLSForm and Frictionless Table Schema.

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

| XLSForm (ODK, KoboToolbox, SurveyCTO) | here |
| --- | --- |
| integer, decimal, with a constraint such as `. >= 18 and . <= 90` | numeric; else not eligible |
| range, with parameters start and end | numeric |
| select_one LIST | categorical, with the list's choices; yes/no: binary |
| select_multiple LIST | a binary question for each of the list's choices, name_choice |
| begin_group … end_group | a section |
| label, hint, also label::Deutsch (de) | question and hint, in these languages |
| required | everybody answers; all else may be left unsaid |
| relevant, such as `${kids} = 'yes'` | asked only of these; otherwise it is not said |
| form_title in settings | the title |
| notes, calculations, what a device knows (start, deviceid …) | left out |

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
    Outside,
    Question,
    Wording,
)
from blurfit.schema.schema import Schema
from blurfit.schema.table import listed
from blurfit.schema.table_files import lines_of, separator_of, word_of, workbook
from blurfit.wording import Message, Series

OWN = "blurfit"
_NUMBER_TYPES = ("integer", "number", "year")
Row = Mapping[str, str]
_LEFT_OUT = {"note", "calculate", "hidden", "start", "end", "today", "deviceid", "audit"}
_LEFT_OUT |= {"subscriberid", "simserial", "phonenumber", "username", "email", "start-geopoint"}
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_LOWER = re.compile(rf"\.\s*>=?\s*{_NUMBER}|{_NUMBER}\s*<=?\s*\.")
_UPPER = re.compile(rf"\.\s*<=?\s*{_NUMBER}|{_NUMBER}\s*>=?\s*\.")
_RELEVANT = re.compile(rf"\$\{{(.+?)\}}\s*(<=|>=|!=|=|<|>)\s*(?:'([^']+)'|{_NUMBER})")
_SELECTED = re.compile(r"selected\(\s*\$\{(.+?)\}\s*,\s*'([^']+)'\s*\)")
_YES_OR_NO = {"0", "1", "false", "true", "no", "yes", "nein", "ja"}
_LIKE_NUMBER = re.compile(r"[+-]?[\d.,'  ]*\d(?:[eE][+-]?\d+)?")
_LIKE_DATE = re.compile(
    r"\d{1,2}([./-])\d{1,2}\1(\d{2}|\d{4})|\d{4}([./-])\d{1,2}\3\d{1,2}([T ]\d{1,2}:\d{2}.*)?"
)
_NAMES_PEOPLE = re.compile(r"(?i)(^|[\W_])(p|u)?(id|nr|no|key)$|nummer|number|kennung|identifier")
_MOST_CHOICES, _ROWS_SEEN = 20, 10_000
_TRUE = {"yes", "true", "true()", "1"}
# Far more than any survey has; a workbook within them is read in seconds.
_MOST_BYTES, _MOST_ROWS, _MOST_COLUMNS = 2**24, 2**16, 2**8
# Numbers of a record that are blurred, one for each choice of a list; more need too many people.
_MOST_ENCODED = 5000
_MOST_LETTERS = (
    2**24
)  # of all questions and choices; those of a list count at each of its questions


@dataclass(frozen=True)
class Imported:
    """A schema, and what somebody should know about how it came about."""

    schema: Schema
    notes: tuple[Message, ...]


@dataclass
class SurveyReader:
    """Questions as they are read from a file."""

    source: str
    columns: list[Feature] = field(default_factory=list)
    lacking: list[Message] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)

    def lacks(self, name: str, what: Message) -> Feature | None:
        """Remember what a question lacks, of which there is no column then."""
        self.lacking.append(Message("{name!r} {what}", name=name, what=what))
        return None

    def finish(self, about: About, target: str | None) -> Imported:
        """Return the schema, with one of the questions as its target, or refuse what is lacking."""
        if self.lacking:
            raise InvalidValueError(
                "{source} cannot be imported as it is: {lacking}. Nothing was written.",
                source=self.source,
                lacking=Series(self.lacking, "; "),
            )
        names = [one.name for one in self.columns]
        if target == "" and names:
            target = names[-1]
        if target is None or target not in names:
            raise InvalidValueError(
                "Expected target={target!r} to be one of the questions {listed} of "
                "{source}: which one is to be predicted?",
                target=target,
                listed=listed(names),
                source=self.source,
            )
        features = [one for one in self.columns if one.name != target]
        aim = next(one for one in self.columns if one.name == target)
        notes = list(self.notes)
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
    def at(cls, path: Path) -> "TableGlance":
        """Look at the first rows of a table in a CSV file, a workbook or a Parquet file."""
        columns = _first_rows(path)
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


def _first_rows(path: Path) -> dict[str, list[Any]]:
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
    with lines_of(path, separator_of(path, len)) as lines:
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


def from_table_schema(document: Any, target: str | None = None) -> Imported:
    """Read a schema from a Table Schema, or from the first resource of a Data Package.

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
    _refuse_if_large(reading.source, map(_size_of_field, fields))
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


def is_xlsform(path: Path) -> bool:
    """Tell a form's workbook, which has a sheet named survey, from a table of people."""
    with workbook(path, _MOST_BYTES) as book:
        return any(name.strip().lower() == "survey" for name in book.sheetnames)


def from_xlsform(path: Path, target: str | None = None) -> Imported:
    """Read a schema from a form's workbook; `target` is what is predicted, "" the last question."""
    sheets = _sheets(path)
    if "survey" not in sheets:
        raise InvalidValueError(
            "Expected {path_name!r} to be an XLSForm, with a sheet named survey; it has {sheets}.",
            path_name=path.name,
            sheets=", ".join(sheets) or "none",
        )
    settings = next(iter(sheets.get("settings", [])), {})
    form = _Form(f"The form {path.name!r}")
    form.choices = _choices(sheets.get("choices", []))
    form.default = _tag(settings.get("default_language", ""))
    _refuse_if_large(form.source, [_size(row, form.choices) for row in sheets["survey"]])
    for row in sheets["survey"]:
        form.read(row)
    if form.left_out:
        form.notes.append(
            Message("Left out, as nothing is asked: {left_out}.", left_out=Series(form.left_out))
        )
    title = settings.get("form_title") or None
    return form.finish(About(title=title), target)  # type: ignore[arg-type]


@dataclass
class _Form(SurveyReader):
    """Rows of the survey's sheet, one after the other."""

    choices: Mapping[str, list[Row]] = field(default_factory=dict)
    default: str = ""  # the language of texts that name none
    left_out: list[str] = field(default_factory=list)
    sections: list[Any] = field(default_factory=list)  # that are open

    def read(self, row: Row) -> None:
        """Read one row: a question, the bounds of a group, or what is left out."""
        kind, _, what = " ".join(row.get("type", "").split()).partition(" ")
        name, list_name = row.get("name", ""), what.split(" ")[0]
        if kind in ("begin_group", "begin", "end_group", "end"):
            if what == "repeat":
                self.lacks(name or "a group", Message("is repeated, and each person sends once"))
            if kind.startswith("begin"):
                self.sections.append(self._words(row, "label"))
            elif self.sections:
                self.sections.pop()
        elif kind in _LEFT_OUT:
            self.left_out.append(name or kind)
        elif kind == "select_multiple":
            self._several(list_name, name, row)
        elif kind and (column := self._column(kind, list_name, name, row)) is not None:
            self.columns.append(column)

    def _several(self, list_name: str, name: str, row: Row) -> None:
        """Ask yes or no for each choice of a question that takes several answers."""
        choices = self.choices.get(list_name, [])
        if not choices:
            self.lacks(
                name, Message("has no choices in the list {list_name!r}", list_name=list_name)
            )
        unsaid, words = self._asked(name, row)
        asked = words.pop("question") or name
        for choice in choices:
            label = self._words(choice, "label") or choice["name"]
            question = Wording(**words, question=_joined(asked, label))
            self.columns.append(Binary(f"{name}_{choice['name']}", unsaid, question))

    def _column(self, kind: str, list_name: str, name: str, row: Row) -> Feature | None:
        unsaid, words = self._asked(name, row)
        if kind in ("integer", "decimal", "range"):
            if (bounds := _bounds(row)) is None:
                constraint = "write a constraint such as `. >= 0 and . <= 100`"
                return self.lacks(
                    name, Message("is a number without bounds: {constraint}", constraint=constraint)
                )
            outside: Outside = "clip" if kind == "range" else "refuse"  # as the form itself does
            return Numeric(name, *bounds, outside, optional=unsaid, wording=Wording(**words))
        if kind == "acknowledge":
            return Binary(name, unsaid, Wording(**words))
        if kind == "select_one":
            return self._choice(name, list_name, words, unsaid=unsaid)
        return self.lacks(
            name,
            Message(
                "is of type {kind!r}; only numbers, yes/no and choices can be blurred", kind=kind
            ),
        )

    def _asked(self, name: str, row: Row) -> tuple[bool, dict[str, Any]]:
        """Return whether a question may be left unsaid, and how it is worded."""
        words = {"question": self._words(row, "label"), "hint": self._words(row, "hint")}
        words["section"] = next((one for one in reversed(self.sections) if one), None)
        relevant = row.get("relevant")
        if relevant:
            words["only_if"] = self._compared(relevant)
            if words["only_if"] is None:
                self.notes.append(
                    Message(
                        "{name!r} is asked of everybody, who need not say: its `relevant` is more "
                        "than one comparison of an earlier answer.",
                        name=name,
                    )
                )
        return bool(relevant) or row.get("required", "").lower() not in _TRUE, words

    def _compared(self, relevant: str) -> str | None:
        """Read `${kids} = 'yes'`, or `selected(${kids}, 'yes')`; None for anything else."""
        if (found := _SELECTED.fullmatch(relevant.strip())) is not None:
            name, how, value = found[1], "=", found[2]
        elif (found := _RELEVANT.fullmatch(relevant.strip())) is not None:
            name, how, value = found[1], found[2], found[3] or found[4]
        else:
            return None
        source = next((one for one in self.columns if one.name == name), None)
        if isinstance(source, Binary):
            value = value.lower()
        known = source.levels if isinstance(source, Categorical) else ("yes", "no")
        fits = isinstance(source, Numeric) or (how in ("=", "!=") and value in known)
        return f"{name} {how} {value}" if source is not None and fits else None

    def _choice(
        self, name: str, list_name: str, words: dict[str, Any], *, unsaid: bool
    ) -> Feature | None:
        rows = self.choices.get(list_name, [])
        levels = [row["name"] for row in rows]
        if len(set(levels)) < 2:
            return self.lacks(
                name,
                Message(
                    "has fewer than two choices in the list {list_name!r}", list_name=list_name
                ),
            )
        labels = {row["name"]: self._words(row, "label") for row in rows}
        told = {level: text for level, text in labels.items() if text}
        if {level.lower() for level in levels} == {"yes", "no"}:
            found = {level.lower(): text for level, text in told.items()}
            return Binary(name, unsaid, Wording(**words, labels=tuple(found.items())))
        return Categorical(name, levels, unsaid, Wording(**words, labels=tuple(told.items())))

    def _words(self, row: Row, what: str) -> Any:
        """Return a text as it is, or by language; None where there is none."""
        texts = {}
        for key, text in row.items():
            head, _, language = key.partition("::")
            if head.strip() == what and text:
                texts[_tag(language)] = text
        if set(texts) <= {""}:
            return texts.get("")
        if plain := texts.pop("", None):
            texts.setdefault(self.default or "en", plain)
        return texts


def _joined(asked: Any, label: Any) -> Any:
    """Return a question and one of its choices, in each language that either has."""
    languages = {tag for text in (asked, label) if isinstance(text, dict) for tag in text}
    if not languages:
        return f"{asked} – {label}"

    def said(text: Any, tag: str) -> Any:
        return text.get(tag) or next(iter(text.values())) if isinstance(text, dict) else text

    return {tag: f"{said(asked, tag)} – {said(label, tag)}" for tag in sorted(languages)}


def _sheets(path: Path) -> dict[str, list[Row]]:
    """Read the sheets by name, each row by the heading of its columns; empty cells are left out.

    Its size is bounded before it is unpacked, then how far its rows and columns reach.
    """
    with workbook(path, _MOST_BYTES) as book:
        return {sheet.title.strip().lower(): _rows(path.name, sheet) for sheet in book.worksheets}


def _rows(source: str, sheet: Any) -> list[Row]:
    rows = sheet.iter_rows(values_only=True, max_row=_MOST_ROWS + 1, max_col=_MOST_COLUMNS)
    cells = (["" if cell is None else word_of(cell) for cell in row] for row in rows)
    head = next(cells, [])
    pairs = (zip(head, row, strict=False) for row in cells)
    found = [{key: text for key, text in row if key and text} for row in pairs]
    if len(found) >= _MOST_ROWS:
        raise InvalidValueError(
            "Expected fewer than {most_rows:,} rows in the sheet {sheet_title!r} of {source!r}.",
            most_rows=_MOST_ROWS,
            sheet_title=sheet.title,
            source=source,
        )
    return [row for row in found if row]


def _size(row: Row, choices: Mapping[str, list[Row]]) -> tuple[int, int]:
    """Return how many columns, and how many letters, a row of the survey's sheet makes."""
    kind, list_name, *_ = [*row.get("type", "").split(), "", ""]
    chosen = choices.get(list_name, []) if kind in ("select_one", "select_multiple") else []
    repeats = max(1, len(chosen) if kind == "select_multiple" else 1)
    letters = sum(len(text) for choice in chosen for text in choice.values())
    return max(1, len(chosen)), letters + repeats * sum(map(len, row.values()))


def _refuse_if_large(source: str, sizes: Iterable[tuple[int, int]]) -> None:
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


def _choices(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        name = row.get("list_name") or row.get("list name") or ""
        if name and row.get("name"):
            found.setdefault(name, []).append(row)
    return found


def _tag(language: str) -> str:
    """Return the code in "Deutsch (de)", or "" if there is none."""
    found = re.search(r"\(([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)\)", language)
    found = found or re.fullmatch(r"\s*([a-z]{2,3})\s*", language)
    head, *rest = (found[1] if found else "").split("-")
    return "-".join([head.lower(), *rest])


def _bounds(row: Row) -> tuple[float, float] | None:
    """Read the bounds from a range's parameters, or from a constraint that says nothing else."""
    given = dict(re.findall(r"(start|end)\s*=\s*(\S+)", row.get("parameters", "")))
    if {"start", "end"} <= set(given):
        if not all(re.fullmatch(_NUMBER, given[one]) for one in ("start", "end")):
            return None
        return float(given["start"]), float(given["end"])
    found: dict[re.Pattern[str], list[float]] = {_LOWER: [], _UPPER: []}
    # Where all conditions must hold, brackets change nothing; `or` is part of no bound.
    for condition in re.split(r"\band\b", re.sub("[()]", " ", row.get("constraint", ""))):
        for pattern, bounds in found.items():
            if (match := pattern.fullmatch(condition.strip())) is not None:
                bounds.append(float(match[1] or match[2]))
                break
        else:
            return None  # something else: what the bounds are is for a person to say
    lower, upper = found.values()
    return (max(lower), min(upper)) if lower and upper else None


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
