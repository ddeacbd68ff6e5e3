"""A population as columns: what it holds, how it is cut, what it refuses."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from blurfit import BlurfitError, InvalidValueError
from blurfit.schema.columns import Binary, Label, Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation import Census

SCHEMA = Schema([Numeric("age", 0, 100), Binary("owns")], Numeric("income", 0, 200_000))


@pytest.fixture
def census() -> Census:
    table = {
        "age": np.array([20, 30, 40, 50]),
        "owns": np.array([0, 1, 0, 1]),
        "income": np.array([0, 36_000, 37_000, 38_000]),
        "is_test_split": np.array([0, 1, 0, 1], dtype=np.uint8),
    }
    return Census(table, SCHEMA, "four people", synthetic=False)


def test_representation_tells_what_it_is(census: Census) -> None:
    assert repr(census) == "Census('four people': 4 rows, 4 columns, real)"
    made_up = replace(census, synthetic=True, removed=1234)
    assert repr(made_up) == (
        "Census('four people': 4 rows, 4 columns, synthetic, "
        "1,234 rows with unknown values removed)"
    )


def test_label_is_an_income_above_37000(census: Census) -> None:
    assert census.label_schema.is_label
    assert census.label_schema.features == SCHEMA.features
    assert census.label_schema.encode(census.table).target.tolist() == [-1, -1, -1, 1]
    assert census.above(35_000).encode(census.table).target.tolist() == [-1, 1, 1, 1]
    assert isinstance(census.above(35_000).target, Label)


def test_a_label_stays_as_it_is(census: Census) -> None:
    labelled = replace(census, schema=Schema([Numeric("age", 0, 100)], Binary("owns")))
    assert labelled.label_schema is labelled.schema
    with pytest.raises(InvalidValueError, match=r"threshold=5, but 'owns' is a label already"):
        labelled.above(5)


def test_head_and_take(census: Census) -> None:
    assert census.head(3).table["age"].tolist() == [20, 30, 40]
    assert census.take(2).table["age"].tolist() == [20, 30]
    assert census.take(2, start=2).table["income"].tolist() == [37_000, 38_000]
    assert len(census.head(4)) == len(census) == 4
    assert census.take(1).schema is census.schema


@pytest.mark.parametrize(("n", "start"), [(5, 0), (1, 4), (3, 2)])
def test_never_fewer_rows_than_asked_for(census: Census, n: int, start: int) -> None:
    with pytest.raises(InvalidValueError, match=rf"n={n} rows from start={start} .* 4 rows"):
        census.take(n, start=start)


@pytest.mark.parametrize(("n", "start"), [(0, 0), (-1, 0), (1, -1), (1.0, 0), (1, 0.5)])
def test_refuses_what_is_no_count(census: Census, n: int, start: int) -> None:
    with pytest.raises(InvalidValueError, match=r"Expected (n|start)="):
        census.take(n, start=start)


def test_split_by_the_publisher(census: Census) -> None:
    assert census.is_test.tolist() == [False, True, False, True]
    train, test = census.where(~census.is_test), census.where(census.is_test)
    assert train.table["age"].tolist() == [20, 40]
    assert test.table["age"].tolist() == [30, 50]
    without = {name: column for name, column in census.table.items() if name != "is_test_split"}
    with pytest.raises(InvalidValueError, match=r"'four people' sets no rows aside"):
        _ = replace(census, table=without).is_test


@pytest.mark.parametrize("chosen", [np.array([True]), np.array([0, 1, 1, 0])])
def test_where_wants_a_boolean_for_each_row(census: Census, chosen: np.ndarray) -> None:
    with pytest.raises(InvalidValueError, match="chosen to be 4 booleans"):
        census.where(chosen)


def test_columns_cannot_be_written_to(census: Census) -> None:
    with pytest.raises(ValueError, match="read-only"):
        census.table["age"][0] = 99


def test_the_callers_array_stays_writable() -> None:
    age = np.array([1.0, 2.0])
    Census({"age": age, "owns": age, "income": age}, SCHEMA, "two", synthetic=True)
    age[0] = 3.0


def test_frame_has_the_columns(census: Census) -> None:
    frame = census.frame()
    assert list(frame.columns) == ["age", "owns", "income", "is_test_split"]
    assert frame["income"].sum() == 111_000


def test_frame_without_pandas(census: Census, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BlurfitError, match=r"pip install .blurfit\[tables\]"):
        census.frame()


def test_refuses_columns_of_different_lengths(census: Census) -> None:
    with pytest.raises(InvalidValueError, match=r"one length, got .*'owns': 1"):
        replace(census, table=census.table | {"owns": np.array([1])})


@pytest.mark.parametrize("name", ["age", "income"])
def test_refuses_a_table_without_the_schemas_columns(census: Census, name: str) -> None:
    table = {key: column for key, column in census.table.items() if key != name}
    with pytest.raises(InvalidValueError, match=f"a column '{name}' as the schema says"):
        replace(census, table=table)
