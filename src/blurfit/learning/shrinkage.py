"""Shrinkage: models of least expected squared error, from blurred sums.

**Which reading** (`shrink`) is decided by public facts alone, by ψ = nμ/p^1.5
(`blurfit.theory.planning`): the mean or share alone where nothing else can be learned
(`planning.mean_alone`); the posterior mean below ψ = 40 and up to 32 coefficients; else linear
Bayes. (40 was chosen: both are equal between 20 and 60.)

**Linear Bayes** (`linear_bayes`, `bayes_step`). With A = E[zzᵀ] denoised, t = Σzy/n, the true θ and
a prior θ ~ (0, P), the blurred sums say t = Aθ + (noise of t) + (noise of A)·θ + sampling error, so
the best linear reading of t is θ̂ = PA·T⁻¹t, where

    T = APA + k·E[EΘE] + Var(t) + σ²_res·A/n,      Θ = E[θθᵀ | t],

k the share of the noise in A that denoising left, and Θ found by three passes from P. The prior of
a first model: features explain a share ρ of the target's variance, in equal parts, ρ unknown and
weighted by how probable it makes t. That of a wave's step θ: the covariance of the last model's
error, up to a factor between 1/16 and 16 that is weighted alike. So where noise is larger than what
is left to learn, the last model stays.

**Denoising** (`denoise`, `denoised`) shrinks each mean, variance and covariance toward its value
without data, as far as its own noise asks. Ranges of means and variances are exact (Bhatia and
Davis 2000: q² − m² for v in [−q, q], m(q − m) for v in {0, q}); a variance has the prior density ∝
d^(−1/2); pairs are shrunk by moments; last comes `soft_floor`. No floor and no prior stays as the
noise vanishes. Of a wave's quadratic the features' diagonal is shrunk toward its mean.

**The posterior mean** (`posterior_mean`) is E[T_zz | S]⁻¹E[T_zy | S], of the moments T of (1, v, y)
under a prior that `_Moments` states, by Hamiltonian Monte Carlo (Neal 2011) from a generator that
the release seeds, so that everybody finds the same model.

Priors and ranges are choices, set with the American Community Survey in view.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf
from scipy.special import ndtr

from blurfit.data import BoolArray, FloatArray
from blurfit.learning.sums import Noise, Submodel
from blurfit.theory import planning
from blurfit.theory.forms import JointColumn
from blurfit.theory.moments import sensitivity

LEAST_VARIANCE = 1e-9  # of the largest: what rounding leaves of a constant column


Reading = Literal["linear-bayes", "posterior-mean", "mean"]

_EXPLAINED = np.geomspace(0.003, 1.0, 12)
_PASSES = 3
_MANY, _FAR = 100, 21.0  # entries from which it is worth a look; nats: less probable by 2⁻³⁰
_CHAINS, _WARM, _KEPT, _STEPS = 32, 30, 12, 8
_SHARE = 0.35
_MEAN = 0.36  # the prior variance of the target at the features' means
_ACCEPTED = 0.8
_BORDER = 40.0
_MOST_COEFFICIENTS = 32


_FACTORS = np.geomspace(1 / 16, 16, 9)


@dataclass(frozen=True, eq=False)
class Denoised:
    """Means and covariance of the features in z-space, and how much of the covariances was kept.

    `kept` is the mean shrinkage factor of the off-diagonal entries: 1 if the noise is negligible.
    Divide by the columns' weights for units of the columns themselves.
    """

    mean: FloatArray
    variance: FloatArray
    covariance: FloatArray
    kept: float

    def gram(self, constant: float) -> FloatArray:
        """Return E[zzᵀ], the constant first: the uncentred second moments."""
        found = np.empty((len(self.mean) + 1, len(self.mean) + 1))
        found[0, 0] = constant**2
        found[0, 1:] = found[1:, 0] = constant * self.mean
        found[1:, 1:] = self.covariance + np.outer(self.mean, self.mean)
        return found


def denoise(sums: Submodel) -> Denoised:
    """Return the features' means, and their covariance with a soft floor, by linear Bayes."""
    gram = sums.gram / sums.count
    variance = sums.feature_noise.variance / sums.count**2
    weights = sums.scale[1:]
    noise_of_mean = variance[0, 1:] / sums.constant**2
    mean, largest = _means(sums, gram, noise_of_mean)
    spread = np.empty(len(mean))
    for j, column in enumerate(sums.features):
        noise = variance[j + 1, j + 1] + 4 * mean[j] ** 2 * noise_of_mean[j]
        if column.kind in ("numeric", "hat"):
            seen = gram[j + 1, j + 1] - mean[j] ** 2
            spread[j] = variance_posterior(seen, noise, largest[j])
        else:
            spread[j] = max(largest[j], least_variance(column, noise_of_mean[j]))
    pairs = _pairs(sums.features)
    covariance, kept = _covariances(pairs, gram, variance, mean, spread, noise_of_mean)
    # Levels of one question alone have no blurred covariances, but shares with noise.
    noises = variance[1:, 1:][pairs] if pairs.any() else np.diag(variance)[1:]
    free = 2 * np.median(noises) if len(mean) > 1 else 0.0
    if free:
        covariance = soft_floor(covariance, len(weights) * kept / 4 * free)
    return Denoised(mean, spread, covariance, kept)


