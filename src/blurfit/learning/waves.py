"""Waves: what is believed after each, the map of the next one, and what a later wave teaches.

    wave 1     joint sums ── linear Bayes ──► Belief ── next_map ──► the map of wave 2
    wave 2     blurred sums under that map ── learn_wave ──► Belief ── next_map ──► …
    last       Belief: the model, with how wrong it may be

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
  R²)), R² being the posterior mean of what slopes explain: they are shrunk, so what their error
  explains belongs to it. The intercept makes the mean probability what it is, for Gaussian scores
  of that spread; and that is its posterior mean within 0 and 1, so that noise makes nobody sure. As
  all slopes have one factor, log-odds are a + k·(the line's score) (`odds_of`).
  Rare classes are not Gaussian, and least squares makes their slope too long: the spread of the
  scores is at most 2.5√V_y.
* **Counts** of rate e^{β·v+β₀}. For Gaussian features Cov(v, y) = ȳ·Cβ (Stein), so β = β_LS/ȳ, and
  E[y] = exp(β₀ + β·m + ½βᵀCβ) gives β₀ = ln ȳ − β·m − ½βᵀCβ. A column of yes and no, or a level,
  is far from Gaussian if one answer is rare, and β_LS/ȳ then far too long: the line's own rates at
  its two answers, a below and b above its mean, are ȳ − aβ_LS and ȳ + bβ_LS, so that β is the
  difference of their logarithms over a + b, which is exact if the columns are independent; and
  ln E[e^{β(v−m)}] stands for its part of ½βᵀCβ. Numbers that lie at a bound are taken so, too.

Neither law holds for real features, so a quarter of the squared slope is believed to be wrong, in
equal parts in all directions; Newton's steps mend it.

**A step from an announced model, by linear Bayes** (`bayes_step`). A later wave's sums are those of
a quadratic ½wᵀAw − t·w in coordinates that earlier waves made nearly white: squared loss of the
residual (`ResidualMap`), or Newton's quadratic (`NewtonMap`). Per record,

    Ã = A + E,      t̃ = Aθ + e + sampling error,

θ being the step that is sought. As in `blurfit.learning.shrinkage`, denoise A, then read t̃ with
all that is known of the noise; but here more is known beforehand:

* **A is nearly diagonal.** Its diagonal is nearly one number for all features: each is shrunk
  toward their mean, and that mean toward `curvature`, which is what white features would give. Off
  the diagonal, entries are shrunk to 0 by τ²d_id_j/(τ²d_id_j + noise), τ² by moments, at most 0.15.
  Last, the soft floor of `blurfit.learning.denoise`.
* **How wrong the last model is.** Its posterior covariance P, in the new coordinates, is the prior
  of θ, up to a factor k between 1/16 and 16 (a lognormal prior of sd 1), weighted by how probable
  it makes t̃. So waves pool what they know, and where the noise is larger than what is left to
  learn, the step goes to 0 and the last model stays.

Then θ̂ = kPA·T⁻¹t̃, with T = A(kP)A + κ·E[EΘE] + Var(e) + φA/n, Θ = E[θθᵀ | t̃] by three passes,
and κ the share of the noise in A that is left. φ is the residual's variance for squared loss, and 1
for a likelihood's own loss (its information is its variance). Choices: the ranges, and 0.3 for how
far the mean curvature may be from `curvature`.

**What a later wave teaches** (`learn_wave`). Its sums are a noisy quadratic in θ, the change of the
coefficients in the coordinates of its map (`coordinates`). The belief before the wave is the prior
of θ, and `bayes_step` gives the posterior; a residual wave also tells more about the features. The
step starts from the map *as it was announced*, for that is what records were blurred under: its
score, its centre and its whitening. The belief gives the error that is expected of them. Whoever
computes the belief on another machine, and so has other last digits than the map, starts alike.
Steps of counts are held back where a quadratic cannot be right (`_held_back`).

**Little information.** Where a wave's own ψ is below 0.75 (chosen), or nobody has looked where
people are, noise may pass for slopes, from which the next wave starts. Two limits keep it from
growing: P is no larger than the errors that were seen leave room for (`_believable`), and after a
gauge slopes explain no more than the target's whole variance (`_no_more_than_all`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.special import expit, gammainc, gammaincc

from blurfit.data import BoolArray, FloatArray
from blurfit.errors import InvalidValueError, one_of, positive, whole
from blurfit.learning.denoise import shrunk_pairs, soft_floor
from blurfit.learning.gauge import (
    MEAN,
    Cut,
    Law,
    assumed_law,
    bounds_of,
    choose,
    choose_mean,
    completed,
    cut_at,
    gauge_map,
    inside,
    law_of,
)
from blurfit.learning.shrinkage import (
    Shrunk,
    mean_posterior,
    mean_within,
    of_slopes,
    prior_of,
    read_linearly,
    read_once,
)
from blurfit.learning.sums import Noise, Submodel
from blurfit.theory.forms import ColumnKind
from blurfit.theory.gaussian import root_of_increasing
from blurfit.theory.hazards import BAND, Announced, HazardMap
from blurfit.theory.maps import (
    LARGEST_LOG_RATE,
    LARGEST_RADIUS,
    GaugeMap,
    LogisticNewton,
    NewtonMap,
    PoissonNewton,
    ResidualMap,
    WaveMap,
    Whitening,
    gaussian_mean,
)
from blurfit.theory.planning import (
    TASKS,
    StageKind,
    Task,
    information,
    newton_radius,
    radius_of,
    reach_of_numbers,
    residual_bound_of,
)

_SIGNAL = (
    0.4  # of the variance that a mean leaves, which slopes may explain: as public weights expect
)
_MISFIT = 0.25  # of the squared slope, of a model that was turned from least squares into log-odds
# Of their expected length: white features that are shorter shrink the whitening. Numbers have less,
# for a mixture of narrow and wide people is as short as bounds that are too wide.
_TOO_WIDE: dict[Task, float] = {"number": 0.15, "label": 0.3, "count": 0.3, "hazard": 0.3}
_LAST_RADIUS, _LAST_BOUND = 1.2, 4.5  # of Newton's last wave, whose errors are told: chosen
ENOUGH = 100.0  # nμ for each column, from which squared errors stand above their noise
_NEARLY_ALL = 0.97  # E[w], above which nobody was seen far out
_POOR = 0.75  # ψ of a wave, below which no more than a usual signal is believed
_SURE = 1 - 1e-9  # of a label's mean: what doubles still tell from 1
_FACTORS = np.geomspace(1 / 16, 16, 9)
StepMap = WaveMap | HazardMap


@dataclass(frozen=True, eq=False)
class Belief:
    """What is known after a wave, in units of the encoded columns v and of the target's score.

    Attributes:
        task: "number", "label", "count" or "hazard".
        line: Whether the score is the encoded target itself: the number in [−1, 1], the label ±1 or
            2y/Y − 1 for a count y. If not, it is the log-odds or the log rate.
        coefficients: Of the score, the constant first; of hazards one for each band.
        covariance: Of their error.
        mean: Of the features.
        spread: The features' covariance, positive definite.
        scale: The standard deviation of the residual, as far as a line was fitted.
        count_bound: Y, the largest count, for counts.
        law: Where people are, by the gauge before the next residual wave.
        seen: What wave 1 saw of everybody, without any cut, and its noise; not for labels.
        kinds: Of the features: whether they are numbers, signs or levels.
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
    differences: bool = False

    @property
    def constants(self) -> int:
        """How many constants there are: one, or one for each band of a time."""
        return len(self.coefficients) - len(self.mean)

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
    covariance = _even_slopes(replace(belief, spread=of_columns), _SIGNAL * variance)
    covariance[0, 0] += error / b**2
    coefficients = np.array([mean / b, *np.zeros(len(belief.mean))])
    scale = math.sqrt(variance)
    return replace(belief, coefficients=coefficients, covariance=covariance, scale=scale)


