"""Identifiers: which are taken, which of them were withdrawn, and sets of them.

Identifiers go to the database as one string of 16 bytes each, and are taken apart there: one
statement for thousands of them, during which Python is free to read the next requests.

A set is an array of rows of 16 bytes. **On its way** from the first of two databases to the second
it is one bit for each of those whom the second holds, in order: two megabytes for 2²⁴ of them,
whoever is left out. A database takes no more shares than that (`MOST_SHARES`), so that whoever
sends more keeps others from coming, and never a collection from its end.

Functions that take a connection take the key of a wave.
"""

from collections.abc import Collection as Collected
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.data import BoolArray, ByteArray
from blurfit.errors import InvalidValueError
from blurfit.store import tables

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


def settle(connection: Connection) -> None:
    """Move the recent identifiers to the others. For SQLite alone, where one writes at a time."""
    for statement in _MOVE:
        connection.execute(statement)


def take(connection: Connection, wave: int, identifiers: ByteArray) -> int:
    """Take identifiers that are not taken, and tell how many were not.

    In order, so that two services which take the same ones cannot each wait for the other.
    """
    order = np.argsort(keys(identifiers), kind="stable")
    return connection.execute(_TAKE, _values(wave, identifiers[order].tobytes())).rowcount


def known_among(connection: Connection, wave: int, identifiers: ByteArray) -> set[bytes]:
    """Return those of some identifiers that are taken."""
    return _asked(connection, _KNOWN, wave, identifiers.tobytes())


def withdrawn_among(connection: Connection, wave: int, identifiers: Collected[bytes]) -> set[bytes]:
    """Return those of some identifiers whose submissions were withdrawn."""
    return _asked(connection, _WITHDRAWN, wave, b"".join(identifiers)) if identifiers else set()


def withdraw(connection: Connection, wave: int, identifiers: ByteArray) -> None:
    """Write down that what was sent under some identifiers was withdrawn; they stay taken."""
    connection.execute(_WITHDRAW, _values(wave, identifiers.tobytes()))


def _asked(connection: Connection, query: sa.TextClause, wave: int, given: bytes) -> set[bytes]:
    return {bytes(one) for one in connection.scalars(query, _values(wave, given))}


def _values(wave: int, given: bytes) -> dict[str, Any]:
    return {"wave": wave, "given": given, "count": len(given) // WIDTH}


def held(connection: Connection, wave: int) -> ByteArray:
    """Return everyone whose share is here, in order; read in parts, as each takes more on its way.

    Whoever has withdrawn is not here any more.
    """
    part = page(connection, wave, b"", AT_ONCE)
    whole = bytearray(part)
    while len(part) == WIDTH * AT_ONCE:
        part = page(connection, wave, part[-WIDTH:], AT_ONCE)
        whole += part
    return as_identifiers(whole)


def page(connection: Connection, wave: int, after: bytes, most: int) -> bytes:
    """Return the next identifiers after a given one, one after the other."""
    parts, gone = [], tables.withdrawn.c
    for table in (tables.identifiers, tables.recent):
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
            f"Expected identifiers of {WIDTH} bytes, and got {len(data)} bytes: it was cut short."
        )
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, WIDTH)


def in_order(some: ByteArray) -> ByteArray:
    """Return each identifier once, sorted; most are so already, and to see that is far cheaper."""
    names = keys(some)
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
    wanted, known = keys(some), keys(others)
    for start in range(0, len(some), AT_ONCE):  # so that it takes little memory besides
        part = wanted[start : start + AT_ONCE]
        places = np.minimum(np.searchsorted(known, part), len(known) - 1)
        found[start : start + AT_ONCE] = known[places] == part
    return found


def keys(some: ByteArray) -> npt.NDArray[np.bytes_]:
    """Return identifiers as values that can be sorted and compared.

    All are of 16 bytes, so zeros at the end, which NumPy does not tell from nothing, do no harm.
    """
    return np.ascontiguousarray(some).view("S16").ravel()


def members(here: ByteArray, left_out: ByteArray) -> bytes:
    """Return one bit for each of those who are here, in order: whether it is in the set."""
    return np.packbits(~among(here, in_order(left_out))).tobytes()


def left_out_by(here: ByteArray, bits: bytes) -> ByteArray:
    """Return those whose bit is not set: the inverse of `members`."""
    if len(bits) != -(-len(here) // 8):
        raise InvalidValueError(
            f"Expected a bit for each of the {len(here)} contributors here, and got {len(bits)} "
            "bytes: the other database has seen other ones. Let it ask again."
        )
    inside = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=len(here)).astype(np.bool_)
    return here[~inside]
