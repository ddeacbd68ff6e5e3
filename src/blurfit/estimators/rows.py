"""Read users' rows under public bounds, into one table of numbers.

Noise is measured against the largest value that is possible. Bounds read off the data would reveal
the extremes of the data, so they are never guessed: without them there is no model. A level is
given by its place.

Arrays and DataFrames of numbers go through scikit-learn's own checks; columns with levels are read
by name. Messages never contain a value, and errors of libraries are replaced (`without_values`),
unless they are known to speak of shapes alone. Whether values are finite, and within bounds that
refuse others, is checked before anything is spent; so is the dtype of every column
(`real_numbers`): all that is read is an array of machine numbers.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    check_array,
    check_X_y,
    validate_data,
)

from blurfit.data import AnyArray, FloatArray
from blurfit.errors import BlurfitError, InvalidValueError, NotPrivateWarning
from blurfit.schema.columns import (
    Binary,
    Categorical,
    Feature,
    Numeric,
    Question,
    TimeToEvent,
    filled,
)
from blurfit.schema.formulas import target_of
from blurfit.schema.schema import Schema
from blurfit.schema.table import as_frame, listed, missing

WHY = (
    "They must be publicly known, such as (0, 100) for an age in years, because the noise is "
    "measured against them; they are never taken from the data, whose extremes are somebody's own "
    "values."
)

NO_TARGETS = object()  # None is no targets where some are needed, which scikit-learn refuses


# What scikit-learn says of shapes, types and missing values; of it the first line alone is kept, as
# the others may hold an array.
_SAYS_NO_VALUE = re.compile(
    r"X has \d+ features|Found (array with|input variables with)|Expected (2D|sequence|a 2-)"
    r"|Input( [Xy])? contains|Complex data not|Sparse data|The feature names|Feature names are"
    r"|dtype='numeric' is not|(This \w+ )?estimator requires y|y (cannot be None|should be a 1d)"
    r"|Unknown label type: [\w-]+\. Maybe|Expected unique column names|float\(\) argument must be"
)
_REMEDIES = "Reshape your data", "Feature names must be in the same order as they were in fit."


# id, customer_id, "Customer ID"; person, userID, "patient no"; not customer: that may be yes or no
_PERSON = re.compile(
    r"(.*[_ .-])?(p|u)?id|(person|user|patient|subject|participant|respondent)"
    r"([_ .-]?(id|no|nr|number|key))?"
)
ROWS_OF_ONE_PERSON = (
    "{what}, as where one person has several rows. Nothing is promised to a person then, but only "
    "to each row: somebody who is in eight rows has √8 times the μ. Name whose row is whose, "
    "fit(X, y, groups=...), and the promise is to the person; or reset the index if each row is "
    "another person's."
)


def feature_columns(
    bounds: Any, names: Sequence[str], *, are_named: bool = True
) -> tuple[Feature, ...]:
    """Return a column for each name, in the order of the names.

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
        features = asked_features(bounds)
        if not are_named:
            if len(features) != len(names):
                raise InvalidValueError(
                    f"Expected X of {len(features)} columns, one for each feature of the "
                    f"schema, and got {len(names)}."
                )
            return features
        return _by_name({one.name: one for one in features}, names, "the schema")
    if isinstance(bounds, Mapping):
        if not are_named:
            raise InvalidValueError(
                f"Expected X with named columns, such as a DataFrame, for bounds by name, "
                f"{listed(bounds)}; an array has none. State bounds=(lower, upper) for it."
            )
        stated = _by_name({str(name): value for name, value in bounds.items()}, names, "bounds")
        return tuple(_column(name, one) for name, one in zip(names, stated, strict=True))
    return bounded_columns("bounds", bounds, names)


def asked_features(schema: Schema) -> tuple[Feature, ...]:
    """Return what X has of a schema: all that is asked but the target, and the time until its
    event.
    """
    target = schema.target
    apart = {target.name, target.time if isinstance(target, TimeToEvent) else target.name}
    return tuple(one for one in schema.asked if one.name not in apart)  # type: ignore[misc]


