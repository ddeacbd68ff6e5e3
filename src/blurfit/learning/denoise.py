"""Second moments of the features, read with all that is known about their noise.

The predictor of least posterior expected squared error is E[Σzzᵀ | S]⁻¹ E[Σzy | S]: denoise the
moments, then solve without a penalty. Here is the first half, by linear Bayes: each mean, variance
and covariance is shrunk toward what it is without any data, as far as its own noise asks.

Everything is per record, in z-space, the constant left out: S stands for S/n and σ for s/n.

Derived: the range of a mean (|v| ≤ 1), the largest variance at a mean (Bhatia and Davis 2000:
q² − m² for v in [−q, q], m(q − m) for v in {0, q}), the variance of signs and levels at their
mean, each noise variance, and the form of the last step. Choices: the prior spread of means, of
variances as a share of the largest (0.35 ± 0.3), the range of the spread of correlations τ (0.07 to
0.39), and the strength of the last step; they were set with the American Community Survey in view.
"""

from dataclasses import dataclass

import numpy as np

from blurfit.arrays import BoolArray, FloatArray
from blurfit.learning.joint_sums import Submodel
from blurfit.theory.joint_form import JointColumn


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
        """E[zzᵀ], the constant first: the uncentred second moments."""
        found = np.empty((len(self.mean) + 1, len(self.mean) + 1))
        found[0, 0] = constant**2
        found[0, 1:] = found[1:, 0] = constant * self.mean
        found[1:, 1:] = self.covariance + np.outer(self.mean, self.mean)
        return found


def denoise(sums: Submodel) -> Denoised:
    """The features' means and covariance by linear Bayes, positive definite by a soft floor."""
    gram = sums.gram / sums.count
    variance = sums.feature_noise.variance / sums.count**2
    weights = sums.scale[1:]
    noise_of_mean = variance[0, 1:] / sums.constant**2
    mean, largest = _means(sums, gram, noise_of_mean)
    spread = np.empty(len(mean))
    for j, column in enumerate(sums.features):
        floor = least_variance(column)
        if column.kind == "numeric":
            noise = variance[j + 1, j + 1] + 4 * mean[j] ** 2 * noise_of_mean[j]
            seen = gram[j + 1, j + 1] - mean[j] ** 2
            found = shrunk(seen, noise, 0.35 * largest[j], (0.3 * largest[j]) ** 2)
            spread[j] = min(max(found, floor), largest[j])
        else:
            spread[j] = max(largest[j], floor)
    pairs = _pairs(sums.features)
    covariance, kept = _covariances(pairs, gram, variance, mean, spread, noise_of_mean)
    # Levels of one question alone have no blurred covariances, but shares with noise.
    noises = variance[1:, 1:][pairs] if pairs.any() else np.diag(variance)[1:]
    free = 2 * np.median(noises) if len(mean) > 1 else 0.0
    if free:
        covariance = soft_floor(covariance, len(weights) * kept / 4 * free)
    return Denoised(mean, spread, covariance, kept)


def soft_floor(covariance: FloatArray, strength: float) -> FloatArray:
    """Each eigenvalue λ becomes (λ + √(λ² + 4α))/2 > 0: nearly λ where it is large.

    It is the most probable matrix under the prior density ∝ det(C)^k if each eigenvalue is seen
    with Gaussian noise of variance v, with α = kv: maximise k·log x − (x − λ)²/2v.
    """
    values, vectors = np.linalg.eigh(covariance)
    raised = (values + np.sqrt(values**2 + 4 * strength)) / 2
    found: FloatArray = (vectors * raised) @ vectors.T
    return found


def shrunk(seen: float, noise: float, prior: float, spread: float) -> float:
    """The posterior mean of a number with prior N(prior, spread), seen with noise variance."""
    return float((spread * seen + noise * prior) / (spread + noise))


def largest_variance(column: JointColumn, mean: float) -> float:
    """What the variance of a column in z-space is at most at this mean; exact but for numbers."""
    q = column.weight
    if column.kind == "level":
        return mean * (q - mean)
    return q**2 - mean**2


def least_variance(column: JointColumn) -> float:
    """A floor, so that a constant column is never divided by: that of a share of half a percent."""
    return (0.005 if column.kind == "level" else 0.02) * column.weight**2


def _means(sums: Submodel, gram: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means: prior sd q/2 around 0; for levels that of a uniform law on the K shares."""
    sizes: dict[str | None, int] = {}
    for column in sums.features:
        sizes[column.group] = sizes.get(column.group, 0) + 1
    mean, largest = np.empty(len(noise)), np.empty(len(noise))
    for j, column in enumerate(sums.features):
        q, seen = column.weight, gram[0, j + 1] / sums.constant
        if column.kind == "level":
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
    return shrunk_pairs(covariance, noise, spread, pairs, least=0.005)


def shrunk_pairs(
    seen: FloatArray, noise: FloatArray, spread: FloatArray, pairs: BoolArray, *, least: float
) -> tuple[FloatArray, float]:
    """Entries `pairs` of a matrix with the diagonal d, each shrunk by τ²d_id_j/(τ²d_id_j + its
    noise), and the mean of these factors; τ² by moments, from `least` to 0.15.
    """
    scale = np.outer(spread, spread)
    weight = (noise + 0.04 * scale) ** -2 * pairs
    excess = float(np.sum(weight * scale * (seen**2 - noise)))
    common = np.clip(excess / float(np.sum(weight * scale**2)), least, 0.15)
    factor = common * scale / (common * scale + noise)
    found = np.where(pairs, seen * factor, seen)
    np.fill_diagonal(found, spread)
    return found, float(factor[pairs].mean())


def _pairs(features: tuple[JointColumn, ...]) -> BoolArray:
    """Which entries are blurred covariances: not the diagonal, nor two levels of one group."""
    groups = np.array([column.group or f"\0{j}" for j, column in enumerate(features)])
    found: BoolArray = groups[:, None] != groups[None, :]
    return found
