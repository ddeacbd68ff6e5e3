"""Posterior mean: denoise all second moments together, by sampling what they may have been.

Where noise rules, it pays to read means, variances, covariances and the target's together, for they
come from one positive definite matrix. The model of the moments T of (1, v, y), per record::

    means         v̄_j, ȳ ~ N(0, 0.6²)
    covariance    C = D·LLᵀ·D/ν of the features: L lower triangular as Bartlett's for a Wishart law
                  of ν = p + 4 degrees of freedom, log D_j ~ N(½·log 0.35, ½²)
    target        cov(v, y) = Cβ, var(y) = βᵀCβ + σ_e², with β_j = τh_j·√0.35/D_j, h_j ~ N(0, 1),
                  log τ ~ N(log(½/√p), 1), log σ_e ~ N(log 0.35, ½²), for a sign N(log 0.8, ½²)
    what is seen  S/n = WTW + noise, exp(−‖S/n − WTW‖²_F/2σ²), the constant's own entry left out

and the model that is returned is E[T_zz | S]⁻¹E[T_zy | S], which has the least posterior expected
squared error. The numbers 0.6, 0.35, ½, p + 4 are choices, set with the American Community Survey
in view. Entries that are known exactly enter with the same σ: tighter would only slow the sampler.

Sampling is Hamiltonian Monte Carlo (Neal 2011) from the linear Bayes model: eight chains side by
side, step size by acceptance and scales of the parameters by their spread, both found in a warm-up.
It draws from a generator that is seeded by the release itself, so that the same release gives the
same model, and everybody can repeat it.
"""

import hashlib
from itertools import pairwise

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.learning.joint_sums import Submodel
from blurfit.learning.linear_bayes import Shrunk, linear_bayes

_CHAINS, _WARM, _KEPT, _STEPS = 8, 60, 80, 12
_SHARE = 0.35
_ROOT_SHARE = np.sqrt(_SHARE)
_ACCEPTED = 0.8


