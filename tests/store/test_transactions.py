"""All of something or nothing; a database that is away is a `StorageError`."""

import sqlite3
import threading

import pytest
import sqlalchemy as sa

from blurfit.errors import StorageError
from blurfit.store import migrations, tables
from blurfit.store.transactions import Transactions

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


def test_what_was_written_is_read_back_also_by_another(notes, place) -> None:
    assert notes.write(note, text="first") == 5
    with Transactions(place) as another:
        assert another.read(all_notes) == ["first"]
        another.write(note, "second")
    assert notes.read(all_notes) == ["first", "second"]


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
        threads = [
            threading.Thread(target=notes.write, args=(note, f"of thread {i}")) for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
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


def test_tables_are_the_houses_own() -> None:
    with Transactions(":memory:") as notes:
        notes.write(migrations.migrate)
        found = notes.read(lambda connection: sa.inspect(connection).get_table_names())
        assert {table.name for table in tables.metadata.sorted_tables} <= set(found)
