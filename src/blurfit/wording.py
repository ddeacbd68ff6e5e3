"""Messages that keep their template and values, so that another language can render them.

A `Message` is its English text, made of a template and values. A catalogue has the templates of
another language under the English ones (gettext's message ids), so rendering looks templates up and
never reads a text that was put together: its time grows with the template and the values alone.

| value | English | another language |
| --- | --- | --- |
| `Message`, or an exception that has one | its text | rendered by the same rules |
| `Series` of values | joined by its separator | each rendered |
| number | by the format specification | with that language's separators |
| `Quote` | as it is: printable, at most 1,000 characters | the same |
| anything else | by the format specification | the same; clipped if the reader asks for it |
"""

import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any

LONGEST_QUOTE = 1000  # characters of another program's words
LONGEST_SERIES = 50  # values that a clipped message lists
_SWAPPED = str.maketrans(",.", ".,")
_Field = tuple[str, str | None, str | None, str | None]  # text, and name, format, conversion


class Message(str):
    """A text with the template and the values that it was made of.

    Without values the template is the text, braces included. A message as the template is itself.

    >>> Message("Expected {name}={value!r} > 0.", name="epsilon", value=-1)
    'Expected epsilon=-1 > 0.'
    """

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> "Message":
        """Fill in a template."""
        if isinstance(template, Message) and not values:
            return template
        values = {name: _message_of(value) for name, value in values.items()}
        made = super().__new__(cls, _formatted(template, values) if values else template)
        made.template, made.values = str(template), values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the text to another process; its values may be of any type."""
        return Message, (str(self),)

    def to_builtins(self) -> Any:
        """Return the template and the values, for JSON."""
        if not self.values:
            return self.template
        return {"template": self.template, "values": {k: _plain(v) for k, v in self.values.items()}}

    @classmethod
    def from_builtins(cls, saved: Any) -> "Message":
        """Return the message that `to_builtins` returned."""
        if isinstance(saved, str):
            return cls(saved)
        return cls(saved["template"], **{k: _restored(v) for k, v in saved["values"].items()})


class Series(tuple[Any, ...]):
    """Values in a row, joined by a separator.

    >>> str(Series(["age", "income"]))
    'age, income'
    """

    between: str

    def __new__(cls, values: Iterable[Any], between: str = ", ") -> "Series":
        """Join values by a separator."""
        made = super().__new__(cls, map(_message_of, values))
        made.between = between
        return made

    def __str__(self) -> str:
        """Return the English text."""
        return self.between.join(map(str, self))


class Quote(str):
    """Another program's words: printable, and clipped when made; never translated."""

    def __new__(cls, words: str) -> "Quote":
        """Clip words, and replace what cannot be printed."""
        return super().__new__(cls, printable(words, LONGEST_QUOTE))


def join_messages(parts: Iterable[str | None], between: str = " ") -> Message:
    """Join messages, each of which keeps its template; empty parts are left out."""
    return Message("{parts}", parts=Series(filter(None, parts), between))


def message_of(error: BaseException) -> Message:
    """Return the message of an error; of another program's, its words."""
    message = getattr(error, "message", None)
    return message if isinstance(message, Message) else Message("{words}", words=Quote(str(error)))


def printable(text: str, longest: int) -> str:
    r"""Clip a text, and replace each character that cannot be printed.

    >>> printable("a\x1bb" * 3, 5)
    'a�ba�…'
    """
    clipped = text if len(text) <= longest else text[:longest] + "…"
    if clipped.isprintable():
        return clipped
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in clipped)


@dataclass(frozen=True)
class Language:
    """How messages are rendered for a reader.

    Attributes:
        templates: those of the language, by the English ones; nothing for English.
        comma: whether a comma separates decimals, and a point thousands.
        longest: how many characters of each value to show (None: all). It is for refusals, which
            repeat what strangers sent.
    """

    templates: Mapping[str, str]
    comma: bool = False
    longest: int | None = None

    def render(self, text: str) -> str:
        """Return a message in the language; of any other text, the template that it is.

        >>> german = Language({"{count:,} people": "{count:,} Personen"}, comma=True)
        >>> german.render(Message("{count:,} people", count=2000))
        '2.000 Personen'
        """
        if not isinstance(text, Message):
            return self.templates.get(text, text)
        if text.values:
            template = self.templates.get(text.template, text.template)
            return _formatted(template, text.values, self._value)
        found = self.templates.get(text.template)
        if found is None and self.longest is not None:
            return printable(text.template, LONGEST_QUOTE)
        return found or text.template

    def _value(self, value: Any) -> Any:
        """Return a value as it is put into a template."""
        if isinstance(value, Message):
            return _Rendered(self.render(value))
        if isinstance(value, Series):
            shown = value if self.longest is None else value[:LONGEST_SERIES]
            rest = ["…"] if len(shown) < len(value) else []
            each = (str(_format(self._value(one), "", None)) for one in shown)
            return _Rendered(value.between.join([*each, *rest]))
        if self.comma and isinstance(value, Real) and value is not True and value is not False:
            return _Number(value)
        if isinstance(value, Real):
            return value
        if isinstance(value, Quote) or self.longest is None:
            return value
        return _Clipped(value, self.longest)


def _message_of(value: Any) -> Any:
    """Return the message of an exception; any other value as it is."""
    message = getattr(value, "message", None)
    return message if isinstance(message, Message) else value


# ---- how values are formatted


class _Rendered(str):
    """A text that is put in as it is."""


@dataclass(frozen=True)
class _Number:
    """A number of a language that writes 1.234,5."""

    value: Any


@dataclass(frozen=True)
class _Clipped:
    """A value of which only so many characters are shown."""

    value: Any
    longest: int


def _format(value: Any, spec: str, conversion: str | None) -> str:
    if isinstance(value, _Number):
        return _format(value.value, spec, conversion).translate(_SWAPPED)
    if isinstance(value, _Clipped):
        inner, longest = value.value, value.longest
        if isinstance(inner, str):  # a long text is clipped before it is quoted
            inner = inner if len(inner) <= longest else inner[:longest] + "…"
            return printable(_format(inner, spec, conversion), 6 * longest)
        return printable(_format(inner, spec, conversion), longest)
    if isinstance(value, Message | _Rendered):
        return repr(str(value)) if conversion == "r" else str(value)
    if conversion == "r":
        return format(repr(value), spec)
    if conversion == "s":
        return format(str(value), spec)
    return str(value) if not spec else format(value, spec)


@lru_cache(maxsize=2048)
def _fields(template: str) -> tuple[_Field, ...]:
    return tuple(string.Formatter().parse(template))


def _formatted(
    template: str, values: Mapping[str, Any], put: Callable[[Any], Any] = lambda value: value
) -> str:
    """Fill in a template; `put` returns each value as it is to be formatted."""

    def pieces() -> Iterator[str]:
        for text, name, spec, conversion in _fields(template):
            yield text
            if name is not None:
                yield _format(put(values[name]), spec or "", conversion)

    return "".join(pieces())


# ---- as JSON


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_builtins() if value.values else {"template": value.template, "values": {}}
    if isinstance(value, Series):
        return {"series": [_plain(one) for one in value], "between": value.between}
    return value if isinstance(value, bool | int | float) else str(value)


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "series" in value:
        return Series(map(_restored, value["series"]), value["between"])
    return Message.from_builtins(value)
