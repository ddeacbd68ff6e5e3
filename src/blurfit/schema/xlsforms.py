"""Read surveys that were written as an XLSForm, for ODK, KoboToolbox or SurveyCTO.

Each cell of a form is applied, or named: in a refusal that says what to mend, or in a note on what
was left out. So nothing that a form says is lost silently. Each cell that is read is marked
(`Row.take`); what is unmarked at the end becomes a note.

| XLSForm | here |
| --- | --- |
| integer, decimal, with a constraint such as `. >= 18 and . <= 90` | numeric; else not eligible |
| range, with parameters start (or 1) and end (or 10) | numeric |
| select_one LIST | categorical, with the list's choices; yes/no: binary |
| select_multiple LIST | a binary question for each of the list's choices, name_choice |
| … or_other | one more choice, other; its free text is left out |
| acknowledge | binary |
| begin_group … end_group | a section |
| label, hint, also label::Deutsch (de) | question and hint, in these languages |
| required | everybody answers; all else may be left unsaid |
| relevant of a question, of its groups, such as `${kids} = 'yes'` | asked only of these people |
| a longer `relevant` | asked of everybody, may be left unsaid; named |
| form_title, default_language in settings | the title, the language of texts that name none |
| disabled, read_only, calculation; repeats with all in them | left out, named |
| text, date, geopoint, note, calculate and all other types | left out, named |
| choice_filter, other constraints, all other columns, settings and sheets | left out, named |

Headings and types are known by their older names too (`relevance`, `bind::relevant`, `caption`,
`Required`, `label:Deutsch`, `select one from`, `int`).
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import (
    About,
    Binary,
    Categorical,
    Feature,
    Numeric,
    Outside,
    Wording,
)
from blurfit.schema.imports import Imported, SurveyReader, refuse_if_large
from blurfit.schema.table_files import word_of, workbook
from blurfit.wording import Message, Series

_HEADINGS = {  # older names of columns
    "command": "type",
    "tag": "name",
    "value": "name",
    "caption": "label",
    "relevance": "relevant",
    "calculate": "calculation",
    "readonly": "read_only",
    "set_form_title": "form_title",
    "title": "form_title",
}
_CONTROL = re.compile(r"(begin|end)[ _](.+)", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:q |add )?(int|integer|decimal)(?: prompt)?|range", re.IGNORECASE)
_SELECT = re.compile(
    r"(?:q |add )?(?:select(?:[_ ]one|1)|(?P<several>select(?:[_ ]multiple| all that apply)))"
    r"(?: prompt)?(?: from| using)? (?P<list>\S+)(?P<other> or(?:[_ ]specify)?[_ ]other)?",
    re.IGNORECASE,
)
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_LOWER = re.compile(rf"\.\s*>=?\s*{_NUMBER}|{_NUMBER}\s*<=?\s*\.")
_UPPER = re.compile(rf"\.\s*<=?\s*{_NUMBER}|{_NUMBER}\s*>=?\s*\.")
_RELEVANT = re.compile(rf"\$\{{(.+?)\}}\s*(<=|>=|!=|=|<|>)\s*(?:(['\"])(.+?)\3|{_NUMBER})")
_SELECTED = re.compile(r"selected\(\s*\$\{(.+?)\}\s*,\s*(['\"])(.+?)\2\s*\)")
_TRUE, _FALSE = {"yes", "true", "true()", "1"}, {"", "no", "false", "false()", "0"}
# Far more than any survey has; a workbook within them is read in seconds.
_MAX_BYTES, _MAX_ROWS, _MAX_COLUMNS = 2**24, 2**16, 2**8
_LAST_ROW = 2**20  # of a sheet, by Excel's specification
_TEXTS = ("label", "hint")
Key = tuple[str, str]  # what a column is, and the language of its texts


@dataclass
class Row:
    """A row of a sheet, and which of its cells were read."""

    number: int  # as spreadsheets count
    cells: Mapping[Key, str]
    taken: set[Key] = field(default_factory=set)

    def take(self, name: str, language: str = "") -> str:
        """Read a cell; "" where it is empty."""
        self.taken.add((name, language))
        return self.cells.get((name, language), "")


@dataclass
class Sheet:
    """Rows below the headings, each heading as it is written."""

    headings: Mapping[Key, str]
    rows: list[Row]

    def unread(self, rows: Collection[Row] | None = None) -> list[str]:
        """Name the headings under which something stands that was not read."""
        keys = {key for row in rows or self.rows for key in set(row.cells) - row.taken}
        return [heading for key, heading in self.headings.items() if key in keys]


_NO_SHEET = Sheet({}, [])


def is_xlsform(path: Path) -> bool:
    """Tell a form's workbook, which has a sheet named survey, from a table of people."""
    with workbook(path, _MAX_BYTES) as book:
        return any(name.strip().lower() == "survey" for name in book.sheetnames)


