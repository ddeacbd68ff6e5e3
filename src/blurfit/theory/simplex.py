"""Nelder and Mead's simplex: without derivatives, deterministic, for a handful of parameters."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Point = npt.NDArray[np.float64]  # any real numbers: logarithms, log-odds


def descend(
    function: Callable[[Point], float],
    start: Point,
    *,
    steps: int,
    reach: float = 0.7,
    tolerance: float = 1e-2,
) -> Point:
    """A point near the minimum, after at most so many evaluations.

    `reach` is the first simplex's size. Optima are flat here, so a few dozen steps do.
    """
    from scipy.optimize import minimize  # half a second to import

    found = minimize(
        function,
        start,
        method="Nelder-Mead",
        options={
            "maxfev": steps,
            "xatol": tolerance,
            "fatol": 1e-5,
            "initial_simplex": np.vstack([start, start + reach * np.eye(len(start))]),
        },
    )
    return np.asarray(found.x)
