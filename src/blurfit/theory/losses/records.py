"""Reading records: shapes, finite numbers, and the ball that the guarantee is about."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError

TOLERANCE = 1e-9  # by how much, relatively, rounding may carry an honest record beyond a bound


@dataclass(frozen=True)
class Records:
    """Records inside the ball ‖x‖ ≤ R: the rows of `features`, each times its `shrink`.

    A row that rounding has carried over the sphere is put back onto it by shrink = R/max(R, ‖x‖),
    so R holds for what is sent and not only up to a tolerance. The product is never formed: each q
    and p is some multiple of x, and so takes its shrink along with its own coefficient, without a
    second n × d array.
    """

    features: FloatArray
    target: FloatArray
    shrink: FloatArray

    def along(self, coefficient: float | FloatArray) -> FloatArray:
        """Each record's x times its own coefficient (or all times one)."""
        return np.asarray(self.shrink * coefficient)[..., None] * self.features

    def project(self, weights: FloatArray) -> FloatArray:
        """The z = x·w of each record."""
        if weights.shape != self.features.shape[-1:]:
            raise InvalidValueError(
                f"Expected as many features as prior_weights, {weights.size}, "
                f"and got {self.features.shape[-1]}; encode records as the prior model did."
            )
        z: FloatArray = self.shrink * (self.features @ weights)
        return z


def read(features: ArrayLike, target: ArrayLike, feature_bound: float) -> Records:
    """The records, or an error that names the first row outside the ball (or not a number)."""
    x, y = paired(features, target)
    norm = row_norms(x)
    refuse_first(
        ~(norm <= feature_bound * (1 + TOLERANCE)),  # so that NaN is refused as well
        "features",
        f"whose norm is not within feature_bound={feature_bound:g}, and privacy rests upon that "
        "bound; fill in what is missing, and scale features by public bounds or agree on a larger "
        "one",
    )
    return Records(x, y, feature_bound / np.maximum(norm, feature_bound))


def within(y: FloatArray, low: float, high: float, names: str, remedy: str) -> FloatArray:
    """The targets, if in [low, high]; what rounding has carried over an end is put back onto it."""
    slack = TOLERANCE * max(abs(low), abs(high))
    bad = ~((y >= low - slack) & (y <= high + slack))
    refuse_first(bad, "a target", f"which is not within {names}; {remedy}")
    inside: FloatArray = np.clip(y, low, high)
    return inside


def signs(y: FloatArray) -> FloatArray:
    """The labels, if each of them is −1 or +1."""
    refuse_first(
        np.abs(y) != 1,
        "a label",
        "which is neither -1 nor +1; map labels 0 and 1 by 2 * label - 1",
    )
    return y


def paired(features: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(d,) with a number, or (n, d) with (n,); anything else is refused."""
    x, y = numbers(features=features), numbers(target=target)
    if x.ndim not in (1, 2) or x.shape[-1] == 0 or y.shape != x.shape[:-1]:
        raise InvalidValueError(
            "Expected features of shape (d,) with one number as target, or (n, d) with (n,), "
            f"and got {x.shape} with {y.shape}."
        )
    return x, y


def numbers(**named: ArrayLike) -> FloatArray:
    """The one named array as float64, without a copy where it is that already."""
    ((name, given),) = named.items()
    try:
        array = np.asarray(given)
    except ValueError:
        raise InvalidValueError(f"Expected {name} to be an array of numbers.") from None
    if array.dtype.kind not in "biuf":
        raise InvalidValueError(
            f"Expected {name} to be an array of real numbers, and got dtype {array.dtype}; "
            "encode words as numbers first."
        )
    return array.astype(np.float64, copy=False)


def row_norms(x: FloatArray) -> FloatArray:
    """‖x‖ of each row, without the n × d array of squares that `numpy.linalg.norm` makes."""
    norm: FloatArray = np.sqrt(np.einsum("...i,...i->...", x, x))
    return norm


def refuse_first(bad: Any, what: str, remedy: str) -> None:
    """Raise for the first bad row, naming it but not its value (one record is row 0)."""
    bad = np.atleast_1d(bad)
    if bad.any():
        row = int(bad.argmax())
        raise InvalidValueError(f"Row {row} has {what} {remedy}.")
