"""From a promise to the noise of Algorithm 1: the published rule and the certified one.

| rule | noise | what is proved |
| --- | --- | --- |
| "published" | Algorithm 1 and Corollary 2 | only `kept`, not Theorem 1 (lab/docs/errata.md) |
| "certified" | `theorem.choose` | docs/theory/certified-input-perturbation.md |

Everything follows from public facts (`Setting`, ε, δ). Each stated number is rounded to the safe
side (`blurfit.theory.moments`). A contributor need not trust the sender: `PublicInput.verify`
computes anew what the noise keeps.

**The grid.** Noise is drawn exactly, on public multiples of powers of two. What that costs is
reserved: 2⁻¹⁰ of ε, a thousandth of δ, and bounds that are larger by ξ = 2⁻¹¹ (docs/theory/
certified-input-perturbation.md, "On a grid").
"""

import math
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, Literal, NamedTuple

from blurfit.agreement.numbers import DISCRETE_SHARE, power_of_two_below, promised_in_all
from blurfit.errors import (
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    inside_unit_interval,
    nonnegative,
    one_of,
    positive,
    within_floating_point,
)
from blurfit.input_perturbation import theorem
from blurfit.input_perturbation.gradient_delta import log_gradient_delta
from blurfit.input_perturbation.losses import QuadraticLoss
from blurfit.input_perturbation.theorem import DeltaShares, Scales, Setting, spectrum_floor
from blurfit.theory.moments import (
    LocalGuarantee,
    ModelGuarantee,
    Neighbours,
    local_guarantee,
    local_target,
    require_above,
    require_equal,
    require_local,
    rounded_down,
    rounded_up,
)

Rule = Literal["certified", "published"]
RULES: tuple[Rule, ...] = ("certified", "published")
ROUNDING = 2.0**-11  # ξ: bounds are enlarged by this fraction, which pays for rounding the record
LATTICE_SHARE = 2.0**-10  # of ε, reserved for weights on a lattice
_RESOLUTION = 2.0**-13  # of one contributor's noise: the coarsest steps of q and p
_WEIGHT_RESOLUTION = 2.0**-20  # b₀, of η: the least scale of the weights' own noise
_ERRORS_IN_A_SCALE = 2.0**12  # times d/min(1, ε): how far errors of the weights are below b
_REJECTED_AT_MOST = 1e-12, 1e-4  # by the radii: its probability, and its fraction of δ


@dataclass(frozen=True)
class LocalClaim:
    """Corollary 1's (ε, δ) for one submission; its proof needs ε < 1, which is usually exceeded."""

    epsilon: float
    delta: float


def least_quorum(delta: float) -> int:
    """Return the least n with 1 − 2√(ln(4/γ)/n) > 0, γ = δ/2, that is n > 4 ln(8/δ)."""
    return math.floor(4 * math.log(8 / delta)) + 1


def published_scales(setting: Setting, epsilon: float, delta: float) -> Scales:
    """σ_b of Algorithm 1, σ_u of Corollary 2 (appendix), and Δ_in = Δ − 2λ/ε with Theorem 2's Δ.

    With γ = δ' = δ/2, a = √(ln(2/γ)/n) and v = 1 − 2√(ln(4/γ)/n):

        σ_b² = ζ²(8 ln(2/δ') + 4ε)/ε²
        σ_u = (√(2d)·a·λ + √(2d·a²·λ² + v·2λ/ε))/v
        Δ = max(2λ/ε, √(ζ²·d·ln(1/δ))/(ε·η))

    Algorithm 1 prints ln(2/γ) inside v; the proof needs Corollary 2's ln(4/γ). The paper asks for Δ
    > 2λ/ε and leaves the constant of Theorem 2's Θ(·) open; we take 1, and ‖ŵ‖ = η because ŵ is not
    known beforehand.
    """
    n, d = setting.quorum, setting.dimension
    smoothness, zeta = setting.smoothness, setting.gradient_bound
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