def soft_floor(covariance: FloatArray, strength: float) -> FloatArray:
    """Raise each eigenvalue λ to (λ + √(λ² + 4α))/2 > 0, which is nearly λ where it is large.

    It is the most probable matrix under the prior density ∝ det(C)^k if each eigenvalue is seen
    with Gaussian noise of variance v, with α = kv: maximise k·log x − (x − λ)²/2v.
    """
    if not strength:
        least = 1e-12 * np.trace(covariance) * np.eye(len(covariance))
        if not dpotrf(covariance - least)[1]:  # what is positive definite stays as it is
            return covariance
    values, vectors = np.linalg.eigh(covariance)
    raised = (values + np.sqrt(values**2 + 4 * strength)) / 2
    raised = np.maximum(raised, 1e-12 * raised[-1])  # without noise, what rounding leaves
    found: FloatArray = (vectors * raised) @ vectors.T
    return found


def shrunk(seen: float, noise: float, prior: float, spread: float) -> float:
    """Return the posterior mean of a number with prior N(prior, spread), seen with this noise."""
    return float((spread * seen + noise * prior) / (spread + noise))


def largest_variance(column: JointColumn, mean: float) -> float:
    """Bound the variance of a column in z-space at this mean; exact but for numbers and hats."""
    q = column.weight
    if column.is_share:
        return mean * (q - mean)
    return q**2 - mean**2


def least_variance(column: JointColumn, noise: float) -> float:
    """Return a floor, that of a share which the noise on the mean would hide, at most half a
    percent: a column that seems constant is never divided by.
    """
    of_mean = math.sqrt(noise)
    hidden = column.weight * of_mean * (1 if column.is_share else 2)
    most = (0.005 if column.is_share else 0.02) * column.weight**2
    return max(min(most, hidden), LEAST_VARIANCE * column.weight**2)


def variance_posterior(seen: float, noise: float, largest: float) -> float:
    """Return the posterior mean of a variance d in (0, B] under the density ∝ d^(−1/2).

    It has no scale, and no floor above the noise's own: with people enough a column of any width is
    read as it is. From 6 deviations on that is what was seen.
    """
    if largest > seen > 6 * math.sqrt(noise):
        return max(seen, LEAST_VARIANCE * largest)
    grid = largest * np.linspace(0.0025, 1.0, 400) ** 2  # even in √d, as the prior is
    log = -((seen - grid) ** 2) / (2 * max(noise, 1e-300))
    weight = np.exp(log - log.max())
    return float(weight @ grid / weight.sum())


