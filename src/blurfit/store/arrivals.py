"""A group of arrivals in one transaction: each is accepted as a whole, or refused and nothing of it
kept.

Most groups are all new, so that is tried first: one statement takes all the names, and if as many
were taken as there are, nothing had to be looked up. Otherwise the transaction is undone, and in
another one each arrival is looked at in turn:

| every identifier | then |
| --- | --- |
| is taken | acknowledged again, counted once: even after closing |
| is taken or new | the new ones are accepted, if the collection takes any and they are invited |

What came first under an identifier stays, and whatever comes later under it is ignored *unread*: an
answer that told equal numbers from others would let whoever knows an identifier, as each of two
databases does, test guesses of what the other one holds.

Identifiers go to the database as one string of 16 bytes each, and are taken apart there: one
statement for thousands of them, during which Python is free to read the next requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.errors import BlurfitError, ClosedError, NotInvitedError
from blurfit.store import blocks
from blurfit.store.collections import Collection
from blurfit.store.tables import collections, invitations

ByteArray = npt.NDArray[np.uint8]
Numbers = npt.NDArray[Any]  # float64, or uint64 for shares
Outcome = int | BlurfitError  # how many were new, or why nothing was kept


@dataclass(frozen=True, eq=False)
class Arrival:
    """What one request brings: submissions by name, and the hashes of invitations."""

    names: ByteArray
    numbers: Numbers
    invitations: Sequence[bytes] = field(default=())


class SomeAreKnownError(Exception):
    """Not all names were new: the transaction must be undone, and each arrival looked at."""


def receive_new(
    connection: Connection, collection: Collection, arrivals: Sequence[Arrival]
) -> tuple[list[Outcome], int]:
    """All arrivals, if the collection takes any and every name is new; else an error.

    How many were new in each arrival, and how many small blocks were written. For collections that
    need no invitation.
    """
    names, numbers = _joined(arrivals)
    is_open = _state(connection, collection) == "collecting"
    if not is_open or _take(connection, collection, names) < len(names):
        raise SomeAreKnownError
    small = blocks.append(connection, collection, names, numbers)
    return [len(one.names) for one in arrivals], small


def receive_one_by_one(
    connection: Connection, collection: Collection, arrivals: Sequence[Arrival]
) -> tuple[list[Outcome], int]:
    """What becomes of each arrival, and how many small blocks were written."""
    is_open = _state(connection, collection) == "collecting"
    names, _ = _joined(arrivals)
    while True:
        trial = connection.begin_nested()
        known = _known(connection, collection, names)
        outcomes: list[Outcome] = []
        accepted: list[tuple[Arrival, list[int]]] = []
        for arrival in arrivals:
            try:
                new = _new(arrival, known)
                if new:
                    _refuse_unless_welcome(
                        connection, collection, arrival, len(new), is_open=is_open
                    )
                    accepted.append((arrival, list(new.values())))
                    known |= new.keys()
                outcomes.append(len(new))
            except BlurfitError as refusal:
                outcomes.append(refusal)
        if not accepted:
            trial.commit()
            return outcomes, 0
        new_names = np.concatenate([one.names[places] for one, places in accepted])
        numbers = np.concatenate([one.numbers[places] for one, places in accepted])
        if _take(connection, collection, new_names) == len(new_names):
            trial.commit()
            return outcomes, blocks.append(connection, collection, new_names, numbers)
        trial.rollback()  # another service took one of the names meanwhile: look again


def _state(connection: Connection, collection: Collection) -> str | None:
    # Shared: groups need not wait for each other, but publishing waits for them, and they for it.
    return connection.scalar(
        sa.select(collections.c.state)
        .where(collections.c.key == collection.key)
        .with_for_update(read=True)
    )


def _new(arrival: Arrival, known: set[bytes]) -> dict[bytes, int]:
    """The names that are not taken, each with its first place in the arrival."""
    new: dict[bytes, int] = {}
    for place, row in enumerate(arrival.names):
        name = row.tobytes()
        if name not in known:
            new.setdefault(name, place)
    return new


def _refuse_unless_welcome(
    connection: Connection, collection: Collection, arrival: Arrival, needed: int, *, is_open: bool
) -> None:
    if not is_open:
        raise ClosedError(
            "The collection is closed: a later submission could be told from what it would change. "
            "Nothing was kept."
        )
    if not collection.invited:
        return
    here = invitations.c.collection == collection.key
    given = list(dict.fromkeys(arrival.invitations))
    good = connection.scalars(
        sa.select(invitations.c.hash).where(here & invitations.c.hash.in_(given)).with_for_update()
    ).all()
    if len(good) < needed:
        raise NotInvitedError(
            f"Expected an invitation for each of {needed} submissions, and {len(good)} of those "
            "given are good: the others were never given out, or have been used. Ask whoever "
            "invited you."
        )
    connection.execute(sa.delete(invitations).where(here & invitations.c.hash.in_(good[:needed])))


def _joined(arrivals: Sequence[Arrival]) -> tuple[ByteArray, Numbers]:
    if len(arrivals) == 1:
        return arrivals[0].names, arrivals[0].numbers
    return (
        np.concatenate([one.names for one in arrivals]),
        np.concatenate([one.numbers for one in arrivals]),
    )


# SQLite and PostgreSQL understand these. Names are 16 bytes each, one behind the other.
_PLACES = """
WITH RECURSIVE place(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n + 1 < :count)
"""
_TAKE = sa.text(f"""
INSERT INTO recent (collection, identifier) {_PLACES}
SELECT :collection, substr(:names, n * 16 + 1, 16)
FROM place
WHERE NOT EXISTS (
    SELECT 1 FROM identifiers
    WHERE collection = :collection AND identifier = substr(:names, n * 16 + 1, 16)
)
ON CONFLICT DO NOTHING
""")
_KNOWN = sa.text(
    " UNION ALL ".join(
        f"""
SELECT identifier FROM {table}
WHERE collection = :collection AND identifier IN (
    {_PLACES} SELECT substr(:names, n * 16 + 1, 16) FROM place
)
"""
        for table in ("recent", "identifiers")
    )
)
_MOVE = (
    sa.text("""
INSERT INTO identifiers (collection, identifier)
SELECT collection, identifier FROM recent ORDER BY collection, identifier
"""),
    sa.text("DELETE FROM recent"),
)


def settle(connection: Connection) -> None:
    """Move the recent names to the others. For SQLite alone, where one writes at a time."""
    for statement in _MOVE:
        connection.execute(statement)


def _take(connection: Connection, collection: Collection, names: ByteArray) -> int:
    """Take names that are not taken, and tell how many were not.

    In order, so that two services which take the same names cannot each wait for the other.
    """
    order = np.argsort(names.view("S16").ravel(), kind="stable")
    values = {
        "collection": collection.key,
        "names": names[order].tobytes(),
        "count": len(names),
    }
    return connection.execute(_TAKE, values).rowcount


def _known(connection: Connection, collection: Collection, names: ByteArray) -> set[bytes]:
    values = {"collection": collection.key, "names": names.tobytes(), "count": len(names)}
    return {bytes(name) for name in connection.scalars(_KNOWN, values)}
