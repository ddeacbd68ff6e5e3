"""TukeyEM: many small models, and a private choice of a point deep among them. Least squares.

Amin, Joseph, Ribero and Vassilvitskii 2023 (arXiv 2208.07353). The rows are dealt at random to m
groups, each gives a least-squares model; the depth of a point is the least number of models on
either side of it in any coordinate; a point is drawn with density ∝ e^{ε'·depth/2} among those of
depth ≥ t = m/4, after a private test that the result does not depend on a few models. No bounds are
needed for the privacy.

**Privacy, proved anew.** One person's row is in one group, so she changes one model, whether her
row is replaced or zeroed out: the cost is the same. Let V_i be the volume of the box where the
depth is ≥ i; one changed model moves every depth by at most 1, so V_{i+1}(D) ≤ V_i(D') ≤
V_{i−1}(D). With ε' = ε/2 let w = ∫e^{ε'·depth/2} over depth ≥ t, and ρ = V_{t−1}·e^{ε't/2}/w. Where
depth ≥ t under both, densities differ by e^{ε'/2}; where it is under one only, it is t there, which
has at most ρ; and w' ≤ e^{ε'/2}w + V_{t−1}e^{ε't/2} = (e^{ε'/2} + ρ)w. So P(E) ≤ e^{ε'}P'(E) + (1 +
e^{ε'/2})ρ. Because w ≥ V_{t+g}·e^{ε'(t+g)/2} for every g,

    safe(k):  (1 + e^{ε'/2})·min_g V_{t−k−1}/V_{t+k+g}·e^{−ε'g/2} ≤ δ

says that ρ is small enough for every table within k changed models of D. So q = 1 + the largest k
that is safe (0 if none is) moves by at most 1 for one changed model, and q ≥ 1 means that D may be
sampled from. The test q + Lap(1/ε') > ln(1/(2δ))/ε' is ε'-DP and lets a D with q = 0 pass with
probability at most δ. Together (ε, δ): D has (ε' + ε', δ) if q ≥ 1, else (ε', δ). ∎

**Where the public code does not keep its promise.** The noise of its test has scale ε/2 in the
place of 2/ε: at ε = 1 a quarter of what it needs, at ε = 0.1 a 400th, so the test that is said to
be 0.05-DP is 20-DP. It draws with e^{(ε/2)·depth}, which costs ε and not ε/2 where a model is
changed (as above), and spends δ on the test and half as much again on the draw. All three are as
they should be here.

Where the test fails, as it does where m is small against ln(1/δ)/ε, nothing is told of the data: w
= 0, the middle of the target's bounds.
"""

import math
from dataclasses import dataclass

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.estimators.guarantee import FitGuarantee
from blurfit.validate import whole
from blurfit_lab.rivals.rival import ApproximateRival, RivalRegressor

MOST_MODELS = 1000
LEAST_MODELS = 8
JITTER = 1e-10  # so that no two models share a coordinate


def log_widths(models: FloatArray) -> FloatArray:
    """Row i − 1: the logarithms of the sides of the box where the depth is ≥ i, up to m/2."""
    ordered = np.sort(models, axis=0)
    deepest = len(models) // 2
    sides = ordered[::-1][:deepest] - ordered[:deepest]
    return np.log(np.maximum(sides, 1e-300))


def safety(log_volumes: FloatArray, t: int, epsilon: float, delta: float) -> int:
    """q: how many models would have to change before the draw could tell too much."""
    deepest, q = len(log_volumes), 0
    for k in range(t - 1):
        outer = log_volumes[t - k - 2]  # V_{t−k−1}; V_i stands at place i − 1
        inner = log_volumes[t + k - 1 : deepest]  # V_{t+k+g}, g = 0, 1, …
        if not len(inner):
            break
        ratio = np.min(outer - inner - epsilon / 2 * np.arange(len(inner)))
        if float(np.logaddexp(0, epsilon / 2) + ratio) > math.log(delta):
            break
        q = k + 1
    return q


def draw(models: FloatArray, t: int, epsilon: float, generator: np.random.Generator) -> FloatArray:
    """A point with density ∝ e^{ε·depth/2} among those of depth ≥ t."""
    widths = log_widths(models)
    volumes = widths.sum(axis=1)[t - 1 :]
    inner = np.append(volumes[1:], -np.inf)
    exactly = volumes + np.log1p(-np.exp(np.minimum(inner - volumes, -1e-16)))
    place = _chosen(exactly + epsilon / 2 * np.arange(len(volumes)), generator)
    depth = t + place
    ordered = np.sort(models, axis=0)
    low, high = ordered[depth - 1], ordered[-depth]
    if depth == len(models) // 2:
        return np.asarray(generator.uniform(low, high))
    inner_low, inner_high = ordered[depth], ordered[-depth - 1]
    # The box without the one inside it, as d pieces: inside before side j, outside at j, any after.
    outside = (inner_low - low) + (high - inner_high)
    before = np.concatenate([[0.0], np.cumsum(widths[depth])[:-1]])
    after = np.concatenate([np.cumsum(widths[depth - 1][::-1])[::-1][1:], [0.0]])
    side = _chosen(before + np.log(np.maximum(outside, 1e-300)) + after, generator)
    point = np.where(
        np.arange(len(low)) < side,
        generator.uniform(inner_low, inner_high),
        generator.uniform(low, high),
    )
    step = generator.uniform(0, outside[side])
    left = inner_low[side] - low[side]
    point[side] = low[side] + step if step < left else inner_high[side] + step - left
    return np.asarray(point)


def _chosen(logarithms: FloatArray, generator: np.random.Generator) -> int:
    """A place with probability ∝ e^logarithm, by the largest of them plus Gumbel's noise."""
    return int(np.argmax(logarithms + generator.gumbel(size=len(logarithms))))


@dataclass(kw_only=True, eq=False, repr=False)
class TukeyRegressor(ApproximateRival, RivalRegressor):
    """Least squares: a private point deep among many small models.

    Args:
        models: m; None takes a group of d rows for each, and at most 1,000.
    """

    source = "Amin, Joseph, Ribero and Vassilvitskii 2023, TukeyEM"
    published_neighbours = "zero-out"

    models: int | None = None

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP."""
        if self.models is not None:
            whole(models=self.models)
        return super().promise()

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        n, d = x.shape
        count = min(MOST_MODELS, n // d) if self.models is None else min(self.models, n)
        if count < LEAST_MODELS:
            return np.zeros(d)
        groups = np.array_split(generator.permutation(n), count)
        models = np.array([np.linalg.lstsq(x[g], y[g], rcond=None)[0] for g in groups])
        models = models + JITTER * generator.random(models.shape)
        t, half = count // 4, self.epsilon / 2
        q = safety(log_widths(models).sum(axis=1), t, half, self.delta)
        if q + generator.laplace(0.0, 1 / half) <= math.log(1 / (2 * self.delta)) / half:
            return np.zeros(d)
        return draw(models, t, half, generator)
