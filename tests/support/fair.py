"""Laws of noise, and tests of noise that nobody can replay because others drew it."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, chisquare, norm

CHANCE = 1e-10
DEVIATIONS = 6.5  # |z| beyond this has a probability of 8·10⁻¹¹


def is_standard_normal(noise: ArrayLike) -> bool:
    """Whether independent numbers may be: by their squares' sum, and by the largest of them.

    Fair noise is refused once in 5·10⁹ times: χ² has a tail of `CHANCE` at either end, and one of a
    thousand numbers is beyond eight deviations with a probability of 10⁻¹².
    """
    given = np.asarray(noise, dtype=float).ravel()
    law, squares = chi2(len(given)), float(np.square(given).sum())
    is_spread = min(law.cdf(squares), law.sf(squares)) > CHANCE
    return bool(is_spread and np.abs(given).max() < 8)


def probabilities(ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """k and Pr[k] ∝ exp(−k²/(2s²)), summed directly."""
    reach = math.ceil(12 * ratio) + 1
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-((k / ratio) ** 2) / 2)
    return k, weights / weights.sum()


def shape_pvalue(seen: ArrayLike, ratio: float, cells: int = 30) -> float:
    """χ² of draws against the discrete Gaussian, in cells that each expect at least ten."""
    edges = np.unique(np.floor(ratio * norm.ppf(np.arange(1, cells) / cells))) + 0.5
    if ratio > 1000:  # the sum over a cell is the integral, up to s⁻²
        below = norm.cdf(edges / ratio)
    else:
        k, chances = probabilities(ratio)
        below = np.array([chances[k < edge].sum() for edge in edges])
    expected = np.diff(below, prepend=0.0, append=1.0) * len(np.asarray(seen))
    assert expected.min() > 10
    counts = np.bincount(np.searchsorted(edges, seen), minlength=len(expected))
    return float(chisquare(counts, expected).pvalue)
