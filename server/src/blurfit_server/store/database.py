"""The database under a store: commits that are on disk when they return, tables, and the outbox.

A database that is away, full or busy for too long is a `StorageError`; then nothing was kept,
unless the connection broke at the very end. SQLite takes one writer at a time: writers of this
process wait in a fair queue. PostgreSQL takes several. SQLite's file, log and index must stay the
very ones that were opened, and grow, as is seen after every transaction and before every commit; a
lost log is put back (`docs/theory/one-release.md`, damaged files).

| table | what is in it |
| --- | --- |
| `migrations` | which steps have been taken |
| `settings` | the hash of the administrator's token; what a backup says of itself |
| `courses` | a document (an agreement, or a plan of waves) and how far its collection is |
| `waves` | one agreement of a course, whom it is summed over, and what was published |
| `recent`, `identifiers` | the identifiers that were taken |
| `withdrawn` | those of them whose submissions were withdrawn |
| `blocks` | submissions as they came, some hundreds in a row, with their sums and a checksum |
| `invitations` | hashes of those that nobody has used; using one removes it |
| `joined` | hashes of the other database's, which are in one link with one of these |
| `verdicts` | whose proofs, where there are proofs, have been looked at, and what was found |
| `signatures` | of what was published, by whichever key |
| `outbox` | what is still to be done, or to be told to the other database |
| `tokens`, `audit_log` | further tokens with what each is good for, and what was done with any |

Identifiers are random, so each lands on another page of an index. In SQLite they first go to
`recent`, and are moved to `identifiers` in order, some thirty thousand at a time: half of the time
per submission. A new store takes the first migration alone, which creates all tables; each step is
recorded in the transaction that takes it.

**The outbox** holds tasks with attempts and a time, each written in the transaction that causes it
and struck off when it is done. Every task may be done twice, or by two services at once.

    advance   take a course forward: its open wave is full or fixed, or its date has come
    tell      let the second database know of a wave's release, or of the course's state
    sign      exchange the signatures of what both have published

Releases are told in order, then the course's state, and all of that before the next wave is summed.
Only once a date has come a course ends even if the other database cannot be reached. What changes
while it is told is told again; signatures wait for nobody. A group of arrivals that fills a wave
writes `advance` while it holds the course's row, shared; whoever strikes it off holds the row alone
and looks again, so no call is lost.
"""

import json
import math
import os
import shutil
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.util import LRUCache

from blurfit import private_files
from blurfit.errors import InvalidValueError, StorageError
from blurfit.wording import Message, Quote

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
Identity = tuple[int, int] | None  # of a file: its device and its number; None if there is none
Lengths = tuple[int, int]  # of the database's file and of its log, in bytes

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


def inserting(connection: Connection, table: sa.Table) -> Any:
    """Return an INSERT that can be told what to do where there is something already."""
    return {"sqlite": sqlite, "postgresql": postgresql}[connection.dialect.name].insert(table)


def insert_if_absent(connection: Connection, table: sa.Table) -> Any:
    """Return an INSERT that leaves alone what is there already."""
    return inserting(connection, table).on_conflict_do_nothing()