def posterior_mean(sums: Submodel, start: Shrunk | None = None) -> Shrunk:
    """The model of the posterior mean moments, in a fraction of a second for a few dozen columns.

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
    """

    def __init__(self, sums: Submodel) -> None:
        self.p = p = len(sums.features)
        self.sums = sums
        self.weights = np.append(sums.scale, sums.target.weight)
        self.seen = sums.extended / sums.count
        self.precision = (sums.count / sums.deviation) ** 2
        self.freedom = p + 4
        self.centre = np.concatenate(
            [
                np.zeros(p + 1),
                np.full(p, np.log(_SHARE) / 2),
                np.zeros(p),
                [np.log(0.5 / np.sqrt(p))],
                [np.log(0.8 if sums.target.kind == "sign" else 0.35)],
            ]
        )
        self.spread = np.concatenate(
            [np.full(p + 1, 0.6), np.full(p, 0.5), np.ones(p), [1.0], [0.5]]
        )
        self.degrees = self.freedom - np.arange(p)
        self.root = np.sqrt(self.freedom)
        self.both = np.outer(self.weights, self.weights)
        self.lower = np.tril_indices(p, -1)
        # where L's entries below its diagonal stand in matrices of p and of p + 1 columns, unrolled
        self.within = self.lower[0] * p + self.lower[1]
        self.places = self.lower[0] * (p + 1) + self.lower[1]
        ends = np.cumsum([0, p + 1, p, p, 1, 1, p, len(self.lower[0])])
        self.size = int(ends[-1])
        parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.mean, self.log_scale, self.h, self.log_rate, self.log_left = parts[:5]
        self.log_diagonal, self.below = parts[5:]
        self.prior = slice(0, len(self.centre))  # all but L, independent and Gaussian

    def point(self, begin: Shrunk) -> FloatArray:
        """The coordinates of a linear Bayes model."""
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

    def moments(self, x: FloatArray) -> tuple[FloatArray, ...]:
        """T and what it was made of, for each chain: Q, β, the means, D/√ν and β/h."""
        p, chains = self.p, len(x)
        mean = x[:, self.mean]
        # D/√ν, by which the rows of L are multiplied, and β_j/h_j = τ√0.35/D_j
        scales = np.exp(x[:, self.log_scale]) / self.root
        rates = np.exp(x[:, self.log_rate] - x[:, self.log_scale]) * _ROOT_SHARE
        factor = np.zeros((chains, p + 1, p + 1))
        entries = factor.reshape(chains, -1)
        entries[:, : p * (p + 1) : p + 2] = np.exp(x[:, self.log_diagonal])
        entries[:, self.places] = x[:, self.below]
        factor[:, :p] *= scales[:, :, None]
        beta = rates * x[:, self.h]
        factor[:, p, :p] = np.einsum("cj,cjk->ck", beta, factor[:, :p, :p])
        factor[:, p, p:] = np.exp(x[:, self.log_left])
        total = np.empty((chains, p + 2, p + 2))
        total[:, 0, 0] = 1.0
        total[:, 0, 1:] = total[:, 1:, 0] = mean
        total[:, 1:, 1:] = factor @ factor.transpose(0, 2, 1)
        total[:, 1:, 1:] += mean[:, :, None] * mean[:, None, :]
        return total, factor, beta, mean, scales, rates

    def energy(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """−log density and its gradient, for each chain: T = QQᵀ + mean·meanᵀ, differentiated by
        the rules of the matrix product.
        """
        p, add = self.p, np.add.reduce
        total, factor, beta, mean, scales, rates = self.moments(x)
        gap = total * self.both - self.seen
        gap[:, 0, 0] = 0.0
        standard = (x[:, self.prior] - self.centre) / self.spread
        log_diagonal, below = x[:, self.log_diagonal], x[:, self.below]
        squares = np.exp(2 * log_diagonal)
        value = (
            self.precision / 2 * add(gap**2, axis=(1, 2))
            + add(standard**2, axis=1) / 2
            + add(squares / 2 - self.degrees * log_diagonal, axis=1)
            + add(below**2, axis=1) / 2
        )
        push = self.precision * gap * self.both
        on_factor = 2 * push[:, 1:, 1:] @ factor
        features, of_target = factor[:, :p, :p], on_factor[:, p, :p]
        on_features = on_factor[:, :p, :p] + beta[:, :, None] * of_target[:, None, :]
        on_beta = np.einsum("cjk,ck->cj", features, of_target)
        on_logs = on_features * features
        slope = np.empty_like(x)
        slope[:, self.prior] = standard / self.spread
        slope[:, self.mean] += 2 * push[:, 0, 1:]
        slope[:, self.mean] += 2 * np.einsum("cjk,ck->cj", push[:, 1:, 1:], mean)
        slope[:, self.log_scale] += add(on_logs, axis=2) - on_beta * beta
        slope[:, self.h] += on_beta * rates
        slope[:, self.log_rate] += add(on_beta * beta, axis=1, keepdims=True)
        slope[:, self.log_left] += on_factor[:, p, p:] * factor[:, p, p:]
        slope[:, self.log_diagonal] = squares - self.degrees
        slope[:, self.log_diagonal] += on_logs.reshape(len(x), -1)[:, :: p + 1]
        on_lower = (on_features * scales[:, :, None]).reshape(len(x), -1)
        slope[:, self.below] = below + on_lower[:, self.within]
        return value, slope


def _sample(law: _Moments, start: FloatArray, generator: np.random.Generator) -> FloatArray:
    """E[T | S] by Hamiltonian Monte Carlo."""
    x = start + 0.02 * generator.normal(size=(_CHAINS, law.size))
    value, slope = law.energy(x)
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
            total += law.moments(x)[0].mean(axis=0)
    return total / _KEPT


def _move(
    law: _Moments,
    x: FloatArray,
    slope: FloatArray,
    scale: FloatArray,
    step: float,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """A leapfrog path of random length; `gain` is the kinetic energy that was lost on it."""
    momentum = generator.normal(size=x.shape)
    before = np.sum(momentum**2, axis=1) / 2
    length = step * generator.uniform(0.8, 1.2) * scale
    value = np.zeros(len(x))
    with np.errstate(over="ignore", invalid="ignore"):  # a path that flies off is refused
        for _ in range(_STEPS):
            momentum = momentum - length / 2 * slope
            x = x + length * momentum
            value, slope = law.energy(x)
            momentum = momentum - length / 2 * slope
        return x, value, slope, before - np.sum(momentum**2, axis=1) / 2


def _seed(sums: Submodel) -> int:
    """A seed that the release decides, by SHA-256 of its numbers."""
    numbers = np.concatenate([sums.extended.ravel(), sums.scale, [sums.count, sums.deviation]])
    return int.from_bytes(hashlib.sha256(numbers.astype("<f8").tobytes()).digest()[:16], "big")