def _about_mean(belief: Belief) -> FloatArray:
    """Return the covariance of the slopes' errors, which leave the score at the mean."""
    return of_slopes(belief.covariance[1:, 1:], belief.mean)


def _even_slopes(belief: Belief, variance: float) -> FloatArray:
    """Return the covariance of slopes that explain this variance, equally in white features, and
    leave the score at the mean.
    """
    inverse = np.asarray(np.linalg.inv(belief.spread), dtype=np.float64)
    return of_slopes(variance / len(belief.mean) * inverse, belief.mean)


def on_curve(belief: Belief) -> Belief:
    """Turn a line into log-odds or log rates; a curve, or a line for a number, stays as it is."""
    if belief.task == "number" or not belief.line:
        return belief
    beta = belief.coefficients[1:]
    if belief.task == "label":
        shift, factor = odds_of(belief)
        at_mean = shift + factor * float(belief.coefficients[0] + belief.mean @ beta)
        factors = np.full(len(beta), factor)
    else:
        assert belief.count_bound is not None
        rate = max((float(belief.coefficients[0] + belief.mean @ beta) + 1) / 2, 1e-3)
        factor = 0.5 / rate
        factors = _log_factors(belief, rate)
        explained = float((factors * beta) @ belief.spread @ (factors * beta)) / factor**2
        factors *= _caution(belief, factor, explained, 1.5)
        at_mean = math.log(rate * belief.count_bound) - _log_growth(belief, factors * beta)
    slope = factors * beta
    misfit = _even_slopes(belief, _MISFIT * max(float(slope @ belief.spread @ slope), 0.1))
    misfit[0, 0] += 0.02
    covariance = factor**2 * belief.covariance
    if (factors != factor).any():  # the score at the mean has a factor of its own
        turn = np.diag(np.append(1.0, factors / factor))
        turn[0, 1:] = belief.mean * (1 - factors / factor)
        covariance = turn @ covariance @ turn.T
    return replace(
        belief,
        line=False,
        coefficients=np.array([at_mean - float(belief.mean @ slope), *slope]),
        covariance=covariance + misfit,
    )


