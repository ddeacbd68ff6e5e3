"""Waves: the public map of the next wave, and the model after it.

    wave 1     joint sums ── linear Bayes ──► Belief ── next_map ──► the map of wave 2
    wave 2     blurred sums under that map ── learn_wave ──► Belief ── next_map ──► …
    last       Belief: the model, with the covariance of its error

A belief is computed from published sums alone, so it is post-processing, and so is the next map, a
function of the belief and of public numbers. Whoever has the releases finds the announced map but
for rounding: its numbers are rounded to 24 bits (`rounded`), and a radius never down (`outward`).

**Learning** (`learn_wave`). The sums are a noisy quadratic in θ, the change of the coefficients in
the coordinates of the map. The belief is the prior of θ, and `bayes_step` gives the posterior. The
step starts from the map *as it was announced*, for that is what records were blurred under.

**The next map** (`next_map`). r and R follow from public facts (`reach_of`), and are never beyond
what bounds allow; Newton's loss is bounded by what is believed of rates. No map changes what a
wave's noise must be.

**Log-odds and log rates** (`on_curve`). Lines become curves before Newton's waves. If classes of a
label ±1 are Gaussian with one covariance, log-odds have the slope 2β_LS/(V_y(1 − R²)), V_y = 1 −
ȳ², exactly; at most 2.5√V_y of spread, as rare classes are not Gaussian. For counts of rate
e^{β·v+β₀} and Gaussian features β = β_LS/ȳ (Stein); columns of two values take the difference of
the logarithms of the line's rates at these. A quarter of the squared slope is believed to be wrong,
which Newton's steps mend; steps of counts are limited (`held_back`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from blurfit.data import BoolArray, FloatArray
from blurfit.errors import InvalidValueError, one_of, positive, whole
from blurfit.learning.beliefs import (
    Belief,
    bounds_of,
    coordinates,
    even_slopes,
    inside,
    known_of,
    start_of,
    undone,
)
from blurfit.learning.shrinkage import Step, StepSums, bayes_step, denoised, mean_within, soft_floor
from blurfit.learning.sums import Noise
from blurfit.theory.gaussian import root_of_increasing
from blurfit.theory.maps import (
    LARGEST_LOG_RATE,
    LARGEST_RADIUS,
    SMALLEST_RADIUS,
    LogisticNewton,
    NewtonMap,
    PoissonNewton,
    ResidualMap,
    WaveMap,
    Whitening,
    gaussian_mean,
)
from blurfit.theory.planning import (
    StageKind,
    information,
    newton_radius,
    reach_of,
    stride_of_squares,
)

SIGNAL = 0.4  # of the variance that a mean leaves, which slopes may explain, as weights expect
LEAST_SPREAD = 0.05  # E[s²g²], which noise may hide: residuals are scaled to about 1
_LAST_RADIUS, _LAST_BOUND = 1.2, 4.5  # of Newton's last wave, whose errors are told: chosen
_MISFIT = 0.25  # of the squared slope, of a model that was turned from least squares into log-odds
_SURE = 1 - 1e-9  # of a label's mean: what doubles still tell from 1


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


def learn_wave(belief: Belief, chart: WaveMap, sums: WaveSums) -> Belief:
    """Return what is believed after a wave that was collected under `chart`, a map of `belief`."""
    line = isinstance(chart, ResidualMap)
    at = belief if line else on_curve(belief)
    read = step_sums(chart, sums)
    if isinstance(chart, ResidualMap) and at.task == "number":  # nothing of yes and no has a tail
        passing = inside(clipped_fraction(chart, sums))
        variance = read.linear_variance / passing**2
        read = replace(read, linear=read.linear / passing, linear_variance=variance)
    into = coordinates(chart)
    prior = into @ at.covariance @ into.T
    prior += _slack(prior)
    if line:
        prior *= _believable(prior, read, sums)
    step = bayes_step(read, prior)
    back = undone(into.T).T
    error = back @ step.covariance @ back.T
    change = back @ step.theta
    if isinstance(chart, NewtonMap) and at.task == "count":
        change = held_back(at, chart, change)
    learned = replace(at, coefficients=start_of(chart) + change, covariance=(error + error.T) / 2)
    return _features(learned, chart, read, step) if isinstance(chart, ResidualMap) else learned


def clipped_fraction(chart: ResidualMap, sums: WaveSums) -> float:
    """Return E[min(|s·g|, R)²]/R² as the wave saw it: 1 where everybody's residual is clipped."""
    return float(sums.matrix[-1, -1]) / (sums.count * chart.target_weight**2)


