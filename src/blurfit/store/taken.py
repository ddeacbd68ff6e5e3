"""Identifiers that are taken, and those of them whose submissions were withdrawn.

Identifiers go to the database as one string of 16 bytes each, and are taken apart there: one
statement for thousands of them, during which Python is free to read the next requests.
"""

from collections.abc import Collection as Collected
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.arrays import ByteArray
from blurfit.store.collections import Collection
from blurfit.store.identifier_sets import keys

# SQLite and PostgreSQL understand these. Identifiers are 16 bytes each, one after the other.
_PLACES = """
WITH RECURSIVE place(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n + 1 < :count)
"""
_TAKE = sa.text(f"""
INSERT INTO recent (collection, identifier) {_PLACES}
SELECT :collection, substr(:given, n * 16 + 1, 16)
FROM place
WHERE NOT EXISTS (
    SELECT 1 FROM identifiers
    WHERE collection = :collection AND identifier = substr(:given, n * 16 + 1, 16)
)
ON CONFLICT DO NOTHING
""")
_KNOWN = sa.text(
    " UNION ALL ".join(
        f"""
SELECT identifier FROM {table}
WHERE collection = :collection AND identifier IN (
    {_PLACES} SELECT substr(:given, n * 16 + 1, 16) FROM place
)
"""
        for table in ("recent", "identifiers")
    )
)
_WITHDRAWN = sa.text(f"""
SELECT identifier FROM withdrawn
WHERE collection = :collection AND identifier IN (
    {_PLACES} SELECT substr(:given, n * 16 + 1, 16) FROM place
)
""")
_WITHDRAW = sa.text(f"""
INSERT INTO withdrawn (collection, identifier) {_PLACES}
SELECT :collection, substr(:given, n * 16 + 1, 16) FROM place WHERE true
ON CONFLICT DO NOTHING
""")
_MOVE = (
    sa.text("""
INSERT INTO identifiers (collection, identifier)
SELECT collection, identifier FROM recent ORDER BY collection, identifier
"""),
    sa.text("DELETE FROM recent"),
)


def settle(connection: Connection) -> None:
    """Move the recent identifiers to the others. For SQLite alone, where one writes at a time."""
    for statement in _MOVE:
        connection.execute(statement)


def take(connection: Connection, collection: Collection, identifiers: ByteArray) -> int:
    """Take identifiers that are not taken, and tell how many were not.

    In order, so that two services which take the same ones cannot each wait for the other.
    """
    order = np.argsort(keys(identifiers), kind="stable")
    return connection.execute(_TAKE, _values(collection, identifiers[order].tobytes())).rowcount


def known_among(
    connection: Connection, collection: Collection, identifiers: ByteArray
) -> set[bytes]:
    """Those of some identifiers that are taken."""
    return _asked(connection, _KNOWN, collection, identifiers.tobytes())


def withdrawn_among(
    connection: Connection, collection: Collection, identifiers: Collected[bytes]
) -> set[bytes]:
    """Those of some identifiers whose submissions were withdrawn."""
    if not identifiers:
        return set()
    return _asked(connection, _WITHDRAWN, collection, b"".join(identifiers))


def withdraw(connection: Connection, collection: Collection, identifiers: ByteArray) -> None:
    """Write down that what was sent under some identifiers was withdrawn; they stay taken."""
    connection.execute(_WITHDRAW, _values(collection, identifiers.tobytes()))


def _asked(
    connection: Connection, query: sa.TextClause, collection: Collection, given: bytes
) -> set[bytes]:
    return {bytes(one) for one in connection.scalars(query, _values(collection, given))}


def _values(collection: Collection, given: bytes) -> dict[str, Any]:
    return {"collection": collection.key, "given": given, "count": len(given) // 16}
