"""Submissions as they came, some hundreds in a row, each block with its sums.

A block is written once, in the transaction that takes its names, so it neither loses nor doubles
anything that the names do not. Its checksum covers count and sums: whoever learns from the sums
checks them and need not read the numbers again.

Where people come one at a time the blocks would be as many as the people. So whenever there are
many small ones they are put together into one, in one transaction that removes exactly what it
read. Two services that try it at once get different blocks, because a row can be removed only once.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.submission import Submissions
from blurfit.database.screen import Screen
from blurfit.database.statistics import Statistics
from blurfit.database.sums import block_sums, rows_that_add_exactly, total
from blurfit.database.tables import blocks
from blurfit.errors import NotCertifiedError

ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]

LARGEST = 4096  # rows of a block
SMALL, MANY = 256, 256  # blocks below so many rows are put together when there are so many of them


@dataclass(frozen=True, eq=False)
class Collection:
    """What never changes about a collection."""

    key: int
    agreement: Agreement
    screen: Screen
    exact_rows: int
    invited: bool

    @classmethod
    def of(cls, key: int, agreement: Agreement, *, invited: bool) -> "Collection":
        """The collection of an agreement, with what follows from it worked out once."""
        screen = Screen.of(agreement)
        return cls(
            key,
            agreement,
            screen,
            rows_that_add_exactly(agreement, screen.largest_steps()),
            invited,
        )

    @property
    def block_rows(self) -> int:
        """How many rows a block may have: so many that its sums are exact, wherever that can be."""
        return min(LARGEST, self.exact_rows) if self.exact_rows > 1 else LARGEST


def append(
    connection: Connection, collection: Collection, names: ByteArray, numbers: FloatArray
) -> int:
    """Keep some rows, and tell how many of the blocks they became are small."""
    return _write(connection, collection, int(time.time() // 3600), names, numbers)


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


def count(connection: Connection, key: int) -> int:
    """How many submissions a collection holds."""
    query = sa.select(sa.func.coalesce(sa.func.sum(blocks.c.count), 0))
    return int(connection.scalar(query.where(blocks.c.collection == key)) or 0)


def history(connection: Connection, key: int) -> list[tuple[int, int]]:
    """How many came in which hour since 1970."""
    query = sa.select(blocks.c.hour, sa.func.sum(blocks.c.count)).where(blocks.c.collection == key)
    return [
        (hour, int(come))
        for hour, come in connection.execute(query.group_by(blocks.c.hour).order_by(blocks.c.hour))
    ]


def statistics(connection: Connection, collection: Collection) -> Statistics:
    """N, A and c of everything that a collection holds, each counted once."""

    def parts() -> Iterator[tuple[int, FloatArray]]:
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
            yield rows, np.frombuffer(sums, dtype="<f8")

    return total(collection.agreement, parts(), collection.exact_rows)


def submissions(connection: Connection, collection: Collection) -> Iterator[Submissions]:
    """Everything that a collection holds, block by block, each compared with its sums."""
    c = blocks.c
    query = sa.select(c.key, c.sums, c.rows).where(c.collection == collection.key).order_by(c.key)
    for key, sums, rows in connection.execution_options(yield_per=16).execute(query):
        names, numbers = _apart(collection, rows)
        with np.errstate(over="ignore", invalid="ignore"):  # whatever damage made of them
            again = block_sums(collection.agreement, numbers)
        if collection.exact_rows > 1 and not np.array_equal(again, np.frombuffer(sums, "<f8")):
            raise NotCertifiedError(
                f"Expected the numbers of block {key} of collection "
                f"{collection.agreement.fingerprint} to add up to its sums, and they do not: the "
                "storage is damaged. Restore it from a backup."
            )
        yield collection.agreement.layout.table(names, numbers)


def _write(
    connection: Connection,
    collection: Collection,
    hour: int,
    names: ByteArray,
    numbers: FloatArray,
) -> int:
    """Rows as blocks; how many of these are small is returned."""
    size = collection.block_rows
    starts = range(0, len(names), size)
    written = []
    for start in starts:
        part = slice(start, start + size)
        sums = block_sums(collection.agreement, numbers[part]).astype("<f8").tobytes()
        count = len(names[part])
        written.append(
            {
                "collection": collection.key,
                "hour": hour,
                "count": count,
                "checksum": _checksum(collection, count, sums),
                "sums": sums,
                "rows": np.hstack([names[part], numbers[part].view(np.uint8)]).tobytes(),
            }
        )
    connection.execute(sa.insert(blocks), written)
    return sum(len(names) - start < SMALL for start in starts)


def _apart(collection: Collection, rows: bytes) -> tuple[ByteArray, FloatArray]:
    width = 16 + 8 * sum(collection.agreement.layout.widths)
    table = np.frombuffer(rows, dtype=np.uint8).reshape(-1, width)
    return np.ascontiguousarray(table[:, :16]), np.ascontiguousarray(table[:, 16:]).view("<f8")


def _checksum(collection: Collection, rows: int, sums: bytes) -> bytes:
    whole = hashlib.blake2b(digest_size=16)
    whole.update(collection.agreement.fingerprint.encode())
    whole.update(rows.to_bytes(8, "little"))
    whole.update(sums)
    return whole.digest()
