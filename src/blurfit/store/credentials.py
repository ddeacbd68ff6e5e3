"""Who may come in: hashes of invitations that nobody has used, and of the administrator's token."""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.errors import InfeasibleError
from blurfit.store.collections import Collection
from blurfit.store.tables import insert_if_absent, invitations, settings

_ADMINISTRATOR = "administrator"


def invite(connection: Connection, collection: Collection, hashes: Iterable[bytes]) -> int:
    """Keep the hashes of invitations; how many were new is returned."""
    if not collection.invited:
        raise InfeasibleError(
            "The agreement lets anyone take part, so nobody needs an invitation. To admit only "
            "people who are invited, make a new agreement without --anyone."
        )
    i, wanted = invitations.c, list(dict.fromkeys(hashes))
    known = set(
        connection.scalars(
            sa.select(i.hash).where((i.collection == collection.guests) & i.hash.in_(wanted))
        )
    )
    new = [{"collection": collection.guests, "hash": one} for one in wanted if one not in known]
    if new:
        connection.execute(insert_if_absent(connection, invitations), new)
    return len(new)


def is_unused(connection: Connection, collection: Collection, invitation: bytes) -> bool:
    """Whether an invitation, of which this is the hash, was given out for this wave and not used
    yet.
    """
    i, wave = invitations.c, collection.agreement.wave
    if wave is not None and wave.lot.group_of(invitation) != wave.number:
        return False
    here = (i.collection == collection.guests) & (i.hash == invitation)
    return connection.scalar(sa.select(i.hash).where(here)) is not None


def unused(connection: Connection, collection: Collection) -> int:
    """How many invitations nobody has used yet."""
    query = sa.select(sa.func.count()).where(invitations.c.collection == collection.guests)
    return int(connection.scalar(query) or 0)


def administrator(connection: Connection) -> bytes | None:
    """The hash of the administrator's token, if there is one."""
    found = connection.scalar(sa.select(settings.c.value).where(settings.c.name == _ADMINISTRATOR))
    return None if found is None else bytes(found)


def appoint(connection: Connection, token_hash: bytes, *, replace: bool) -> bool:
    """Keep the hash of the administrator's token, if there is none or it is to be replaced."""
    if connection.dialect.name == "postgresql":  # two services may start at the same moment
        connection.exec_driver_sql("LOCK TABLE settings IN EXCLUSIVE MODE")
    if administrator(connection) is not None and not replace:
        return False
    connection.execute(sa.delete(settings).where(settings.c.name == _ADMINISTRATOR))
    connection.execute(sa.insert(settings).values(name=_ADMINISTRATOR, value=token_hash))
    return True
