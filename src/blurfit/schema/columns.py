"""Columns: what people read of each question, and its way from public facts to [−1, 1] and back.

**Words**, in any languages: who asks and why (`About`), and each question (`Wording`). They are
under the agreement's fingerprint: nobody can be shown a question that differs from everybody
else's. `only_if` compares the answer to an earlier question (=, !=, and <, <=, >, >= of a number);
the question itself is optional, and people who are not asked are blurred like people who do not
say. A text is one line of at most 2,000 characters. Control characters, lone surrogates, line
separators and marks that reorder text (U+202A to U+202E, U+2066 to U+2069) are refused, in names
and levels too; everything else is escaped where it is rendered.

**Kinds** of columns:

| kind | values | z |
| --- | --- | --- |
| `Numeric` | numbers in [lower, upper] | 2(v − lower)/(upper − lower) − 1 |
| `Binary` | 0 or 1, False or True | 2v − 1 |
| `Categorical` | one of the levels | one 1 among zeros, a column for each level |
| `TimeToEvent` | 0 or 1, and the time until then | 2v − 1, and the time as a number; targets only |
| `Label` | numbers in [lower, upper] | +1 above the threshold, −1 otherwise; for targets only |

A feature with `optional = true` has one column more, which is 1, and all others 0, for whoever does
not say. A feature adds at most 1 to ‖z‖², whatever the answers are, because scales come from
public facts and never from records; silent people count and are blurred like all others. Proofs:
`docs/theory/records.md`. Tested by `tests/schema/test_columns.py` and `test_unsaid.py`.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InvalidValueError, finite, one_of, positive, whole
from blurfit.schema.table import codes, missing, refuse_first, refuse_keys, refuse_missing
from blurfit.wording import Series

LONGEST = 2000
YES, NO = "yes", "no"
_COMPARED = re.compile(r"(.+?) ?(<=|>=|!=|=|<|>) ?(.+)")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
HARMFUL = "\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff"
_HARMFUL = re.compile(f"[{HARMFUL}]")


def assign(column: Any, **fields: Any) -> None:
    """Set fields of a frozen object while it is being made."""
    for name, value in fields.items():
        object.__setattr__(column, name, value)


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
                "Expected {what}={given!r} to be a text, or a table of texts by language, such as "
                '{{en = "Age", de = "Alter"}}.',
                what=what,
                given=given,
            )
        for language in given:
            if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
                raise InvalidValueError(
                    "Expected {what} by languages such as en or de-AT, and got {language!r}.",
                    what=what,
                    language=language,
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
class _Texts:
    """Fields that may each be a plain text, or a table of texts by language."""

    TEXTS: ClassVar[tuple[str, ...]]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        """Read the fields that a table of a file has."""
        return cls(**{one.name: entry[one.name] for one in fields(cls) if one.name in entry})

    def __post_init__(self) -> None:
        for name in self.TEXTS:
            if (given := getattr(self, name)) is not None:
                assign(self, **{name: Text.of(name, given)})

    def to_dict(self) -> dict[str, Any]:
        """Return what there is of it, as in the file."""
        texts = ((name, getattr(self, name)) for name in self.TEXTS)
        return {name: text.to_plain() for name, text in texts if text is not None}


@dataclass(frozen=True)
class About(_Texts):
    """Who asks, and what for."""

    TEXTS: ClassVar = ("title", "purpose", "organiser", "contact")
    title: Text | None = None
    purpose: Text | None = None
    organiser: Text | None = None
    contact: Text | None = None


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
                'Expected only_if={given!r} to be a comparison such as "children = yes" or '
                '"age >= 18".',
                given=given,
            )
        return cls(*found.groups())

    def __str__(self) -> str:
        return f"{self.name} {self.how} {self.value}"


@dataclass(frozen=True)
class Wording(_Texts):
    """A question in words: each may be a plain text, or a table of texts by language.

    `labels` are of a categorical's levels, or of "yes" and "no"; they may be given as a table.

    >>> Wording(question="How old are you?", unit={"en": "years"}).to_dict()
    {'question': 'How old are you?', 'unit': {'en': 'years'}}
    """

    TEXTS: ClassVar = ("title", "question", "hint", "unit", "section")
    title: Text | None = None
    question: Text | None = None
    hint: Text | None = None
    unit: Text | None = None
    section: Text | None = None
    labels: Sequence[tuple[str, Text]] = ()
    only_if: OnlyIf | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.only_if is not None:
            assign(self, only_if=OnlyIf.of(self.only_if))
        labels: Any = self.labels
        pairs: Any = labels.items() if isinstance(labels, Mapping) else labels
        if not isinstance(pairs, Iterable) or any(
            not isinstance(one, tuple | list) or len(one) != 2 for one in pairs
        ):
            raise InvalidValueError(
                "Expected labels={labels!r} to be a table from answers to texts.", labels=labels
            )
        found = {str(level): Text.of(f"labels.{level}", text) for level, text in pairs}
        assign(self, labels=tuple(sorted(found.items())))

    def label(self, answer: str, language: str | None = None) -> str:
        """Return what an answer is called."""
        found = dict(self.labels).get(answer)
        return answer if found is None else found.in_language(language)

    def refuse_unless_about(self, name: str, answers: Sequence[str], *, measured: bool) -> None:
        """Refuse labels of what cannot be answered, and a unit of what is not measured."""
        if unknown := [answer for answer, _ in self.labels if answer not in answers]:
            known = ", ".join(answers) or "none, because it is a number"
            raise InvalidValueError(
                "Expected labels of {name!r} for its answers ({known}), and got {unknown}.",
                name=name,
                known=known,
                unknown=Series(unknown),
            )
        if self.unit is not None and not measured:
            raise InvalidValueError(
                "Expected no unit for {name!r}, which is not a number.", name=name
            )

    def to_dict(self) -> dict[str, Any]:
        """Return what there is of it, as in the file."""
        found = super().to_dict()
        if self.labels:
            found["labels"] = {answer: text.to_plain() for answer, text in self.labels}
        return found | ({} if self.only_if is None else {"only_if": str(self.only_if)})


WORDING_KEYS = tuple(one.name for one in fields(Wording))


def _line(what: str, text: Any) -> str:
    """Return one line, with single spaces."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidValueError(
            "Expected {what}={text!r} to be a text that is not empty.", what=what, text=text
        )
    line = " ".join(text.split())
    refuse_harmful(what, line)
    if len(line) > LONGEST:
        raise InvalidValueError(
            "Expected {what} of at most {longest:,} characters, and got {line_count:,}.",
            what=what,
            longest=LONGEST,
            line_count=len(line),
        )
    return line


