"""Noise that nobody can replay, because a browser or another process drew it."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

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
