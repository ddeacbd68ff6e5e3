"""Calibrate input perturbation, and verify what somebody else has calibrated.

`calibrate` goes from a promise to noise, and its inverse `guarantee` from noise to a promise, from
public facts only. An `InputCalibration` carries every number that its guarantee follows from, each
rounded to the safe side (`blurfit.theory.moments`), so whoever receives one need not trust the
sender: `verify` finds the promise kept by the numbers as they are stated. The theorem's quantities
bound the exact ones, and the noise on p, with what they leave of ε, spends no more than its share
of δ.

**As the paper prints it** (Algorithm 1, Corollaries 1 and 2, Theorem 1): `published_scales` and
`published_claim` are the numbers that a reader of the paper computes. Theorem 1 does not hold as
stated (lab/docs/errata.md), so they are no promise: `calibrate(rule="published")` says what is
proved of the same noise beside it.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, Literal

from blurfit.errors import (
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    inside_unit_interval,
    nonnegative,
    one_of,
    positive,
    whole,
    within_floating_point,
)
from blurfit.theory import certified
from blurfit.theory.certified import CurvatureLoss, DeltaShares, Scales
from blurfit.theory.gradient_delta import log_gradient_delta
from blurfit.theory.moments import (
    LEAST_DELTA,
    RULES,
    LocalGuarantee,
    ModelGuarantee,
    Neighbours,
    Rule,
    Setting,
    calibration_from,
    local_guarantee,
    local_target,
    require_above,
    require_close,
    require_equal,
    require_local,
    require_one,
    rounded_down,
    rounded_up,
)


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
            "Expected quorum={n} > 4·ln(8/delta) for rule='published' at delta={delta:g}. "
            "The least quorum that works is {least_quorum}; "
            "rule='certified' has no such limit.",
            n=n,
            delta=delta,
            least_quorum=least_quorum(delta),
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
class InputCalibration:
    """The paper's mechanism: q̃ = q + N(0, σ_u²/n·I), p̃ = p + N(0, σ_b²/n·I), and the database
    adds Δ_in to the ridge. Make one with `blurfit.calibrate`.

    `excess_risk` is the certified forecast: with probability 0.9 the model's average training loss
    exceeds the best one's in the ball ‖w‖ ≤ η by no more. With l1 or l2 there is none. `split`,
    `shares` and `loss` are those of the theorem. For rule="published" `split` and `loss` are None,
    `model` is the paper's claim, `kept` what is proved of the same noise at the same δ, spent in
    these `shares`, and `local_claim` is Corollary 1's.
    """

    mechanism: Literal["input"] = "input"
    rule: Rule
    setting: Setting
    model: ModelGuarantee
    local: LocalGuarantee
    excess_risk: float | None
    sigma_u: float
    sigma_b: float
    ridge: float
    split: float | None
    shares: DeltaShares | None
    loss: CurvatureLoss | None
    kept: ModelGuarantee
    local_claim: LocalClaim | None

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

    def guarantee(
        self, *, count: int | None = None, epsilon: float | None = None, delta: float | None = None
    ) -> ModelGuarantee:
        """Return what this noise keeps with `count` honest records: see `blurfit.guarantee`.

        δ defaults to the target's, the count to the quorum.
        """
        if epsilon is None and delta is None:
            delta = self.model.delta
        return kept_by_input(self.setting, self.scales, count, epsilon, delta, self.shares)

    @within_floating_point()
    def verify(self, *, penalised: bool = False) -> None:
        """Raise NotCertifiedError if the noise keeps less than is promised, or a stated number does
        not bound what follows from the others. Of a `penalised` model no excess risk may be stated.
        """
        positive(sigma_u=self.sigma_u, sigma_b=self.sigma_b)
        require_equal("neighbours", self.model.neighbours, self.setting.neighbours)
        require_local(self.local, certified.local_mu(self.setting, self.scales))
        risk = None if penalised else certified.input_excess_risk(self.setting, self.scales)
        if risk is None or self.excess_risk is None:
            require_equal("excess_risk", self.excess_risk, risk)
        else:
            require_above("excess_risk", self.excess_risk, risk)
        require_equal("mechanism", (self.mechanism, self.model.releases), ("input", 1))
        require_equal("proved", self.model.proved, self.rule == "certified")
        if self.shares is None:
            raise NotCertifiedError("Expected shares of delta: without them nothing is proved.")
        if self.rule == "published":
            self._verify_published(self.shares)
            return
        require_equal("kept and local_claim", (self.kept, self.local_claim), (self.model, None))
        if self.loss is None or self.split is None:
            raise NotCertifiedError("Expected loss and split: without them nothing is proved.")
        inside_unit_interval(split=self.split, gram=self.shares.gram, record=self.shares.record)
        inside_unit_interval(gradient=self.shares.gradient)
        exact = certified.curvature_loss(self.setting, self.sigma_u, self.ridge, self.shares)
        self.loss.verify(exact, self.ridge)
        parts = certified.standardised(self.setting, self.sigma_b, self.loss)
        headroom = self.model.epsilon - self.loss.determinant_loss
        spent = log_gradient_delta(headroom, *parts, self.setting.dimension)
        _promise(self.shares.total <= self.model.delta, self.model, "shares")
        _promise(spent <= math.log(self.shares.gradient), self.model, "sigma_b")

    def _verify_published(self, shares: DeltaShares) -> None:
        unused = (self.split, self.loss, shares.spectrum)  # its ridge is not negative
        require_equal("split, loss and shares.spectrum", unused, (None, None, 0.0))
        inside_unit_interval(gram=shares.gram, record=shares.record, gradient=shares.gradient)
        scales = published_scales(self.setting, self.model.epsilon, self.model.delta)
        for name, value in asdict(scales).items():
            require_close(name, getattr(self, name), value)
        claim = published_claim(self.setting, scales, self.model.delta)
        require_equal("local_claim", self.local_claim is None, False)
        for name, value in asdict(claim).items():
            require_close(f"local_claim.{name}", getattr(self.local_claim, name), value)
        stated = (self.kept.neighbours, self.kept.releases, self.kept.proved)
        require_equal("kept", stated, (self.setting.neighbours, 1, True))
        kept = certified.kept_epsilon(self.setting, self.scales, shares)
        _promise(shares.total <= self.kept.delta, self.kept, "the paper's noise")
        _promise(kept <= self.kept.epsilon, self.kept, "the paper's noise")

    def to_dict(self) -> dict[str, Any]:
        """Write all of it as plain numbers and words, for JSON; `from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "InputCalibration":
        """Read what `to_dict` wrote; refuse missing and unknown fields. Then call `verify`."""
        optional = {"shares": DeltaShares, "loss": CurvatureLoss, "local_claim": LocalClaim}
        promises = {"model": ModelGuarantee, "kept": ModelGuarantee, "local": LocalGuarantee}
        parts = {"setting": Setting, **promises, **optional}
        return calibration_from(cls, parts, fields, tuple(optional))


@within_floating_point()
def kept_by_input(
    setting: Setting,
    scales: Scales,
    count: int | None,
    epsilon: float | None,
    delta: float | None,
    shares: DeltaShares | None = None,
) -> ModelGuarantee:
    """ε at δ, or δ at ε, of the model from `count` records: by the theorem, at its best shares of
    δ, which are no worse than `shares`.
    """
    require_one(epsilon, delta)
    if count is not None:
        whole(count=count)
    if epsilon is None:
        assert delta is not None
        epsilon, _ = certified.least_kept_epsilon(setting, scales, delta, count, shares)
    else:
        delta, _ = certified.least_kept_delta(setting, scales, epsilon, count, shares)
    stated = min(1.0, max(delta, LEAST_DELTA))
    return ModelGuarantee(epsilon, stated, setting.neighbours, releases=1)


def _promise(holds: bool, promised: ModelGuarantee, culprit: str) -> None:
    if not holds:
        raise NotCertifiedError(
            "The noise does not keep epsilon={epsilon:g}, delta={delta:g}: "
            "{culprit} is too small. Do not send anything blurred with it.",
            epsilon=promised.epsilon,
            delta=promised.delta,
            culprit=culprit,
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
    local_share: float | None = None,
    alpha: float = 1.0,
    debias: bool = True,
) -> InputCalibration:
    """Return the least noise that keeps the promise, from public facts alone.

    Args:
        epsilon: ε of the published model (times `alpha`).
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
        local_share: with a local target, the share of a submission's μ² = μ_q² + μ_p² that the
            noise on q may spend; None minimises `excess_risk`.
        alpha: the paper's balance between model and submission: ε ← αε, in (0, 1].
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
    positive(epsilon=epsilon, alpha=alpha)
    inside_unit_interval(delta=delta)
    one_of(RULES, rule=rule)
    if alpha > 1:
        raise InvalidValueError(
            "Expected alpha={alpha!r} <= 1: it only ever strengthens the promise.", alpha=alpha
        )
    setting = Setting(dimension, quorum, q_bound, p_bound, weight_bound, neighbours)
    target = ModelGuarantee(alpha * epsilon, delta, neighbours, 1)
    own_delta, own_mu = local_target(local_epsilon, local_delta, delta)
    if rule == "published":
        given = {"split": split, "local_epsilon": local_epsilon, "local_share": local_share}
        for name, value in given.items():
            if value is not None:
                raise InvalidValueError(
                    "Expected no {name}={value!r} with rule='published': it has no such parameter.",
                    name=name,
                    value=value,
                )
        return _calibrate_published(setting, target, own_delta)
    if split is not None:
        inside_unit_interval(split=split)
    if local_share is not None:
        inside_unit_interval(local_share=local_share)
        if local_epsilon is None:
            raise InvalidValueError(
                "Expected local_epsilon with local_share={local_share!r}: without a local target "
                "there is nothing to share.",
                local_share=local_share,
            )
    choice = certified.choose(
        setting,
        target.epsilon,
        delta,
        split=split,
        local_mu=own_mu,
        local_share=local_share,
        debias=debias,
    )
    parts = {"split": choice.split, "shares": choice.shares, "loss": choice.loss}
    claims = {"model": target, "kept": target, "local_claim": None}
    found = _stated("certified", setting, choice.scales, own_delta, **parts, **claims)
    found.verify()  # the last line of defence: what a search returned is evaluated again
    return found


def guarantee(
    *,
    dimension: int,
    quorum: int,
    q_bound: float,
    p_bound: float,
    weight_bound: float | None = None,
    neighbours: Neighbours = "replace",
    sigma_u: float,
    sigma_b: float,
    ridge: float = 0.0,
    count: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
) -> ModelGuarantee:
    """Return what given noise keeps, the inverse of `calibrate`: ε at δ, or δ at ε.

    `quorum` is what each record was blurred for (variance σ²/quorum), `count` how many honest
    records there are (default: the quorum).
    """
    setting = Setting(dimension, quorum, q_bound, p_bound, weight_bound, neighbours)
    nonnegative(sigma_u=sigma_u)
    positive(sigma_b=sigma_b)
    return kept_by_input(setting, Scales(sigma_u, sigma_b, ridge), count, epsilon, delta)


def _calibrate_published(
    setting: Setting, target: ModelGuarantee, own_delta: float
) -> InputCalibration:
    scales = published_scales(setting, target.epsilon, target.delta)
    _, shares = certified.least_kept_epsilon(setting, scales, target.delta)
    shares = DeltaShares(*map(rounded_down, astuple(shares)))
    kept = rounded_up(certified.kept_epsilon(setting, scales, shares))
    parts = {"split": None, "shares": shares, "loss": None}
    claims = {
        "model": replace(target, proved=False),
        "kept": replace(target, epsilon=kept),
        "local_claim": published_claim(setting, scales, target.delta),
    }
    return _stated("published", setting, scales, own_delta, **parts, **claims)


def _stated(
    rule: Rule, setting: Setting, scales: Scales, own_delta: float, **others: Any
) -> InputCalibration:
    """Complete a calibration by what follows from its noise, rounded to the safe side."""
    return InputCalibration(
        rule=rule,
        setting=setting,
        local=local_guarantee(certified.local_mu(setting, scales), own_delta),
        excess_risk=rounded_up(certified.input_excess_risk(setting, scales)),
        **asdict(scales),
        **others,
    )
