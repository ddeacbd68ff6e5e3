"""Linear Bayes: the coefficients of least expected squared error, linear in the blurred Σzy.

With A = E[zzᵀ] denoised (`blurfit.learning.denoise`), t = Σzy/n and the true θ, the blurred sums
say

    t = Aθ + (noise of t) + (noise of A)·θ + sampling error,

so with a prior θ ~ (0, P) the best linear reading of t is θ̂ = PA·T⁻¹t, where

    T = APA + k·E[EΘE] + Var(t) + σ²_res·A/n,      Θ = E[θθᵀ | t],

k the share of the noise in A that denoising left, and Θ found by three passes from P.

The prior says that the centred features explain a share ρ of the target's variance yy in equal
parts: variance ρ·yy/(p·d_j) for each coefficient, d_j the variance of its column, and 0.36b² for
the target at the features' means. ρ itself is unknown: twelve points from 0.003 to 1 with prior
∝ √ρ, weighted by how probable they make t. Choices, not derivations: 0.36, √ρ, the prior share
0.3 ± 0.25 of the largest possible yy, and residual variance of at least a fifth of yy.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.learning.denoise import Denoised, denoise, largest_variance, shrunk
from blurfit.learning.joint_sums import Submodel

_EXPLAINED = np.geomspace(0.003, 1.0, 12)
_PASSES = 3


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
    """The linear Bayes model of one target: deterministic, in the time of a few dozen solves."""
    features = denoise(sums)
    gram, cross = features.gram(sums.constant), sums.cross / sums.count
    variance = target_variance(sums)
    prior = _prior(sums, features, variance)
    noise = sums.noise.variance[:-1, -1] / sums.count**2
    explained = _EXPLAINED[:, None, None]
    fixed = gram @ prior @ gram + np.diag(noise)
    fixed += variance * np.maximum(1 - explained, 0.2) * gram / sums.count
    weights, theta, _ = read_linearly(
        prior,
        gram,
        cross,
        fixed,
        lambda second: _noise_of_gram(sums, features, second),
        np.log(_EXPLAINED) / 2,
    )
    found = weights @ theta
    return Shrunk(
        theta=found,
        coefficients=sums.in_columns(found),
        explained=float(weights @ _EXPLAINED),
        variance=variance,
        features=features,
    )


def read_linearly(
    prior: FloatArray,
    gram: FloatArray,
    seen: FloatArray,
    fixed: FloatArray,
    noise_of_gram: Callable[[FloatArray], FloatArray],
    log_prior: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How probable each P of a stack is, with its θ̂ = PA·T⁻¹t and Θ = E[θθᵀ | t], by three passes.

    T = `fixed` + `noise_of_gram`(Θ), and P is as probable as `log_prior` says, times N(t; 0, T).
    """
    second, reach = prior, prior @ gram
    for _ in range(_PASSES):
        total = fixed + noise_of_gram(second)
        inverse = np.linalg.inv(total)
        gain = reach @ inverse
        theta = gain @ seen
        second = theta[:, :, None] * theta[:, None, :] + prior - gain @ gram @ prior
    _, volume = np.linalg.slogdet(total)
    distance = np.einsum("j,rjk,k->r", seen, inverse, seen)
    log = log_prior - (volume + distance) / 2
    weights = np.exp(log - log.max())
    return np.asarray(weights / math.fsum(weights)), theta, second


def target_variance(sums: Submodel) -> float:
    """Var(by) for one record: known at its mean for signs and levels, shrunk for numbers."""
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
    found = shrunk(seen, noise, 0.3 * largest, (0.25 * largest) ** 2)
    return float(np.clip(found, 0.01 * b**2, largest))


def _prior(sums: Submodel, features: Denoised, variance: float) -> FloatArray:
    """P for each ρ: independent at the features' means, moved to the origin of z."""
    c, size = sums.constant, len(features.mean) + 1
    move = np.eye(size)
    move[0, 0], move[0, 1:] = 1 / c, -features.mean / c
    spread = np.empty((len(_EXPLAINED), size))
    spread[:, 0] = 0.36 * sums.target.weight**2
    spread[:, 1:] = _EXPLAINED[:, None] * variance / (len(features.mean) * features.variance)
    found: FloatArray = (move * spread[:, None, :]) @ move.T
    return found


def _noise_of_gram(sums: Submodel, features: Denoised, second: FloatArray) -> FloatArray:
    """k·E[EΘE]; its first entry is 0, since the prior is on the target at the features' means.

    There t₀/c is the mean of the target, whatever the features' own means are.
    """
    found = features.kept / sums.count**2 * sums.feature_noise.sandwich(second)
    found[..., 0, 0] = 0.0
    return found
