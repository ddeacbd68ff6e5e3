"""Waves: what a later wave teaches.

    wave 1     joint sums ── linear Bayes ──► Belief ── next_map ──► the map of wave 2
    wave 2     blurred sums under that map ── learn_wave ──► Belief ── next_map ──► …
    last       Belief: the model, with how wrong it may be

A `Belief` is everything that a release says: the model's coefficients and the covariance of their
error, and mean and covariance of the features. All of it is computed from published sums, so it is
post-processing, and so is the next map, which is a function of the belief and of public numbers
alone. Everybody who has the releases can compute it, and finds the announced one but for rounding.

**What a later wave teaches** (`learn_wave`). Its sums are a noisy quadratic in θ, the change of the
coefficients in the coordinates of its map (`coordinates`). The belief before the wave is the prior
of θ, and `bayes_step` gives the posterior; a residual wave also tells more about the features. The
step starts from the map *as it was announced*, for that is what records were blurred under: its
score, its centre and its whitening. The belief gives the error that is expected of them. Whoever
computes the belief on another machine, and so has other last digits than the map, starts alike.
Steps of counts are held back where a quadratic cannot be right (`blurfit.learning.curves`).

**Little information.** Where a wave's own ψ is below 0.75 (chosen), or nobody has looked where
people are, noise may pass for slopes, from which the next wave starts. So P is no larger there than
the errors that were seen leave room for (`_believable`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainc, gammaincc

from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, positive, whole
from blurfit.learning.beliefs import SIGNAL, Belief, about_mean
from blurfit.learning.curves import held_back, on_curve
from blurfit.learning.denoise import soft_floor
from blurfit.learning.gauge import MEAN, Cut, assumed_law, cut_at, inside, law_of
from blurfit.learning.steps import (
    Step,
    StepSums,
    bayes_step,
    coordinates,
    denoised,
    start_of,
    undone,
)
from blurfit.learning.sums import Noise
from blurfit.theory.gaussian import root_of_increasing
from blurfit.theory.maps import Announced, GaugeMap, NewtonMap, ResidualMap, WaveMap
from blurfit.theory.planning import Task, information

# Of their expected length: white features that are shorter shrink the whitening. Numbers have less,
# for a mixture of narrow and wide people is as short as bounds that are too wide.
_TOO_WIDE: dict[Task, float] = {"number": 0.15, "label": 0.3, "count": 0.3}
_NEARLY_ALL = 0.97  # E[w], above which nobody was seen far out
_POOR = 0.75  # ψ of a wave, below which no more than a usual signal is believed


@dataclass(frozen=True, eq=False)
class WaveSums:
    """What a later wave releases: Σzzᵀ + E for numbers, (ΣM + E, Σp + e) for labels and counts.

    Args:
        count: How many records were summed.
        matrix: Symmetric; E has `deviation` on the diagonal and deviation/√2 beside it.
        linear: Σp + e, or None; e has τ·deviation.
        deviation: σ, the standard deviation on the diagonal of the whole sum.
        squares: Σppᵀ or Σg²xxᵀ, and E/ω, if it was sent.
    """

    count: int
    matrix: FloatArray
    linear: FloatArray | None
    deviation: float
    squares: FloatArray | None = None

    def __post_init__(self) -> None:
        whole(count=self.count)
        positive(deviation=self.deviation)


def learn_wave(belief: Belief, chart: Announced, sums: WaveSums) -> Belief:
    """Return what is believed after a wave that was collected under `chart`, a map of `belief`."""
    if isinstance(chart, GaugeMap):
        facts = sums.matrix[0], sums.count, sums.deviation
        law = law_of(chart, *facts, differences=belief.differences)
        return replace(belief, law=law)
    at = belief if isinstance(chart, ResidualMap) else on_curve(belief)
    cut = cut_of(belief, chart, sums) if isinstance(chart, ResidualMap) else None
    read = step_sums(chart, sums, cut)
    into = coordinates(chart)
    prior = into @ at.covariance @ into.T
    if learns_mean(chart):
        prior[1:] = prior[:, 1:] = 0.0
    prior += _slack(prior)
    if isinstance(chart, ResidualMap) and at.task == "number" and _poor(at, chart, sums):
        prior *= _believable(prior, read, sums)
    step = bayes_step(read, prior)
    back = undone(into.T).T
    error = back @ step.covariance @ back.T
    change = back @ step.theta
    if isinstance(chart, NewtonMap) and at.task == "count":
        change = held_back(at, chart, change)
    learned = replace(at, coefficients=start_of(chart) + change, covariance=(error + error.T) / 2)
    if cut is None:
        return learned
    assert isinstance(chart, ResidualMap)
    if learns_mean(chart):
        variance = read.dispersion * (chart.scale / chart.target_scale) ** 2
        covariance = learned.covariance + variance / at.scale**2 * about_mean(at)
        return replace(learned, covariance=covariance, scale=math.sqrt(variance), law=None)
    return _features(learned, chart, read, step, cut)


def _poor(belief: Belief, chart: ResidualMap, sums: WaveSums) -> bool:
    """Tell whether noise hides slopes from a wave, or nobody has looked where people are."""
    mu = chart.sensitivity() / sums.deviation
    return belief.law is None or information(sums.count, mu, len(belief.mean)) < _POOR


def learns_mean(chart: Announced) -> bool:
    """Tell whether the map is one of a wave that learns the mean alone."""
    return isinstance(chart, ResidualMap) and chart.feature_weight == MEAN[1]


def cut_of(belief: Belief, chart: ResidualMap, sums: WaveSums) -> Cut:
    """Return what the wave's weights and cut do, by the gauge before it or by what is assumed."""
    law = belief.law or assumed_law(chart.whitening.dimension)
    found = cut_at(law, chart, sums.count, chart.sensitivity() / sums.deviation)
    if belief.task == "label":
        return replace(found, through=1.0)  # what is cut of yes and no has no tail
    if belief.law is None:
        reach = sums.count * chart.constant * chart.target_weight
        centre = float(sums.matrix[0, -1]) / reach  # of a mean that the last model missed
        return replace(found, through=inside(cut_share(chart, sums) - centre**2, centre))
    return found


