"""What is known after a wave: the model, its error, and where people are.

Wave 1's joint sums give the line of least squares, for every task, with the covariance of its
error, and mean and covariance of the features (`first_belief`). Sums of later waves move it
(`blurfit.learning.waves`). `coordinates` are those of a map, in which a wave looks for a change of
the coefficients.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtri

from blurfit.data import BoolArray, FloatArray
from blurfit.errors import one_of, positive
from blurfit.learning.shrinkage import (
    Shrunk,
    of_slopes,
    prior_of,
    read_once,
    soft_floor,
)
from blurfit.learning.sums import Submodel
from blurfit.theory.forms import ColumnKind
from blurfit.theory.gaussian import root_of_increasing
from blurfit.theory.maps import ResidualMap, WaveMap, Whitening
from blurfit.theory.planning import TASKS, Task


@dataclass(frozen=True, eq=False)
class Belief:
    """What is known after a wave, in units of the encoded columns v and of the target's score.

    Attributes:
        task: "number", "label" or "count".
        line: Whether the score is the encoded target itself: the number in [−1, 1], the label ±1 or
            2y/Y − 1 for a count y. If not, it is the log-odds or the log rate.
        coefficients: Of the score, the constant first.
        covariance: Of their error.
        mean: Of the features.
        spread: The features' covariance, positive definite.
        scale: The standard deviation of the residual, as far as a line was fitted.
        count_bound: Y, the largest count, for counts.
        kinds: Of the features: whether they are numbers, signs or levels.
    """

    task: Task
    line: bool
    coefficients: FloatArray
    covariance: FloatArray
    mean: FloatArray
    spread: FloatArray
    scale: float
    count_bound: float | None = None
    kinds: tuple[ColumnKind, ...] = ()

    @property
    def explained(self) -> float:
        """R² of the coefficients that predict, of a line: what their error costs taken off."""
        beta = self.coefficients[1:]
        signal = float(beta @ self.spread @ beta)
        at_mean = np.concatenate([[1.0], self.mean])
        second = np.outer(at_mean, at_mean)
        second[1:, 1:] += self.spread
        lost = float(np.sum(self.covariance * second))
        return min(max((signal - lost) / (signal + self.scale**2), 0.0), 1.0)

    def __post_init__(self) -> None:
        one_of(TASKS, task=self.task)
        if self.task == "count":
            positive(count_bound=self.count_bound)


def first_belief(
    sums: Submodel, model: Shrunk, task: Task, count_bound: float | None = None
) -> Belief:
    """Return what wave 1's joint sums say: the line of least squares, for every task."""
    weights = sums.scale[1:]
    jacobian = np.diag(sums.scale) / sums.target.weight
    variance = model.variance / sums.target.weight**2
    return Belief(
        task=task,
        line=True,
        coefficients=model.coefficients,
        covariance=jacobian @ posterior_covariance(sums, model) @ jacobian,
        mean=model.features.mean / weights,
        spread=_white(sums, model) / np.outer(weights, weights),
        scale=math.sqrt(variance * max(1 - model.explained, 0.1)),
        count_bound=count_bound,
        kinds=tuple(column.kind for column in sums.features),
    )


def even_slopes(belief: Belief, variance: float) -> FloatArray:
    """Return the covariance of slopes that explain this variance, equally in white features, and
    leave the score at the mean.
    """
    inverse = np.asarray(np.linalg.inv(belief.spread), dtype=np.float64)
    return of_slopes(variance / len(belief.mean) * inverse, belief.mean)


def known_of(belief: Belief) -> BoolArray:
    """Return which columns are yes and no, or levels: where their answers are is known."""
    kinds = belief.kinds or ("numeric",) * len(belief.mean)
    return np.array([kind in ("sign", "level") for kind in kinds])


