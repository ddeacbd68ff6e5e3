"""Many rows of a person, and times until an event: the nearest published methods, as functions.

Each promises (ε, δ) to a whole person for neighbours that replace one, from rows and targets within
[−1, 1]. A person's m rows of p columns are differences from their own mean: Σ‖dx‖² ≤ m·p, and
Σdy² ≤ m.

**Own regressions.** Each person's own least squares, cut to a ball of radius √p, and their mean
with Gaussian noise, which one person moves by 2√p/n. Sopa, Avella Medina and Rush 2026 (arXiv
2601.10626) aggregate local regressions so; only their abstract could be read, and the cut is ours.

**AdaSSP of persons.** Wang 2018 with noise for all m rows of a person (group privacy of a Gaussian
is m times its noise). Σdx·dxᵀ/(m·p) of one person is positive semi-definite with a trace of at most
1, and ‖Σdy·dx‖/(m√p) ≤ 1 by Cauchy and Schwarz, so AdaSSP's three sensitivities hold for persons.

**Noisy counts.** Kaplan and Meier's curve from counts of events and of other exits in each band,
as Gondara and Wang 2020 (arXiv 1910.05108, read as an abstract) make it private: a person is in one
cell, and moves the counts by √2. People who leave otherwise are at risk for half of their band.
"""

import math

import numpy as np

from blurfit.data import AnyArray, FloatArray
from blurfit.input_perturbation.algorithms import Sums
from blurfit.theory.gaussian import mu_of
from blurfit_lab.rivals.noisy_sums import AdaSSPRegressor


def own_regressions(
    x: FloatArray, y: FloatArray, epsilon: float, delta: float, generator: np.random.Generator
) -> FloatArray:
    """Return the noisy mean of people's own slopes, from rows (n, m, p) and targets (n, m)."""
    n, _, p = x.shape
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    slopes = (np.linalg.pinv(dx) @ dy[:, :, None])[:, :, 0]
    radius = math.sqrt(p)
    lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
    cut = slopes * (radius / np.maximum(lengths, radius))
    noise = 2 * radius / n / mu_of(epsilon, delta)
    return np.asarray(cut.mean(axis=0) + noise * generator.standard_normal(p))


def persons_adassp(
    x: FloatArray, y: FloatArray, epsilon: float, delta: float, generator: np.random.Generator
) -> FloatArray:
    """Return slopes from noisy sums of all rows, from rows (n, m, p) and targets (n, m)."""
    n, m, p = x.shape
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    rows = dx.reshape(-1, p) / math.sqrt(m * p)
    sums = Sums(n, rows.T @ rows, rows.T @ dy.ravel() / math.sqrt(m))
    rival = AdaSSPRegressor(epsilon=epsilon, delta=delta, accounting="exact")
    weights = rival.from_sums(sums, generator)  # of dy/√m on dx/√(mp)
    return np.asarray(weights / math.sqrt(p))


def noisy_curve(
    time: FloatArray,
    event: AnyArray,
    bands: int,
    epsilon: float,
    delta: float,
    generator: np.random.Generator,
) -> FloatArray:
    """Return the share that survives each of the bands that [0, 1] is cut into."""
    band = np.minimum((time * bands).astype(int), bands - 1)
    ended = time < 1
    counts = np.array(
        [np.bincount(band[chosen], minlength=bands) for chosen in (event, ended & ~event)]
    )
    noise = math.sqrt(2) / mu_of(epsilon, delta) * generator.standard_normal(counts.shape)
    events, others = np.maximum(counts + noise, 0.0)
    left = len(time) - np.concatenate([[0.0], np.cumsum(events + others)[:-1]])
    at_risk = np.maximum(left - others / 2, 1.0)
    return np.asarray(np.cumprod(1 - np.minimum(events / at_risk, 1.0)))
