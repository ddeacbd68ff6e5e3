"""The next wave's public map: a function of the belief and of public numbers alone.

Whoever has the releases computes the belief, and finds the announced map but for rounding: what
earlier waves taught is rounded to 24 bits (`rounded`), and a radius is never rounded down
(`outward`). How far r and R reach follows from where people are, by a gauge, or from a rule of
`blurfit.theory.planning` where nobody has looked; Newton's loss is bounded by what is believed.

**The only wave of slopes.** With few people waves of the mean come first, and one wave looks for
slopes (`blurfit.theory.planning.choose_shares`). No public fact tells strong signals from loose
bounds, but what was released does. If the target's spread, as those waves found it, is below
`_TIGHT` of half the distance between its bounds, of which public weights expect a half, it may be
mere noise, and the last wave learns the mean, too: that is post-processing, and no map changes what
a wave's noise must be.
"""

import math
from dataclasses import replace

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, one_of
from blurfit.learning.beliefs import Belief, known_of
from blurfit.learning.curves import on_curve
from blurfit.learning.gauge import (
    MEAN,
    SLOPES,
    WEIGHTS,
    bounds_of,
    choose,
    choose_mean,
    completed,
    gauge_map,
)
from blurfit.learning.steps import undone
from blurfit.theory.maps import (
    LARGEST_LOG_RATE,
    LARGEST_RADIUS,
    Announced,
    LogisticNewton,
    NewtonMap,
    PoissonNewton,
    ResidualMap,
    Whitening,
)
from blurfit.theory.planning import (
    StageKind,
    information,
    newton_radius,
    reach_of,
    stride_of_squares,
)

_LAST_RADIUS, _LAST_BOUND = 1.2, 4.5  # of Newton's last wave, whose errors are told: chosen
ENOUGH = 100.0  # nμ for each column, from which squared errors stand above their noise
_TIGHT = 0.2  # of half the target's bounds: a smaller spread is that of bounds that are too wide


def next_map(
    belief: Belief, kind: StageKind, count: int, mu: float, *, last: bool = True, held: bool = False
) -> Announced:
    """Return the next wave's public map, for `count` people under μ-GDP, by what is public.

    The `last` wave collects squared slopes or errors too, for standard errors: of numbers, where
    nμ is at least 100 for each column, so that they stand above their noise. Of very many rows that
    are `held`, some send them.
    """
    one_of(("gauge", "mean", "residual", "newton"), kind=kind)
    at = on_curve(belief) if kind == "newton" else belief
    if kind != "newton" and not belief.line:
        raise InvalidValueError("Expected residual waves before Newton's, got one after.")
    if kind != "newton":
        white = _whitening(at, _not_too_long(at, reach_of(count, mu, len(at.mean))[0]))
        scale = float(rounded(np.array(at.scale)))
        if kind == "gauge":
            return gauge_map(white, scale, count, mu, differences=at.differences)
        told = last and at.task == "number"
        single = told and at.law is not None and not at.coefficients[1:].any()
        if kind == "mean" or (single and scale < _TIGHT):
            return ResidualMap(white, *_reach_of_mean(at, scale, count, mu), *MEAN)
        weights = SLOPES if single else WEIGHTS
        reach = _reach(at, white, scale, count, mu, weights, last=told)
        robust = told and not single and count * mu >= ENOUGH * len(at.mean)
        return _of_some(ResidualMap(white, *reach, *weights, robust), count, mu, held=held)
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


def _reach(
    belief: Belief,
    white: Whitening,
    scale: float,
    count: int,
    mu: float,
    weights: tuple[float, float, float],
    *,
    last: bool,
) -> tuple[float, float, float]:
    """Return r, the scale, and R: by where people are, or by a rule where nobody has looked."""
    p = white.dimension
    if belief.law is None:
        ends = zip(reach_of(count, mu, p), bounds_of(white, scale), strict=True)
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
    radius, bound = choose(law, count, mu, p, error, seen, weights=weights, differences=differences)
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
