"""Public bounds, as a user states them, to columns with a lower and an upper end.

Noise is measured against what a value could at most have been. Bounds that are read off the data
would tell who the tallest and the richest are, so they are never guessed: without them there is no
model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Numeric

FloatArray = npt.NDArray[np.float64]

WHY = (
    "They must be publicly known, such as (0, 100) for an age in years, because the noise is "
    "measured against them; they are never taken from the data, whose extremes are somebody's own "
    "values."
)


def bounded_columns(parameter: str, bounds: Any, names: Sequence[str]) -> tuple[Numeric, ...]:
    """A column for each name; `bounds` is (lower, upper), each one number or one for each column.

    Values outside are put onto the nearer bound. `parameter` is what messages call the bounds.

    >>> bounded_columns("bounds", (0, [100, 1]), ["age", "married"])[1].upper
    1.0
    """
    if bounds is None:
        raise InvalidValueError(f"Expected {parameter}=(lower, upper), and got None. {WHY}")
    if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise InvalidValueError(
            f"Expected {parameter}={bounds!r} to be a pair (lower, upper), each one number or one "
            f"for each column. {WHY}"
        )
    lower, upper = (
        _ends(f"{parameter}[{place}]", ends, len(names)) for place, ends in enumerate(bounds)
    )
    try:
        return tuple(
            Numeric(name, low, high) for name, low, high in zip(names, lower, upper, strict=True)
        )
    except InvalidValueError as error:
        raise InvalidValueError(
            f"{parameter}: {error} Give (all lower bounds, all upper bounds), not a pair for each "
            f"column."
        ) from error


def _ends(parameter: str, ends: Any, columns: int) -> FloatArray:
    try:
        array = np.asarray(ends, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            f"Expected {parameter}={ends!r} to be a number or a list of numbers."
        ) from error
    if array.shape not in ((), (columns,)):
        raise InvalidValueError(
            f"Expected {parameter} to be one number or {columns}, one for each column, and got "
            f"shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise InvalidValueError(f"Expected {parameter}={ends!r} to be finite. {WHY}")
    return np.broadcast_to(array, (columns,))
