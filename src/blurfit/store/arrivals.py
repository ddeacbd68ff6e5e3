"""A group of arrivals in one transaction: each is accepted as a whole, or refused and nothing of it
kept.

    bytes of several requests ─ join ─► one table ─ screen ─► transaction

The rows are joined once, and stay one table from there: whatever looks at an arrival looks at its
span of the table. All of them are screened at once, before the transaction begins, so nothing that
no honest contributor sends is ever stored (`blurfit.learning.sums`).

Most groups are all new, so that is tried first: one statement takes all the identifiers, and if as
many were taken as there are, nothing had to be looked up. Otherwise the transaction is undone, and
in another one each arrival is looked at in turn:

| every identifier | then |
| --- | --- |
| is taken | acknowledged again, counted once: even after closing |
| is taken or new | the new ones are accepted, if the collection takes any and they are invited |
| is taken, and one was withdrawn | refused: it is not stored, and cannot come again |

What came first under an identifier stays, and whatever comes later under it is ignored: an answer
that told equal numbers from others would let whoever knows an identifier, as each of two databases
does, test guesses of what the other one holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.waves import require_group
from blurfit.arrays import ByteArray
from blurfit.errors import (
    BlurfitError,
    ClosedError,
    ConflictError,
    NotInvitedError,
    PausedError,
    WaveClosedError,
)
from blurfit.store import blocks, closing
from blurfit.store.closing import Standing
from blurfit.store.collections import Collection, Numbers
from blurfit.store.identifier_sets import MOST_SHARES
from blurfit.store.tables import invitations
from blurfit.store.taken import known_among, take, withdrawn_among

Outcome = int | BlurfitError  # how many were new, or why nothing was kept
WITHDRAWN = (
    "A submission that was withdrawn cannot be sent again: nothing of it is stored here, and it "
    "will not be. Nothing was kept of this request."
)


@dataclass(frozen=True, eq=False)
class Arrival:
    """What one request brings: messages of the collection's layout, one after the other, and the
    hashes of invitations; or whether the holder of the store vouches for them instead.
    """

    rows: bytes | memoryview
    invitations: Sequence[bytes] = ()
    vouched: bool = False

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return memoryview(self.rows).nbytes


@dataclass(frozen=True, eq=False)
class Span:
    """Where an arrival's rows are in its group, and what lets them in."""

    rows: slice
    invitations: Sequence[bytes]
    vouched: bool


@dataclass(frozen=True, eq=False)
class Group:
    """The arrivals that pass the screen, as one table; and why the others do not, by place."""

    identifiers: ByteArray
    numbers: Numbers
    spans: Sequence[Span]
    refusals: dict[int, BlurfitError]

    @classmethod
    def of(cls, collection: Collection, arrivals: Sequence[Arrival]) -> "Group":
        """Join what came, and screen it."""
        layout, screen = collection.layout, collection.screen
        joined = b"".join([arrival.rows for arrival in arrivals])
        rows = np.frombuffer(joined, dtype=np.uint8).reshape(-1, layout.size)
        identifiers, numbers = layout.identifiers(rows), collection.numbers(rows)
        spans, stop = [], 0
        for arrival in arrivals:
            start, stop = stop, stop + arrival.size // layout.size
            spans.append(Span(slice(start, stop), arrival.invitations, arrival.vouched))
        if screen is None or (passes := screen.passes(numbers)).all():
            return cls(identifiers, numbers, spans, {})
        refusals: dict[int, BlurfitError] = {}
        kept: list[Span] = []
        good, stop = np.ones(len(rows), dtype=np.bool_), 0
        for place, span in enumerate(spans):
            if (passed := passes[span.rows]).all():
                start, stop = stop, stop + len(passed)
                kept.append(replace(span, rows=slice(start, stop)))
            else:
                wrong = int(passed.argmin())
                refusals[place] = screen.refuse(numbers[span.rows][wrong], wrong)
                good[span.rows] = False
        return cls(identifiers[good], numbers[good], kept, refusals)

    def outcomes(self, stored: Sequence[Outcome]) -> list[Outcome]:
        """Those of all arrivals, from those of the ones that passed."""
        rest = iter(stored)
        places = range(len(self.spans) + len(self.refusals))
        return [self.refusals[one] if one in self.refusals else next(rest) for one in places]


class SomeAreKnownError(Exception):
    """Not all identifiers were new: the transaction must be undone, and each arrival looked at."""


def receive_new(
    connection: Connection, collection: Collection, group: Group
) -> tuple[list[Outcome], int]:
    """All of a group, if the collection takes any and every identifier is new; else an error.

    How many were new in each arrival, and how many small blocks were written. For arrivals that
    need no invitation.
    """
    is_open = closing.standing(connection, collection.key).state == "collecting"
    if _is_full(connection, collection) or not is_open:
        raise SomeAreKnownError  # each arrival is told by itself
    if take(connection, collection, group.identifiers) < len(group.identifiers):
        raise SomeAreKnownError
    small = blocks.append(connection, collection, group.identifiers, group.numbers)
    return [span.rows.stop - span.rows.start for span in group.spans], small


