import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.learning.sums import Statistics, symmetrised


def records(count, dimension, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, dimension)), rng.normal(size=(count, dimension))


def whole_records(count, dimension, seed=0):
    """Records of small whole numbers, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(-9, 10, size=(count, dimension)).astype(float) for _ in range(2))


def same(one, other):
    return one.count == other.count and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("gram", "moment")
    )


def symmetric(dimension, seed=0):
    root = np.random.default_rng(seed).normal(size=(dimension, dimension))
    return root + root.T


class TestOfRecords:
    @pytest.mark.parametrize(("count", "dimension"), [(1, 1), (7, 1), (40, 5), (700, 300)])
    def test_sums_outer_products(self, count, dimension):
        q, p = records(count, dimension)
        found = Statistics.of_records(q, p)
        assert found.count == count
        assert found.dimension == dimension
        np.testing.assert_allclose(found.gram, np.einsum("ki,kj->ij", q, q), rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.moment, [sum(column) for column in p.T], atol=1e-12)

    @pytest.mark.parametrize("dimension", [1, 14, 300])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_gram_is_symmetric_to_the_last_bit(self, dimension, order):
        q, p = records(500, dimension)
        gram = Statistics.of_records(np.asarray(q, order=order)[::2], p[::2], chunk=37).gram
        assert np.array_equal(gram, gram.T)

    @pytest.mark.parametrize("chunk", [1, 2, 7, 99, 100, 101])
    def test_chunks_equal_the_whole(self, chunk):
        q, p = whole_records(100, 6)
        assert same(Statistics.of_records(q, p, chunk=chunk), Statistics.of_records(q, p))

    def test_one_record_and_small_numbers_are_summed_as_float64(self):
        q, p = records(1, 4)
        assert same(Statistics.of_records(q[0], p[0]), Statistics.of_records(q, p))
        assert Statistics.of_records(q[0], p[0]).count == 1
        q, p = records(2000, 3)
        single = Statistics.of_records(q.astype(np.float32), p.astype(np.float32))
        double = Statistics.of_records(
            q.astype(np.float32).astype(float), p.astype(np.float32).astype(float)
        )
        assert same(single, double)

    @pytest.mark.parametrize(
        ("q", "p"),
        [
            (np.zeros((2, 3)), np.zeros((2, 4))),
            (np.zeros((2, 3)), np.zeros((3, 3))),
            (np.zeros((2, 3)), np.zeros(3)),
            (np.zeros((2, 2, 2)), np.zeros((2, 2, 2))),
            (np.zeros((2, 0)), np.zeros((2, 0))),
        ],
    )
    def test_shapes_have_to_agree(self, q, p):
        with pytest.raises(InvalidValueError, match=r"q.shape=.* and p.shape="):
            Statistics.of_records(q, p)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("name", ["q", "p"])
    def test_every_number_is_finite(self, name, bad):
        arrays = dict(zip("qp", records(5, 2), strict=True))
        arrays[name][3, 1] = bad
        with pytest.raises(InvalidValueError, match=rf"{name} to be finite, but it contains"):
            Statistics.of_records(**arrays)

    def test_sums_that_overflow_and_parts_of_chunks_are_refused(self):
        with pytest.raises(InvalidValueError, match="gram to be finite"):
            Statistics.of_records([1e200, 0.0], [0.0, 0.0])
        with pytest.raises(InvalidValueError, match="chunk=0"):
            Statistics.of_records([1.0], [1.0], chunk=0)


class TestValue:
    def test_arrays_are_copied_and_read_only_and_counts_exact(self):
        A, c = np.eye(2), np.zeros(2)
        found = Statistics(1, A, c)
        A[0, 0], c[0] = 7.0, 7.0
        assert same(found, Statistics(1, np.eye(2), np.zeros(2)))
        for array in (found.gram, found.moment):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
        with pytest.raises(AttributeError):
            found.count = 5
        assert type(Statistics(np.int64(3), np.eye(1), np.zeros(1)).count) is int

    @pytest.mark.parametrize("count", [-1, 1.0, True, "1", None])
    def test_count_is_a_whole_number(self, count):
        with pytest.raises(InvalidValueError, match="count="):
            Statistics(count, np.eye(1), np.zeros(1))

    @pytest.mark.parametrize(
        ("gram", "moment", "named"),
        [
            (np.zeros((2, 3)), np.zeros(2), "gram.shape"),
            (np.zeros(2), np.zeros(2), "gram.shape"),
            (np.zeros((0, 0)), np.zeros(0), "gram.shape"),
            (np.eye(2), np.zeros(3), "moment.shape"),
            (np.eye(2), np.zeros((2, 1)), "moment.shape"),
            ([[1.0, 2.0], [3.0, 1.0]], np.zeros(2), "symmetric"),
            (np.full((2, 2), np.nan), np.zeros(2), "gram to be finite"),
            (np.eye(2), [np.inf, 0.0], "moment to be finite"),
        ],
    )
    def test_bad_parts_are_named(self, gram, moment, named):
        with pytest.raises(InvalidValueError, match=named):
            Statistics(1, gram, moment)

    def test_rounding_is_taken_out_of_an_almost_symmetric_matrix(self):
        M = symmetric(5)
        M[0, 1] *= 1 + 1e-15
        found = symmetrised(matrix=M)
        assert np.array_equal(found, found.T)
        assert np.abs(found - M).max() <= 1e-14
