"""The store: submissions in SQLite or PostgreSQL, each counted once, and one release of each wave.

A submission is stored under its random identifier. What comes again under it is acknowledged and
counted once, so a sender who is not sure may simply send again; the first one stays, whatever the
numbers of a later one are. What was accepted is on disk.
"""

from pathlib import Path

from sqlalchemy import exc

from blurfit.errors import InvalidValueError, StorageError
from blurfit.store.access import Access
from blurfit.store.backup import refuse_backup
from blurfit.store.database import CONNECTIONS
from blurfit.store.release import Publishing
from blurfit.store.tables import migrate


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
