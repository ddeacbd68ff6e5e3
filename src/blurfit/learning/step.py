"""A step from an announced model, by linear Bayes: what a later wave teaches.

A later wave's sums are those of a quadratic ½wᵀAw − t·w in coordinates that earlier waves made
nearly white: squared loss of the residual (`ResidualMap`), or Newton's quadratic (`NewtonMap`). Per
record,

    Ã = A + E,      t̃ = Aθ + e + sampling error,

θ being the step that is sought. As in `blurfit.learning.linear_bayes`, denoise A, then read t̃ with
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

from blurfit.arrays import FloatArray
from blurfit.learning.denoise import shrunk_pairs, soft_floor
from blurfit.learning.joint_sums import Noise
from blurfit.learning.linear_bayes import read_linearly

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
    """The step of least expected squared error, linear in the blurred Σp.

    `prior` is P, the covariance of the last model's error in the coordinates of the sums.
    """
    gram, kept = _denoised(sums)
    linear = sums.linear / sums.count
    priors = _FACTORS[:, None, None] * prior
    fixed = gram @ priors @ gram + (sums.linear_variance / sums.count**2) * np.eye(len(linear))
    fixed += sums.dispersion * gram / sums.count
    weights, theta, second = read_linearly(
        priors,
        gram,
        linear,
        fixed,
        lambda second: kept / sums.count**2 * sums.noise.sandwich(second),
        -(np.log(_FACTORS) ** 2) / 2,
    )
    found = weights @ theta
    spread = np.einsum("r,rjk->jk", weights, second) - np.outer(found, found)
    return Step(found, (spread + spread.T) / 2, gram, float(weights @ _FACTORS))


def _denoised(sums: StepSums) -> tuple[FloatArray, float]:
    """A for one record, positive definite, and how much of its off-diagonal noise is left."""
    seen = sums.gram / sums.count
    noise = sums.noise.variance / sums.count**2
    spread = _diagonal(np.diagonal(seen), np.diagonal(noise), sums.curvature)
    pairs = ~np.eye(len(seen), dtype=bool)
    gram, kept = shrunk_pairs(seen, noise, spread, pairs, least=0.001)
    free = 2 * float(np.median(noise[pairs]))
    return soft_floor(gram, len(seen) * kept / 4 * free), kept


def _diagonal(seen: FloatArray, noise: FloatArray, curvature: float) -> FloatArray:
    """The constant's own entry as it is, if it stands above its noise; the features' toward their
    mean.
    """
    found = np.array(seen)
    features, of_each = seen[1:], float(noise[1:].mean())
    of_mean = of_each / len(features)
    prior = (0.3 * curvature) ** 2
    mean = (prior * float(features.mean()) + of_mean * curvature) / (prior + of_mean)
    mean = max(mean, 0.1 * curvature)
    between = max(float(np.var(features)) - of_each, (0.1 * mean) ** 2)
    found[1:] = mean + between / (between + of_each) * (features - mean)
    found[1:] = np.maximum(found[1:], 0.1 * mean)
    found[0] = max(found[0], 3 * math.sqrt(noise[0]), 1e-3 * mean)
    return found
