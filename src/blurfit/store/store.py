"""The store: submissions in SQLite or PostgreSQL, each counted once, and one release of each wave;
who administers it, and what was done with each token.

A submission is stored under its random identifier. What comes again under it is acknowledged and
counted once, so a sender who is not sure may simply send again; the first one stays, whatever the
numbers of a later one are. What was accepted is on disk.

**Tokens.** The administrator's token, made at the first start, is good for everything. Further
tokens, each with a name, are good for what they were made for:

    open      propose, open, pause, resume and close collections and plans
    invite    keep invitations
    publish   publish, which also closes
    read      the audit log

A token counts from the moment it is granted to the moment it is revoked; no service has to be
restarted. Of a token the store keeps the SHA-256 (`blurfit.protocol.tokens`). What was asked for
with a token is written down with its outcome: when, by whom, what, and under which fingerprint.
Nothing that contributors do is there.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from blurfit.errors import ConflictError, InvalidValueError, StorageError, one_of
from blurfit.store.backup import refuse_backup
from blurfit.store.database import CONNECTIONS, Transactions
from blurfit.store.release import Publishing
from blurfit.store.tables import audit_log, insert_if_absent, migrate, settings, tokens

Right = Literal["open", "invite", "publish", "read"]
RIGHTS: tuple[Right, ...] = ("open", "invite", "publish", "read")
ADMINISTRATOR = "administrator"
_LONGEST_NAME = 100
_t, _l = tokens.c, audit_log.c


@dataclass(frozen=True)
class Bearer:
    """Whoever has a token, and what it is good for."""

    name: str
    rights: tuple[Right, ...]


@dataclass(frozen=True)
class LogEntry:
    """Something that was asked for with a token: `outcome` is the status of the answer."""

    second: int  # since 1970
    name: str
    what: str
    fingerprint: str | None
    outcome: int


def _administrator(connection: Connection) -> bytes | None:
    found = connection.scalar(sa.select(settings.c.value).where(settings.c.name == ADMINISTRATOR))
    return None if found is None else bytes(found)


class Access(Transactions):
    """The tokens of a store."""

    def administrator(self) -> bytes | None:
        """Return the hash of the administrator's token, if there is one."""
        return self.read(_administrator)

    def appoint(self, token_hash: bytes, *, replace: bool = False) -> bool:
        """Keep the hash of the administrator's token, if there is none or it is to be replaced."""
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":  # two services may start at one moment
                connection.exec_driver_sql("LOCK TABLE settings IN EXCLUSIVE MODE")
            if _administrator(connection) is not None and not replace:
                return False
            connection.execute(sa.delete(settings).where(settings.c.name == ADMINISTRATOR))
            connection.execute(sa.insert(settings).values(name=ADMINISTRATOR, value=token_hash))
            return True

    def grant(self, name: str, right: Right, token_hash: bytes) -> None:
        """Keep the hash of a token, under a name that nobody has."""
        one_of(RIGHTS, right=right)
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name == ADMINISTRATOR:
            raise InvalidValueError(
                f"Expected name={name!r} of 1 to {_LONGEST_NAME} printable characters, other than "
                f"{ADMINISTRATOR!r}."
            )
        row = {"name": name, "right": right, "hash": token_hash}
        with self._writing() as connection:
            insert = insert_if_absent(connection, tokens).values(row).returning(_t.name)
            if connection.scalar(insert) is None:
                raise ConflictError(
                    f"There is a token for {name!r} already: revoke it, or choose another."
                )

    def revoke(self, name: str) -> None:
        """Forget a token, which is good for nothing from now on."""
        known = sorted(self.granted())
        with self._writing() as connection:
            gone = sa.delete(tokens).where(_t.name == name).returning(_t.name)
            if connection.scalar(gone) is None:
                raise InvalidValueError(f"Expected one of {known}, not {name!r}.")

    def granted(self) -> dict[str, str]:
        """Return what each name may do."""
        query = sa.select(_t.name, _t.right).order_by(_t.name)
        with self._reading() as connection:
            return {str(name): str(right) for name, right in connection.execute(query)}

    def bearer(self, token_hash: bytes) -> Bearer | None:
        """Return whose token it is, and what it is good for; None if it is nobody's.

        Hashes are looked up by an index; the time that takes could tell about the SHA-256 alone,
        from which no token follows.
        """
        with self._reading() as connection:
            if token_hash == _administrator(connection):
                return Bearer(ADMINISTRATOR, RIGHTS)
            query = sa.select(_t.name, _t.right).where(_t.hash == token_hash)
            row = connection.execute(query).first()
        return None if row is None else Bearer(str(row.name), (row.right,))

    def log(self, name: str, what: str, fingerprint: str | None, outcome: int) -> LogEntry:
        """Keep what somebody asked for, and how it ended."""
        entry = LogEntry(int(time.time()), name, what, fingerprint, outcome)
        with self._writing() as connection:
            connection.execute(sa.insert(audit_log).values(**vars(entry)))
        return entry

    def audit_log(self, most: int = 1000) -> list[LogEntry]:
        """Return so many entries, newest first."""
        query = sa.select(_l.second, _l.name, _l.what, _l.fingerprint, _l.outcome)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(_l.key.desc()).limit(most))
            return [LogEntry(*row) for row in rows]


# ---- the store


class Store(Publishing, Access):
    """Any number of courses, each under its document's fingerprint.

    Args:
        place: a file for SQLite, a URL (sqlite:///collection.db, postgresql://user@host/name), or
            ":memory:" for one that lasts as long as this object.
        connections: how many there may be at once to PostgreSQL.
    """

    def __init__(self, place: str | Path = ":memory:", *, connections: int = CONNECTIONS) -> None:
        super().__init__(place, connections)
        try:
            with self._writing() as connection:
                migrate(connection)
                refuse_backup(connection, str(place))
        except (StorageError, exc.DatabaseError) as error:
            self._engine.dispose()
            raise InvalidValueError(
                f"Expected {str(self._engine.url)!r} to be a store that can be opened: {error} "
                "Does its folder exist, and is the server running?"
            ) from error
        except BaseException:
            self._engine.dispose()
            raise