def by_formula(estimator: Any, X: Any, y: Any = NO_TARGETS) -> tuple[Any, Any]:
    """Return the columns of a DataFrame that have bounds, and the targets, which may be a column
    too.

    Without a formula X and y are as they are.
    """
    text, bounds = getattr(estimator, "formula", None), estimator.bounds
    if text is None:
        return X, y
    frame = as_frame(X)
    if frame is None or not isinstance(bounds, Mapping | Schema):
        raise InvalidValueError(
            f"Expected X to be a DataFrame and bounds by name with formula={text!r}."
        )
    names = [one.name for one in asked_features(bounds)] if isinstance(bounds, Schema) else bounds
    if lacking := [str(name) for name in names if name not in frame.columns]:
        raise InvalidValueError(f"Expected X to have the columns {listed(lacking)} of bounds.")
    target = target_of(text)
    if target not in frame.columns and not target.isidentifier():
        raise InvalidValueError(
            f"`formula` must have the target's name before ~, got {target!r}. Its bounds are those "
            "of the numbers as they are learned: add the transformed column to X, and name that."
        )
    if y is None:
        if target not in frame.columns:
            raise InvalidValueError(f"Expected y, or the column {target!r} in X.")
        y = frame[target].to_native()
    elif getattr(y, "name", None) not in (None, target):
        raise InvalidValueError(f"Expected y to be the column {target!r} of {text!r}.")
    return frame.select(list(names)).to_native(), y


def bounded_columns(parameter: str, bounds: Any, names: Sequence[str]) -> tuple[Numeric, ...]:
    """Return a number for each name; `bounds` is (lower, upper), each one number or one for each
    column.

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
        # Without a heading X's own names are the first row's answers: a name is told only where
        # another one fits and it is a plain word, else its place.
        has_heading = len(missing) < len(names)
        named = [
            repr(name) if has_heading and name.isidentifier() else f"column {place}"
            for place, name in enumerate(names, start=1)
            if name in missing
        ]
        differ = [f"it is missing {', '.join(named)}"] if missing else []
        differ += [f"it has {listed(unknown)}, which X lacks"] if unknown else []
        raise InvalidValueError(f"`{where}` must name the columns of X: {'; '.join(differ)}. {WHY}")
    return tuple(stated[name] for name in names)


def _column(name: str, stated: Any) -> Feature:
    """Return a pair of numbers, or levels as words."""
    words = isinstance(stated, Sequence) and not isinstance(stated, str)
    if words and stated and all(isinstance(one, str) for one in stated):
        return Categorical(name, list(stated))
    (column,) = bounded_columns(f"bounds[{name!r}]", stated, [name])
    return column


def _refuse_two_readings(
    parameter: str, lower: FloatArray, upper: FloatArray, names: Sequence[str]
) -> None:
    """Refuse bounds of two columns that make sense as (lower, upper) and as a pair for each."""
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


def read_rows(
    estimator: Any, X: Any, y: Any = NO_TARGETS, *, reset: bool, **checks: Any
) -> tuple[AnyArray, AnyArray | None, tuple[Feature, ...]]:
    """Return numbers (n, d), the targets as they are, and what the columns of X are.

    Args:
        estimator: whose `bounds` say what the columns are, and who remembers their names.
        X: rows of features.
        y: their targets, if there are any.
        reset: whether the estimator is to remember number and names of the columns (in `fit`), or
            to check them.
        checks: handed on to scikit-learn: `y_numeric`, `ensure_min_samples`.
    """
    checks |= {"dtype": "numeric"}
    with without_values(X, estimator.bounds):
        if _names_levels(estimator.bounds):
            validate_data(estimator, X, skip_check_array=True, reset=reset)
            columns = columns_of(estimator)
            table = _table(X, columns)
            refuse_unless_said(table, columns)
            checks |= {"ensure_all_finite": "allow-nan"}  # where it may be unsaid
            if y is NO_TARGETS:
                return check_array(table, **checks), None, columns
            values, targets = check_X_y(table, y, **checks)
        elif y is NO_TARGETS:
            values, targets = validate_data(estimator, X, reset=reset, **checks), None
        else:
            values, targets = validate_data(estimator, X, y, reset=reset, **checks)
        if values.dtype.kind == "O":  # polars' and Arrow's, which scikit-learn lets pass
            values = check_array(real_numbers(values))
        values = real_numbers(values)
        if checks.get("y_numeric"):
            targets = real_numbers(targets)
    if checks.get("y_numeric") and not np.isfinite(targets).all():  # objects pass until here
        raise InvalidValueError("Expected finite numbers in y. Input y contains NaN or infinity.")
    return values, targets, columns_of(estimator)


def real_numbers(values: Any) -> AnyArray:
    """Convert an array of any dtype to numbers that arithmetic with float64 accepts.

    The dtype decides, and no value: integers, booleans and floats of up to 64 bits stay as they
    are; longer floats, objects and words become float64.

    Args:
        values: an array of any shape, or a column of a DataFrame.

    Returns:
        An array of integers, booleans or floats.

    Raises:
        TypeError: for dates, durations, complex numbers and records, and objects like these.
        ValueError: for words that write no number.
        OverflowError: for whole numbers that are too large for float64.
    """
    array = np.asarray(values)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        largest = np.finfo(np.float64).max
        clipped = np.where(np.isfinite(array), np.clip(array, -largest, largest), array)
        return np.asarray(clipped, dtype=np.float64)
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind not in "OSUT":
        raise TypeError(f"no numbers: {array.dtype.kind}")
    return array.astype(np.float64)


@contextmanager
def without_values(X: Any, bounds: Any) -> Iterator[None]:
    """Replace what a library says of rows, unless it is known to say no value of theirs."""
    try:
        yield
    except BlurfitError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        said, _, more = str(error).partition("\n")
        if not _SAYS_NO_VALUE.match(said):
            raise InvalidValueError(_no_numbers(X, bounds)) from None
        kept = [words for words in _REMEDIES if words in more]
        kind = TypeError if isinstance(error, TypeError) else InvalidValueError
        raise kind(" ".join([said, *kept])) from None


@contextmanager
def without_answers() -> Iterator[None]:
    """Replace all that a library says of the targets that predictions are compared with."""
    try:
        yield
    except BlurfitError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise InvalidValueError(
            "Expected y to have a target for each row of X, of the kind that was learned and none "
            "missing; and sample_weight, where it is given, a number for each."
        ) from None


def columns_of(estimator: Any) -> tuple[Feature, ...]:
    """Return what the columns of X are: under their own names, or as x0, x1 and so on."""
    unnamed = [f"x{place}" for place in range(estimator.n_features_in_)]
    names = getattr(estimator, "feature_names_in_", None)
    given = unnamed if names is None else [str(name) for name in names]
    return feature_columns(estimator.bounds, given, are_named=names is not None)


def records(values: AnyArray, columns: Sequence[Feature]) -> dict[str, AnyArray]:
    """Return a table of numbers as the schema's records: levels by their words."""
    found: dict[str, AnyArray] = {}
    for place, column in enumerate(columns):
        found[column.name] = values[:, place]
        if isinstance(column, Categorical):
            levels = [*column.levels, None]  # the last where it was not said
            found[column.name] = words(values[:, place].astype(np.intp), levels)
    return found