class _Compiled(LRUCache[tuple[Any, ...], Any]):
    """Statements that were compiled, for all stores that a process opens, whose engines are alike.

    SQLAlchemy looks for them by the engine's own dialect first.
    """

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get(_without_engine(*key), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        super().__setitem__(_without_engine(*key), compiled)


def _without_engine(dialect: Any, *statement: Any) -> tuple[Any, ...]:
    return dialect.name, dialect.server_version_info, *statement


_COMPILED = {"compiled_cache": _Compiled(500)}  # of which blurfit has about two hundred


def connect(place: str | Path, connections: int = CONNECTIONS) -> Engine:
    """Return an engine whose commits are on disk when they return.

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
            "Expected a driver for {url!r}: {error}. For PostgreSQL run "
            "`pip install 'blurfit-server[postgresql]'`.",
            url=url.get_backend_name(),
            error=error,
        ) from error
    event.listen(engine, "connect", _durable_postgresql)
    return engine


def _patience(url: URL) -> dict[str, Any]:
    """Return how long PostgreSQL is waited for, where its URL does not say.

    A server that hangs, a cut line and a held lock are then errors within seconds.
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
    """Read the password in the file that a URL names, without the end of its line."""
    if _PASSWORD_FILE not in url.query:
        return {}
    named = url.query[_PASSWORD_FILE]
    if not isinstance(named, str) or url.password is not None:
        raise InvalidValueError(
            "Expected the store's password once: in the URL, or in one file that it names with "
            "?{password_file}=.",
            password_file=_PASSWORD_FILE,
        )
    try:
        found = Path(named).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise InvalidValueError(
            "Expected {named!r} to be a file with the store's password that this process may "
            "read: {reason}. See to its "
            "owner and its mode.",
            named=named,
            reason=getattr(error, "strerror", None) or "it is not text in UTF-8",
        ) from error
    if not found:
        raise InvalidValueError(
            "Expected the store's password in {named!r}, and it is empty.", named=named
        )
    return {"password": found}


def url_of(place: str | Path) -> URL:
    """Return a path or an address as SQLAlchemy takes it; refuse other kinds of databases."""
    text = str(place)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = sa.make_url(text)
        backend = url.get_backend_name()
    except (ValueError, exc.SQLAlchemyError) as error:
        raise InvalidValueError("Expected a store's URL: {error}", error=error) from error
    if backend == "postgres":
        backend = "postgresql"
    if backend not in ("sqlite", "postgresql"):
        raise InvalidValueError(
            "Expected a store like sqlite:///collection.db or postgresql://user@host/name, and "
            "got one for {backend!r}.",
            backend=backend,
        )
    return url.set(drivername="sqlite" if backend == "sqlite" else "postgresql+psycopg")


def file_of(place: str | Path) -> Path | None:
    """Return the file of an SQLite store, not a link to it, as SQLite keeps its log beside the
    file; None for one in memory, and for PostgreSQL.
    """
    url = url_of(place)
    named = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(os.path.realpath(str(url.database))) if named else None


def _sqlite(url: URL) -> Engine:
    in_memory = url.database in (None, "", ":memory:")
    if not in_memory:
        # A link that is changed later changes nothing.
        file = Path(os.path.realpath(str(url.database)))
        url = url.set(database=str(file))
        with suppress(OSError):  # SQLite says what is wrong
            private_files.create(file)
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
            "Expected PostgreSQL with fsync = on, and it is {fsync!r}: what is acknowledged could "
            "be lost in a power cut. Set fsync = on in postgresql.conf.",
            fsync=fsync,
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
        self._lengths: Lengths = (0, 0)
        self._cut: str | None = None  # how the file ends that got shorter
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
        """Refuse unless what is written now would still be there tomorrow.

        The database answers; its file is still the one that was opened, and the disk is not full.
        """
        with self._reading() as connection:
            connection.exec_driver_sql("SELECT 1")
        if self._file is not None:
            free = shutil.disk_usage(self._file.parent).free
            if free < LEAST_FREE:
                raise StorageError(
                    "The disk of the store is full: {free:,} MiB are free, and "
                    "{least_free} are needed.",
                    free=free // 2**20,
                    least_free=LEAST_FREE // 2**20,
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
            self._opened, self._lengths = self._files()
            self._keeper = keeper

    def _files(self) -> tuple[list[Identity], Lengths]:
        """Return which files these are, and the lengths of the database and of its log."""
        found = [_status(Path(f"{self._file}{end}")) for end in _ENDINGS]
        database, log, _ = (0 if one is None else one.st_size for one in found)
        return [None if one is None else (one.st_dev, one.st_ino) for one in found], (database, log)

    def _refuse_if_gone(self) -> None:
        """Refuse where one of the files is no longer the one that was opened, or was cut.

        Both only grow while they are open, so a length that was seen before the look is the least.
        """
        if self._file is None:
            return
        least = self._lengths
        found, lengths = self._files()
        if found == self._opened:
            self._refuse_if_cut(least, lengths)
            return
        before, log = self._opened, Path(f"{self._file}-wal")
        # Where nobody has written to another log, the lost one has everything.
        is_lost = (found[0], found[2]) == (before[0], before[2])
        if is_lost and not (log.exists() and log.stat().st_size):
            with suppress(sqlite3.Error):  # it is refused all the same
                self._move_log()
        place = next(
            n for n, pair in enumerate(zip(found, before, strict=True)) if len({*pair}) > 1
        )
        happened = "is gone" if found[place] is None else "was replaced while it was open"
        raise StorageError(
            "The store's file {file}{endings} {happened}. Start the service again, "
            "on the right file.",
            file=self._file,
            endings=_ENDINGS[place],
            happened=happened,
        )

    def _refuse_if_cut(self, least: Lengths, lengths: Lengths) -> None:
        """Refuse from the first look on that found a file shorter than it was."""
        for ending, before, now in zip(_ENDINGS, least, lengths, strict=False):
            if now < before:
                self._cut = ending
        if self._cut is not None:
            raise StorageError(
                "The store's file {file}{ending} was cut while it was open, so some of what it "
                "held is gone. Stop the service, and go back to a backup (`blurfit restore`).",
                file=self._file,
                ending=self._cut,
            )
        if lengths != least:
            with self._keeping:
                database, log = map(max, self._lengths, lengths)
                self._lengths = database, log

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
        """Move what SQLite has logged to its place, beside whoever writes.

        Left to the writer, a commit now and then would take half a second.
        """
        if self._file is not None:
            self._watch()
            self._refuse_if_gone()
            self._move_log()
            self._refuse_if_gone()  # the database is longer now, and less than that would be a cut

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
            self._refuse_if_gone()  # before anything is read of a file that was cut
            with engine.begin() as connection:
                yield connection
            self._refuse_if_gone()  # before it is acknowledged, or shown
        except _OURS:
            raise
        except _AWAY as error:
            original = getattr(error, "orig", None) or error
            raise StorageError(
                "The store cannot be used now: {words}.", words=Quote(str(original).strip())
            ) from error
        finally:
            if self._lock is not None:
                self._lock.release()


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(
            "The store's file {path} cannot be looked at: {error}.", path=path, error=error
        ) from error


# ---- tables


class MessageText(sa.TypeDecorator[Message]):
    """A message, with its template and values in JSON."""

    impl = sa.Text
    cache_ok = True  #: Statements with it may be kept.

    def process_bind_param(self, value: Message | None, _dialect: object) -> str | None:
        """Return the text that is kept."""
        return None if value is None else json.dumps(value.to_builtins())

    def process_result_value(self, value: str | None, _dialect: object) -> Message | None:
        """Return the message that was kept."""
        return None if value is None else Message.from_builtins(json.loads(value))


IDENTITY = "identity"  # in `settings`: random bytes
metadata = sa.MetaData()
_Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite counts up only in INTEGER

migrations = sa.Table(
    "migrations",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
)
settings = sa.Table(
    "settings",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
)
courses = sa.Table(
    "courses",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("told", sa.Text),  # at the second of two databases: the first's state
    sa.Column("reason", MessageText),  # why it ended early, or has no model
    sa.Column("opened", sa.Integer, nullable=False),  # since 1970: when, to the hour
    sa.Column("closes", sa.BigInteger),  # the second since 1970 from which nothing is taken
    sa.CheckConstraint("role IN ('whole', 'first', 'second')", name="known_role"),
    sa.CheckConstraint("state IN ('collecting', 'paused', 'held', 'ended')", name="known_state"),
)
waves = sa.Table(
    "waves",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("course", _Key, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    sa.Column("agreement", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("moments", sa.Text),  # the published sums
    sa.Column("model", sa.Text),  # of the course, with the last wave that it is from
    sa.Column("noise", sa.LargeBinary),  # of this database itself, drawn with its set; words
    # Between two databases: the common set, written once and never changed.
    sa.Column("digest", sa.LargeBinary),
    sa.Column("count", sa.BigInteger),  # how many are in it
    # The identifiers that are here and not in it, in order; or "+", and those that are in it.
    sa.Column("left_out", sa.LargeBinary),
    sa.Column("verification", sa.LargeBinary),  # the key for proofs; written once, never changed
    sa.Column("handed_over", sa.Text),  # the file that its release was left to
    sa.Column("handed_in", sa.Text),  # the complete file, before it took that name
    sa.UniqueConstraint("course", "number"),
    sa.CheckConstraint(
        "state IN ('collecting', 'fixed', 'released', 'dropped')", name="known_wave"
    ),
    sa.CheckConstraint("(state = 'released') = (moments IS NOT NULL)", name="released_is_shown"),
)


def _taken(table: str) -> sa.Table:
    return sa.Table(
        table,
        metadata,
        sa.Column("wave", _Key, primary_key=True),
        sa.Column("identifier", sa.LargeBinary, primary_key=True),
        sqlite_with_rowid=False,
    )


identifiers, recent, withdrawn = map(_taken, ("identifiers", "recent", "withdrawn"))
blocks = sa.Table(
    "blocks",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("wave", _Key, nullable=False),
    sa.Column("hour", sa.Integer, nullable=False),  # since 1970: when, to the hour
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("checksum", sa.LargeBinary, nullable=False),
    sa.Column("sums", sa.LargeBinary, nullable=False),
    sa.Column("rows", sa.LargeBinary, nullable=False),
    sa.Index("blocks_by_wave", "wave", "hour", "count"),
)
invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("course", _Key, primary_key=True),
    sa.Column("hash", sa.LargeBinary, primary_key=True),
    sqlite_with_rowid=False,
)
joined = sa.Table(
    "joined",
    metadata,
    sa.Column("course", _Key, primary_key=True),
    sa.Column("hash", sa.LargeBinary, primary_key=True),
    sqlite_with_rowid=False,
)
verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column("wave", _Key, primary_key=True),
    sa.Column("identifier", sa.LargeBinary, primary_key=True),
    sa.Column("valid", sa.Boolean, nullable=False),
    sqlite_with_rowid=False,
)
signatures = sa.Table(
    "signatures",
    metadata,
    sa.Column("wave", _Key, primary_key=True, autoincrement=False),
    sa.Column("document", sa.Text, primary_key=True),  # "model" or "moments"
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("signature", sa.Text, nullable=False),
)
outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("course", _Key, nullable=False),
    sa.Column("wave", sa.Integer, nullable=False),  # its number; 0 for the course itself
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next", sa.BigInteger, nullable=False),  # the second since 1970 to try it at
    sa.Column("wanted", sa.BigInteger),  # or as soon as so many have come
    sa.UniqueConstraint("course", "wave", "what"),
    sa.CheckConstraint("what IN ('advance', 'tell', 'sign')", name="known_task"),
)
tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("right", sa.Text, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
)
audit_log = sa.Table(
    "audit_log",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("second", sa.BigInteger, nullable=False),  # since 1970
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text),
    sa.Column("outcome", sa.Integer, nullable=False),
)


