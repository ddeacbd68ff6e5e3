"""Withdraw before anything is published: the sums are then those of the others, exactly.

Whoever withdraws proves that she sent it (`blurfit.messages.receipts`). In one transaction, which
holds the collection's row as publishing does, her row is taken out of its block, whose sums are
added up anew from the rows that are left, and her identifier is written down as withdrawn. So,
killed anywhere, she is in the sums or out of them; of a withdrawal and a publication that race, one
comes first, and the other finds it done. To withdraw twice is to withdraw once.

**Until when.** As long as the collection takes submissions, or is paused. Once it is closed its set
is fixed: a second database has told the first whose shares it holds, a wave's sums are published, a
file may have been exported. And somebody with many invitations could otherwise wait for the end,
and take a collection below its quorum when nobody can join any more. For the same reason nobody
leaves a wave of two databases once it has its quorum: they may be publishing it.

**She cannot come back.** Her identifier stays taken, and the invitation stays used. The database
has seen one blur of her record; a second one would be another look at it, and the two together have
√2 times the μ of one (`blurfit.theory.gaussian`). Nothing here could tell another blur of hers from
another person's, so nobody is let in for her.

**Two databases.** What one of them does not hold is in no common set (`blurfit.store.commitment`),
so one that has withdrawn her share is enough, and the other's is left over, like that of somebody
who gave up half-way.

**What stays.** The identifier, that somebody withdrew, and her old row wherever it was copied to:
backups, PostgreSQL's dead rows until they are cleaned up, a log that has not been overwritten.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from blurfit.arrays import ByteArray
from blurfit.errors import ClosedError, NotCertifiedError, WaveClosedError
from blurfit.store import blocks, collections, publication, taken
from blurfit.store.closing import OPEN
from blurfit.store.collections import Collection
from blurfit.store.identifier_sets import as_identifiers, minus
from blurfit.store.transactions import Transactions


@dataclass(frozen=True)
class Withdrawn:
    """How many are withdrawn now, how many of them just now, and which were never here."""

    withdrawn: int
    new: int
    unknown: tuple[bytes, ...] = ()


def withdraw(store: Transactions, collection: Collection, identifiers: ByteArray) -> Withdrawn:
    """Take what was sent under some identifiers out of a collection, all of it or nothing.

    The blocks are searched before the transaction, so that nobody waits for that; in it they are
    searched again only if some were put together meanwhile.
    """
    return store.write(remove, collection, identifiers, store.read(where, collection, identifiers))


def where(connection: Connection, collection: Collection, identifiers: ByteArray) -> list[int]:
    """The blocks that hold what was sent under some identifiers, while it can be withdrawn.

    Nothing is searched otherwise: whoever is refused could ask for that again and again.
    """
    if collections.state(connection, collection) not in OPEN:
        return []
    wanted = _still_here(connection, collection, identifiers)
    return blocks.holding(connection, collection, wanted) if len(wanted) else []


def _still_here(
    connection: Connection, collection: Collection, identifiers: ByteArray
) -> ByteArray:
    """Those of some identifiers that are taken and not withdrawn."""
    known = taken.known_among(connection, collection, identifiers)
    rest = known - taken.withdrawn_among(connection, collection, known)
    return as_identifiers(b"".join(sorted(rest)))


def remove(
    connection: Connection, collection: Collection, identifiers: ByteArray, found: list[int]
) -> Withdrawn:
    """Take it out of these blocks, or of those to which it was moved since; all or nothing."""
    state = publication.held(connection, collection).state
    names = dict.fromkeys(one.tobytes() for one in identifiers)
    known = taken.known_among(connection, collection, identifiers)
    unknown = tuple(one for one in names if one not in known)
    wanted = _still_here(connection, collection, identifiers)
    if len(wanted):
        _refuse_unless_open(collection, state)
        _refuse_if_full(connection, collection)
        with _overwriting(connection):
            _take_out(connection, collection, wanted, found)
        taken.withdraw(connection, collection, wanted)
    return Withdrawn(len(names) - len(unknown), len(wanted), unknown)


def _take_out(
    connection: Connection, collection: Collection, wanted: ByteArray, found: list[int]
) -> None:
    """Take rows out of the blocks where they were found, or to which they were moved since."""
    left = wanted
    for key in found:
        left = minus(left, blocks.remove(connection, collection, key, left))
    if len(left):
        for key in blocks.holding(connection, collection, left):
            left = minus(left, blocks.remove(connection, collection, key, left))
    if len(left):
        raise NotCertifiedError(
            f"Expected {len(wanted)} submissions in the blocks of collection "
            f"{collection.fingerprint}, and {len(left)} are not there: the storage is damaged. "
            "Restore it from a backup."
        )


def _refuse_unless_open(collection: Collection, state: str) -> None:
    if state in OPEN:
        return
    fixed = (
        "is closed, and whose submissions are in it is fixed: nothing can be withdrawn any more. "
        "What is published protects whoever is in it as agreed."
    )
    if (wave := collection.agreement.wave) is not None:
        raise WaveClosedError(f"Wave {wave.number} {fixed}")
    raise ClosedError(f"The collection {fixed}")


def _refuse_if_full(connection: Connection, collection: Collection) -> None:
    """Let nobody leave a wave of two databases that has its quorum: they are about to publish it.

    The first has seen that enough are at both, and the second may have closed it on its word
    (`blurfit.store.joint_plans`): a wave of fewer could be neither published nor filled again.
    """
    wave, quorum = collection.agreement.wave, collection.agreement.quorum
    full = wave is not None and blocks.count(connection, collection) >= quorum
    if wave is not None and collection.role != "whole" and full:
        raise WaveClosedError(
            f"Wave {wave.number} has the {quorum:,} people that it waits for, and the two "
            "databases are about to publish its sums: nobody can leave it any more. They protect "
            "whoever is in them as agreed."
        )


@contextmanager
def _overwriting(connection: Connection) -> Iterator[None]:
    """Let SQLite overwrite whatever is removed meanwhile; else it does so where that is cheap."""
    if connection.dialect.name != "sqlite":
        yield
        return
    connection.exec_driver_sql("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        connection.exec_driver_sql("PRAGMA secure_delete = FAST")
