"""Log-odds of an event by waves: from exits to a first belief, and what the last wave tells.

    wave 1    blurred exits ── additive hazards ──► Belief ── next_map ──► `HazardMap` of wave 2
    wave 2    blurred quadratics under it ── learn_wave ──► Belief ──► …
    last      one Newton step of the discrete-time logistic likelihood, with errors

Maps and steps are those of `blurfit.learning.waves`, with a constant for each band.

**The start** (`belief_of_exits`). Wave 1 tells additive hazards: λ_k in band k at the mean m of
those at risk, and slopes β. With H = λ/K expected events in a band, p = 1 − e^{−H}, so the log-odds
there are ln(e^H − 1), and their slope is β/λ·H/(1 − e^{−H}), about the logarithm of the ratio of
hazards. That is a start, whose slopes are shortened by what is uncertain in them; a quarter of the
squared slope is believed to be wrong, as where other lines are turned into curves.

**The last step** (`hazard_estimates`) is told without shrinkage, θ̃ = (Â + G)⁻¹ĝ with Â = ΣM + E and
ĝ = Σg + e, as in `blurfit.learning.wave_inference`. Σg is a sum of martingale differences, whose
variance is E[ΣM] where the model is true, however people stop being observed without looking ahead,
so the sampling covariance is Â⁻¹; the privacy part is Â⁻¹(Var(e) + E[Eθθᵀ E])Â⁻¹. What one step
leaves of the start's error is at most a quarter of its squared length, for log-odds as for log
rates, and counts as sampling. A band in which few are at risk has little curvature, which is taken
for no less than four standard deviations of its noise: its step is then shorter, and it stays near
the start.

Waves of different people are independent given the maps, so each of them tells an estimate of its
own, and `pooled` weighs these by their precision, but for steps so long that what they may have
left is more than a quarter of their error. Waves of the same rows have their sampling error in
common, and the last one, which has the most of μ², is told alone.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.hazards import EventSums
from blurfit.learning.inference import Inference
from blurfit.learning.wave_inference import refuse_long_step, symmetric, told_step
from blurfit.learning.waves import Belief, WaveSums, coordinates, start_of, step_sums
from blurfit.theory.hazards import BAND, HazardMap

_MISFIT = 0.25  # of the squared slope, of additive hazards that were turned into log-odds
_LONGEST = 1.5  # standard deviation of the scores of a start
LEAST_EVENTS = 8.0  # standard deviations of the noise on a count, of a start
LEAST_BAND = 4.0  # standard deviations of the noise on a band's curvature
LEAST_LEFT = 0.25  # of a step's error, that what it leaves may be
LEAST_SHARE = 0.1  # of the mean hazard, below which no band's is taken


def belief_of_exits(sums: EventSums) -> Belief:
    """Return what a first wave's exits say of log-odds: bands, then slopes of the used columns."""
    sums.require_events(LEAST_EVENTS)
    at_risk, mean, spread, rates = sums.at_risk()
    K, p = len(rates), len(mean)
    average = float(rates @ at_risk / at_risk.sum())
    weights = np.array([sums.form.inner.columns[place].weight for place in sums.used])
    try:
        found = sums.model
        slopes = found.coefficients[:p] * weights
        errors = (found.sampling + found.privacy)[:p, :p] * np.outer(weights, weights)
        of_bands = np.diagonal(found.sampling + found.privacy)[p:]
    except InfeasibleError:  # noise could have made the slopes: later waves find them
        slopes, errors = np.zeros(p), np.zeros((p, p))
        of_bands = rates * average / np.maximum(at_risk, 1.0) + average**2
    rates = np.maximum(rates, LEAST_SHARE * average)
    turn = _turn(average / K) / average
    slopes, errors = turn * slopes, turn**2 * errors
    signal, noise = float(slopes @ spread @ slopes), float(np.sum(errors * spread))
    kept = min(max(0.0, 1 - noise / signal), _LONGEST / math.sqrt(signal)) if signal > 0 else 0.0
    slopes = kept * slopes
    misfit = max(_MISFIT * kept * signal, 0.1)  # of the scores' variance, in all directions alike
    covariance = np.zeros((K + p, K + p))
    covariance[K:, K:] = kept * errors + misfit / p * np.linalg.inv(spread)
    covariance[:K, K:] = -mean @ covariance[K:, K:]
    covariance[K:, :K] = covariance[:K, K:].T
    covariance[:K, :K] = mean @ covariance[K:, K:] @ mean
    covariance[:K, :K] += np.diag(np.minimum(of_bands / rates**2, 1.0) + 0.02)
    bands = np.log(np.expm1(rates / K)) - mean @ slopes
    kinds = tuple(sums.form.inner.columns[place].kind for place in sums.used)
    return Belief(
        "hazard", False, np.append(bands, slopes), covariance, mean, spread, 1.0, kinds=kinds
    )