def published_claim(setting: Setting, noise: Scales, delta: float) -> LocalClaim:
    """Corollary 1: (2c√n(λ/σ_u + ζ/σ_b), 2δ) with c = √(2 ln(1.25/δ)), as printed."""
    c = math.sqrt(2 * math.log(1.25 / delta))
    reach = setting.smoothness / noise.sigma_u + setting.gradient_bound / noise.sigma_b
    return LocalClaim(epsilon=2 * c * math.sqrt(setting.quorum) * reach, delta=2 * delta)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """σ_u, σ_b and Δ_in (`ridge`) for a setting, and what they guarantee. Made by `calibrate`.

    Attributes:
        rule: "certified" or "published".
        setting: the public facts d, n, √λ, ζ, η and the neighbouring relation.
        model: (ε, δ) of the published model; for rule="published" the paper's claim.
        kept: what is proved of this noise, at the same δ; equal to `model` for rule="certified".
        local: what one submission keeps by itself, exactly.
        local_claim: Corollary 1's numbers, for rule="published".
        excess_risk: with probability 0.9 the model's average training loss exceeds the least one
            in the ball ‖w‖ ≤ η by no more, if no penalty is agreed on.
        split: J's share of ε, for rule="certified".
        shares: how the theorem spends δ.
    """

    rule: Rule
    setting: Setting
    model: ModelGuarantee
    kept: ModelGuarantee
    local: LocalGuarantee
    local_claim: LocalClaim | None
    excess_risk: float
    sigma_u: float
    sigma_b: float
    ridge: float
    split: float | None
    shares: DeltaShares

    @property
    def quorum(self) -> int:
        """n, the least number of honest records."""
        return self.setting.quorum

    @property
    def q_noise(self) -> float:
        """σ_u/√n: the deviation of what one contributor adds to each coordinate of q."""
        return self.sigma_u / math.sqrt(self.setting.quorum)

    @property
    def p_noise(self) -> float:
        """σ_b/√n: the deviation of what one contributor adds to each coordinate of p."""
        return self.sigma_b / math.sqrt(self.setting.quorum)

    @property
    def scales(self) -> Scales:
        """σ_u, σ_b and Δ_in together."""
        return Scales(self.sigma_u, self.sigma_b, self.ridge)

    @within_floating_point()
    def verify(self) -> None:
        """Compute anew what the noise keeps; raise NotCertifiedError if that is less than stated.

        For rule="published" the numbers that are checked are those of `kept`.
        """
        positive(sigma_u=self.sigma_u, sigma_b=self.sigma_b)
        require_equal("proved", self.model.proved, self.rule == "certified")
        for stated in (self.model, self.kept):
            facts = stated.neighbours, stated.releases
            require_equal("neighbours and releases", facts, (self.setting.neighbours, 1))
        require_equal("kept.proved", self.kept.proved, True)
        if self.rule == "certified":
            require_equal("kept", self.kept, self.model)
        require_local(self.local, theorem.local_mu(self.setting, self.scales))
        risk = theorem.input_excess_risk(self.setting, self.scales)
        require_above("excess_risk", self.excess_risk, risk)
        loss = theorem.curvature_loss(self.setting, self.sigma_u, self.ridge, self.shares)
        parts = theorem.standardised(self.setting, self.sigma_b, loss)
        headroom = self.kept.epsilon - loss.determinant_loss
        spent = log_gradient_delta(headroom, *parts, self.setting.dimension)
        inside_unit_interval(gradient=self.shares.gradient)
        for culprit, holds in (
            ("its shares of delta", self.shares.total <= self.kept.delta),
            ("sigma_b", spent <= math.log(self.shares.gradient)),
        ):
            if not holds:
                raise NotCertifiedError(
                    f"The noise does not keep epsilon={self.kept.epsilon:g}, "
                    f"delta={self.kept.delta:g}: {culprit} do not suffice. Do not send anything "
                    "blurred with it."
                )


