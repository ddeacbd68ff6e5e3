"""Input perturbation, certified: which (ε, δ) given noise really keeps.

Each contributor sends q̃ = q + u and p̃ = p + r with u ~ N(0, σ_u²/n·I), r ~ N(0, σ_b²/n·I); the
database publishes w = argmin over ‖w‖ ≤ η of ½wᵀ(Σq̃q̃ᵀ + Δ_in·I)w − (Σp̃)ᵀw + Ω(w), once.

**Theorem.** Let γ₁ + 2γ₂ + γ₃ + δ_b = δ, s² = σ_u²/n, n > d where σ_u > 0, Δ_in > 0 where σ_u = 0,
and

    λ̃ = s² · upper γ₂-quantile of χ²_d(R_q²/s²)        a blurred record's energy ‖q + u‖²
    f = s² · lower γ₁-quantile of χ²_{n−d}             1/(eᵀA₋ᵢ⁻¹e), e the direction that matters
    a = s² · max(0, √(n−1−d) − √d − √(2 ln(1/γ₃)))²    λ_min(A₋ᵢ), needed only where Δ_in < 0
    h = f + Δ_in for Δ_in ≥ 0,  f·(1 + Δ_in/a) for −a < Δ_in < 0
    ρ = s · √(upper γ₂-quantile of χ²_d)               the noise ‖u‖ itself
    J = ln(1 + λ̃/h)                                    the determinant's part of the privacy loss
    S_π = 2R_p (replace), R_p (zero-out)               the gradient's part that is fixed
    S_w = η·min(λ̃, R_q² + 4R_q·ρ)   (replace)          the part that moves with w
    S_w = η·min(λ̃, R_q² + 2R_q·ρ)   (zero-out).

If h > 0 and δ_b ≥ sup over angles α of H(α), as `blurfit.theory.gradient_delta` defines and bounds
it for ε − J, a = S_π/σ_b and b = S_w/σ_b, releasing w is (ε, δ)-DP.

**Proof.** Fix neighbours that differ in record i, and condition on all u. A log-barrier in place of
the ball keeps w inside it and makes noise b ↦ w a bijection, so the two densities of w have the
log-ratio (‖g‖² − 2b·g)/(2σ_b²) + ln(det/det'), with g(w) = (q̃q̃ᵀ − q̃'q̃'ᵀ)w − (p − p').
(1) *Determinant.* det(B + q̃q̃ᵀ)/det(B + q̃'q̃'ᵀ) ≤ 1 + q̃ᵀB⁻¹q̃ ≤ 1 + ‖q̃‖²·eᵀB⁻¹e, e = q̃/‖q̃‖, B
⪰ A₋ᵢ + Δ_in·I. Since e is independent of A₋ᵢ, rotate it to a coordinate: 1/(eᵀA₋ᵢ⁻¹e) is the
squared residual of one Gaussian-perturbed column on the d − 1 others, s² times a noncentral
χ²_{(N−1)−(d−1)}, which dominates the central one for every Q. It is superadditive in A, hence h for
Δ_in ≥ 0; for Δ_in < 0, A₋ᵢ + Δ_in·I ⪰ (1 + Δ_in/λ_min)·A₋ᵢ, and λ_min ≥ a by projecting on the
orthocomplement of the columns of Q₋ᵢ (at least n − 1 − d dimensions of pure noise; Davidson and
Szarek 2001).
(2) *Gradient.* ‖q̃q̃ᵀ − q̃'q̃'ᵀ‖ ≤ max(‖q̃‖², ‖q̃'‖²) for positive semidefinite matrices; or,
because u is common and its uuᵀ cancels, ≤ R_q² + 4R_q·‖u‖ (zero-out: R_q² + 2R_q·‖u‖). Which of the
two is smaller is known beforehand.
(3) On these events (they fail with probability ≤ γ₁ + 2γ₂ + γ₃) ‖p − p'‖ ≤ S_π, ‖q̃q̃ᵀ − q̃'q̃'ᵀ‖·η ≤
S_w, and the loss is at most J + L_α (`blurfit.theory.gradient_delta`), with which the hockey-stick
divergence increases. ∎

More honest records than n only help: pass them as `count`. With σ_u = 0 (λ̃ = R_q², f = ρ = 0, no
γ) this is objective perturbation with a tighter, certified calibration. The minimiser has to be
exact, and A and c may be used for nothing else.
"""

import math
from dataclasses import dataclass

from blurfit.errors import InfeasibleError
from blurfit.theory.quantiles import chi_square_ceiling, chi_square_floor, shifted_energy_ceiling
from blurfit.theory.setting import Setting
from blurfit.theory.stated import require_above, require_below, rounded_down, rounded_up
from blurfit.validate import finite, nonnegative, positive


@dataclass(frozen=True)
class DeltaShares:
    """How δ is spent: γ₁ + 2γ₂ + γ₃ + δ_b = δ."""

    gram: float  # γ₁: the others' noise gives too little curvature
    record: float  # γ₂, for each of two events: the differing record's noise is too large
    spectrum: float  # γ₃: the smallest eigenvalue is too small; 0 unless the ridge is negative
    gradient: float  # δ_b: what is left for the noise on p

    def __post_init__(self) -> None:
        nonnegative(
            gram=self.gram, record=self.record, spectrum=self.spectrum, gradient=self.gradient
        )

    @property
    def total(self) -> float:
        """γ₁ + 2γ₂ + γ₃ + δ_b."""
        return math.fsum((self.gram, 2 * self.record, self.spectrum, self.gradient))


