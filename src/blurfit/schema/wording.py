"""What people read of a survey: who asks, and why, and each question in words, in any languages.

All of it is part of the schema, so it is under the agreement's fingerprint: nobody can be shown a
question that differs from everybody else's. In a file:

    title = {en = "Work and income", de = "Arbeit und Einkommen"}
    purpose = "What schooling is worth, by region"      # in one language is fine
    organiser = "Statistics Office"
    contact = "survey@office.example"
    [[features]]
    name = "region"
    kind = "categorical"
    levels = ["n", "s"]
    title = "Region"                 # in tables and charts
    question = "Where do you live?"  # on the form
    hint = "Where you sleep most nights."
    section = "About you"            # long forms have a page for each section
    labels = {n = "in the north", s = "in the south"}   # of yes/no: labels = {yes = "…", no = "…"}
    only_if = "abroad = no"          # asked only of these; for all others it is not said

A numeric column may have a `unit`. `only_if` names an earlier question, whose answer is compared
(=, !=, and <, <=, >, >= of a number); the question itself is optional. Whoever is not asked counts,
and is blurred, like somebody who does not say. Nothing of this is computed with. What is left out
is left out of the JSON too, so a schema without any has the fingerprint that it always had.

**Texts are harmless.** A text is one line, of at most 2,000 characters. Control characters, lone
surrogates, line separators and the marks that reorder what follows (U+202A to U+202E, U+2066 to
U+2069) are refused, here and in the page, and in names and levels too; everything else is escaped
where it is rendered.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from blurfit.errors import InvalidValueError

LONGEST = 2000
YES, NO = "yes", "no"
_COMPARED = re.compile(r"(.+?) ?(<=|>=|!=|=|<|>) ?(.+)")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_HARMFUL = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


@dataclass(frozen=True)
class Text:
    """A line of text, in one language that nobody names ("") or in several.

    >>> title = Text.of("title", {"en": "Work", "de": "Arbeit"})
    >>> title.in_language("de-AT"), title.in_language("fr"), str(title)
    ('Arbeit', 'Work', 'Work')
    """

    languages: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, what: str, given: Any) -> "Text":
        """Read a word, a table of languages, or a text; `what` is for messages."""
        if isinstance(given, Text):
            return given
        if isinstance(given, str):
            return cls((("", _line(what, given)),))
        if not isinstance(given, Mapping) or not given:
            raise InvalidValueError(
                f"Expected {what}={given!r} to be a text, or a table of texts by language, such as "
                '{en = "Age", de = "Alter"}.'
            )
        for language in given:
            if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
                raise InvalidValueError(
                    f"Expected {what} by languages such as en or de-AT, and got {language!r}."
                )
        return cls(tuple((key, _line(f"{what}.{key}", given[key])) for key in sorted(given)))

    def in_language(self, language: str | None = None) -> str:
        """Return it in that language, or one of its kind; else in English, else in the first."""
        texts = dict(self.languages)
        for tag in (language or "", (language or "").split("-")[0], "en"):
            if tag in texts:
                return texts[tag]
        return self.languages[0][1]

    def __str__(self) -> str:
        return self.in_language()

    def to_plain(self) -> str | dict[str, str]:
        """Return it as in the file."""
        texts = dict(self.languages)
        return texts.get("", texts)


@dataclass(frozen=True)
class About:
    """Who asks, and what for."""

    title: Text | None = None
    purpose: Text | None = None
    organiser: Text | None = None
    contact: Text | None = None

    def __post_init__(self) -> None:
        _read_texts(self, ABOUT)

    def to_dict(self) -> dict[str, Any]:
        """Return what there is of it, as in the file."""
        return _written(self, ABOUT)


@dataclass(frozen=True)
class OnlyIf:
    """The people whom a question is asked of: those whose answer to an earlier one compares so.

    >>> str(OnlyIf.of("age>=18"))
    'age >= 18'
    """

    name: str
    how: str
    value: str

    @classmethod
    def of(cls, given: Any) -> "OnlyIf":
        """Read a comparison: a name, =, !=, <, <=, > or >=, and an answer."""
        if isinstance(given, OnlyIf):
            return given
        found = _COMPARED.fullmatch(_line("only_if", given))
        if found is None:
            raise InvalidValueError(
                f'Expected only_if={given!r} to be a comparison such as "children = yes" or '
                '"age >= 18".'
            )
        return cls(*found.groups())

    def __str__(self) -> str:
        return f"{self.name} {self.how} {self.value}"


@dataclass(frozen=True)
class Wording:
    """A question in words: each may be a plain text, or a table of texts by language.

    `labels` are of a categorical's levels, or of "yes" and "no"; they may be given as a table.

    >>> Wording(question="How old are you?", unit={"en": "years"}).to_dict()
    {'question': 'How old are you?', 'unit': {'en': 'years'}}
    """

    title: Text | None = None
    question: Text | None = None
    hint: Text | None = None
    unit: Text | None = None
    section: Text | None = None
    labels: Sequence[tuple[str, Text]] = ()
    only_if: OnlyIf | None = None

    def __post_init__(self) -> None:
        _read_texts(self, WORDS)
        if self.only_if is not None:
            object.__setattr__(self, "only_if", OnlyIf.of(self.only_if))
        labels: Any = self.labels
        pairs: Any = labels.items() if isinstance(labels, Mapping) else labels
        if isinstance(pairs, str) or not isinstance(pairs, Iterable):
            raise InvalidValueError(
                f"Expected labels={labels!r} to be a table from answers to texts."
            )
        found = {str(level): Text.of(f"labels.{level}", text) for level, text in pairs}
        object.__setattr__(self, "labels", tuple(sorted(found.items())))

    def label(self, answer: str, language: str | None = None) -> str:
        """Return what an answer is called."""
        found = dict(self.labels).get(answer)
        return answer if found is None else found.in_language(language)

    def refuse_unless_about(self, name: str, answers: Sequence[str], *, measured: bool) -> None:
        """Refuse labels of what cannot be answered, and a unit of what is not measured."""
        if unknown := [answer for answer, _ in self.labels if answer not in answers]:
            known = ", ".join(answers) or "none, because it is a number"
            raise InvalidValueError(
                f"Expected labels of {name!r} for its answers ({known}), and got "
                f"{', '.join(unknown)}."
            )
        if self.unit is not None and not measured:
            raise InvalidValueError(f"Expected no unit for {name!r}, which is not a number.")

    def to_dict(self) -> dict[str, Any]:
        """Return what there is of it, as in the file."""
        found = _written(self, WORDS)
        if self.labels:
            found["labels"] = {answer: text.to_plain() for answer, text in self.labels}
        return found | ({} if self.only_if is None else {"only_if": str(self.only_if)})


ABOUT = tuple(one.name for one in fields(About))
WORDS = ("title", "question", "hint", "unit", "section")
WORDING_KEYS = (*WORDS, "labels", "only_if")


def about_from(entry: Mapping[str, Any]) -> About:
    """Read what a schema's table says of who asks."""
    return About(**{key: entry[key] for key in ABOUT if key in entry})


