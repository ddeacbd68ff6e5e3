"""The numbers that a contributor submits: weights, grid, screening and validity proofs.

Used when an agreement is proposed (`blurfit.agreement.mechanisms`) and when it is verified
(`Agreement.verify`). A submission is one vector of consecutive `NumberRun`s, each with one grid;
code that carries, checks or adds submissions needs to know no more. Each number is rounded to the
safe side (`docs/theory/stated-numbers.md`).

*Grid* (`docs/theory/grid.md`). Noise drawn in floating point can be recognised by its last bits. So
every number is a multiple of a public power of two g, with discrete Gaussian noise of standard
deviation s on these multiples. Rounding the k × k matrix of products moves two records apart by up
to g·k ≤ ξΔ/2, and noise is calibrated for (1 + ξ)Δ, ξ = 2⁻¹¹ (`enlarged`). For g ≤ s/2⁹ and δ ≥
10⁻³⁰ a thousandth of δ pays for discrete noise. With proofs the grid is coarser, g ≤ s/2⁵ and g ≤
s√n/2¹¹, ξ = 2⁻⁷, and rounding is random.

*Screening* (`docs/theory/screening.md`). Except with probability γ an honest submission has

    ‖M̃‖_F² ≤ s²·χ²_k(R²/s²),      γ = min(10⁻¹², 10⁻⁴·δ/((1 + e^ε)·n)),

with χ²_k the noncentral quantile, R a bound on the k exact numbers and n the honest contributors.
Rejecting longer submissions costs (1 + e^ε)·nγ of δ, a tenth of that thousandth. If ε is so large
that γ would leave floating point, norms are not checked.

*Validity proofs* (`docs/theory/validity-proofs.md`). Two databases cannot see the length of a
shared vector v, in steps. With `proofs`, each contributor proves

    Σ_j w_j·v_j² ≤ T = 2ᵐ·r²,    |v_j| ≤ 4ᵈ/2,    w_j = ⌊2ᵐ·c_j⌋,

r the radius rounded up to eight binary digits, c_j how often number j counts in the norm, d digits.
An agreement is rejected if r is within 10⁻⁶ of a rounding boundary (10⁻⁷ when read), or if any
false proof could be accepted with probability above 2⁻⁴⁰, for 2⁸⁰ hashes and 2³² submissions.

Tests: `tests/agreement/test_grid.py`, `test_numbers.py`, `test_proving.py`,
`tests/theory/test_quantiles.py`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from blurfit.agreement.terms import Terms
from blurfit.data import FloatArray, fixed
from blurfit.errors import (
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    positive,
)
from blurfit.proofs.field import MODULUS
from blurfit.proofs.prio3 import Prio3, ShortVector, Xof
from blurfit.schema.columns import Binary, Numeric, Question, TimeToEvent
from blurfit.schema.schema import INTERCEPT, Schema, kind_of
from blurfit.schema.table import listed
from blurfit.theory.gaussian import mu_of, shifted_energy_ceiling
from blurfit.theory.moments import (
    BEYOND,
    MomentCalibration,
    Reach,
    ceiling,
)
from blurfit.theory.planning import Task, public_weights
from blurfit.wording import Message

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement

ROUNDING = 2.0**-11  # ξ: bounds are enlarged by this share, which pays for rounding the record
PROVED_ROUNDING = 2.0**-7  # ξ where submissions are proved to be short
DISCRETE_SHARE = 1e-3  # of δ, kept back for noise that is discrete
_RESOLUTION = 2.0**-10  # of the noise's deviation, at the coarsest
_SHARED_RESOLUTION = 2.0**-11  # of the noise, so that off the diagonal too 2¹⁰ steps are spanned
_PROVED_RESOLUTION = 2.0**-5  # of the noise, if the sums' noise is as fine as this
# The noise's deviation in steps, at least and at most. It stays below 2⁵² steps as long as it stays
# below 128 deviations, and exceeds that with probability e^{-8192}; far finer than the grid, it
# would hardly ever show.
LEAST_RATIO, MOST_RATIO = 2.0**-10, 2.0**45


def coarsest_step(
    calibration: MomentCalibration, *, size: int, shared: bool = False, proofs: bool = False
) -> float:
    """Return the largest power of two that the calibration's budget for rounding allows as the step
    of the products of z; zzᵀ has `size` rows.
    """
    return power_of_two_below(_coarsest(calibration, size, shared=shared, proofs=proofs))


def require_step(
    step: float,
    calibration: MomentCalibration,
    *,
    size: int,
    shared: bool = False,
    proofs: bool = False,
) -> None:
    """Refuse a step that is no power of two, or coarser than the budget allows by more than
    rounding, which would cost privacy that nothing pays for; or absurdly fine.

    A 2⁻²⁴th beyond the budget is covered (`docs/theory/grid.md`).
    """
    most = _coarsest(calibration, size, shared=shared, proofs=proofs)
    near = most / 2 * (1 - BEYOND) < step <= most * (1 + BEYOND)
    if not (math.frexp(step)[0] == 0.5 and near):
        raise NotCertifiedError(
            "Expected step={step} to be a power of two, at most {most} and not far below, which "
            "follows from the noise. Do not send anything under this agreement.",
            step=step,
            most=most,
        )


def _coarsest(calibration: MomentCalibration, size: int, *, shared: bool, proofs: bool) -> float:
    """Return how large the step may be."""
    rounding = PROVED_ROUNDING if proofs else ROUNDING
    slack = rounding * calibration.reach.sums / (1 + rounding) / 2
    coarse = _SHARED_RESOLUTION if shared else _RESOLUTION
    if proofs:
        fine = _SHARED_RESOLUTION * math.sqrt(calibration.quorum)
        coarse = min(_PROVED_RESOLUTION, fine)
    return min(slack / size, calibration.noise * coarse)


def enlarged(reach: Reach, *, proofs: bool = False) -> Reach:
    """(1 + ξ) times as far: what noise is calibrated for, so that rounding is paid."""
    rounding = PROVED_ROUNDING if proofs else ROUNDING
    return Reach(*((1 + rounding) * one for one in reach))


def promised_in_all(kept: float, kept_back: float) -> float:
    """Return what is promised in all, in twelve digits, of which the last is never rounded down."""
    whole = kept / (1 - kept_back)
    rounded = float(f"{whole:.12g}")
    if rounded < whole * (1 - 4e-16):
        rounded = float(f"{rounded + 10.0 ** (math.floor(math.log10(whole)) - 11):.12g}")
    return rounded


def power_of_two_below(value: float) -> float:
    """Return the largest power of two that is at most the value."""
    return math.ldexp(0.5, math.frexp(value)[1])


_LEAST_WEIGHT, _LARGEST_WEIGHT = 1e-3, 1e3


@dataclass(frozen=True, eq=False)
class NumberRun:
    """A run of the numbers that are sent, all on one grid.

    `deviations` are those of one contributor's noise; numbers are rounded to multiples of `step`
    `at_random` or to the nearest. `counts` is how often a number counts in the squared norm: twice
    off the diagonal.
    """

    numbers: slice
    step: float
    deviations: FloatArray
    counts: FloatArray
    bound: float  # on the norm of the exact numbers
    at_random: bool = False

    def __post_init__(self) -> None:
        for shared in (self.deviations, self.counts):  # among all who read the same agreement
            fixed(shared)


def multiplied(schema: Schema, agreed: Any) -> tuple[Question, ...]:
    """Return the questions that are multiplied: all but the group's, and the time to an event."""
    apart = {agreed.groups}
    if isinstance(schema.target, TimeToEvent):
        apart.add(schema.target.time)
    return tuple(one for one in schema.questions if one.name not in apart)


