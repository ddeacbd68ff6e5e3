"""A parabola a + bz + ½cz² in place of a curve over |z| ≤ Z, and how far the two part.

A generalised linear model sees a record only through z = w·x, and |z| ≤ Z = ηR. Three parabolas are
offered for an even curve f:

| approximation | the parabola | its curvature c |
| --- | --- | --- |
| taylor | osculates f at 0 | f''(0) |
| chebyshev | has the least largest error over [−Z, Z] | 2∫₀¹(1 − t)f''(Zt)dt |
| least-squares | has the least mean squared error there | 15/16·∫₋₁¹(1 − t²)²f''(Zt)dt |

Each c is a mean of f'' over the interval. So c > 0 where f is convex, and √c exists, which
q = √c·x needs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from blurfit.errors import InvalidValueError
from blurfit.theory.roots import brent
from blurfit.validate import positive

_ROUNDING = 16 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Parabola:
    """a + bz + ½cz²."""

    constant: float
    slope: float
    curvature: float

    def __call__(self, z: float) -> float:
        """The height at z."""
        return self.constant + z * (self.slope + self.curvature * z / 2)


def reach_of(
    feature_bound: float, weight_bound: float | None, otherwise: float | None = None
) -> float:
    """Z = ηR ≥ |w·x|, with the η that is given, or else with the loss's own."""
    eta = otherwise if weight_bound is None else weight_bound
    if eta is None:
        raise InvalidValueError(
            "Expected weight_bound, because an error is known within ‖w‖ <= weight_bound only; "
            "give it to approximation_error(weight_bound=1.0), say, or when the loss is made."
        )
    positive(weight_bound=eta)
    reach = eta * feature_bound
    positive(**{"weight_bound * feature_bound": reach})
    return reach


def worst(
    residual: Callable[[float], float],
    slope: Callable[[float], float],
    edges: Sequence[float],
    size: float,
) -> float:
    """The largest |e(z)| from the first edge to the last, if e' is monotone between neighbours.

    It is found at an end or where e' = 0, and a monotone e' has at most one zero between two edges,
    which shows by its sign. Near it e is flat, so a root to twelve digits gives e to all of them.
    What remains is the rounding of e itself, a few units in the last place of the largest of its
    terms (`size`), which is added: the result is never too small.
    """
    points = list(edges)
    for low, high in pairwise(edges):
        if slope(low) * slope(high) < 0:
            points.append(brent(slope, low, high))
    largest = max(abs(residual(z)) for z in points)
    return largest + _ROUNDING * max(largest, size)
