"""JSON that says each thing once: one reader for what contributors, services and files bring.

RFC 8259 leaves it open what an object with a name twice means, and readers differ: a proxy, a page
and a service could each take another value of it for the agreed one. Here such a text is refused,
as are numbers that are none (NaN, Infinity) and texts too deep to be honest.
"""

import json
from typing import Any, TypeVar

import msgspec

_Kind = TypeVar("_Kind")


def read_json(text: str | bytes, kind: type[_Kind] | Any = Any) -> Any:
    """The values in a text, as a type that msgspec knows; raises ValueError.

    >>> read_json(b'{"count": 1}')
    {'count': 1}
    >>> read_json('{"count": 1, "count": 2}')
    Traceback (most recent call last):
    ValueError: 'count' is there twice
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
        return found if kind is Any else msgspec.convert(found, kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice")
    return found


def _refuse(name: str) -> float:
    raise ValueError(f"expected finite numbers, and got {name}")
