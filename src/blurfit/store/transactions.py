"""Transactions of a database: all of something or nothing, on disk when it returns.

A database that is away, full or busy for too long is a `StorageError`, whatever its driver calls
it; then nothing was kept, unless the connection broke at the very end.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Concatenate, ParamSpec, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from blurfit.errors import StorageError
from blurfit.store import connecting

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
LEAST_FREE = 64 * 2**20  # bytes of the store's disk, below which it is not well
# What a database says when it is away, full or damaged; the other errors are mistakes of ours.
_AWAY = (exc.DatabaseError, exc.InterfaceError, exc.TimeoutError)
_OURS = (exc.DataError, exc.IntegrityError, exc.NotSupportedError, exc.ProgrammingError)


class Transactions:
    """A database at a place, as `blurfit.store.connecting.connect` takes it."""

    def __init__(self, place: str | Path, connections: int = connecting.CONNECTIONS) -> None:
        self._engine = connecting.connect(place, connections)
        self._lock = RLock() if str(place) in (":memory:", "sqlite://") else None
        self._file = connecting.file_of(place)
        self._identity: tuple[int, int] | None = None

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

    def check(self) -> None:
        """A `StorageError` unless what is written now would still be there tomorrow.

        Reads from the database; of a file, that it is still the one that was opened, and that its
        disk is not full.
        """
        with self._reading() as connection:
            connection.exec_driver_sql("SELECT 1")
        if self._file is not None:
            self._refuse_if_gone()
            free = shutil.disk_usage(self._file.parent).free
            if free < LEAST_FREE:
                raise StorageError(
                    f"The disk of the store is full: {free // 2**20:,} MiB are free, and "
                    f"{LEAST_FREE // 2**20} are needed."
                )

    def _refuse_if_gone(self) -> None:
        """A file that was removed or replaced goes on taking what is written, for nobody."""
        assert self._file is not None
        try:
            found = self._file.stat()
        except OSError as error:
            raise StorageError(f"The store's file {self._file} is gone: {error}.") from error
        identity = found.st_dev, found.st_ino
        if self._identity is None:
            self._identity = identity
        elif identity != self._identity:
            raise StorageError(
                f"The store's file {self._file} was replaced while it was open. Start the service "
                "again, on the right file."
            )

    @property
    def takes_several_writers(self) -> bool:
        """Whether transactions that write need not wait for each other."""
        return self._engine.dialect.name == "postgresql"

    def tidy(self) -> None:
        """Move what SQLite has logged to its place, beside whoever writes; elsewhere there is
        nothing to do.

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
            if self._file is not None:  # before it is committed, and so before it is acknowledged
                self._refuse_if_gone()

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
        except _OURS:
            raise
        except _AWAY as error:
            original = getattr(error, "orig", None) or error
            raise StorageError(f"The store cannot be used now: {original}".strip() + ".") from error
        finally:
            if self._lock is not None:
                self._lock.release()
