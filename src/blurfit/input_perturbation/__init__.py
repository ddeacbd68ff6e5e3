"""The paper in one room: "Differentially Private Empirical Risk Minimization with Input
Perturbation" (Fukuchi, Tran, Sakuma), with its symbols.

This page is a reference of its two algorithms, as plain as the paper prints them: tests compare
what really runs (`algorithms`) with it. It protects nobody: its noise is neither certified nor
drawn exactly.

| module | holds |
| --- | --- |
| `losses` | q, p and s of a record: section "Loss Function for Input Perturbation" |
| `theorem`, `gradient_delta` | Theorem 1, repaired; Theorem 2's bound as a certified excess risk |
| `calibration` | σ_u, σ_b and Δ_in: the published rule and the certified one; the public input |
| `algorithms` | Algorithm 1 (`blur_record`) and Algorithm 2 (`solve`), exact to the last bit |
| `estimators` | both parties in one process, for scikit-learn |

docs/paper.md reads the paper side by side with this room.
"""

from math import log, sqrt

import numpy as np
from numpy.linalg import eigh, norm

from blurfit.data import FloatArray


def algorithm_1(
    q: FloatArray,
    p: FloatArray,
    *,
    n: int,
    sigma_u: float,
    sigma_b: float,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Blur one contributor's q and p (d,), or a table of them (n, d): steps 2 and 3."""
    r = generator.normal(0, sigma_b / sqrt(n), p.shape)
    u = generator.normal(0, sigma_u / sqrt(n), q.shape)
    return q + u, p - r


def noise_of_algorithm_1(
    epsilon: float, delta: float, *, d: int, n: int, zeta: float, smoothness: float
) -> tuple[float, float]:
    """σ_u and σ_b for λ-`smooth` losses: step 1, with Corollary 2's ln(4/γ) where it misprints."""
    gamma = delta / 2
    a, v = sqrt(log(2 / gamma) / n), 1 - 2 * sqrt(log(4 / gamma) / n)
    drift = sqrt(2 * d) * a * smoothness
    sigma_u = (drift + sqrt(drift**2 + 2 * smoothness / epsilon * v)) / v
    return sigma_u, zeta * sqrt(8 * log(2 / gamma) + 4 * epsilon) / epsilon


def algorithm_2(
    q: FloatArray, p: FloatArray, *, delta_in: float, eta: float, steps: int = 200
) -> FloatArray:
    """Learn w^in = argmin over ‖w‖ ≤ η of J^in, Eq. (4), from blurred q and p, (n, d) each."""
    values, basis = eigh(q.T @ q + delta_in * np.eye(q.shape[1]))
    c = basis.T @ p.sum(axis=0)
    low, high = max(0.0, -values[0]), norm(c) / eta + max(0.0, -values[0])
    if values[0] > 0 and norm(c / values) <= eta:
        return np.asarray(basis @ (c / values))
    for _ in range(steps):  # the multiplier of the ball, for which ‖w‖ = η
        middle = (low + high) / 2
        low, high = (middle, high) if norm(c / (values + middle)) > eta else (low, middle)
    return np.asarray(basis @ (c / (values + high)))