def seen_as(name: str) -> str:
    r"""Return what people see of a name: in Unicode's form NFC, without invisible characters.

    >>> seen_as("cafe\u0301\u200b") == seen_as("caf\u00e9")
    True
    """
    if name.isascii():
        return name
    shown = (letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", "".join(shown))


def refuse_harmful(what: str, text: str) -> None:
    """Refuse characters that hide or reorder what is read, or break a line, in texts and names."""
    if harmful := _HARMFUL.search(text):
        raise InvalidValueError(
            "Expected {what} without the character U+{ord:04X}, which can hide or "
            "reorder what is read.",
            what=what,
            ord=ord(harmful[0]),
        )


NO_WORDING, NO_ONE = Wording(), About()


Outside = Literal["clip", "refuse"]
OUTSIDE: tuple[Outside, ...] = get_args(Outside)
SMALLEST_WIDTH, LARGEST_WIDTH = 1e-300, 1e301  # of bounds: safe to divide by, and to divide
NOT_SAID = "(not said)"
MOST_BANDS = 48  # of a time to an event


class _Column:
    """Do what all kinds share: columns for those who do not say, and how they are written."""

    name: str
    optional: bool
    wording: Wording
    kind: ClassVar[str]
    affine: Any = (2.0, -1.0)  # the slope and the constant of z = slope·v + constant, v 0 or 1
    stand_in: Any = 0  # a valid value, for rows in which nothing is said
    of: Any = ()  # the questions that a derived column is computed from

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of the one column that it becomes, and of the one for not saying."""
        return self.name, *unsaid_columns(self.name, self.optional)

    @property
    def affines(self) -> tuple[tuple[float, float], ...]:
        """`affine` for each column; what was not said is at the middle, z = 0."""
        return (self.affine, (1.0, 0.0))[: len(self.columns)]

    def scale(self, values: AnyArray) -> FloatArray:
        """Scale into [−1, 1]: (n,), or (n, 2) with (0, 1) for whoever does not say."""
        if not self.optional:
            return self._scale(values)
        silent = missing(values)
        z = np.where(silent, 0.0, self._scale(filled(values, silent, self.stand_in)))
        return np.column_stack([z, silent])

    def to_dict(self) -> dict[str, Any]:
        """Return the column as the file has it."""
        optional = {"optional": True} if self.optional else {}
        stated = {"name": self.name, "kind": self.kind, **self._stated()}
        return {**stated, **optional, **self.wording.to_dict()}

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Compute a derived column from the answers to its sources."""
        raise NotImplementedError

    def _scale(self, values: AnyArray) -> FloatArray:
        raise NotImplementedError  # pragma: no cover

    def unscale(self, z: FloatArray) -> AnyArray:
        """Invert `scale` of a column that everybody answers, as targets are."""
        raise NotImplementedError  # pragma: no cover

    def _stated(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Numeric(_Column):
    """z = 2(v − lower)/(upper − lower) − 1, which is exactly −1 and +1 at the two bounds.

    Values outside are moved to the nearer bound (`outside="clip"`), or the contributor is asked to
    do so ("refuse": for typing errors). **Either way everybody counts, whatever the answers**: the
    guarantee takes the number of contributors to be the same, and to leave a record out because of
    an answer would reveal that answer. Proofs: `docs/theory/records.md`.

    >>> Numeric("age", 0, 100).scale(np.array([25, 130])).tolist()
    [-0.5, 1.0]
    """

    name: str
    lower: float
    upper: float
    outside: Outside = "clip"
    optional: bool = False
    wording: Wording = field(default=NO_WORDING, repr=False)
    kind: ClassVar = "numeric"

    def __post_init__(self) -> None:
        assign(self, name=as_text(name=self.name))
        assign(self, lower=as_number(lower=self.lower), upper=as_number(upper=self.upper))
        one_of(OUTSIDE, outside=self.outside)
        check_words(self, (), measured=True)
        if not SMALLEST_WIDTH <= self.width <= LARGEST_WIDTH:
            raise InvalidValueError(
                "Expected lower={lower!r} < upper={upper!r} for {name!r}, and not "
                "closer than {smallest_width} nor further apart than {largest_width}: state the "
                "bounds that every value is publicly known to keep, if need be in other units.",
                lower=self.lower,
                upper=self.upper,
                name=self.name,
                smallest_width=SMALLEST_WIDTH,
                largest_width=LARGEST_WIDTH,
            )

    @property
    def width(self) -> float:
        """upper − lower."""
        return self.upper - self.lower

    @property
    def centre(self) -> float:
        """(lower + upper)/2: the value at z = 0."""
        return self.lower / 2 + self.upper / 2

    @property
    def stand_in(self) -> float:
        """The value at z = 0, for whoever does not say."""
        return self.centre

    @property
    def affine(self) -> tuple[float, float]:
        """The slope and the constant of z = slope·v + constant."""
        return 2 / self.width, -(self.lower / self.width + self.upper / self.width)

    def above(self, threshold: float) -> "Label":
        """Return the label of whether the value is above the threshold, to be learned."""
        if self.optional:
            raise InvalidValueError(
                "Expected {name!r} not to be optional: a target is answered.", name=self.name
            )
        return Label(self.name, self.lower, self.upper, threshold, self.outside, self.wording)

    def inside(self, values: AnyArray) -> FloatArray:
        """Return the values, all of them within the bounds."""
        v = numbers(self.name, values)
        if self.outside == "refuse":
            refuse_first(
                self.name,
                (v < self.lower) | (v > self.upper),
                f"which is not within lower={self.lower!r} and upper={self.upper!r}; correct it, "
                'or put the nearer bound in its place, which outside="clip" does by itself',
            )
        return np.clip(v, self.lower, self.upper)

    def _scale(self, values: AnyArray) -> FloatArray:
        z = self.inside(values) - self.lower
        z /= self.width
        z *= 2
        z -= 1
        return z

    def unscale(self, z: FloatArray) -> FloatArray:
        """Return (1 − t)·lower + t·upper, t = (z + 1)/2, exact at the two ends."""
        t = (np.clip(z, -1, 1) + 1) / 2
        v: FloatArray = np.clip((1 - t) * self.lower + t * self.upper, self.lower, self.upper)
        return v

    def _stated(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper, "outside": self.outside}


@dataclass(frozen=True)
class Label(_Column):
    """+1 where the value is above the threshold, and −1 otherwise: `Numeric(…).above(threshold)`.

    >>> Numeric("income", 0, 200_000).above(37_000).scale(np.array([37_000, 37_001])).tolist()
    [-1.0, 1.0]
    """

    name: str
    lower: float
    upper: float
    threshold: float
    outside: Outside = "clip"
    wording: Wording = field(default=NO_WORDING, repr=False)
    optional: bool = field(default=False, init=False, repr=False)  # a target must be answered

    def __post_init__(self) -> None:
        self.wording.refuse_unless_about(str(self.name), (YES, NO), measured=True)
        value, threshold = self.value, as_number(threshold=self.threshold)
        if not value.lower < threshold < value.upper:
            raise InvalidValueError(
                "Expected threshold={threshold!r} for {name!r} strictly between "
                "lower={lower!r} and upper={upper!r}: otherwise all labels are alike.",
                threshold=threshold,
                name=value.name,
                lower=value.lower,
                upper=value.upper,
            )
        assign(self, name=value.name, lower=value.lower, upper=value.upper, threshold=threshold)

    @property
    def value(self) -> Numeric:
        """The column that the label is made from."""
        return Numeric(self.name, self.lower, self.upper, self.outside)

    def _scale(self, values: AnyArray) -> FloatArray:
        return np.where(self.value.inside(values) > self.threshold, 1.0, -1.0)

    def unscale(self, z: FloatArray) -> AnyArray:
        """Tell whether the value was above the threshold; the value itself is gone."""
        return np.asarray(z > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as the file has it."""
        return {**self.value.to_dict(), "above": self.threshold, **self.wording.to_dict()}


@dataclass(frozen=True)
class Binary(_Column):
    """z = 2v − 1 for v = 0 or 1, False or True.

    >>> Binary("married").scale(np.array([True, False])).tolist()
    [1.0, -1.0]
    """

    name: str
    optional: bool = False
    wording: Wording = field(default=NO_WORDING, repr=False)
    kind: ClassVar = "binary"

    def __post_init__(self) -> None:
        assign(self, name=as_text(name=self.name))
        check_words(self, (YES, NO))

    def _scale(self, values: AnyArray) -> FloatArray:
        remedy = "which is neither 0 nor 1, nor False or True; map such values beforehand"
        v = numbers(self.name, values, remedy)
        refuse_first(self.name, (v != 0) & (v != 1), remedy)
        return 2 * v - 1

    def unscale(self, z: FloatArray) -> AnyArray:
        """Invert `scale`."""
        return (z > 0).astype(np.int64)


@dataclass(frozen=True, init=False)
class TimeToEvent(Binary):
    """Whether an event has happened, yes or no, and the time until it or until nobody looked on.

    Only a target: `Schema` asks for the time beside it, a number from 0 to the horizon. Whoever
    had no event has been observed without one for that time; after the horizon nobody is. Times are
    divided into `bands` of equal length, in each of which hazards are constant
    (`blurfit.theory.hazards`).

    >>> TimeToEvent("months", "left", horizon=24, bands=8).name
    'left'
    """

    time: str = ""
    horizon: float = 1.0
    bands: int = 8
    kind: ClassVar = "exit"

    def __init__(
        self, time: str, event: str, horizon: float, bands: int = 8, wording: Wording = NO_WORDING
    ) -> None:
        whole(bands=bands)
        positive(horizon=horizon)
        if not 2 <= bands <= MOST_BANDS:
            raise InvalidValueError(
                "Expected bands={bands} from 2 to {most_bands}.", bands=bands, most_bands=MOST_BANDS
            )
        assign(self, name=event, optional=False, wording=wording, time=as_text(time=time))
        assign(self, horizon=as_number(horizon=horizon), bands=int(bands))
        self.__post_init__()

    @property
    def exit(self) -> Numeric:
        """The question for the time; outside of it people are asked again, and never cut."""
        return Numeric(self.time, 0.0, self.horizon, "refuse")

    def _stated(self) -> dict[str, Any]:
        return {"time": self.time, "horizon": self.horizon, "bands": self.bands}


@dataclass(frozen=True)
class Categorical(_Column):
    """A column of zeros and ones for each level, with one 1 in each row.

    Levels are words. A number in the data stands for the level that writes it as a whole number (7
    and 7.0 for "7"), and a truth value for "True" or "False".

    >>> Categorical("sex", ["f", "m"]).scale(np.array(["m", "f"])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    name: str
    levels: Sequence[str]
    optional: bool = False
    wording: Wording = field(default=NO_WORDING, repr=False)
    kind: ClassVar = "categorical"

    def __post_init__(self) -> None:
        assign(self, name=as_text(name=self.name))
        is_list = isinstance(self.levels, Sequence) and not isinstance(self.levels, str | bytes)
        levels = tuple(map(_as_level, self.levels if is_list else ()))
        if len(levels) < 2 or len(set(map(seen_as, levels))) < len(levels):
            raise InvalidValueError(
                "Expected levels={levels!r} of {name!r} to be a list of at least two "
                "words, each of them once.",
                levels=self.levels,
                name=self.name,
            )
        assign(self, levels=levels)
        check_words(self, levels)
        if self.optional and NOT_SAID in levels:
            raise InvalidValueError(
                "Expected levels of {name!r} other than {not_said!r}, which stands for "
                "people who do not answer an optional question.",
                name=self.name,
                not_said=NOT_SAID,
            )

    @property
    def answers(self) -> tuple[str, ...]:
        """The levels, and "(not said)" where that is an answer: one for each column."""
        return *self.levels, *([NOT_SAID] if self.optional else [])

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each level's column: "sex=f", "sex=m"; and of the one for not saying."""
        said = (f"{self.name}={level}" for level in self.levels)
        return *said, *unsaid_columns(self.name, self.optional)

    @property
    def affines(self) -> tuple[tuple[float, float], ...]:
        """The slope and the constant of z = slope·v + constant, where v is a level's 0 or 1."""
        return ((1.0, 0.0),) * len(self.columns)

    def scale(self, values: AnyArray) -> FloatArray:
        """Scale to one 1 among zeros."""
        return np.eye(len(self.columns))[self.places(values)]

    def places(self, values: AnyArray) -> npt.NDArray[np.intp]:
        """Return the place of each value among the columns, the last for whoever does not say."""
        if not self.optional:
            return codes(self.name, values, self.levels)
        silent = missing(values)
        found = codes(self.name, filled(values, silent, self.levels[0]), self.levels)
        found[silent] = len(self.levels)
        return found

    def unscale(self, z: FloatArray) -> AnyArray:
        """Invert `scale`: the level whose column is the largest."""
        return np.asarray(np.array(self.levels, dtype=object)[z.argmax(axis=-1)], dtype=object)

    def _stated(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}


Feature = Numeric | Binary | Categorical
Question = Feature | Label  # whatever a record answers; a label can only be the target
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # that a kind needs, and may have
    "numeric": (("lower", "upper"), ("outside", "above", "optional")),
    "binary": ((), ("optional",)),
    "categorical": (("levels",), ("optional",)),
    "exit": (("time", "horizon"), ("bands",)),
}


def column_from_dict(where: str, entry: Any, outside: Outside = "clip") -> Feature | Label:
    """Read a question that a file describes by a table of keys; errors say `where` it stands.

    `outside` is for a numeric column that does not say.
    """
    try:
        refuse_keys(entry, ("name", "kind"), None)
        name, kind = entry["name"], entry["kind"]
        where = f"{where} ({name!r})"
        one_of(tuple(_KEYS), kind=kind)
        words = Wording.of(entry)
        needs, may = _KEYS[kind]
        refuse_keys(entry, ("name", "kind", *needs), (*may, *WORDING_KEYS))
        given = {key: entry[key] for key in (*needs, *may) if key in entry}
        if kind == "exit":
            return TimeToEvent(event=name, wording=words, **given)
        if kind != "numeric":
            return (Binary if kind == "binary" else Categorical)(name, wording=words, **given)
        given = {"outside": outside} | given
        if "above" not in given:
            return Numeric(name, wording=words, **given)
        threshold = given.pop("above")
        return replace(Numeric(name, **given).above(threshold), wording=words)
    except InvalidValueError as error:
        raise InvalidValueError("{where}: {error}", where=where, error=error) from error


def unsaid_columns(name: str, optional: bool) -> tuple[str, ...]:
    """Name the column that is 1 for whoever does not say, where that is allowed."""
    return (f"{name}={NOT_SAID}",) if optional else ()


def is_unsaid(column: str) -> bool:
    """Tell whether a column is that of not saying."""
    return column.endswith(f"={NOT_SAID}")


def filled(values: AnyArray, silent: npt.NDArray[np.bool_], stand_in: Any) -> AnyArray:
    """Put something valid where nothing was said, so that rows keep their numbers."""
    if not silent.any():
        return values
    found = values.copy() if values.dtype.kind in "fO" else values.astype(object)
    found[silent] = stand_in
    return found


def check_words(column: Any, answers: Sequence[str], *, measured: bool = False) -> None:
    """Refuse `optional` and `wording` that are none, and words about answers that nobody gives."""
    if not isinstance(column.optional, bool):
        raise InvalidValueError(
            "Expected optional={optional!r} to be True or False.", optional=column.optional
        )
    if not isinstance(column.wording, Wording):
        raise InvalidValueError(
            "Expected wording={wording!r} to be a Wording.", wording=column.wording
        )
    column.wording.refuse_unless_about(column.name, answers, measured=measured)


def as_number(**named: Any) -> float:
    """Return the one named value as a finite float, −0 as 0: equal schemas are written alike."""
    ((_, value),) = named.items()
    finite(**named)
    return float(value) + 0.0


def as_text(**named: Any) -> str:
    """Return the one named value as text that UTF-8 can write down."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or not value or any("\ud800" <= c <= "\udfff" for c in value):
        raise InvalidValueError(
            "Expected {name}={value!r} to be a word, in Unicode.", name=name, value=value
        )
    refuse_harmful(name, value)
    return str(value)


def _as_level(value: Any) -> str:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return str(int(value)) if is_whole else as_text(level=value)


NOT_A_NUMBER = (
    "which is not a number; write it in digits, without units or separators of thousands, or "
    "declare the column categorical"
)


def numbers(name: str, values: AnyArray, remedy: str = NOT_A_NUMBER) -> FloatArray:
    """Return the column as finite float64, without a copy where it is that already.

    Numbers of any kind are welcome (decimals and fractions too, and truth values as 0 and 1); words
    are not, even where they spell a number, nor are dates.
    """
    if values.dtype.kind not in "biuf":
        objects = list(values)
        refuse_missing(name, values)
        refuse_first(name, [not _is_number(value) for value in objects], remedy)
        values = np.array([_float(value) for value in objects])
    with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused below
        v = values.astype(np.float64, copy=False)
        bounded = math.isfinite(v.min()) and math.isfinite(v.max())  # NaN is handed on by either
    if not bounded:
        refuse_missing(name, values)
        refuse_first(
            name,
            ~np.isfinite(v),
            "which is not finite; put a number within the public bounds in its place",
        )
    return v


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number or fraction beyond 1.8e308
        return math.inf if value > 0 else -math.inf