def step_sums(chart: WaveMap, sums: WaveSums) -> StepSums:
    """Return the wave's quadratic, the constant first, with the distribution of its noise."""
    size = 1 + chart.whitening.dimension
    square = sums.deviation**2
    variance = np.full((size, size), square / 2)
    np.fill_diagonal(variance, square)
    noise = Noise(variance)
    if isinstance(chart, ResidualMap):
        _refuse_shape(sums, size + 1, linear=False)
        gram = np.array(sums.matrix[:-1, :-1])
        full = chart.constant**2 * sums.count
        gram[0, 0] = min(max(float(gram[0, 0]), 0.02 * full), full)  # the weight's mean is a share
        left = max(clipped_fraction(chart, sums) * chart.bound**2, LEAST_SPREAD)
        left *= chart.target_scale**2 * full / gram[0, 0]
        curvature = chart.feature_scale**2
        return StepSums(sums.count, gram, sums.matrix[:-1, -1], noise, square / 2, curvature, left)
    _refuse_shape(sums, size, linear=True)
    assert sums.linear is not None
    order = [size - 1, *range(size - 1)]
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
    """Return by how much P is too large for the residuals that the wave saw.

    The last model's error, E[θᵀAθ] = tr PA, is a part of the E[s²g²] that was released, and at most
    `SIGNAL` of it is expected. If the scale was taken for too large, as bounds that are too wide
    make it, P is too large with it, and slopes of noise are believed.
    """
    noise = sums.deviation / sums.count
    most = max(float(sums.matrix[-1, -1]) / sums.count, 0.0) + noise
    gram, _ = denoised(read)
    return min(1.0, SIGNAL * most / float(np.sum(prior * gram)))


def _features(belief: Belief, chart: ResidualMap, read: StepSums, step: Step) -> Belief:
    """Whiten the belief's features again by what this wave saw of the weighted records.

    (Newton's M is weighted by h: it leaves the whitening as it is.)
    """
    lower = undone(chart.whitening.matrix)
    weight = step.gram[0, 0] / chart.constant**2
    shift = step.gram[0, 1:] / (chart.constant * chart.feature_scale * weight)
    centred = step.gram[1:, 1:] / (chart.feature_scale**2 * weight) - np.outer(shift, shift)
    spread = soft_floor(lower @ centred @ lower.T, 0.0)
    explained = float(step.theta @ step.gram @ step.theta) / weight  # of the last model's errors
    left = max(read.dispersion - explained, 0.1 * read.dispersion)
    return replace(
        belief,
        mean=np.clip(chart.whitening.mean + lower @ shift, -1.0, 1.0),
        spread=(spread + spread.T) / 2,
        scale=math.sqrt(left) / chart.target_scale * chart.scale,
    )


def _refuse_shape(sums: WaveSums, size: int, *, linear: bool) -> None:
    if sums.matrix.shape != (size, size) or (sums.linear is not None) != linear:
        raise InvalidValueError(
            "Expected matrix of shape {size} {words} linear for "
            "this map, got {shape}; these sums are of another wave.",
            size=(size, size),
            words="with" if linear else "without",
            shape=sums.matrix.shape,
        )
    if linear and sums.linear is not None and sums.linear.shape != (size,):
        raise InvalidValueError(
            "Expected linear of shape {size} for this map, got {shape}.",
            size=(size,),
            shape=sums.linear.shape,
        )


