"""Moment perturbation: blur the record's quadratic instead of its factor. Certified:
docs/certified.md.

The database needs only Σqqᵀ and Σp, so each contributor blurs exactly these: M̃ = qqᵀ + E and p̃ =
p + r, with E symmetric, diagonal N(0, σ²/n), off-diagonal N(0, σ²/(2n)), and r ~ N(0, τ²σ²/n·I). In
the geometry ‖(M, p)‖² = ‖M‖_F² + ‖p‖²/τ² this noise is isotropic with variance σ²/n, so n records
together are a Gaussian mechanism of standard deviation σ:

    (ΣM̃, Σp̃) is μ-GDP with μ = Δ/σ, exactly; one submission is √n·Δ₁/σ-GDP; N ≥ n records are
    √(n/N)·Δ/σ-GDP.

Whatever is computed from the sums afterwards keeps this, any number of times: it is
post-processing.
"""

import math

from blurfit.theory.setting import Setting

_NUDGE = 1 + 1e-12


def sensitivity(setting: Setting, balance: float, *, parallel: bool) -> float:
    """Δ: how far one person can move (Σqqᵀ, Σp) in the geometry ‖M‖_F² + ‖p‖²/τ², with ϱ =
    R_p²/(τ²R_q⁴).

    * `zero-out`: Δ² = R_q⁴ + R_p²/τ² (‖qqᵀ‖_F = ‖q‖²).
    * `replace`, any loss: Δ² = 2R_q⁴ + 4R_p²/τ², because ‖qqᵀ − q'q'ᵀ‖_F² = ‖q‖⁴ + ‖q'‖⁴ − 2(q·q')²
      ≤ 2R_q⁴.
    * `replace`, `parallel`: Δ = R_q²(2 + ϱ)/√2 for ϱ ≤ 2, and 2R_p/τ beyond. Parallel means p = κq
      with |κ| ≤ R_p/R_q, so that with ‖q'‖ = b·R_q ≤ ‖q‖ = R_q at an angle of cosine c, and the κ
      opposed, Δ²/R_q⁴ = max over b, c in [0, 1] of 1 + b⁴ − 2b²c² + ϱ(1 + b² + 2bc). It increases
      in b for the best c: b = 1, c = min(1, ϱ/2). (That p is a multiple of q is not enough: a short
      q with a long p would move by R_q⁴ + 4R_p²/τ².)

    All three are attained for d ≥ 2; in d = 1 they are upper bounds.
    """
    energy, shift = setting.q_bound**2, setting.p_bound / balance
    if setting.neighbours == "zero-out":
        return math.hypot(energy, shift) * _NUDGE
    if not parallel:
        return math.hypot(math.sqrt(2) * energy, 2 * shift) * _NUDGE
    ratio = (shift / energy) ** 2
    if ratio <= 2:
        return energy * (2 + ratio) / math.sqrt(2) * _NUDGE
    return 2 * shift * _NUDGE


def local_sensitivity(setting: Setting, balance: float, *, parallel: bool) -> float:
    """Δ₁: how far apart two records can be, for whoever sees a single submission: always
    `replace`.
    """
    replacing = Setting(setting.dimension, setting.quorum, setting.q_bound, setting.p_bound)
    return sensitivity(replacing, balance, parallel=parallel)


def best_balance(setting: Setting, *, parallel: bool) -> float:
    """τ that minimises the expected noise on the gradient, E‖Ew − r‖², at the largest weights.

    E[‖Ew‖²] = σ²·(d+1)/2·‖w‖² and E[‖r‖²] = dτ²σ², and σ ∝ Δ(τ), so we minimise Δ²(τ)·(dτ² + e)
    with e = (d+1)η²/2: a public proxy, which reads no data. η is the weight bound, or the natural
    scale R_p/R_q² where there is none. With T = τ², k = R_p²/R_q⁴ and the Δ of `sensitivity`,
    setting the derivative to zero gives

    * `zero-out`: T² = k·e/d;            * `replace`: T² = 2k·e/d;
    * `parallel`: 2dT² − kdT − 2ke = 0, whose root is at least k/2, that is ϱ ≤ 2.
    """
    d = setting.dimension
    k = (setting.p_bound / setting.q_bound**2) ** 2
    eta = setting.weight_bound if setting.weight_bound is not None else math.sqrt(k)
    e = (d + 1) * eta**2 / 2
    if setting.neighbours == "zero-out":
        squared = math.sqrt(k * e / d)
    elif not parallel:
        squared = math.sqrt(2 * k * e / d)
    else:
        squared = (k * d + math.sqrt((k * d) ** 2 + 16 * d * k * e)) / (4 * d)
    return math.sqrt(squared)


def model_mu(
    setting: Setting, sigma_m: float, delta_norm: float, count: int | None = None
) -> float:
    """μ = Δ/σ·√(n/N): the exact Gaussian privacy of the sums of N honest records."""
    records = setting.quorum if count is None else count
    return delta_norm / sigma_m * math.sqrt(setting.quorum / records)


def submission_mu(setting: Setting, sigma_m: float, delta_norm: float) -> float:
    """μ = √n·Δ₁/σ: the exact Gaussian privacy of one submission."""
    return math.sqrt(setting.quorum) * delta_norm / sigma_m
