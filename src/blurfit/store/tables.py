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

**The outbox** holds what is still to be done, or told to the other database: rows with attempts and
a time.

    advance   take a course forward: its open wave is full or fixed, or its date has come
    tell      let the second database know of a wave's release, or of the course's state
    sign      exchange the signatures of what both have published

A row is written in the transaction that causes it, and struck off when it is done: so a crash
forgets nothing, and a service that starts finds here all that there is to do. What fails is put
off, by whoever drives (`blurfit.service`). Every task may be done twice, or by two services at
once: it finds what was written down, and changes nothing.

**Order.** Releases are told one after the other, then how the course stands, and all of that before
the next wave is summed: a course with something to tell does not advance. What has changed while it
was told is told again. The exception is a date that has come: a course ends then even if the other
database cannot be reached, or does not take what it is told. Signatures wait for nobody, since no
promise depends on them.

**No lost call.** A group of arrivals that fills a wave writes `advance` while it holds the course's
row, shared; whoever strikes `advance` off holds the row alone, and looks again
(`blurfit.store.release`) whether the wave is full. So either finds what the other did.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateIndex, CreateTable

from blurfit.errors import InvalidValueError
from blurfit.store.database import Clock, insert_if_absent

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


What = Literal["advance", "tell", "sign"]
_o = outbox.c
_PENDING = (
    sa.select(
        _o.key,
        _o.what,
        courses.c.fingerprint,
        _o.wave,
        _o.attempts,
        (_o.next - Clock()).label("seconds"),
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
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert: Any = dialect.insert(outbox)
    row = {"course": course, "wave": 0, "what": "advance", "attempts": 0, "next": 0}
    again = insert.values(row).on_conflict_do_update(
        index_elements=[_o.course, _o.wave, _o.what],
        set_={"next": 0, "wanted": None},
        where=_o.wanted.is_not(None) if come is None else _o.wanted <= come,
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


def due_tasks(connection: Connection) -> list[Task]:
    """Return what is to be done now: of what a course has to tell, the first."""
    return [task for task, seconds in _next(connection) if seconds <= 0]


def seconds_to_next(connection: Connection) -> float | None:
    """Return how long nothing is to be done; None if nothing is written down."""
    found = [seconds for _, seconds in _next(connection)]
    return max(0.0, min(found)) if found else None


def _next(connection: Connection) -> list[tuple[Task, float]]:
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
