"""Submissions as they came, some hundreds in a row, each block with its sums.

A block is written once, in the transaction that takes its identifiers, so it neither loses nor
doubles anything that they do not. Its checksum covers count and sums: whoever learns from the sums
checks them and need not read the numbers again.

Where people come one at a time the blocks would be as many as the people. So whenever there are
many small ones they are put together into one, in one transaction that removes exactly what it
read. Two services that try it at once get different blocks, because a row can be removed only once.

Within a block rows are in the order of their identifiers, which are random: nothing there tells who
came before whom. Blocks still follow each other, and so do the last few small ones, which have not
been put together. What somebody withdraws is taken out of its block
(`blurfit.store.withdrawal`).
"""

import hashlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.arrays import ByteArray
from blurfit.errors import InfeasibleError, NotCertifiedError
from blurfit.learning.sums import Totals, total
from blurfit.messages.submissions import Submissions
from blurfit.store.collections import Collection, Numbers
from blurfit.store.identifier_sets import among, in_order
from blurfit.store.identifier_sets import keys as identifier_keys
from blurfit.store.tables import blocks

Found = tuple[int, ByteArray]  # a block's key, and some whose rows are in it
_COUNT = sa.select(sa.func.coalesce(sa.func.sum(blocks.c.count), 0)).where(
    blocks.c.collection == sa.bindparam("collection")
)
SMALL, MANY = 256, 256  # blocks below so many rows are put together when there are so many of them