@dataclass(frozen=True)
class PublicWeights:
    """How much of a record's vector each column gets: c of the constant, and ω of each question."""

    constant: float
    columns: tuple[float, ...]

    @classmethod
    def chosen(
        cls,
        schema: Schema,
        terms: Terms,
        promise: tuple[float, float],
        *,
        alone: bool = True,
    ) -> "PublicWeights":
        """Return what the terms say; else the default, by kinds of columns, quorum and promise, in
        28 bits. It is `alone` if no other wave of the same rows follows.
        """
        asked = multiplied(schema, terms)
        if terms.weights is None:
            # a number that is the weight itself is read for little else: c/2 is enough
            light = None if terms.factors else terms.weighting
            kinds = [kind_of(one) for one in asked[:-1] if one.name != light]
            task: Task | None = None
            if alone and isinstance(asked[-1], Numeric | Binary):
                task = "number" if isinstance(asked[-1], Numeric) else "label"
            found = public_weights(
                kinds,
                terms.quorum,
                mu_of(*promise),
                neighbours=terms.neighbours,
                task=task,
            )
            if isinstance(schema.target, TimeToEvent):
                size = math.sqrt(math.fsum(weight**2 for weight in found.features))
                features = tuple(weight / size for weight in found.features)
                found = replace(found, features=features, target=1.1, constant=0.6)
            constant = ceiling(found.constant) if terms.constant is None else terms.constant
            others = iter((*found.features, found.target))
            columns = tuple(
                ceiling(constant / 2 if one.name == light else next(others)) for one in asked
            )
        else:
            missing = {one.name for one in asked} ^ set(terms.weights)
            if missing:
                raise InvalidValueError(
                    "Expected weights for each of {listed}, and no others; {listed_2} differ.",
                    listed=listed(one.name for one in asked),
                    listed_2=listed(sorted(missing)),
                )
            columns = tuple(float(terms.weights[one.name]) for one in asked)
            size = math.sqrt(math.fsum(weight**2 for weight in columns))
            constant = ceiling(size / 2) if terms.constant is None else terms.constant
        weights = cls(float(constant), columns)
        weights.verify()
        return weights

    def verify(self) -> None:
        """Refuse weights that arithmetic would choke on."""
        for weight in (self.constant, *self.columns):
            positive(weight=weight)
            if not _LEAST_WEIGHT <= weight <= _LARGEST_WEIGHT:
                raise InvalidValueError(
                    "Expected weight={weight!r} between {least_weight:g} and "
                    "{largest_weight:g}: only their ratios matter.",
                    weight=weight,
                    least_weight=_LEAST_WEIGHT,
                    largest_weight=_LARGEST_WEIGHT,
                )

    def to_dict(self, asked: Sequence[Question]) -> dict[str, float]:
        """By the names of the questions, the constant's as well."""
        names = [INTERCEPT, *(one.name for one in asked)]
        return dict(zip(names, (self.constant, *self.columns), strict=True))

    @classmethod
    def from_dict(cls, weights: Mapping[str, Any], asked: Sequence[Question]) -> "PublicWeights":
        """Return the inverse of `to_dict`."""
        names = [INTERCEPT, *(one.name for one in asked)]
        if set(weights) != set(names):
            raise InvalidValueError(
                "Expected a weight for each of {listed}, and got {listed_2}.",
                listed=listed(names),
                listed_2=listed(weights),
            )
        constant, *columns = (weights[name] for name in names)
        return cls(constant, tuple(columns))


