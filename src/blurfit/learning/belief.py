"""What is believed after a wave, and the map that the next wave gets from it.

    wave 1     joint sums ── linear Bayes ──► Belief ── next_map ──► the map of wave 2
    wave 2     blurred sums under that map ── learn_wave ──► Belief ── next_map ──► …
    last       Belief: the model, with how wrong it may be

`learn_wave` is in `blurfit.learning.wave_step`.

A `Belief` is everything that a release says: the model's coefficients and the covariance of their
error, and mean and covariance of the features. All of it is computed from published sums, so it is
post-processing, and so is the next map, which is a function of the belief and of public numbers
alone. Everybody who has the releases can compute it, and finds the announced one but for rounding.

**From least squares to a curve.** The first wave, and residual waves, fit a line to labels and
counts too. `on_curve` turns a line into log-odds or log rates, for Newton's waves and for
probabilities.

* **Labels** y = ±1. If the two classes are Gaussian with one covariance Σ and means m₊, m₋, the
  log-odds are linear with slope β = Σ⁻¹δ, δ = m₊ − m₋, exactly. Least squares gives β_LS =
  C⁻¹Cov(v, y) with C = Σ + (V_y/4)δδᵀ, Cov(v, y) = (V_y/2)δ and V_y = 1 − ȳ². So β = 2β_LS/(V_y(1 −
  R²)). The intercept makes the mean probability what it is: for scores of spread s around t the
  mean of the curve is close to that at t/√(1 + πs²/8) (MacKay 1992), so t = 2·atanh(ȳ)·√(1 +
  πs²/8).
* **Counts** of rate e^{β·v+β₀}. For Gaussian features Cov(v, y) = ȳ·Cβ (Stein), so β = β_LS/ȳ, and
  E[y] = exp(β₀ + β·m + ½βᵀCβ) gives β₀ = ln ȳ − β·m − ½βᵀCβ.

Neither law holds for real features, so a quarter of the squared slope is believed to be wrong, in
equal parts in all directions; Newton's steps mend it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.learning.denoise import soft_floor
from blurfit.learning.joint_sums import Submodel
from blurfit.learning.linear_bayes import Shrunk
from blurfit.theory.maps import NewtonMap, ResidualMap, WaveMap
from blurfit.theory.newton import LogisticNewton, PoissonNewton
from blurfit.theory.waves import TASKS, StageKind, Task, radius_of, residual_bound_of
from blurfit.theory.whitening import Whitening
from blurfit.validate import one_of, positive

_MISFIT = 0.25  # of the squared slope, of a model that was turned from least squares into log-odds


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
    """

    task: Task
    line: bool
    coefficients: FloatArray
    covariance: FloatArray
    mean: FloatArray
    spread: FloatArray
    scale: float
    count_bound: float | None = None

    def __post_init__(self) -> None:
        one_of(TASKS, task=self.task)
        if self.task == "count":
            positive(count_bound=self.count_bound)


def first_belief(
    sums: Submodel, model: Shrunk, task: Task, count_bound: float | None = None
) -> Belief:
    """What wave 1's joint sums say: the line of least squares, for every task."""
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
    )


def on_curve(belief: Belief) -> Belief:
    """Log-odds or log rates from a line; a curve, or a line for a number, stays as it is."""
    if belief.task == "number" or not belief.line:
        return belief
    beta = belief.coefficients[1:]
    average = float(belief.coefficients[0] + belief.mean @ beta)
    explained = float(beta @ belief.spread @ beta)
    if belief.task == "label":
        average = min(max(average, -0.98), 0.98)
        variance = 1 - average**2
        left = max(variance - explained, 0.2 * variance)  # V_y(1 − R²)
        factor = 2 / left
        factor *= _caution(belief, factor, explained)
        spread = factor**2 * explained
        at_mean = 2 * math.atanh(average) * math.sqrt(1 + math.pi * spread / 8)
    else:
        assert belief.count_bound is not None
        rate = max((average + 1) / 2, 1e-3)
        factor = min(0.5 / rate, 1.5 / math.sqrt(max(explained, 1e-12)))
        factor *= _caution(belief, factor, explained)
        at_mean = math.log(rate * belief.count_bound) - factor**2 * explained / 2
    slope = factor * beta
    misfit = _misfit(belief.mean, belief.spread, float(slope @ belief.spread @ slope))
    return replace(
        belief,
        line=False,
        coefficients=np.array([at_mean - float(belief.mean @ slope), *slope]),
        covariance=factor**2 * belief.covariance + misfit,
    )


