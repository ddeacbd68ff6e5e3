"""Shrinkage: the point estimate of a model from blurred joint sums.

**The mean alone.** ψ = nμ/p^1.5 says how far the signal stands above the noise
(`blurfit.theory.planning`). Where ψ is below 1.5, or nμ below 60, nothing but a number's mean can
be learned, and of a label nothing but its share where nμ is below 40, or below 3.5 for each column:
the model is that alone (`blurfit.theory.planning.mean_alone`), a mean as `mean_posterior` says, a
share under a prior that is even from 0 to 1. Public facts alone decide this (`reading`).

**Linear Bayes** (`linear_bayes`) gives the coefficients of least expected squared error that are
linear in the blurred Σzy. With A = E[zzᵀ] denoised (`blurfit.learning.denoise`), t = Σzy/n and the
true θ, the blurred sums say

    t = Aθ + (noise of t) + (noise of A)·θ + sampling error,

so with a prior θ ~ (0, P) the best linear reading of t is θ̂ = PA·T⁻¹t, where

    T = APA + k·E[EΘE] + Var(t) + σ²_res·A/n,      Θ = E[θθᵀ | t],

k the share of the noise in A that denoising left, and Θ found by three passes from P.

The prior says that the centred features explain a share ρ of the target's variance yy in equal
parts: variance ρ·yy/(p·d_j) for each coefficient, d_j the variance of its column, and 0.36b² for
the target at the features' means. ρ itself is unknown: twelve points from 0.003 to 1 with prior
∝ √ρ, of a label times its variance (`_unevenness`), weighted by how probable they make t. Choices,
not derivations: 0.36, √ρ, the prior share 0.3 ± 0.25 of the largest possible yy, and residual
variance of at least a fifth of yy.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf
from scipy.special import ndtr

from blurfit.data import FloatArray
from blurfit.learning.denoise import (
    Denoised,
    denoise,
    largest_variance,
    variance_posterior,
)
from blurfit.learning.sums import Noise, Submodel
from blurfit.theory import planning
from blurfit.theory.moments import sensitivity

Reading = Literal["linear-bayes", "mean"]

_EXPLAINED = np.geomspace(0.003, 1.0, 12)
_PASSES = 3
_MANY, _FAR = 100, 21.0  # entries from which it is worth a look; nats: less probable by 2⁻³⁰
_MEAN = 0.36  # the prior variance of the target at the features' means


@dataclass(frozen=True, eq=False)
class Shrunk:
    """A model that shrinkage found: `theta` in z-space, `coefficients` of (1, v), the constant
    first.

    `explained` is the posterior mean of the share of variance that the features explain, and
    `variance` the target's own in z-space; `features` are the denoised moments, for later waves.
    """

    theta: FloatArray
    coefficients: FloatArray
    explained: float
    variance: float
    features: Denoised


def linear_bayes(sums: Submodel) -> Shrunk:
    """Fit the linear Bayes model of one target: deterministic, by a few dozen solves."""
    features = denoise(sums)
    gram, cross = features.gram(sums.constant), sums.cross / sums.count
    variance = target_variance(sums)
    shares = _EXPLAINED * _unevenness(sums, variance)
    of_gram = sums.feature_noise
    weights, theta, _ = read_linearly(
        prior_of(sums, features, variance),
        shares,
        gram,
        cross,
        sums.noise.variance[:-1, -1] / sums.count**2,
        variance * np.maximum(1 - shares, 0.2) / sums.count,
        lambda second: _noise_of_gram(of_gram, features.kept / sums.count**2, second),
        np.log(_EXPLAINED) / 2,
    )
    found = weights @ theta
    return Shrunk(
        theta=found,
        coefficients=sums.in_columns(found),
        explained=float(weights @ shares),
        variance=variance,
        features=features,
    )


def read_linearly(
    prior: tuple[FloatArray, FloatArray],
    factors: FloatArray,
    gram: FloatArray,
    seen: FloatArray,
    blur: FloatArray,
    left: FloatArray,
    noise_of_gram: Callable[[FloatArray], FloatArray],
    log_prior: FloatArray,
    *,
    with_second: bool = False,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weigh P = P₀ + factor·P₁ for each factor by how probable it is, with its θ̂ = PA·T⁻¹t.

    T = APA + diag(`blur`) + `left`·A + `noise_of_gram`(Θ), and P is as probable as `log_prior`
    says, times N(t; 0, T). The last that is returned is the weighted mean of Θ = E[θθᵀ | t] =
    θ̂θ̂ᵀ + P − XᵀX, if it is asked for, X = L⁻¹AP with T = LLᵀ. Of few entries all factors are read
    at once. Of many, Cholesky's L takes a third of the products that inverses would take, and one
    factor is looked at at a time: hardly more than one is probable. Beginning with the most
    probable of a first pass, which takes a tenth of the time, factors are looked at in both
    directions until one is less probable than the best by 2⁻³⁰.
    """
    some = prior[0].any(axis=1)  # of P₀ often one row, or none
    through = gram[:, some] @ prior[0][some], (prior[1] @ gram).T  # AP₀, AP₁
    around = gram[:, some] @ (prior[0][some] @ gram), through[1] @ gram
    size = len(gram)

    def read(place: int | slice, passes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """θ̂, Θ and how probable it is, of one factor, or a stack of all."""
        factor = np.asarray(factors[place])[..., None, None]
        second = own = prior[0] + factor * prior[1]
        reach = np.empty((*own.shape[:-2], size + 1, size)).swapaxes(-1, -2)  # as LAPACK has it
        reach[..., :-1], reach[..., -1] = through[0] + factor * through[1], seen
        fixed = around[0] + factor * around[1]
        fixed += np.asarray(left[place])[..., None, None] * gram
        fixed[..., range(size), range(size)] += blur
        for turn in range(passes):
            needed = passes > 1 and (with_second or turn < passes - 1)
            theta, explained, log = read_once(fixed + noise_of_gram(second), reach, needed)
            if explained is not None:
                second = theta[..., None] * theta[..., None, :]
                second += own
                second -= explained
        return theta, second, log + log_prior[place]

    if size <= _MANY:
        found, moments, logs = read(slice(None), _PASSES)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        return weights, found, np.tensordot(weights, moments, 1)
    start = int(np.argmax([read(place, 1)[-1] for place in range(len(factors))]))
    weights, found = np.zeros(len(factors)), np.zeros((len(factors), size))
    mean, top = np.zeros_like(gram), -math.inf
    for places in (range(start, len(factors)), range(start - 1, -1, -1)):
        for place in places:
            found[place], second, probable = read(place, _PASSES)
            log = float(probable)
            if log > top:  # weights are relative to the most probable so far
                weights, mean = weights * math.exp(top - log), mean * math.exp(top - log)
                top = log
            weights[place] = math.exp(log - top)
            if with_second:
                mean += weights[place] * second
            if log < top - _FAR:
                break
    total = math.fsum(weights)
    return weights / total, found, mean / total


def read_once(
    total: FloatArray, reach: FloatArray, needed: bool = True
) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    """Return PA·T⁻¹t, PA·T⁻¹·AP if it is needed, and log N(t; 0, T), from T and (AP | t), or of
    each of a stack.
    """
    lower, failed = dpotrf(total.T, lower=1, clean=0) if total.ndim == 2 else (total, True)
    if failed:  # where the first entry's noise is left out, T need not be positive definite
        _, volume = np.linalg.slogdet(total)
        both = reach.swapaxes(-1, -2) @ np.linalg.solve(total, reach)
        return both[..., :-1, -1], both[..., :-1, :-1], -(volume + both[..., -1, -1]) / 2
    volume = 2 * np.sum(np.log(np.diagonal(lower)))
    if not needed:
        short = dtrsm(1.0, lower, reach[:, -1:], lower=1)
        back = dtrsm(1.0, lower, short, lower=1, trans_a=1)
        return reach[:, :-1].T @ back[:, 0], None, -(volume + np.sum(short**2)) / 2
    short = dtrsm(1.0, lower, reach, lower=1)
    both = np.dot(short.T, short)
    return both[:-1, -1], both[:-1, :-1], -(volume + both[-1, -1]) / 2


def target_variance(sums: Submodel) -> float:
    """Return Var(by) for one record: known at its mean for signs and levels, shrunk for numbers."""
    b = sums.target.weight
    mean = sums.cross[0] / (sums.count * sums.constant)
    low = 0.0 if sums.target.kind == "level" else -b
    largest = max(largest_variance(sums.target, float(np.clip(mean, low, b))), 0.03 * b**2)
    if sums.target.kind == "sign":
        return largest
    if sums.target.kind == "level":
        return min(largest, b**2 / 4)
    seen = sums.square / sums.count - mean**2
    noise = sums.noise.variance[-1, -1] / sums.count**2
    return variance_posterior(seen, noise, largest)


def _unevenness(sums: Submodel, variance: float) -> float:
    """Return V, the variance of a label ±1: 1 if both are as frequent, 4q for a rare one; else 1.

    What is believed beforehand is how far log-odds spread, S, whatever the share q is. A line has
    slopes of V/2 of those of log-odds, so that it explains VS²/4 of the label's variance.
    """
    return variance / sums.target.weight**2 if sums.target.kind == "sign" else 1.0


def prior_of(sums: Submodel, features: Denoised, variance: float) -> tuple[FloatArray, FloatArray]:
    """Return P₀ and P₁ of P = P₀ + ρP₁: independent at the features' means, moved to z's origin."""
    c = sums.constant
    spread = variance / (len(features.mean) * features.variance)
    slopes = of_slopes(np.diag(spread), features.mean / c)
    at_mean = np.zeros_like(slopes)
    at_mean[0, 0] = _MEAN * (sums.target.weight / c) ** 2
    return at_mean, slopes


def of_slopes(covariance: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the covariance of a constant and slopes which leave the score at the mean as it is,
    from that of the slopes.
    """
    beside = -(covariance @ mean)
    return np.block([[-(mean @ beside), beside[None]], [beside[:, None], covariance]])


def _noise_of_gram(noise: Noise, share: float, second: FloatArray) -> FloatArray:
    """Return k·E[EΘE], its first entry 0, since the prior is on the target at the features' means.

    There t₀/c is the mean of the target, whatever the features' own means are.
    """
    found = share * noise.sandwich(second)
    found[..., 0, 0] = 0.0
    return found


def information(sums: Submodel) -> float:
    """Return ψ, with the μ that this noise gives to `replace` if the weights fill the unit ball.

    It is about the noise that is in the sums, not about the promise, so it is the same for every
    neighbouring relation. Infinite without noise.
    """
    if sums.deviation == 0:
        return math.inf
    mu = sensitivity(sums.constant, 1.0) / sums.deviation
    return planning.information(sums.count, mu, len(sums.features))


def reading(sums: Submodel) -> Reading:
    """Say which estimator `shrink` uses; it depends on N, s, c and the number of features only."""
    psi = information(sums)
    tasks: dict[str, planning.Task] = {"numeric": "number", "sign": "label"}
    if planning.mean_alone(tasks.get(sums.target.kind), psi, len(sums.features)):
        return "mean"
    return "linear-bayes"


def mean_within(seen: float, deviation: float, bound: float) -> float:
    """Return the posterior mean of what is as likely anywhere within ± a bound: never at its ends,
    so that no label is thought impossible.

    Under noise far wider than the bound it is bound·x/3 but for x²/15 of that, x = seen·bound/
    deviation², of which differences of densities would leave nothing but their rounding. It is
    computed of |seen|, as probabilities near 0 are told more exactly than those near 1.
    """
    if deviation == 0:
        return min(max(seen, -bound), bound)
    near = min(abs(seen), bound + 5 * deviation)
    if bound < 1e-3 * deviation:
        found = bound * (near / deviation) * (bound / deviation) / 3
    else:
        ends = (np.array([-bound, bound]) - near) / deviation
        densities, below = np.exp(-(ends**2) / 2) / math.sqrt(2 * math.pi), ndtr(ends)
        found = near + deviation * (densities[0] - densities[1]) / (below[1] - below[0])
    return math.copysign(float(found), seen)


def mean_posterior(sums: Submodel) -> tuple[float, float]:
    """Return mean and variance of a number's mean, times b, by its blurred sum and its square's.

    As |y| ≤ 1, mean m and standard deviation t are in the half disc of radius b, with a density ∝
    1/√(t·√(m² + t²)): a mean near the middle is likely, and so is a narrow target anywhere. Of the
    powers that were tried this came closest to both the mean that was seen and the middle (chosen).
    """
    b, n = sums.target.weight, sums.count
    seen, noise = sums.cross[0] / (n * sums.constant), sums.noise.variance[0, -1]
    deviation = math.sqrt(noise) / (n * sums.constant)
    if deviation == 0:
        return min(max(float(seen), -b), b), 0.0
    near = min(max(seen, -b), b)
    m = np.linspace(max(near - 6 * deviation, -b), min(near + 6 * deviation, b), 121)[:, None]
    t = b * (np.arange(60) + 0.5) / 60
    squares = m**2 + t**2
    unsure = sums.noise.variance[-1, -1] / n**2 + (b**2 / 30) ** 2  # no less than between two t
    log = -((seen - m) ** 2) / (2 * deviation**2)
    log = log - (sums.square / n - squares) ** 2 / (2 * unsure) - np.log(squares * t**2) / 4
    log = np.where(squares <= b**2, log, -math.inf)
    if (top := float(log.max())) == -math.inf:  # a mean at its bound, told to the last digits
        return float(near), deviation**2
    weight = np.exp(log - top).sum(axis=1)
    mean = float(weight @ m[:, 0] / weight.sum())
    return mean, float(weight @ (m[:, 0] - mean) ** 2 / weight.sum())


def shrink(sums: Submodel) -> Shrunk:
    """Fit the model of one target that is published: the same for the same release."""
    if reading(sums) == "mean":
        theta = np.zeros(len(sums.cross))
        seen = sums.cross[0] / (sums.count * sums.constant)  # of the target's mean, times b
        noise = sums.noise.variance[0, -1] / (sums.count * sums.constant) ** 2
        if sums.target.kind == "sign":
            mean = mean_within(seen, math.sqrt(noise), sums.target.weight)
        else:
            mean, _ = mean_posterior(sums)
        theta[0] = mean / sums.constant
        alone = theta, sums.in_columns(theta), 0.0
        return Shrunk(*alone, variance=target_variance(sums), features=denoise(sums))
    return linear_bayes(sums)
