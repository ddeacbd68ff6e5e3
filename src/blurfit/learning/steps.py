"""Steps: what blurred sums of a quadratic say of its least point, by linear Bayes.

A later wave's sums are those of a quadratic ½wᵀAw − t·w in coordinates that earlier waves made
nearly white (`coordinates`): squared loss of the residual (`ResidualMap`), or Newton's quadratic
(`NewtonMap`). Per record,

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
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtri

from blurfit.data import FloatArray
from blurfit.learning.denoise import shrunk_pairs, soft_floor
from blurfit.learning.shrinkage import read_linearly
from blurfit.learning.sums import Noise
from blurfit.theory.maps import ResidualMap, WaveMap

_FACTORS = np.geomspace(1 / 16, 16, 9)


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


def start_of(chart: WaveMap) -> FloatArray:
    """Return the coefficients that the map announced, the constant first."""
    return np.array([chart.whitening.intercept, *chart.whitening.coefficients])


def undone(lower: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangle."""
    found, _ = dtrtri(lower, lower=1)
    return np.ascontiguousarray(found)


def coordinates(chart: WaveMap) -> FloatArray:
    """Return J with θ = J·(β₀, β): the step that a change of the coefficients is, the constant
    first.
    It is an upper triangle.

    β₀ + β·v = (β₀ + β·m) + (W⁻ᵀβ)·f, each divided by what 1 and f are multiplied by in the chart.
    """
    white = chart.whitening
    found = np.eye(1 + white.dimension)
    found[0, 1:] = white.mean
    found[1:, 1:] = undone(white.matrix).T
    if isinstance(chart, ResidualMap):
        unit = chart.target_scale / chart.scale
        found[0] *= unit / chart.constant
        found[1:] *= unit / chart.feature_scale
    else:
        of_features, constant = chart.scale
        found[0] /= constant
        found[1:] /= of_features
    return found
