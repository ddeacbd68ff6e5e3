"""The store's tables, how they came about, and how a database is opened so that a commit is
durable.

| table | what is in it |
| --- | --- |
| `migrations` | which of the steps below have been taken |
| `settings` | the hash of the administrator's token |
| `collections` | an agreement, its state, and once published its model, for ever |
| `recent`, `identifiers` | the identifiers that were taken |
| `blocks` | submissions as they came, some hundreds in a row, with their sums and a checksum |
| `invitations` | hashes of those that nobody has used; using one removes it |
| `sharing` | which of two databases this is for a collection, and the set that both sum over |
| `verdicts` | whose proofs, where there are proofs, have been looked at, and what was found |
| `withdrawn` | identifiers that are taken and whose submissions were withdrawn |
| `signatures` | of what was published, by whichever key |
| `stewards`, `deeds` | further tokens with what each is good for, and what was done with any |
| `plans`, `waves` | plans of waves, how far they are, and which collection is which wave |
| `joint_plans` | of a plan between two databases: what the second knows of how the first stands |

`identifiers` and `blocks` are apart because they are asked for apart: an identifier on every
arrival, numbers hardly ever. The sums of a block let a model be learned without reading its numbers
again.

Identifiers are random, so each lands on another page of an index, and SQLite's log holds whole
pages. That is why they first go to `recent`, which is small, and are moved to `identifiers` in
order, some thirty thousand at a time: half of the time per submission. PostgreSQL logs rows, and
there they stay.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from blurfit.errors import InvalidValueError, StorageError

metadata = sa.MetaData()
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
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
collections = sa.Table(
    "collections",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    sa.Column("agreement", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("moments", sa.Text),  # the sums that a `moment` model is from
    sa.Column("refusal", sa.Text),  # why there will never be a model
    sa.Column("handed_over", sa.Text),  # the file that its release was left to
    sa.Column("opened", sa.Integer),  # since 1970: when, to the hour
    sa.Column("closes", sa.BigInteger),  # the second since 1970 from which nothing is taken
    sa.CheckConstraint(
        "state IN ('collecting', 'paused', 'closed', 'published')", name="known_state"
    ),
    sa.CheckConstraint("(state = 'published') = (model IS NOT NULL)", name="published_has_model"),
)


def _taken(table: str) -> sa.Table:
    return sa.Table(
        table,
        metadata,
        sa.Column("collection", _Key, primary_key=True),
        sa.Column("identifier", sa.LargeBinary, primary_key=True),
        sqlite_with_rowid=False,
    )


identifiers, recent, withdrawn = map(_taken, ("identifiers", "recent", "withdrawn"))
blocks = sa.Table(
    "blocks",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("collection", _Key, nullable=False),
    sa.Column("hour", sa.Integer, nullable=False),  # since 1970: when, to the hour
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("checksum", sa.LargeBinary, nullable=False),
    sa.Column("sums", sa.LargeBinary, nullable=False),
    sa.Column("rows", sa.LargeBinary, nullable=False),
    sa.Index("blocks_by_collection", "collection", "hour", "count"),
)
invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("collection", _Key, primary_key=True),
    sa.Column("hash", sa.LargeBinary, primary_key=True),
    sqlite_with_rowid=False,
)
sharing = sa.Table(
    "sharing",
    metadata,
    sa.Column("collection", _Key, primary_key=True, autoincrement=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary),  # of the common set; written once, never changed
    sa.Column("count", sa.BigInteger),  # how many are in it
    # The identifiers that are here and not in it, in order; or "+", and those that are in it.
    sa.Column("left_out", sa.LargeBinary),
    sa.Column("noise", sa.LargeBinary),  # of this database itself, drawn with the set; words
    sa.Column("delivered", sa.Boolean, nullable=False),  # to the other database: the result
    sa.Column("verification", sa.LargeBinary),  # the key for proofs; written once, never changed
    sa.CheckConstraint("role IN ('first', 'second')", name="known_role"),
)
verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column("collection", _Key, primary_key=True),
    sa.Column("identifier", sa.LargeBinary, primary_key=True),
    sa.Column("valid", sa.Boolean, nullable=False),
    sqlite_with_rowid=False,
)
plans = sa.Table(
    "plans",
    metadata,
    sa.Column("fingerprint", sa.Text, primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),  # why it ended before its last wave, or has no model
    sa.Column("learned", sa.Boolean, nullable=False),  # there is a model, or there will be none
    sa.CheckConstraint("state IN ('collecting', 'held', 'ended')", name="known_plan_state"),
)
waves = sa.Table(
    "waves",
    metadata,
    sa.Column("plan", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("collection", _Key, nullable=False, unique=True),
)
joint_plans = sa.Table(
    "joint_plans",
    metadata,
    sa.Column("plan", sa.Text, primary_key=True),
    sa.Column("told", sa.Text, nullable=False),  # the first's state, as the second knows it
    sa.CheckConstraint("told IN ('collecting', 'held', 'ended')", name="known_told_state"),
)
signatures = sa.Table(
    "signatures",
    metadata,
    sa.Column("collection", _Key, primary_key=True, autoincrement=False),
    sa.Column("document", sa.Text, primary_key=True),  # "model" or "moments"
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("signature", sa.Text, nullable=False),
)
stewards = sa.Table(
    "stewards",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("right", sa.Text, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
)
deeds = sa.Table(
    "deeds",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("second", sa.BigInteger, nullable=False),  # since 1970
    sa.Column("steward", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text),
    sa.Column("outcome", sa.Integer, nullable=False),
)


def _create_tables(connection: Connection) -> None:
    for statement in _creating(connection.dialect.name):
        connection.exec_driver_sql(statement)
    if connection.dialect.name == "postgresql":
        # Noise cannot be compressed: do not try.
        for column in ("rows", "sums"):
            connection.exec_driver_sql(f'ALTER TABLE blocks ALTER "{column}" SET STORAGE EXTERNAL')


@cache
def _creating(kind: str) -> tuple[str, ...]:
    """The statements that create all tables of an empty database, written once for each kind."""
    statements: list[str] = []

    def write(statement: sa.DDLElement, *_more: object, **_named: object) -> None:
        statements.append(str(statement.compile(dialect=engine.dialect)))

    engine = sa.create_mock_engine(f"{_DRIVERS[kind]}://", write)
    created = [table for table in metadata.sorted_tables if table is not migrations]
    metadata.create_all(engine, created, checkfirst=False)
    return tuple(statements)


def add_column(connection: Connection, column: sa.Column[Any]) -> None:
    """Give a table of an older store a column that new ones are created with; it may be empty."""
    table = column.table
    if column.name not in {one["name"] for one in sa.inspect(connection).get_columns(table.name)}:
        kind = column.type.compile(connection.dialect)
        connection.exec_driver_sql(f'ALTER TABLE "{table.name}" ADD COLUMN "{column.name}" {kind}')


def _create_stewards(connection: Connection) -> None:
    metadata.create_all(connection, [stewards, deeds])


def _create_signatures(connection: Connection) -> None:
    metadata.create_all(connection, [withdrawn, signatures])


def _add_closing(connection: Connection) -> None:
    add_column(connection, collections.c.closes)


def _create_joint_plans(connection: Connection) -> None:
    metadata.create_all(connection, [joint_plans])


MIGRATIONS: tuple[tuple[str, Callable[[Connection], None]], ...] = (
    ("create the tables", _create_tables),
    ("keep who administers besides, and what was done", _create_stewards),
    ("keep who withdrew, and signatures", _create_signatures),
    ("let collections close at a date", _add_closing),
    ("keep what two databases of a plan have told each other", _create_joint_plans),
)
_SECONDS_TO_CONNECT, _SECONDS_FOR_A_LOCK, _SECONDS_FOR_A_STATEMENT = 5, 5, 60
CONNECTIONS = 32
_ONE_MIGRATOR = 0x626C7572  # "blur": the advisory lock that services starting together wait for


def migrate(connection: Connection) -> None:
    """Take the steps that are missing, each recorded in the transaction that takes it."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ONE_MIGRATOR)))
    if not sa.inspect(connection).has_table(migrations.name):
        migrations.create(connection)
        MIGRATIONS[0][1](connection)  # which creates what the further steps would add
        rows = [{"number": n, "name": name} for n, (name, _) in enumerate(MIGRATIONS)]
        connection.execute(sa.insert(migrations).values(rows))
        return
    taken = set(connection.scalars(sa.select(migrations.c.number)))
    if taken - set(range(len(MIGRATIONS))):
        raise InvalidValueError(
            f"Expected a store of at most version {len(MIGRATIONS)}, and this one is of version "
            f"{max(taken) + 1}: a newer blurfit wrote it. Use that one."
        )
    for number, (name, step) in enumerate(MIGRATIONS):
        if number not in taken:
            step(connection)
            connection.execute(sa.insert(migrations).values(number=number, name=name))


