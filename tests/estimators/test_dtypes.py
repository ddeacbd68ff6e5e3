"""Columns of any type are converted or refused before anything is spent."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from blurfit import Budget, InfeasibleError, InvalidValueError, Numeric, Schema
from blurfit.estimators import (
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
    MomentPerturbationSurvival,
)

ROWS = 300
WHOLE = np.random.default_rng(0).integers(0, 100, ROWS)
NUMBERS = {
    "int8": WHOLE.astype(np.int8),
    "uint64": WHOLE.astype(np.uint64),
    "bool": WHOLE > 50,
    "float16": WHOLE.astype(np.float16),
    "longdouble": np.where(WHOLE > 98, np.finfo(np.longdouble).max, WHOLE),
    "object": pd.Series(WHOLE, dtype=object),
    "decimal": pd.Series([Decimal(int(one)) for one in WHOLE], dtype=object),
    "category": pd.Series(WHOLE).astype("category"),
    "category of floats": pd.Series(np.append(WHOLE[1:], 50.5)).astype("category"),
    "Int64": pd.Series(WHOLE, dtype="Int64"),
    "boolean": pd.Series(WHOLE > 50, dtype="boolean"),
    "Float64": pd.Series(WHOLE, dtype="Float64"),
    "arrow": pd.Series(WHOLE, dtype="int64[pyarrow]"),
}
OTHERS = {
    "datetime": pd.Series(pd.to_datetime(WHOLE, unit="D")),
    "datetime with a zone": pd.Series(pd.to_datetime(WHOLE, unit="D", utc=True)),
    "date of arrow": pd.Series(pd.to_datetime(WHOLE, unit="D")).astype("date32[pyarrow]"),
    "timedelta": pd.Series(pd.to_timedelta(WHOLE, unit="D")),
    "period": pd.Series(pd.period_range("2000", periods=ROWS, freq="D")),
    "interval": pd.Series(pd.arrays.IntervalArray.from_arrays(WHOLE, WHOLE + 1)),
    "complex": pd.Series(WHOLE + 1j),
    "lists": pd.Series([[one] for one in WHOLE.tolist()]),
    "too large": pd.Series([10**400, *WHOLE[1:].tolist()], dtype=object),
    "missing": pd.Series([None, *WHOLE[1:].tolist()], dtype="Int64"),
    "words": pd.Series(["a", *WHOLE[1:].astype(str)]).astype("category"),
}
EXITS = np.rec.fromarrays([WHOLE > 30, WHOLE / 5.0], names="event,time")
OPTIONAL = Schema([Numeric("a", 0, 100, optional=True)], Numeric("y", 0, 1))
NAMED = {"a": (0, 100), "b": ["no", "yes"]}


def tables_of(column):
    """Return the column in tables of each library that can hold it, alone and beside words."""
    frame = pd.DataFrame({"a": column})
    yield (0, 100), frame
    yield (0, 100), np.asarray(frame["a"])[:, None]
    yield NAMED, frame.assign(b=np.where(WHOLE > 50, "yes", "no"))
    for library in (pl.from_pandas, pa.Table.from_pandas):
        try:
            yield (0, 100), library(frame)
        except (pa.ArrowException, pl.exceptions.PolarsError, OverflowError):
            continue


def fits_of(column):
    """Return everything that a fit could take the column for."""
    y = WHOLE / 100
    target, other = {"target_bounds": (0, 1)}, np.linspace(0, 100, ROWS)[:, None]
    for bounds, X in tables_of(column):
        kinds = [
            (MomentPerturbationRegressor(bounds=bounds, waves=1, **target), y),
            (MomentPerturbationSurvival(bounds=bounds, horizon=24), EXITS),
        ]
        if isinstance(X, pd.DataFrame):
            kinds += [
                (MomentPerturbationRegressor(bounds=bounds, per_record=True, **target), y),
                (InputPerturbationRegressor(bounds=bounds, **target), y),
                (MomentPerturbationClassifier(bounds=bounds, classes=[False, True]), y > 0.5),
            ]
        yield from ((model, (X, answers), {}) for model, answers in kinds)
    yield MomentPerturbationRegressor(bounds=OPTIONAL), (pd.DataFrame({"a": column}), y), {}
    regressor = MomentPerturbationRegressor(bounds=(0, 100), target_bounds=(0, 100))
    yield regressor, (other, column), {}
    weights = MomentPerturbationRegressor(
        bounds=(0, 100), target_bounds=(0, 1), sample_weight_bound=100
    )
    yield weights, (other, y), {"sample_weight": column}
    within = MomentPerturbationRegressor(bounds=(0, 100), target_bounds=(0, 1), effects="within")
    yield within, (pd.DataFrame({"a": column}), y), {"groups": np.arange(ROWS) // 4}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_any_type_are_fitted(name) -> None:
    for model, rows, options in fits_of(NUMBERS[name]):
        if "sample_weight" in options and name == "longdouble":
            continue  # larger than its bound
        try:
            model.fit(*rows, **options)
        except InfeasibleError:  # too few exits
            assert isinstance(model, MomentPerturbationSurvival)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_number_is_refused_before_anything_is_spent(name) -> None:
    """Some libraries make numbers of periods, and an optional column may have missing values."""
    refused = 0
    for model, rows, options in fits_of(OTHERS[name]):
        with Budget(epsilon=1e6, delta=1e-3) as budget:
            try:
                model.fit(*rows, **options)
            except InfeasibleError:
                assert isinstance(model, MomentPerturbationSurvival)
            except (InvalidValueError, TypeError):
                refused += 1
                assert not budget.expenses
    assert refused > 12


def test_dates_are_named_as_such() -> None:
    with pytest.raises(InvalidValueError, match="Dates are no numbers: count days"):
        MomentPerturbationRegressor(bounds=(0, 100), target_bounds=(0, 1)).fit(
            pd.DataFrame({"a": OTHERS["datetime"]}), WHOLE / 100
        )
