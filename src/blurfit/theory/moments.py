"""The `moment` mechanism: noise for blurred sums, and how every guarantee is stated and checked.

Called when an agreement is proposed and verified (`blurfit.agreement`), and by every text that
quotes a guarantee. A form (`blurfit.theory.forms`) says how far its records reach (`Reach`);
`calibrate_moment` computes the noise for that. Readers compute the reach from the form, and never
take it from the sender. n honest contributors each add Gaussian noise of standard deviation σ/√n,
in a geometry in which one person moves the sums by at most Δ and two records are at most Δ₁ apart:

    the sums are μ-GDP with μ = Δ/σ; those of N ≥ n records √(n/N)·Δ/σ-GDP;
    one submission is √n·Δ₁/σ-GDP.

*Joint moments.* A record is z = (c, u): a public constant c, and u with ‖u‖ ≤ ρ. Contributors
submit the upper triangle of zzᵀ + E without c², E symmetric with diagonal N(0, σ²/n) and
off-diagonal N(0, σ²/(2n)). Δ is `sensitivity`. A person with several rows submits their mean, which
has the Δ and Δ₁ of one row.

*Noise of a database.* If an honest database adds its own N(0, σ²) once, independently of all
submissions, and publishes nothing else of them, the same μ holds for a person whatever all other
contributors submit and know. So (ε, δ) against readers holds if the database is honest or if n
contributors are.

*Stated numbers* are rounded to 28 bits, to the side on which the guarantee still follows, and
checked by inequality when they are read: machines compute different last bits. If each computes
within a factor of 1 ± 2⁻³², an honest document is never rejected, and an accepted one satisfies its
guarantee.

Proofs in `docs/theory`: `joint-moments.md` (tests/theory/test_joint.py,
test_moment_calibration.py), `database-noise.md` (test_database_noise.py), `stated-numbers.md`
(test_stated.py), `guessing.md` (test_guessing.py). Reference: Dong, Roth and Su, *Gaussian
differential privacy*, 2022.

`--help` reads this module: imports that compute are inside functions.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from blurfit.errors import (
    InvalidValueError,
    NotCertifiedError,
    inside_unit_interval,
    nonnegative,
    one_of,
    positive,
    whole,
    within_floating_point,
)
from blurfit.wording import Message

Neighbours = Literal["replace", "zero-out"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace", "zero-out")

LEAST_DELTA = 1e-290  # that is stated, so that events of the least probability cost nothing of it
BITS = 28  # of a stated number
BEYOND = 2.0**-24  # how much further than necessary a stated number may lie on its safe side
NUDGE = 1 + 1e-12  # far above what rounding can take from a handful of operations
FOR_ROUNDING = 1 + 2.0**-25  # more noise than the least, so that what is stated may be rounded
_EVALUATION_ROUNDING = 1 + 1e-10  # what is kept is evaluated at a little less noise than there is
_MARGIN = 2.0**-30  # far more than machines differ by
_DISCRETE = (
    1e-3  # far more than discrete noise differs from a Gaussian's, see `docs/theory/grid.md`
)


@dataclass(frozen=True)
class ModelGuarantee:
    """(ε, δ)-DP of what is published, under a neighbouring relation, for so many releases.

    `proved` is False for numbers that the paper prints but that do not follow (lab/docs/errata.md).
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    releases: int | Literal["any"]
    proved: bool = True

    def __post_init__(self) -> None:
        nonnegative(epsilon=self.epsilon)
        positive(delta=self.delta)
        one_of(NEIGHBOURS, neighbours=self.neighbours)
        once_or_any = self.releases in (1, "any") and self.releases is not True
        if self.delta > 1 or type(self.proved) is not bool or not once_or_any:
            raise InvalidValueError(
                "Expected delta={delta!r} <= 1, releases={releases!r} to be 1 or 'any', "
                "and proved={proved!r} to be true or false.",
                delta=self.delta,
                releases=self.releases,
                proved=self.proved,
            )


@dataclass(frozen=True)
class LocalGuarantee:
    """What one submission tells a database that nobody trusts: μ-GDP, and the exact ε of that at δ.

    It compares any two records ("replace"), whatever relation the model's guarantee uses.
    """

    mu: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        nonnegative(mu=self.mu, epsilon=self.epsilon)
        inside_unit_interval(delta=self.delta)


