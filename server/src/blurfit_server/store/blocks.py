"""What came, and from whom: identifiers, and submissions in blocks with their sums.

**Identifiers** go to the database as one string of 16 bytes each: one statement for thousands. A
set travels to the second database as one bit for each of those whom it holds, in order. A database
takes at most `MOST_SHARES` shares, so that an excess keeps others out, and no collection from its
end.

**Blocks** hold submissions, some hundreds in a row, each with its sums and a checksum of count and
sums. A block is written once, in the transaction that takes its identifiers. Many small ones are
merged in one transaction that removes exactly what it read. Rows are in the order of their random
identifiers: nothing there tells who came before whom.
"""

import hashlib
import time
from collections.abc import Collection as Collected
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.data import BoolArray, ByteArray
from blurfit.errors import InvalidValueError, NotCertifiedError
from blurfit.learning.sums import Totals, total
from blurfit.messages.submissions import Submissions
from blurfit_server.store import database
from blurfit_server.store.collections import Collection, Numbers
from blurfit_server.store.database import blocks

WIDTH = 16  # bytes of an identifier
AT_ONCE = 2**16  # identifiers that are read together
MOST_SHARES = 2**24  # that a collection of shares takes

# ---- in the database. SQLite and PostgreSQL understand these.

_PLACES = """
WITH RECURSIVE place(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n + 1 < :count)
"""
_TAKE = sa.text(f"""
INSERT INTO recent (wave, identifier) {_PLACES}
SELECT :wave, substr(:given, n * 16 + 1, 16)
FROM place
WHERE NOT EXISTS (
    SELECT 1 FROM identifiers
    WHERE wave = :wave AND identifier = substr(:given, n * 16 + 1, 16)
)
ON CONFLICT DO NOTHING
""")


def _among_those_in(table: str) -> str:
    return f"""
SELECT identifier FROM {table}
WHERE wave = :wave AND identifier IN ({_PLACES} SELECT substr(:given, n * 16 + 1, 16) FROM place)
"""


_KNOWN = sa.text(" UNION ALL ".join(map(_among_those_in, ("recent", "identifiers"))))
_WITHDRAWN = sa.text(_among_those_in("withdrawn"))
_WITHDRAW = sa.text(f"""
INSERT INTO withdrawn (wave, identifier) {_PLACES}
SELECT :wave, substr(:given, n * 16 + 1, 16) FROM place WHERE true
ON CONFLICT DO NOTHING
""")
_MOVE = (
    sa.text("""
INSERT INTO identifiers (wave, identifier)
SELECT wave, identifier FROM recent ORDER BY wave, identifier
"""),
    sa.text("DELETE FROM recent"),
)


def settle_identifiers(connection: Connection) -> None:
    """Move the recent identifiers to the others. For SQLite alone, where one writes at a time."""
    for statement in _MOVE:
        connection.execute(statement)


def take_identifiers(connection: Connection, wave: int, identifiers: ByteArray) -> int:
    """Take identifiers that are not taken, and tell how many were not.

    In order, so that two services which take the same ones cannot each wait for the other.
    """
    order = np.argsort(sortable(identifiers), kind="stable")
    return connection.execute(_TAKE, _values(wave, identifiers[order].tobytes())).rowcount


def known_among(connection: Connection, wave: int, identifiers: ByteArray) -> set[bytes]:
    """Return those of some identifiers that are taken."""
    return _asked(connection, _KNOWN, wave, identifiers.tobytes())


def withdrawn_among(connection: Connection, wave: int, identifiers: Collected[bytes]) -> set[bytes]:
    """Return those of some identifiers whose submissions were withdrawn."""
    return _asked(connection, _WITHDRAWN, wave, b"".join(identifiers)) if identifiers else set()


def withdraw_identifiers(connection: Connection, wave: int, identifiers: ByteArray) -> None:
    """Write down that what was sent under some identifiers was withdrawn; they stay taken."""
    connection.execute(_WITHDRAW, _values(wave, identifiers.tobytes()))


def _asked(connection: Connection, query: sa.TextClause, wave: int, given: bytes) -> set[bytes]:
    return {bytes(one) for one in connection.scalars(query, _values(wave, given))}


def _values(wave: int, given: bytes) -> dict[str, Any]:
    return {"wave": wave, "given": given, "count": len(given) // WIDTH}


def held_identifiers(connection: Connection, wave: int) -> ByteArray:
    """Return everyone whose share is here and was not withdrawn, in order; read in parts."""
    part = page_of_identifiers(connection, wave, b"", AT_ONCE)
    whole = bytearray(part)
    while len(part) == WIDTH * AT_ONCE:
        part = page_of_identifiers(connection, wave, part[-WIDTH:], AT_ONCE)
        whole += part
    return as_identifiers(whole)


def page_of_identifiers(connection: Connection, wave: int, after: bytes, most: int) -> bytes:
    """Return the next identifiers after a given one, one after the other."""
    parts, gone = [], database.withdrawn.c
    for table in (database.identifiers, database.recent):
        here, later = table.c.wave == wave, table.c.identifier > after
        out = sa.exists().where((gone.wave == wave) & (gone.identifier == table.c.identifier))
        parts.append(sa.select(table.c.identifier).where(here & later & ~out))
    both = sa.union_all(*parts).subquery()
    query = sa.select(both.c.identifier).order_by(both.c.identifier).limit(most)
    return b"".join(connection.scalars(query))


# ---- sets


def as_identifiers(data: bytes | bytearray | memoryview) -> ByteArray:
    """Return identifiers, one after the other, as rows of 16 bytes."""
    if len(data) % WIDTH:
        raise InvalidValueError(
            "Expected identifiers of {width} bytes, and got {data_count} bytes: it was cut short.",
            width=WIDTH,
            data_count=len(data),
        )
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, WIDTH)


