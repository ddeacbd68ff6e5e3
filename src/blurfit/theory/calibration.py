"""Noise that keeps a promise: what `calibrate` returns, and how anyone can check it.

A calibration carries every number that its guarantee follows from, so whoever receives one need not
trust the sender: `verify` evaluates the promise again from the scales alone.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError, NotCertifiedError
from blurfit.theory import certified, excess_risk, gaussian, moment, paper, search
from blurfit.theory.certified import CurvatureLoss, Scales, Shares
from blurfit.theory.gradient import log_gradient_delta
from blurfit.theory.paper import LocalClaim
from blurfit.theory.setting import LocalGuarantee, ModelGuarantee, Setting
from blurfit.validate import inside_unit_interval, nonnegative, positive, whole

Mechanism = Literal["moment", "input"]
Rule = Literal["certified", "published"]
MECHANISMS: tuple[Mechanism, ...] = ("moment", "input")
RULES: tuple[Rule, ...] = ("certified", "published")
EVALUATION_ROUNDING = 1 + 1e-10  # what is kept is evaluated at a little less noise than there is


class Deviations(NamedTuple):
    """The noise's deviation in each blurred number of one submission.

    `quadratic` has one for each coordinate of q (input), or for each entry of the upper triangle of
    qqᵀ, row by row (moment); `linear` is that of every coordinate of p.
    """

    quadratic: FloatArray
    linear: float


@dataclass(frozen=True, kw_only=True)
class Calibration(ABC):
    """Noise scales, and what they promise to whom. `InputCalibration` or `MomentCalibration`.

    `excess_risk` is the certified forecast: with probability 0.9 the model's average training loss
    exceeds the best one's in the ball ‖w‖ ≤ η by no more (None without a weight bound).
    """

    mechanism: Mechanism
    rule: Rule
    setting: Setting
    model: ModelGuarantee
    local: LocalGuarantee
    excess_risk: float | None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and words, for JSON; `calibration_from_dict` reads it."""
        return asdict(self)

    @property
    @abstractmethod
    def deviations(self) -> Deviations:
        """What one contributor's noise deviates by, number by number."""

    def guarantee(
        self, *, count: int | None = None, epsilon: float | None = None, delta: float | None = None
    ) -> ModelGuarantee:
        """What this noise keeps with `count` honest records: see `blurfit.guarantee`.

        δ defaults to the target's, the count to the quorum.
        """
        if epsilon is None and delta is None:
            delta = self.model.delta
        return self._kept(count, epsilon, delta)

    def verify(self) -> None:
        """Evaluate the promise again from the scales, and every number that is stated with it.

        Raises NotCertifiedError if the noise keeps less than is promised, or a stated number is not
        what follows from the others.
        """
        _require("neighbours", self.model.neighbours, self.setting.neighbours)
        local_mu, excess_risk = self._local_mu(), self._excess_risk()
        local = LocalGuarantee(
            local_mu, gaussian.epsilon_of(local_mu, self.local.delta), self.local.delta
        )
        _agree("local.mu", self.local.mu, local.mu)
        _agree("local.epsilon", self.local.epsilon, local.epsilon)
        if excess_risk is None or self.excess_risk is None:
            _require("excess_risk", self.excess_risk, excess_risk)
        else:
            _agree("excess_risk", self.excess_risk, excess_risk)

    @abstractmethod
    def _kept(
        self, count: int | None, epsilon: float | None, delta: float | None
    ) -> ModelGuarantee: ...

    @abstractmethod
    def _local_mu(self) -> float: ...

    @abstractmethod
    def _excess_risk(self) -> float | None: ...


