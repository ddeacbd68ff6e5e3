"""One pass against the schema's own encoding, row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from blurfit.estimators import one_pass
from blurfit.estimators.one_pass import encoded_sums
from blurfit.schema.schema import Numeric, Schema


def reference(values, targets, columns, intercept):
    """x of the schema, with its scale s = 1/√m taken out again."""
    schema = Schema(columns, Numeric("y", -1, 1), intercept)
    x = schema.encode_features(values, names=[column.name for column in columns])
    z = x * np.sqrt(len(columns) + intercept)
    return z.T @ z, z.T @ targets


def columns_of(count: int) -> list[Numeric]:
    return [Numeric(f"x{i}", -1.0 - i, 2.0 + i * i) for i in range(count)]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rows", [1, 255, 256, 257, 10_000])
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps", "read-only"])
def test_against_the_schemas_encoding(monkeypatch, layout, rows, intercept) -> None:
    monkeypatch.setattr(one_pass, "NUMBERS_AT_ONCE", 64)  # so blocks have 256 rows, parts 4096
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
    gram, moments = encoded_sums(given_values, targets, columns, intercept=intercept)
    expected_gram, expected_moments = reference(values, targets, columns, intercept)
    np.testing.assert_allclose(gram, expected_gram, rtol=1e-12, atol=1e-12 * rows)
    np.testing.assert_allclose(moments, expected_moments, rtol=1e-12, atol=1e-12 * rows)
    assert np.array_equal(before, given_values)


def test_the_number_of_threads_changes_no_bit(monkeypatch) -> None:
    generator = np.random.default_rng(0)
    values, targets = (
        generator.standard_normal((200_000, 6)),
        generator.standard_normal((200_000, 2)),
    )
    found = []
    for threads in (1, 3, None):
        monkeypatch.setattr(one_pass.os, "cpu_count", lambda threads=threads: threads)
        found.append(encoded_sums(values, targets, columns_of(6), intercept=True))
    for other in found[1:]:
        assert np.array_equal(found[0].gram, other.gram)
        assert np.array_equal(found[0].moments, other.moments)


def test_wide_tables() -> None:
    generator = np.random.default_rng(0)
    values, targets = generator.standard_normal((700, 80)), generator.standard_normal((700, 1))
    gram, moments = encoded_sums(values, targets, columns_of(80), intercept=True)
    expected = reference(values, targets, columns_of(80), True)
    np.testing.assert_allclose(gram, expected[0], atol=1e-9)
    np.testing.assert_allclose(moments, expected[1], atol=1e-9)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float32])
def test_any_real_type_without_a_copy_of_the_table(dtype) -> None:
    values = np.random.default_rng(0).integers(0, 2, (500, 2)).astype(dtype)
    columns = [Numeric("a", -1, 3), Numeric("b", 0, 0.5)]
    gram, _ = encoded_sums(values, np.zeros((500, 0)), columns, intercept=True)
    expected, _ = encoded_sums(
        values.astype(np.float64), np.zeros((500, 0)), columns, intercept=True
    )
    assert np.array_equal(gram, expected)


@given(arrays(np.float64, (7, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_no_value_adds_more_than_one(values) -> None:
    """Whatever the data are, each |z| ≤ 1 to the last bit: privacy rests upon it."""
    columns = [Numeric("a", -1e-300, 1e300), Numeric("b", 1e9, 1e9 + 1)]
    for row in values:
        gram, _ = encoded_sums(row[None], np.zeros((1, 0)), columns, intercept=False)
        assert (np.abs(gram) <= 1.0).all()


def test_narrow_bounds_far_from_zero_lose_no_digits() -> None:
    gram, _ = encoded_sums(
        np.array([[2.0**40 + 0.75]]),
        np.zeros((1, 0)),
        [Numeric("a", 2.0**40, 2.0**40 + 1)],
        intercept=False,
    )
    assert gram.tolist() == [[0.25]]