def in_order(some: ByteArray) -> ByteArray:
    """Return each identifier once, sorted; most are so already, and to see that is far cheaper."""
    names = sortable(some)
    if not (names[:-1] < names[1:]).all():
        names = np.unique(names)
    return names.view(np.uint8).reshape(-1, WIDTH)


def minus(some: ByteArray, others: ByteArray) -> ByteArray:
    """Return those of the first that are not among the second, in the order of the first."""
    return some[~among(some, in_order(others))] if len(others) else some


def among(some: ByteArray, others: ByteArray) -> BoolArray:
    """Tell which of the first are among the second, which are in order."""
    found = np.zeros(len(some), dtype=np.bool_)
    if not len(others):
        return found
    wanted, known = sortable(some), sortable(others)
    for start in range(0, len(some), AT_ONCE):  # so that it takes little memory besides
        part = wanted[start : start + AT_ONCE]
        places = np.minimum(np.searchsorted(known, part), len(known) - 1)
        found[start : start + AT_ONCE] = known[places] == part
    return found


def sortable(some: ByteArray) -> npt.NDArray[np.bytes_]:
    """Return identifiers as values that can be sorted and compared."""
    return np.ascontiguousarray(some).view("S16").ravel()


def members(here: ByteArray, left_out: ByteArray) -> bytes:
    """Return one bit for each of those who are here, in order: whether it is in the set."""
    return np.packbits(~among(here, in_order(left_out))).tobytes()


def left_out_by(here: ByteArray, bits: bytes) -> ByteArray:
    """Return those whose bit is not set: the inverse of `members`."""
    if len(bits) != -(-len(here) // 8):
        raise InvalidValueError(
            "Expected a bit for each of the {here_count} contributors here, and got {bits_count} "
            "bytes: the other database has seen other ones. Let it ask again.",
            here_count=len(here),
            bits_count=len(bits),
        )
    inside = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=len(here)).astype(np.bool_)
    return here[~inside]


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
        if (here := among(names, in_order(wanted))).any():
            found.append((key, names[here]))
    return found


def remove(connection: Connection, wave: Collection, key: int, wanted: ByteArray) -> ByteArray:
    """Take rows out of a block, and tell whose; its sums are added up anew from what is left.

    The caller holds the course's row.
    """
    found = rows_of(connection, wave, key)
    if found is None:
        return wanted[:0]
    names, numbers = found
    leaving = among(names, in_order(wanted))
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
                "Expected block {key} of collection {wave_fingerprint} to be as it was written, "
                "but its sums do not match their checksum: the storage is damaged. Restore it from "
                "a backup.",
                key=key,
                wave_fingerprint=wave.fingerprint,
            )
        yield rows, sums


def submissions(connection: Connection, wave: Collection) -> Iterator[Submissions]:
    """Yield everything that a wave holds, block by block, each compared with its sums."""
    wave.require_role("whole")
    for names, numbers in rows(connection, wave):
        yield Submissions(names, wave.fingerprint, numbers)


def rows(connection: Connection, wave: Collection) -> Iterator[tuple[ByteArray, Numbers]]:
    """Yield identifiers with numbers, or with shares, block by block; each compared with its sums,
    but for seeds, whose masks would take long to add up.
    """
    for key, sums, block in _stored(connection, wave):
        yield _compared(wave, key, sums, block)


def rows_among(
    connection: Connection, wave: Collection, wanted: ByteArray
) -> tuple[ByteArray, Numbers]:
    """Return identifiers and words of those of some contributors who are here, in order."""
    ordered = in_order(wanted)
    found = [(wanted[:0], np.zeros((0, wave.layout.width), dtype=np.uint64))] + [
        (names[chosen], words[chosen])
        for names, words in rows(connection, wave)
        if (chosen := among(names, ordered)).any()
    ]
    here, words = (np.concatenate(some) for some in zip(*found, strict=True))
    order = np.argsort(sortable(here), kind="stable")
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
            "Expected the numbers of block {key} of collection {wave_fingerprint} to add up to "
            "its sums, and they do not: the storage is damaged. Restore it from a backup.",
            key=key,
            wave_fingerprint=wave.fingerprint,
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
    order = np.argsort(sortable(names), kind="stable")
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
