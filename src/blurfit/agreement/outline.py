"""Terms that came later: each is left out of the JSON while it has its default.

So agreements and plans that do not use one keep their fingerprint. One text has one fingerprint: a
default that is written out is refused (`Fingerprinted.from_dict` compares what was read with what
it would write).
"""

from collections.abc import Mapping
from typing import Any

from blurfit.agreement.terms import later_terms

DEFAULTS: dict[str, Any] = later_terms()
OPTIONAL = frozenset(DEFAULTS)


def written(holder: Any) -> dict[str, Any]:
    """Those of an agreement, or of terms, that differ from their defaults."""
    values = {name: getattr(holder, name) for name in DEFAULTS}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value != DEFAULTS[name]
    }


def read(document: Mapping[str, Any]) -> dict[str, Any]:
    """All of them, with their defaults where a document leaves them out."""
    found = {name: document.get(name, default) for name, default in DEFAULTS.items()}
    return {name: tuple(one) if isinstance(one, list) else one for name, one in found.items()}
