"""How long an honest submission can be, but for a probability that is accounted in δ.

A submission is a record of bounded length and noise of known size, so its norm hardly ever exceeds

    ‖q̃‖² ≤ s_q²·χ²_d(R_q²/s_q²)      ‖p̃‖² ≤ s_p²·χ²_d(R_p²/s_p²)               (input)
    ‖M̃‖_F² ≤ s²·χ²_k(R²/s²)                                                     (moment)

where χ²_k(θ) is the noncentral quantile at probability γ, shared among the parts of a submission,
and s the deviation of one record's noise. M̃ holds the k products that are sent, R bounds them, and
they are measured in the Frobenius norm, in which their noise is isotropic: off the diagonal it has
the variance s²/2 and counts twice.

**What it costs to refuse what is longer.** To refuse by value is to cut the noise's tail. Let n
honest contributors be the ones that the guarantee relies on. Without the cut the model is
(ε, δ')-private; the cut changes anything at all with probability at most nγ, so with it

    P(S) ≤ P_uncut(S) + nγ ≤ e^ε·Q_uncut(S) + δ' + nγ ≤ e^ε·Q(S) + δ' + (1 + e^ε)·nγ.

γ = min(10⁻¹², 10⁻⁴·δ/((1 + e^ε)·n)) keeps the last term within a tenth of the thousandth of δ that
an agreement keeps back (`blurfit.agreement.numbers`). Where ε is so large that γ would leave
floating point, norms are not looked at.

The noise is discrete, and `input`'s p̃ dithered: both move a number by at most half a step, so each
norm by less than step·√k, which is added to the radius.

**On a coarse grid** (agreements with proofs) rounding the record at random moves a number by up to
one step, and what discrete noise is worth has to be said. Its probability at x is at most

    g·φ(x) ≤ e^{g²/24s²}·P(N(0, s²) is rounded to x),

since its sum over the grid is at least s√2π/g (Poisson summation), and since by Jensen's inequality
the mean of φ over the cell around x is at least φ(x)·e^{−g²/24s²}. So for all numbers together, off
the diagonal with s²/2, no event is more than e^{Σ counts·g²/24s²} times as probable as with rounded
normal noise: γ is divided by that, and one and a half steps are added instead of one.

**What is proved of a shared submission**: its numbers are in range, its norm in the radius. Two
databases that each have one share of a vector cannot see how long it is. Where an agreement has
`proofs`, every contributor proves it to both of them together (`blurfit.proofs`), and neither
learns anything else. Everything here follows from the agreement: the numbers v of a submission are
whole steps of its grid, and what is proved is

    Σ_j w_j·v_j² ≤ T = 2ᵐ·r²     r the radius in steps, rounded up
    |v_j| ≤ 4ᵈ/2                  d digits to the base 4 are enough for r/√c_j, the longest number

with w_j = ⌊2ᵐ·c_j⌋, c_j how often a number counts in the norm: m = 0 where these are whole numbers,
else such that every w_j is at least 2⁸, so that a liar gains at most a 2⁻⁹th of the radius. An
honest submission has Σ c_j·v_j² ≤ r² but for the probability γ that is accounted in δ, and then
Σ w_j·v_j² ≤ T. So honest noise is refused no more often than by one database, and what one liar can
do is bounded by the same radius, up to its being rounded.

The radius is rounded up to eight binary digits, because everyone has to prove and to verify the
very same T, and computers differ in the last digits of a quantile; T itself is rounded up to a
multiple of three, which its digits need (`blurfit.proofs.flp`). Where it is so close to being
rounded otherwise that they could differ in more, an agreement is refused: within 10⁻⁶ of it by
whoever proposes one, within 10⁻⁷ by whoever reads it. Computers differ by far less than that.

**How unlikely it is that a lie is believed.** With M inputs and gadget polynomials of degree
4(p − 1) one proof is believed with probability at most M/|F| + 4p/(|F| − p) + 1/|F|: less than 2⁻⁵²
for submissions of 119 numbers. There are `PROOFS` = 3 of them, each with its own randomness, as the
draft asks for in this field (section 9.7). The joint randomness follows from hashes, so a liar may
try as many vectors as she can hash: with 2⁸⁰ of them, and 2³² submissions, the probability that any
lie is believed is below (2⁸⁰ + 2³²)·2⁻¹⁵⁶ = 2⁻⁷⁶ (`soundness`). An agreement is refused if that
bound, for its own size, exceeds 2⁻⁴⁰.

**What proofs cost.** Bytes follow from the agreement. Time is what a core of a busy machine was
seen to need (`benchmarks/proofs.py`): the slower of the two databases, for each word of a share.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blurfit.agreement.numbers import NumberRun
from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.proofs.field import MODULUS
from blurfit.proofs.flp import ShortVector
from blurfit.proofs.prio3 import Prio3, Xof
from blurfit.theory.forms import TargetForm
from blurfit.theory.numerics import shifted_energy_ceiling

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement

LIARS = 0.01  # the share of them for which every model says what they could do
LARGEST_PROBABILITY = 1e-12
PROVED_RADIUS = 1 + 2.0**-6  # by which factor what is proved may exceed the radius, at most
SHARE = 1e-4  # of δ
_LEAST_LOGARITHM = math.log(1e-290)


def radii(agreement: "Agreement", probability: float | None = None) -> tuple[float, ...]:
    """Return the norm that an honest submission hardly ever exceeds, for each part of the
    agreement: with at most this probability, or else with that of being refused.
    """
    chosen = refusal_probability(agreement) if probability is None else probability
    gamma = chosen / len(agreement.parts)
    return tuple(_radius(part, gamma) for part in agreement.parts)


def records_worth(agreement: "Agreement") -> float:
    """Return how many honest records, each at its farthest, one submission that passes can stand
    for.

    Sums of `input` are of q̃q̃ᵀ and p̃, so q̃ counts by its square. Shares are not seen by anybody
    who could measure them: without proofs there is no bound.
    """
    if agreement.databases and not agreement.proofs:
        return math.inf
    reach = [
        radius / part.bound for radius, part in zip(radii(agreement), agreement.parts, strict=True)
    ]
    return max(reach[0] ** 2, *reach) if len(reach) > 1 else reach[0]


def push_of_liars(agreement: "Agreement", count: int, share: float = LIARS) -> float:
    """Return how far so large a share of `count` contributors can push the matrix of a `moment`
    release away from what the others' sums make of it, in the Frobenius norm.

    A liar adds any numbers within the radius r, and, being counted, the entries of zzᵀ that
    everybody knows, of norm k: √(r² + k²) in all. Sums of groups are added up with a gain f, by
    which a push grows at most: √(f²r² + k²). Where products with the target alone are sent,
    sums are divided by the count, so that a liar also stands in for an average record, of norm at
    most R: r + R. With proofs the radius is rounded up (`blurfit.agreement.proving`). Without
    proofs nobody can measure what two databases hold, and there is no bound.
    """
    if agreement.databases and not agreement.proofs:
        return math.inf
    (radius,), (part,), form = radii(agreement), agreement.parts, agreement.form
    radius *= PROVED_RADIUS if agreement.proofs else 1.0
    if isinstance(form, TargetForm):
        return share * count * (radius + part.bound)
    known = np.linalg.norm(form.matrix(np.zeros(form.width), 1))
    return share * count * math.hypot(form.gain * radius, float(known))


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
_LEAST_WEIGHT = 2**8
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
                f"Expected no proofs with epsilon={agreement.epsilon:g}: with so large an "
                "epsilon nothing can be refused for its length. Choose a smaller epsilon, or "
                "propose the agreement with proofs=False."
            )
        doubt = _DOUBT if proposed else _DOUBT_OF_READERS
        reach, scale = _rounded(radius / part.step, doubt), _scale(part.counts)
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
                f"Expected fewer numbers than {circuit.length} with proofs: a lie could be "
                f"believed with probability 2**{found.soundness:.1f}. Ask fewer questions."
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


def proved_in_words(agreement: "Agreement") -> str:
    """Return how much is proved of each submission."""
    worth = math.ceil(10 * records_worth(agreement) * PROVED_RADIUS) / 10
    return (
        f"no submission counts for more than {worth:,} of the longest records; any lie is believed "
        f"with probability at most 2^{math.ceil(agreement.proving.soundness)}"
    )


def _rounded(reach: float, doubt: float) -> int:
    """Return the radius in steps, up to eight binary digits."""
    unit = 1 << max(0, math.frexp(reach)[1] - _DIGITS)
    units = reach / unit
    if abs(units - round(units)) < doubt:
        raise InfeasibleError(
            f"Expected a radius that every computer rounds alike, and {reach!r} steps is too close "
            "to where that changes. Propose the agreement with a quorum that is larger by one."
        )
    return math.ceil(units) * unit


def _scale(counts: FloatArray) -> int:
    """2ᵐ."""
    if (counts == np.rint(counts)).all():
        return 1
    return 1 << max(0, math.ceil(math.log2(_LEAST_WEIGHT / counts.min())))


_WORDS_A_SECOND = 4e6
_IDENTIFIER, _ANSWER = 16, 32  # bytes that are exchanged besides the verifiers


@dataclass(frozen=True)
class ProofCosts:
    """Of one contributor in bytes, to the first database and between the two, and of `people` in
    seconds of one core at each database.
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