@within_floating_point()
def calibrate(
    epsilon: float,
    delta: float,
    *,
    dimension: int,
    quorum: int,
    q_bound: float,
    p_bound: float,
    weight_bound: float | None = None,
    rule: Rule = "certified",
    neighbours: Neighbours = "replace",
    split: float | None = None,
    local_epsilon: float | None = None,
    local_delta: float | None = None,
    debias: bool = True,
) -> Calibration:
    """Return the least noise that keeps the promise, from public facts alone.

    Args:
        epsilon: ε of the published model.
        delta: δ of the published model, at least 1e-290.
        dimension: d, the length of q and p.
        quorum: n, the least number of honest records; no model may be published below it.
        q_bound: R_q ≥ ‖q‖ for every record.
        p_bound: R_p ≥ ‖p‖ for every record.
        weight_bound: η; the model is sought in ‖w‖ ≤ η.
        rule: "certified" is proved; "published" is what the paper prints.
        neighbours: what one person may change: "replace" their record by any other, or "zero-out"
            it (by q = 0, p = 0).
        split: J's share of ε, between 0 and 1; None minimises `excess_risk`.
        local_epsilon: a target for a single submission too; raises the noise until it is kept
            exactly.
        local_delta: δ of the submission's guarantee; defaults to `delta`, but must be said with
            `local_epsilon`.
        debias: let a negative ridge take back what the noise adds to the curvature, as far as it is
            certain.

    Raises:
        InvalidValueError: a value that its parameter cannot have.
        InfeasibleError: values that do not go together; the message has the remedy, such as the
            least quorum that works.
        NotCertifiedError: values so extreme that floating point cannot hold what follows.

    >>> found = calibrate(1, 1e-6, dimension=14, quorum=2**21, q_bound=1, p_bound=1, weight_bound=1)
    >>> found.sigma_b < 15, found.model.releases
    (True, 1)
    """
    positive(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    one_of(RULES, rule=rule)
    setting = Setting(dimension, quorum, q_bound, p_bound, weight_bound, neighbours)
    target = ModelGuarantee(epsilon, delta, neighbours, 1)
    own_delta, own_mu = local_target(local_epsilon, local_delta, delta)
    if rule == "published":
        for name, value in {"split": split, "local_epsilon": local_epsilon}.items():
            if value is not None:
                raise InvalidValueError(
                    f"Expected no {name}={value!r} with rule='published': it has no such parameter."
                )
        return _calibrate_published(setting, target, own_delta)
    if split is not None:
        inside_unit_interval(split=split)
    choice = theorem.choose(setting, epsilon, delta, split=split, local_mu=own_mu, debias=debias)
    claims = {"model": target, "kept": target, "local_claim": None}
    parts = {"split": choice.split, "shares": choice.shares}
    calibration = _stated("certified", setting, choice.scales, own_delta, **parts, **claims)
    calibration.verify()  # the last line of defence: what a search returned is evaluated again
    return calibration


def _calibrate_published(setting: Setting, target: ModelGuarantee, own_delta: float) -> Calibration:
    scales = published_scales(setting, target.epsilon, target.delta)
    _, shares = theorem.least_kept_epsilon(setting, scales, target.delta)
    shares = DeltaShares(*map(rounded_down, astuple(shares)))
    kept = rounded_up(theorem.kept_epsilon(setting, scales, shares))
    parts = {"split": None, "shares": shares}
    claims = {
        "model": replace(target, proved=False),
        "kept": replace(target, epsilon=kept),
        "local_claim": published_claim(setting, scales, target.delta),
    }
    return _stated("published", setting, scales, own_delta, **parts, **claims)


def _stated(
    rule: Rule, setting: Setting, scales: Scales, own_delta: float, **others: Any
) -> Calibration:
    """Complete a calibration by what follows from its noise, rounded to the safe side."""
    return Calibration(
        rule=rule,
        setting=setting,
        local=local_guarantee(theorem.local_mu(setting, scales), own_delta),
        excess_risk=rounded_up(theorem.input_excess_risk(setting, scales)),
        **asdict(scales),
        **others,
    )


class Grid(NamedTuple):
    """Powers of two: the steps of q, of the noise on p, and of p̃, which is dithered within `p`."""

    q: float
    p: float
    dither: float


@dataclass(frozen=True)
class PublicInput:
    """The public input of Algorithms 1 and 2, on which all stakeholders agree beforehand.

    Attributes:
        loss: makes (q, p, s) of a record; its bounds are those of the noise, but for ξ.
        calibration: the noise, and what it guarantees.
        l2: Ω(w) = ½l2·‖w‖²; with a penalty `calibration.excess_risk` does not hold.
    """

    loss: QuadraticLoss
    calibration: Calibration
    l2: float = 0.0

    @classmethod
    def agree(
        cls,
        loss: QuadraticLoss,
        *,
        dimension: int,
        quorum: int,
        epsilon: float,
        delta: float,
        weight_bound: float,
        l2: float = 0.0,
        **choices: Any,
    ) -> "PublicInput":
        """Calibrate the noise for a loss and (ε, δ), with what rounding costs taken off.

        Args:
            loss: its bounds say how far records reach.
            dimension: d, the length of q, p and the weights.
            quorum: n, the least number of honest contributors.
            epsilon: ε of the published weights.
            delta: δ of the published weights.
            weight_bound: η.
            l2: weight of ½‖w‖².
            choices: handed on to `calibrate`: rule, neighbours, split, local_epsilon and so on.

        >>> from blurfit.input_perturbation.losses import SquaredLoss
        >>> public = PublicInput.agree(
        ...     SquaredLoss(), dimension=3, quorum=1000, epsilon=1, delta=1e-6, weight_bound=1
        ... )
        >>> public.epsilon, public.delta, public.calibration.rule
        (1.0, 1e-06, 'certified')
        """
        nonnegative(l2=l2)
        if choices.get("local_delta") is None and choices.get("local_epsilon") is None:
            choices["local_delta"] = delta
        calibration = calibrate(
            epsilon * (1 - LATTICE_SHARE),
            delta * (1 - DISCRETE_SHARE),
            dimension=dimension,
            quorum=quorum,
            q_bound=rounded_up(loss.q_bound * (1 + ROUNDING)),
            p_bound=rounded_up(loss.p_bound * (1 + ROUNDING)),
            weight_bound=weight_bound,
            **choices,
        )
        public = cls(loss, calibration, l2)
        public.require_drawable()
        return public

    @property
    def epsilon(self) -> float:
        """ε of the published weights; for rule="published" the paper's claim."""
        return promised_in_all(self.calibration.model.epsilon, LATTICE_SHARE)

    @property
    def delta(self) -> float:
        """δ of the published weights."""
        return promised_in_all(self.calibration.model.delta, DISCRETE_SHARE)

    @property
    def grid(self) -> Grid:
        """The coarsest grid that the reserved part of ε and δ pays for."""
        noise = self.calibration
        errors = _ERRORS_IN_A_SCALE * noise.setting.dimension / min(1.0, noise.model.epsilon)
        finest = power_of_two_below(noise.setting.ball * _WEIGHT_RESOLUTION)
        steps = (
            noise.q_noise * _RESOLUTION,
            noise.p_noise * _RESOLUTION,
            finest * self.least_curvature / errors,
        )
        q, p, dither = map(power_of_two_below, steps)
        return Grid(q, p, min(p, dither))

    @property
    def least_curvature(self) -> float:
        """κ ≤ λ_min(A + Δ_in·I) for any records: the noise's own spectrum, and the ridge."""
        noise = self.calibration
        # for a negative ridge the theorem has paid already
        probability = noise.shares.spectrum or DISCRETE_SHARE / 2 * noise.model.delta
        facts = noise.setting.dimension, noise.setting.quorum
        curvature = spectrum_floor(noise.q_noise, *facts, probability) + noise.ridge
        if curvature <= 0:
            raise InfeasibleError(
                f"`quorum` must be larger, got {noise.quorum}. With so few records the noise may "
                "leave a direction without curvature, and the weights could betray the grid of "
                "the noise. Joint moments (MomentPerturbationRegressor) work with any."
            )
        return curvature

    @property
    def radii(self) -> tuple[float, float]:
        """The norms beyond which a blurred q or p is rejected, an honest one hardly ever.

        ‖v + noise‖ ≤ ‖v‖ + noise·χ_d, and χ_d > √d + t has a probability below e^{−t²/2}.
        """
        noise, grid = self.calibration, self.grid
        d, n, model = noise.setting.dimension, noise.quorum, noise.model
        probability, share = _REJECTED_AT_MOST
        odds = math.log(n / (share * model.delta)) + model.epsilon
        odds += math.log1p(math.exp(-model.epsilon))
        t = math.sqrt(2 * (math.log(2) + max(-math.log(probability), odds) + 1))
        far = math.sqrt(d) + t
        return (
            noise.setting.q_bound + noise.q_noise * far + grid.q * math.sqrt(d),
            noise.setting.p_bound + noise.p_noise * far + grid.p * math.sqrt(d),
        )

    def weight_scale(self, count: int) -> float:
        """b: the scale of the last noise on weights from `count` records, a power of two."""
        setting, (r_q, r_p) = self.calibration.setting, self.radii
        rounded = 2.0**-53 * count * (r_p + setting.ball * r_q**2) / self.least_curvature
        errors = 2 * _ERRORS_IN_A_SCALE * math.sqrt(setting.dimension)
        errors /= min(1.0, self.calibration.model.epsilon)
        return max(
            power_of_two_below(setting.ball * _WEIGHT_RESOLUTION),
            2 * power_of_two_below(errors * rounded),
        )

    def require_drawable(self) -> None:
        """Raise InfeasibleError for numbers of more steps than add exactly, before any record is
        read: whether one can be sent must not depend on its answers.
        """
        setting, grid = self.calibration.setting, self.grid
        if not (setting.q_bound < 2.0**51 * grid.q and setting.p_bound < 2.0**51 * grid.p):
            raise InfeasibleError(
                f"`quorum` must be smaller, or `epsilon`, got {setting.quorum} and "
                f"{self.epsilon:g}. The noise is too small for numbers of this size."
            )

    def verify(self, *, allow_unproved: bool = False) -> None:
        """Raise NotCertifiedError if the noise is for shorter records than those of the loss, or
        keeps less than stated; or follows the published rule, unless `allow_unproved`.
        """
        setting = self.calibration.setting
        for name in ("q_bound", "p_bound"):
            stated, needed = getattr(setting, name), getattr(self.loss, name) * (1 + ROUNDING)
            if not stated >= needed:
                raise NotCertifiedError(
                    f"`{name}` must be at least {needed!r}, as far as records of the loss reach, "
                    f"got {stated!r}. The noise is calibrated for less."
                )
        self.calibration.verify()
        self.require_drawable()
        if not (self.calibration.model.proved or allow_unproved):
            raise NotCertifiedError(
                f"`rule` must be 'certified', got {self.calibration.rule!r}. epsilon="
                f"{self.calibration.model.epsilon:g} is what the paper states for this noise, and "
                f"epsilon={self.calibration.kept.epsilon:.4g} is what is proved. Send no real "
                "person's record; allow_unproved=True is for experiments."
            )