@dataclass(frozen=True, kw_only=True)
class InputCalibration(Calibration):
    """The paper's mechanism: q̃ = q + N(0, σ_u²/n·I), p̃ = p + N(0, σ_b²/n·I), and the database
    adds Δ_in to the ridge.

    `split`, `shares` and `loss` are the theorem's intermediate quantities
    (`blurfit.theory.certified`). For rule="published" they are None, `model` is the paper's claim,
    `kept` what is proved of the same noise at the same δ, and `local_claim` is Corollary 1's.
    """

    sigma_u: float
    sigma_b: float
    ridge: float
    split: float | None
    shares: Shares | None
    loss: CurvatureLoss | None
    kept: ModelGuarantee
    local_claim: LocalClaim | None

    @property
    def q_noise(self) -> float:
        """Standard deviation of the noise that one contributor adds to each coordinate of q:
        σ_u/√n.
        """
        return self.sigma_u / math.sqrt(self.setting.quorum)

    @property
    def p_noise(self) -> float:
        """Standard deviation of the noise that one contributor adds to each coordinate of p:
        σ_b/√n.
        """
        return self.sigma_b / math.sqrt(self.setting.quorum)

    @property
    def deviations(self) -> Deviations:
        """σ_u/√n for each coordinate of q, σ_b/√n for each of p."""
        return Deviations(np.full(self.setting.dimension, self.q_noise), self.p_noise)

    @property
    def scales(self) -> Scales:
        """σ_u, σ_b and Δ_in together."""
        return Scales(self.sigma_u, self.sigma_b, self.ridge)

    def verify(self) -> None:
        """See `Calibration.verify`: by the theorem, at the stated shares of δ."""
        positive(sigma_u=self.sigma_u, sigma_b=self.sigma_b)
        super().verify()
        _require("mechanism", (self.mechanism, self.model.releases), ("input", 1))
        _require("proved", self.model.proved, self.rule == "certified")
        if self.rule == "published":
            self._verify_published()
            return
        _require("kept and local_claim", (self.kept, self.local_claim), (self.model, None))
        if self.shares is None or self.loss is None or self.split is None:
            raise NotCertifiedError(
                "Expected shares, loss and split: without them nothing is proved."
            )
        inside_unit_interval(split=self.split, gram=self.shares.gram, record=self.shares.record)
        inside_unit_interval(gradient=self.shares.gradient)
        loss = certified.curvature_loss(self.setting, self.sigma_u, self.ridge, self.shares)
        for name, value in asdict(loss).items():
            _agree(name, getattr(self.loss, name), value)
        spent = log_gradient_delta(
            self.model.epsilon - loss.determinant_loss,
            *search.standardised(self.setting, self.sigma_b, loss),
            self.setting.dimension,
        )
        _promise(self.shares.total <= self.model.delta * (1 + 1e-12), self.model, "shares")
        _promise(spent <= math.log(self.shares.gradient), self.model, "sigma_b")

    def _verify_published(self) -> None:
        unused = (self.split, self.shares, self.loss)
        _require("split, shares and loss", unused, (None, None, None))
        scales = paper.scales(self.setting, self.model.epsilon, self.model.delta)
        for name, value in asdict(scales).items():
            _agree(name, getattr(self, name), value)
        claim = paper.local_claim(self.setting, scales, self.model.delta)
        _require("local_claim", self.local_claim is None, False)
        for name, value in asdict(claim).items():
            _agree(f"local_claim.{name}", getattr(self.local_claim, name), value)
        kept = self.guarantee(delta=self.kept.delta)
        stated = (self.kept.neighbours, self.kept.releases, self.kept.proved)
        _require("kept", stated, (self.setting.neighbours, 1, True))
        _promise(kept.epsilon <= self.kept.epsilon * (1 + 1e-6), self.kept, "the paper's noise")

    def _kept(
        self, count: int | None, epsilon: float | None, delta: float | None
    ) -> ModelGuarantee:
        return kept_by_input(self.setting, self.scales, count, epsilon, delta)

    def _local_mu(self) -> float:
        return search.local_mu(self.setting, self.scales)

    def _excess_risk(self) -> float | None:
        return excess_risk.input_excess_risk(self.setting, self.scales)


@dataclass(frozen=True, kw_only=True)
class MomentCalibration(Calibration):
    """Our mechanism: M̃ = qqᵀ + E with E symmetric of variance σ²/n (diagonal) and σ²/(2n), p̃ = p
    + N(0, τ²σ²/n·I).

    `sigma_m` is σ, `sigma_p` is τσ, `balance` is τ, `sensitivity` is Δ, `mu` = Δ/σ is the exact
    privacy of the sums.
    """

    sigma_m: float
    sigma_p: float
    balance: float
    parallel: bool
    sensitivity: float
    local_sensitivity: float
    mu: float

    @property
    def m_noise(self) -> float:
        """Standard deviation of the noise on each diagonal entry of qqᵀ: σ/√n; off the diagonal it
        is this over √2.
        """
        return self.sigma_m / math.sqrt(self.setting.quorum)

    @property
    def p_noise(self) -> float:
        """Standard deviation of the noise that one contributor adds to each coordinate of p:
        τσ/√n.
        """
        return self.sigma_p / math.sqrt(self.setting.quorum)

    @property
    def deviations(self) -> Deviations:
        """σ/√n on the diagonal of qqᵀ, σ/√(2n) beside it, τσ/√n for each coordinate of p."""
        rows, columns = np.triu_indices(self.setting.dimension)
        beside = self.m_noise / math.sqrt(2)
        return Deviations(np.where(rows == columns, self.m_noise, beside), self.p_noise)

    def verify(self) -> None:
        """See `Calibration.verify`: by the exact Gaussian profile."""
        positive(sigma_m=self.sigma_m, sigma_p=self.sigma_p, balance=self.balance)
        _require("parallel", type(self.parallel), bool)
        super().verify()
        _require("mechanism", (self.mechanism, self.rule), ("moment", "certified"))
        _require("releases", (self.model.releases, self.model.proved), ("any", True))
        reach = moment.sensitivity(self.setting, self.balance, parallel=self.parallel)
        _agree("sigma_p", self.sigma_p, self.balance * self.sigma_m)
        _agree("sensitivity", self.sensitivity, reach)
        _agree("local_sensitivity", self.local_sensitivity, self._local_reach())
        mu = moment.model_mu(self.setting, self.sigma_m, reach)
        _agree("mu", self.mu, mu)
        spent = gaussian.delta_of(mu, self.model.epsilon)
        _promise(spent <= self.model.delta, self.model, "sigma_m")

    def _kept(
        self, count: int | None, epsilon: float | None, delta: float | None
    ) -> ModelGuarantee:
        return kept_by_moment(self.setting, self.sigma_m, self.sensitivity, count, epsilon, delta)

    def _local_reach(self) -> float:
        return moment.local_sensitivity(self.setting, self.balance, parallel=self.parallel)

    def _local_mu(self) -> float:
        return moment.submission_mu(self.setting, self.sigma_m, self._local_reach())

    def _excess_risk(self) -> float | None:
        if self.setting.weight_bound is None:
            return None
        return excess_risk.moment_excess_risk(self.setting, self.sigma_m, self.sigma_p)