@dataclass(frozen=True)
class Scales:
    """The noise and ridge of an input perturbation: σ_u, σ_b and Δ_in."""

    sigma_u: float
    sigma_b: float
    ridge: float

    def __post_init__(self) -> None:
        nonnegative(sigma_u=self.sigma_u)
        positive(sigma_b=self.sigma_b)
        finite(ridge=self.ridge)


@dataclass(frozen=True)
class CurvatureLoss:
    """What the noise on q alone decides, in the theorem's order: λ̃, f, a, h, J, S_w."""

    record_energy: float
    gram_floor: float
    spectrum_floor: float
    strong_convexity: float
    determinant_loss: float
    moving_sensitivity: float

    def bounded(self, ridge: float) -> "CurvatureLoss":
        """As it is stated: each number rounded to the side on which the theorem holds, those that
        follow from others computed from what is stated of these.

        The theorem is monotone: with a larger λ̃, J or S_w, or a smaller f, a or h, it promises
        less. So it holds for any numbers that bound the exact ones so.
        """
        energy = rounded_up(self.record_energy)
        floor, spectrum = rounded_down(self.gram_floor), rounded_down(self.spectrum_floor)
        convexity = rounded_down(_strong_convexity(floor, spectrum, ridge))
        loss = rounded_up(math.log1p(energy / convexity))
        moving = rounded_up(self.moving_sensitivity)
        return CurvatureLoss(energy, floor, spectrum, convexity, loss, moving)

    def verify(self, exact: "CurvatureLoss", ridge: float) -> None:
        """Refuse stated numbers that do not bound what follows from the noise, and each other."""
        require_above("record_energy", self.record_energy, exact.record_energy)
        require_below("gram_floor", self.gram_floor, exact.gram_floor)
        require_below("spectrum_floor", self.spectrum_floor, exact.spectrum_floor)
        convexity = _strong_convexity(self.gram_floor, self.spectrum_floor, ridge)
        require_below("strong_convexity", self.strong_convexity, convexity)
        determinant = math.log1p(self.record_energy / self.strong_convexity)
        require_above("determinant_loss", self.determinant_loss, determinant)
        require_above("moving_sensitivity", self.moving_sensitivity, exact.moving_sensitivity)


def curvature_loss(
    setting: Setting, sigma_u: float, ridge: float, shares: DeltaShares, count: int | None = None
) -> CurvatureLoss:
    """λ̃, f, a, h, J and S_w of the theorem, for `count` honest records, blurred for the quorum.

    Raises InfeasibleError where the theorem does not apply.
    """
    records = setting.quorum if count is None else count
    radius, d = setting.q_bound, setting.dimension
    energy, floor, spectrum, noise = radius**2, 0.0, 0.0, 0.0
    if sigma_u > 0:
        require_more_records_than_dimensions(records, d, "quorum" if count is None else "count")
        s = sigma_u / math.sqrt(setting.quorum)
        energy = shifted_energy_ceiling(shares.record, d, radius, s)
        floor = s**2 * chi_square_floor(shares.gram, records - d)
        noise = s * math.sqrt(chi_square_ceiling(shares.record, d))
        spectrum = spectrum_floor(s, d, records, shares.spectrum)
    convexity = _strong_convexity(floor, spectrum, ridge)
    replacing = setting.neighbours == "replace"
    cross = radius**2 + (4 if replacing else 2) * radius * noise
    return CurvatureLoss(
        record_energy=energy,
        gram_floor=floor,
        spectrum_floor=spectrum,
        strong_convexity=convexity,
        determinant_loss=math.log1p(energy / convexity),
        moving_sensitivity=setting.ball * min(energy, cross),
    )


def fixed_sensitivity(setting: Setting) -> float:
    """S_π ≥ ‖p − p'‖: the part of the gradient's change that is the same at every w."""
    return (2 if setting.neighbours == "replace" else 1) * setting.p_bound


def require_more_records_than_dimensions(
    records: int, dimension: int, name: str = "quorum"
) -> None:
    """n > d: with fewer records the noise leaves a direction without any curvature."""
    if records <= dimension:
        raise InfeasibleError(
            f"Expected {name}={records} > dimension={dimension}: input perturbation has no "
            f"guarantee below. The least {name} that works is {dimension + 1}; "
            "mechanism='moment' works with any."
        )


def spectrum_floor(s: float, dimension: int, records: int, probability: float) -> float:
    """a = s²·max(0, √(n−1−d) − √d − √(2 ln(1/γ₃)))² ≤ λ_min(A₋ᵢ) but for γ₃.

    The bracket is cut at 0 before it is squared: a negative one squared would promise what is not
    there.
    """
    if probability == 0 or records - 1 < dimension:
        return 0.0
    bracket = (
        math.sqrt(records - 1 - dimension)
        - math.sqrt(dimension)
        - math.sqrt(2 * math.log(1 / probability))
    )
    return (s * max(0.0, bracket)) ** 2


def _strong_convexity(floor: float, spectrum: float, ridge: float) -> float:
    convexity = floor + ridge
    if ridge < 0:
        if -ridge >= spectrum:
            raise InfeasibleError(
                f"Expected ridge={ridge:.6g} > {-spectrum:.6g}: more cannot be taken away, because "
                "the noise is not certain to supply it. Raise the ridge, or set debias=False."
            )
        convexity = floor * (1 + ridge / spectrum)
    if convexity <= 0:
        raise InfeasibleError(
            f"Expected ridge={ridge:.6g} and the noise on q to give some curvature: without "
            "noise on q (sigma_u=0) the ridge must be positive."
        )
    return convexity