def from_xlsform(
    path: Path,
    target: str | None = None,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    name: str | None = None,
) -> Imported:
    """Read a schema from a form's workbook.

    Args:
        path: the workbook.
        target: the question to be predicted; "" the last that everybody is asked.
        bounds: the lowest and the highest value of numbers, before those of the form.
        name: the file's name in messages, where it is not that of `path`.

    Raises:
        InvalidValueError: something is lacking; every question that lacks something is named.
    """
    name = name or path.name
    with workbook(path, _MAX_BYTES) as book:
        sheets = {one.title.strip().lower(): one for one in book.worksheets}
        if "survey" not in sheets:
            raise InvalidValueError(
                "{name!r} must be an XLSForm, with a sheet named survey, got the sheets {sheets}.",
                name=name,
                sheets=Series(map(repr, sheets)),
            )
        known = {
            title: sheets.pop(title)
            for title in ("survey", "choices", "settings")
            if title in sheets
        }
        read = {title: _sheet(name, sheet) for title, sheet in known.items()}
    survey = read["survey"]
    if ("type", "") not in survey.headings:
        names = [heading for key, heading in survey.headings.items() if key[0]]
        raise InvalidValueError(
            "The first row of the sheet survey of {name!r} must name its columns, type among "
            "them, got {headings}.",
            name=name,
            headings=Series(map(repr, names)),
        )
    form = _Form(
        Message("The form {name!r}", name=name),
        bounds=dict(bounds or {}),
        choices=read.get("choices", _NO_SHEET),
        takes_bounds=bounds is not None,
    )
    return form.convert(survey, read.get("settings", _NO_SHEET), list(sheets), target)


@dataclass
class _Group:
    """A group that is open."""

    row: Row
    section: Any
    relevant: str


