"""Divide the records into groups, and learn from what the groups say.

**BinAgg**, Lin, Slavković and Bhoomireddy 2026 (arXiv 2510.16974), Algorithms 1 and 2: cut the
space of features into bins, and regress on the bins' noisy sums. A tree of boxes is grown privately
(PrivTree: Zhang, Xiao and Xie 2016); each of its K leaves gives a count, Σx and Σy with Gaussian
noise; leaves whose noisy count c̃ is below 2 are left out, counts are scaled to n; then weighted
least squares of the sums with weights 1/c̃, corrected for the noise that S̃ᵀWS̃ carries:

    w = (S̃ᵀWS̃ − κ·D)⁻¹S̃ᵀWt̃,   D = Σ_k c̃_k⁻¹·diag(noise variances of s̃_k)

PrivTree halves a box along its widest side as long as max(c − depth·ϑ, −ϑ) + Lap(λ) > 0, with λ =
3/ε_tree and ϑ = λ·ln 2.

**Privacy.** μ(ε, δ) is shared out in quadrature as 1 : 3 : 3 : 3 for tree, counts, Σx and Σy (Dong,
Roth and Su 2022, Corollary 3.3). A tree that is ε-DP is μ-GDP with μ = −2Φ⁻¹(1/(1 + e^ε)). The
record that one person takes out leaves one box:

| what moves | zero-out, as published | replace |
| --- | --- | --- |
| the tree: ε | ε_tree | 2ε_tree: one record out, another in |
| counts | 1 | √2: in two boxes |
| Σx of box k, coordinate j, over a_kj = max(abs(L_kj), abs(U_kj)) | 1 | 2: within one box |
| Σy, over max |y| | 1 | 2 |

**Where the public code does not keep its promise.** Each of the d coordinates of Σx gets noise
a_kj/μ_s of its own, as if it were released alone; together they are √d·μ_s-GDP: at d = 9, (1, 1e-6)
the whole has ε = 1.99. We divide by √d. And it has κ = 1/K where the theorem has 1 (`correction`),
which makes the matrix indefinite where the noise is large: the code's is the default here, as the
better of the two.

**TukeyEM**, Amin, Joseph, Ribero and Vassilvitskii 2023 (arXiv 2208.07353): many small models, and
a private choice of a point deep among them. The rows are dealt at random to m groups, each gives a
least-squares model; the depth of a point is the least number of models on either side of it in any
coordinate; a point is drawn with density ∝ e^{ε'·depth/2} among those of depth ≥ t = m/4, after a
private test that the result does not depend on a few models. No bounds are needed for the privacy.

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
place of 2/ε, it draws with e^{(ε/2)·depth}, which costs ε and not ε/2 where a model is changed, and
spends δ on the test and half as much again on the draw. All three are as they should be here.

Where the test fails, as it does where m is small against ln(1/δ)/ε, nothing is told of the data: w
= 0, the middle of the target's bounds.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logit, ndtr

from blurfit.data import FloatArray
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import Neighbours
from blurfit_lab.rivals.rival import ApproximateRival, RivalRegressor

Correction = Literal["code", "theorem"]
SHARES = (1.0, 3.0, 3.0, 3.0)  # of tree, counts, Σx and Σy, in quadrature
LEAST_COUNT = 2.0
MOST_DEPTH = 60  # boxes of a width of 2⁻⁶⁰ are one point
_ROUNDING = 1 - 1e-9


class Spending(NamedTuple):
    """ε of the tree, and the noise of counts, of each coordinate of Σx, and of Σy, over scales."""

    tree: float
    counts: float
    features: float
    target: float

    @classmethod
    def of(cls, epsilon: float, delta: float, dimension: int, neighbours: Neighbours) -> "Spending":
        """μ(ε, δ) in quadrature, and what the relation moves."""
        whole = mu_of(epsilon, delta) * _ROUNDING / math.sqrt(sum(share**2 for share in SHARES))
        tree, count, features, target = (whole * share for share in SHARES)
        twice = 2.0 if neighbours == "replace" else 1.0
        return cls(
            -float(logit(ndtr(-tree / 2))) / twice,
            math.sqrt(twice) / count,
            twice * math.sqrt(dimension) / features,
            twice / target,
        )


@dataclass(frozen=True, eq=False)
class Box:
    """A box of features, and the rows in it."""

    lower: FloatArray
    upper: FloatArray
    rows: npt.NDArray[np.intp]

    def halves(self, x: FloatArray) -> "tuple[Box, Box]":
        """Cut in the middle of the widest side."""
        side = int(np.argmax(self.upper - self.lower))
        middle = (self.lower[side] + self.upper[side]) / 2
        below = x[self.rows, side] < middle
        upper, lower = self.upper.copy(), self.lower.copy()
        upper[side] = lower[side] = middle
        return Box(self.lower, upper, self.rows[below]), Box(lower, self.upper, self.rows[~below])


def private_tree(
    x: FloatArray, reach: FloatArray, epsilon: float, generator: np.random.Generator
) -> list[Box]:
    """PrivTree's leaves of the box ±reach, at least d + 1 of them."""
    scale = 3 / epsilon
    penalty = scale * math.log(2)
    open_boxes = [(Box(-reach, reach, np.arange(len(x))), 0)]
    leaves: list[Box] = []
    while open_boxes:
        box, depth = open_boxes.pop()
        score = max(len(box.rows) - depth * penalty, -penalty) + generator.laplace(0.0, scale)
        if score > 0 and depth < MOST_DEPTH:
            open_boxes += [(half, depth + 1) for half in box.halves(x)]
        else:
            leaves.append(box)
    while len(leaves) < x.shape[1] + 1:  # the largest is cut whatever it holds: no record is asked
        sizes = [float(np.prod((box.upper - box.lower)[reach > 0])) for box in leaves]
        leaves += leaves.pop(int(np.argmax(sizes))).halves(x)
    return leaves


