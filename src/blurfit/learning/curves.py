"""Curves: a line of least squares becomes log-odds or log rates.

The first wave, and residual waves, fit a line to labels and counts too. `on_curve` turns it into
log-odds or log rates, for Newton's waves and for probabilities; `held_back` keeps a step of counts
where a quadratic can be right.

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
"""

import math
from dataclasses import replace

import numpy as np
from scipy.special import expit

from blurfit.data import BoolArray, FloatArray
from blurfit.learning.beliefs import Belief, even_slopes, known_of
from blurfit.learning.shrinkage import mean_within
from blurfit.learning.steps import start_of
from blurfit.theory.gaussian import root_of_increasing
from blurfit.theory.maps import LARGEST_LOG_RATE, NewtonMap, PoissonNewton, gaussian_mean

_MISFIT = 0.25  # of the squared slope, of a model that was turned from least squares into log-odds
_SURE = 1 - 1e-9  # of a label's mean: what doubles still tell from 1


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
        factors = _log_factors(belief, rate) * _caution(belief, factor)
        at_mean = math.log(rate * belief.count_bound) - _log_growth(belief, factors * beta)
    slope = factors * beta
    misfit = even_slopes(belief, _MISFIT * max(float(slope @ belief.spread @ slope), 0.1))
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
    most = 2.5 * math.sqrt(variance / max(explained, 1e-12))
    factor = min(factor * _caution(belief, factor), most)
    spread = factor * math.sqrt(explained)
    odds = root_of_increasing(
        lambda odds: gaussian_mean(expit, math.log(odds), spread) - (1 + average) / 2, 1.0, 1e-9
    )
    return math.log(odds) - factor * score, factor


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

    A rate that the line puts below a tenth of the mean is put there.
    """
    relative = belief.coefficients[1:] / (2 * rate)
    a, b, two = _two_points(belief)
    low, high = (np.log(np.maximum(1 + d * relative, 0.1)) for d in (-a, b))
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


def _caution(belief: Belief, factor: float) -> float:
    """Return by how much to shorten a slope before Newton starts from it.

    A start with scores that are too large has hardly any curvature, and a step from there
    overshoots; from one that is too small Newton finds its way. So a score of error variance s² is
    taken at 1/√(1 + πs²/8) of its size, as for probabilities.
    """
    error = factor**2 * float(np.sum(belief.covariance[1:, 1:] * belief.spread))
    return 1 / math.sqrt(1 + math.pi * error / 8)


def held_back(at: Belief, chart: NewtonMap, change: FloatArray) -> FloatArray:
    """Return a step of counts whose log rates go no further than a quadratic can tell, at the
    answers of columns of yes and no, and levels.

    Let Δ be the change of the score at such an answer, all else at its mean.

    * M has H where e^t is above it, and there the step is too long by e^t/H: Δ is divided by that.
    * From below a Newton step overshoots, as the rate is e^t(1 + Δ) to first order, and not
      e^{t+Δ}: a Δ above 1 becomes 1 + ln Δ.
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
        step = np.where(step > 1, 1 + np.log(np.maximum(step, 1)), step)
        return np.asarray(np.minimum(step, math.log(loss.count_bound) - before))

    low, high = held(-a), held(b)
    known = known_of(at)
    slope = np.where(known, (high - low) / (a + b), change[1:])
    at_mean = float(change[0] + at.mean @ change[1:])
    at_mean += float(np.sum(np.where(known, low + a * slope, 0.0)))
    return np.array([at_mean - float(at.mean @ slope), *slope])