@dataclass
class _Form(SurveyReader):
    """Rows of the survey's sheet, one after the other."""

    choices: Sheet = field(default_factory=lambda: _NO_SHEET)
    takes_bounds: bool = False  # by hand, so that a refusal may ask for them
    tags: dict[str, str] = field(default_factory=dict)  # of languages, as headings name them
    default: str = ""  # the language of texts that name none
    lists: dict[str, list[Row]] = field(default_factory=dict)
    unused: dict[str, list[Row]] = field(default_factory=dict)
    groups: list[_Group] = field(default_factory=list)  # that are open
    outside: int = 0  # how many groups are open in one that is left out, itself counted
    reason: str = ""  # for which it is left out
    faults: dict[str, list[str]] = field(default_factory=dict)  # rows, by what is wrong
    remarks: dict[str, list[str]] = field(default_factory=dict)  # rows, by what is to be known

    def convert(
        self, survey: Sheet, settings: Sheet, others: list[str], target: str | None
    ) -> Imported:
        """Read all sheets, and note what was left out of them."""
        facts = settings.rows[0] if settings.rows else Row(2, {})
        language = facts.take("default_language")
        self.default = _tag(language)
        self._learn_languages(survey, language)
        title = self._words(facts, "form_title") or None
        self._learn_choices()
        refuse_if_large(self.source, [self._size(row) for row in survey.rows])
        for row in survey.rows:
            self.read(row)
        for group in self.groups:
            self._refuse("groups without an end: {rows}", group.row)
        self.lacking += [Message(each, rows=Series(rows)) for each, rows in self.faults.items()]
        self._remark_on_sheets(survey, settings, others)
        self.notes += [Message(each, rows=Series(rows)) for each, rows in self.remarks.items()]
        return self.finish(About(title=title), target)

    def _size(self, row: Row) -> tuple[int, int]:
        """Return how many columns, and how many letters, a row of the survey's sheet makes."""
        select = _SELECT.fullmatch(" ".join(row.cells.get(("type", ""), "").split()))
        choices = self.lists.get(select["list"], []) if select else []
        repeats = len(choices) if select and select["several"] else 1
        letters = sum(len(text) for choice in choices for text in choice.cells.values())
        letters += max(1, repeats) * sum(map(len, row.cells.values()))
        return max(1, len(choices)), letters

    def read(self, row: Row) -> None:
        """Read one row: a question, the bounds of a group, or what is left out."""
        kind, name = " ".join(row.take("type").split()), row.take("name")
        control = _CONTROL.fullmatch(kind)
        if control and control[1].lower() == "end":
            self._end(row)
        elif self.outside:
            self.outside += control is not None
            self._leave_out(row, self.reason)
        elif (disabled := row.take("disabled").lower()) in _TRUE:
            self._leave_out(row, "disabled")
        elif disabled not in _FALSE:
            self._refuse("rows with neither yes nor no under `disabled`: {rows}", row)
        elif control:
            self._begin(row, control[2].lower())
        elif kind:
            self._ask(row, kind, name)
        else:
            self._leave_out(row, "no type")

    def _begin(self, row: Row, kind: str) -> None:
        group = _Group(row, self._words(row, "label"), row.take("relevant"))
        if kind == "group" and group.relevant.strip() != "false()":
            self.groups.append(group)
            return
        self.outside = 1
        self.reason = "never asked" if kind == "group" else kind
        self._leave_out(row, self.reason)

    def _end(self, row: Row) -> None:
        row.taken |= set(row.cells)  # a name, or a label, of what ends
        if self.outside:
            self.outside -= 1
        elif self.groups:
            self.groups.pop()
        else:
            self._refuse("ends of groups that did not begin: {rows}", row)

    def _ask(self, row: Row, kind: str, name: str) -> None:
        """Ask what can be asked; leave out the rest, and say why."""
        select, appearance = _SELECT.fullmatch(kind), row.cells.get(("appearance", ""), "")
        blurred = select or kind.lower() in ("acknowledge", "trigger") or _NUMBERS.fullmatch(kind)
        if not blurred:
            self._leave_out(row, kind)
        elif row.take("calculation"):
            self._leave_out(row, "calculated")
        elif row.take("read_only").lower() not in _FALSE:
            self._leave_out(row, "read_only")
        elif row.cells.get(("relevant", ""), "").strip() == "false()":
            self._leave_out(row, "never asked")
        elif select and "search(" in appearance.replace(" ", ""):
            self._leave_out(row, "search()")
        elif not name:
            self._refuse("questions without a name: {rows}", row)
        elif any(one.name == name for one in self.columns):
            self._refuse("questions with the name of an earlier one: {rows}", row)
        else:
            try:
                questions = self._questions(row, kind, name, select)
            except InvalidValueError as error:
                self.lacking.append(
                    Message("row {number}: {error}", number=row.number, error=error)
                )
            else:
                self.columns += questions
                if self._conditions(row):
                    self.asked_of_some.update(one.name for one in questions)

    def _questions(
        self, row: Row, kind: str, name: str, select: re.Match[str] | None
    ) -> list[Feature]:
        unsaid, words = self._asked(row)
        if select:
            return self._select(row, name, select, words, unsaid=unsaid)
        if not _NUMBERS.fullmatch(kind):
            self._remark_on_constraint(row)
            return [Binary(name, unsaid, Wording(**words))]
        bounds = _bounds(row, is_range=kind.lower() == "range")
        if name in self.bounds:
            if bounds is None:
                self._remark_on_constraint(row)
            bounds = self.bounds.pop(name)
        if bounds is None:
            self._refuse(
                "numbers without bounds, which need a constraint such as `.>=0 and .<=100` or "
                "`--bounds NAME LOWEST HIGHEST`: {rows}"
                if self.takes_bounds
                else "numbers without bounds, which need a constraint such as "
                "`.>=0 and .<=100`: {rows}",
                row,
            )
            return []
        outside: Outside = "clip" if kind.lower() == "range" else "refuse"  # as the form itself
        return [Numeric(name, *bounds, outside, optional=unsaid, wording=Wording(**words))]

    def _select(
        self,
        row: Row,
        name: str,
        select: re.Match[str],
        words: dict[str, Any],
        *,
        unsaid: bool,
    ) -> list[Feature]:
        """Ask for one of a list's choices, or yes or no for each of them."""
        labels: dict[str, Any] = {}
        for one in self.lists.get(select["list"], []):
            level, label = one.take("name"), self._words(one, "label")
            if labels.setdefault(level, label) != label:
                self._remark(
                    "Rows whose list has a choice twice, of which the first is shown: {rows}.",
                    row,
                    level,
                )
        self.unused.pop(select["list"], None)
        if select["other"]:
            labels.setdefault("other", None)
            self._remark("Rows without free text where people choose other: {rows}.", row)
        if row.take("choice_filter"):
            self._remark(
                "Rows with all their choices, as `choice_filter` is left out: {rows}.", row
            )
        self._remark_on_constraint(row)
        if not labels:
            self._refuse("questions without choices in their list: {rows}", row, select["list"])
            return []
        if select["several"] is not None:
            asked = words.pop("question") or name
            return [
                Binary(
                    f"{name}_{level}",
                    unsaid,
                    Wording(**words, question=_joined(asked, label or level)),
                )
                for level, label in labels.items()
            ]
        if len(labels) == 1:
            self._leave_out(row, "one choice")
            return []
        texts = {level: text for level, text in labels.items() if text}
        if {level.lower() for level in labels} == {"yes", "no"}:
            plain = {level.lower(): text for level, text in texts.items()}
            return [Binary(name, unsaid, Wording(**words, labels=tuple(plain.items())))]
        wording = Wording(**words, labels=tuple(texts.items()))
        return [Categorical(name, list(labels), unsaid, wording)]

    def _asked(self, row: Row) -> tuple[bool, dict[str, Any]]:
        """Return whether a question may be left unsaid, and how it is worded."""
        words = {"question": self._words(row, "label"), "hint": self._words(row, "hint")}
        if "${" in str(words):
            self._remark(
                "Rows that show `${{…}}` as written, as no answer is put into a text: {rows}.", row
            )
        words["section"] = next((one.section for one in reversed(self.groups) if one.section), None)
        if conditions := self._conditions(row):
            words["only_if"] = self._compared(*conditions) if len(conditions) == 1 else None
            if words["only_if"] is None:
                self._remark(
                    "Rows asked of everybody, who need not say, because `relevant` is more than "
                    "one comparison of an earlier answer: {rows}.",
                    row,
                )
        required = row.take("required").lower()
        if required not in _TRUE | _FALSE:
            self._remark("Rows that may be left unsaid, as `required` is a condition: {rows}.", row)
        return bool(conditions) or required not in _TRUE, words

    def _conditions(self, row: Row) -> set[str]:
        """Return what must hold for a question to be asked, for its groups too."""
        parts = [*(one.relevant for one in self.groups), row.take("relevant")]
        return {" ".join(one.split()) for one in parts} - {"", "true()"}

    def _compared(self, relevant: str) -> str | None:
        """Read `${kids} = 'yes'`, or `selected(${kids}, 'yes')`; None for anything else."""
        if (match := _SELECTED.fullmatch(relevant)) is not None:
            name, how, value = match[1], "=", match[3]
            if any(one.name == f"{name}_{value}" for one in self.columns):  # of several
                name, value = f"{name}_{value}", "yes"
        elif (match := _RELEVANT.fullmatch(relevant)) is not None:
            name, how, value = match[1], match[2], match[4] or match[5]
        else:
            return None
        source = next((one for one in self.columns if one.name == name), None)
        if isinstance(source, Binary):
            value = value.lower()
        known = source.levels if isinstance(source, Categorical) else ("yes", "no")
        fits = (
            re.fullmatch(_NUMBER, value)
            if isinstance(source, Numeric)
            else how in ("=", "!=") and value in known
        )
        return f"{name} {how} {value}" if source is not None and fits else None

    # ---- texts and choices

    def _learn_languages(self, survey: Sheet, default: str) -> None:
        """Find each language's code; one without a code may be that of texts that name none."""
        sheets = (survey, self.choices)
        names = dict.fromkeys(
            key[1] for sheet in sheets for key in sheet.headings if key[0] in _TEXTS
        )
        self.tags = {name: _tag(name) for name in names if not name or _tag(name)}
        unknown = [name for name in names if name not in self.tags]
        if unknown and ("label", "") not in survey.headings:
            self.tags[default if default in unknown else unknown[0]] = ""

    def _words(self, row: Row, what: str) -> Any:
        """Return a text as it is, or by language; None where there is none."""
        texts: dict[str, str] = {}
        for name, language in row.cells:
            tag = self.tags.get(language)
            if name == what and tag is not None and tag not in texts:
                texts[tag] = row.take(name, language)
        if set(texts) <= {""}:
            return texts.get("")
        if plain := texts.pop("", None):
            texts.setdefault(self.default or "en", plain)
        return texts

    def _learn_choices(self) -> None:
        for row in self.choices.rows:
            name, level = row.take("list_name"), row.take("name")
            if name and level:
                self.lists.setdefault(name, []).append(row)
            else:
                row.taken |= set(row.cells)
                self._remark(
                    "Rows of choices left out, as they have no list or no name: {rows}.", row
                )
        self.unused = dict(self.lists)

    # ---- what is left out

    def _remark(self, template: str, row: Row, detail: str = "") -> None:
        self.remarks.setdefault(template, []).append(_place(row, detail))

    def _refuse(self, template: str, row: Row, detail: str = "") -> None:
        self.faults.setdefault(template, []).append(_place(row, detail))

    def _leave_out(self, row: Row, reason: str) -> None:
        row.taken |= set(row.cells)
        if row.cells:
            self._remark(
                "Rows left out, as only numbers, yes or no and choices can be blurred: {rows}.",
                row,
                reason,
            )

    def _remark_on_constraint(self, row: Row) -> None:
        if row.take("constraint"):
            self._remark(
                "Rows with every answer accepted, as `constraint` is left out: {rows}.", row
            )

    def _remark_on_sheets(self, survey: Sheet, settings: Sheet, others: list[str]) -> None:
        """Name all that stands in the workbook and was not read."""
        chosen = [
            row for name, rows in self.lists.items() if name not in self.unused for row in rows
        ]
        left_out = {
            "Columns of the sheet survey that are left out: {rows}.": survey.unread(),
            "Columns of the sheet choices that are left out: {rows}.": (
                self.choices.unread(chosen) if chosen else []
            ),
            "A language has a code, as in label::Deutsch (de); without one: {rows}.": [
                heading
                for sheet in (survey, self.choices)
                for (name, language), heading in sheet.headings.items()
                if name in _TEXTS and self.tags.get(language) is None
            ],
            "Settings that are left out: {rows}.": settings.unread(),
            "Lists of choices that no question has: {rows}.": list(self.unused),
            "Sheets that are left out: {rows}.": others,
        }
        for template, items in left_out.items():
            if items:
                self.remarks[template] = list(map(repr, items))