def odds_of(belief: Belief) -> tuple[float, float]:
    """Return (a, k): at the score t of a label's line, log-odds are a + kt."""
    beta = belief.coefficients[1:]
    centre = np.concatenate([[1.0], belief.mean])
    score, error = float(centre @ belief.coefficients), float(centre @ belief.covariance @ centre)
    average = mean_within(score, math.sqrt(max(error, 0.0)), 1.0)
    average = min(max(average, -_SURE), _SURE)
    variance = 1 - average**2
    explained = float(beta @ belief.spread @ beta)
    unknown = float(np.sum(belief.covariance[1:, 1:] * belief.spread))  # of what slopes explain
    factor = 2 / max(variance - explained - unknown, 0.2 * variance)  # V_y(1 − R²)
    factor *= _caution(belief, factor, explained, 2.5 * math.sqrt(variance))
    spread = factor * math.sqrt(explained)
    odds = root_of_increasing(
        lambda odds: gaussian_mean(expit, math.log(odds), spread) - (1 + average) / 2, 1.0, 1e-9
    )
    return math.log(odds) - factor * score, factor


def known_of(belief: Belief) -> BoolArray:
    """Return which columns are yes and no, or levels: where their answers are is known."""
    kinds = belief.kinds or ("numeric",) * len(belief.mean)
    return np.array([kind in ("sign", "level") for kind in kinds])