def next_map(
    belief: Belief,
    kind: StageKind,
    count: int,
    mu: float,
    *,
    last: bool = True,
    held: bool = False,
    repeated: bool = False,
) -> WaveMap:
    """Return the next wave's public map, for `count` people under μ-GDP, by what is public.

    The `last` wave collects squared slopes or errors too, for standard errors. Of very many rows
    that are `held`, some send them. `repeated` says that people have several rows.
    """
    one_of(("residual", "newton"), kind=kind)
    at = on_curve(belief) if kind == "newton" else belief
    if kind == "residual":
        if not belief.line:
            raise InvalidValueError("Expected residual waves before Newton's, got one after.")
        radius, bound = reach_of(count, mu, len(at.mean), repeated=repeated)
        white = _whitening(at, _not_too_long(at, radius))
        scale = float(rounded(np.array(at.scale)))
        farthest_out, largest = bounds_of(white, scale)
        if at.task == "label":  # a rare class is far from the mean, and is never clipped
            average = white.intercept + float(white.coefficients @ white.mean)
            bound = max(bound, (1 + min(abs(average), 1.0)) / scale)
        reach = _in_range(min(radius, farthest_out)), scale, _in_range(min(bound, largest))
        return _of_some(
            ResidualMap(white, *reach, robust=last and at.task == "number"), count, mu, held=held
        )
    if at.task == "number":
        raise InvalidValueError("Expected labels or counts for a Newton wave, got numbers.")
    loss = LogisticNewton() if at.task == "label" else _loss_of_counts(at, count, mu, last=last)
    chart = NewtonMap(_whitening(at, at.spread), loss, robust=last)
    radius = newton_radius(count, mu, len(at.mean), chart.mean_curvature, loss.gradient_bound)
    radius *= _LAST_RADIUS if last else 1.0
    radius = float(rounded(np.array(min(radius, LARGEST_RADIUS))))
    chart = replace(chart, whitening=_whitening(at, _not_too_long(at, radius)), radius=radius)
    return _of_some(chart, count, mu, held=held)


def _of_some(
    chart: ResidualMap | NewtonMap, count: int, mu: float, *, held: bool
) -> ResidualMap | NewtonMap:
    """Return the map by which as few of the rows that are held send squares as tell enough."""
    if not (held and chart.robust):
        return chart
    noise = chart.sensitivity() / (mu * chart.robust_weight)
    return replace(chart, stride=stride_of_squares(count, chart.typical_square, noise))


def _whitening(at: Belief, spread: FloatArray) -> Whitening:
    """Return the belief's model, and features that are white if this is their covariance."""
    matrix = undone(np.asarray(np.linalg.cholesky(spread), dtype=np.float64))
    beta = rounded(at.coefficients)
    return Whitening(rounded(at.mean), rounded(matrix), beta[1:], float(beta[0]))


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


def rounded(numbers: FloatArray) -> FloatArray:
    """Round each number to 24 bits: what earlier waves taught is far less certain."""
    mantissa, exponent = np.frexp(numbers)
    found: FloatArray = np.ldexp(np.rint(mantissa * 2.0**24) / 2.0**24, exponent)
    return found


def _in_range(reach: float) -> float:
    """Round a radius or bound up, within what a map accepts, however noisy the release was."""
    return outward(min(max(reach, SMALLEST_RADIUS), LARGEST_RADIUS))


def outward(number: float) -> float:
    """Round to 24 bits, and never down: what reaches everybody inside the bounds still does."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(math.ceil(mantissa * 2.0**24), exponent - 24)


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


def two_points(belief: Belief) -> tuple[FloatArray, FloatArray, BoolArray]:
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
    a, b, two = two_points(belief)
    low, high = (np.log(np.maximum(1 + d * relative, 0.1)) for d in (-a, b))
    curved = two & (np.abs(relative) > 1e-9)
    ratio = (high - low) / ((a + b) * np.where(curved, relative, 1.0))
    return np.asarray(np.where(curved, ratio, 1.0) / (2 * rate))


def _log_growth(belief: Belief, slope: FloatArray) -> float:
    """Return ln E[e^t] less the mean of the scores t."""
    a, b, two = two_points(belief)
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
    a, b, _ = two_points(at)
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
