"""The database under a store: durable, all or nothing, of a version that can be read."""

import os
import socket
import sqlite3
import threading
import time
import traceback
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from blurfit import InvalidValueError, StorageError
from blurfit.contributor.blur import perturb_table
from blurfit.messages.submissions import Submissions
from blurfit_server.store import database
from blurfit_server.store.database import Transactions, Turns
from blurfit_server.store.store import Store
from server_support.stores import arrival, at_once
from support.proposals import PEOPLE, propose


def test_commits_are_durable(place) -> None:
    with Store(place) as store, store._reading() as connection:
        if connection.dialect.name == "sqlite":
            assert connection.scalar(sa.text("PRAGMA synchronous")) == 2
            assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
        else:
            assert connection.scalar(sa.text("SHOW synchronous_commit")) == "on"


def test_postgresql_without_fsync_is_refused() -> None:
    careless = MagicMock()  # a server that is set so; the tests' own cannot be
    cursor = careless.cursor.return_value.__enter__.return_value
    cursor.execute.return_value.fetchone.return_value = ("off",)
    with pytest.raises(StorageError, match="fsync = on"):
        database._durable_postgresql(careless, None)


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


# ---- transactions

NOTES = sa.Table("notes", sa.MetaData(), sa.Column("text", sa.Text, primary_key=True))


def note(connection: sa.Connection, text: str) -> int:
    connection.execute(NOTES.insert().values(text=text))
    return len(text)


def all_notes(connection: sa.Connection) -> list[str]:
    return sorted(connection.scalars(sa.select(NOTES.c.text)))


@pytest.fixture
def notes(place):
    with Transactions(place) as found:
        found.write(NOTES.create)
        yield found


def test_a_step_that_fails_takes_the_others_back(notes) -> None:
    def half(connection: sa.Connection) -> None:
        note(connection, "lost")
        raise RuntimeError("on its way")

    with pytest.raises(RuntimeError, match="on its way"):
        notes.write(half)
    assert notes.read(all_notes) == []
    notes.write(note, "kept")  # the connection serves again
    assert notes.read(all_notes) == ["kept"]


def test_a_broken_constraint_is_no_storage_error(notes) -> None:
    """A broken constraint is a mistake of ours, and must not be taken for a busy disk."""
    notes.write(note, "once")
    with pytest.raises(sa.exc.IntegrityError):
        notes.write(note, "once")
    assert notes.read(all_notes) == ["once"]


def test_a_locked_file_is_told_as_a_storage_error(in_memory) -> None:
    path = in_memory / "notes.db"
    with Transactions(path) as notes:
        notes.write(NOTES.create)
        notes.write(lambda connection: connection.execute(sa.text("PRAGMA busy_timeout = 10")))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match=r"cannot be used now: .*locked\.$"):
            notes.write(note, "too early")
        holder.execute("ROLLBACK")
        holder.close()
        notes.write(note, "in time")
        assert notes.read(all_notes) == ["in time"]


def test_memory_has_one_connection_that_threads_take_in_turn() -> None:
    with Transactions(":memory:") as notes:
        notes.write(NOTES.create)
        at_once(*(partial(notes.write, note, f"of thread {i}") for i in range(8)))
        assert len(notes.read(all_notes)) == 8


def test_tidying_loses_nothing_and_empties_the_log(in_memory) -> None:
    path = in_memory / "notes.db"
    with Transactions(path) as notes:
        notes.write(NOTES.create)
        notes.write(note, "kept")
        notes.tidy()
        assert notes.read(all_notes) == ["kept"]
        with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as file:  # without the log
            assert file.execute("SELECT text FROM notes").fetchall() == [("kept",)]
        file.close()
    with Transactions(":memory:") as notes:
        notes.tidy()  # nothing to do


def test_writers_take_turns_in_the_order_in_which_they_came() -> None:
    turns, order, waiting = Turns(), [], []

    def write(name: int) -> None:
        with turns:
            order.append(name)

    with turns:
        for name in range(8):
            waiting.append(threading.Thread(target=write, args=(name,)))
            waiting[-1].start()
            while len(turns._waiting) <= name:
                time.sleep(0.001)
    for one in waiting:
        one.join()
    assert order == [*range(8)]


def test_whoever_waits_too_long_for_a_turn_is_told_and_takes_none(monkeypatch) -> None:
    monkeypatch.setattr(database, "_SECONDS_FOR_A_TURN", 0.01)
    turns = Turns()
    with turns, pytest.raises(StorageError, match="busy"):
        turns.__enter__()
    with turns:
        assert not turns._waiting


# ---- patience


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(InvalidValueError, match="is the server running"):
            Store(f"postgresql://nobody@127.0.0.1:{port}/nothing?sslmode=disable&connect_timeout=2")
        assert time.monotonic() - began < 120


