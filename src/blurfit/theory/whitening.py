"""Whitened features and the last model's score: what every map of a later wave begins with.

    f = W(v − m),      t = β·v + β₀,

with public m, W, β and β₀, for every v: `blurfit.theory.maps` says why nothing here may fail for a
record.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InvalidValueError
from blurfit.validate import finite, positive

LARGEST_NUMBER = 1e6  # of means, coefficients and scales: records lie in [−1, 1]
LARGEST_WHITENING = 1e12
LARGEST_SCORE = 500.0  # of a model that is announced; its exponential is still a number


@dataclass(frozen=True, eq=False)
class Whitening:
    """f = W(v − m) and t = β·v + β₀, for every v.

    Lists of numbers are taken for arrays.

    >>> white = Whitening([0.5], [[2.0]], [1.0], 0.25)
    >>> white.features([[1.0], [float("nan")]]).tolist()
    [[1.0], [0.0]]
    """

    mean: FloatArray
    matrix: FloatArray
    coefficients: FloatArray
    intercept: float = 0.0

    def __post_init__(self) -> None:
        mean = _numbers(LARGEST_NUMBER, mean=self.mean)
        matrix = _numbers(LARGEST_WHITENING, matrix=self.matrix)
        beta = _numbers(LARGEST_NUMBER, coefficients=self.coefficients)
        p = mean.size
        if mean.ndim != 1 or not p or matrix.shape != (p, p) or beta.shape != (p,):
            raise InvalidValueError(
                f"Expected mean and coefficients of one length p and matrix of shape (p, p), got "
                f"{mean.shape}, {beta.shape} and {matrix.shape}."
            )
        if np.triu(matrix, 1).any() or not np.diagonal(matrix).all():
            raise InvalidValueError(
                "Expected matrix to be lower triangular with a nonzero diagonal: only such a "
                "whitening can be undone."
            )
        finite(intercept=self.intercept)
        if abs(self.intercept) > LARGEST_NUMBER:
            raise InvalidValueError(
                f"Expected intercept={self.intercept!r} to be at most {LARGEST_NUMBER:g} in size."
            )
        for name, value in (("mean", mean), ("matrix", matrix), ("coefficients", beta)):
            object.__setattr__(self, name, fixed(value))
        object.__setattr__(self, "intercept", float(self.intercept))

    @property
    def dimension(self) -> int:
        """p, the number of encoded features."""
        return self.mean.size

    def features(self, v: ArrayLike) -> FloatArray:
        """W(v − m); a record for which that is not a finite vector becomes 0."""
        rows = np.asarray(v, dtype=np.float64)
        with np.errstate(all="ignore"):
            f = (rows - self.mean) @ self.matrix.T
        return np.where(np.isfinite(f).all(axis=-1, keepdims=True), f, 0.0)

    def score(self, v: ArrayLike) -> FloatArray:
        """β·v + β₀, clipped to ±500; 0 where it is not a number."""
        with np.errstate(all="ignore"):
            t = np.asarray(v, dtype=np.float64) @ self.coefficients + self.intercept
        return np.asarray(np.clip(np.nan_to_num(t), -LARGEST_SCORE, LARGEST_SCORE))

    def to_dict(self) -> dict[str, Any]:
        """As part of an agreement: W row by row, up to its diagonal."""
        matrix = self.matrix
        return {
            "mean": self.mean.tolist(),
            "whitening": [matrix[i, : i + 1].tolist() for i in range(self.dimension)],
            "coefficients": self.coefficients.tolist(),
            "intercept": self.intercept,
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> "Whitening":
        """What `to_dict` wrote; anything else is refused."""
        try:
            rows = entry["whitening"]
            matrix = np.zeros((len(rows), len(rows)))
            for i, row in enumerate(rows):
                if len(row) != i + 1:
                    raise InvalidValueError(
                        f"Expected {i + 1} numbers in row {i} of whitening, got {len(row)}."
                    )
                matrix[i, : i + 1] = row
            return cls(entry["mean"], matrix, entry["coefficients"], entry["intercept"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InvalidValueError):
                raise
            raise InvalidValueError(
                f"Expected a map's mean, whitening, coefficients and intercept: {error!r}."
            ) from error


def norms(x: FloatArray) -> FloatArray:
    """‖x‖ of each row, scaled by its largest entry: no square overflows or vanishes."""
    largest = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    w = x / np.where(largest > 0, largest, 1.0)
    with np.errstate(over="ignore"):  # an infinite norm of finite numbers is a norm above any bound
        found = largest[..., 0] * np.sqrt(np.einsum("...i,...i->...", w, w))
    return np.asarray(found)


def into_ball(x: FloatArray, reach: float) -> FloatArray:
    """x/max(‖x‖, reach) for finite rows: x/reach, cut to the unit ball."""
    largest = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    w = x / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.einsum("...i,...i->...", w, w))[..., None]
    with np.errstate(over="ignore"):  # then the other term is the smaller one
        return np.asarray(w * np.minimum(largest / reach, 1 / np.maximum(length, 1.0)))


def _numbers(most: float, **named: ArrayLike) -> FloatArray:
    """The one named array as finite floats of bounded size, in a copy of its own."""
    ((name, value),) = named.items()
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"Expected {name} to be an array of numbers: {error}.") from error
    if not (np.isfinite(array).all() and (np.abs(array) <= most).all()):
        raise InvalidValueError(
            f"Expected {name} to be finite numbers of at most {most:g} in size; no release that "
            "teaches anything gives others."
        )
    return array


def within(low: float, high: float, **values: float) -> None:
    """Refuse a named value that is not between two numbers."""
    positive(**values)
    for name, value in values.items():
        if not low <= value <= high:
            raise InvalidValueError(f"Expected {name}={value!r} between {low:g} and {high:g}.")