def _place(row: Row, detail: str) -> str:
    """Name a row: 3 'age' (integer)."""
    name = row.take("name")
    words = (str(row.number), repr(name) if name else "", f"({detail})" if detail else "")
    return " ".join(word for word in words if word)


def _joined(asked: Any, label: Any) -> Any:
    """Return a question and one of its choices, in each language that either has."""
    languages = {tag for text in (asked, label) if isinstance(text, dict) for tag in text}
    if not languages:
        return f"{asked} – {label}"

    def said(text: Any, tag: str) -> Any:
        return text.get(tag) or next(iter(text.values())) if isinstance(text, dict) else text

    return {tag: f"{said(asked, tag)} – {said(label, tag)}" for tag in sorted(languages)}


def _tag(language: str) -> str:
    """Return the code in "Deutsch (de)", or "" if there is none."""
    match = re.search(r"\(([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)\)", language)
    match = match or re.fullmatch(r"\s*([a-z]{2,3})\s*", language)
    head, *rest = (match[1] if match else "").split("-")
    return "-".join([head.lower(), *rest])


def _bounds(row: Row, *, is_range: bool = False) -> tuple[float, float] | None:
    """Read the bounds from a range's parameters, or from a constraint that says nothing else."""
    if is_range:
        ends = dict(re.findall(r"(start|end)\s*=\s*(\S+)", row.take("parameters")))
        start, end = ends.get("start", "1"), ends.get("end", "10")  # as the specification says
        if not (re.fullmatch(_NUMBER, start) and re.fullmatch(_NUMBER, end)):
            return None
        return float(start), float(end)
    limits: dict[re.Pattern[str], list[float]] = {_LOWER: [], _UPPER: []}
    # Where all conditions must hold, brackets change nothing; `or` is part of no bound.
    for condition in re.split(r"\band\b", re.sub("[()]", " ", row.take("constraint"))):
        for pattern, numbers in limits.items():
            if (match := pattern.fullmatch(condition.strip())) is not None:
                numbers.append(float(match[1] or match[2]))
                break
        else:
            return None  # something else: what the bounds are is for a person to say
    lower, upper = limits.values()
    return (max(lower), min(upper)) if lower and upper else None


