"""Who administers a store besides the one who started it, and what they all did.

The administrator's token, made at the first start, is good for everything. Further tokens, each
with a name, are good for what they were made for:

    open      propose, open, pause, resume and close collections and plans
    invite    keep invitations
    publish   publish, which also closes
    read      the list of deeds

A token counts from the moment it is granted to the moment it is revoked; no service has to be
restarted. Of a token the store keeps the SHA-256 (`blurfit.protocol.tokens`).

What was asked for with a token is written down with its outcome: when, by whom, what, and under
which fingerprint. Nothing that contributors do is there.
"""

import time
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.errors import ConflictError, InvalidValueError
from blurfit.store import credentials
from blurfit.store.tables import deeds, insert_if_absent, stewards
from blurfit.validate import one_of

Right = Literal["open", "invite", "publish", "read"]
RIGHTS: tuple[Right, ...] = ("open", "invite", "publish", "read")
ADMINISTRATOR = "administrator"
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Bearer:
    """Whoever has a token, and what it is good for."""

    name: str
    rights: tuple[Right, ...]


@dataclass(frozen=True)
class Deed:
    """Something that was asked for with a token: `outcome` is the status of the answer."""

    second: int  # since 1970
    steward: str
    what: str
    fingerprint: str | None
    outcome: int


def grant(connection: Connection, name: str, right: Right, token_hash: bytes) -> None:
    """Keep the hash of a token, under a name that nobody has."""
    one_of(RIGHTS, right=right)
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name == ADMINISTRATOR:
        raise InvalidValueError(
            f"Expected name={name!r} of 1 to {_LONGEST_NAME} printable characters, other than "
            f"{ADMINISTRATOR!r}."
        )
    row = {"name": name, "right": right, "hash": token_hash}
    insert = insert_if_absent(connection, stewards).values(row).returning(stewards.c.name)
    if connection.scalar(insert) is None:
        raise ConflictError(f"There is a token for {name!r} already: revoke it, or choose another.")


def revoke(connection: Connection, name: str) -> None:
    """Forget a token, which is good for nothing from now on."""
    gone = sa.delete(stewards).where(stewards.c.name == name).returning(stewards.c.name)
    if connection.scalar(gone) is None:
        raise InvalidValueError(f"Expected one of {sorted(granted(connection))}, not {name!r}.")


def granted(connection: Connection) -> dict[str, str]:
    """What each name may do."""
    query = sa.select(stewards.c.name, stewards.c.right).order_by(stewards.c.name)
    return {str(name): str(right) for name, right in connection.execute(query)}


def bearer(connection: Connection, token_hash: bytes) -> Bearer | None:
    """Whose token it is, and what it is good for; None if it is nobody's.

    Hashes are looked up by an index; the time that takes could tell about the SHA-256 alone, from
    which no token follows.
    """
    if token_hash == credentials.administrator(connection):
        return Bearer(ADMINISTRATOR, RIGHTS)
    query = sa.select(stewards.c.name, stewards.c.right).where(stewards.c.hash == token_hash)
    row = connection.execute(query).first()
    return None if row is None else Bearer(str(row.name), (row.right,))


def write_down(
    connection: Connection, steward: str, what: str, fingerprint: str | None, outcome: int
) -> Deed:
    """Keep what somebody asked for, and how it ended."""
    deed = Deed(int(time.time()), steward, what, fingerprint, outcome)
    connection.execute(sa.insert(deeds).values(**vars(deed)))
    return deed


def newest(connection: Connection, most: int = 1000) -> list[Deed]:
    """So many deeds, newest first."""
    d = deeds.c
    query = sa.select(d.second, d.steward, d.what, d.fingerprint, d.outcome)
    return [Deed(*row) for row in connection.execute(query.order_by(d.key.desc()).limit(most))]
