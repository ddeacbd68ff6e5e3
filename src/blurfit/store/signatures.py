"""Signatures of what was published, kept beside it: made once, and served for ever.

A file is signed when it is first asked for (`blurfit.service.signatory`), at the latest to answer
whoever publishes it. A key gives the same bytes the same signature, so it does not matter who is
first, nor who was killed before. A signature stays when the key is lost; the text that it signs
never changes.
"""

from collections.abc import Iterable
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.messages.signing import Signature
from blurfit.store.collections import Collection
from blurfit.store.tables import collections, insert_if_absent, sharing, signatures

Document = Literal["model", "moments"]
_BOTH = 2  # databases, each with a key of its own


def kept(
    connection: Connection, collection: Collection, document: Document
) -> tuple[Signature, ...]:
    """The signatures of a document, in the order in which the agreement has their keys."""
    s = signatures.c
    here = (s.collection == collection.key) & (s.document == document)
    rows = connection.execute(sa.select(s.key, s.signature).where(here)).all()
    found = {row.key: row.signature for row in rows}
    keys = collection.agreement.signing_keys
    return tuple(Signature(key, found[key]) for key in keys if key in found)


def keep(
    connection: Connection, collection: Collection, document: Document, some: Iterable[Signature]
) -> None:
    """Keep signatures, which the caller has checked; those that are kept already stay."""
    rows = [
        {
            "collection": collection.key,
            "document": document,
            "key": one.key,
            "signature": one.signature,
        }
        for one in some
    ]
    if rows:
        connection.execute(insert_if_absent(connection, signatures), rows)


def missing(connection: Connection) -> list[str]:
    """What a first database has given the second, and of which a document lacks a signature.

    Collections by their fingerprints, those that nobody signs among them.
    """
    c, s = collections.c, signatures.c

    def is_short(document: Document) -> sa.ColumnElement[bool]:
        of_it = (s.collection == c.key) & (s.document == document)
        made = sa.select(sa.func.count()).where(of_it).scalar_subquery()
        return collections.c[document].is_not(None) & (made < _BOTH)

    query = (
        sa.select(c.fingerprint)
        .join(sharing, sharing.c.collection == c.key)
        .where((sharing.c.role == "first") & sharing.c.delivered)
        .where(is_short("model") | is_short("moments"))
        .order_by(c.key)
    )
    return list(connection.scalars(query))