LARGEST_PROBABILITY = 1e-12
PROVED_RADIUS = 1 + 2.0**-6  # by which factor what is proved may exceed the radius, at most
SHARE = 1e-4  # of δ
_LEAST_LOGARITHM = math.log(1e-290)


def radii(agreement: "Agreement") -> tuple[float, ...]:
    """Return the norm that an honest submission hardly ever exceeds, for each part of the
    agreement: with at most the probability of being refused.
    """
    gamma = refusal_probability(agreement) / len(agreement.parts)
    return tuple(_radius(part, gamma) for part in agreement.parts)


def records_worth(agreement: "Agreement") -> float:
    """Return how many honest records, each at its farthest, one submission that passes stands for.

    Shares are not seen by anybody who could measure them: without proofs there is no bound.
    """
    if agreement.databases and not agreement.proofs:
        return math.inf
    (radius,), (part,) = radii(agreement), agreement.parts
    return radius / part.bound


def _radius(part: NumberRun, gamma: float) -> float:
    if gamma == 0:
        return math.inf
    scale = float(part.deviations[0] * math.sqrt(part.counts[0]))
    steps = part.step * math.sqrt(part.counts.sum())
    if part.at_random:
        gamma *= math.exp(-((steps / scale) ** 2) / 24)
        steps *= 1.5
    return math.sqrt(shifted_energy_ceiling(gamma, len(part.counts), part.bound, scale)) + steps


def refusal_probability(agreement: "Agreement") -> float:
    """γ: how likely an honest submission is refused, at most; 0 where norms are not looked at."""
    logarithm = (
        math.log(SHARE * agreement.delta)
        - np.logaddexp(0.0, agreement.epsilon)
        - math.log(agreement.honest)
    )
    if logarithm < _LEAST_LOGARITHM:
        return 0.0
    return min(LARGEST_PROBABILITY, math.exp(logarithm))


PROOFS = 3
ALGORITHM = 0xFFFFB1F1  # among those that the draft leaves to private use
SOUNDNESS = -40.0  # log₂ of the probability that any lie is believed, at most
PROVED_IN_WORDS = (
    "Each contributor proves to both databases that what they send is no longer than an honest "
    "submission, and they learn nothing else from the proof. Whoever does not is left out."
)
_HASHES, _SUBMISSIONS = 2.0**80, 2.0**32
_LEAST_PROVED_WEIGHT = 2**8
_DIGITS = 8
_DOUBT, _DOUBT_OF_READERS = 1e-6, 1e-7
_LEAST_PROBABILITY = 1e-100  # below which libraries differ in more than the last digits