def wording_from(entry: Mapping[str, Any]) -> Wording:
    """Read what a column's table says in words."""
    return Wording(**{key: entry[key] for key in WORDING_KEYS if key in entry})


def _read_texts(target: Any, names: Iterable[str]) -> None:
    for name in names:
        if (given := getattr(target, name)) is not None:
            object.__setattr__(target, name, Text.of(name, given))


def _written(source: Any, names: Iterable[str]) -> dict[str, Any]:
    texts = ((name, getattr(source, name)) for name in names)
    return {name: text.to_plain() for name, text in texts if text is not None}


def _line(what: str, text: Any) -> str:
    """Return one line, with single spaces."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidValueError(f"Expected {what}={text!r} to be a text that is not empty.")
    line = " ".join(text.split())
    refuse_harmful(what, line)
    if len(line) > LONGEST:
        raise InvalidValueError(
            f"Expected {what} of at most {LONGEST:,} characters, and got {len(line):,}."
        )
    return line


def refuse_harmful(what: str, text: str) -> None:
    """Refuse characters that hide or reorder what is read, or break a line, in texts and names."""
    if harmful := _HARMFUL.search(text):
        raise InvalidValueError(
            f"Expected {what} without the character U+{ord(harmful[0]):04X}, which can hide or "
            "reorder what is read."
        )


NO_WORDING, NO_ONE = Wording(), About()
