"""Limits for noise that no test can replay, because a browser draws its own bits."""

import numpy as np
import numpy.typing as npt
from scipy import stats

FALSE_ALARM = 1e-9


def could_be_noise(found: npt.ArrayLike) -> bool:
    """Whether these numbers, in units of their deviations, could be independent normal ones.

    Their length and the longest of them are within limits that honest noise exceeds three times in
    10⁹. Numbers without noise are not, nor a dozen with a tenth of it.
    """
    numbers = np.asarray(found, dtype=np.float64)
    energy, size = float(np.sum(numbers**2)), numbers.size
    least, most = stats.chi2.ppf(FALSE_ALARM, size), stats.chi2.isf(FALSE_ALARM, size)
    longest = stats.norm.isf(FALSE_ALARM / (2 * size))
    return bool(least < energy < most and np.abs(numbers).max() < longest)