def rounded_up(value: float) -> float:
    """Return the least number of 28 bits above what any machine computes for the same."""
    return ceiling(value + abs(value) * _MARGIN)


def rounded_down(value: float) -> float:
    """Return the largest number of 28 bits below what any machine computes for the same."""
    return 0.0 - rounded_up(-value)


def ceiling(value: float) -> float:
    """Return the least number of 28 bits that is not below: for what was chosen, and not computed.

    >>> ceiling(1.0), ceiling(1.0 + 2**-40) == 1 + 2**-27, ceiling(-0.1) >= -0.1
    (1.0, True, True)
    """
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.ceil(math.ldexp(mantissa, BITS)), exponent - BITS)


def require_above(name: str, stated: float, follows: float) -> None:
    """Refuse a number that is less than what follows, or absurdly more."""
    if not (follows <= stated <= follows + BEYOND * abs(follows)):
        _refuse(name, stated, f"no less than {follows!r}, and hardly more")


def require_equal(name: str, stated: object, follows: object) -> None:
    """Refuse anything else than what follows."""
    if stated != follows:
        _refuse(name, stated, repr(follows))


def local_guarantee(mu: float, delta: float) -> LocalGuarantee:
    """State what a submission that is μ-GDP keeps: μ rounded up, and its ε at δ too."""
    from blurfit.theory import gaussian

    stated = rounded_up(mu)
    return LocalGuarantee(stated, rounded_up(gaussian.epsilon_of(stated, delta)), delta)


def require_local(stated: LocalGuarantee, mu: float) -> None:
    """Refuse a statement about a submission that tells of less than its μ, or of absurdly more."""
    from blurfit.theory import gaussian

    require_above("local.mu", stated.mu, mu)
    kept = gaussian.epsilon_of(stated.mu, stated.delta)
    require_above("local.epsilon", stated.epsilon, kept)


def require_one(epsilon: float | None, delta: float | None) -> None:
    """Refuse a question that does not fix exactly one of ε and δ, or fixes it out of range."""
    if (epsilon is None) == (delta is None):
        raise InvalidValueError(
            "Expected one of epsilon={epsilon!r} and delta={delta!r}: give the one that is "
            "fixed, and the other is computed.",
            epsilon=epsilon,
            delta=delta,
        )
    if epsilon is not None:
        nonnegative(epsilon=epsilon)
    if delta is not None:
        inside_unit_interval(delta=delta)


def _refuse(name: str, stated: object, expected: str) -> None:
    raise NotCertifiedError(
        "Expected {name} to be {expected}, which follows from public facts and the noise, but "
        "{stated!r} is stated. Do not rely on this calibration; make a new one.",
        name=name,
        expected=expected,
        stated=stated,
    )


def right_by_approximate(epsilon: float, delta: float, neighbours: Neighbours = "replace") -> float:
    """Return how often, at most, a guess between two records is right under (ε, δ)-DP.

    >>> right_by_approximate(0.0, 0.0), round(right_by_approximate(1.0, 1e-6), 4)
    (0.5, 0.7311)
    """
    nonnegative(epsilon=epsilon, delta=delta)
    one_of(NEIGHBOURS, neighbours=neighbours)
    if neighbours == "zero-out":
        steep = math.exp(min(epsilon, 700.0))
        epsilon, delta = 2 * epsilon, min(1.0, (1 + steep) * delta)
    apart = math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700.0)))
    return min(1.0, 0.5 + apart / 2)


def right_by_gaussian(mu: float, neighbours: Neighbours = "replace") -> float:
    """Return how often, at most, a guess between two records is right under μ-GDP.

    >>> right_by_gaussian(0.0), round(right_by_gaussian(0.2246), 3)
    (0.501, 0.546)
    """
    from scipy.special import ndtr

    nonnegative(mu=mu)
    one_of(NEIGHBOURS, neighbours=neighbours)
    steps = 2 if neighbours == "zero-out" else 1
    return min(1.0, float(ndtr(steps * mu / 2)) + _DISCRETE)