def _two_points(belief: Belief) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return how far below and above its mean each column's two answers are, if it has but two or
    must be as skewed as that, and which columns these are.

    A law of two points a below and b above the mean has the variance ab. A number that is nearer to
    its bound than a standard deviation cannot be symmetric: it is taken for such a law, one point
    being the bound.
    """
    kinds = belief.kinds or ("numeric",) * len(belief.mean)
    low = np.array([0.0 if kind in ("level", "hat") else -1.0 for kind in kinds])
    known = known_of(belief)
    below, above = (np.maximum(one, 1e-4) for one in (belief.mean - low, 1 - belief.mean))
    variance = np.diagonal(belief.spread)
    skewed = ~known & (np.minimum(below, above) ** 2 < variance)
    left = skewed & (below < above)
    a = np.where(skewed & ~left, variance / above, below)
    b = np.where(left, variance / below, above)
    return a, b, known | skewed


def _log_factors(belief: Belief, rate: float) -> FloatArray:
    """Return what a line's slopes are multiplied by to be those of log rates; the mean is `rate`.

    A rate that the line puts below a tenth of the mean, or above the largest count, is put there.
    """
    relative = belief.coefficients[1:] / (2 * rate)
    a, b, two = _two_points(belief)
    low, high = (np.log(np.clip(1 + d * relative, 0.1, 1 / rate)) for d in (-a, b))
    curved = two & (np.abs(relative) > 1e-9)
    ratio = (high - low) / ((a + b) * np.where(curved, relative, 1.0))
    return np.asarray(np.where(curved, ratio, 1.0) / (2 * rate))


def _log_growth(belief: Belief, slope: FloatArray) -> float:
    """Return ln E[e^t] less the mean of the scores t."""
    a, b, two = _two_points(belief)
    share = a / (a + b)
    exact = np.log1p(share * np.expm1(slope * (a + b))) - slope * a
    other = slope**2 * np.diagonal(belief.spread) / 2
    gaussian = float(slope @ belief.spread @ slope) / 2
    return max(gaussian + float(np.sum(np.where(two, exact - other, 0.0))), 0.0)


def next_map(
    belief: Belief, kind: StageKind, count: int, mu: float, *, last: bool = True, stride: int = 1
) -> Announced:
    """Return the next wave's public map, for `count` people under μ-GDP, by what is public.

    The `last` wave collects squared slopes or errors too, for standard errors: of numbers, where
    nμ is at least 100 for each column, so that they stand above their noise; of rows that are held
    every `stride`-th sends them.
    """
    one_of(("gauge", "mean", "residual", "newton"), kind=kind)
    if belief.task == "hazard":
        return _hazard_map(belief, count, mu, last=last)
    at = on_curve(belief) if kind == "newton" else belief
    if kind != "newton" and not belief.line:
        raise InvalidValueError("Expected residual waves before Newton's, got one after.")
    if kind != "newton":
        far = radius_of if at.task == "count" else lambda *facts: reach_of_numbers(*facts)[0]
        white = _whitening(at, _not_too_long(at, far(count, mu, len(at.mean))))
        scale = float(rounded(np.array(at.scale)))
        if kind == "gauge":
            return gauge_map(white, scale, count, mu, differences=at.differences)
        if kind == "mean":
            return ResidualMap(white, *_reach_of_mean(at, scale, count, mu), *MEAN)
        told = last and at.task == "number"
        reach = _reach(at, white, scale, count, mu, last=told)
        robust = told and count * mu >= ENOUGH * len(at.mean)
        return ResidualMap(white, *reach, robust=robust, stride=stride if robust else 1)
    if at.task == "number":
        raise InvalidValueError("Expected labels or counts for a Newton wave, got numbers.")
    loss = LogisticNewton() if at.task == "label" else _loss_of_counts(at, count, mu, last=last)
    chart = NewtonMap(_whitening(at, at.spread), loss, robust=last)
    radius = newton_radius(count, mu, len(at.mean), chart.mean_curvature, loss.gradient_bound)
    radius *= _LAST_RADIUS if last else 1.0
    radius = float(rounded(np.array(min(radius, LARGEST_RADIUS))))
    return replace(chart, whitening=_whitening(at, _not_too_long(at, radius)), radius=radius)


def _hazard_map(at: Belief, count: int, mu: float, *, last: bool) -> HazardMap:
    """Return the map of a wave of hazards: r is 0.35 times that of labels, and no further than
    bounds reach (chosen on generated people, whether the model was true or not).

    L = ∛(nμ/10⁴), at least 1, and no more events than anybody inside of the bounds can expect. The
    share of its noise falls like (nμ)^(−2/3), and in the end nobody is stopped.
    """
    K, p = at.constants, len(at.mean)
    chart = HazardMap(_whitening(at, at.spread), rounded(at.coefficients[:K]))
    radius = 0.35 * newton_radius(count, mu, p, chart.mean_curvature)
    radius = max(radius * (_LAST_RADIUS if last else 1.0), 1.0)
    white = _whitening(at, _not_too_long(at, radius))
    farthest = np.linalg.norm(np.abs(white.matrix) @ (1 + np.abs(white.mean))) / math.sqrt(p)
    radius = max(min(radius, float(farthest), LARGEST_RADIUS), 1.0)
    most = float(expit(chart.bands + np.abs(white.coefficients).sum()).sum())
    events = max(min(math.cbrt(count * mu / 1e4), most), 1.0)
    radius, events = rounded(np.array([radius, events])).tolist()
    return replace(chart, whitening=white, events=events, radius=radius)


def _whitening(at: Belief, spread: FloatArray) -> Whitening:
    """Return the belief's model, and features that are white if this is their covariance."""
    matrix = undone(np.asarray(np.linalg.cholesky(spread), dtype=np.float64))
    beta, constants = rounded(at.coefficients), at.constants
    own = float(beta[0]) if constants == 1 else 0.0
    return Whitening(rounded(at.mean), rounded(matrix), beta[constants:], own)


