"""What privacy costs in accuracy: the paper's bounds as printed, and a forecast that is proved.

| here | paper | meaning |
| --- | --- | --- |
| `regularisation_bounds` | Lemma 1 | ϰ ≤ Δ₀ ≤ κ, for one fixed w |
| `excess_risk_with_probability` | Lemma 2 | excess empirical risk, with probability 1 − γ − β |
| `expected_excess_risk` | Theorem 2 | its expectation (Eq. 21), and the rate in n |
| `input_excess_risk` | – | certified, for every Q and over the whole ball |

The paper's bounds use ‖Q‖_F ≤ √d·λ, which is false (docs/errata.md): they are here to be compared
with.
"""

import math
from dataclasses import dataclass

from blurfit.theory.certified import Scales
from blurfit.theory.quantiles import chi_square_ceiling
from blurfit.theory.setting import Setting
from blurfit.validate import inside_unit_interval, positive

FORECAST_FAILURE = 0.1


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
    """  # noqa: D415 (the formula is the sentence)
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


def input_excess_risk(setting: Setting, noise: Scales, failure: float = FORECAST_FAILURE) -> float:
    """Certified: with probability 1 − β, J(w) − J(ŵ) ≤ (2η‖b‖ + ½η²(κ₊ − κ₋) + η²‖C‖)/n.

    The noisy objective differs from the true one by (b·w + ½wᵀ(K + C)w)/n, K = UᵀU + Δ_in·I and
    C = UᵀQ + QᵀU, and w minimises the noisy one, so J(w) − J(ŵ) ≤ (b·(ŵ − w) + ½ŵᵀ(K + C)ŵ −
    ½wᵀ(K + C)w)/n. In the ball ½ŵᵀKŵ − ½wᵀKw ≤ ½η²(κ₊ − κ₋), κ₊ the largest eigenvalue of K and κ₋
    the smallest if that is negative, else 0; and the rest is at most 2η‖b‖ + η²‖C‖. Then, each but
    for β/3, with t = √(2 ln(6/β)):

    * ‖b‖² ≤ σ_b² · upper quantile of χ²_d;
    * the singular values of U lie within σ_u/√n·(√n ± (√d + t)) (Davidson and Szarek 2001, Theorem
      II.13);
    * with Q = VΣWᵀ, ‖UᵀQ‖ = ‖GΣ‖ for the d × d Gaussian G = UᵀV, of mean at most
      σ_u/√n·(‖Σ‖√d + ‖Σ‖_F) and ‖Σ‖-Lipschitz in G. (Chevet 1978. For unit vectors x, y compare
      yᵀGΣx with ‖Σ‖·g·y + h·Σx: E of the squared differences is larger for the latter by
      2(1 − y·y')(‖Σ‖² − Σx·Σx') ≥ 0, and Sudakov–Fernique does the rest.) Both norms are at most
      √n·R_q, because ‖Q‖_F² = Σ‖q‖²: ‖UᵀQ‖ ≤ σ_u·R_q·(√d + 1 + t).

    `calibrate(split=None)` minimises this number: it reads public facts only.
    """
    inside_unit_interval(failure=failure)
    n, d, eta = setting.quorum, setting.dimension, setting.ball
    t = math.sqrt(2 * math.log(6 / failure))
    linear = noise.sigma_b * math.sqrt(chi_square_ceiling(failure / 3, d))
    spread = (math.sqrt(d) + t) / math.sqrt(n)
    largest = noise.sigma_u**2 * (1 + spread) ** 2 + noise.ridge
    smallest = noise.sigma_u**2 * max(0.0, 1 - spread) ** 2 + noise.ridge
    cross = 2 * noise.sigma_u * setting.q_bound * (math.sqrt(d) + 1 + t)
    spread_of_k = max(0.0, largest) - min(0.0, smallest)
    return (2 * eta * linear + eta**2 * (spread_of_k / 2 + cross)) / n


def _linear_noise(setting: Setting, epsilon: float, delta: float, total_ridge: float) -> float:
    """4dζ²(8 ln(4/δ) + 4ε)/(nε²Δ)."""
    d, n, zeta = setting.dimension, setting.quorum, setting.gradient_bound
    return (
        4 * d * zeta**2 * (8 * math.log(4 / delta) + 4 * epsilon) / (n * epsilon**2 * total_ridge)
    )
