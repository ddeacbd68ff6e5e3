"""How a store's database is found and opened, so that a commit is on disk when it returns."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool
from sqlalchemy.util import LRUCache

from blurfit import private_files
from blurfit.errors import InvalidValueError, StorageError

_SECONDS_TO_CONNECT, _SECONDS_FOR_A_LOCK, _SECONDS_FOR_A_STATEMENT = 5, 5, 60
CONNECTIONS = 32
_PASSWORD_FILE = "password_file"  # at the end of a URL


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
    except (NoSuchModuleError, ModuleNotFoundError) as error:
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
    except (ArgumentError, ValueError, SQLAlchemyError) as error:
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
