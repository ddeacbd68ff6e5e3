"""The database under a store: how it is opened, so that a commit is on disk when it returns, and
transactions: all of something or nothing.

A database that is away, full or busy for too long is a `StorageError`, whatever its driver calls
it; then nothing was kept, unless the connection broke at the very end.

**Turns.** SQLite takes one writer at a time, and lets others poll for their turn. So whoever writes
from this process first waits in a queue, which is fair: any thread may write, and waits for those
alone who came before it. PostgreSQL takes several writers.

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
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import StaticPool
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.util import LRUCache

from blurfit import private_files
from blurfit.errors import InvalidValueError, StorageError

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
Identity = tuple[int, int] | None  # of a file: its device and its number; None if there is none

CONNECTIONS = 32
LEAST_FREE = 64 * 2**20  # bytes of the store's disk, below which it is not well
_SECONDS_TO_CONNECT, _SECONDS_FOR_A_LOCK, _SECONDS_FOR_A_STATEMENT = 5, 5, 60
_SECONDS_FOR_A_TURN = 30.0
_PASSWORD_FILE = "password_file"  # at the end of a URL
_ENDINGS = ("", "-wal", "-shm")
# What a database says when it is away, full or damaged; the other errors are mistakes of ours.
_AWAY = (exc.DatabaseError, exc.InterfaceError, exc.TimeoutError)
_OURS = (exc.DataError, exc.IntegrityError, exc.NotSupportedError, exc.ProgrammingError)


class Clock(FunctionElement[int]):
    """The second since 1970, by the database's clock, when the statement is carried out."""

    inherit_cache = True
    type = sa.BigInteger()


@compiles(Clock, "sqlite")
def _in_sqlite(_element: Any, _compiler: Any, **_options: Any) -> str:
    return "CAST(strftime('%s', 'now') AS INTEGER)"


@compiles(Clock, "postgresql")
def _in_postgresql(_element: Any, _compiler: Any, **_options: Any) -> str:
    return "CAST(floor(extract(epoch FROM clock_timestamp())) AS BIGINT)"


