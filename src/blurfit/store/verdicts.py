"""What a database has found of the proofs of its shares, and the key with which it found it.

A verdict is about one contributor, and is written once: it follows from the shares, which never
change, and from the *verification key*, which is written down before the first proof is looked at,
and never changed either. That matters for privacy too. What one test point shows of a proof says
nothing about the record, and what two of them show might (`blurfit.proofs.flp`): so a database that
was asked to use another key for the same shares refuses, for ever.
"""

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.arrays import BoolArray, ByteArray
from blurfit.errors import ConflictError
from blurfit.store.collections import Collection
from blurfit.store.identifier_sets import as_identifiers
from blurfit.store.tables import insert_if_absent, sharing, verdicts


def fix_key(connection: Connection, collection: Collection, key: bytes) -> None:
    """Write the verification key down, if there is none yet; another one is a conflict."""
    here = sharing.c.collection == collection.key
    connection.execute(
        sa.update(sharing).where(here & sharing.c.verification.is_(None)).values(verification=key)
    )
    before = connection.scalars(sa.select(sharing.c.verification).where(here)).one()
    if bytes(before) != key:
        raise ConflictError(
            "Expected the secret that proofs were verified with before: with another one they "
            "could betray what they are about. Start the service with the --peer-token-file that "
            "it had."
        )


def record(
    connection: Connection, collection: Collection, names: ByteArray, good: BoolArray
) -> BoolArray:
    """Write some verdicts down, and tell those that stand: what was there before stays."""
    rows = [
        {"collection": collection.key, "identifier": name.tobytes(), "valid": bool(one)}
        for name, one in zip(names, good, strict=True)
    ]
    if rows:
        connection.execute(insert_if_absent(connection, verdicts), rows)
    here = verdicts.c.collection == collection.key
    asked = verdicts.c.identifier.in_([row["identifier"] for row in rows])
    query = sa.select(verdicts.c.identifier).where(here & asked & verdicts.c.valid)
    stands = {bytes(one) for one in connection.scalars(query)}
    return np.array([row["identifier"] in stands for row in rows], dtype=np.bool_)


def found(
    connection: Connection, collection: Collection, *, valid: bool | None = None
) -> ByteArray:
    """Whose proofs were found valid, or not; by default all that have a verdict."""
    query = sa.select(verdicts.c.identifier).where(verdicts.c.collection == collection.key)
    if valid is not None:
        query = query.where(verdicts.c.valid if valid else ~verdicts.c.valid)
    return as_identifiers(b"".join(connection.scalars(query)))