def _loss_of_counts(at: Belief, count: int, mu: float, *, last: bool) -> PoissonNewton:
    """Bound the slopes of counts by what is believed of their rates, not by the largest count.

    The noise of Σp grows with G, and what is cut falls with it. G is at least the rate at two
    standard deviations of the scores, and three or 0.25ψ^{1/3} standard deviations of a count of
    that rate, as widely dispersed as the residuals of the line. It is at most the largest count,
    until ψ is 10⁴: from there on that grows with ψ^{1/3}, so that in the end nothing is cut. H, of
    which the noise of Σp does not depend at τ = G/H, is the rate at four standard deviations, or G.
    The `last` wave, whose errors are told, takes 4.5 for three if counts are dispersed more widely
    than Poisson's. (All were chosen on generated counts.)
    """
    assert at.count_bound is not None
    beta, most = at.coefficients[1:], at.count_bound
    variance = float(beta @ at.spread @ beta)
    centre = float(at.coefficients[0] + at.mean @ beta)
    deviation, root = math.sqrt(variance), math.cbrt(information(count, mu, len(beta)))
    limit = max(1.0, root / math.cbrt(1e4)) * most
    two, four = (math.exp(min(centre + k * deviation, LARGEST_LOG_RATE)) for k in (2, 4))
    dispersion = (at.scale * most / 2) ** 2 / math.exp(min(centre + variance / 2, LARGEST_LOG_RATE))
    spread = math.sqrt(max(dispersion, 1.0) * min(two, limit))
    times = _LAST_BOUND if last and dispersion > 1.5 else 3.0
    gradient = min(max(two, max(times, 0.25 * root) * spread), limit)
    curvature, gradient = rounded(np.array([min(four, gradient), gradient])).tolist()
    return PoissonNewton.of(most, curvature, gradient)


def _not_too_long(belief: Belief, radius: float) -> FloatArray:
    """Return the features' covariance with columns of yes and no, and levels, wide enough that the
    rarer answer is inside of the radius: what is rare is not made long, and then weighted down.

    Where the answers of a column are, at its mean, is known. So far from it, 1 + |m| for signs, the
    rarer one is white features' whole length r√p, at least. As r grows with ψ the limit vanishes.
    """
    known = known_of(belief)
    if not known.any():
        return belief.spread
    mean = belief.mean
    level = np.array([kind == "level" for kind in belief.kinds])
    far = np.where(level, np.maximum(mean, 1 - mean), 1 + np.abs(mean))
    least = np.where(known, far**2 / (len(mean) * radius**2), 0.0)
    return belief.spread + np.diag(np.maximum(least - np.diagonal(belief.spread), 0.0))


def _reach(
    belief: Belief, white: Whitening, scale: float, count: int, mu: float, *, last: bool
) -> tuple[float, float, float]:
    """Return r, the scale, and R: by where people are, or by a rule where nobody has looked."""
    p = white.dimension
    if belief.law is None:
        radius = radius_of(count, mu, p)
        bound = residual_bound_of(radius)
        if belief.task == "number":
            ends = zip(reach_of_numbers(count, mu, p), bounds_of(white, scale), strict=True)
            radius, bound = (min(one) for one in ends)  # beyond is nobody, only noise
        if belief.task == "label":  # a rare class is far from the mean, and is never cut
            average = white.intercept + float(white.coefficients @ white.mean)
            bound = max(bound, (1 + min(abs(average), 1.0)) / scale)
        return outward(radius), scale, outward(bound)
    slopes = undone(white.matrix).T  # of white features
    error = float(np.trace(slopes @ belief.covariance[1:, 1:] @ slopes.T)) / (p * scale**2)
    law = belief.law
    if belief.seen is not None:
        square, _ = belief.seen.residual(ResidualMap(white, 1.0, scale, 1.0))
        law = completed(law, belief.seen.energy(white), square)
    seen, differences = belief.law if last else None, belief.differences
    radius, bound = choose(law, count, mu, p, error, seen, differences=differences)
    return outward(radius), scale, outward(bound)


def _reach_of_mean(
    belief: Belief, scale: float, count: int, mu: float
) -> tuple[float, float, float]:
    """Return the same for a wave that learns the mean alone, which follows a gauge."""
    if belief.law is None or belief.coefficients[1:].any():
        raise InvalidValueError(
            "Expected a gauge, and no slopes before, for a wave of the mean alone."
        )
    radius, bound = choose_mean(belief.law, count, mu)
    return outward(radius), scale, outward(bound)


def rounded(numbers: FloatArray) -> FloatArray:
    """Round each number to 24 bits: what earlier waves taught is far less certain."""
    mantissa, exponent = np.frexp(numbers)
    found: FloatArray = np.ldexp(np.rint(mantissa * 2.0**24) / 2.0**24, exponent)
    return found