def words(places: AnyArray, levels: Sequence[str | None]) -> AnyArray:
    """Return the level at each place."""
    return np.asarray(np.array(levels, dtype=object)[places], dtype=object)


def design(values: AnyArray, columns: Sequence[Feature]) -> FloatArray:
    """Return what coefficients in the user's units multiply: numbers as they are, 0 and 1 for each
    level but the first. A number that was not said is at its middle, with a 1 beside it.
    """
    if not any(isinstance(column, Categorical) or column.optional for column in columns):
        return np.asarray(values, dtype=np.float64)
    parts = []
    for place, column in enumerate(columns):
        value = np.asarray(values[:, place], dtype=np.float64)
        if isinstance(column, Categorical):
            parts += [value == level for level in range(1, len(column.columns))]
        elif column.optional:
            silent = np.isnan(value)
            middle = 0.5 if isinstance(column, Binary) else column.centre
            parts += [np.where(silent, middle, value), silent]
        else:
            parts.append(value)
    return np.column_stack(parts).astype(np.float64)


def refuse_unless_binary(values: AnyArray, columns: Sequence[Feature]) -> None:
    """Refuse binary columns with anything but 0 and 1; their bounds cut nothing."""
    for place, column in enumerate(columns):
        if not isinstance(column, Binary):
            continue
        given = values[:, place]
        if column.optional:
            given = given[~np.isnan(given)]
        if not np.isin(given, (0, 1)).all():
            raise InvalidValueError(
                f"Expected the binary column {column.name!r} to have 0 and 1, or False and True, "
                "and it has other values. Map them beforehand."
            )


