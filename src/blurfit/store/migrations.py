"""The steps by which a store of an earlier version becomes one of today, each taken once.

A new store needs the first alone, which creates all tables as they are today. A step is recorded in
the transaction that takes it, so that one that fails leaves nothing behind, and services that start
together wait for whoever came first.
"""

from collections.abc import Callable
from functools import cache

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


# Documents within a store changed until the first release: a store from before is refused.
MIGRATIONS: tuple[tuple[str, Callable[[Connection], None]], ...] = (
    ("create the tables of the first release", _create_tables),
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
    found = sa.select(tables.migrations.c.number, tables.migrations.c.name)
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
            connection.execute(sa.insert(tables.migrations).values(number=number, name=name))