def calibration_from_dict(fields: Mapping[str, Any]) -> InputCalibration | MomentCalibration:
    """The inverse of `to_dict`; refuses missing and unknown fields. Then call `verify`."""
    kind: type[InputCalibration] | type[MomentCalibration]
    kind = InputCalibration if fields.get("mechanism") == "input" else MomentCalibration
    parts = {
        "setting": Setting,
        "model": ModelGuarantee,
        "kept": ModelGuarantee,
        "local": LocalGuarantee,
        "shares": Shares,
        "loss": CurvatureLoss,
        "local_claim": LocalClaim,
    }
    try:
        return kind(
            **{
                name: parts[name](**value) if name in parts and value is not None else value
                for name, value in fields.items()
            }
        )
    except TypeError as error:
        raise InvalidValueError(
            f"Expected a calibration as `to_dict` writes it: {error}. Was it written by another "
            "version of blurfit?"
        ) from error


def kept_by_moment(
    setting: Setting,
    sigma_m: float,
    reach: float,
    count: int | None,
    epsilon: float | None,
    delta: float | None,
) -> ModelGuarantee:
    """ε at δ, or δ at ε, of the sums of `count` records: exact, rounded to the safe side."""
    _check_question(count, epsilon, delta)
    mu = moment.model_mu(setting, sigma_m, reach, count) * EVALUATION_ROUNDING
    if epsilon is None:
        assert delta is not None
        epsilon = gaussian.epsilon_of(mu, delta)
    else:
        delta = gaussian.delta_of(mu, epsilon)
    return ModelGuarantee(epsilon, delta, setting.neighbours, "any")


def kept_by_input(
    setting: Setting,
    scales: Scales,
    count: int | None,
    epsilon: float | None,
    delta: float | None,
) -> ModelGuarantee:
    """ε at δ, or δ at ε, of the model from `count` records: by the theorem, at its best shares."""
    _check_question(count, epsilon, delta)
    if epsilon is None:
        assert delta is not None
        epsilon, _ = search.least_kept_epsilon(setting, scales, delta, count)
    else:
        delta, _ = search.least_kept_delta(setting, scales, epsilon, count)
    return ModelGuarantee(epsilon, min(1.0, delta), setting.neighbours, releases=1)


def _check_question(count: int | None, epsilon: float | None, delta: float | None) -> None:
    if (epsilon is None) == (delta is None):
        raise InvalidValueError(
            f"Expected one of epsilon={epsilon!r} and delta={delta!r}: give the one that is "
            "fixed, and the other is computed."
        )
    if epsilon is not None:
        nonnegative(epsilon=epsilon)
    if delta is not None:
        inside_unit_interval(delta=delta)
    if count is not None:
        whole(count=count)


def _agree(name: str, stated: float, follows: float) -> None:
    if not math.isclose(stated, follows, rel_tol=1e-9, abs_tol=1e-300):
        _require(name, stated, follows)


def _require(name: str, stated: object, follows: object) -> None:
    if stated != follows:
        raise NotCertifiedError(
            f"Expected {name} to be {follows!r}, which follows from the scales, but {stated!r} is "
            "stated. Do not rely on this calibration; make a new one with blurfit.calibrate."
        )


def _promise(holds: bool, promised: ModelGuarantee, culprit: str) -> None:
    if not holds:
        raise NotCertifiedError(
            f"The noise does not keep epsilon={promised.epsilon:g}, delta={promised.delta:g}: "
            f"{culprit} is too small. Do not send anything blurred with it."
        )
