"""From public bounds, as a user states them, to columns with a lower and an upper end, or levels.

Noise is measured against the largest that a value could have been. Bounds that are read off the
data would tell who the tallest and the richest are, so they are never guessed: without them there
is no model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Categorical, Feature, Numeric
from blurfit.schema.schema import Schema
from blurfit.schema.table import listed

WHY = (
    "They must be publicly known, such as (0, 100) for an age in years, because the noise is "
    "measured against them; they are never taken from the data, whose extremes are somebody's own "
    "values."
)


def feature_columns(
    bounds: Any, names: Sequence[str], *, are_named: bool = True
) -> tuple[Feature, ...]:
    """A column for each name, in the order of the names.

    Args:
        bounds: (lower, upper), each one number or one for each column; or by name, {"age": (18,
            90), "region": ["north", "south"]}, a pair of numbers or the levels of a categorical;
            or a `Schema`, whose features are taken.
        names: what the columns are called.
        are_named: whether X itself has these names. Without names the features of a schema are
            taken in their order, and bounds by name are refused.

    >>> feature_columns({"age": (18, 90), "sex": ["f", "m"]}, ["sex", "age"])[0].levels
    ('f', 'm')
    """
    if isinstance(bounds, Schema):
        if not are_named:
            if len(bounds.features) != len(names):
                raise InvalidValueError(
                    f"Expected X of {len(bounds.features)} columns, one for each feature of the "
                    f"schema, and got {len(names)}."
                )
            return tuple(bounds.features)
        return _by_name({one.name: one for one in bounds.features}, names, "the schema")
    if isinstance(bounds, Mapping):
        if not are_named:
            raise InvalidValueError(
                f"Expected X with named columns, such as a DataFrame, for bounds by name, "
                f"{listed(bounds)}; an array has none. State bounds=(lower, upper) for it."
            )
        stated = _by_name({str(name): value for name, value in bounds.items()}, names, "bounds")
        return tuple(_column(name, one) for name, one in zip(names, stated, strict=True))
    return bounded_columns("bounds", bounds, names)


def bounded_columns(parameter: str, bounds: Any, names: Sequence[str]) -> tuple[Numeric, ...]:
    """A number for each name; `bounds` is (lower, upper), each one number or one for each column.

    Values outside are moved to the nearer bound. `parameter` is what messages call the bounds. Of
    two columns, ([18, 90], [92, 180]) could also be meant as a pair for each: that is refused.

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
    if all(np.ndim(ends) == 1 for ends in bounds):
        _refuse_two_readings(parameter, lower, upper, names)
    try:
        return tuple(
            Numeric(name, low, high) for name, low, high in zip(names, lower, upper, strict=True)
        )
    except InvalidValueError as error:
        raise InvalidValueError(
            f"{parameter}: {error} Give (all lower bounds, all upper bounds), not a pair for each "
            "column; or, for a DataFrame, a pair for each name."
        ) from error


def _by_name(stated: Mapping[str, Any], names: Sequence[str], where: str) -> tuple[Any, ...]:
    missing = [name for name in names if name not in stated]
    unknown = [name for name in stated if name not in names]
    if missing or unknown:
        # X's own names are not told: without a heading they are the first row's answers
        differ = [f"{len(missing)} columns of X are not in {where}"] if missing else []
        differ += [f"{where} has {listed(unknown)}, which X lacks"] if unknown else []
        raise InvalidValueError(
            f"Expected {where} to name the columns of X: {'; '.join(differ)}. {WHY}"
        )
    return tuple(stated[name] for name in names)


def _column(name: str, stated: Any) -> Feature:
    """A pair of numbers, or levels as words."""
    words = isinstance(stated, Sequence) and not isinstance(stated, str)
    if words and stated and all(isinstance(one, str) for one in stated):
        return Categorical(name, list(stated))
    (column,) = bounded_columns(f"bounds[{name!r}]", stated, [name])
    return column


def _refuse_two_readings(
    parameter: str, lower: FloatArray, upper: FloatArray, names: Sequence[str]
) -> None:
    """Two columns whose bounds make sense as (lower, upper) and as a pair for each column."""
    both_ways = len(names) == 2 and (lower < upper).all()
    if both_ways and lower[0] < lower[1] and upper[0] < upper[1]:
        first, second = lower.tolist(), upper.tolist()
        raise InvalidValueError(
            f"Expected {parameter}=({first}, {second}) to have one meaning, and it has two: lower "
            f"bounds {first} with upper bounds {second}, or {first} for {names[0]!r} and {second} "
            f"for {names[1]!r}. State them by name, with a DataFrame, or as a Schema."
        )


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
