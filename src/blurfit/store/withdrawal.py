"""Withdraw before anything is published: the sums are then those of the others, exactly.

Whoever withdraws proves that she sent it (`blurfit.messages.signing`). In one transaction, which
holds the collection's row as publishing does, her row is taken out of its block, whose sums are
added up anew from the rows that are left, and her identifier is written down as withdrawn. So,
killed anywhere, she is in the sums or out of them; of a withdrawal and a publication that race, one
comes first, and the other finds it done. To withdraw twice is to withdraw once.

**Many at once.** Rows of one receipt may be scattered over all blocks, each of which is some
megabytes to write. A transaction takes out what is in `BLOCKS_AT_ONCE` of them, and others write
before the next: between two transactions the rows that were reached are out and written down as
such, the others are in and are not, and every sum is that of the rows of its block. That is the
state after a withdrawal of the former alone. So whoever is killed there asks for the same again,
and if the collection closes there, whoever asked is told which are out and which stay.

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

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sqlalchemy.engine import Connection

from blurfit.arrays import ByteArray
from blurfit.errors import (
    BlurfitError,
    ClosedError,
    NotCertifiedError,
    StorageError,
    WaveClosedError,
)
from blurfit.store import blocks, collections, publication, taken
from blurfit.store.blocks import Found
from blurfit.store.closing import OPEN
from blurfit.store.collections import Collection
from blurfit.store.identifier_sets import as_identifiers, minus
from blurfit.store.transactions import Transactions

BLOCKS_AT_ONCE = 8  # in one transaction: others who write wait no longer than for these
_LOOKS = 8  # for rows that are moved again and again, before whoever asks is sent away


@dataclass(frozen=True)
class Withdrawn:
    """How many are withdrawn now, how many of them just now, which were never here, and which stay
    because the collection closed before they were reached.
    """

    withdrawn: int
    new: int
    unknown: tuple[bytes, ...] = ()
    staying: tuple[bytes, ...] = ()


def withdraw(
    store: Transactions,
    collection: Collection,
    identifiers: ByteArray,
    write: publication.Write | None = None,
) -> Withdrawn:
    """Take what was sent under some identifiers out of a collection.

    The blocks are searched before anything is written, so that nobody waits for that, and each that
    holds something is then read and written once; they are searched again only for rows of blocks
    that were put together meanwhile. `write` is the store's, or does the same when its turn comes.
    """
    take_out, new = write or store.write, 0
    refusal: BlurfitError = StorageError(
        "The blocks of the collection were put together again and again while they were searched. "
        "Ask for the same again: what is withdrawn stays so."
    )
    try:
        for _ in range(_LOOKS):
            if not (found := store.read(where, collection, identifiers)):
                break
            for start in range(0, len(found), BLOCKS_AT_ONCE):
                new += take_out(remove, collection, found[start : start + BLOCKS_AT_ONCE])
    except ClosedError as error:
        refusal = error
    done = store.read(_outcome, collection, identifiers, new)
    if done.staying and not (done.withdrawn and isinstance(refusal, ClosedError)):
        raise refusal
    return done


def where(connection: Connection, collection: Collection, identifiers: ByteArray) -> list[Found]:
    """The blocks that hold what was sent under some identifiers, while it can be withdrawn.

    Nothing is searched otherwise: whoever is refused could ask for that again and again.
    """
    wanted = _still_here(connection, collection, identifiers)
    if not len(wanted):
        return []
    _refuse_unless_open(collection, collections.state(connection, collection))
    _refuse_if_full(connection, collection)
    found = blocks.holding(connection, collection, wanted)
    absent = minus(wanted, np.concatenate([wanted[:0], *(names for _, names in found)]))
    # PostgreSQL shows each statement what others have committed: they may be withdrawn by now.
    if len(absent) and len(lost := _still_here(connection, collection, absent)):
        raise NotCertifiedError(
            f"Expected {len(wanted)} submissions in the blocks of collection "
            f"{collection.fingerprint}, and {len(lost)} are not there: the storage is damaged. "
            "Restore it from a backup."
        )
    return found


def remove(connection: Connection, collection: Collection, found: Sequence[Found]) -> int:
    """Take rows out of the blocks in which they were found, and write down that they are withdrawn.

    Of how many is returned: whatever was moved meanwhile is in no block here, and is left to
    whoever searches again.
    """
    state = publication.held(connection, collection).state
    gone = [as_identifiers(b"")]
    with _overwriting(connection):
        for key, whose in found:
            wanted = _still_here(connection, collection, whose)
            if not len(wanted):
                continue
            _refuse_unless_open(collection, state)
            _refuse_if_full(connection, collection)
            gone.append(blocks.remove(connection, collection, key, wanted))
    if len(names := np.concatenate(gone)):
        taken.withdraw(connection, collection, names)
    return len(names)


def _outcome(
    connection: Connection, collection: Collection, identifiers: ByteArray, new: int
) -> Withdrawn:
    """What has become of some identifiers."""
    names = dict.fromkeys(one.tobytes() for one in identifiers)
    known = taken.known_among(connection, collection, identifiers)
    out = taken.withdrawn_among(connection, collection, known)
    unknown = tuple(one for one in names if one not in known)
    staying = tuple(one for one in names if one in known and one not in out)
    return Withdrawn(len(out), new, unknown, staying)


def _still_here(
    connection: Connection, collection: Collection, identifiers: ByteArray
) -> ByteArray:
    """Those of some identifiers that are taken and not withdrawn."""
    known = taken.known_among(connection, collection, identifiers)
    rest = known - taken.withdrawn_among(connection, collection, known)
    return as_identifiers(b"".join(sorted(rest)))


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