def test_a_lock_that_somebody_holds_is_given_up(places, monkeypatch) -> None:
    monkeypatch.setattr(database, "_SECONDS_FOR_A_LOCK", 1)
    agreement, other = propose(), propose(epsilon=101)
    with Store(places.fresh()) as store:
        store.open(agreement)
        store.open(other)
        held = sa.text("SELECT 1 FROM courses WHERE fingerprint = :name FOR UPDATE")
        with store._engine.connect() as holder:
            holder.execute(held, {"name": agreement.fingerprint})
            with pytest.raises(StorageError, match="lock timeout"):
                store.close_collection(agreement.fingerprint)
            assert store.close_collection(other.fingerprint).state == "closed"
            holder.rollback()
        assert store.close_collection(agreement.fingerprint).state == "closed"


def test_what_an_address_says_of_patience_is_kept() -> None:
    engine = database.connect("postgresql://nobody@127.0.0.1/nothing?connect_timeout=17")
    assert "connect_timeout" not in database._patience(engine.url)
    assert "statement_timeout" in database._patience(engine.url)["options"]
    engine.dispose()


# ---- tables and versions


def test_a_new_store_has_every_table(place) -> None:
    with Store(place) as store, store._reading() as connection:
        found = set(sa.inspect(connection).get_table_names())
        assert found == {table.name for table in database.metadata.sorted_tables}


STEPS = range(len(database.MIGRATIONS))


def test_a_migration_is_taken_once_and_recorded_with_it(place, monkeypatch) -> None:
    with Store(place):
        pass
    steps = []

    def add_column(connection: sa.Connection) -> None:
        steps.append("taken")
        connection.execute(sa.text("ALTER TABLE settings ADD COLUMN remark TEXT"))

    monkeypatch.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, ("remark", add_column)))
    for _ in range(2):
        with Store(place) as store, store._reading() as connection:
            connection.execute(sa.text("SELECT remark FROM settings"))
            assert list(connection.scalars(sa.select(database.migrations.c.number))) == [
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
        patch.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, ("half", half)))
        with pytest.raises(RuntimeError):
            Store(place)
    with Store(place) as store, store._reading() as connection:
        columns = {c["name"] for c in sa.inspect(connection).get_columns("settings")}
        assert columns == {"name", "value"}
        assert list(connection.scalars(sa.select(database.migrations.c.number))) == [*STEPS]


def test_a_newer_store_is_left_alone(place) -> None:
    with Store(place) as store, store._writing() as connection:
        connection.execute(sa.insert(database.migrations).values(number=7, name="from the future"))
    with pytest.raises(InvalidValueError, match="a newer blurfit wrote it"):
        Store(place)


def test_a_store_from_before_the_first_release_is_left_alone(place) -> None:
    with Store(place) as store, store._writing() as connection:
        connection.execute(
            sa.update(database.migrations).values(name="create the tables of the first release")
        )
    with pytest.raises(InvalidValueError, match="written before its first release"):
        Store(place)


def test_a_cut_right_after_the_log_was_moved_is_seen(in_memory) -> None:
    agreement, path = propose(quorum=50), in_memory / "c.db"
    with Store(path) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.tidy()
        os.truncate(path, path.stat().st_size - 4096)
        with pytest.raises(StorageError, match=r"c\.db was cut while it was open"):
            store.check()


@pytest.mark.parametrize("by_a_link", [False, True])
@pytest.mark.parametrize(("file", "length"), [("-wal", 0), ("-wal", 5000), ("", 0), ("", 8192)])
def test_nothing_is_acknowledged_once_a_file_was_cut(in_memory, file, length, by_a_link) -> None:
    """Seen before: 10 were acknowledged, the log cut, 20 more were acknowledged, none stored.

    SQLite keeps its log beside the file that a link leads to, and not beside the link.
    """
    agreement, path = propose(quorum=50), in_memory / "c.db"
    people = list(perturb_table(agreement, PEOPLE))
    opened = in_memory / "link.db" if by_a_link else path
    if by_a_link:
        opened.symlink_to(path)
    with Store(opened) as store:
        store.open(agreement)
        collection = store.collection(agreement.fingerprint)

        def send(rows: slice) -> None:
            store.receive(collection, [arrival(Submissions.gather(people[rows]))])

        send(slice(10))
        store.tidy()
        send(slice(10, 15))
        os.truncate(f"{path}{file}", length)
        for _ in range(2):
            with pytest.raises(StorageError, match=f"c.db{file} was cut while it was open"):
                send(slice(15, 20))
            with pytest.raises(StorageError, match="was cut"):
                store.check()
        with Path(f"{path}{file}").open("ab") as longer:
            longer.truncate(2**20)  # as long as before, with nothing in it
        with pytest.raises(StorageError, match="was cut"):
            store.check()
