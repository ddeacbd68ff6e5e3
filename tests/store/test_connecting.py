"""Durable connections, and places that are none."""

import sqlite3
import time
import traceback
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

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


# ---- passwords from files


PASSWORD = "a/password+with:all@that=URLs%do?not&take"


@pytest.fixture(scope="module")
def guarded(postgresql) -> str:
    """The URL, without its password, of a user whom a real server asks for one."""
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE ROLE guarded SUPERUSER LOGIN PASSWORD {}").format(PASSWORD)
        )
        connection.execute("CREATE DATABASE guarded OWNER guarded")
        (rules,) = connection.execute("SHOW hba_file").fetchone()
        kept = Path(rules).read_text()
        Path(rules).write_text(f"local all guarded scram-sha-256\n{kept}")
        connection.execute("SELECT pg_reload_conf()")
        host = postgresql.partition("host=")[2].partition("&")[0]
        server = f"postgresql://guarded@/guarded?host={host}"
        while _is_let_in_without(server):
            time.sleep(0.01)  # the server reads its rules again in its own time
    return server


def _is_let_in_without(server: str) -> bool:
    try:
        psycopg.connect(server).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_password_is_read_from_a_file(guarded, tmp_path) -> None:
    file = tmp_path / "password.txt"
    file.write_text(f"{PASSWORD}\n")
    with Store(f"{guarded}&password_file={file}") as store:
        assert store.statuses() == []
        assert PASSWORD not in f"{store._engine!r} {store._engine.url!r} {store._engine.url}"


def test_a_wrong_password_is_refused_without_being_told(guarded, tmp_path) -> None:
    file = tmp_path / "password.txt"
    file.write_text("not-that-one")
    with pytest.raises(InvalidValueError, match="password authentication failed") as caught:
        Store(f"{guarded}&password_file={file}")
    told = "".join(traceback.format_exception(caught.value))
    assert "not-that-one" not in told


@pytest.mark.parametrize(
    ("content", "url", "words"),
    [
        (None, "postgresql://a@host/b", "password.txt' to be a file .* No such file.* its mode"),
        ("folder", "postgresql://a@host/b", "password.txt' to be a file .* Is a directory"),
        (b"\n", "postgresql://a@host/b", "it is empty"),
        (b"\xff\xfe", "postgresql://a@host/b", "not text in UTF-8"),
        (b"one", "postgresql://a:other@host/b", "password once"),
        (b"one", "postgresql://a@host/b?password_file=/other", "password once"),
    ],
)
def test_a_password_that_cannot_be_read(tmp_path, content, url, words) -> None:
    file = tmp_path / "password.txt"
    if content == "folder":
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)
    separator = "&" if "?" in url else "?"
    with pytest.raises(InvalidValueError, match=words) as caught:
        Store(f"{url}{separator}password_file={file}")
    assert "other@" not in str(caught.value)
