"""Data as rooms pass it round: JSON that says each thing once, arrays, and tables for notebooks.

One reader for what contributors, services and files bring; one canonical text for what is signed or
has a fingerprint. RFC 8259 leaves it open what a repeated name means, so a proxy, a page and a
service could each take another value for the agreed one: here it is refused, as are NaN, Infinity
and texts too deep. Integers beyond 2⁵³ are read as floats, as every other reader has them.

**Fast where there is much.** A text has at least one colon for each name. If it has no more colons
than what was read has names, nothing appears twice, and nothing needs a second look.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import rfc8785
from msgspec import inspect

from blurfit.errors import InvalidValueError
from blurfit.version import __version__

_Kind = TypeVar("_Kind")
_HALF = r"\ud"  # how an escaped surrogate begins


def read_json(
    text: str | bytes, kind: type[_Kind] | Any = Any, *, colons_in_values: bool = True
) -> Any:
    """Read the values in a text, as a type that msgspec knows; raises ValueError.

    Where honest values hold no colon, a text with one is refused without the second look, which
    takes ten times as long as the first.

    >>> read_json(b'{"count": 1}')
    {'count': 1}
    >>> read_json('{"count": 1, "count": 2}')
    Traceback (most recent call last):
    ValueError: 'count' appears twice
    """
    try:
        if kind is Any:
            return _read_slowly(text)
        found = msgspec.json.decode(text, type=kind)
        colons = text.count(":") if isinstance(text, str) else text.count(b":")
        if colons != _names(found):
            if not colons_in_values:
                raise ValueError("a name appears twice, or a value contains a colon")
            _read_slowly(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return found


def canonical(values: Any) -> bytes:
    """Return the one text of these values (RFC 8785); refuse what has none.

    >>> canonical({"b": 1.0, "a": [True, None]})
    b'{"a":[true,null],"b":1}'
    """
    try:
        return rfc8785.dumps(values)
    except rfc8785.CanonicalizationError as error:
        raise InvalidValueError(
            "Expected numbers that are finite, and whole ones below 2**53, which every reader "
            "takes alike ({error}). Choose larger units.",
            error=error,
        ) from error


def _read_slowly(text: str | bytes) -> Any:
    found = json.loads(
        text, object_pairs_hook=_once, parse_constant=_refuse, parse_int=_whole_number
    )
    if (_HALF in text.lower()) if isinstance(text, str) else (_HALF.encode() in text.lower()):
        json.dumps(found, ensure_ascii=False).encode()  # no file could hold half of a character
    return found


def _names(found: Any) -> float:
    """Count the names that a text had at least; infinitely many where that cannot be told."""
    if isinstance(found, list | tuple):
        return sum(map(_names, found))
    if isinstance(found, dict):
        return len(found) + sum(map(_names, found.values()))
    if isinstance(found, msgspec.Struct):
        own, inside = _names_of(type(found))
        return own + sum(_names(getattr(found, name)) for name in inside)
    return 0


@cache
def _names_of(kind: type[msgspec.Struct]) -> tuple[float, tuple[str, ...]]:
    """Count the fields of a type, and tell in which of them there may be further names.

    One that may be left out would make up for another that appears twice: then nobody knows.
    """
    fields = inspect.type_info(kind).fields  # type: ignore[attr-defined]
    count = len(fields) if all(one.required for one in fields) else math.inf
    return count, tuple(one.name for one in fields if not _is_plain(one.type))


def _is_plain(kind: inspect.Type) -> bool:
    """Return whether values of a type hold no names: numbers, words, and lists of them."""
    if isinstance(kind, inspect.ListType):
        return _is_plain(kind.item_type)
    return isinstance(kind, inspect.FloatType | inspect.IntType | inspect.StrType)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"{twice!r} appears twice")
    return found


def _whole_number(digits: str) -> float:
    if len(digits) < 16:
        return int(digits)
    found = float(digits)
    if math.isinf(found):
        _refuse("a number beyond the range of floats")
    return int(digits) if abs(found) < 2**53 else found


def _refuse(name: str) -> float:
    raise ValueError(f"expected finite numbers, and got {name}")


AnyArray = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
WordArray = npt.NDArray[np.uint64]
_Array = TypeVar("_Array", bound=AnyArray)


def fixed(array: _Array) -> _Array:
    """Return the array itself, which nobody can write to any more."""
    array.setflags(write=False)
    return array


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table without scripts, styles or outside addresses.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    first = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table>{title}<thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def software() -> str:
    """Return the name and version that a model is stamped with."""
    return f"blurfit {__version__}"