def outward(number: float) -> float:
    """Round to 24 bits, and never down: what reaches everybody inside the bounds still does."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(math.ceil(mantissa * 2.0**24), exponent - 24)


def posterior_covariance(sums: Submodel, model: Shrunk) -> FloatArray:
    """Return the covariance of wave 1's error in z-space: P − PA·T⁻¹AP of
    `blurfit.learning.shrinkage`, at the share that the features are found to explain.
    """
    features, n, c = model.features, sums.count, sums.constant
    gram = features.gram(c)
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


def _caution(belief: Belief, factor: float, explained: float, most: float) -> float:
    """Return by how much to shorten a slope before Newton starts from it.

    A start with scores that are too large has hardly any curvature, and a step from there
    overshoots; from one that is too small Newton finds its way. So the scores' spread is at `most`
    this, and a score of error variance s² is taken at 1/√(1 + πs²/8) of its size, as for
    probabilities.
    """
    error = factor**2 * float(np.sum(belief.covariance[1:, 1:] * belief.spread))
    spread = factor * math.sqrt(max(explained, 1e-12)) / math.sqrt(1 + math.pi * error / 8)
    return min(1.0, most / spread) / math.sqrt(1 + math.pi * error / 8)


@dataclass(frozen=True, eq=False)
class StepSums:
    """The blurred sums of a wave's quadratics, the constant's row first.

    Args:
        count: How many records were summed.
        gram: ΣM, with what is publicly known written into it.
        linear: Σp.
        noise: The law of the noise on `gram`.
        linear_variance: The variance of the noise on each entry of `linear`.
        curvature: What a feature's diagonal entry of M is for one record, if features are white.
        dispersion: φ: the sampling variance of `linear` is φ·ΣM.
        constants: How many rows come before those of features.
    """

    count: int
    gram: FloatArray
    linear: FloatArray
    noise: Noise
    linear_variance: float
    curvature: float
    dispersion: float
    constants: int = 1


@dataclass(frozen=True, eq=False)
class Step:
    """θ̂, its posterior covariance, the denoised A for one record, and k, by which the last model
    was more wrong than it seemed.
    """

    theta: FloatArray
    covariance: FloatArray
    gram: FloatArray
    factor: float


def bayes_step(sums: StepSums, prior: FloatArray) -> Step:
    """Find the step of least expected squared error, linear in the blurred Σp.

    `prior` is P, the covariance of the last model's error in the coordinates of the sums.
    """
    gram, kept = _denoised(sums)
    linear = sums.linear / sums.count
    weights, theta, second = read_linearly(
        (np.zeros_like(prior), prior),
        _FACTORS,
        gram,
        linear,
        np.full(len(linear), sums.linear_variance / sums.count**2),
        np.full(len(_FACTORS), sums.dispersion / sums.count),
        lambda second: kept / sums.count**2 * sums.noise.sandwich(second),
        -(np.log(_FACTORS) ** 2) / 2,
        with_second=True,
    )
    found = weights @ theta
    spread = second - np.outer(found, found)
    return Step(found, (spread + spread.T) / 2, gram, float(weights @ _FACTORS))


def _denoised(sums: StepSums) -> tuple[FloatArray, float]:
    """Return A for one record, positive definite, and the share of off-diagonal noise left."""
    seen = sums.gram / sums.count
    noise = sums.noise.variance / sums.count**2
    spread = _diagonal(np.diagonal(seen), np.diagonal(noise), sums.curvature, sums.constants)
    pairs = ~np.eye(len(seen), dtype=bool) & (noise > 0)  # two bands of one time are known to be 0
    gram, kept = shrunk_pairs(seen, noise, spread, pairs, least=0.001)
    free = 2 * float(np.median(noise[pairs]))
    return soft_floor(gram, len(seen) * kept / 4 * free), kept


def _diagonal(seen: FloatArray, noise: FloatArray, curvature: float, constants: int) -> FloatArray:
    """Keep a constant's own entry if it stands above its noise; shrink the features' toward their
    mean.
    """
    found, rest = np.array(seen), slice(constants, None)
    features, of_each = seen[rest], float(noise[rest].mean())
    of_mean = of_each / len(features)
    prior = (0.3 * curvature) ** 2
    mean = (prior * float(features.mean()) + of_mean * curvature) / (prior + of_mean)
    mean = max(mean, 0.1 * curvature)
    between = max(float(np.var(features)) - of_each, (0.1 * mean) ** 2)
    found[rest] = mean + between / (between + of_each) * (features - mean)
    found[rest] = np.maximum(found[rest], min(0.1 * mean, math.sqrt(of_each)))  # none above noise
    own = slice(constants)
    found[own] = np.maximum(np.maximum(seen[own], 3 * np.sqrt(noise[own])), 1e-3 * mean)
    return found


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
    prior += _slack(prior, read.constants)
    poor = isinstance(chart, ResidualMap) and at.task == "number" and _poor(at, chart, sums)
    if poor:
        prior *= _believable(prior, read, sums)
    step = bayes_step(read, prior)
    back = undone(into.T).T
    error = back @ step.covariance @ back.T
    change = back @ step.theta
    if isinstance(chart, NewtonMap) and at.task == "count":
        change = _held_back(at, chart, change)
    learned = replace(at, coefficients=start_of(chart) + change, covariance=(error + error.T) / 2)
    if cut is None:
        return learned
    assert isinstance(chart, ResidualMap)
    if learns_mean(chart):
        variance = read.dispersion * (chart.scale / chart.target_scale) ** 2
        covariance = learned.covariance + variance / at.scale**2 * _about_mean(at)
        return replace(learned, covariance=covariance, scale=math.sqrt(variance), law=None)
    found = _features(learned, chart, read, step, cut)
    return _no_more_than_all(found, at) if poor and at.law is not None else found


def _poor(belief: Belief, chart: ResidualMap, sums: WaveSums) -> bool:
    """Tell whether noise hides slopes from a wave, or nobody has looked where people are."""
    mu = chart.sensitivity() / sums.deviation
    return belief.law is None or information(sums.count, mu, len(belief.mean)) < _POOR


def _no_more_than_all(found: Belief, before: Belief) -> Belief:
    """Return the belief with slopes that explain no more than the target's variance was thought to
    be `before` the wave.
    """
    first, slopes = before.coefficients[1:], found.coefficients[1:]
    most = before.scale**2 + float(first @ before.spread @ first)
    signal = float(slopes @ found.spread @ slopes)
    if signal <= most:
        return found
    shorter = math.sqrt(most / signal) * slopes
    constant = found.coefficients[0] + found.mean @ (slopes - shorter)
    return replace(found, coefficients=np.array([constant, *shorter]))


def learns_mean(chart: Announced) -> bool:
    """Tell whether the map is one of a wave that learns the mean alone."""
    return isinstance(chart, ResidualMap) and chart.feature_weight == MEAN[1]


def _held_back(at: Belief, chart: NewtonMap, change: FloatArray) -> FloatArray:
    """Return a step of counts whose log rates go no further than a quadratic can tell, at the
    answers of columns of yes and no, and levels.

    Let Δ be the change of the score at such an answer, all else at its mean.

    * M has H where e^t is above it, and there the step is too long by e^t/H: Δ is divided by that.
    * From below a Newton step overshoots, as the rate is e^t(1 + Δ) to first order, and not
      e^{t+Δ}: a Δ above 1 becomes 1 + ln Δ.
    * From above it falls by less than 1, as a rate stays positive: what is below −1 is noise.
    * No mean is above the largest count, so no such rate is.

    As steps get short, and H grows, nothing is held back; a step of 0 always stays one.
    """
    a, b, _ = _two_points(at)
    assert isinstance(chart.loss, PoissonNewton)
    start, loss = start_of(chart), chart.loss
    centre = float(start[0] + at.mean @ start[1:])

    def held(distance: FloatArray) -> FloatArray:
        before = np.minimum(centre + distance * start[1:], LARGEST_LOG_RATE)
        step = distance * change[1:] * np.minimum(1.0, loss.curvature_bound / np.exp(before))
        step = np.where(step > 1, 1 + np.log(np.maximum(step, 1)), np.maximum(step, -1))
        return np.asarray(np.minimum(step, math.log(loss.count_bound) - before))

    low, high = held(-a), held(b)
    known = known_of(at)
    slope = np.where(known, (high - low) / (a + b), change[1:])
    at_mean = float(change[0] + at.mean @ change[1:])
    at_mean += float(np.sum(np.where(known, low + a * slope, 0.0)))
    return np.array([at_mean - float(at.mean @ slope), *slope])


def cut_of(belief: Belief, chart: ResidualMap, sums: WaveSums) -> Cut:
    """Return what the wave's weights and cut do, by the gauge before it or by what is assumed."""
    law = belief.law or assumed_law(chart.whitening.dimension)
    found = cut_at(law, chart, sums.count, chart.sensitivity() / sums.deviation)
    if belief.task != "number":
        return replace(found, through=1.0)  # labels are never cut, and a line of counts is a start
    if belief.law is None:
        reach = sums.count * chart.constant * chart.target_weight
        centre = float(sums.matrix[0, -1]) / reach  # of a mean that the last model missed
        return replace(found, through=inside(cut_share(chart, sums) - centre**2, centre))
    return found


