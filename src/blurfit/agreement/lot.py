"""Which wave a person is in: decided by a lot, before anything is known of them.

    invitation ─ SHA-256 ─► h ─ SHA-256 with the plan's fingerprint ─► u in [0, 1) ─► group
                                                        0 ├─ m₁/m ─┼── m₂/m ──┼──── m₃/m ────┤ 1

A wave is small, and its promise needs honest people *within it*. If whoever comes first were in the
first wave, people who collude would come first: 10 % of all of them could be half of a wave of a
fifth. So nobody chooses their wave, and each wave waits for more people than its noise needs.

**By invitation.** The lot is a function of the invitation and of the plan, whose fingerprint is
fixed before the first invitation is made. An invitation is 256 random bits, so whoever gets one can
neither choose its group nor change it; a store, which keeps h alone, can check it, and so can
whoever holds the invitation. Two databases give a person one invitation each, and join them within
a group. Whoever makes invitations could look for one of a certain group, and whoever hands them out
could look at the group before choosing a person: they are trusted not to, as they are trusted to
invite real people, each of them once.

**Open to anyone.** A contributor's own program tosses a coin (`blurfit.contributor.noise`), and
remembers it. Nobody can check a coin: whoever lies can choose their wave.

**The margin.** m_k people are waited for, and the noise is sized for n_k = ⌊(1 − c)·m_k⌋ of them,
where c is the share of colluders that the plan covers. If at most c·m_k of a wave's people collude,
the number of the others is a whole number that is at least (1 − c)·m_k, so at least n_k. If a share
a < c of all who are invited collude, a lot puts more than c·m_k of them among m_k people with a
probability of at most exp(−2m_k(c − a)²) (Hoeffding, 1963, whose bound covers draws without
replacement). That is said of people drawn from a wave's guests by chance: if twice as many are
invited as are waited for, colluders who are quick weigh twice as much, in waves as without.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

_BITS = 64  # of u: a group's probability is right to within 2⁻⁶⁴


@dataclass(frozen=True)
class Lot:
    """The lot of the plan with this fingerprint, whose waves wait for so many people each."""

    plan: str
    people: tuple[int, ...]

    def group_of(self, invitation: bytes) -> int:
        """The number of the wave that an invitation, of which this is the SHA-256, is for.

        >>> lot = Lot("00" * 32, (3000, 7000))
        >>> [lot.group_of(bytes([one]) * 32) for one in range(10, 16)]
        [2, 2, 2, 1, 2, 2]
        """
        text = f"blurfit lot {self.plan} {invitation.hex()}"
        drawn = int(hashlib.sha256(text.encode()).hexdigest()[: _BITS // 4], 16)
        ends = accumulate(self.people)
        return 1 + sum(drawn * sum(self.people) >= end << _BITS for end in ends)

    def shares(self, count: int, offset: int, first: int = 1) -> list[int]:
        """How many of `count` people are for each wave, from wave `first` on, in proportion.

        `offset` is drawn at random from 0, 1, …, people in these waves − 1. Then each person of a
        random order has the probability m_k/m of being in wave k, and the numbers are as close to
        proportion as whole numbers are: exact, if `count` is what all of the waves wait for.

        >>> lot = Lot("00" * 32, (3000, 7000))
        >>> lot.shares(20_000, 4711), lot.shares(1, 0), lot.shares(1, 9999), lot.shares(5, 0, 2)
        ([6000, 14000], [0, 1], [1, 0], [0, 5])
        """
        open_ones = [0] * (first - 1) + list(self.people[first - 1 :])
        ends = [0, *accumulate(open_ones)]
        cuts = [(count * end + offset) // ends[-1] for end in ends]
        return [after - before for before, after in pairwise(cuts)]

    def in_all(self, first: int = 1) -> int:
        """How many people the waves from `first` on wait for."""
        return sum(self.people[first - 1 :])


def honest_among(people: Sequence[int], colluders: float) -> tuple[int, ...]:
    """⌊(1 − c)·m_k⌋: how many of each wave's people are honest, if at most the share c colludes.

    The share is the decimal number that is stated, so that everybody finds the same.

    >>> honest_among([4000, 6000, 10_000], 0.1)
    (3600, 5400, 9000)
    """
    rest = 1 - Fraction(str(colluders))
    return tuple(int(rest * one) for one in people)
