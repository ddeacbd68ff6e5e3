"""Joint moments: blur the products of all columns of a record at once, the target's among them.

A record is one vector z = (c, u): a public constant c, and u with ‖u‖ ≤ ρ, each column times a
public weight ω. Each contributor sends the upper triangle of zzᵀ + E, except for the constant entry
c², which everybody knows. E is symmetric, diagonal N(0, σ²/n), off-diagonal N(0, σ²/(2n)): in the
Frobenius geometry, where each off-diagonal entry counts twice, this noise is isotropic with
variance σ²/n. So n records together are a Gaussian mechanism of standard deviation σ:

    Σ(zzᵀ + E) is μ-GDP with μ = Δ/σ, exactly; N ≥ n records are √(n/N)·Δ/σ-GDP; one submission is
    √n·Δ₁/σ-GDP.

Whatever is computed from the sums afterwards keeps this: any target, any features, any number of
models.

| here | usual symbol | meaning |
| --- | --- | --- |
| `constant` | c | the public first entry of z |
| `radius` | ρ | bound on ‖u‖: ρ² = Σω²B² with B bounding a column; one ω² for each categorical |
| `sigma` | σ | standard deviation of the noise on the diagonal, in the sum of n records |
| `quorum`, `count` | n, N | least and actual number of honest records |
"""

import math

from blurfit.theory.setting import NEIGHBOURS, Neighbours
from blurfit.validate import one_of, positive

_NUDGE = 1 + 1e-12


def sensitivity(constant: float, radius: float, neighbours: Neighbours = "replace") -> float:
    """Δ: how far one person can move Σzzᵀ in the Frobenius norm.

    * `replace`: Δ = √2(c² + ρ²) for c ≤ ρ, and 2√2·cρ beyond.
    * `zero-out` (u becomes 0, and the record still counts): Δ² = (c² + ρ²)² − c⁴.

    Proof. For records (c, u) and (c, u') let a, b ≤ ρ be the norms of u and u', and −s their
    cosine. Then ‖zzᵀ − z'z'ᵀ‖² = 2c²‖u − u'‖² + ‖uuᵀ − u'u'ᵀ‖² is

        F = 2c²(a² + b² + 2abs) + a⁴ + b⁴ − 2a²b²s²,

    a parabola in s with its top at s = c²/(ab).

    1. c² ≤ ab: F = 2c²(a² + b²) + 2c⁴ + a⁴ + b⁴, which grows with a and b.
    2. c² > ab: s = 1 is best, F = 2c²(a + b)² + (a² − b²)², and ∂F/∂a = 4(a + b)(c² + a(a − b)) > 0
       because c² > ab ≥ a(b − a); alike for b.

    F is continuous where the cases meet, so a = b = ρ is best: 2(c² + ρ²)² if c ≤ ρ, else 8c²ρ². ∎
    For `zero-out`, u' = 0: F = 2c²a² + a⁴ ≤ (c² + ρ²)² − c⁴. ∎

    Both are attained for two columns and more; with one column, c < ρ, `replace` is an upper bound.
    """
    positive(constant=constant, radius=radius)
    one_of(NEIGHBOURS, neighbours=neighbours)
    if neighbours == "zero-out":
        return radius * math.hypot(math.sqrt(2) * constant, radius) * _NUDGE
    if constant <= radius:
        return math.sqrt(2) * (constant**2 + radius**2) * _NUDGE
    return 2 * math.sqrt(2) * constant * radius * _NUDGE


def submission_sensitivity(constant: float, radius: float) -> float:
    """Δ₁: how far apart two records can be, for whoever sees a single submission.

    It is always that of `replace`: a submission shows that somebody sent one, so the alternative is
    another record, never none.
    """
    return sensitivity(constant, radius, "replace")


def sensitivity_of_multiples(q_bound: float, p_bound: float, balance: float) -> float:
    """Δ of (Σqqᵀ, Σp) in ‖M‖_F² + ‖p‖²/τ² where p is a multiple of q: p = κq, κ free, `replace`.

    With ϱ = R_p²/(τ²R_q⁴),

        Δ² = R_q⁴·max((2 + ϱ)²/2 [for ϱ ≤ 2], 1 + 4ϱ);

    the two cross at ϱ = 2 − √2, and both lie below the 2 + 4ϱ of a p without direction. This is the
    case of losses around a prior and of Newton's quadratic for any generalised linear model.

    Proof. Let R_q = 1, norms a, b ≤ 1 of q and q', t ≥ 0 the absolute cosine. The p lie along the
    q, each no longer than R_p, so ‖p − p'‖²/τ² ≤ 2ϱ(1 + t) and

        F = a⁴ + b⁴ − 2a²b²t² + 2ϱ(1 + t),

    which is convex in a² and in b²: its largest values are at 0 or 1. At a = b = 1 it is
    2 − 2t² + 2ϱ(1 + t), best at t = min(1, ϱ/2): (2 + ϱ)²/2, or 4ϱ for ϱ > 2. At a = 1, b = 0 it is
    1 + 2ϱ(1 + t) ≤ 1 + 4ϱ, approached by a short q' with a long p'. At a = b = 0 it is 4ϱ. ∎
    """
    positive(q_bound=q_bound, p_bound=p_bound, balance=balance)
    energy = q_bound**2
    ratio = (p_bound / (balance * energy)) ** 2
    squared = 1 + 4 * ratio
    if ratio <= 2:
        squared = max(squared, (2 + ratio) ** 2 / 2)
    return energy * math.sqrt(squared) * _NUDGE
