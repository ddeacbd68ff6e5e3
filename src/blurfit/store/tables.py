"""The store's tables, what is in each, and how a store of an earlier version is recognised.

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
| `verdicts` | whose proofs, where there are proofs, have been looked at, and what was found |
| `signatures` | of what was published, by whichever key |
| `outbox` | what is still to be done, or to be told to the other database |
| `tokens`, `audit_log` | further tokens with what each is good for, and what was done with any |

`identifiers` and `blocks` are apart because they are asked for apart: an identifier on every
arrival, numbers hardly ever. The sums of a block let a model be learned without reading its numbers
again.

Identifiers are random, so each lands on another page of an index, and SQLite's log holds whole
pages. That is why they first go to `recent`, which is small, and are moved to `identifiers` in
order, some thirty thousand at a time: half of the time per submission. PostgreSQL logs rows, and
there they stay.

**Versions.** A new store takes the first migration alone, which creates all tables as they are
today. Each step is recorded in the transaction that takes it, so that one that fails leaves nothing
behind, and services that start together wait for whoever came first.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.functions import FunctionElement

from blurfit.errors import InvalidValueError

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
    sa.Column("reason", sa.Text),  # why it ended early, or has no model
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
    ("create the tables of courses and of waves that release sums", _create_tables),
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
            f"Expected a store of at most version {len(MIGRATIONS)}, and this one is of version "
            f"{max(taken) + 1}: a newer blurfit wrote it. Use that one."
        )
    for number, (name, step) in enumerate(MIGRATIONS):
        if number not in taken:
            step(connection)
            connection.execute(sa.insert(migrations).values(number=number, name=name))
