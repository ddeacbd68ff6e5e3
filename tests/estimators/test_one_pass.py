"""One pass against the schema's own encoding, row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from blurfit.estimators import passes as module
from blurfit.estimators.passes import joint_totals
from blurfit.schema import vectors
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema


def reference(values, targets, columns):
    """v of the schema, row by row."""
    schema = Schema(columns, Numeric("y", -1, 1))
    table = {column.name: values[:, place] for place, column in enumerate(columns)}
    v = vectors.values(schema, table, [column.name for column in columns])
    whole = np.column_stack([np.ones(len(v)), v, targets])
    return whole.T @ whole


def columns_of(count: int) -> list[Numeric]:
    return [Numeric(f"x{i}", -1.0 - i, 2.0 + i * i) for i in range(count)]


@pytest.mark.parametrize("rows", [1, 255, 256, 257, 10_000])
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps", "read-only"])
def test_against_the_schemas_encoding(monkeypatch, layout, rows) -> None:
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 64)  # so blocks have 256 rows, parts 4096
    generator = np.random.default_rng(rows)
    columns = columns_of(5)
    values = 4 * generator.standard_normal((rows, 5))  # many are outside of the bounds
    targets = generator.uniform(-1, 1, (rows, 3))
    given_values = {
        "rows": values,
        "columns": np.asfortranarray(values),
        "gaps": np.repeat(values, 2, axis=1)[:, ::2],
        "read-only": values,
    }[layout]
    given_values.setflags(write=layout != "read-only")
    before = given_values.copy()
    found = joint_totals(given_values, targets, columns).matrix(rows)
    np.testing.assert_allclose(
        found, reference(values, targets, columns), rtol=1e-12, atol=1e-12 * rows
    )
    assert np.array_equal(before, given_values)


def test_the_number_of_threads_changes_no_bit(monkeypatch) -> None:
    generator = np.random.default_rng(0)
    values, targets = (
        generator.standard_normal((200_000, 6)),
        generator.standard_normal((200_000, 2)),
    )
    found = []
    for threads in (1, 3, None):
        monkeypatch.setattr(module.os, "cpu_count", lambda threads=threads: threads)
        found.append(joint_totals(values, targets, columns_of(6)).matrix(200_000))
    for other in found[1:]:
        assert np.array_equal(found[0], other)


def test_wide_tables() -> None:
    generator = np.random.default_rng(0)
    values, targets = generator.standard_normal((700, 80)), generator.standard_normal((700, 1))
    found = joint_totals(values, targets, columns_of(80)).matrix(700)
    np.testing.assert_allclose(found, reference(values, targets, columns_of(80)), atol=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
def test_levels_and_signs_in_any_order(order) -> None:
    generator = np.random.default_rng(0)
    columns = [
        Categorical("a", ["x", "y", "z"]),
        Numeric("b", 0, 2),
        Binary("c"),
        Categorical("d", ["0", "1"]),
    ]
    values = np.column_stack(
        [
            generator.integers(0, 3, 1000),
            generator.normal(1, 1, 1000),
            generator.integers(0, 2, 1000),
            generator.integers(0, 2, 1000),
        ]
    )
    targets = generator.uniform(-1, 1, (1000, 2))
    found = joint_totals(np.asarray(values, order=order), targets, columns).matrix(1000)
    table = {"a": np.array(["x", "y", "z"])[values[:, 0].astype(int)], "b": values[:, 1]}
    table |= {"c": values[:, 2], "d": values[:, 3]}
    v = vectors.values(Schema(columns, Numeric("t", 0, 1)), table, ["a", "b", "c", "d"])
    whole = np.column_stack([np.ones(1000), v, targets])
    np.testing.assert_allclose(found, whole.T @ whole, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float32])
def test_any_real_type_without_a_copy_of_the_table(dtype) -> None:
    values = np.random.default_rng(0).integers(0, 2, (500, 2)).astype(dtype)
    columns = [Numeric("a", -1, 3), Numeric("b", 0, 0.5)]
    found = joint_totals(values, np.zeros((500, 0)), columns).matrix(500)
    expected = joint_totals(values.astype(np.float64), np.zeros((500, 0)), columns).matrix(500)
    assert np.array_equal(found, expected)


@given(arrays(np.float64, (7, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_no_value_adds_more_than_one(values) -> None:
    """Whatever the data are, each |z| ≤ 1 to the last bit: privacy rests upon it."""
    columns = [Numeric("a", -1e-300, 1e300), Numeric("b", 1e9, 1e9 + 1)]
    for row in values:
        gram = joint_totals(row[None], np.zeros((1, 0)), columns).gram
        assert (np.abs(gram) <= 1.0).all()


def test_narrow_bounds_far_from_zero_lose_no_digits() -> None:
    far = Numeric("a", 2.0**40, 2.0**40 + 1)
    found = joint_totals(np.array([[2.0**40 + 0.75]]), np.zeros((1, 0)), [far])
    assert found.gram.tolist() == [[0.25]]