def cut_share(chart: ResidualMap, sums: WaveSums) -> float:
    """Return E[(s·g)²]/R² as the wave saw it: 1 where everybody's error is cut."""
    return float(sums.matrix[-1, -1]) / (sums.count * chart.target_weight**2)


def step_sums(chart: WaveMap, sums: WaveSums, cut: Cut | None = None) -> StepSums:
    """Return the wave's quadratic, the constant first, with the law of its noise; of a residual
    wave with what is known of its cut.
    """
    size = 1 + chart.whitening.dimension
    square = sums.deviation**2
    variance = np.full((size, size), square / 2)
    np.fill_diagonal(variance, square)
    if isinstance(chart, ResidualMap):
        _refuse_shape(sums, size + 1, linear=False)
        assert cut is not None
        gram = np.array(sums.matrix[:-1, :-1])
        full = chart.constant**2 * sums.count
        gram[0, 0] = min(max(float(gram[0, 0]), 0.02 * full), full)  # E_w is a share
        noise = Noise(variance)
        expected = cut.weight * cut.spread
        seen = float(sums.matrix[-1, -1]) / sums.count / chart.target_scale**2
        left = max(seen, 0.1 * expected) / cut.weight * chart.target_scale**2
        curvature = cut.energy * chart.feature_scale**2
        linear, blur = sums.matrix[:-1, -1] / cut.through, square / 2 / cut.through**2
        return StepSums(sums.count, gram, linear, noise, blur, curvature, left)
    _refuse_shape(sums, size, linear=True)
    assert sums.linear is not None
    order = [size - 1, *range(size - 1)]
    noise = Noise(variance)
    of_features, _ = chart.scale
    return StepSums(
        sums.count,
        sums.matrix[np.ix_(order, order)],
        sums.linear[order],
        noise,
        square * chart.loss.balance**2,
        chart.mean_curvature * of_features**2,
        1.0,
    )


