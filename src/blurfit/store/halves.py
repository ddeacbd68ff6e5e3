"""Compare those who came first with those who came later, for the administrator alone.

One database sees submissions, and may compare them: nothing leaves it but whether its halves by
arrival differ by more than chance, and how many submissions are longer than honest ones are
(`blurfit.learning.inference`). That goes to its administrator, who can read all of them anyway; the
promise to readers does not cover it. Shares are never compared: two databases would have to add up
each half by itself, and so show sums of half of the noise.

Halves are of blocks, by the hour and by their order within it. Within a block rows are in the order
of their random identifiers, so that a block counts as one moment.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.proving import radii
from blurfit.data import FloatArray
from blurfit.learning.inference import FALSE_ALARM, MOST_NUMBERS, halves_apart
from blurfit.learning.sums import Screen
from blurfit.store import blocks as stored
from blurfit.store.collections import Collection
from blurfit.store.tables import blocks

_AT_ONCE = 1024  # pairs
_EACH = FALSE_ALARM / 2  # of the two things that are looked at
_INNOCENT = (
    "Honest people look like this in at most 1 of 1,000 collections, as long as when somebody "
    "comes has nothing to do with what they answer."
)
_WHAT_TO_DO = (
    "Before you publish, think of whom you invited when, and compare with what you know of them: "
    "nothing here says who lied, and what is published once stays. If in doubt, collect anew."
)


@dataclass(frozen=True)
class Comparison:
    """What the administrator is told: whether something is wrong, and in which words."""

    people: int  # who were compared; 0 if they are too few
    disagree: bool
    long: int  # submissions that are longer than honest ones are
    told: str


def compared(connection: Connection, wave: Collection) -> Comparison:
    """Compare the first half of those who came with the second. Reads all submissions once."""
    wave.require_role("whole")
    here = blocks.c.wave == wave.key
    query = sa.select(blocks.c.key, blocks.c.count).where(here)
    order = connection.execute(query.order_by(blocks.c.hour, blocks.c.key)).all()
    people = sum(count for _, count in order)
    half, names = people // 2, b""
    if order and (found := stored.rows_of(connection, wave, order[0].key)):
        names = found[0].tobytes()
    numbers = _numbers_of(wave.agreement, names)
    honest = Screen(wave.agreement.parts, radii(wave.agreement, _EACH / max(people, 1)))
    long = 0

    def rows(start: int, stop: int) -> Iterator[FloatArray]:
        """What those at some places sent, `_AT_ONCE` of them at a time."""
        nonlocal long
        waiting, before = np.empty((0, wave.agreement.width)), 0
        for key, count in order:
            first, last = max(start - before, 0), min(stop - before, count)
            before += count
            if first < last and (found := stored.rows_of(connection, wave, key)):
                some = found[1][first:last]
                long += int((~honest.passes(some)).sum())
                waiting = np.concatenate([waiting, some])
                while len(waiting) >= _AT_ONCE:
                    yield waiting[:_AT_ONCE]
                    waiting = waiting[_AT_ONCE:]
        if len(waiting):
            yield waiting

    both = zip(rows(0, half), rows(half, 2 * half), strict=True)
    gap = halves_apart((numbers(one) - numbers(other) for one, other in both), _EACH)
    alarms = gap is not None and gap.alarms
    return Comparison(
        people=0 if gap is None else gap.people,
        disagree=alarms,
        long=long,
        told=_in_words(people, long, alarms=alarms, enough=gap is not None),
    )


def _in_words(people: int, long: int, *, alarms: bool, enough: bool) -> str:
    told = []
    if alarms:
        told.append(
            "The half of the people who came first and the half who came later differ by more than "
            f"chance: contributors may be lying together. {_INNOCENT}"
        )
    if long:
        told.append(
            f"{long:,} of {people:,} submissions are longer than honest ones are, which happens "
            "in at most 1 of 1,000 collections: somebody lies, or blurs with another program."
        )
    if told:
        return " ".join([*told, _WHAT_TO_DO])
    if not enough:
        return f"{people:,} people are too few to compare one half with the other."
    return (
        "Those who came first and those who came later do not differ by more than chance, and no "
        "submission is longer than honest ones are. Liars who come evenly and are not greedy "
        "cannot be seen: the model says how far they could move it."
    )


def _numbers_of(agreement: Agreement, names: bytes) -> Callable[[FloatArray], FloatArray]:
    """What of a submission is added up; of very many numbers, random combinations.

    They follow from the random identifiers of some who came, which have nothing to do with what was
    sent, and which nobody knows who decides what to send.
    """
    width = agreement.width
    if width <= MOST_NUMBERS:
        return lambda rows: rows
    drawn = hashlib.shake_256(names).digest(width * MOST_NUMBERS // 8)
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8)).reshape(width, MOST_NUMBERS)
    mixed = 2.0 * bits - 1
    return lambda rows: np.asarray(rows @ mixed)