def insert_if_absent(connection: Connection, table: sa.Table) -> Any:
    """Return an INSERT that leaves alone what is there already."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()


class _Compiled(LRUCache[tuple[Any, ...], Any]):
    """Statements that were compiled, for all stores that a process opens.

    SQLAlchemy looks for them by the engine's dialect first, of which each engine has its own. All
    are set up alike here: what matters of them is the kind of database and its version.
    """

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get(_without_engine(*key), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        super().__setitem__(_without_engine(*key), compiled)


def _without_engine(dialect: Any, *statement: Any) -> tuple[Any, ...]:
    return dialect.name, dialect.server_version_info, *statement


_COMPILED = {"compiled_cache": _Compiled(500)}  # of which blurfit has about two hundred


def connect(place: str | Path, connections: int = CONNECTIONS) -> Engine:
    """An engine whose commits are on disk when they return.

    `place` is a path, a URL (sqlite:///collection.db, postgresql://user@host/name), or ":memory:";
    `connections` is how many there may be at once to PostgreSQL, which has a hundred by default.
    With `?password_file=/path` at its end the URL of a PostgreSQL names the file that holds the
    password, which is then in no list of processes, in no environment and in no message.
    """
    url = url_of(place)
    try:
        if url.get_backend_name() == "sqlite":
            return _sqlite(url)
        engine = sa.create_engine(
            url.difference_update_query([_PASSWORD_FILE]),
            pool_pre_ping=True,
            pool_size=4,
            max_overflow=connections - 4,
            pool_timeout=_SECONDS_TO_CONNECT,
            connect_args=_patience(url) | _password(url),
            execution_options=_COMPILED,
        )
    except (exc.NoSuchModuleError, ModuleNotFoundError) as error:
        raise InvalidValueError(
            f"Expected a driver for {url.get_backend_name()!r}: {error}. For PostgreSQL run "
            "`pip install 'blurfit[postgresql]'`."
        ) from error
    event.listen(engine, "connect", _durable_postgresql)
    return engine


def _patience(url: URL) -> dict[str, Any]:
    """How long PostgreSQL is waited for, where its URL does not say.

    A server that hangs, a line that is cut and a lock that somebody holds are then errors within
    seconds. Nothing that is done here takes a minute in one statement.
    """
    wanted = {
        "connect_timeout": _SECONDS_TO_CONNECT,
        "tcp_user_timeout": 1000 * _SECONDS_TO_CONNECT,
        "keepalives_idle": _SECONDS_TO_CONNECT,
        "keepalives_interval": 1,
        "keepalives_count": 3,
        "options": f"-c lock_timeout={_SECONDS_FOR_A_LOCK}s "
        f"-c statement_timeout={_SECONDS_FOR_A_STATEMENT}s "
        f"-c idle_in_transaction_session_timeout={_SECONDS_FOR_A_STATEMENT}s",
    }
    return {name: value for name, value in wanted.items() if name not in url.query}


def _password(url: URL) -> dict[str, str]:
    """The password that is in the file that a URL names, without the end of its line."""
    if _PASSWORD_FILE not in url.query:
        return {}
    named = url.query[_PASSWORD_FILE]
    if not isinstance(named, str) or url.password is not None:
        raise InvalidValueError(
            "Expected the store's password once: in the URL, or in one file that it names with "
            f"?{_PASSWORD_FILE}=."
        )
    try:
        found = Path(named).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise InvalidValueError(
            f"Expected {named!r} to be a file with the store's password that this process may "
            f"read: {getattr(error, 'strerror', None) or 'it is not text in UTF-8'}. See to its "
            "owner and its mode."
        ) from error
    if not found:
        raise InvalidValueError(f"Expected the store's password in {named!r}, and it is empty.")
    return {"password": found}


def url_of(place: str | Path) -> URL:
    """A path or an address as SQLAlchemy takes it; refuses other kinds of databases."""
    text = str(place)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = sa.make_url(text)
        backend = url.get_backend_name()
    except (ValueError, exc.SQLAlchemyError) as error:
        raise InvalidValueError(f"Expected a store's URL: {error}") from error
    if backend == "postgres":
        backend = "postgresql"
    if backend not in ("sqlite", "postgresql"):
        raise InvalidValueError(
            f"Expected a store like sqlite:///collection.db or postgresql://user@host/name, and "
            f"got one for {backend!r}."
        )
    return url.set(drivername="sqlite" if backend == "sqlite" else "postgresql+psycopg")


def file_of(place: str | Path) -> Path | None:
    """The file of an SQLite store; None for one in memory, and for PostgreSQL."""
    url = url_of(place)
    named = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(str(url.database)).absolute() if named else None


def _sqlite(url: URL) -> Engine:
    in_memory = url.database in (None, "", ":memory:")
    if not in_memory:
        with suppress(OSError):  # SQLite says what is wrong
            private_files.create(Path(str(url.database)))
    pool: dict[str, Any] = {"pool_size": 4, "max_overflow": 28}
    engine = sa.create_engine(
        url,
        connect_args={"check_same_thread": False, "timeout": 10.0},
        execution_options=_COMPILED,
        **({"poolclass": StaticPool} if in_memory else pool),
    )
    event.listen(engine, "connect", _durable_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _durable_sqlite(connection: object, _record: object) -> None:
    connection.isolation_level = None  # type: ignore[attr-defined]  # transactions are begun below
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "secure_delete = FAST",  # a used invitation is overwritten with zeros
        "cache_size = -65536",
        "wal_autocheckpoint = 65536",  # a last resort: `Store.tidy` does it beside the writer
    ):
        connection.execute(f"PRAGMA {pragma}")  # type: ignore[attr-defined]


def _begin_sqlite(connection: Connection) -> None:
    """Writers wait for each other at the start, so none finds in the middle that it came too
    late.
    """
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _durable_postgresql(connection: object, _record: object) -> None:
    with connection.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute("SET synchronous_commit = on")
        (fsync,) = cursor.execute("SHOW fsync").fetchone()
    connection.commit()  # type: ignore[attr-defined]
    if fsync != "on":
        raise StorageError(
            f"Expected PostgreSQL with fsync = on, and it is {fsync!r}: what is acknowledged could "
            "be lost in a power cut. Set fsync = on in postgresql.conf."
        )


class Turns:
    """A lock that is given to whoever has waited longest."""

    def __init__(self) -> None:
        self._guard, self._taken = Lock(), False
        self._waiting: deque[Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = Lock()
            mine.acquire()
            self._waiting.append(mine)
        if mine.acquire(timeout=_SECONDS_FOR_A_TURN):
            return
        with self._guard:
            if mine in self._waiting:
                self._waiting.remove(mine)
                raise StorageError("The store is busy: others have been writing for too long.")

    def __exit__(self, *_error: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


class Transactions:
    """A database at a place, as `connect` takes it."""

    def __init__(self, place: str | Path, connections: int = CONNECTIONS) -> None:
        self._engine = connect(place, connections)
        self._lock = RLock() if str(place) in (":memory:", "sqlite://") else None
        self._file = file_of(place)
        self._keeper: Connection | None = None
        self._opened: list[Identity] = []
        self._keeping = Lock()
        self._turns: AbstractContextManager[None] = nullcontext() if self._file is None else Turns()

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
        writer = self._engine.execution_options(writes=True)
        with self._turns, self._transaction(writer) as connection:
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
