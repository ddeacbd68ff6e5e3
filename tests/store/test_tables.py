"""Migrations, durable connections, and places that are none."""

import sqlite3

import pytest
import sqlalchemy as sa

from blurfit import InvalidValueError, StorageError
from blurfit.store import tables
from blurfit.store.store import Store

STEPS = range(len(tables.MIGRATIONS))


def test_a_new_store_has_taken_every_step(place) -> None:
    with Store(place) as store, store._reading() as connection:
        for table in tables.metadata.sorted_tables:
            assert sa.inspect(connection).has_table(table.name)
        assert list(connection.scalars(sa.select(tables.migrations.c.number))) == [*STEPS]


def test_a_migration_is_taken_once_and_recorded_with_it(place, monkeypatch) -> None:
    with Store(place):
        pass
    steps = []

    def add_column(connection: sa.Connection) -> None:
        steps.append("taken")
        connection.execute(sa.text("ALTER TABLE settings ADD COLUMN remark TEXT"))

    monkeypatch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, ("remark", add_column)))
    for _ in range(2):
        with Store(place) as store, store._reading() as connection:
            connection.execute(sa.text("SELECT remark FROM settings"))
            assert list(connection.scalars(sa.select(tables.migrations.c.number))) == [
                *STEPS,
                len(STEPS),
            ]
    assert steps == ["taken"]


def test_a_migration_that_fails_leaves_nothing_behind(place, monkeypatch) -> None:
    with Store(place):
        pass

    def half(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE settings ADD COLUMN half TEXT"))
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, ("half", half)))
        with pytest.raises(RuntimeError):
            Store(place)
    with Store(place) as store, store._reading() as connection:
        columns = {c["name"] for c in sa.inspect(connection).get_columns("settings")}
        assert columns == {"name", "value"}
        assert list(connection.scalars(sa.select(tables.migrations.c.number))) == [*STEPS]


def test_a_newer_store_is_left_alone(place) -> None:
    with Store(place) as store, store._writing() as connection:
        connection.execute(sa.insert(tables.migrations).values(number=7, name="from the future"))
    with pytest.raises(InvalidValueError, match="a newer blurfit wrote it"):
        Store(place)


def test_commits_are_durable(place) -> None:
    with Store(place) as store, store._reading() as connection:
        if connection.dialect.name == "sqlite":
            assert connection.scalar(sa.text("PRAGMA synchronous")) == 2
            assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
        else:
            assert connection.scalar(sa.text("SHOW synchronous_commit")) == "on"


def test_postgresql_without_fsync_is_refused(postgresql) -> None:
    class Careless:
        """A connection to a server that is set so; the tests' own server cannot be."""

        def cursor(self):
            return self

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def execute(self, _):
            return self

        def fetchone(self):
            return ("off",)

        def commit(self):
            pass

    with pytest.raises(StorageError, match="fsync = on"):
        tables._durable_postgresql(Careless(), None)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("mysql://host/name", "got one for 'mysql'"),
        ("no/such/folder/collection.db", "Does its folder exist"),
        ("postgresql://nobody:secret@127.0.0.1:1/none", "is the server running"),
        ("://", "Expected a store's URL"),
    ],
)
def test_places_that_are_none(place, message) -> None:
    with pytest.raises(InvalidValueError, match=message) as caught:
        Store(place)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_store(tmp_path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 1000)
    with pytest.raises((InvalidValueError, sqlite3.DatabaseError, sa.exc.DatabaseError)) as caught:
        Store(path)
    assert isinstance(caught.value, InvalidValueError)
    assert path.read_text().startswith("dear diary")