def next_map(belief: Belief, kind: StageKind, count: int, mu: float) -> WaveMap:
    """The next wave's public map, for `count` people under μ-GDP: a function of what is public."""
    one_of(("residual", "newton"), kind=kind)
    at = belief if kind == "residual" else on_curve(belief)
    if kind == "residual" and not belief.line:
        raise InvalidValueError("Expected residual waves before Newton's, got one after.")
    matrix = np.tril(np.linalg.inv(np.linalg.cholesky(at.spread)))
    beta = rounded(at.coefficients)
    white = Whitening(rounded(at.mean), rounded(matrix), beta[1:], float(beta[0]))
    if kind == "residual":
        radius = float(rounded(np.array(radius_of(count, mu, white.dimension))))
        scale = float(rounded(np.array(at.scale)))
        return ResidualMap(white, radius, scale, residual_bound_of(radius))
    if at.task == "label":
        return NewtonMap(white, LogisticNewton())
    if at.count_bound is None:
        raise InvalidValueError("Expected labels or counts for a Newton wave, got numbers.")
    return NewtonMap(white, PoissonNewton(at.count_bound))


def rounded(numbers: FloatArray) -> FloatArray:
    """Each number in 24 bits: what earlier waves taught is far less certain."""
    mantissa, exponent = np.frexp(numbers)
    found: FloatArray = np.ldexp(np.rint(mantissa * 2.0**24) / 2.0**24, exponent)
    return found


def posterior_covariance(sums: Submodel, model: Shrunk) -> FloatArray:
    """The covariance of wave 1's error in z-space: P − PA·T⁻¹AP of `blurfit.learning.linear_bayes`,
    at the share that the features are found to explain.
    """
    features, n, c = model.features, sums.count, sums.constant
    gram = features.gram(c)
    move = np.eye(len(gram))
    move[0, 0], move[0, 1:] = 1 / c, -features.mean / c
    share = model.explained * model.variance / (len(features.mean) * features.variance)
    prior = (move * np.array([0.36 * sums.target.weight**2, *share])) @ move.T
    total = gram @ prior @ gram + np.diag(sums.noise.variance[:-1, -1]) / n**2
    total += model.variance * max(1 - model.explained, 0.2) * gram / n
    left = prior
    for _ in range(3):
        second = np.outer(model.theta, model.theta) + left
        blurred = features.kept / n**2 * sums.feature_noise.sandwich(second)
        blurred[0, 0] = 0.0
        left = prior - prior @ gram @ np.linalg.solve(total + blurred, gram @ prior)
    return np.asarray((left + left.T) / 2)


def _white(sums: Submodel, model: Shrunk) -> FloatArray:
    """The features' covariance in z-space, with a soft floor that no direction falls below.

    A direction whose variance is taken for too small makes a feature that is too large, and the cut
    then leaves nothing of the others; one that is taken for too large only costs some noise. The
    floor of `denoise` has a strength of about p/4 in units of the noise; here it is at least 3.
    """
    features = model.features
    noise = float(np.max(sums.feature_noise.variance)) / sums.count**2
    missing = 3 - len(features.mean) / 4
    return soft_floor(features.covariance, max(missing, 0.0) * noise)


def _caution(belief: Belief, factor: float, explained: float) -> float:
    """By how much to shorten a slope before Newton starts from it.

    A start with scores that are too large has hardly any curvature, and a step from there
    overshoots; from one that is too small Newton finds its way. So the scores' spread is at most
    2.5, and a score of error variance s² is taken at 1/√(1 + πs²/8) of its size, as for
    probabilities.
    """
    error = factor**2 * float(np.sum(belief.covariance[1:, 1:] * belief.spread))
    spread = factor * math.sqrt(max(explained, 1e-12)) / math.sqrt(1 + math.pi * error / 8)
    return min(1.0, 2.5 / spread) / math.sqrt(1 + math.pi * error / 8)


def _misfit(mean: FloatArray, spread: FloatArray, size: float) -> FloatArray:
    """An error of the slope that is isotropic for white features, and leaves the mean's score."""
    p = len(mean)
    slope = _MISFIT * max(size, 0.1) / p * np.linalg.inv(spread)
    move = np.vstack([-mean, np.eye(p)])
    found: FloatArray = move @ slope @ move.T
    found[0, 0] += 0.02
    return found