def _turn(events: float) -> float:
    """Return H/(1 − e^{−H}): how much steeper log-odds are than log hazards."""
    return -events / math.expm1(-events)


def hazard_estimates(chart: HazardMap, sums: WaveSums, *, alone: bool = True) -> Inference:
    """Return (α, β) one step after the announced model, with the covariance of their error.

    Not `alone`, beside those of a later wave, they are refused where the step was so long that what
    it may have left counts.
    """
    read = step_sums(chart, sums)
    read = replace(read, gram=_steadied(read.gram, read.constants, LEAST_BAND * sums.deviation))
    condition, inverse, theta, noise = told_step(read, sums)
    sampling, privacy = inverse, inverse @ noise @ inverse
    scale = _scores(chart, read.gram)
    change = max(float(np.sum(scale * (np.outer(theta, theta) - sampling - privacy))), 0.0)
    refuse_long_step(change)
    error = float(np.sum(scale * (sampling + privacy)))
    if not alone and (0.25 * change) ** 2 > LEAST_LEFT**2 * error:
        raise InfeasibleError("The step was too long to be told beside those of later waves.")
    slopes = len(theta) - read.constants
    short = (0.25 * change) ** 2 / slopes * np.diag(1 / np.diagonal(scale))
    back = np.linalg.inv(coordinates(chart))
    K = read.constants
    return Inference(
        names=(
            *(f"band {place + 1}" for place in range(K)),
            *(f"v{place}" for place in range(len(theta) - K)),
        ),
        count=max(sums.count, len(theta) + 2),
        coefficients=start_of(chart) + back @ theta,
        sampling=symmetric(back @ (sampling + short) @ back.T),
        privacy=symmetric(back @ privacy @ back.T),
        residual_variance=None,
        r_squared=None,
        condition=condition,
        uneven=False,
    )


def _steadied(gram: FloatArray, bands: int, least: float) -> FloatArray:
    """Return Â with no band's own entry below `least`."""
    found, own = np.array(gram), np.arange(bands)
    found[own, own] = np.maximum(found[own, own], least)
    return found


def pooled(found: Sequence[Inference]) -> Inference:
    """Return the mean of waves of different people, each weighed by its precision."""
    if len(found) == 1:
        return found[0]
    precisions = [np.linalg.inv(one.sampling + one.privacy) for one in found]
    whole = np.linalg.inv(np.sum(precisions, axis=0))
    shares = [whole @ one for one in precisions]
    parts = list(zip(shares, found, strict=True))
    return replace(
        found[-1],
        count=sum(one.count for one in found),
        coefficients=np.sum([share @ one.coefficients for share, one in parts], axis=0),
        sampling=symmetric(np.sum([w @ one.sampling @ w.T for w, one in parts], axis=0)),
        privacy=symmetric(np.sum([w @ one.privacy @ w.T for w, one in parts], axis=0)),
    )


def _scores(chart: HazardMap, gram: FloatArray) -> FloatArray:
    """Return Z with θᵀZθ the mean square by which a step changes scores: A for one unit of h."""
    total = float(np.trace(gram[: len(chart.bands), : len(chart.bands)])) / BAND**2
    return gram / total
