"""Second moments read out of blurred joint sums: denoised for a model, or with errors for a table.

**Denoising the features.** The predictor of least posterior expected squared error is E[Σzzᵀ | S]⁻¹
E[Σzy | S]: denoise the moments, then solve without a penalty. Here is the first half, by linear
Bayes: each mean, variance and covariance is shrunk toward what it is without any data, as far as
its own noise asks.

Everything is per record, in z-space, the constant left out: S stands for S/n and σ for s/n.

Derived: the range of a mean (|v| ≤ 1), the largest variance at a mean (Bhatia and Davis 2000:
q² − m² for v in [−q, q], m(q − m) for v in {0, q}), the variance of signs and levels at their
mean, each noise variance, and the form of the last step. No floor
and no prior stays as the noise vanishes: a variance has the prior density ∝ d^(−1/2), which has no
scale. Choices: the prior spread of means, the range of the spread of correlations τ (0.03 to
0.39), and the strength of the last step; they were set with the American Community Survey in view.

**Correlations and principal components**, and what the noise leaves of them. Per person, in units
of the columns v: the mean is m_j = S_0j/(Nc·ω_j), a covariance C_ij = S_ij/(N ω_iω_j) − m_im_j. The
noise on S_0j is independent of that on S_ij, so C_ij is unbiased off the diagonal, and its variance
is V_ij + m_i²V_0j + m_j²V_0i; on the diagonal E[m_j²] is too large by V_0j, which is added back. A
correlation r = C_ij/√(d_id_j) then errs, to first order, by

    Var r = Var C_ij/(d_id_j) + r²/4·(Var d_i/d_i² + Var d_j/d_j²) + (1 − r²)²/N,

the last term for who happened to take part. Where a variance is not above its own noise, the
column's correlations are not a number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf

from blurfit.data import BoolArray, FloatArray
from blurfit.errors import InfeasibleError, optional, whole
from blurfit.learning.sums import JointSums, Submodel
from blurfit.theory.forms import JointColumn

LEAST_VARIANCE = 1e-9  # of the largest: what rounding leaves of a constant column


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
class Correlations:
    """r of each pair of columns, and its standard error; nan where the noise drowns a column."""

    names: tuple[str, ...]
    values: FloatArray
    standard_errors: FloatArray

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each pair: its correlation, and its error."""
        i, j = np.triu_indices(len(self.names), 1)
        names = np.array(self.names, dtype=object)
        columns = {"one": names[i], "other": names[j], "estimate": self.values[i, j]}
        errors = {"standard_error": self.standard_errors[i, j]}
        return optional("pandas").DataFrame(columns | errors)

    def __str__(self) -> str:
        return _table(self.names, self.names, self.values)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True, eq=False)
class Components:
    """Directions in which the standardised columns differ most.

    `variances` are eigenvalues of the correlation matrix, `directions` their vectors, one a row.
    Eigenvalues within `noise` of 1 may be the work of the noise alone: it is the edge of the
    spectrum that the noise on the correlations would have by itself (semicircle, 2·sd·√k).
    """

    names: tuple[str, ...]
    variances: FloatArray
    directions: FloatArray
    noise: float

    @property
    def shares(self) -> FloatArray:
        """Of the total variance."""
        found: FloatArray = self.variances / len(self.names)
        return found

    def __str__(self) -> str:
        heads = [f"{share:.1%}" for share in self.shares]
        return _table(self.names, heads, self.directions.T)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _covariances_of(sums: JointSums) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the covariances of the columns v, the variance that the noise left in each, and in
    those on the diagonal.
    """
    weights = np.array([sums.constant, *(column.weight for column in sums.columns)])
    both = sums.count * np.outer(weights, weights)
    matrix, variance = sums.matrix / both, sums.noise.variance / both**2
    mean, of_mean = matrix[0, 1:], variance[0, 1:]
    covariance = matrix[1:, 1:] - np.outer(mean, mean) + np.diag(of_mean)
    product = np.outer(mean**2, of_mean)
    noise = variance[1:, 1:] + product + product.T
    return covariance, noise, np.diag(variance)[1:] + 4 * mean**2 * of_mean


def spreads(sums: JointSums) -> tuple[FloatArray, FloatArray]:
    """Return the variance of each column v, and what the noise adds to the variance of that."""
    covariance, _, of_spread = _covariances_of(sums)
    return np.diag(covariance), of_spread


def correlations(sums: JointSums) -> Correlations:
    """Return the correlations of all columns of a release."""
    covariance, noise, of_spread = _covariances_of(sums)
    spread = np.diag(covariance)
    clear = spread > np.sqrt(of_spread)
    scale = np.where(clear, spread, np.nan)
    with np.errstate(invalid="ignore"):
        found = np.clip(covariance / np.sqrt(np.outer(scale, scale)), -1.0, 1.0)
        relative = of_spread / scale**2
        errors = noise / np.outer(scale, scale)
        errors += found**2 / 4 * (relative[:, None] + relative[None, :])
        errors += (1 - found**2) ** 2 / sums.count
    np.fill_diagonal(found, np.where(clear, 1.0, np.nan))
    np.fill_diagonal(errors, np.where(clear, 0.0, np.nan))
    return Correlations(tuple(column.name for column in sums.columns), found, np.sqrt(errors))


def components(sums: JointSums, count: int | None = None) -> Components:
    """Return the first few principal components of the correlations, or all."""
    found = correlations(sums)
    drowned = [
        name for name, row in zip(found.names, found.values, strict=True) if np.isnan(row).all()
    ]
    if drowned:
        raise InfeasibleError(
            f"The noise is larger than the spread of {drowned}: principal components need every "
            "column's. Collect more records, or allow a larger epsilon."
        )
    size = len(found.names)
    most = size if count is None else count
    whole(count=most)
    values, vectors = np.linalg.eigh(found.values)
    order = np.argsort(values)[::-1][:most]
    beside = ~np.eye(size, dtype=bool)
    noise = float(np.sqrt(np.mean(found.standard_errors[beside] ** 2))) if size > 1 else 0.0
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(size)])
    return Components(
        found.names,
        np.maximum(values[order], 0.0),
        np.ascontiguousarray((vectors * signs).T[order]),
        2 * noise * float(np.sqrt(size)),
    )


def _table(rows: Sequence[str], heads: Sequence[str], values: FloatArray) -> str:
    first = max(map(len, rows), default=0)
    widths = [max(len(head), 6) for head in heads]
    lines = [" " * first + "".join(f"  {h:>{w}}" for h, w in zip(heads, widths, strict=True))]
    for name, line in zip(rows, values, strict=True):
        cells = "".join(f"  {value:>{w}.2f}" for value, w in zip(line, widths, strict=True))
        lines.append(f"{name:<{first}}{cells}")
    return "\n".join(lines)
