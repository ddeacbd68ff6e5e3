"""The sufficient statistics N, A = Σ q̃q̃ᵀ and c = Σ p̃ of an `input` collection.

A record matters to the model ½wᵀAw − cᵀw only through these sums.
"""

import operator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from blurfit import validate
from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InvalidValueError

# Rows that are turned into float64 and multiplied at once: 8 MB at d = 128, and enough for BLAS.
ROWS_AT_ONCE = 8192

# Two routes to the same sum differ by rounding, about √N·2⁻⁵³; what differs by more is a mistake.
ASYMMETRY_ALLOWED = 1e-10


@dataclass(frozen=True, eq=False)
class Statistics:
    """N, A and c, perhaps of submissions under the agreement with this fingerprint.

    The arrays are copied on the way in and cannot be written to; A is symmetric to the last bit.

    >>> Statistics.of_records([[1.0, 2.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 0.5]]).gram.tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """

    count: int
    gram: FloatArray
    moment: FloatArray
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        validate.whole_from_zero(count=self.count)
        count = operator.index(self.count)
        gram = symmetrised(gram=self.gram)
        moment = conforming(gram, moment=self.moment)
        for name, value in (("count", count), ("gram", fixed(gram)), ("moment", fixed(moment))):
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """The number of weights, d."""
        return len(self.moment)

    @classmethod
    def of_records(cls, q: npt.ArrayLike, p: npt.ArrayLike, *, chunk: int = ROWS_AT_ONCE) -> Self:
        """A = Σ q̃q̃ᵀ and c = Σ p̃, of one record (d,) or of many (n, d).

        The rows are taken `chunk` at a time, so that arrays which are memory-mapped or hold
        smaller numbers than float64 are never converted as a whole.
        """
        validate.whole(chunk=chunk)
        q, p = np.atleast_2d(np.asarray(q)), np.atleast_2d(np.asarray(p))
        if q.ndim != 2 or q.shape != p.shape or q.shape[1] == 0:
            raise InvalidValueError(
                f"Expected q.shape={q.shape} and p.shape={p.shape} to be the same, "
                "(d,) for one record or (n, d) for many."
            )
        count, dimension = q.shape
        A, c = np.zeros((dimension, dimension)), np.zeros(dimension)
        for start in range(0, count, chunk):
            part = slice(start, start + chunk)
            rows = _rows(q=q[part])
            with np.errstate(over="ignore", invalid="ignore"):  # the sums are checked at the end
                A += rows.T @ rows
                c += _rows(p=p[part]).sum(axis=0)
        return cls(count, A, c)


def symmetrised(**matrices: npt.ArrayLike) -> FloatArray:
    """½(M + Mᵀ) as a new array, for a matrix that equals its transpose up to rounding.

    The value comes by keyword, as in `blurfit.validate`, so that the message can name it.
    """
    ((name, value),) = matrices.items()
    M = np.asarray(value, dtype=np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or M.size == 0:
        raise InvalidValueError(f"Expected {name}.shape={M.shape} to be (d, d).")
    _refuse_unless_finite(**{name: M})
    half = 0.5 * M
    asymmetry, size = float(np.abs(half - half.T).max()), float(np.abs(half).max())
    if asymmetry > ASYMMETRY_ALLOWED * size:
        raise InvalidValueError(
            f"Expected {name} to be symmetric, but it differs from its transpose by up to "
            f"{2 * asymmetry:.3g}; pass ({name} + {name}.T) / 2 if that is what you mean."
        )
    return half + half.T


def conforming(gram: FloatArray, **vectors: npt.ArrayLike) -> FloatArray:
    """A vector as a new array, checked to be finite and as long as the matrix is wide."""
    ((name, value),) = vectors.items()
    vector = np.array(value, dtype=np.float64)
    if vector.shape != gram.shape[:1]:
        raise InvalidValueError(
            f"Expected {name}.shape={vector.shape} to be {gram.shape[:1]}, "
            f"because gram.shape={gram.shape}."
        )
    _refuse_unless_finite(**{name: vector})
    return vector


def _rows(**rows: npt.NDArray[Any]) -> FloatArray:
    ((name, value),) = rows.items()
    numbers = np.ascontiguousarray(value, dtype=np.float64)
    _refuse_unless_finite(**{name: numbers})
    return numbers


def _refuse_unless_finite(**arrays: FloatArray) -> None:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            culprit = array[~np.isfinite(array)][0]
            raise InvalidValueError(
                f"Expected {name} to be finite, but it contains {culprit}: blurring never makes "
                "such a number, so look for it where the records are read."
            )
