"""Submissions as they came, some hundreds in a row, each block with its sums.

A block is written once, in the transaction that takes its identifiers, so it neither loses nor
doubles anything that they do not. Its checksum covers count and sums: whoever learns from the sums
checks them and need not read the numbers again.

Where people come one at a time the blocks would be as many as the people. So whenever there are
many small ones they are put together into one, in one transaction that removes exactly what it
read. Two services that try it at once get different blocks, because a row can be removed only once.

Within a block rows are in the order of their identifiers, which are random: nothing there tells who
came before whom. Blocks still follow each other, and so do the last few small ones, which have not
been put together. What somebody withdraws is taken out of its block (`blurfit.store.arrivals`).
"""

import hashlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.data import ByteArray
from blurfit.errors import NotCertifiedError
from blurfit.learning.sums import Totals, total
from blurfit.messages.submissions import Submissions
from blurfit.store import identifiers
from blurfit.store.collections import Collection, Numbers
from blurfit.store.tables import blocks

Found = tuple[int, ByteArray]  # a block's key, and some whose rows are in it
SMALL, MANY = 256, 256  # blocks below so many rows are put together when there are so many of them
_b = blocks.c


def append(connection: Connection, wave: Collection, names: ByteArray, numbers: Numbers) -> int:
    """Keep some rows, and tell how many of the blocks they became are small."""
    return _write(connection, wave, int(time.time() // 3600), names, numbers)


def put_together(connection: Connection, wave: Collection) -> None:
    """Make large blocks of the small ones."""
    small = (_b.wave == wave.key) & (_b.count < SMALL)
    chosen = sa.select(_b.key).where(small).with_for_update(skip_locked=True)
    removed = connection.execute(
        sa.delete(blocks).where(_b.key.in_(chosen)).returning(_b.hour, _b.rows)
    )
    by_hour: dict[int, list[bytes]] = {}
    for hour, rows in removed:
        by_hour.setdefault(hour, []).append(rows)
    for hour, parts in by_hour.items():
        _write(connection, wave, hour, *_apart(wave, b"".join(parts)))


def holding(connection: Connection, wave: Collection, wanted: ByteArray) -> list[Found]:
    """Return the blocks that hold a row of one of these, each with whose they are."""
    found = []
    for key, _, rows in _stored(connection, wave):
        names = np.ascontiguousarray(_table(wave, rows)[:, :16])
        if (here := identifiers.among(names, identifiers.in_order(wanted))).any():
            found.append((key, names[here]))
    return found


def remove(connection: Connection, wave: Collection, key: int, wanted: ByteArray) -> ByteArray:
    """Take rows out of a block, and tell whose; its sums are added up anew from what is left.

    So they are, to the last bit, those of a block that was written without them. The caller holds
    the course's row.
    """
    found = rows_of(connection, wave, key)
    if found is None:
        return wanted[:0]
    names, numbers = found
    leaving = identifiers.among(names, identifiers.in_order(wanted))
    if leaving.all():
        connection.execute(sa.delete(blocks).where(_b.key == key))
    elif leaving.any():
        rest = _block(wave, names[~leaving], np.ascontiguousarray(numbers[~leaving]))
        connection.execute(sa.update(blocks).where(_b.key == key).values(rest))
    return names[leaving]


def history(connection: Connection, wave: Collection) -> list[tuple[int, int]]:
    """Return how many came in which hour since 1970."""
    query = sa.select(_b.hour, sa.func.sum(_b.count)).where(_b.wave == wave.key)
    rows = connection.execute(query.group_by(_b.hour).order_by(_b.hour))
    return [(hour, int(come)) for hour, come in rows]


def totals(connection: Connection, wave: Collection) -> Totals:
    """Add up everything that a wave holds, each counted once."""
    found = ((rows, np.frombuffer(sums, "<f8")) for rows, sums in parts(connection, wave))
    return total(wave.agreement, found, wave.exact_rows)


def parts(connection: Connection, wave: Collection) -> Iterator[tuple[int, bytes]]:
    """Yield count and sums of every block, as they were written."""
    query = sa.select(_b.key, _b.count, _b.checksum, _b.sums).where(_b.wave == wave.key)
    for key, rows, checksum, sums in connection.execute(query):
        if _checksum(wave, rows, sums) != checksum:
            raise NotCertifiedError(
                f"Expected block {key} of collection {wave.fingerprint} to be as it was written, "
                "but its sums do not match their checksum: the storage is damaged. Restore it from "
                "a backup."
            )
        yield rows, sums


def submissions(connection: Connection, wave: Collection) -> Iterator[Submissions]:
    """Yield everything that a wave holds, block by block, each compared with its sums."""
    wave.require_role("whole")
    for names, numbers in rows(connection, wave):
        yield Submissions(names, wave.fingerprint, numbers)


def rows(connection: Connection, wave: Collection) -> Iterator[tuple[ByteArray, Numbers]]:
    """Yield identifiers with numbers, or with shares, block by block; each is compared with its
    sums.

    Seeds are not, since their masks would take long to add up.
    """
    for key, sums, block in _stored(connection, wave):
        yield _compared(wave, key, sums, block)


def rows_among(
    connection: Connection, wave: Collection, wanted: ByteArray
) -> tuple[ByteArray, Numbers]:
    """Return identifiers and words of those of some contributors who are here, in order."""
    ordered = identifiers.in_order(wanted)
    found = [(wanted[:0], np.zeros((0, wave.layout.width), dtype=np.uint64))] + [
        (names[chosen], words[chosen])
        for names, words in rows(connection, wave)
        if (chosen := identifiers.among(names, ordered)).any()
    ]
    here, words = (np.concatenate(some) for some in zip(*found, strict=True))
    order = np.argsort(identifiers.keys(here), kind="stable")
    return np.ascontiguousarray(here[order]), words[order]


def keys(connection: Connection, wave: Collection) -> list[int]:
    """Return those of all blocks, in order."""
    query = sa.select(_b.key).where(_b.wave == wave.key).order_by(_b.key)
    return list(connection.scalars(query))


def rows_of(connection: Connection, wave: Collection, key: int) -> tuple[ByteArray, Numbers] | None:
    """Return identifiers and words of one block; None if it was put together with others meanwhile.

    SQLite may have given its key to a block of another wave since.
    """
    here = (_b.key == key) & (_b.wave == wave.key)
    found = connection.execute(sa.select(_b.sums, _b.rows).where(here)).one_or_none()
    return None if found is None else _compared(wave, key, *found)


def _compared(wave: Collection, key: int, sums: bytes, block: bytes) -> tuple[ByteArray, Numbers]:
    """Return a block's rows, if they add up to its sums."""
    names, numbers = _apart(wave, block)
    if wave.role == "second":
        return names, numbers
    with np.errstate(over="ignore", invalid="ignore"):  # whatever damage made of them
        again = wave.sums(numbers)
    stated = np.frombuffer(sums, again.dtype.newbyteorder("<"))
    if wave.exact_rows > 1 and not np.array_equal(again, stated):
        raise NotCertifiedError(
            f"Expected the numbers of block {key} of collection {wave.fingerprint} to add up to "
            "its sums, and they do not: the storage is damaged. Restore it from a backup."
        )
    return names, numbers


def _stored(connection: Connection, wave: Collection) -> Iterator[Any]:
    """Yield key, sums and rows of every block, in order, as they are at one moment."""
    wanted = sa.select(_b.key, _b.sums, _b.rows)
    if connection.dialect.name == "postgresql":
        query = wanted.where(_b.wave == wave.key).order_by(_b.key)
        yield from connection.execute(query, execution_options={"yield_per": 16})
        return
    # SQLite would sort whole rows, which takes four times as long. What a transaction reads there
    # is of one moment however many statements it takes.
    for key in keys(connection, wave):
        yield connection.execute(wanted.where(_b.key == key)).one()


def _write(
    connection: Connection, wave: Collection, hour: int, names: ByteArray, numbers: Numbers
) -> int:
    """Write rows as blocks; how many of these are small is returned."""
    order = np.argsort(identifiers.keys(names), kind="stable")
    names, numbers = names[order], np.ascontiguousarray(numbers[order])
    size, place = wave.block_rows, {"wave": wave.key, "hour": hour}
    starts = range(0, len(names), size)
    segments = [slice(start, start + size) for start in starts]
    written = [place | _block(wave, names[one], numbers[one]) for one in segments]
    connection.execute(sa.insert(blocks), written)
    return sum(len(names) - start < SMALL for start in starts)


def _block(wave: Collection, names: ByteArray, numbers: Numbers) -> dict[str, Any]:
    """Return what a block says of some rows, which are in order."""
    found = wave.sums(numbers)
    sums = found.astype(found.dtype.newbyteorder("<")).tobytes()
    return {
        "count": len(names),
        "checksum": _checksum(wave, len(names), sums),
        "sums": sums,
        "rows": np.hstack([names, numbers.view(np.uint8)]).tobytes(),
    }


def _table(wave: Collection, rows: bytes) -> ByteArray:
    return np.frombuffer(rows, dtype=np.uint8).reshape(-1, 16 + 8 * wave.layout.width)


def _apart(wave: Collection, rows: bytes) -> tuple[ByteArray, Numbers]:
    table = _table(wave, rows)
    kind = "<f8" if wave.role == "whole" else "<u8"
    return np.ascontiguousarray(table[:, :16]), np.ascontiguousarray(table[:, 16:]).view(kind)


def _checksum(wave: Collection, rows: int, sums: bytes) -> bytes:
    whole = hashlib.blake2b(digest_size=16)
    whole.update(wave.fingerprint.encode())
    whole.update(rows.to_bytes(8, "little"))
    whole.update(sums)
    return whole.digest()