def _means(sums: Submodel, gram: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means: prior sd q/2 around 0, for levels that of a uniform law on the K shares;
    and the largest variance at each.
    """
    sizes: dict[str | None, int] = {}
    for column in sums.features:
        sizes[column.group] = sizes.get(column.group, 0) + 1
    mean, largest = np.empty(len(noise)), np.empty(len(noise))
    for j, column in enumerate(sums.features):
        q, seen = column.weight, gram[0, j + 1] / sums.constant
        if column.is_share:
            levels = max(sizes[column.group], 2)
            share = 1 / levels
            prior, spread = q * share, q**2 * share * (1 - share) / (levels + 1)
            low, least = 0.0, 0.005 * q**2
        else:
            prior, spread, low, least = 0.0, q**2 / 4, -q, 0.05 * q**2
        mean[j] = min(max(shrunk(seen, noise[j], prior, spread), low), q)
        largest[j] = largest_variance(column, mean[j])
        if column.kind == "numeric":
            largest[j] = max(largest[j], least)
    return mean, largest


def _covariances(
    pairs: BoolArray,
    gram: FloatArray,
    variance: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    noise_of_mean: FloatArray,
) -> tuple[FloatArray, float]:
    covariance = gram[1:, 1:] - np.outer(mean, mean)
    if not pairs.any():
        np.fill_diagonal(covariance, spread)
        return covariance, 1.0
    of_product = np.outer(mean**2, noise_of_mean)
    noise = variance[1:, 1:] + of_product + of_product.T
    return shrunk_pairs(covariance, noise, spread, pairs)


def shrunk_pairs(
    seen: FloatArray, noise: FloatArray, spread: FloatArray, pairs: BoolArray
) -> tuple[FloatArray, float]:
    """Shrink the entries `pairs` of a matrix with diagonal d, each by τ²d_id_j/(τ²d_id_j + its
    noise), τ² by moments, from 0.001 to 0.15; return also the mean of these factors.
    """
    scale = np.outer(spread, spread)
    weight = (noise + 0.04 * scale) ** -2 * pairs
    excess = float(np.sum(weight * scale * (seen**2 - noise)))
    common = np.clip(excess / float(np.sum(weight * scale**2)), 0.001, 0.15)
    factor = common * scale / (common * scale + noise)
    found = np.where(pairs, seen * factor, seen)
    np.fill_diagonal(found, spread)
    return found, float(factor[pairs].mean())


def _pairs(features: tuple[JointColumn, ...]) -> BoolArray:
    """Tell which entries are blurred covariances: not the diagonal, nor two levels of one group."""
    groups = np.array([column.group or f"\0{j}" for j, column in enumerate(features)])
    found: BoolArray = groups[:, None] != groups[None, :]
    return found


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


def posterior_mean(sums: Submodel, start: Shrunk | None = None) -> Shrunk:
    """Fit the model of the posterior mean moments, in a fraction of a second for dozens of columns.

    Args:
        sums: One target and its features.
        start: Where the chains begin; linear Bayes if left out. Without noise it is the answer.
    """
    begin = linear_bayes(sums) if start is None else start
    if sums.deviation == 0:  # nothing to average over
        return begin
    law = _Moments(sums)
    generator = np.random.Generator(np.random.PCG64(_seed(sums)))
    moments = _sample(law, law.point(begin), generator)
    gram, cross = moments[:-1, :-1], moments[:-1, -1]
    coefficients = np.asarray(np.linalg.solve(gram, cross), dtype=np.float64)
    theta = coefficients * sums.target.weight / sums.scale
    variance = float(moments[-1, -1] - moments[0, -1] ** 2)
    centred = gram[1:, 1:] - np.outer(gram[0, 1:], gram[0, 1:])
    weights = sums.scale[1:]
    explained = float(coefficients[1:] @ centred @ coefficients[1:]) / variance
    covariance = centred * np.outer(weights, weights)
    return Shrunk(
        theta=theta,
        coefficients=coefficients,
        explained=min(explained, 1.0),
        variance=variance * sums.target.weight**2,
        features=type(begin.features)(
            mean=gram[0, 1:] * weights,
            variance=np.diag(covariance).copy(),
            covariance=covariance,
            kept=begin.features.kept,
        ),
    )


class _Moments:
    """The posterior density of the moments, in coordinates that are free: any vector is allowed.

    A point is (v̄, ȳ; log D; h; log τ; log σ_e; log of L's diagonal; L below it), one row per chain.

    WTW, but for the constant's row, is GGᵀ with G = W(Q | mean), Q the factor of the covariance
    and its target's row: one product gives the gap G·Gᵀ − S/n, a second the slope 2·gap·G/σ².
    """

    def __init__(self, sums: Submodel) -> None:
        self.p = p = len(sums.features)
        self.sums = sums
        self.weights = np.append(sums.scale, sums.target.weight)
        self.seen = sums.extended / sums.count
        self.precision = (sums.count / sums.deviation) ** 2
        self.freedom = p + 4
        self.lower = np.tril_indices(p, -1)
        below = len(self.lower[0])
        uneven = math.log(_unevenness(sums, target_variance(sums)))
        self.centre = np.concatenate(
            [
                np.zeros(p + 1),
                np.full(p, np.log(_SHARE) / 2),
                np.zeros(p),
                [np.log(0.5 / np.sqrt(p)) + uneven],
                [np.log(0.8) + uneven / 2 if sums.target.kind == "sign" else np.log(0.35)],
            ]
        )
        self.spread = np.concatenate(
            [np.full(p + 1, 0.6), np.full(p, 0.5), np.ones(p), [1.0], [0.5]]
        )
        self.degrees = self.freedom - np.arange(p)
        ends = np.cumsum([0, p + 1, p, p, 1, 1, p, below])
        self.size = int(ends[-1])
        parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.mean, self.log_scale, self.h, self.log_rate, self.log_left = parts[:5]
        self.log_diagonal, self.below = parts[5:]
        # L's entries below the diagonal are standard normal, those on it are told by `degrees`.
        self._centre = np.concatenate([self.centre, np.zeros(p + below)])
        self._inverse = np.concatenate([self.spread**-2.0, np.zeros(p), np.ones(below)])
        self._row = self.weights[1:-1] / np.sqrt(self.freedom)  # D is multiplied by it
        self._rate = np.sqrt(_SHARE) * self.weights[-1] / self.weights[1:-1]

    def point(self, begin: Shrunk) -> FloatArray:
        """Return the coordinates of a linear Bayes model."""
        p, weights = self.p, self.weights[1:-1]
        covariance = begin.features.covariance / np.outer(weights, weights)
        scale = np.sqrt(np.diag(covariance))
        factor = np.linalg.cholesky(covariance / np.outer(scale, scale)) * np.sqrt(self.freedom)
        mean = begin.features.mean / weights
        share = max(begin.explained, 0.02)
        rate = np.sqrt(share / p)
        h = np.clip(begin.coefficients[1:] * scale / np.sqrt(_SHARE) / rate, -3, 3)
        left = np.sqrt(max(1 - share, 0.1) * begin.variance) / self.weights[-1]
        return np.concatenate(
            [
                mean,
                [begin.coefficients[0] + mean @ begin.coefficients[1:]],
                np.log(scale),
                h,
                [np.log(rate)],
                [np.log(left)],
                np.log(np.diag(factor)),
                factor[self.lower],
            ]
        )

    def moments(self, x: FloatArray) -> FloatArray:
        """Return T of each chain."""
        factor = self._factor(x)[0]
        total = np.empty((len(x), self.p + 2, self.p + 2))
        total[:, 0, 0] = 1.0
        total[:, 0, 1:] = total[:, 1:, 0] = x[:, self.mean]
        both = np.outer(self.weights[1:], self.weights[1:])
        total[:, 1:, 1:] = factor @ factor.transpose(0, 2, 1) / both
        return total

    def energy(self, x: FloatArray) -> FloatArray:
        """Return −log density of each chain, up to a constant."""
        factor, *_ = self._factor(x)
        gap, of_means = self._gaps(factor)
        logs = x[:, self.log_diagonal]
        return np.asarray(
            self.precision * (np.sum(gap**2, axis=(1, 2)) / 2 + np.sum(of_means**2, axis=1))
            + (x - self._centre) ** 2 @ self._inverse / 2
            + np.sum(np.exp(2 * logs) / 2 - self.degrees * logs, axis=1)
        )

    def slope(self, x: FloatArray) -> FloatArray:
        """Return the gradient of the energy, by the rules of the matrix product."""
        p = self.p
        factor, scales, rates, diagonal = self._factor(x)
        gap, of_means = self._gaps(factor)
        push = (2 * self.precision) * (gap @ factor)
        push[:, :, -1] += (2 * self.precision * self.weights[0]) * of_means
        beta, of_target = rates * x[:, self.h], push[:, p, :p]
        features = factor[:, :p, :p]
        on_features = push[:, :p, :p] + beta[:, :, None] * of_target[:, None, :]
        on_beta = (features @ of_target[:, :, None])[:, :, 0]
        of_beta = on_beta * beta
        found = (x - self._centre) * self._inverse
        found[:, self.mean] += push[:, :, -1] * self.weights[1:]
        found[:, self.log_scale] += np.einsum("cjk,cjk->cj", on_features, features) - of_beta
        found[:, self.h] += on_beta * rates
        found[:, self.log_rate] += of_beta.sum(axis=1, keepdims=True)
        found[:, self.log_left] += push[:, p, p : p + 1] * factor[:, p, p : p + 1]
        on_lower = on_features * scales[:, :, None]
        each = np.arange(p)
        found[:, self.log_diagonal] = diagonal * (diagonal + on_lower[:, each, each]) - self.degrees
        found[:, self.below] += on_lower[:, self.lower[0], self.lower[1]]
        return np.asarray(found)

    def _factor(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return G, what L's rows are multiplied by, β_j/h_j, and L's diagonal, all in z-space."""
        p = self.p
        factor = np.zeros((len(x), p + 1, p + 2))
        each = np.arange(p)
        diagonal = np.exp(x[:, self.log_diagonal])
        factor[:, each, each] = diagonal
        factor[:, self.lower[0], self.lower[1]] = x[:, self.below]
        scales = np.exp(x[:, self.log_scale]) * self._row
        factor[:, :p] *= scales[:, :, None]
        rates = np.exp(x[:, self.log_rate] - x[:, self.log_scale]) * self._rate
        factor[:, p, :p] = ((rates * x[:, self.h])[:, None, :] @ factor[:, :p, :p])[:, 0]
        factor[:, p, p : p + 1] = self.weights[-1] * np.exp(x[:, self.log_left])
        factor[:, :, -1] = x[:, self.mean] * self.weights[1:]
        return factor, scales, rates, diagonal

    def _gaps(self, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return WTW − S/n: of all but the constant's row, and of that row, which counts twice."""
        gap = factor @ factor.transpose(0, 2, 1) - self.seen[1:, 1:]
        return gap, self.weights[0] * factor[:, :, -1] - self.seen[0, 1:]


def _sample(law: _Moments, start: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Estimate E[T | S] by Hamiltonian Monte Carlo."""
    x = start + 0.02 * generator.normal(size=(_CHAINS, law.size))
    value, slope = law.energy(x), law.slope(x)
    scale, step = np.ones(law.size), 0.1 / law.size**0.25
    seen: list[FloatArray] = []
    total = np.zeros((law.p + 2, law.p + 2))
    for turn in range(_WARM + _KEPT):
        moved, new_value, new_slope, gain = _move(law, x, slope, scale, step, generator)
        odds = np.where(np.isfinite(new_value), value - new_value + gain, -np.inf)
        taken = np.log(generator.uniform(size=_CHAINS)) < odds
        x = np.where(taken[:, None], moved, x)
        value = np.where(taken, new_value, value)
        slope = np.where(taken[:, None], new_slope, slope)
        if turn < _WARM:
            rate = float(np.mean(np.exp(np.minimum(odds, 0))))
            step *= np.exp((0.6 if turn < _WARM / 2 else 0.25) * (rate - _ACCEPTED))
            seen.append(x)
            if turn in (_WARM // 3, 2 * _WARM // 3):
                recent = np.concatenate(seen[len(seen) // 2 :])
                spread = recent.std(axis=0)
                new_scale = np.maximum(spread, 0.05 * np.median(spread))
                step *= float(np.median(scale / new_scale))
                scale = new_scale
        else:
            total += law.moments(x).mean(axis=0)
    return total / _KEPT


def _move(
    law: _Moments,
    x: FloatArray,
    slope: FloatArray,
    scale: FloatArray,
    step: float,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Follow a leapfrog path of random length; `gain` is the kinetic energy that was lost on it."""
    momentum = generator.normal(size=x.shape)
    before = np.sum(momentum**2, axis=1) / 2
    length = step * generator.uniform(0.8, 1.2) * scale
    with np.errstate(over="ignore", invalid="ignore"):  # a path that flies off is refused
        momentum = momentum - length / 2 * slope
        for place in range(_STEPS):
            x = x + length * momentum
            slope = law.slope(x)
            momentum = momentum - (length if place < _STEPS - 1 else length / 2) * slope
        return x, law.energy(x), slope, before - np.sum(momentum**2, axis=1) / 2


def _seed(sums: Submodel) -> int:
    """Return a seed that the release decides, by SHA-256 of its numbers."""
    numbers = np.concatenate([sums.extended.ravel(), sums.scale, [sums.count, sums.deviation]])
    return int.from_bytes(hashlib.sha256(numbers.astype("<f8").tobytes()).digest()[:16], "big")


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
    sampled = psi < _BORDER and len(sums.features) <= _MOST_COEFFICIENTS
    return "posterior-mean" if sampled else "linear-bayes"


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
    read = reading(sums)
    if read == "mean":
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
    found = linear_bayes(sums)
    return posterior_mean(sums, found) if read == "posterior-mean" else found


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
    gram, kept = denoised(sums)
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


def denoised(sums: StepSums) -> tuple[FloatArray, float]:
    """Return A for one record, positive definite, and the share of off-diagonal noise left."""
    seen = sums.gram / sums.count
    noise = sums.noise.variance / sums.count**2
    spread = _diagonal(np.diagonal(seen), np.diagonal(noise), sums.curvature, sums.constants)
    pairs = ~np.eye(len(seen), dtype=bool) & (noise > 0)  # two bands of one time are known to be 0
    gram, kept = shrunk_pairs(seen, noise, spread, pairs)
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