def append(
    connection: Connection, collection: Collection, identifiers: ByteArray, numbers: Numbers
) -> int:
    """Keep some rows, and tell how many of the blocks they became are small."""
    return _write(connection, collection, int(time.time() // 3600), identifiers, numbers)


def put_together(connection: Connection, collection: Collection) -> None:
    """Make large blocks of the small ones."""
    small = (blocks.c.collection == collection.key) & (blocks.c.count < SMALL)
    chosen = sa.select(blocks.c.key).where(small).with_for_update(skip_locked=True)
    removed = connection.execute(
        sa.delete(blocks).where(blocks.c.key.in_(chosen)).returning(blocks.c.hour, blocks.c.rows)
    )
    by_hour: dict[int, list[bytes]] = {}
    for hour, rows in removed:
        by_hour.setdefault(hour, []).append(rows)
    for hour, parts in by_hour.items():
        _write(connection, collection, hour, *_apart(collection, b"".join(parts)))


def holding(connection: Connection, collection: Collection, names: ByteArray) -> list[Found]:
    """The blocks that hold a row of one of these, each with whose they are."""
    found = []
    for key, _, rows in _stored(connection, collection):
        identifiers = np.ascontiguousarray(_table(collection, rows)[:, :16])
        if (here := among(identifiers, in_order(names))).any():
            found.append((key, identifiers[here]))
    return found


def number(connection: Connection, collection: Collection) -> int:
    """How many blocks a collection has."""
    here = blocks.c.collection == collection.key
    return int(connection.scalar(sa.select(sa.func.count()).where(here)) or 0)


def remove(connection: Connection, collection: Collection, key: int, names: ByteArray) -> ByteArray:
    """Take rows out of a block, and tell whose; its sums are added up anew from what is left.

    So they are, to the last bit, those of a block that was written without them. The caller holds
    the collection's row.
    """
    found = rows_of(connection, collection, key)
    if found is None:
        return names[:0]
    identifiers, numbers = found
    leaving = among(identifiers, in_order(names))
    block = blocks.c.key == key
    if leaving.all():
        connection.execute(sa.delete(blocks).where(block))
    elif leaving.any():
        rest = _block(collection, identifiers[~leaving], np.ascontiguousarray(numbers[~leaving]))
        connection.execute(sa.update(blocks).where(block).values(rest))
    return identifiers[leaving]


def count(connection: Connection, collection: Collection) -> int:
    """How many submissions a collection holds."""
    return int(connection.scalar(_COUNT, {"collection": collection.key}) or 0)


def history(connection: Connection, collection: Collection) -> list[tuple[int, int]]:
    """How many came in which hour since 1970."""
    here = blocks.c.collection == collection.key
    query = sa.select(blocks.c.hour, sa.func.sum(blocks.c.count)).where(here)
    return [
        (hour, int(come))
        for hour, come in connection.execute(query.group_by(blocks.c.hour).order_by(blocks.c.hour))
    ]


def totals(connection: Connection, collection: Collection) -> Totals:
    """What everything that a collection holds comes to, each counted once."""
    found = ((rows, np.frombuffer(sums, "<f8")) for rows, sums in parts(connection, collection))
    return total(collection.agreement, found, collection.exact_rows)


def parts(connection: Connection, collection: Collection) -> Iterator[tuple[int, bytes]]:
    """Count and sums of every block, as they were written."""
    query = sa.select(blocks.c.key, blocks.c.count, blocks.c.checksum, blocks.c.sums)
    for key, rows, checksum, sums in connection.execute(
        query.where(blocks.c.collection == collection.key)
    ):
        if _checksum(collection, rows, sums) != checksum:
            raise NotCertifiedError(
                f"Expected block {key} of collection {collection.agreement.fingerprint} to be "
                "as it was written, but its sums do not match their checksum: the storage is "
                "damaged. Restore it from a backup."
            )
        yield rows, sums


def submissions(connection: Connection, collection: Collection) -> Iterator[Submissions]:
    """Everything that a collection holds, block by block, each compared with its sums."""
    if collection.role != "whole":
        raise InfeasibleError(
            "Expected a collection of whole submissions: this one holds shares, of which nothing "
            "can be told without the other database."
        )
    for identifiers, numbers in rows(connection, collection):
        yield Submissions(identifiers, collection.fingerprint, numbers)


def rows(connection: Connection, collection: Collection) -> Iterator[tuple[ByteArray, Numbers]]:
    """Identifiers with numbers, or with shares, block by block; each is compared with its sums.

    Seeds are not, since their masks would take long to add up.
    """
    for key, sums, block in _stored(connection, collection):
        yield _compared(collection, key, sums, block)


def _compared(
    collection: Collection, key: int, sums: bytes, block: bytes
) -> tuple[ByteArray, Numbers]:
    """A block's rows, if they add up to its sums."""
    identifiers, numbers = _apart(collection, block)
    if collection.role == "second":
        return identifiers, numbers
    with np.errstate(over="ignore", invalid="ignore"):  # whatever damage made of them
        again = collection.sums(numbers)
    stated = np.frombuffer(sums, again.dtype.newbyteorder("<"))
    if collection.exact_rows > 1 and not np.array_equal(again, stated):
        raise NotCertifiedError(
            f"Expected the numbers of block {key} of collection "
            f"{collection.agreement.fingerprint} to add up to its sums, and they do not: the "
            "storage is damaged. Restore it from a backup."
        )
    return identifiers, numbers


def keys(connection: Connection, collection: Collection) -> list[int]:
    """Those of all blocks, in order."""
    here = blocks.c.collection == collection.key
    return list(connection.scalars(sa.select(blocks.c.key).where(here).order_by(blocks.c.key)))


def rows_of(
    connection: Connection, collection: Collection, key: int
) -> tuple[ByteArray, Numbers] | None:
    """Identifiers and words of one block; None if it was put together with others meanwhile.

    SQLite may have given its key to a block of another collection since.
    """
    here = (blocks.c.key == key) & (blocks.c.collection == collection.key)
    query = sa.select(blocks.c.sums, blocks.c.rows).where(here)
    found = connection.execute(query).one_or_none()
    return None if found is None else _compared(collection, key, *found)


def _stored(connection: Connection, collection: Collection) -> Iterator[Any]:
    """Key, sums and rows of every block, in order, as they are at one moment."""
    c = blocks.c
    wanted, here = sa.select(c.key, c.sums, c.rows), c.collection == collection.key
    if connection.dialect.name == "postgresql":
        query = wanted.where(here).order_by(c.key)
        yield from connection.execute(query, execution_options={"yield_per": 16})
        return
    # SQLite would sort whole rows, which takes four times as long. What a transaction reads there
    # is of one moment however many statements it takes.
    for key in connection.scalars(sa.select(c.key).where(here).order_by(c.key)).all():
        yield connection.execute(wanted.where(c.key == key)).one()


def _write(
    connection: Connection,
    collection: Collection,
    hour: int,
    identifiers: ByteArray,
    numbers: Numbers,
) -> int:
    """Rows as blocks; how many of these are small is returned."""
    order = np.argsort(identifier_keys(identifiers), kind="stable")
    identifiers, numbers = identifiers[order], np.ascontiguousarray(numbers[order])
    size = collection.block_rows
    starts = range(0, len(identifiers), size)
    place = {"collection": collection.key, "hour": hour}
    parts = [slice(start, start + size) for start in starts]
    written = [place | _block(collection, identifiers[one], numbers[one]) for one in parts]
    connection.execute(sa.insert(blocks), written)
    return sum(len(identifiers) - start < SMALL for start in starts)


def _block(collection: Collection, identifiers: ByteArray, numbers: Numbers) -> dict[str, Any]:
    """What a block says of some rows, which are in order."""
    found = collection.sums(numbers)
    sums = found.astype(found.dtype.newbyteorder("<")).tobytes()
    return {
        "count": len(identifiers),
        "checksum": _checksum(collection, len(identifiers), sums),
        "sums": sums,
        "rows": np.hstack([identifiers, numbers.view(np.uint8)]).tobytes(),
    }


def _table(collection: Collection, rows: bytes) -> ByteArray:
    return np.frombuffer(rows, dtype=np.uint8).reshape(-1, 16 + 8 * collection.layout.width)


def _apart(collection: Collection, rows: bytes) -> tuple[ByteArray, Numbers]:
    table = _table(collection, rows)
    kind = "<f8" if collection.role == "whole" else "<u8"
    return np.ascontiguousarray(table[:, :16]), np.ascontiguousarray(table[:, 16:]).view(kind)


def _checksum(collection: Collection, rows: int, sums: bytes) -> bytes:
    whole = hashlib.blake2b(digest_size=16)
    whole.update(collection.agreement.fingerprint.encode())
    whole.update(rows.to_bytes(8, "little"))
    whole.update(sums)
    return whole.digest()
