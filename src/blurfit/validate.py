"""Checks that name what they check: `positive(epsilon=-1)` says "Expected epsilon=-1 > 0.".

Each check takes its values by keyword, so that the message is written by the call itself.
"""

import math
import operator
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

from blurfit.errors import BlurfitError, InvalidValueError, NotCertifiedError


def finite(**values: Any) -> None:
    """Refuse what is not a finite real number (so NaN, infinities, strings, booleans)."""
    for name, value in values.items():
        # Most values are floats, and an abstract class takes longest to ask.
        if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
            raise InvalidValueError(f"Expected {name}={value!r} to be a real number.")
        try:
            is_finite = math.isfinite(value)
        except OverflowError:  # a whole number or a fraction, with many digits
            raise InvalidValueError(f"Expected {name} to be at most 1.8e308 in size.") from None
        if not is_finite:
            raise InvalidValueError(f"Expected {name}={value!r} to be finite.")


def positive(**values: Any) -> None:
    """Refuse what is not a finite number above zero."""
    finite(**values)
    _refuse_unless(values, lambda value: value > 0, "> 0")


def nonnegative(**values: Any) -> None:
    """Refuse what is not a finite number of at least zero."""
    finite(**values)
    _refuse_unless(values, lambda value: value >= 0, ">= 0")


def inside_unit_interval(**values: Any) -> None:
    """Refuse what does not lie strictly between 0 and 1."""
    finite(**values)
    _refuse_unless(values, lambda value: 0 < value < 1, "strictly between 0 and 1")


def whole(**values: Any) -> None:
    """Refuse what is not a whole number of at least one."""
    _whole_from(1, values)


def whole_from_zero(**values: Any) -> None:
    """Refuse what is not a whole number of at least zero."""
    _whole_from(0, values)


def one_of(allowed: Collection[str], **values: Any) -> None:
    """Refuse what is not among the allowed words."""
    for name, value in values.items():
        if value not in allowed:
            words = ", ".join(repr(word) for word in allowed)
            raise InvalidValueError(f"Expected {name}={value!r} to be one of {words}.")


@contextmanager
def within_floating_point() -> Iterator[None]:
    """Refuse what leaves the range of floats: an overflow, a division by zero, the logarithm of 0.

    For arithmetic on public numbers alone, as a decorator or in a `with` statement.
    """
    import numpy as np  # for which those who only ask for --help do not wait

    try:
        with np.errstate(all="ignore"):
            yield
    except BlurfitError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise NotCertifiedError(
            f"Floating point cannot hold what follows from these numbers ({error}), so nothing is "
            "certified. Choose less extreme ones: bounds nearer to 1, or a larger epsilon or delta."
        ) from error


def _whole_from(least: int, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        try:
            fits = not isinstance(value, bool) and least <= operator.index(value) < 2**64
        except TypeError:
            fits = False
        if not fits:
            raise InvalidValueError(
                f"Expected {name}={value!r} to be a whole number >= {least}, and below 2**64."
            )


def _refuse_unless(values: Mapping[str, Any], holds: Any, condition: str) -> None:
    for name, value in values.items():
        if not holds(value):
            raise InvalidValueError(f"Expected {name}={value!r} {condition}.")
