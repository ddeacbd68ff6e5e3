"""Theorem 1, repaired: which (ε, δ) the noise of Algorithm 1 keeps, and the least such noise.

Each contributor sends q̃ = q + u and p̃ = p + r with u ~ N(0, σ_u²/n·I), r ~ N(0, σ_b²/n·I); the
database publishes w = argmin over ‖w‖ ≤ η of ½wᵀ(Σq̃q̃ᵀ + Δ_in·I)w − (Σp̃)ᵀw + Ω(w), once.

**Theorem** (proved in docs/theory/certified-input-perturbation.md, tested step by step in
tests/input_perturbation/test_certified_proof.py). Let γ₁ + 2γ₂ + γ₃ + δ_b = δ, s² = σ_u²/n, n > d
where σ_u > 0, Δ_in > 0 where σ_u = 0, and

    λ̃ = s² · upper γ₂-quantile of χ²_d(R_q²/s²)        a blurred record's energy ‖q + u‖²
    f = s² · lower γ₁-quantile of χ²_{n−d}             1/(eᵀA₋ᵢ⁻¹e), e the direction that matters
    a = s² · max(0, √(n−1−d) − √d − √(2 ln(1/γ₃)))²    λ_min(A₋ᵢ), needed only where Δ_in < 0
    h = f + Δ_in for Δ_in ≥ 0,  f·(1 + Δ_in/a) for −a < Δ_in < 0
    ρ = s · √(upper γ₂-quantile of χ²_d)               the noise ‖u‖ itself
    J = ln(1 + λ̃/h)                                    the determinant's part of the privacy loss
    S_π = 2R_p (replace), R_p (zero-out)               the gradient's part that is fixed
    S_w = η·min(λ̃, R_q² + 4R_q·ρ)   (replace)          the part that moves with w
    S_w = η·min(λ̃, R_q² + 2R_q·ρ)   (zero-out).

If h > 0 and δ_b ≥ sup over angles α of H(α), as `blurfit.input_perturbation.gradient_delta` bounds
it for ε − J, a = S_π/σ_b and b = S_w/σ_b, releasing w is (ε, δ)-DP. It needs n honest records, the
exact minimiser, and that A and c are used for nothing else. More honest records than n only help.
With σ_u = 0 it is objective perturbation, certified.

The theorem holds for any split of ε between determinant and gradient and any shares of δ, so both
are chosen from public facts. From (ε, δ) to noise, `choose` minimises the certified excess risk
(`input_excess_risk`); from noise to ε, `least_kept_epsilon` minimises ε itself.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit

from blurfit.errors import InfeasibleError, finite, nonnegative, one_of, positive, whole
from blurfit.input_perturbation.gradient_delta import (
    least_epsilon,
    least_sigma_b,
)
from blurfit.theory.gaussian import (
    Point,
    chi_square_ceiling,
    chi_square_floor,
    descend,
    shifted_energy_ceiling,
)
from blurfit.theory.moments import (
    LEAST_DELTA,
    NEIGHBOURS,
    Neighbours,
    rounded_down,
    rounded_up,
)

LEAST_PROBABILITY = 1e-300  # of an event that the proof gives away: quantiles are exact down to it
FORECAST_FAILURE = 0.1  # β
DEFAULT_FRACTION = 0.01  # of δ, for each of γ₁, 2γ₂ and γ₃, unless they are searched for
_LARGEST_DETERMINANT_LOSS = 10.0  # e¹⁰: a smaller ridge and less noise on q would not show


@dataclass(frozen=True)
class Setting:
    """The public facts of a collection by input perturbation.

    | name | paper | meaning |
    | --- | --- | --- |
    | `dimension` | d | length of q, p and the weights |
    | `quorum` | n | least number of honest records; each carries noise of variance σ²/n |
    | `q_bound` | √λ | bound R_q on ‖q‖ |
    | `p_bound` | ≤ ζ | bound R_p on ‖p‖ |
    | `weight_bound` | η | the model is sought in the ball ‖w‖ ≤ η |
    | `neighbours` | – | what one person may change: "replace" their record, or "zero-out" it |
    """

    dimension: int
    quorum: int
    q_bound: float
    p_bound: float
    weight_bound: float | None = None
    neighbours: Neighbours = "replace"

    def __post_init__(self) -> None:
        whole(dimension=self.dimension, quorum=self.quorum)
        positive(q_bound=self.q_bound, p_bound=self.p_bound)
        if self.weight_bound is not None:
            positive(weight_bound=self.weight_bound)
        one_of(NEIGHBOURS, neighbours=self.neighbours)

    @property
    def smoothness(self) -> float:
        """λ = R_q², because ∇²ℓ = qqᵀ."""
        return self.q_bound**2

    @property
    def ball(self) -> float:
        """η, without which input perturbation has no bound on the gradient."""
        if self.weight_bound is None:
            raise InfeasibleError(
                "`weight_bound` must be given (η): the proof of input perturbation bounds the "
                "gradient over the ball ‖w‖ <= η. Give weight_bound=1.0, say."
            )
        return self.weight_bound

    @property
    def gradient_bound(self) -> float:
        """ζ = λη + R_p ≥ ‖qqᵀw − p‖ over the ball."""
        return self.smoothness * self.ball + self.p_bound


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
        """Return the numbers as they are stated: each rounded to the side on which the theorem
        holds, those that follow from others computed from what is stated of these.

        The theorem is monotone: with a larger λ̃, J or S_w, or a smaller f, a or h, it promises
        less. So it holds for any numbers that bound the exact ones so.
        """
        energy = rounded_up(self.record_energy)
        floor, spectrum = rounded_down(self.gram_floor), rounded_down(self.spectrum_floor)
        convexity = rounded_down(_strong_convexity(floor, spectrum, ridge))
        loss = rounded_up(math.log1p(energy / convexity))
        moving = rounded_up(self.moving_sensitivity)
        return CurvatureLoss(energy, floor, spectrum, convexity, loss, moving)


def curvature_loss(
    setting: Setting, sigma_u: float, ridge: float, shares: DeltaShares
) -> CurvatureLoss:
    """λ̃, f, a, h, J and S_w; raises InfeasibleError where the theorem does not apply."""
    radius, d, n = setting.q_bound, setting.dimension, setting.quorum
    energy, floor, spectrum, noise = radius**2, 0.0, 0.0, 0.0
    if sigma_u > 0:
        _require_more_records(n, d)
        s = sigma_u / math.sqrt(n)
        energy = shifted_energy_ceiling(shares.record, d, radius, s)
        floor = s**2 * chi_square_floor(shares.gram, n - d)
        noise = s * math.sqrt(chi_square_ceiling(shares.record, d))
        spectrum = spectrum_floor(s, d, n, shares.spectrum)
    convexity = _strong_convexity(floor, spectrum, ridge)
    cross = radius**2 + (4 if setting.neighbours == "replace" else 2) * radius * noise
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


def _require_more_records(records: int, dimension: int) -> None:
    """n > d: with fewer records the noise leaves a direction without any curvature."""
    if records <= dimension:
        raise InfeasibleError(
            f"Expected quorum={records} > dimension={dimension}: input perturbation has no "
            f"guarantee below. The least quorum that works is {dimension + 1}; joint moments "
            "(MomentPerturbationRegressor) work with any."
        )


def spectrum_floor(s: float, dimension: int, records: int, probability: float) -> float:
    """a = s²·max(0, √(n−1−d) − √d − √(2 ln(1/γ₃)))² ≤ λ_min(A₋ᵢ) but for γ₃.

    The bracket is cut at 0 before it is squared: a negative one squared would promise what is not
    there.
    """
    if probability == 0 or records - 1 < dimension:
        return 0.0
    certain = math.sqrt(records - 1 - dimension) - math.sqrt(dimension)
    return (s * max(0.0, certain - math.sqrt(2 * math.log(1 / probability)))) ** 2


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


def input_excess_risk(setting: Setting, noise: Scales) -> float:
    """Bound J(w) − J(ŵ) ≤ (2η‖b‖ + ½η²(κ₊ − κ₋) + η²‖C‖)/n, certified with probability 0.9.

    b is the noise on Σp, κ± are the extreme eigenvalues of UᵀU + Δ_in·I and C = UᵀQ + QᵀU; proved
    in docs/theory/excess-risk.md. `calibrate(split=None)` minimises this number.
    """
    n, d, eta = setting.quorum, setting.dimension, setting.ball
    t = math.sqrt(2 * math.log(6 / FORECAST_FAILURE))
    linear = noise.sigma_b * math.sqrt(chi_square_ceiling(FORECAST_FAILURE / 3, d))
    spread = (math.sqrt(d) + t) / math.sqrt(n)
    largest = noise.sigma_u**2 * (1 + spread) ** 2 + noise.ridge
    smallest = noise.sigma_u**2 * max(0.0, 1 - spread) ** 2 + noise.ridge
    cross = 2 * noise.sigma_u * setting.q_bound * (math.sqrt(d) + 1 + t)
    spread_of_k = max(0.0, largest) - min(0.0, smallest)
    return (2 * eta * linear + eta**2 * (spread_of_k / 2 + cross)) / n


@dataclass(frozen=True)
class Choice:
    """A calibration of input perturbation, with everything that is needed to check it."""

    scales: Scales
    shares: DeltaShares
    loss: CurvatureLoss
    split: float


@lru_cache(maxsize=256)  # the same question has the same answer, and takes a search
def choose(
    setting: Setting,
    epsilon: float,
    delta: float,
    *,
    split: float | None = None,
    local_mu: float | None = None,
    debias: bool = True,
) -> Choice:
    """Choose the noise that keeps (ε, δ), and μ ≤ `local_mu` for a submission.

    With split=None the choice minimises the certified excess risk. A number fixes it, and the
    shares of δ at a hundredth for each event. What the noise on q spends of a submission's μ² is
    chosen likewise.
    """
    require_certifiable(delta)
    _require_more_records(setting.quorum, setting.dimension)

    searching = [] if split is not None else [math.log(0.2 / 0.8), 0.0, 0.0]
    start = np.array(searching + ([] if local_mu is None else [0.0]))

    def build(point: Point, sharp: bool) -> Choice:
        odds, gram, record = point[:3] if split is None else (0.0, 0.0, 0.0)
        return _candidate(
            setting,
            epsilon,
            delta,
            split=_share(odds) if split is None else split,
            fractions=(_fraction(gram), _fraction(record), DEFAULT_FRACTION),
            local_mu=local_mu,
            q_share=0.5 if local_mu is None else _share(point[-1]),
            debias=debias,
            sharp=sharp,
        )

    def risk(point: Point) -> float:
        try:
            return math.log(input_excess_risk(setting, build(point, sharp=False).scales))
        except (ArithmeticError, ValueError):  # out there floating point ends: search elsewhere
            return math.inf

    return build(descend(risk, start, steps=90) if start.size else start, sharp=True)


def require_certifiable(delta: float) -> None:
    """Refuse a δ of which no share can be given away with certainty."""
    if delta < LEAST_DELTA:
        raise InfeasibleError(
            f"Expected delta={delta!r} to be at least {LEAST_DELTA:g}: the tails from which the "
            "noise follows are not certain below."
        )


def least_kept_epsilon(setting: Setting, scales: Scales, delta: float) -> tuple[float, DeltaShares]:
    """Return the least ε that the theorem gives to these scales at δ, over all shares of δ."""
    require_certifiable(delta)

    def evaluate(point: Point, sharp: bool) -> tuple[float, DeltaShares]:
        gram, record, spectrum = _tails(scales, delta, point)
        shares = DeltaShares(gram, record, spectrum, delta - gram - 2 * record - spectrum)
        return kept_epsilon(setting, scales, shares, sharp=sharp), shares

    return _tightest(evaluate, scales)


def kept_epsilon(
    setting: Setting,
    scales: Scales,
    shares: DeltaShares,
    *,
    sharp: bool = True,
) -> float:
    """Return the ε that the theorem gives to these scales at these shares of δ."""
    loss = curvature_loss(setting, scales.sigma_u, scales.ridge, shares)
    parts = *standardised(setting, scales.sigma_b, loss), setting.dimension
    return least_epsilon(loss.determinant_loss, shares.gradient, *parts, sharp=sharp)


def standardised(setting: Setting, sigma_b: float, loss: CurvatureLoss) -> tuple[float, float]:
    """a and b: S_π and S_w over σ_b."""
    return fixed_sensitivity(setting) / sigma_b, loss.moving_sensitivity / sigma_b


def local_mu(setting: Setting, scales: Scales) -> float:
    """μ = 2√n·√(R_q²/σ_u² + R_p²/σ_b²): one submission, exactly, for the worst two records."""
    if scales.sigma_u == 0 or scales.sigma_b == 0:
        return math.inf
    reach = math.hypot(setting.q_bound / scales.sigma_u, setting.p_bound / scales.sigma_b)
    return 2 * math.sqrt(setting.quorum) * reach


def _candidate(
    setting: Setting,
    epsilon: float,
    delta: float,
    *,
    split: float,
    fractions: tuple[float, float, float],
    local_mu: float | None,
    q_share: float,
    debias: bool,
    sharp: bool,
) -> Choice:
    """J = split·ε, σ_u² = R_q²/(e^J − 1), Δ_in = λ̃/(e^J − 1) − f, then σ_b, and all of it again.

    With `sharp` every number is rounded to the safe side as it is made, and those after it follow
    from what is stated: shares of δ down, σ_u, Δ_in and σ_b up (`blurfit.theory.moments`).

    σ_u is raised where a local target asks for more. Where the noise then supplies more curvature
    than J needs, Δ_in is negative: taken away again up to what is certain (−a·(1 − λ̃/((e^J −
    1)f))) with `debias`, else left (Δ_in = 0).
    """
    n, d = setting.quorum, setting.dimension
    up, down = (rounded_up, rounded_down) if sharp else (float, float)
    gram, record = _probability(delta * fractions[0]), _probability(delta * fractions[1] / 2)
    gram, record, spectrum = down(gram), down(record), down(_probability(delta * fractions[2]))
    growth = math.expm1(min(split * epsilon, _LARGEST_DETERMINANT_LOSS))
    sigma_u = setting.q_bound / math.sqrt(growth)
    if local_mu is not None:
        sigma_u = max(sigma_u, 2 * math.sqrt(n / q_share) * setting.q_bound / local_mu)
    sigma_u = up(sigma_u)
    s = sigma_u / math.sqrt(n)
    needed = shifted_energy_ceiling(record, d, setting.q_bound, s) / growth
    floor = down(s**2 * chi_square_floor(gram, n - d))
    ridge = needed - floor
    if ridge < 0:
        certain = down(spectrum_floor(s, d, n, spectrum) if debias else 0.0)
        ridge = -certain * (1 - needed / floor) * (1 - 1e-12)
    ridge = up(ridge)
    if ridge >= 0:
        spectrum = 0.0
    shares = DeltaShares(gram, record, spectrum, down(delta - gram - 2 * record - spectrum))
    loss = curvature_loss(setting, sigma_u, ridge, shares)
    if sharp:
        loss = loss.bounded(ridge)
    headroom = epsilon - loss.determinant_loss
    parts = fixed_sensitivity(setting), loss.moving_sensitivity
    sigma_b = least_sigma_b(headroom, shares.gradient, *parts, d, sharp=sharp)
    if local_mu is not None:
        rest = (local_mu / 2) ** 2 / n - (setting.q_bound / sigma_u) ** 2
        sigma_b = max(sigma_b, setting.p_bound / math.sqrt(rest) * (1 + 1e-12))
    return Choice(Scales(sigma_u, up(sigma_b), ridge), shares, loss, split)


def _tightest(
    evaluate: Callable[[Point, bool], tuple[float, DeltaShares]], scales: Scales
) -> tuple[float, DeltaShares]:
    """Minimise over the logarithms of the shares, starting from small to ever smaller ones."""
    if scales.sigma_u == 0:
        return evaluate(np.empty(0), True)

    def value(point: Point) -> float:
        try:
            return math.log(evaluate(point, False)[0] + 1e-300)
        except InfeasibleError:
            return math.inf

    starts = [np.full(3, start) for start in (0.0, -5.0, -15.0, -30.0, -60.0, -120.0)]
    best = min(starts, key=value)
    if value(best) == math.inf:
        return evaluate(best, True)  # which says why it is infeasible
    return evaluate(descend(value, best, steps=200), True)


def _tails(scales: Scales, whole: float, point: Point) -> tuple[float, float, float]:
    """γ₁, γ₂ and γ₃ as shares of a whole; 0 for events that these scales do not know."""
    if scales.sigma_u == 0:
        return 0.0, 0.0, 0.0
    gram, record, spectrum = (_probability(whole * _fraction(value)) for value in point)
    return gram, record / 2, spectrum if scales.ridge < 0 else 0.0


def _share(log_odds: float) -> float:
    """From the real line to (0, 1), kept away from its ends."""
    return min(max(float(expit(log_odds)), 1e-6), 1 - 1e-6)


def _fraction(logarithm: float) -> float:
    """From the real line to a share of δ: a hundredth at 0, never more than 0.3."""
    return DEFAULT_FRACTION * math.exp(min(logarithm, math.log(0.3 / DEFAULT_FRACTION)))


def _probability(value: float) -> float:
    return max(value, LEAST_PROBABILITY)