@dataclass(frozen=True)
class Proving:
    """How the submissions of an agreement are shared and proved."""

    circuit: ShortVector
    prio3: Prio3

    @classmethod
    def of(cls, agreement: "Agreement", *, proposed: bool = False) -> "Proving":
        """Find all of it from the agreement, whose fingerprint is part of every proof."""
        (part,), (radius,) = agreement.parts, radii(agreement)
        if refusal_probability(agreement) < _LEAST_PROBABILITY:
            raise InfeasibleError(
                "Expected no proofs with epsilon={epsilon:g}: with so large an "
                "epsilon nothing can be refused for its length. Choose a smaller epsilon, or "
                "propose the agreement with proofs=False.",
                epsilon=agreement.epsilon,
            )
        doubt = _DOUBT if proposed else _DOUBT_OF_READERS
        reach, scale = _rounded(radius / part.step, doubt), 1
        if (part.counts != np.rint(part.counts)).any():
            scale <<= max(0, math.ceil(math.log2(_LEAST_PROVED_WEIGHT / part.counts.min())))
        weights = tuple(int(one) for one in np.floor(part.counts * scale))
        largest = math.floor(reach / math.sqrt(part.counts.min())) + 1
        digits = 1 + largest.bit_length() // 2  # |v| ≤ largest < 4ᵈ/2
        ceiling = 3 * -(-scale * reach**2 // 3)
        circuit = ShortVector(weights, digits, ceiling)
        found = cls(
            circuit, Prio3(circuit, PROOFS, Xof(ALGORITHM, bytes.fromhex(agreement.fingerprint)))
        )
        if found.soundness > SOUNDNESS:
            raise InfeasibleError(
                "Expected fewer numbers than {length} with proofs: a lie could be "
                "believed with probability 2**{soundness:.1f}. Ask fewer questions.",
                length=circuit.length,
                soundness=found.soundness,
            )
        return found

    @property
    def widths(self) -> tuple[int, int]:
        """Words of the first database's share, and of the second's."""
        return self.prio3.leader_words, self.prio3.helper_words

    @property
    def soundness(self) -> float:
        """log₂ of how likely it is, at most, that any lie is ever believed."""
        order = self.prio3.flp.order
        one = (self.circuit.inputs + 1) / MODULUS + self.circuit.degree * order / (MODULUS - order)
        return math.log2(_HASHES + _SUBMISSIONS) + PROOFS * math.log2(one)


def proved_in_words(agreement: "Agreement") -> Message:
    """Return how much is proved of each submission."""
    worth = math.ceil(10 * records_worth(agreement) * PROVED_RADIUS) / 10
    return Message(
        "no submission counts for more than {worth:,} of the longest records; any lie is believed "
        "with probability at most 2^{soundness}",
        worth=worth,
        soundness=math.ceil(agreement.proving.soundness),
    )


def _rounded(reach: float, doubt: float) -> int:
    """Return the radius in steps, up to eight binary digits."""
    unit = 1 << max(0, math.frexp(reach)[1] - _DIGITS)
    units = reach / unit
    if abs(units - round(units)) < doubt:
        raise InfeasibleError(
            "Expected a radius that every computer rounds alike, and {reach!r} steps is too close "
            "to where that changes. Propose the agreement with a quorum that is larger by one.",
            reach=reach,
        )
    return math.ceil(units) * unit


# Words of a share that a busy core at the slower database verifies (`benchmarks/proofs.py`).
_WORDS_A_SECOND = 4e6
_IDENTIFIER, _ANSWER = 16, 32  # bytes that are exchanged besides the verifiers


@dataclass(frozen=True)
class ProofCosts:
    """Bytes of one contributor, to the first database and between the two, and seconds of one core
    at each database for so many `people`.
    """

    upload: int
    without: int  # the upload, if there were no proofs
    exchanged: int
    people: int
    seconds: float

    @classmethod
    def of(cls, agreement: "Agreement", people: int | None = None) -> "ProofCosts":
        """For an agreement with proofs, and so many people: as many as its quorum, at least."""
        layout, prio3 = agreement.share_layout("masked"), agreement.proving.prio3
        count = agreement.quorum if people is None else people
        return cls(
            upload=layout.size,
            without=agreement.layout.size,
            exchanged=_IDENTIFIER + 8 * prio3.verifier_words + _ANSWER,
            people=count,
            seconds=count * prio3.leader_words / _WORDS_A_SECOND,
        )

    def in_words(self) -> str:
        """One or two sentences."""
        return (
            f"With its proof a contributor's share is {self.upload:,} bytes instead of "
            f"{self.without:,}. The databases exchange {self.exchanged:,} bytes for each, and "
            f"verifying {self.people:,} of them takes each database about "
            f"{_duration(self.seconds)} of one core."
        )


def _duration(seconds: float) -> str:
    for size, unit in ((3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
        if seconds >= size:
            count = round(seconds / size)
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return "a second"
