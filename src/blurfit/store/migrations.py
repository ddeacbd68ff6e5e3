"""The steps by which a store of an earlier version becomes one of today, each taken once.

A new store needs the first alone, which creates all tables as they are today. A step is recorded in
the transaction that takes it, so that one that fails leaves nothing behind, and services that start
together wait for whoever came first.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateIndex, CreateTable

from blurfit.errors import InvalidValueError
from blurfit.store import tables


@cache
def _creating(kind: str) -> tuple[str, ...]:
    """The statements that create all tables, written once for each kind of database."""
    dialect = {"sqlite": sqlite, "postgresql": postgresql}[kind].dialect()
    created = tables.metadata.sorted_tables
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


def add_column(connection: Connection, column: sa.Column[Any]) -> None:
    """Give a table of an older store a column that new ones are created with; it may be empty."""
    table = column.table
    if column.name not in {one["name"] for one in sa.inspect(connection).get_columns(table.name)}:
        kind = column.type.compile(connection.dialect)
        connection.exec_driver_sql(f'ALTER TABLE "{table.name}" ADD COLUMN "{column.name}" {kind}')


def _adding(*new: sa.Table) -> Callable[[Connection], None]:
    return partial(tables.metadata.create_all, tables=new)


def _keep_completed_exports(connection: Connection) -> None:
    """Whether earlier ones were is not known: none is repeated."""
    c = tables.collections.c
    add_column(connection, c.handed_in)
    begun = sa.update(tables.collections).where(c.handed_over.is_not(None))
    connection.execute(begun.values(handed_in="unknown"))


MIGRATIONS: tuple[tuple[str, Callable[[Connection], None]], ...] = (
    ("create the tables", _create_tables),
    ("keep who administers besides, and what was done", _adding(tables.stewards, tables.deeds)),
    ("keep who withdrew, and signatures", _adding(tables.withdrawn, tables.signatures)),
    ("let collections close at a date", partial(add_column, column=tables.collections.c.closes)),
    ("keep what two databases of a plan have told each other", _adding(tables.joint_plans)),
    ("write down which exports were completed", _keep_completed_exports),
)
_ONE_MIGRATOR = 0x626C7572  # "blur": the advisory lock that services starting together wait for


def migrate(connection: Connection) -> None:
    """Take the steps that are missing, each recorded in the transaction that takes it."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ONE_MIGRATOR)))
    if not sa.inspect(connection).has_table(tables.migrations.name):
        MIGRATIONS[0][1](connection)
        rows = [{"number": n, "name": name} for n, (name, _) in enumerate(MIGRATIONS)]
        connection.execute(sa.insert(tables.migrations), rows)
        return
    taken = set(connection.scalars(sa.select(tables.migrations.c.number)))
    if taken - set(range(len(MIGRATIONS))):
        raise InvalidValueError(
            f"Expected a store of at most version {len(MIGRATIONS)}, and this one is of version "
            f"{max(taken) + 1}: a newer blurfit wrote it. Use that one."
        )
    for number, (name, step) in enumerate(MIGRATIONS):
        if number not in taken:
            step(connection)
            connection.execute(sa.insert(tables.migrations).values(number=number, name=name))