def _slack(prior: FloatArray) -> FloatArray:
    """Return a quarter of the mean error in every direction: P itself is only believed."""
    own = np.diagonal(prior)
    even = 0.25 * float(own[1:].mean())
    return np.diag([own[0], *[even] * (len(prior) - 1)])


def _believable(prior: FloatArray, read: StepSums, sums: WaveSums) -> float:
    """Return by how much P is too large for the errors that a poor wave saw: see `_poor`.

    The last model's error, E[θᵀAθ] = tr PA, is a part of the E[s²g²] that was released, and at most
    `SIGNAL` of it is expected. If the scale was taken for too large, as bounds that are too wide
    make it, P is too large with it, and slopes of noise are believed. The more is known, the
    smaller P is beside E[s²g²], and nothing happens.
    """
    noise = sums.deviation / sums.count
    most = max(float(sums.matrix[-1, -1]) / sums.count, 0.0) + noise
    gram, _ = denoised(read)
    return min(1.0, SIGNAL * most / float(np.sum(prior * gram)))


def _features(belief: Belief, chart: ResidualMap, read: StepSums, step: Step, cut: Cut) -> Belief:
    """Whiten the belief's features again by what this wave saw of them.

    Their directions are those of the weighted records; their size is what the law says of all.
    (Newton's M is weighted by h: it leaves the whitening as it is.)
    """
    lower = undone(chart.whitening.matrix)
    weight = step.gram[0, 0] / chart.constant**2
    shift = step.gram[0, 1:] / (chart.constant * chart.feature_scale * weight)
    centred = step.gram[1:, 1:] / (chart.feature_scale**2 * weight) - np.outer(shift, shift)
    if math.isfinite(cut.law_noise):
        size = cut.lost + cut.energy
    else:
        seen, wide = float(np.trace(centred)) * weight / len(shift), _TOO_WIDE[belief.task]
        size = _size(seen, chart.radius, len(shift) / 2, wide)
        if belief.seen is not None:  # or a few people carry the length
            least, noise = belief.seen.energy(chart.whitening)
            size = max(size, least - 2 * noise)
        unsure = math.sqrt(read.noise.variance[0, 0]) / (chart.constant**2 * read.count)
        near = weight + unsure > _NEARLY_ALL  # and nobody is so far out as to count less
        size = size if size < wide and near else 1.0
    centred *= size * len(shift) / max(float(np.trace(centred)), 1e-12)
    spread = soft_floor(lower @ centred @ lower.T, 0.0)
    explained = float(step.theta @ step.gram @ step.theta) / weight  # of the last model's errors
    left = max(read.dispersion - explained, 0.1 * read.dispersion)
    return replace(
        belief,
        mean=np.clip(chart.whitening.mean + lower @ shift, -1.0, 1.0),
        spread=(spread + spread.T) / 2,
        scale=math.sqrt(left) / chart.target_scale * chart.scale,
        law=None,
    )


def _size(seen: float, radius: float, shape: float, wide: float) -> float:
    """Return by how much the whitening's spread is too wide: 1, unless it is clearly so.

    `seen` is E‖f'‖²/p of the cut features. Let t = ‖f‖²/p have a gamma law (of Gaussian features:
    shape p/2) with E[min(t, r²)] = seen: if its mean is below `wide`, bounds were so wide that
    noise hid the columns' spread, and it shrinks by that.
    """
    if not 0 < seen < min(wide, 0.99 * radius**2):  # no mean gives more than r², but noise may
        return 1.0

    def kept(mean: float) -> float:
        x = radius**2 * shape / mean
        return float(mean * gammainc(shape + 1, x) + radius**2 * gammaincc(shape, x))

    mean = root_of_increasing(lambda mean: kept(mean) - seen, seen, 1e-6)
    return mean if mean < wide else 1.0


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