def refuse_outside(values: AnyArray, column: Question) -> None:
    """Refuse values outside of bounds where the column says outside="refuse"."""
    if not isinstance(column, Numeric) or column.outside != "refuse":
        return
    with np.errstate(invalid="ignore"):  # NaN, where it need not be said, is not outside
        if ((values < column.lower) | (values > column.upper)).any():
            raise InvalidValueError(
                f"Expected every value of {column.name!r} to be within lower={column.lower!r} and "
                f"upper={column.upper!r}, and some are not. Correct them, or put the nearer bound "
                'in their place, which outside="clip" does by itself.'
            )


def refuse_unless_said(table: FloatArray, columns: Sequence[Feature]) -> None:
    """Refuse missing values but in optional columns."""
    for place, column in enumerate(columns):
        if not column.optional and np.isnan(table[:, place]).any():
            raise InvalidValueError(
                f"Expected a value in every row of {column.name!r}, and some are missing (NaN). "
                "Declare the column with optional=True in a Schema, or fill the values in with "
                "what could have been known beforehand."
            )


def _names_levels(bounds: Any) -> bool:
    """Tell whether columns are to be read one by one: some have levels, or need not be said."""
    if isinstance(bounds, Schema):
        return any(isinstance(one, Categorical) or one.optional for one in asked_features(bounds))
    if not isinstance(bounds, Mapping):
        return False
    return any(
        isinstance(one, Sequence) and any(isinstance(level, str) for level in one)
        for one in bounds.values()
    )


def _table(X: Any, columns: Sequence[Feature]) -> AnyArray:
    frame = as_frame(X)
    array = None if frame is not None else np.asarray(X, dtype=object)
    if array is not None and array.ndim != 2:
        raise InvalidValueError(f"Expected X of shape (n, {len(columns)}), and got {array.shape}.")
    parts = []
    for place, column in enumerate(columns):
        value = frame[column.name].to_numpy() if array is None else array[:, place]
        if isinstance(column, Categorical):
            value = _places(value, column)
        else:
            if column.optional:
                value = filled(value, missing(value), np.nan)
            try:
                value = real_numbers(value).astype(np.float64)
            except (OverflowError, TypeError, ValueError):
                raise InvalidValueError(
                    f"Expected numbers in the column {column.name!r}, and it has other values."
                ) from None
        parts.append(value)
    return np.column_stack(parts)


def _places(values: AnyArray, column: Categorical) -> AnyArray:
    try:
        return column.places(values)
    except InvalidValueError:
        raise InvalidValueError(
            f"Expected every value of {column.name!r} to be one of its levels "
            f"{listed(column.levels)}, and some are not, or are missing. Map them to levels that "
            "could have been known beforehand."
        ) from None


def _no_numbers(X: Any, bounds: Any) -> str:
    """Say where there are no numbers: by name where it is public, else by place."""
    is_schema = isinstance(bounds, Schema)
    stated = [one.name for one in asked_features(bounds)] if is_schema else bounds
    public = set(stated) if isinstance(stated, Mapping | list) else set()
    where = "in X or y"
    if (frame := as_frame(X)) is not None:
        names = [
            column.name if column.name in public else place
            for place, column in enumerate(frame.iter_columns())
            if column.to_numpy().dtype.kind not in "biuf"
        ]
        where = f"in X, in the columns {listed(names)}" if names else "in y"
    return (
        f"Expected numbers, and found something else {where}. Name the levels that there could "
        'be: bounds={"region": ["north", "south"], ...}, or a Schema with Categorical columns. '
        "They are public, and never read from the data. Dates are no numbers: count days."
    )


def warn_if_repeated(X: Any, y: Any) -> None:
    """Warn where rows are visibly of people who have several."""
    for where in (X, y):
        index = getattr(where, "index", None)
        if getattr(index, "is_unique", True) is False:
            return _warn("The index repeats")
    frame: Any = None if isinstance(X, np.ndarray) else as_frame(X)  # arrays name no columns
    for name in () if frame is None else frame.columns:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
        if _PERSON.fullmatch(words):
            different = len(np.unique(frame[name].to_numpy().astype(str)))
            if 2 < different < len(X):  # yes and no are nobody's names
                return _warn("A column that seems to name people has values that repeat")
    return None


def _warn(what: str) -> None:
    warnings.warn(ROWS_OF_ONE_PERSON.format(what=what), NotPrivateWarning, stacklevel=4)
