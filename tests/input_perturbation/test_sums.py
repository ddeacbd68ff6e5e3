import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.input_perturbation.algorithms import Sums
from blurfit.learning.sums import symmetrised


def same(one, other):
    return one.count == other.count and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("gram", "moment")
    )


def symmetric(dimension, seed=0):
    root = np.random.default_rng(seed).normal(size=(dimension, dimension))
    return root + root.T


class TestValue:
    def test_arrays_are_copied_and_read_only_and_counts_exact(self):
        A, c = np.eye(2), np.zeros(2)
        found = Sums(1, A, c)
        A[0, 0], c[0] = 7.0, 7.0
        assert same(found, Sums(1, np.eye(2), np.zeros(2)))
        for array in (found.gram, found.moment):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
        with pytest.raises(AttributeError):
            found.count = 5

    @pytest.mark.parametrize("count", [-1, 1.0, True, "1", None])
    def test_count_is_a_whole_number(self, count):
        with pytest.raises(InvalidValueError, match="count="):
            Sums(count, np.eye(1), np.zeros(1))

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
            Sums(1, gram, moment)

    def test_rounding_is_taken_out_of_an_almost_symmetric_matrix(self):
        M = symmetric(5)
        M[0, 1] *= 1 + 1e-15
        found = symmetrised(matrix=M)
        assert np.array_equal(found, found.T)
        assert np.abs(found - M).max() <= 1e-14
