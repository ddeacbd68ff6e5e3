"""Rows that look like the people of a release, for tools that want rows: by maximum entropy.

Of all joint laws p of some questions with levels, the one of largest entropy is taken among those
that agree with the release's tables of two as far as their noise lets these be known. With y the
shares of all cells of all pairs and v the variance that the noise left in each, minimise

    −λ·H(p) + Σ_f (y_f − p_f)²/(2v_f),

where p_f is the share of cell f under p. Its dual is smooth and concave: p ∝ exp(Mᵀθ/λ), M the
0/1 matrix of which cells of the joint law belong to f, and θ maximises

    θ·y − λ·ln Σ exp(Mᵀθ/λ) − ½ Σ_f v_fθ_f².

**How much entropy.** λ is as large as leaves Σ(y_f − p_f)²/v_f at the number of independent cells
(the discrepancy principle): a larger one would smooth away what the tables show, a smaller one
would fit their noise. As people grow v falls, and so does λ.

What is drawn is post-processing of the release, and costs no privacy. It has no standard errors:
whoever computes some from such rows takes noise and model for people.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.optimize import minimize

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning import tables
from blurfit.learning.sums import JointSums
from blurfit.learning.tables import Levels

MOST_CELLS = 1_000_000
_STEPS = 12  # of the search for λ, each halving its logarithm's range


def joint_law(sums: JointSums, questions: Sequence[Levels]) -> FloatArray:
    """Return the law of largest entropy of the questions' levels, an axis for each."""
    shape = tuple(len(one) for one in questions)
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise InfeasibleError(
            f"These questions have {cells:,} combinations of levels, and at most {MOST_CELLS:,} "
            "can be computed with: name fewer questions, or join levels."
        )
    if len(questions) == 1:
        found = tables.counts(sums, questions[0]).values / sums.count
        return tables.on_simplex(found)
    pairs, seen, noise = [], [], []
    freedom = 0
    for one, other in combinations(range(len(questions)), 2):
        table = tables.table(sums, questions[one], questions[other])
        pairs.append((one, other))
        seen.append(table.values / sums.count)
        noise.append(np.diag(table.noise) / sums.count**2)
        freedom += (shape[one] - 1) * (shape[other] - 1)
    freedom += sum(shape) - len(shape)
    wanted, variance = np.concatenate(seen), np.concatenate(noise)
    variance = np.maximum(variance, 1e-4 / sums.count**2)  # of a release without any noise
    theta, low, high = np.zeros(len(wanted)), math.log(1e-6), math.log(1e6)
    law = np.full(shape, 1 / cells)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        theta, law = _solved(wanted, variance, math.exp(middle), shape, pairs, theta)
        misfit = float(np.sum((wanted - _margins(law, pairs)) ** 2 / variance))
        low, high = (low, middle) if misfit > freedom else (middle, high)
    return law


def _solved(
    wanted: FloatArray,
    variance: FloatArray,
    entropy: float,
    shape: tuple[int, ...],
    pairs: Sequence[tuple[int, int]],
    start: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return θ and p for one λ."""

    def law_of(theta: FloatArray) -> tuple[FloatArray, float]:
        score = np.zeros(shape)
        at = 0
        for one, other in pairs:
            size = shape[one] * shape[other]
            block = theta[at : at + size].reshape(shape[one], shape[other])
            axes = [1] * len(shape)
            axes[one], axes[other] = shape[one], shape[other]
            score += block.reshape(axes)
            at += size
        score /= entropy
        top = float(score.max())
        weights = np.exp(score - top)
        total = float(weights.sum())
        return weights / total, top + math.log(total)

    scale = 1 / np.sqrt(variance)  # in these units the last term curves by 1, as L-BFGS likes

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        theta = x * scale
        law, logarithm = law_of(theta)
        value = entropy * logarithm - theta @ wanted + x @ x / 2
        return float(value), scale * (_margins(law, pairs) - wanted) + x

    found = minimize(loss, start / scale, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    theta: FloatArray = found.x * scale
    return theta, law_of(theta)[0]


def _margins(law: FloatArray, pairs: Sequence[tuple[int, int]]) -> FloatArray:
    every = range(law.ndim)
    parts = [law.sum(axis=tuple(a for a in every if a not in pair)).ravel() for pair in pairs]
    return np.concatenate(parts)
