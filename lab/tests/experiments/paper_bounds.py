"""What privacy costs in accuracy by the paper's bounds, as it prints them.

| here | paper | meaning |
| --- | --- | --- |
| `regularisation_bounds` | Lemma 1 | ϰ ≤ Δ₀ ≤ κ, for one fixed w |
| `excess_risk_with_probability` | Lemma 2 | excess empirical risk, with probability 1 − γ − β |
| `expected_excess_risk` | Theorem 2 | its expectation (Eq. 21) |
| `expected_excess_rate` | Theorem 2 | its rate in n |

They use ‖Q‖_F ≤ √d·λ, which is false (docs/errata.md): they are here to be compared with.
`blurfit.theory.certified.input_excess_risk` is the forecast that is proved.
"""

import math
from dataclasses import dataclass

from blurfit.theory.guarantees import Setting
from blurfit.validate import inside_unit_interval, positive


@dataclass(frozen=True)
class RegularisationBounds:
    """Lemma 1: how much ridge Δ₀ the noise on q supplies, in one direction: ϰ ≤ Δ₀ ≤ κ."""

    lower: float
    upper: float


def regularisation_bounds(setting: Setting, sigma_u: float, gamma: float) -> RegularisationBounds:
    """Lemma 1: κ, ϰ = σ_u²(1 ± 2√(ln(4/γ)/n) [+ 2 ln(4/γ)/n in κ]) ± 2√(2d)·λ·σ_u·√(ln(2/γ)/n)."""
    inside_unit_interval(gamma=gamma)
    n = setting.quorum
    t = math.log(4 / gamma) / n
    cross = (
        2
        * math.sqrt(2 * setting.dimension)
        * setting.smoothness
        * sigma_u
        * math.sqrt(math.log(2 / gamma) / n)
    )
    return RegularisationBounds(
        lower=sigma_u**2 * (1 - 2 * math.sqrt(t)) - cross,
        upper=sigma_u**2 * (1 + 2 * math.sqrt(t) + 2 * t) + cross,
    )


def excess_risk_with_probability(
    setting: Setting,
    sigma_u: float,
    epsilon: float,
    delta: float,
    *,
    total_ridge: float,
    weight_norm: float,
    gamma: float,
    beta: float,
) -> float:
    """Lemma 2, with Δ = `total_ridge` and ‖ŵ‖ = `weight_norm`, holding with probability 1 − γ − β:

        4dζ²(8 ln(4/δ) + 4ε) ln(1/β)/(nε²Δ) + Δ‖ŵ‖²/(2n) + (κ(n, γ) − 2λ/ε)‖ŵ‖²/(2n),

    the last of which the paper writes out as (σ_u² − 2λ/ε)/(2n) and the three terms over n√n.
    """
    inside_unit_interval(gamma=gamma, beta=beta)
    positive(total_ridge=total_ridge)
    n = setting.quorum
    linear = _linear_noise(setting, epsilon, delta, total_ridge) * math.log(1 / beta)
    kappa = regularisation_bounds(setting, sigma_u, gamma).upper
    bias = total_ridge + kappa - 2 * setting.smoothness / epsilon
    return linear + bias * weight_norm**2 / (2 * n)


def expected_excess_risk(
    setting: Setting,
    sigma_u: float,
    epsilon: float,
    delta: float,
    *,
    total_ridge: float,
    weight_norm: float,
) -> float:
    """Theorem 2, in the explicit form of its proof (Eq. 21): 2a + b, with Δ = `total_ridge` and ‖ŵ‖
    = `weight_norm`.

    8dζ²(8 ln(4/δ) + 4ε)/(nε²Δ) + Δ‖ŵ‖²/(2n) + (σ_u² − 2λ/ε)‖ŵ‖²/(2n)
    + (σ_u² ln(4e³) + 2σ_u² ln(4e²)/√n + √(2d)·λσ_u·ln(2e³))·‖ŵ‖²/(2n√n)
    """
    positive(total_ridge=total_ridge)
    n, d, smoothness = setting.quorum, setting.dimension, setting.smoothness
    linear = 2 * _linear_noise(setting, epsilon, delta, total_ridge)
    bias = total_ridge + sigma_u**2 - 2 * smoothness / epsilon
    rest = (
        sigma_u**2 * (math.log(4) + 3)
        + 2 * sigma_u**2 * (math.log(4) + 2) / math.sqrt(n)
        + math.sqrt(2 * d) * smoothness * sigma_u * (math.log(2) + 3)
    )
    return linear + (bias + rest / math.sqrt(n)) * weight_norm**2 / (2 * n)


def expected_excess_rate(
    setting: Setting, epsilon: float, delta: float, *, weight_norm: float
) -> float:
    """Theorem 2's rate ζ‖ŵ‖√(d ln(1/δ))/(εn), without the constant that O(·) hides."""
    d, n = setting.dimension, setting.quorum
    return setting.gradient_bound * weight_norm * math.sqrt(d * math.log(1 / delta)) / (epsilon * n)


def _linear_noise(setting: Setting, epsilon: float, delta: float, total_ridge: float) -> float:
    """4dζ²(8 ln(4/δ) + 4ε)/(nε²Δ)."""
    d, n, zeta = setting.dimension, setting.quorum, setting.gradient_bound
    return (
        4 * d * zeta**2 * (8 * math.log(4 / delta) + 4 * epsilon) / (n * epsilon**2 * total_ridge)
    )