def cut_share(chart: ResidualMap, sums: WaveSums) -> float:
    """Return E[(s·g)²]/R² as the wave saw it: 1 where everybody's error is cut."""
    return float(sums.matrix[-1, -1]) / (sums.count * chart.target_weight**2)


def start_of(chart: StepMap) -> FloatArray:
    """Return the coefficients that the map announced, the constant first."""
    if isinstance(chart, HazardMap):
        return np.array([*(chart.bands + chart.whitening.intercept), *chart.whitening.coefficients])
    return np.array([chart.whitening.intercept, *chart.whitening.coefficients])


def step_sums(chart: StepMap, sums: WaveSums, cut: Cut | None = None) -> StepSums:
    """Return the wave's quadratic, the constant first, with the law of its noise; of a residual
    wave with what is known of its cut.
    """
    constants = len(chart.bands) if isinstance(chart, HazardMap) else 1
    size = chart.whitening.dimension + constants
    square = sums.deviation**2
    variance = np.full((size, size), square / 2)
    variance[:constants, :constants] = 0.0  # nobody is at risk in two bands at once
    np.fill_diagonal(variance, square)
    if isinstance(chart, ResidualMap):
        _refuse_shape(sums, size + 1, linear=False)
        assert cut is not None
        gram = np.array(sums.matrix[:-1, :-1])
        gram[0, 0] = chart.constant**2 * sums.count * _weight(chart, sums, cut)
        noise = Noise(variance)
        expected = cut.weight * cut.spread
        seen = float(sums.matrix[-1, -1]) / sums.count / chart.target_scale**2
        left = min(max(seen, 0.1 * expected), 4 * expected) / cut.weight * chart.target_scale**2
        curvature = cut.energy * chart.feature_scale**2
        linear, blur = sums.matrix[:-1, -1] / cut.through, square / 2 / cut.through**2
        return StepSums(sums.count, gram, linear, noise, blur, curvature, left)
    _refuse_shape(sums, size, linear=True)
    assert sums.linear is not None
    if isinstance(chart, HazardMap):
        curvature = chart.mean_curvature * chart.scale**2
        blur = square * chart.balance**2
        law = Noise(variance)
        return StepSums(sums.count, sums.matrix, sums.linear, law, blur, curvature, 1.0, constants)
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


