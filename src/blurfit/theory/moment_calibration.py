"""Noise for sums that are released themselves: an exact Gaussian mechanism, whatever the form.

However a record becomes numbers (`blurfit.theory.joint_form`, and Newton's quadratics in later
waves), it is the same mechanism: n honest contributors each add Gaussian noise of standard
deviation σ/√n in a geometry in which one person moves the sums by at most Δ, so that

    the sums are μ-GDP with μ = Δ/σ; those of N ≥ n records √(n/N)·Δ/σ-GDP; one submission is
    √n·Δ₁/σ-GDP, where Δ₁ is how far apart two records can be.

All of it is exact (Dong, Roth and Su 2022), and holds for everything computed from the sums.
A form says how far its records reach (`Reach`); the calibration says what noise that takes. Whoever
verifies one computes the reach again from the form, and never takes it from the sender.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from blurfit.errors import InvalidValueError, NotCertifiedError
from blurfit.theory import gaussian
from blurfit.theory.database_noise import total_deviation
from blurfit.theory.setting import (
    LEAST_DELTA,
    NEIGHBOURS,
    LocalGuarantee,
    ModelGuarantee,
    Neighbours,
)
from blurfit.theory.stated import require_close, require_equal
from blurfit.validate import (
    inside_unit_interval,
    nonnegative,
    one_of,
    positive,
    whole,
    within_floating_point,
)

# Noise is rounded up by this much, far more than the error of any function here.
_ROUNDING = 1 + 1e-9
_EVALUATION_ROUNDING = 1 + 1e-10  # what is kept is evaluated at a little less noise than there is


class Reach(NamedTuple):
    """Δ of the sums under an agreement's neighbouring relation, and Δ₁ of a single submission."""

    sums: float
    submission: float


@dataclass(frozen=True, kw_only=True)
class MomentCalibration:
    """σ, and what it promises to whom: `model` for the sums and everything made of them, `local`
    for a single submission. Make one with `calibrate_moment`.
    """

    mechanism: Literal["moment"] = "moment"
    quorum: int
    model: ModelGuarantee
    local: LocalGuarantee
    sigma: float
    reach: Reach
    mu: float

    @property
    def noise(self) -> float:
        """σ/√n: the standard deviation of what one contributor adds to a number on the diagonal;
        off the diagonal, where a number counts twice, it is this over √2.
        """
        return self.sigma / math.sqrt(self.quorum)

    def total_noise(self, count: int, draws: int = 0) -> float:
        """σ√(N/n + k): the standard deviation in the sums of N contributors and k databases."""
        return total_deviation(self.sigma, self.quorum, count, draws)

    @within_floating_point()
    def guarantee(
        self, *, count: int | None = None, epsilon: float | None = None, delta: float | None = None
    ) -> ModelGuarantee:
        """ε at δ (the agreement's, unless you say), or δ at ε, with `count` honest records. No δ
        below 1e-290 is stated.
        """
        records = self.quorum if count is None else count
        whole(count=records)
        mu = self.reach.sums / self.sigma * math.sqrt(self.quorum / records) * _EVALUATION_ROUNDING
        if epsilon is not None and delta is not None:
            raise InvalidValueError(
                f"Expected one of epsilon={epsilon!r} and delta={delta!r}: give the one that is "
                "fixed, and the other is computed."
            )
        if epsilon is None:
            delta = self.model.delta if delta is None else delta
            inside_unit_interval(delta=delta)
            epsilon = gaussian.epsilon_of(mu, delta)
        else:
            nonnegative(epsilon=epsilon)
            delta = max(gaussian.delta_of(mu, epsilon), LEAST_DELTA)
        return ModelGuarantee(epsilon, delta, self.model.neighbours, "any")

    @within_floating_point()
    def verify(self, reach: Reach) -> None:
        """Evaluate the promise again from σ, for records that reach so far.

        Raises NotCertifiedError if the noise keeps less than is promised, or a stated number is not
        what follows from the others.
        """
        positive(sigma=self.sigma)
        whole(quorum=self.quorum)
        require_equal("mechanism", self.mechanism, "moment")
        require_equal("releases", (self.model.releases, self.model.proved), ("any", True))
        require_close("reach of the sums", self.reach.sums, reach.sums)
        require_close("reach of a submission", self.reach.submission, reach.submission)
        require_close("mu", self.mu, reach.sums / self.sigma)
        local = _local(reach, self.sigma, self.quorum, self.local.delta)
        require_close("local.mu", self.local.mu, local.mu)
        require_close("local.epsilon", self.local.epsilon, local.epsilon)
        if gaussian.delta_of(reach.sums / self.sigma, self.model.epsilon) > self.model.delta:
            raise NotCertifiedError(
                f"The noise does not keep epsilon={self.model.epsilon:g}, "
                f"delta={self.model.delta:g}: sigma={self.sigma!r} is too small. Do not send "
                "anything blurred with it."
            )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and words, for JSON; `from_dict` reads it."""
        return asdict(self) | {"reach": self.reach._asdict()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "MomentCalibration":
        """The inverse of `to_dict`; refuses missing and unknown fields. Then call `verify`."""
        try:
            parts = {
                "model": ModelGuarantee(**fields["model"]),
                "local": LocalGuarantee(**fields["local"]),
                "reach": Reach(**fields["reach"]),
            }
            return cls(**fields | parts)
        except (KeyError, TypeError) as error:
            raise InvalidValueError(
                f"Expected a calibration as `to_dict` writes it: {error}. Was it written by "
                "another version of blurfit?"
            ) from error


@within_floating_point()
def calibrate_moment(
    epsilon: float,
    delta: float,
    *,
    reach: Reach,
    quorum: int,
    neighbours: Neighbours = "replace",
    local_epsilon: float | None = None,
    local_delta: float | None = None,
) -> MomentCalibration:
    """The least σ that keeps (ε, δ) for sums that one person moves by at most `reach`.

    `local_epsilon` at `local_delta` asks for a promise about a single submission too, and raises σ
    to √n·Δ₁/μ_l where that is more.

    >>> found = calibrate_moment(1, 1e-6, reach=Reach(2.0, 2.0), quorum=10_000)
    >>> round(found.sigma, 2), found.model.releases
    (8.45, 'any')
    """
    positive(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    whole(quorum=quorum)
    positive(**reach._asdict())
    one_of(NEIGHBOURS, neighbours=neighbours)
    sigma = reach.sums / gaussian.mu_of(epsilon, delta) * _ROUNDING
    if local_epsilon is not None:
        positive(local_epsilon=local_epsilon)
        if local_delta is None:
            raise InvalidValueError(
                f"Expected local_delta with local_epsilon={local_epsilon!r}: a submission's "
                "promise has two numbers. Give local_delta=1e-6, say."
            )
        inside_unit_interval(local_delta=local_delta)
        allowed = gaussian.mu_of(local_epsilon, local_delta) / _ROUNDING
        sigma = max(sigma, math.sqrt(quorum) * reach.submission / allowed)
    stated = delta if local_delta is None else local_delta
    found = MomentCalibration(
        quorum=quorum,
        model=ModelGuarantee(epsilon, delta, neighbours, "any"),
        local=_local(reach, sigma, quorum, stated),
        sigma=sigma,
        reach=reach,
        mu=reach.sums / sigma,
    )
    found.verify(reach)
    return found


def _local(reach: Reach, sigma: float, quorum: int, delta: float) -> LocalGuarantee:
    mu = math.sqrt(quorum) * reach.submission / sigma
    return LocalGuarantee(mu, gaussian.epsilon_of(mu, delta), delta)