def in_hundred(right: float) -> int:
    """Round a share up to a number in 100: no promise is smaller than what holds."""
    return min(100, math.ceil(100 * right * (1 + 1e-12)))


def at_most(value: float, digits: int = 4) -> Message:
    """Return a bound in so many digits, never rounded down.

    >>> at_most(2.00001), at_most(0.5), at_most(1234567.0)
    ('2.001', '0.5', '1.235e+06')
    """
    bound = float(f"{value:.{digits}g}")
    if math.isfinite(value) and bound < value:
        bound += 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    template = f"{{bound:.{digits}g}}"
    return Message(template, bound=bound)


def sensitivity(constant: float, radius: float, neighbours: Neighbours = "replace") -> float:
    """Return Δ, how far one person can move Σzzᵀ in the Frobenius norm: z = (c, u), ‖u‖ ≤ ρ.

    * `replace`: Δ = √2(c² + ρ²) for c ≤ ρ, and 2√2·cρ beyond.
    * `zero-out` (u becomes 0, and the record still counts): Δ² = (c² + ρ²)² − c⁴.

    Both are attained for two columns and more; with one column, c < ρ, `replace` is an upper bound.
    Proof: `docs/theory/joint-moments.md`.
    """
    positive(constant=constant, radius=radius)
    one_of(NEIGHBOURS, neighbours=neighbours)
    if neighbours == "zero-out":
        return radius * math.hypot(math.sqrt(2) * constant, radius) * NUDGE
    if constant <= radius:
        return math.sqrt(2) * (constant**2 + radius**2) * NUDGE
    return 2 * math.sqrt(2) * constant * radius * NUDGE


def total_deviation(sigma: float, quorum: int, count: int, draws: int = 0) -> float:
    """σ√(N/n + k): the deviation of all noise in the sums of N contributors and k databases.

    With `count` the honest contributors and `draws` the honest databases, Δ divided by it is the
    exact μ against somebody who knows all other noise: at most Δ/σ if N ≥ n or k ≥ 1.

    >>> total_deviation(10.0, quorum=100, count=100, draws=1) / total_deviation(10.0, 100, 100)
    1.4142135623730951
    """
    positive(sigma=sigma)
    whole(quorum=quorum, count=count)
    nonnegative(draws=draws)
    return sigma * math.sqrt(count / quorum + draws)


def variance_factor(quorum: int, count: int, draws: int) -> float:
    """1 + k·n/N: how many times the variance of the noise the databases' own makes it.

    >>> variance_factor(quorum=100, count=100, draws=2), variance_factor(100, 400, 1)
    (3.0, 1.25)
    """
    whole(quorum=quorum, count=count)
    nonnegative(draws=draws)
    return 1 + draws * quorum / count


class Reach(NamedTuple):
    """Δ of the sums under an agreement's neighbouring relation, and Δ₁ of a single submission.

    Δ₁ is always that of `replace`: a submission shows that somebody sent one, so the alternative is
    another record, never none.
    """

    sums: float
    submission: float


