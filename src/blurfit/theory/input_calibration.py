"""Noise that keeps a promise: what `calibrate` returns, and how anyone can check it.

A calibration carries every number that its guarantee follows from, so whoever receives one need not
trust the sender: `verify` finds the promise kept by the numbers as they are stated. Each of them is
rounded to the safe side when it is made, and checked by inequality (`blurfit.theory.stated`): the
theorem's quantities bound the exact ones (`CurvatureLoss.verify`), and the noise on p, with what
they leave of ε, spends no more than its share of δ.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from blurfit.errors import InvalidValueError, NotCertifiedError
from blurfit.theory import certified, excess_risk, paper, search
from blurfit.theory.certified import CurvatureLoss, DeltaShares, Scales
from blurfit.theory.gradient_delta import log_gradient_delta
from blurfit.theory.paper import LocalClaim
from blurfit.theory.setting import LEAST_DELTA, LocalGuarantee, ModelGuarantee, Rule, Setting
from blurfit.theory.stated import require_above, require_close, require_equal, require_local
from blurfit.validate import (
    inside_unit_interval,
    nonnegative,
    positive,
    whole,
    within_floating_point,
)


@dataclass(frozen=True, kw_only=True)
class InputCalibration:
    """The paper's mechanism: q̃ = q + N(0, σ_u²/n·I), p̃ = p + N(0, σ_b²/n·I), and the database
    adds Δ_in to the ridge. Make one with `blurfit.calibrate`.

    `excess_risk` is the certified forecast: with probability 0.9 the model's average training loss
    exceeds the best one's in the ball ‖w‖ ≤ η by no more. With l1 or l2 there is none.

    `split`, `shares` and `loss` are the theorem's intermediate quantities
    (`blurfit.theory.certified`). For rule="published" `split` and `loss` are None, `model` is the
    paper's claim, `kept` what is proved of the same noise at the same δ, spent in these `shares`,
    and `local_claim` is Corollary 1's.
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
    def scales(self) -> Scales:
        """σ_u, σ_b and Δ_in together."""
        return Scales(self.sigma_u, self.sigma_b, self.ridge)

    def guarantee(
        self, *, count: int | None = None, epsilon: float | None = None, delta: float | None = None
    ) -> ModelGuarantee:
        """What this noise keeps with `count` honest records: see `blurfit.guarantee`.

        δ defaults to the target's, the count to the quorum.
        """
        if epsilon is None and delta is None:
            delta = self.model.delta
        return kept_by_input(self.setting, self.scales, count, epsilon, delta, self.shares)

    @within_floating_point()
    def verify(self, *, penalised: bool = False) -> None:
        """Find the promise kept by what is stated, or refuse it. No excess risk may be stated of a
        `penalised` model.

        Raises NotCertifiedError if the noise keeps less than is promised, or a stated number does
        not bound what follows from the others.
        """
        positive(sigma_u=self.sigma_u, sigma_b=self.sigma_b)
        require_equal("neighbours", self.model.neighbours, self.setting.neighbours)
        require_local(self.local, search.local_mu(self.setting, self.scales))
        risk = None if penalised else excess_risk.input_excess_risk(self.setting, self.scales)
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
        spent = log_gradient_delta(
            self.model.epsilon - self.loss.determinant_loss,
            *search.standardised(self.setting, self.sigma_b, self.loss),
            self.setting.dimension,
        )
        _promise(self.shares.total <= self.model.delta, self.model, "shares")
        _promise(spent <= math.log(self.shares.gradient), self.model, "sigma_b")

    def _verify_published(self, shares: DeltaShares) -> None:
        unused = (self.split, self.loss, shares.spectrum)  # its ridge is not negative
        require_equal("split, loss and shares.spectrum", unused, (None, None, 0.0))
        inside_unit_interval(gram=shares.gram, record=shares.record, gradient=shares.gradient)
        scales = paper.scales(self.setting, self.model.epsilon, self.model.delta)
        for name, value in asdict(scales).items():
            require_close(name, getattr(self, name), value)
        claim = paper.local_claim(self.setting, scales, self.model.delta)
        require_equal("local_claim", self.local_claim is None, False)
        for name, value in asdict(claim).items():
            require_close(f"local_claim.{name}", getattr(self.local_claim, name), value)
        stated = (self.kept.neighbours, self.kept.releases, self.kept.proved)
        require_equal("kept", stated, (self.setting.neighbours, 1, True))
        kept = search.kept_epsilon(self.setting, self.scales, shares)
        _promise(shares.total <= self.kept.delta, self.kept, "the paper's noise")
        _promise(kept <= self.kept.epsilon, self.kept, "the paper's noise")

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and words, for JSON; `from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "InputCalibration":
        """The inverse of `to_dict`; refuses missing and unknown fields. Then call `verify`."""
        parts = {
            "setting": Setting,
            "model": ModelGuarantee,
            "kept": ModelGuarantee,
            "local": LocalGuarantee,
            "shares": DeltaShares,
            "loss": CurvatureLoss,
            "local_claim": LocalClaim,
        }
        try:
            return cls(
                **{
                    name: parts[name](**value) if name in parts and value is not None else value
                    for name, value in fields.items()
                }
            )
        except TypeError as error:
            raise InvalidValueError(
                f"Expected a calibration as `to_dict` writes it: {error}. Was it written by "
                "another version of blurfit?"
            ) from error


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
    _check_question(count, epsilon, delta)
    if epsilon is None:
        assert delta is not None
        epsilon, _ = search.least_kept_epsilon(setting, scales, delta, count, shares)
    else:
        delta, _ = search.least_kept_delta(setting, scales, epsilon, count, shares)
    stated = min(1.0, max(delta, LEAST_DELTA))
    return ModelGuarantee(epsilon, stated, setting.neighbours, releases=1)


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


def _promise(holds: bool, promised: ModelGuarantee, culprit: str) -> None:
    if not holds:
        raise NotCertifiedError(
            f"The noise does not keep epsilon={promised.epsilon:g}, delta={promised.delta:g}: "
            f"{culprit} is too small. Do not send anything blurred with it."
        )