def receive_one_by_one(
    connection: Connection, collection: Collection, group: Group
) -> tuple[list[Outcome], int]:
    """What becomes of each arrival, and how many small blocks were written."""
    now = closing.standing(connection, collection.key)
    while True:
        trial = connection.begin_nested()
        known = known_among(connection, collection, group.identifiers)
        gone = withdrawn_among(connection, collection, known)
        outcomes: list[Outcome] = []
        accepted: list[int] = []  # rows of the group
        for span in group.spans:
            try:
                _refuse_if_withdrawn(group, span, gone)
                new = _new(group, span, known)
                if new:
                    _refuse_unless_welcome(connection, collection, span, len(new), now)
                    accepted += new.values()
                    known |= new.keys()
                outcomes.append(len(new))
            except BlurfitError as refusal:
                outcomes.append(refusal)
        if not accepted:
            trial.commit()
            return outcomes, 0
        identifiers, numbers = group.identifiers[accepted], group.numbers[accepted]
        if take(connection, collection, identifiers) == len(identifiers):
            trial.commit()
            return outcomes, blocks.append(connection, collection, identifiers, numbers)
        trial.rollback()  # another service took one of the identifiers meanwhile: look again


def all_known(connection: Connection, collection: Collection, arrival: Arrival) -> bool:
    """Whether every identifier of an arrival is taken; an error if one of them was withdrawn.

    A few are looked up first: of a batch that is new, none of them is taken.
    """
    rows = np.frombuffer(arrival.rows, dtype=np.uint8).reshape(-1, collection.layout.size)
    identifiers = collection.layout.identifiers(rows)
    few = identifiers[:: max(1, len(identifiers) // 8)]
    for some in (few, identifiers):
        names = {one.tobytes() for one in some}
        if len(known_among(connection, collection, some) & names) < len(names):
            return False
    if withdrawn_among(connection, collection, names):
        raise ConflictError(WITHDRAWN)
    return True


def _is_full(connection: Connection, collection: Collection) -> bool:
    """Whether there are as many shares as two databases can tell each other about."""
    return collection.role != "whole" and blocks.count(connection, collection) >= MOST_SHARES


def _new(group: Group, span: Span, known: set[bytes]) -> dict[bytes, int]:
    """An arrival's identifiers that are not taken, each with its first row in the group."""
    new: dict[bytes, int] = {}
    for row, identifier in enumerate(group.identifiers[span.rows], start=span.rows.start):
        if (key := identifier.tobytes()) not in known:
            new.setdefault(key, row)
    return new


def _refuse_if_withdrawn(group: Group, span: Span, gone: set[bytes]) -> None:
    """What was withdrawn is not here, so it must not be acknowledged as if it were."""
    if gone and any(one.tobytes() in gone for one in group.identifiers[span.rows]):
        raise ConflictError(WITHDRAWN)


def _refuse_unless_welcome(
    connection: Connection, collection: Collection, span: Span, needed: int, now: Standing
) -> None:
    if now.state == "paused":
        raise PausedError(
            "The collection is paused, and nothing was kept. Send the same request again later: it "
            "will be counted once."
        )
    is_open = now.state == "collecting"
    closing.refuse_if_past(now)
    if not is_open and collection.agreement.wave is not None:
        wave = collection.agreement.wave
        raise WaveClosedError(
            f"Wave {wave.number} has closed, and its sums were published: what comes late is left "
            f"out. Nothing was kept. The plan {wave.plan} tells whether another wave collects; a "
            "record that was sent for this one must not be blurred again for another."
        )
    if not is_open:
        raise ClosedError(
            "The collection is closed: what a later submission changed would give it away. Nothing "
            "was kept."
        )
    if _is_full(connection, collection):
        raise ClosedError(f"This collection holds {MOST_SHARES:,} shares, and takes no more.")
    if span.vouched or not collection.invited:
        return
    here = invitations.c.collection == collection.guests
    given = list(dict.fromkeys(span.invitations))
    good = connection.scalars(
        sa.select(invitations.c.hash).where(here & invitations.c.hash.in_(given)).with_for_update()
    ).all()
    if len(good) < needed:
        raise NotInvitedError(
            f"Expected an invitation for each of {needed} submissions, and {len(good)} of those "
            "given are good: the others were never given out, or have been used. Ask whoever "
            "invited you."
        )
    if (place := collection.agreement.wave) is not None:
        good = [one for one in good if place.lot.group_of(one) == place.number]
        if len(good) < needed:
            require_group(place, [place.lot.group_of(one) for one in given])
    connection.execute(sa.delete(invitations).where(here & invitations.c.hash.in_(good[:needed])))