def _slack(prior: FloatArray, constants: int) -> FloatArray:
    """Return a quarter of the mean error in every direction: P itself is only believed."""
    own = np.diagonal(prior)
    even = 0.25 * float(own[constants:].mean())
    return np.diag([*own[:constants], *[even] * (len(prior) - constants)])


def _believable(prior: FloatArray, read: StepSums, sums: WaveSums) -> float:
    """Return by how much P is too large for the errors that a poor wave saw: see `_poor`.

    The last model's error, E[θᵀAθ] = tr PA, is a part of the E[s²g²] that was released, and at most
    `_SIGNAL` of it is expected. If the scale was taken for too large, as bounds that are too wide
    make it, P is too large with it, and slopes of noise are believed. The more is known, the
    smaller P is beside E[s²g²], and nothing happens.
    """
    noise = sums.deviation / sums.count
    most = max(float(sums.matrix[-1, -1]) / sums.count, 0.0) + noise
    gram, _ = _denoised(read)
    return min(1.0, _SIGNAL * most / float(np.sum(prior * gram)))


def undone(lower: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangle."""
    found, _ = dtrtri(lower, lower=1)
    return np.ascontiguousarray(found)


def coordinates(chart: StepMap) -> FloatArray:
    """Return J with θ = J·(β₀, β): the step that a change of the coefficients is, constants first.
    It is an upper triangle.

    β₀ + β·v = (β₀ + β·m) + (W⁻ᵀβ)·f, each divided by what 1 and f are multiplied by in the chart.
    """
    white = chart.whitening
    constants = len(chart.bands) if isinstance(chart, HazardMap) else 1
    found = np.eye(constants + white.dimension)
    found[:constants, constants:] = white.mean
    found[constants:, constants:] = undone(white.matrix).T
    if isinstance(chart, HazardMap):
        found[:constants] /= BAND
        found[constants:] /= chart.scale
    elif isinstance(chart, ResidualMap):
        unit = chart.target_scale / chart.scale
        found[0] *= unit / chart.constant
        found[1:] *= unit / chart.feature_scale
    else:
        of_features, constant = chart.scale
        found[0] /= constant
        found[1:] /= of_features
    return found


def _weight(chart: ResidualMap, sums: WaveSums, cut: Cut) -> float:
    """Return E_w, by what was released of it and by the law, each as far as it is certain."""
    seen = float(sums.matrix[0, 0]) / (chart.constant**2 * sums.count)
    noise = (sums.deviation / (chart.constant**2 * sums.count)) ** 2
    other = min(cut.law_noise, 0.2) ** 2 + 1e-3 * cut.weight / sums.count
    found = (seen * other + cut.weight * noise) / (other + noise)
    return min(max(found, 0.02), 1.0)


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
