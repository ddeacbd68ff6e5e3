"""Noise for sums that are released themselves: an exact Gaussian mechanism, whatever the form.

However a record becomes numbers (`blurfit.theory.joint_form`, and Newton's quadratics in later
waves), it is the same mechanism: n honest contributors each add Gaussian noise of standard
deviation σ/√n in a geometry in which one person moves the sums by at most Δ, so that

    the sums are μ-GDP with μ = Δ/σ; those of N ≥ n records √(n/N)·Δ/σ-GDP; one submission is
    √n·Δ₁/σ-GDP, where Δ₁ is how far apart two records can be.

All of it is exact (Dong, Roth and Su 2022), and holds for everything computed from the sums.
A form says how far its records reach (`Reach`); the calibration says what noise that takes. Whoever
verifies one computes the reach from the form, and never takes it from the sender.

**What is stated** (`blurfit.theory.stated`). Δ, Δ₁ and σ are rounded up, and then μ ≥ Δ/σ, the
submission's μ ≥ √n·Δ₁/σ and its ε. A reader checks that each is no less than what follows, and that
δ(ε; μ) ≤ δ for the stated μ.

So that rounding never makes a stated promise weaker than the one that was asked for, σ is larger
than its least value, Δ/μ*, by a 2⁻²⁵th (`FOR_ROUNDING`). The stated μ is at most
μ*·(1 + 2⁻³⁰)(1 + 2⁻²⁷)/(1 + 2⁻²⁵) < μ*, with room: it keeps (ε, δ) on every machine. The same holds
for a submission, and of its ε as well. With h = ε/μ held fixed, ∂δ/∂μ = e^{hμ}(φ(b) − hΦ(−b)) > 0,
b = h + μ/2, since Φ(−b) < φ(b)/b (Mills): at one δ, λ ≤ 1 times the μ has at most λ times the ε. So
the ε of the stated μ is below the one that was asked for by that factor, and is rounded up by
(1 + 2⁻³⁰)(1 + 2⁻²⁷) once more: still below. ∎
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
from blurfit.theory.stated import (
    local_guarantee,
    require_above,
    require_equal,
    require_local,
    rounded_up,
)
from blurfit.validate import (
    inside_unit_interval,
    nonnegative,
    one_of,
    positive,
    whole,
    within_floating_point,
)

FOR_ROUNDING = 1 + 2.0**-25  # more noise than the least, so that what is stated may be rounded
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
        """Evaluate the promise from σ, for records that reach so far.

        Raises NotCertifiedError if the noise keeps less than is promised, or a stated number does
        not bound what follows from the others.
        """
        positive(sigma=self.sigma)
        whole(quorum=self.quorum)
        require_equal("mechanism", self.mechanism, "moment")
        require_equal("releases", (self.model.releases, self.model.proved), ("any", True))
        require_above("reach of the sums", self.reach.sums, reach.sums)
        require_above("reach of a submission", self.reach.submission, reach.submission)
        require_above("mu", self.mu, reach.sums / self.sigma)
        require_local(self.local, _submission_mu(reach, self.sigma, self.quorum))
        if gaussian.delta_of(self.mu, self.model.epsilon) > self.model.delta:
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
    reach = Reach(*map(rounded_up, reach))
    sigma = reach.sums / gaussian.mu_of(epsilon, delta) * FOR_ROUNDING
    if local_epsilon is not None:
        positive(local_epsilon=local_epsilon)
        if local_delta is None:
            raise InvalidValueError(
                f"Expected local_delta with local_epsilon={local_epsilon!r}: a submission's "
                "promise has two numbers. Give local_delta=1e-6, say."
            )
        inside_unit_interval(local_delta=local_delta)
        allowed = gaussian.mu_of(local_epsilon, local_delta) / FOR_ROUNDING
        sigma = max(sigma, math.sqrt(quorum) * reach.submission / allowed)
    sigma = rounded_up(sigma)
    stated = delta if local_delta is None else local_delta
    found = MomentCalibration(
        quorum=quorum,
        model=ModelGuarantee(epsilon, delta, neighbours, "any"),
        local=local_guarantee(_submission_mu(reach, sigma, quorum), stated),
        sigma=sigma,
        reach=reach,
        mu=rounded_up(reach.sums / sigma),
    )
    found.verify(reach)
    return found


def _submission_mu(reach: Reach, sigma: float, quorum: int) -> float:
    return math.sqrt(quorum) * reach.submission / sigma
