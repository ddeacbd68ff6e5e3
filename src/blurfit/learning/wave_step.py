"""What a later wave teaches: a step from the model that its map was made of.

A wave's sums are a noisy quadratic in θ, the change of the coefficients in the coordinates of its
map (`coordinates`). The belief before the wave is the prior of θ, and `blurfit.learning.step` gives
the posterior; a residual wave also tells more about the features.

The step starts from the map *as it was announced*, for that is what records were blurred under: its
score, its centre and its whitening. The belief gives the error that is expected of them. Whoever
computes the belief on another machine, and so has other last digits than the map, starts alike.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.learning.belief import Belief, on_curve
from blurfit.learning.joint_sums import Noise
from blurfit.learning.step import Step, StepSums, bayes_step
from blurfit.theory.maps import ResidualMap, WaveMap
from blurfit.theory.newton import LogisticNewton
from blurfit.validate import positive, whole


@dataclass(frozen=True, eq=False)
class WaveSums:
    """What a later wave releases: Σzzᵀ + E for numbers, (ΣM + E, Σp + e) for labels and counts.

    Args:
        count: How many records were summed.
        matrix: Symmetric; E has `deviation` on the diagonal and deviation/√2 beside it.
        linear: Σp + e, or None; e has τ·deviation.
        deviation: σ, the standard deviation on the diagonal of the whole sum.
    """

    count: int
    matrix: FloatArray
    linear: FloatArray | None
    deviation: float

    def __post_init__(self) -> None:
        whole(count=self.count)
        positive(deviation=self.deviation)


def learn_wave(belief: Belief, chart: WaveMap, sums: WaveSums) -> Belief:
    """What is believed after a wave that was collected under `chart`, a map of `belief`."""
    at = belief if isinstance(chart, ResidualMap) else on_curve(belief)
    read = step_sums(chart, sums)
    into = coordinates(chart)
    prior = into @ at.covariance @ into.T
    step = bayes_step(read, prior + _slack(prior))
    back = np.linalg.inv(into)
    error = back @ step.covariance @ back.T
    learned = replace(
        at, coefficients=start_of(chart) + back @ step.theta, covariance=(error + error.T) / 2
    )
    return _features(learned, chart, read, step) if isinstance(chart, ResidualMap) else learned


def start_of(chart: WaveMap) -> FloatArray:
    """The coefficients that the map announced, the constant first."""
    return np.array([chart.whitening.intercept, *chart.whitening.coefficients])


def step_sums(chart: WaveMap, sums: WaveSums) -> StepSums:
    """The wave's quadratic, the constant first, with the law of its noise."""
    size = chart.whitening.dimension + 1
    square = sums.deviation**2
    variance = np.full((size, size), square / 2)
    np.fill_diagonal(variance, square)
    if isinstance(chart, ResidualMap):
        _refuse_shape(sums, size + 1, linear=False)
        gram = np.array(sums.matrix[:-1, :-1])
        gram[0, 0], variance[0, 0] = chart.constant**2 * sums.count, 0.0
        noise = Noise(variance, np.zeros(size))
        left = _residual_variance(chart, sums)
        curvature = chart.feature_scale**2
        return StepSums(sums.count, gram, sums.matrix[:-1, -1], noise, square / 2, curvature, left)
    _refuse_shape(sums, size, linear=True)
    assert sums.linear is not None
    order = [size - 1, *range(size - 1)]
    noise = Noise(variance, np.zeros(size))
    of_features, _ = chart.scale
    return StepSums(
        sums.count,
        sums.matrix[np.ix_(order, order)],
        sums.linear[order],
        noise,
        square * chart.loss.balance**2,
        0.15 * of_features**2 if isinstance(chart.loss, LogisticNewton) else of_features**2,
        1.0,
    )


def _slack(prior: FloatArray) -> FloatArray:
    """A quarter of the mean error in every direction: P itself is only believed."""
    p = len(prior) - 1
    even = 0.25 * float(np.trace(prior[1:, 1:])) / p
    return np.diag([float(prior[0, 0]), *[even] * p])


def coordinates(chart: WaveMap) -> FloatArray:
    """J with θ = J·(β₀, β): the step that a change of the coefficients is, the constant first.

    β₀ + β·v = (β₀ + β·m) + (W⁻ᵀβ)·f, each divided by what 1 and f are multiplied by in the chart.
    """
    white = chart.whitening
    p = white.dimension
    found = np.zeros((p + 1, p + 1))
    found[0, 0], found[0, 1:] = 1.0, white.mean
    found[1:, 1:] = np.linalg.inv(white.matrix).T
    if isinstance(chart, ResidualMap):
        unit = chart.target_scale / chart.scale
        found[0] *= unit / chart.constant
        found[1:] *= unit / chart.feature_scale
    else:
        of_features, constant = chart.scale
        found[0] /= constant
        found[1:] /= of_features
    return found


def _residual_variance(chart: ResidualMap, sums: WaveSums) -> float:
    """Var(b·g/bound) for one record, shrunk toward what wave 1 expects, between 0.1 and 4 of it."""
    expected = chart.target_scale**2
    seen = float(sums.matrix[-1, -1]) / sums.count
    noise, prior = (sums.deviation / sums.count) ** 2, (0.5 * expected) ** 2
    found = (prior * seen + noise * expected) / (prior + noise)
    return min(max(found, 0.1 * expected), 4 * expected)


def _features(belief: Belief, chart: ResidualMap, read: StepSums, step: Step) -> Belief:
    """The belief with its features whitened again by what this wave saw of them.

    The cut records' second moments are taken at the size that keeps their total: the cut makes all
    directions smaller alike. (Newton's M is weighted by h: it leaves the whitening as it is.)
    """
    lower = np.linalg.inv(chart.whitening.matrix)
    shift = step.gram[0, 1:] / (chart.constant * chart.feature_scale)
    centred = step.gram[1:, 1:] / chart.feature_scale**2 - np.outer(shift, shift)
    centred *= len(shift) / float(np.trace(centred))
    spread = lower @ centred @ lower.T
    explained = float(step.theta @ step.gram @ step.theta)  # of the last model's errors
    left = max(read.dispersion - explained, 0.1 * read.dispersion)
    return replace(
        belief,
        mean=chart.whitening.mean + lower @ shift,
        spread=(spread + spread.T) / 2,
        scale=math.sqrt(left) / chart.target_scale * chart.scale,
    )


def _refuse_shape(sums: WaveSums, size: int, *, linear: bool) -> None:
    if sums.matrix.shape != (size, size) or (sums.linear is not None) != linear:
        raise InvalidValueError(
            f"Expected matrix of shape {(size, size)} {'with' if linear else 'without'} linear for "
            f"this map, got {sums.matrix.shape}; these sums are of another wave."
        )
    if linear and sums.linear is not None and sums.linear.shape != (size,):
        raise InvalidValueError(
            f"Expected linear of shape {(size,)} for this map, got {sums.linear.shape}."
        )