def posterior_covariance(sums: Submodel, model: Shrunk) -> FloatArray:
    """Return the covariance of wave 1's error in z-space: P − PA·T⁻¹AP of
    `blurfit.learning.shrinkage`, at the share that the features are found to explain.
    """
    features, n = model.features, sums.count
    gram = features.gram(sums.constant)
    at_mean, slopes = prior_of(sums, features, model.variance)
    prior = at_mean + model.explained * slopes
    through = gram @ prior
    total = through @ gram + np.diag(sums.noise.variance[:-1, -1]) / n**2
    total += model.variance * max(1 - model.explained, 0.2) * gram / n
    left, reach = prior, np.column_stack([through, sums.cross / n])
    for _ in range(3):
        second = np.outer(model.theta, model.theta) + left
        blurred = features.kept / n**2 * sums.feature_noise.sandwich(second)
        blurred[0, 0] = 0.0
        _, explained, _ = read_once(total + blurred, reach)
        assert explained is not None
        left = prior - explained
    return np.asarray((left + left.T) / 2)


def _white(sums: Submodel, model: Shrunk) -> FloatArray:
    """Return the features' covariance in z-space, with a soft floor that no direction falls below.

    A direction whose variance is taken for too small makes a feature that is too large, and the cut
    then leaves nothing of the others; one that is taken for too large only costs some noise. The
    floor of `denoise` has a strength of about p/4 in units of the noise; here it is at least 3.
    """
    features = model.features
    noise = float(np.max(sums.feature_noise.variance)) / sums.count**2
    missing = 3 - len(features.mean) / 4
    return soft_floor(features.covariance, max(missing, 0.0) * noise)


def start_of(chart: WaveMap) -> FloatArray:
    """Return the coefficients that the map announced, the constant first."""
    return np.array([chart.whitening.intercept, *chart.whitening.coefficients])


def undone(lower: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangle."""
    found, _ = dtrtri(lower, lower=1)
    return np.ascontiguousarray(found)


def coordinates(chart: WaveMap) -> FloatArray:
    """Return J with θ = J·(β₀, β): the step that a change of the coefficients is, the constant
    first. It is an upper triangle.

    β₀ + β·v = (β₀ + β·m) + (W⁻ᵀβ)·f, each divided by what 1 and f are multiplied by in the chart.
    """
    white = chart.whitening
    found = np.eye(1 + white.dimension)
    found[0, 1:] = white.mean
    found[1:, 1:] = undone(white.matrix).T
    if isinstance(chart, ResidualMap):
        unit = chart.target_scale / chart.scale
        found[0] *= unit / chart.constant
        found[1:] *= unit / chart.feature_scale
    else:
        of_features, constant = chart.scale
        found[0] /= constant
        found[1:] /= of_features
    return found


def bounds_of(white: Whitening, scale: float) -> tuple[float, float]:
    """Return how large ‖f‖/√p and |g| can be, or a little more, by the public bounds of v and y."""
    at_mean = abs(white.intercept + float(white.coefficients @ white.mean))
    moved = float(np.abs(white.coefficients) @ (1 + np.abs(white.mean)))
    return farthest(white), (1 + at_mean + moved) / scale


def farthest(white: Whitening, free: BoolArray | None = None) -> float:
    """Return the largest ‖f‖/√p that public bounds allow, or a little more; or what of it the
    columns give that are `free` to be anywhere.
    """
    reach = (1 + np.abs(white.mean)) * (1.0 if free is None else free)
    return math.sqrt(float(np.mean((np.abs(white.matrix) @ reach) ** 2)))


def inside(fraction: float) -> float:
    """P(|u| < R) of a Laplace distribution with E[min(|u|, R)²] = fraction·R²: how much of an
    update passes the clipping to ±R. Its tails are as heavy as those of incomes (kurtosis 6).

    >>> round(inside(0.1), 3)
    0.987
    """
    fraction = min(max(fraction, 1e-3), 0.95)
    u = root_of_increasing(lambda u: fraction - 2 * (1 - math.exp(-u) * (1 + u)) / u**2, 1.0, 1e-9)
    return 1 - math.exp(-u)