class BinAggRegressor(ApproximateRival, RivalRegressor):
    """Least squares on the noisy sums of private bins.

    Args:
        correction: of the noise in S̃ᵀWS̃: "code" takes D/K as the public code does, "theorem" D.
    """

    source = "Lin, Slavković and Bhoomireddy 2026, BinAgg"
    published_neighbours = "zero-out"

    correction: Correction = "code"

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        n, d = x.shape
        budget = Spending.of(self.epsilon, self.delta, d, self.neighbours)
        # The encoding's bounds, which are public: every column is within ±1/√m, and the intercept,
        # which is the same in every row, is never cut.
        reach = np.full(d, 1 / math.sqrt(d))
        cut = reach.copy()
        if self.fit_intercept:
            cut[-1] = 0.0
        boxes = private_tree(x, cut, budget.tree, generator)
        scales = np.array([np.maximum(np.abs(box.lower), np.abs(box.upper)) for box in boxes])
        if self.fit_intercept:
            scales[:, -1] = reach[-1]
        counts = np.array([float(len(box.rows)) for box in boxes])
        counts = np.rint(counts + budget.counts * generator.standard_normal(len(boxes)))
        deviations = budget.features * scales
        sums = np.array([x[box.rows].sum(axis=0) for box in boxes])
        sums = sums + deviations * generator.standard_normal(sums.shape)
        targets = np.array([y[box.rows].sum() for box in boxes])
        targets = targets + budget.target * generator.standard_normal(len(boxes))
        kept = counts >= LEAST_COUNT
        if not kept.any():
            return np.zeros(d)
        w = counts[kept].sum() / (n * counts[kept])  # counts are scaled to n
        noise = np.diag(w @ deviations[kept] ** 2)
        if self.correction == "code":
            noise = noise / int(kept.sum())
        gram = sums[kept].T @ (w[:, None] * sums[kept]) - noise
        return np.asarray(np.linalg.lstsq(gram, sums[kept].T @ (w * targets[kept]), rcond=None)[0])


MOST_MODELS = 1000
LEAST_MODELS = 8
JITTER = 1e-10  # so that no two models share a coordinate


def log_widths(models: FloatArray) -> FloatArray:
    """Row i − 1: the logarithms of the sides of the box where the depth is ≥ i, up to m/2."""
    ordered, deepest = np.sort(models, axis=0), len(models) // 2
    return np.log(np.maximum(ordered[::-1][:deepest] - ordered[:deepest], 1e-300))


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
    inner, outer = generator.uniform(inner_low, inner_high), generator.uniform(low, high)
    point = np.where(np.arange(len(low)) < side, inner, outer)
    step = generator.uniform(0, outside[side])
    left = inner_low[side] - low[side]
    point[side] = low[side] + step if step < left else inner_high[side] + step - left
    return np.asarray(point)


def _chosen(logarithms: FloatArray, generator: np.random.Generator) -> int:
    """A place with probability ∝ e^logarithm, by the largest of them plus Gumbel's noise."""
    return int(np.argmax(logarithms + generator.gumbel(size=len(logarithms))))


class TukeyRegressor(ApproximateRival, RivalRegressor):
    """Least squares: a private point deep among many small models.

    Args:
        models: m; None takes a group of d rows for each, and at most 1,000.
    """

    source = "Amin, Joseph, Ribero and Vassilvitskii 2023, TukeyEM"
    published_neighbours = "zero-out"

    models: int | None = None

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
