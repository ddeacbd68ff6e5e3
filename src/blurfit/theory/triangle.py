"""A symmetric matrix as its upper triangle, row by row: M₁₁, M₁₂, …, M₁d, M₂₂, …, Mdd.

A symmetric matrix says everything twice; a message says it once.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from blurfit import validate
from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InvalidValueError

Places = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


def size(dimension: int) -> int:
    """How many numbers the triangle of a (d, d) matrix has: d(d+1)/2."""
    return dimension * (dimension + 1) // 2


@lru_cache(maxsize=64)
def places(dimension: int) -> Places:
    """The row and the column of each number of a triangle, to index a matrix with."""
    rows, columns = np.triu_indices(dimension)
    return fixed(rows), fixed(columns)


def pack(symmetric: npt.ArrayLike) -> FloatArray:
    """The triangle of one (d, d) matrix, or of each in a stack (…, d, d); `unpack` is the inverse.

    >>> pack([[1.0, 2.0], [2.0, 3.0]])
    array([1., 2., 3.])
    """
    M = np.asarray(symmetric, dtype=np.float64)
    if M.ndim < 2 or M.shape[-1] != M.shape[-2] or not np.array_equal(M, np.swapaxes(M, -1, -2)):
        raise InvalidValueError(
            f"Expected symmetric.shape={M.shape} to be (…, d, d) and each matrix to equal its "
            "transpose; (M + M.T) / 2 does."
        )
    rows, columns = places(M.shape[-1])
    return M[..., rows, columns]


def unpack(packed: npt.ArrayLike, dimension: int) -> FloatArray:
    """The symmetric matrix (or the stack of them) whose triangle `pack` wrote."""
    validate.whole(dimension=dimension)
    triangle = np.asarray(packed, dtype=np.float64)
    if triangle.shape[-1:] != (size(dimension),):
        raise InvalidValueError(
            f"Expected packed.shape={triangle.shape} to end in {size(dimension)}, "
            f"which is d(d+1)/2 for dimension={dimension}."
        )
    rows, columns = places(dimension)
    M = np.empty((*triangle.shape[:-1], dimension, dimension))
    M[..., rows, columns] = triangle
    M[..., columns, rows] = triangle
    return M
