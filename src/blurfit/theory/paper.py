"""Input perturbation as the paper prints it. Paper: Algorithm 1, Corollaries 1 and 2, Theorem 1.

These are the numbers a reader of the paper computes. Theorem 1 does not hold as stated
(docs/errata.md), so nothing here is a promise: `blurfit.calibrate(rule="published")` says what is
proved of the same noise beside it.
"""

import math
from dataclasses import dataclass

from blurfit.errors import InfeasibleError
from blurfit.theory.certified import Scales
from blurfit.theory.setting import Setting


@dataclass(frozen=True)
class LocalClaim:
    """Corollary 1's (ε, δ) for one submission. Its proof needs ε < 1, and its ε is usually far
    above.
    """

    epsilon: float
    delta: float


def least_quorum(delta: float) -> int:
    """The least n with 1 − 2√(ln(4/γ)/n) > 0, γ = δ/2, that is n > 4 ln(8/δ)."""
    return math.floor(4 * math.log(8 / delta)) + 1


def scales(setting: Setting, epsilon: float, delta: float) -> Scales:
    """σ_b of Algorithm 1, σ_u of Corollary 2 (appendix), and Δ_in = Δ − 2λ/ε with Theorem 2's Δ.

    With γ = δ' = δ/2, a = √(ln(2/γ)/n) and v = 1 − 2√(ln(4/γ)/n):

        σ_b² = ζ²(8 ln(2/δ') + 4ε)/ε²
        σ_u = (√(2d)·a·λ + √(2d·a²·λ² + v·2λ/ε))/v
        Δ = max(2λ/ε, √(ζ²·d·ln(1/δ))/(ε·η))

    Algorithm 1 prints ln(2/γ) inside v; the proof needs Corollary 2's ln(4/γ). The paper asks for Δ
    > 2λ/ε and leaves the constant of Theorem 2's Θ(·) open; we take 1, and ‖ŵ‖ = η because ŵ is not
    known beforehand.
    """
    n, d, smoothness, zeta = (
        setting.quorum,
        setting.dimension,
        setting.smoothness,
        setting.gradient_bound,
    )
    if n < least_quorum(delta):
        raise InfeasibleError(
            f"Expected quorum={n} > 4·ln(8/delta) for rule='published' at delta={delta:g}. "
            f"The least quorum that works is {least_quorum(delta)}; "
            "rule='certified' has no such limit."
        )
    gamma = delta / 2
    v = 1 - 2 * math.sqrt(math.log(4 / gamma) / n)
    drift = math.sqrt(2 * d * math.log(2 / gamma) / n) * smoothness
    sigma_u = (drift + math.sqrt(drift**2 + v * 2 * smoothness / epsilon)) / v
    sigma_b = zeta * math.sqrt(8 * math.log(2 / gamma) + 4 * epsilon) / epsilon
    needed = 2 * smoothness / epsilon
    best = zeta * math.sqrt(d * math.log(1 / delta)) / (epsilon * setting.ball)
    return Scales(sigma_u=sigma_u, sigma_b=sigma_b, ridge=max(needed, best) - needed)


def local_claim(setting: Setting, noise: Scales, delta: float) -> LocalClaim:
    """Corollary 1: (2c√n(λ/σ_u + ζ/σ_b), 2δ) with c = √(2 ln(1.25/δ)), as printed."""
    c = math.sqrt(2 * math.log(1.25 / delta))
    reach = setting.smoothness / noise.sigma_u + setting.gradient_bound / noise.sigma_b
    return LocalClaim(epsilon=2 * c * math.sqrt(setting.quorum) * reach, delta=2 * delta)