def connect(place: str | Path, connections: int = CONNECTIONS) -> Engine:
    """An engine whose commits are on disk when they return.

    `place` is a path, a URL (sqlite:///collection.db, postgresql://user@host/name), or ":memory:";
    `connections` is how many there may be at once to PostgreSQL, which has a hundred by default.
    """
    url = url_of(place)
    try:
        if url.get_backend_name() == "sqlite":
            return _sqlite(url)
        engine = sa.create_engine(
            url,
            pool_pre_ping=True,
            pool_size=4,
            max_overflow=connections - 4,
            pool_timeout=_SECONDS_TO_CONNECT,
            connect_args=_patience(url),
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


def insert_if_absent(connection: Connection, table: sa.Table) -> Any:
    """An INSERT that leaves alone what is there already."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()


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
    if backend not in _DRIVERS:
        raise InvalidValueError(
            f"Expected a store like sqlite:///collection.db or postgresql://user@host/name, and "
            f"got one for {backend!r}."
        )
    return url.set(drivername=_DRIVERS[backend])


def file_of(place: str | Path) -> Path | None:
    """The file of an SQLite store; None for one in memory, and for PostgreSQL."""
    url = url_of(place)
    named = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(str(url.database)).absolute() if named else None


def _sqlite(url: URL) -> Engine:
    in_memory = url.database in (None, "", ":memory:")
    arguments = {"check_same_thread": False, "timeout": 10.0}
    engine = (
        sa.create_engine(url, poolclass=StaticPool, connect_args=arguments)
        if in_memory
        else sa.create_engine(url, connect_args=arguments, pool_size=4, max_overflow=28)
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
            "be lost with the power. Set fsync = on in postgresql.conf."
        )
