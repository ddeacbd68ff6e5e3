"""Transactions of a database: all of something or nothing, on disk when it returns.

A database that is away, full or busy for too long is a `StorageError`, whatever its driver calls
it; then nothing was kept, unless the connection broke at the very end.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Concatenate, ParamSpec, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from blurfit.errors import StorageError
from blurfit.store import tables

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_AWAY = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)


class Transactions:
    """A database at a place, as `blurfit.store.tables.connect` takes it."""

    def __init__(self, place: str | Path) -> None:
        self._engine = tables.connect(place)
        self._lock = RLock() if str(place) in (":memory:", "sqlite://") else None

    def write(
        self,
        what: Callable[Concatenate[Connection, _Given], _Found],
        *arguments: _Given.args,
        **named: _Given.kwargs,
    ) -> _Found:
        """Do something in one transaction, all of it or nothing."""
        with self._writing() as connection:
            return what(connection, *arguments, **named)

    def read(
        self,
        what: Callable[Concatenate[Connection, _Given], _Found],
        *arguments: _Given.args,
        **named: _Given.kwargs,
    ) -> _Found:
        """Find something out in one transaction that only reads."""
        with self._reading() as connection:
            return what(connection, *arguments, **named)

    def tidy(self) -> None:
        """Move what SQLite has logged to its place, beside whoever writes; else nothing to do.

        Left to the writer, a commit now and then would take half a second.
        """
        if self._engine.dialect.name == "sqlite" and self._lock is None:
            connection = self._engine.raw_connection()
            try:
                connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                connection.close()

    def close(self) -> None:
        """Close the file, or the connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """All or nothing: committed at the end of the block, rolled back if it fails."""
        with self._transaction(self._engine.execution_options(writes=True)) as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._transaction(self._engine) as connection:
            yield connection

    @contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[Connection]:
        if self._lock is not None:
            self._lock.acquire()  # one connection, so one at a time
        try:
            with engine.begin() as connection:
                yield connection
        except _AWAY as error:
            original = getattr(error, "orig", None) or error
            raise StorageError(f"The store cannot be used now: {original}".strip() + ".") from error
        finally:
            if self._lock is not None:
                self._lock.release()
