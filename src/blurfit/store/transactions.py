"""Transactions of a database: all of something or nothing, on disk when it returns.

A database that is away, full or busy for too long is a `StorageError`, whatever its driver calls
it; then nothing was kept, unless the connection broke at the very end.

**Files that are gone.** SQLite writes what is committed to a log (`-wal`), and from there to the
database's file when the log is moved (`tidy`). A file that was removed or replaced goes on taking
what is written by whoever has it open, for nobody. So one connection, the keeper, is open as long
as the store is; the database's file, its log and the log's index (`-shm`) have to stay the very
ones that it opened, and they are compared after every transaction, and before every commit. If the
log alone is gone, the keeper is the one that surely has it open still, and moves what it holds to
its place: nothing that was acknowledged is lost then. What is found different stays an error until
the service is started again.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from blurfit.errors import StorageError
from blurfit.store import connecting

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
Identity = tuple[int, int] | None  # of a file: its device and its number; None if there is none
_ENDINGS = ("", "-wal", "-shm")
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
        self._keeper: Connection | None = None
        self._opened: list[Identity] = []
        self._keeping = Lock()

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
            free = shutil.disk_usage(self._file.parent).free
            if free < LEAST_FREE:
                raise StorageError(
                    f"The disk of the store is full: {free // 2**20:,} MiB are free, and "
                    f"{LEAST_FREE // 2**20} are needed."
                )

    def _watch(self) -> None:
        """Open the keeper, and remember which files it has opened; in memory there are none."""
        with self._keeping:
            if self._file is None or self._keeper is not None:
                return
            keeper = self._engine.connect()
            try:
                keeper.exec_driver_sql("SELECT count(*) FROM sqlite_master")  # opens all of them
                keeper.rollback()
            except BaseException:
                keeper.close()
                raise
            self._opened, self._keeper = self._files(), keeper

    def _files(self) -> list[Identity]:
        """Those of the store as they are now: the database, its log, and the log's index."""
        return [_identity(Path(f"{self._file}{end}")) for end in _ENDINGS]

    def _refuse_if_gone(self) -> None:
        """Refuse where one of the files is no longer the one that was opened."""
        if self._file is None or (found := self._files()) == self._opened:
            return
        before = self._opened
        if (found[0], found[2]) == (before[0], before[2]) and self._is_empty():
            with suppress(sqlite3.Error):  # it is refused all the same
                self._move_log()
        place = next(
            n for n, pair in enumerate(zip(found, before, strict=True)) if len({*pair}) > 1
        )
        happened = "is gone" if found[place] is None else "was replaced while it was open"
        raise StorageError(
            f"The store's file {self._file}{_ENDINGS[place]} {happened}. Start the service again, "
            "on the right file."
        )

    def _is_empty(self) -> bool:
        """Whether nobody has written to another log: then the lost one has everything."""
        try:
            return Path(f"{self._file}-wal").stat().st_size == 0
        except FileNotFoundError:
            return True

    def _move_log(self) -> None:
        """Move what the keeper finds in its log to the database, beside whoever writes."""
        assert self._keeper is not None
        with self._keeping:
            driver: Any = self._keeper.connection.driver_connection
            driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    @property
    def takes_several_writers(self) -> bool:
        """Whether transactions that write need not wait for each other."""
        return self._engine.dialect.name == "postgresql"

    def tidy(self) -> None:
        """Move what SQLite has logged to its place, beside whoever writes; elsewhere there is
        nothing to do.

        Left to the writer, a commit now and then would take half a second.
        """
        if self._file is not None:
            self._watch()
            self._refuse_if_gone()
            self._move_log()

    def close(self) -> None:
        """Close the file, or the connections."""
        with self._keeping:
            if self._keeper is not None:
                self._keeper.close()
                self._keeper = None
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
            self._refuse_if_gone()  # before it is committed; what is refused is taken back

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._transaction(self._engine) as connection:
            yield connection

    @contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[Connection]:
        if self._lock is not None:
            self._lock.acquire()  # one connection, so one at a time
        try:
            self._watch()
            with engine.begin() as connection:
                yield connection
            self._refuse_if_gone()  # before it is acknowledged, or shown
        except _OURS:
            raise
        except _AWAY as error:
            original = getattr(error, "orig", None) or error
            raise StorageError(f"The store cannot be used now: {original}".strip() + ".") from error
        finally:
            if self._lock is not None:
                self._lock.release()


def _identity(path: Path) -> Identity:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"The store's file {path} cannot be looked at: {error}.") from error
    return found.st_dev, found.st_ino
