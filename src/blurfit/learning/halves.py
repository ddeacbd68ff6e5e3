"""Whether two halves of the people, or two waves, differ by more than chance.

**Halves.** Pair each person of one half with one of the other, and let dᵢ be the difference of what
they sent. If who is in which half does not depend on what is sent, dᵢ is as likely as −dᵢ, all of
them together, *given* everything else: whatever the records and the noise are. So with D = Σdᵢ and
S = Σdᵢdᵢᵀ, which no sign changes,

    T² = DᵀS⁺D = ‖QᵀƐ‖²,      Ɛ independent signs, Q with k = rank S orthonormal columns.

Signs are sub-Gaussian, E exp(a·Ɛ) ≤ exp(‖a‖²/2), and so (Hsu, Kakade and Zhang 2012, Theorem 2.1,
with QQᵀ a projection of rank k)

    P(T² > k + 2√(kt) + 2t) ≤ e^{−t}.                                                          (1)

There is no limit theorem in this: with t = ln 2000 honest people raise the alarm once in two
thousand collections at most, whatever they answer, as long as *when* somebody comes has nothing to
do with what they answer. Where early and late people differ honestly (the young answer on Friday
night, or one town was invited first), the halves do differ, and the alarm says so: it is a reason
to look, and no proof of a lie.

**What it sees, and what not.** Halves by arrival show liars who come together. Liars who come
evenly are alike in both halves, and in any halves whatever, random ones included: no comparison of
halves shows them. T² is at most the number of pairs, and L liars in one half add at most L to it.
What shows them wherever they come is greed: of N honest submissions one is longer than
`radii(agreement, p/N)` with probability p at most, whatever the records are (`blurfit.store.halves`
looks for such). Liars who know this stay a little shorter.

**Waves.** Two waves that tell the same coefficients from different people, with covariances C₁ and
C₂, differ by Δ with Δᵀ(C₁ + C₂)⁻¹Δ of about χ²ₖ, whose tail (1) bounds too. Sampling parts
are taken three times, for errors that spread unevenly. This is asymptotic, and reads published
numbers alone.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.learning.inference import Inference

FALSE_ALARM = 0.001  # of all that is looked at, at most
MOST_NUMBERS = 256  # that are compared; of more, as many random combinations
_UNEVEN = 3.0


@dataclass(frozen=True)
class Difference:
    """T², the limit that chance hardly ever passes, and how many people were compared."""

    size: float
    limit: float
    people: int

    @property
    def alarms(self) -> bool:
        """Whether the two differ by more than chance."""
        return self.size > self.limit


def limit(dimension: int, false_alarm: float = FALSE_ALARM) -> float:
    """What T² of this many numbers exceeds with at most this probability: see (1).

    >>> round(limit(5, 0.001), 1), round(limit(20, 0.001), 1)
    (30.6, 57.3)
    """
    t = -math.log(false_alarm)
    return dimension + 2 * math.sqrt(dimension * t) + 2 * t


def halves_apart(
    pairs: Iterable[FloatArray], false_alarm: float = FALSE_ALARM
) -> Difference | None:
    """From the differences of pairs, some rows at a time; None if they are too few to tell."""
    count, total, squares = 0, None, None
    for rows in pairs:
        count += len(rows)
        total = rows.sum(axis=0) if total is None else total + rows.sum(axis=0)
        squares = rows.T @ rows if squares is None else squares + rows.T @ rows
    if total is None or squares is None or count <= limit(len(total), false_alarm):
        return None  # T² is at most the number of pairs
    scale = np.sqrt(np.diagonal(squares))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(squares / np.outer(scale, scale))
    kept = values > 1e-10 * values[-1]  # leaving directions out makes T² smaller, and k too
    along = (total / scale) @ vectors[:, kept]
    size = float(np.sum(along**2 / values[kept]))
    return Difference(size, limit(int(kept.sum()), false_alarm), 2 * count)


def estimates_apart(one: Inference, other: Inference) -> Difference:
    """Of the same coefficients, told by different people."""
    gap = one.coefficients - other.coefficients
    both = sum(_UNEVEN * found.sampling + found.privacy for found in (one, other))
    size = float(gap @ np.linalg.solve(both, gap))
    return Difference(size, limit(len(gap)), one.count + other.count)
