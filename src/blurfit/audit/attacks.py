"""Attackers: each learns from pilot releases how to turn a release into one number.

| name | what it knows, and what it finds |
| --- | --- |
| `known direction` | how the two neighbours differ and how loud the noise is: Neyman and Pearson's best test for additive Gaussian noise |
| `linear` | nothing beforehand: Fisher's discriminant, Σ⁺(m − m'); finds noise that two numbers share |
| `quadratic` | nothing beforehand: the log-ratio of two fitted Gaussians; finds what changes the spread |
| `nearest` | nothing beforehand: how close the k-th nearest pilot release of either side is; finds a shape of any kind, such as a spike |
| `lowest bit` | that numbers are floats: the last bit that is set betrays which value noise was added to |
"""  # noqa: E501 (a table)

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from blurfit.arrays import FloatArray

Score = Callable[[FloatArray], FloatArray]  # releases (trials, k) → scores (trials,)

MOST_FOR_QUADRATIC = 40  # numbers in a release; beyond, its covariances are too uncertain
_RELATIVE_FLOOR = 1e-13  # of the largest eigenvalue: directions that carry less are noise-free


def along(direction: npt.ArrayLike) -> Score:
    """release · direction."""
    v = np.asarray(direction, dtype=np.float64)
    return lambda releases: np.asarray(releases @ v)


def linear(first: FloatArray, second: FloatArray) -> Score:
    """Fisher's discriminant of the two pilot sets, standardised so that units do not matter."""
    centre, scale = _standard(first, second)
    a, b = (first - centre) / scale, (second - centre) / scale
    pooled = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)).reshape(a.shape[1], -1) / 2
    values, vectors = np.linalg.eigh(pooled)
    difference = vectors.T @ (a.mean(axis=0) - b.mean(axis=0))
    floor = max(float(values[-1]), 1e-300) * _RELATIVE_FLOOR
    direction = vectors @ (difference / np.maximum(values, floor))
    return lambda releases: np.asarray(((releases - centre) / scale) @ direction)


def quadratic(first: FloatArray, second: FloatArray) -> Score:
    """ln N(x; m, Σ) − ln N(x; m', Σ'), with means and covariances of the pilot sets."""
    centre, scale = _standard(first, second)
    sides = [_gaussian((side - centre) / scale) for side in (first, second)]

    def score(releases: FloatArray) -> FloatArray:
        x = (releases - centre) / scale
        one, other = (side(x) for side in sides)
        return np.asarray(one - other)

    return score


def nearest(first: FloatArray, second: FloatArray) -> Score:
    """ln of the distance to the k-th nearest of the second pilot set over that of the first.

    The density of either side, up to a factor that both share. Columns are scaled by the median
    distance from the median, which heavy tails do not move.
    """
    both = np.concatenate([first, second])
    centre = np.median(both, axis=0)
    spread = np.median(np.abs(both - centre), axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    sides = [cKDTree((side - centre) / scale) for side in (first, second)]
    k = max(3, int(math.sqrt(len(first)) / 2))

    def score(releases: FloatArray) -> FloatArray:
        x = (releases - centre) / scale
        one, other = (np.log(np.asarray(side.query(x, [k])[0])[:, 0] + 1e-300) for side in sides)
        return np.asarray(other - one)

    return score


def lowest_bit(column: int) -> Score:
    """The exponent of the last bit that is set in one of the numbers (1100 for a zero)."""

    def score(releases: FloatArray) -> FloatArray:
        fraction, exponent = np.frexp(releases[:, column])
        whole = np.abs(fraction * 2.0**53).astype(np.int64)
        lowest = (whole & -whole).astype(np.float64)
        with np.errstate(divide="ignore"):
            place = exponent - 53 + np.log2(lowest)
        return np.where(whole == 0, 1100.0, place)

    return score


def candidates(first: FloatArray, second: FloatArray) -> dict[str, Score]:
    """The attackers that know nothing beforehand, trained on pilot releases."""
    found = {"linear": linear(first, second)}
    if first.shape[1] <= MOST_FOR_QUADRATIC:
        found["quadratic"] = quadratic(first, second)
    bits = [lowest_bit(column) for column in range(first.shape[1])]
    contrast = [_contrast(bit(first), bit(second)) for bit in bits]
    found["lowest bit"] = bits[int(np.argmax(contrast))]
    return found


def _contrast(first: FloatArray, second: FloatArray) -> float:
    """The largest difference of the two distribution functions (Kolmogorov and Smirnov)."""
    places = np.union1d(first, second)
    shares = [np.searchsorted(np.sort(s), places, side="right") / len(s) for s in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _standard(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = np.concatenate([first, second])
    spread = both.std(axis=0)
    return both.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _gaussian(x: FloatArray) -> Score:
    centre = x.mean(axis=0)
    covariance = np.cov(x, rowvar=False).reshape(x.shape[1], -1)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, max(float(values[-1]), 1e-300) * _RELATIVE_FLOOR)
    constant = -0.5 * float(np.log(values).sum())
    whiten = vectors / np.sqrt(values)
    return lambda y: constant - 0.5 * (((y - centre) @ whiten) ** 2).sum(axis=1)
