"""Durable connections, and places that are none."""

import sqlite3

import pytest
import sqlalchemy as sa

from blurfit import InvalidValueError, StorageError
from blurfit.store import connecting
from blurfit.store.store import Store


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
        connecting._durable_postgresql(Careless(), None)


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
