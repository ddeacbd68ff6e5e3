"""Shrinkage: models of least expected squared error, from blurred sums.

**Which reading** (`shrink`) is decided by public facts alone, by ψ = nμ/p^1.5
(`blurfit.theory.planning`): the mean or share alone where nothing else can be learned
(`planning.mean_alone`), else linear Bayes.

**Linear Bayes** (`linear_bayes`, `bayes_step`). With A = E[zzᵀ] denoised, t = Σzy/n, the true θ and
a prior θ ~ (0, P), the blurred sums say t = Aθ + (noise of t) + (noise of A)·θ + sampling error, so
the best linear reading of t is θ̂ = PA·T⁻¹t, where

    T = APA + k·E[EΘE] + Var(t) + σ²_res·A/n,      Θ = E[θθᵀ | t],

k the share of the noise in A that denoising left, and Θ found by three passes from P. The prior of
a first model: features explain a share ρ of the target's variance, in equal parts, ρ unknown and
weighted by how probable it makes t; but an answer, rare as it may be, changes the target by no
more than half its range, as a deviation (`prior_of`). That of a wave's step θ: the covariance of
the last model's error, up to a factor between 1/16 and 16 that is weighted alike. So where noise is
larger than what is left to learn, the last model stays.

**Denoising** (`denoise`, `denoised`) shrinks each mean, variance and covariance toward its value
without data, as far as its own noise asks. Ranges of means and variances are exact (Bhatia and
Davis 2000: q² − m² for v in [−q, q], m(q − m) for v in {0, q}); a variance has the prior density ∝
d^(−1/2); pairs are shrunk by moments; last comes `soft_floor`. No floor and no prior stays as the
noise vanishes. Of a wave's quadratic the features' diagonal is shrunk toward its mean.

Priors and ranges are choices, set with the American Community Survey in view.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
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


Reading = Literal["linear-bayes", "mean"]

_EXPLAINED = np.geomspace(0.003, 1.0, 12)
_PASSES = 3
_MANY, _FAR = 100, 21.0  # entries from which it is worth a look; nats: less probable by 2⁻³⁰
_MEAN = 0.36  # the prior variance of the target at the features' means


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
        largest[j] = max(largest_variance(column, mean[j]), LEAST_VARIANCE * q**2)
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
    """Return P₀ and P₁ of P = P₀ + ρP₁: independent at the features' means, moved to z's origin.

    With equal parts of the variance, a rare answer could change the target by more than its bounds
    allow. So a unit of a column that is no number changes it by half its range, as a deviation.
    """
    c = sums.constant
    spread = variance / (len(features.mean) * features.variance)
    half = sums.target.weight / (2 if sums.target.is_share else 1)
    for j, column in enumerate(sums.features):
        if column.kind != "numeric":
            spread[j] = min(spread[j], (half / column.weight) ** 2)
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
    """

    count: int
    gram: FloatArray
    linear: FloatArray
    noise: Noise
    linear_variance: float
    curvature: float
    dispersion: float


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
    spread = _diagonal(np.diagonal(seen), np.diagonal(noise), sums.curvature)
    pairs = ~np.eye(len(seen), dtype=bool)
    gram, kept = shrunk_pairs(seen, noise, spread, pairs)
    free = 2 * float(np.median(noise[pairs]))
    return soft_floor(gram, len(seen) * kept / 4 * free), kept


def _diagonal(seen: FloatArray, noise: FloatArray, curvature: float) -> FloatArray:
    """Keep a constant's own entry if it stands above its noise; shrink the features' toward their
    mean.
    """
    found, rest = np.array(seen), slice(1, None)
    features, of_each = seen[rest], float(noise[rest].mean())
    of_mean = of_each / len(features)
    prior = (0.3 * curvature) ** 2
    mean = (prior * float(features.mean()) + of_mean * curvature) / (prior + of_mean)
    mean = max(mean, 0.1 * curvature)
    between = max(float(np.var(features)) - of_each, (0.1 * mean) ** 2)
    found[rest] = mean + between / (between + of_each) * (features - mean)
    found[rest] = np.maximum(found[rest], min(0.1 * mean, math.sqrt(of_each)))  # none above noise
    found[0] = max(seen[0], 3 * np.sqrt(noise[0]), 1e-3 * mean)
    return found
