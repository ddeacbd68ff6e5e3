"""What is proved of a shared submission: that its numbers are in range, and its norm in the radius.

Two databases that each have one share of a vector cannot see how long it is. Where an agreement has
`proofs`, every contributor proves it to both of them together (`blurfit.proofs`), and neither
learns anything else. Everything here follows from the agreement: the numbers v of a submission are
whole steps of its grid, and what is proved is

    Σ_j w_j·v_j² ≤ T = 2ᵐ·r²     r the radius of `blurfit.agreement.radius` in steps, rounded up
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
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blurfit.agreement.radius import PROVED_RADIUS, radii, records_worth, refusal_probability
from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.proofs.field import MODULUS
from blurfit.proofs.flp import ShortVector
from blurfit.proofs.prio3 import Prio3, Xof

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement

PROOFS = 3
ALGORITHM = 0xFFFFB1F1  # among those that the draft leaves to private use
SOUNDNESS = -40.0  # log₂ of the probability that any lie is believed, at most
PROVED_IN_WORDS = (
    "Each contributor proves to both databases that what she sends is no longer than an honest "
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
        """Everything follows from the agreement, whose fingerprint is part of every proof."""
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


def proved_row(agreement: "Agreement") -> str:
    """A row of Markdown that says how much is proved, or nothing."""
    if not agreement.proofs:
        return ""
    worth = math.ceil(10 * records_worth(agreement) * PROVED_RADIUS) / 10
    return (
        f"| proofs | no submission counts for more than {worth:,} of the longest records; any lie "
        f"is believed with probability at most 2^{math.ceil(agreement.proving.soundness)} |\n"
    )


def _rounded(reach: float, doubt: float) -> int:
    """The radius in steps, up to eight binary digits."""
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
