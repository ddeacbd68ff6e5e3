"""Which fields an agreement's document has, and which of them may be missing.

A field that came later is left out of the JSON while it has its default, so that agreements which
do not use it keep their fingerprint. One text has one fingerprint: a default that is written out is
refused (`Agreement.from_dict` compares what was read with what it would write).
"""

from collections.abc import Mapping
from typing import Any

from blurfit.errors import InvalidValueError

FORMAT, VERSION = "blurfit-agreement", 1
FIELDS = {
    "format",
    "version",
    "schema",
    "mechanism",
    "weights",
    "objective",
    "calibration",
    "grid",
    "databases",
    "wave",
    "public_rows",
}
LEFT_OUT: dict[str, Any] = {"admission": "invited"}  # the default of each, which is not written


def written(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields among `LEFT_OUT` that differ from their defaults."""
    return {name: values[name] for name, default in LEFT_OUT.items() if values[name] != default}


def read(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields among `LEFT_OUT`, with their defaults where they are missing."""
    return {name: document.get(name, default) for name, default in LEFT_OUT.items()}


def refuse_unless_outlined(document: Any) -> None:
    """Refuse what has another format or version, misses a field, or has one that nobody knows."""
    if not isinstance(document, Mapping):
        raise InvalidValueError("Expected an agreement: an object with named fields.")
    stated = document.get("format"), repr(document.get("version"))
    if stated != (FORMAT, repr(VERSION)):
        raise InvalidValueError(
            f"Expected format={FORMAT!r}, version={VERSION}, and got "
            f"format={document.get('format')!r}, version={document.get('version')!r}. "
            "Is this an agreement, and of this version of blurfit?"
        )
    if not FIELDS <= set(document) <= FIELDS | LEFT_OUT.keys():
        raise InvalidValueError(
            f"Expected the fields {sorted(FIELDS)}, and got {sorted(document, key=str)}."
        )
