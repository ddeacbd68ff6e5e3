"""What a Gaussian sketch tells: k rows of random mixtures of all records.

A sketch SZ + √ν·N (S, N standard normal, k rows) has rows N(0, ZᵀZ + νI): it is as private as the
covariance hides one record. Let A and B be the covariances under two neighbouring tables, ‖z‖² ≤
r², λ_min(A) ≥ γ, and s = r²/γ. Then A^{−½}BA^{−½} = I − uuᵀ + vvᵀ with ‖u‖², ‖v‖² ≤ s, which has at
most one eigenvalue below 1, ≥ 1 − s, and one above, ≤ 1 + s:

| neighbours | the sketch can tell no more than kT draws of | |
| --- | --- | --- |
| zero-out | N(0, 1) from N(0, 1 − s), or N(0, 1) from N(0, 1 + s) | the record is in A, or in B |
| replace | both at once, independent | |

(A pair with a smaller s follows from one with a larger s by adding noise to both.) For one such
pair, N(0, 1) against N(0, b), the log-ratio of m draws is L = (m/2)·ln b + ½(1/b − 1)·χ²_m, so
everything that is released, sketches and Gaussians that are together μ-GDP, keeps exactly

    δ(ε) = E[h(ε − L)],   h the Gaussian profile of μ, continued to negative ε:
    h(e) = 1 − e^e + e^e·h(−e),

an integral over χ² (over two of them for "replace"): `delta_kept`. Lev et al. 2025 (arXiv
2505.24603) bound it by Rényi divergences, D_α = k·(α ln b − ln(α(b − 1) + 1))/(2(α − 1)) for each
pair, and convert: `renyi_gamma`.

**λ_min(A) ≥ γ** is arranged by a noisy eigenvalue, λ̃ = max(0, λ_min(ZᵀZ) + σ_λ(z − τ)), released
with σ_λ = r²·γ/√k, and ν = max(0, γ − λ̃): it fails if z > τ, which costs Φ(−τ) of δ. One person
moves λ_min by at most r², under both relations.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import chi2

from blurfit.arrays import FloatArray
from blurfit.theory.guarantees import Neighbours

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(240)
_TAIL = 1e-17  # of χ², which is left out of the integral and added to δ
_ORDERS = np.geomspace(1e-4, 1e6, 2000)  # α − 1
_TOLERANCE = 1e-7  # of a logarithm, to the safe side


def profile(mu: float, epsilon: FloatArray) -> FloatArray:
    """h: the Gaussian profile δ(ε; μ), for negative ε too."""
    e = np.abs(epsilon)
    if mu == 0:
        upper = np.zeros_like(e)
    else:
        upper = ndtr(mu / 2 - e / mu) - np.exp(e + log_ndtr(-mu / 2 - e / mu))
    lower = np.exp(-e)
    return np.maximum(0.0, np.where(epsilon >= 0, upper, 1 - lower + lower * upper))


def _losses(draws: int, ratio: float) -> tuple[FloatArray, FloatArray]:
    """Values of L for N(0, 1) against N(0, ratio), and their probabilities."""
    low, high = chi2.ppf(_TAIL, draws), chi2.isf(_TAIL, draws)
    x = low + (high - low) * (_NODES + 1) / 2
    weights = (high - low) / 2 * _WEIGHTS * chi2.pdf(x, draws)
    return draws / 2 * math.log(ratio) + (1 / ratio - 1) / 2 * x, weights


def delta_kept(
    epsilon: float, *, share: float, draws: int, mu: float, neighbours: Neighbours
) -> float:
    """δ at ε of `draws` = kT mixtures with s = `share`, and Gaussians that are μ-GDP together."""
    if share >= 1:
        return 1.0
    pairs = [_losses(draws, 1 - share), _losses(draws, 1 + share)]
    if neighbours == "zero-out":
        found = max(float(weights @ profile(mu, epsilon - loss)) for loss, weights in pairs)
        return min(1.0, found + 2 * _TAIL)
    (first, p), (second, q) = pairs
    whole = profile(mu, epsilon - first[:, None] - second[None, :])
    return min(1.0, float(p @ whole @ q) + 4 * _TAIL)


def renyi_epsilon(
    share: float, *, mixtures: int, sketches: int, delta: float, neighbours: Neighbours
) -> float:
    """ε at δ of the sketches, by Rényi divergences, as published: T·D_α plus the conversion."""
    alpha = 1 + _ORDERS[(1 + _ORDERS) * share < 1]
    if not len(alpha):
        return math.inf
    ratios = (1 - share,) if neighbours == "zero-out" else (1 - share, 1 + share)
    divergence = sum(
        mixtures * (alpha * np.log(b) - np.log1p(alpha * (b - 1))) / (2 * (alpha - 1))
        for b in ratios
    )
    conversion = (math.log(1 / delta) - np.log(alpha)) / (alpha - 1) + np.log1p(-1 / alpha)
    return float(np.min(sketches * divergence + conversion))


@lru_cache(maxsize=1024)
def renyi_gamma(
    epsilon: float,
    delta: float,
    *,
    square: float,
    mixtures: int,
    sketches: int,
    neighbours: Neighbours,
) -> float:
    """γ as published: Rényi for the sketches and √(2 ln(1.25/δ'))·√k/γ for λ̃, δ' = δ/3 for each of
    the two and for λ̃'s failure.
    """

    def spent(gamma: float) -> float:
        classical = math.sqrt(2 * math.log(3.75 / delta) * mixtures) / gamma
        share = square / gamma
        found = renyi_epsilon(
            share, mixtures=mixtures, sketches=sketches, delta=delta / 3, neighbours=neighbours
        )
        return found + classical

    return least(lambda gamma: spent(gamma) <= epsilon, square * math.sqrt(mixtures) / epsilon)


def least(enough: Callable[[float], bool], guess: float) -> float:
    """The least value that is enough, for a condition that holds from some value on; never less."""
    high = guess
    while not enough(high):
        high *= 2
    low = high / 2
    while enough(low):
        low, high = low / 2, low
    low, high = math.log(low), math.log(high)
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


def lift_of(
    gram: FloatArray,
    gamma: float,
    *,
    square: float,
    count: int,
    tail: float,
    generator: np.random.Generator,
) -> float:
    """ν: what is added to the covariance, after one look at the smallest eigenvalue."""
    deviation = square * gamma / math.sqrt(count)
    lowest = float(np.linalg.eigvalsh(gram)[0])
    seen = max(0.0, lowest + deviation * (float(generator.standard_normal()) - tail))
    return max(0.0, gamma - seen)


def sketch(gram: FloatArray, lift: float, count: int, generator: np.random.Generator) -> FloatArray:
    """k rows N(0, ZᵀZ + νI): the distribution of SZ + √ν·N, without passing over the records."""
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0) + lift)
    return np.asarray(generator.standard_normal((count, len(gram))) @ root.T)
