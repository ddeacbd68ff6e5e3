"""Beliefs: what is known after a wave, and what the first one says.

Wave 1's joint sums say the line of least squares, for every task, or its mean alone, with the
covariance of its error, and mean and covariance of the features (`first_belief`). Sums of later
waves move it (`blurfit.learning.waves`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from blurfit.data import BoolArray, FloatArray
from blurfit.errors import one_of, positive
from blurfit.learning.denoise import soft_floor
from blurfit.learning.gauge import Law
from blurfit.learning.shrinkage import Shrunk, mean_posterior, of_slopes, prior_of, read_once
from blurfit.learning.steps import start_of
from blurfit.learning.sums import Submodel
from blurfit.theory.forms import ColumnKind
from blurfit.theory.maps import ResidualMap, Whitening
from blurfit.theory.planning import TASKS, Task

# Of the variance that a mean leaves, which slopes may explain: as public weights expect.
SIGNAL = 0.4


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
        law: Where people are, by the gauge before the next residual wave.
        seen: What wave 1 saw of everybody, without any cut, and its noise; not for labels.
        kinds: Of the features: whether they are numbers, signs or levels.
        groups: Of which question each level is one.
        differences: Whether rows are differences within people, each of whom is cut as a whole.
    """

    task: Task
    line: bool
    coefficients: FloatArray
    covariance: FloatArray
    mean: FloatArray
    spread: FloatArray
    scale: float
    count_bound: float | None = None
    law: Law | None = None
    seen: "Seen | None" = None
    kinds: tuple[ColumnKind, ...] = ()
    groups: tuple[str | None, ...] = ()
    differences: bool = False

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


@dataclass(frozen=True, eq=False)
class Seen:
    """Unbiased second moments of (1, v, y) of everybody, and the variance of the noise on each."""

    matrix: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, sums: Submodel) -> "Seen":
        """Return those of joint sums."""
        scale = np.append(sums.scale, sums.target.weight)
        both = sums.count * np.outer(scale, scale)
        return cls(sums.extended / both, sums.noise.variance / both**2)

    def energy(self, white: Whitening) -> tuple[float, float]:
        """Return E‖f‖²/p, and the standard deviation of the noise on it."""
        p, by = white.dimension, white.matrix.T @ white.matrix
        move = np.vstack([-white.mean, np.eye(p)])
        return self._form(move @ by @ move.T / p, slice(0, -1))

    def residual(self, chart: ResidualMap) -> tuple[float, float]:
        """Return E[g²], and the standard deviation of the noise on it."""
        return self.square(np.append(-start_of(chart), 1.0) / chart.scale)

    def square(self, r: FloatArray) -> tuple[float, float]:
        """Return E[(r·(1, v, y))²], and the standard deviation of the noise on it."""
        return self._form(np.outer(r, r), slice(None))

    def _form(self, by: FloatArray, part: slice) -> tuple[float, float]:
        matrix, variance = self.matrix[part, part], self.variance[part, part]
        weights = np.where(np.eye(len(by), dtype=bool), by, np.sqrt(2) * by)  # pairs are one entry
        return float(np.sum(by * matrix)), math.sqrt(float(np.sum(weights**2 * variance)))


def first_belief(
    sums: Submodel,
    model: Shrunk,
    task: Task,
    count_bound: float | None = None,
    *,
    mean: bool = False,
    differences: bool = False,
) -> Belief:
    """Return what wave 1's joint sums say: the line of least squares, for every task, or its `mean`
    alone.
    """
    weights = sums.scale[1:]
    jacobian = np.diag(sums.scale) / sums.target.weight
    variance = model.variance / sums.target.weight**2
    found = Belief(
        task=task,
        line=True,
        coefficients=model.coefficients,
        covariance=jacobian @ posterior_covariance(sums, model) @ jacobian,
        mean=model.features.mean / weights,
        spread=_white(sums, model) / np.outer(weights, weights),
        scale=math.sqrt(variance * max(1 - model.explained, 0.1)),
        count_bound=count_bound,
        seen=None if task == "label" else Seen.of(sums),
        kinds=tuple(column.kind for column in sums.features),
        groups=tuple(column.group for column in sums.features),
        differences=differences,
    )
    return _without_slopes(found, sums, model) if mean else found


def _without_slopes(belief: Belief, sums: Submodel, model: Shrunk) -> Belief:
    """Return the belief with the target's mean alone; later waves may find slopes, whose prior is
    that of `blurfit.learning.shrinkage`: equal parts of the columns as they are, in which a few
    directions may have most of the signal.
    """
    b = sums.target.weight
    mean, error = mean_posterior(sums)
    variance = model.variance / b**2
    of_columns = np.diag(model.features.variance / sums.scale[1:] ** 2)
    covariance = even_slopes(replace(belief, spread=of_columns), SIGNAL * variance)
    covariance[0, 0] += error / b**2
    coefficients = np.array([mean / b, *np.zeros(len(belief.mean))])
    scale = math.sqrt(variance)
    return replace(belief, coefficients=coefficients, covariance=covariance, scale=scale)


def about_mean(belief: Belief) -> FloatArray:
    """Return the covariance of the slopes' errors, which leave the score at the mean."""
    return of_slopes(belief.covariance[1:, 1:], belief.mean)


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
