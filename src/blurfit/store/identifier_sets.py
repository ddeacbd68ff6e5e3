"""Sets of identifiers: whose shares a store holds, which of them the other database holds too, and
how a set travels.

A set is an array of rows of 16 bytes. **On its way** from the first of two databases to the second
it is one bit for each of those whom the second holds, in order: two megabytes for 2²⁴ of them,
whoever is left out. A database takes no more shares than that (`MOST_SHARES`), so that whoever
sends more keeps others from coming, and never a collection from its end.
"""

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.arrays import ByteArray
from blurfit.errors import InvalidValueError
from blurfit.store.collections import Collection
from blurfit.store.tables import identifiers, recent, withdrawn

WIDTH = 16  # bytes of an identifier
AT_ONCE = 2**16  # identifiers that are read together
MOST_SHARES = 2**24  # that a collection of shares takes


def identifiers_of(connection: Connection, collection: Collection) -> ByteArray:
    """Everyone whose share is here, in order; read in parts, as each takes more on its way."""
    part = page(connection, collection, b"", AT_ONCE)
    whole = bytearray(part)
    while len(part) == WIDTH * AT_ONCE:
        part = page(connection, collection, part[-WIDTH:], AT_ONCE)
        whole += part
    return as_identifiers(whole)


def page(connection: Connection, collection: Collection, after: bytes, most: int) -> bytes:
    """The next identifiers after a given one, one after the other."""
    parts = []
    for table in (identifiers, recent):
        here, later = table.c.collection == collection.key, table.c.identifier > after
        gone = sa.exists().where(
            (withdrawn.c.collection == collection.key)
            & (withdrawn.c.identifier == table.c.identifier)
        )
        parts.append(sa.select(table.c.identifier).where(here & later & ~gone))
    both = sa.union_all(*parts).subquery()
    query = sa.select(both.c.identifier).order_by(both.c.identifier).limit(most)
    return b"".join(connection.scalars(query))


def as_identifiers(data: bytes | bytearray | memoryview) -> ByteArray:
    """Identifiers, one after the other, as rows of 16 bytes."""
    if len(data) % WIDTH:
        raise InvalidValueError(
            f"Expected identifiers of {WIDTH} bytes, and got {len(data)} bytes: it was cut short."
        )
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, WIDTH)


def in_order(some: ByteArray) -> ByteArray:
    """Each identifier once, sorted; most are so already, and to see that takes far less time."""
    names = keys(some)
    if not (names[:-1] < names[1:]).all():
        names = np.unique(names)
    return names.view(np.uint8).reshape(-1, WIDTH)


def minus(some: ByteArray, others: ByteArray) -> ByteArray:
    """Those of the first that are not among the second, in the order of the first."""
    if not len(others):
        return some
    return some[~among(some, in_order(others))]


def among(some: ByteArray, others: ByteArray) -> npt.NDArray[np.bool_]:
    """Which of the first are among the second, which are in order."""
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
    """Identifiers as values that can be sorted and compared.

    All are of 16 bytes, so zeros at the end, which NumPy does not tell from nothing, do no harm.
    """
    return np.ascontiguousarray(some).view("S16").ravel()


def members(held: ByteArray, left_out: ByteArray) -> bytes:
    """One bit for each of those who are held, in order: whether it is in the set."""
    return np.packbits(~among(held, in_order(left_out))).tobytes()


def left_out_by(held: ByteArray, bits: bytes) -> ByteArray:
    """The inverse of `members`: those whose bit is not set."""
    if len(bits) != -(-len(held) // 8):
        raise InvalidValueError(
            f"Expected a bit for each of the {len(held)} contributors here, and got {len(bits)} "
            "bytes: the other database has seen other ones. Let it ask again."
        )
    inside = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=len(held)).astype(np.bool_)
    return held[~inside]
