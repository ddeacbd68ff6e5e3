"""Triangles of symmetric matrices: one order, there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit.errors import InvalidValueError
from blurfit.theory import forms
from blurfit.theory.forms import pack, unpack


def symmetric(dimension: int, seed: int = 0) -> np.ndarray:
    M = np.random.default_rng(seed).normal(size=(dimension, dimension))
    return M + M.T


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_unpack_inverts_pack(dimension, seed) -> None:
    M = symmetric(dimension, seed)
    assert pack(M).shape == (forms.size(dimension),) == (dimension * (dimension + 1) // 2,)
    assert np.array_equal(unpack(pack(M), dimension), M)
    assert np.array_equal(M[forms.places(dimension)], pack(M))


def test_triangles_are_row_by_row_in_stacks_too() -> None:
    M = [[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]]
    assert pack(M).tolist() == [1, 2, 3, 4, 5, 6]
    stack = np.array([symmetric(4, seed) for seed in range(6)])
    assert pack(stack).shape == (6, 10)
    assert np.array_equal(unpack(pack(stack), 4), stack)


def test_what_is_no_triangle_is_refused() -> None:
    with pytest.raises(ValueError, match="read-only"):
        forms.places(3)[0][0] = 7
    with pytest.raises(InvalidValueError, match="transpose"):
        pack([[1.0, 2.0], [2.1, 1.0]])
    with pytest.raises(InvalidValueError, match=r"end in 6"):
        unpack(np.zeros(5), 3)