@dataclass(frozen=True, kw_only=True)
class MomentCalibration:
    """σ, and what it promises: `model` of the sums and all that is made of them, `local` of a
    single submission. Make one with `calibrate_moment`.
    """

    quorum: int
    model: ModelGuarantee
    local: LocalGuarantee
    sigma: float
    reach: Reach
    mu: float

    @property
    def noise(self) -> float:
        """σ/√n: the deviation of what one contributor adds to a number on the diagonal; off it,
        where a number counts twice, it is this over √2.
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
        from blurfit.theory import gaussian

        records = self.quorum if count is None else count
        whole(count=records)
        mu = self.reach.sums / self.sigma * math.sqrt(self.quorum / records) * _EVALUATION_ROUNDING
        if epsilon is None and delta is None:
            delta = self.model.delta
        require_one(epsilon, delta)
        if epsilon is None:
            assert delta is not None
            epsilon = gaussian.epsilon_of(mu, delta)
        else:
            delta = max(gaussian.delta_of(mu, epsilon), LEAST_DELTA)
        return ModelGuarantee(epsilon, delta, self.model.neighbours, "any")

    @within_floating_point()
    def verify(self, reach: Reach) -> None:
        """Raise NotCertifiedError if the noise keeps less than is promised for records that reach
        so far, or a stated number does not bound what follows from the others.
        """
        from blurfit.theory import gaussian

        positive(sigma=self.sigma)
        whole(quorum=self.quorum)
        require_equal("releases", (self.model.releases, self.model.proved), ("any", True))
        require_above("reach of the sums", self.reach.sums, reach.sums)
        require_above("reach of a submission", self.reach.submission, reach.submission)
        require_above("mu", self.mu, reach.sums / self.sigma)
        require_local(self.local, _submission_mu(reach, self.sigma, self.quorum))
        if gaussian.delta_of(self.mu, self.model.epsilon) > self.model.delta:
            raise NotCertifiedError(
                "The noise does not keep epsilon={epsilon:g}, "
                "delta={delta:g}: sigma={sigma!r} is too small. Do not send "
                "anything blurred with it.",
                epsilon=self.model.epsilon,
                delta=self.model.delta,
                sigma=self.sigma,
            )

    def to_dict(self) -> dict[str, Any]:
        """Write all of it as plain numbers and words, for JSON; `from_dict` reads it.

        That the promise is proved, for any number of releases, is so for every such calibration.
        """
        fields = asdict(self) | {"reach": self.reach._asdict()}
        del fields["model"]["releases"], fields["model"]["proved"]
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "MomentCalibration":
        """Read what `to_dict` wrote; refuse missing and unknown fields. Then call `verify`."""
        try:
            parts = {
                "model": ModelGuarantee(**fields["model"], releases="any", proved=True),
                "local": LocalGuarantee(**fields["local"]),
                "reach": Reach(**fields["reach"]),
            }
            return cls(**{**fields, **parts})
        except (KeyError, TypeError) as error:
            raise InvalidValueError(
                "Expected a calibration as `to_dict` writes it: {error}. Was it written by "
                "another version of blurfit?",
                error=error,
            ) from error


def local_target(
    epsilon: float | None, delta: float | None, model_delta: float
) -> tuple[float, float | None]:
    """Return δ of the statement about a submission, and the μ that it must not exceed, as the
    parameters `local_epsilon` and `local_delta` ask for.
    """
    from blurfit.theory import gaussian

    if delta is not None:
        inside_unit_interval(local_delta=delta)
    if epsilon is None:
        return model_delta if delta is None else delta, None
    positive(local_epsilon=epsilon)
    if delta is None:
        raise InvalidValueError(
            "Expected local_delta with local_epsilon={epsilon!r}: a submission's promise has two "
            "numbers. Give local_delta=1e-6, say.",
            epsilon=epsilon,
        )
    return delta, gaussian.mu_of(epsilon, delta) / FOR_ROUNDING


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
    """Return the least σ that keeps (ε, δ) for sums that one person moves by at most `reach`.

    `local_epsilon` at `local_delta` asks for a promise about a single submission too, and raises σ
    to √n·Δ₁/μ_l where that is more.

    >>> found = calibrate_moment(1, 1e-6, reach=Reach(2.0, 2.0), quorum=10_000)
    >>> round(found.sigma, 2), found.model.releases
    (8.45, 'any')
    """
    from blurfit.theory import gaussian

    positive(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    whole(quorum=quorum)
    positive(**reach._asdict())
    one_of(NEIGHBOURS, neighbours=neighbours)
    reach = Reach(*map(rounded_up, reach))
    sigma = reach.sums / gaussian.mu_of(epsilon, delta) * FOR_ROUNDING
    own_delta, own_mu = local_target(local_epsilon, local_delta, delta)
    if own_mu is not None:
        sigma = max(sigma, math.sqrt(quorum) * reach.submission / own_mu)
    sigma = rounded_up(sigma)
    found = MomentCalibration(
        quorum=quorum,
        model=ModelGuarantee(epsilon, delta, neighbours, "any"),
        local=local_guarantee(_submission_mu(reach, sigma, quorum), own_delta),
        sigma=sigma,
        reach=reach,
        mu=rounded_up(reach.sums / sigma),
    )
    found.verify(reach)
    return found


def _submission_mu(reach: Reach, sigma: float, quorum: int) -> float:
    return math.sqrt(quorum) * reach.submission / sigma