# ---- versions


@cache
def _creating(kind: str) -> tuple[str, ...]:
    """Return the statements that create all tables, written once for each kind of database."""
    dialect = {"sqlite": sqlite, "postgresql": postgresql}[kind].dialect()
    created = metadata.sorted_tables
    indexes = [CreateIndex(index) for table in created for index in table.indexes]
    steps: list[CreateTable | CreateIndex] = [*map(CreateTable, created), *indexes]
    return tuple(str(one.compile(dialect=dialect)) for one in steps)


def _create_tables(connection: Connection) -> None:
    for statement in _creating(connection.dialect.name):
        connection.exec_driver_sql(statement)
    if connection.dialect.name == "postgresql":
        # Noise cannot be compressed: do not try.
        for column in ("rows", "sums"):
            connection.exec_driver_sql(f'ALTER TABLE blocks ALTER "{column}" SET STORAGE EXTERNAL')


# What a store holds changed until the first release: a store from before is refused.
MIGRATIONS: tuple[tuple[str, Callable[[Connection], None]], ...] = (
    (
        "create the tables of courses, of waves that release sums and of joined invitations",
        _create_tables,
    ),
)
_ONE_MIGRATOR = 0x626C7572  # "blur": the advisory lock that services starting together wait for


def migrate(connection: Connection) -> None:
    """Take the steps that are missing; refuse a store that this version cannot read."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ONE_MIGRATOR)))
    if not sa.inspect(connection).has_table(migrations.name):
        MIGRATIONS[0][1](connection)
        rows = [{"number": n, "name": name} for n, (name, _) in enumerate(MIGRATIONS)]
        connection.execute(sa.insert(migrations), rows)
        return
    found = sa.select(migrations.c.number, migrations.c.name)
    taken = {row.number: row.name for row in connection.execute(found)}
    if taken.get(0) != MIGRATIONS[0][0]:
        raise InvalidValueError(
            "Expected a store of this blurfit, and this one was written before its first release: "
            "what it holds has another form. Publish with the blurfit that wrote it, or start a "
            "new store."
        )
    if set(taken) - set(range(len(MIGRATIONS))):
        raise InvalidValueError(
            "Expected a store of at most version {MIGRATIONS_count}, and this one is of version "
            "{taken}: a newer blurfit wrote it. Use that one.",
            MIGRATIONS_count=len(MIGRATIONS),
            taken=max(taken) + 1,
        )
    for number, (name, step) in enumerate(MIGRATIONS):
        if number not in taken:
            step(connection)
            connection.execute(sa.insert(migrations).values(number=number, name=name))


# ---- the outbox

What = Literal["advance", "tell", "sign"]
# Seconds before a task that failed is tried again, at most.
LONGEST_PAUSES: dict[What, int] = {"advance": 60, "tell": 60, "sign": 3600}
_o = outbox.c
_PENDING = (
    sa.select(
        _o.key,
        _o.what,
        courses.c.fingerprint,
        _o.wave,
        _o.attempts,
        # A longer pause was written by a clock that was ahead. Without an attempt, it is a date.
        sa.case(
            ((_o.attempts > 0) & (_o.next - Clock() > sa.case(LONGEST_PAUSES, value=_o.what)), 0),
            else_=_o.next - Clock(),
        ).label("seconds"),
        sa.func.coalesce(courses.c.closes <= Clock(), sa.false()).label("past"),
    )
    .join(courses, courses.c.key == _o.course)
    .order_by(_o.wave == 0, _o.key)  # how a course stands now is told after what led to it
)


class Task(NamedTuple):
    """Something to do for a course, or for one of its waves; it was tried so often in vain."""

    key: int
    what: What
    course: str  # its fingerprint
    wave: int  # its number, or 0
    attempts: int


def add_task(connection: Connection, course: int, what: What, wave: int = 0) -> None:
    """Write down something to do now, unless it is written already."""
    row = {"course": course, "wave": wave, "what": what, "attempts": 0, "next": 0}
    connection.execute(insert_if_absent(connection, outbox).values(row))


def call_to_advance(connection: Connection, course: int, come: int | None = None) -> None:
    """Let a course advance now, whose open wave is full or fixed; of one that waits for its date or
    for more people, if so many have come as were wanted, or in any case.
    """
    row = {"course": course, "wave": 0, "what": "advance", "attempts": 0, "next": 0}
    again = (
        inserting(connection, outbox)
        .values(row)
        .on_conflict_do_update(
            index_elements=[_o.course, _o.wave, _o.what],
            set_={"next": 0, "wanted": None},
            where=_o.wanted.is_not(None) if come is None else _o.wanted <= come,
        )
    )
    connection.execute(again)


def schedule(
    connection: Connection, course: int, at: int | None, wanted: int | None = None
) -> None:
    """Let a course advance at a moment, or as soon as so many have come; None for never."""
    here = (_o.course == course) & (_o.what == "advance")
    connection.execute(sa.delete(outbox).where(here))
    if at is not None:
        add_task(connection, course, "advance")
        connection.execute(sa.update(outbox).where(here).values(next=at, wanted=wanted))


def has_task(connection: Connection, course: int, what: What) -> bool:
    """Tell whether there is something of a kind to do for a course."""
    query = sa.select(_o.key).where((_o.course == course) & (_o.what == what)).limit(1)
    return connection.scalar(query) is not None


def next_tasks(connection: Connection) -> list[tuple[Task, float]]:
    """Return the tasks that no other is before, and in how many seconds each is to be done."""
    found, telling = [], set()
    for row in connection.execute(_PENDING):
        if row.what != "tell" or row.fingerprint not in telling:
            found.append((Task(*row[:5]), float(row.seconds), bool(row.past)))
        if row.what == "tell":
            telling.add(row.fingerprint)
    return [
        (task, seconds)
        for task, seconds, past in found
        if task.what != "advance" or past or task.course not in telling
    ]


def task_done(connection: Connection, task: Task) -> None:
    """Strike a task off."""
    connection.execute(sa.delete(outbox).where(_o.key == task.key))


def put_off(connection: Connection, task: Task, seconds: float, wanted: int | None = None) -> None:
    """Try a task again after so many seconds, or as soon as so many have come."""
    later = Clock() + max(0, math.ceil(seconds))
    values = {"attempts": task.attempts + 1, "next": later, "wanted": wanted}
    connection.execute(sa.update(outbox).where(_o.key == task.key).values(values))
