"""What a column may be declared with: a name, bounds and levels that can be written down, and words
for people.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from blurfit import validate
from blurfit.errors import InvalidValueError
from blurfit.schema.content import Wording, refuse_harmful


def check_words(column: Any, answers: Sequence[str], *, measured: bool = False) -> None:
    """Refuse `optional` and `wording` that are none, and words about answers that nobody gives."""
    if not isinstance(column.optional, bool):
        raise InvalidValueError(f"Expected optional={column.optional!r} to be True or False.")
    if not isinstance(column.wording, Wording):
        raise InvalidValueError(f"Expected wording={column.wording!r} to be a Wording.")
    column.wording.refuse_unless_about(column.name, answers, measured=measured)


def said_besides(column: Any) -> dict[str, Any]:
    """What a column says beyond what it always says."""
    return {**({"optional": True} if column.optional else {}), **column.wording.to_dict()}


def assign(column: Any, **fields: Any) -> None:
    """Set fields of a frozen column while it is being made."""
    for name, value in fields.items():
        object.__setattr__(column, name, value)


def as_number(**named: Any) -> float:
    """The one named value as a finite float, and −0 as 0: equal schemas are written alike."""
    ((_, value),) = named.items()
    validate.finite(**named)
    return float(value) + 0.0


def as_text(**named: Any) -> str:
    """The one named value as text that UTF-8 can write down."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or not value or any("\ud800" <= c <= "\udfff" for c in value):
        raise InvalidValueError(f"Expected {name}={value!r} to be a word, in Unicode.")
    refuse_harmful(name, value)
    return str(value)


def as_level(value: Any) -> str:
    """A level as a word; whole numbers are written out."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return str(int(value)) if is_whole else as_text(level=value)
