"""A schema as the file that people change: TOML, as `Schema.from_toml` reads it."""

import json
import re
from collections.abc import Mapping
from typing import Any

from blurfit.schema.schema import Schema


def to_toml(schema: Schema) -> str:
    """The text of a schema's file, without terms.

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
    features, target = entry.pop("features"), entry.pop("target")
    if entry["intercept"]:
        del entry["intercept"]  # which is understood
    parts = ["\n".join(_lines(entry))]
    parts += ["\n".join(["[[features]]", *_lines(one)]) for one in features]
    parts.append("\n".join(["[target]", *_lines(target)]))
    return "\n\n".join(part for part in parts if part)


def _lines(table: Mapping[str, Any]) -> list[str]:
    shown = {key: value for key, value in table.items() if (key, value) != ("outside", "clip")}
    return [f"{_key(key)} = {_value(value)}" for key, value in shown.items()]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + "}"
    return "[" + ", ".join(_value(one) for one in value) + "]"


def _text(text: str) -> str:
    """JSON's escapes are TOML's, but for U+007F, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