# ---- sheets


def _key(heading: str) -> Key:
    """Tell what a column is, by any of its names, and the language of its texts."""
    head, *rest = (part.strip() for part in re.split("::?", heading))
    name = "_".join(head.lower().split())
    if name in ("bind", "control", "body") and rest:
        name, *rest = "_".join(rest[0].lower().split()), *rest[1:]
    return _HEADINGS.get(name, name), "::".join(rest)


def _sheet(source: str, sheet: Any) -> Sheet:
    """Read a sheet whose first row names its columns."""
    title = sheet.title
    headings: dict[Key, str] = {}
    rows = []
    for number, words in _filled_rows(source, sheet):
        if number > 1:
            cells = {key: word for key, word in zip(headings, words, strict=False) if word}
            rows.append(Row(number, cells))
            continue
        for place, word in enumerate(words, start=1):
            key = _key(word) if word else ("", str(place))
            if key in headings:
                raise InvalidValueError(
                    "The sheet {title!r} of {source!r} must have each column once, got "
                    "{first!r} and {second!r}. Rename or delete one of them.",
                    title=title,
                    source=source,
                    first=headings[key],
                    second=word,
                )
            headings[key] = word or f"column {place}"
    return Sheet(headings, [row for row in rows if row.cells])


def _filled_rows(source: str, sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows in which something stands, with their numbers.

    What the workbook unpacks to was bounded before; how far its rows and columns reach is here.
    """
    count = 0
    lines = sheet.iter_rows(values_only=True, max_row=_LAST_ROW, max_col=_MAX_COLUMNS + 1)
    for number, cells in enumerate(lines, start=1):
        if cells.count(None) == len(cells):
            continue
        count += 1
        if count > _MAX_ROWS or cells[_MAX_COLUMNS] is not None:
            raise InvalidValueError(
                "The sheet {title!r} of {source!r} must have at most {rows:,} rows and {columns:,} "
                "columns, got more.",
                title=sheet.title,
                source=source,
                rows=_MAX_ROWS,
                columns=_MAX_COLUMNS,
            )
        yield number, ["" if cell is None else word_of(cell) for cell in cells]
