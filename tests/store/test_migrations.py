"""Each step is taken once or not at all, and a store of the version before goes on.

`older/version2.sql` was dumped from a store with the tables of version 2: six collections
(one takes submissions, one is published, one is by invitation, one is closed, one is a released
wave whose plan collects in its second), a further token, and a deed.
"""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit import InvalidValueError
from blurfit.contributor.perturb import perturb_table
from blurfit.model.published import PublishedModel
from blurfit.protocol.tokens import hashed
from blurfit.store import migrations, plans, stewards, tables
from blurfit.store.advance import advance, learn_model
from blurfit.store.store import Store
from support.stores import PEOPLE

STEPS = range(len(migrations.MIGRATIONS))
OLDER = Path(__file__).parent / "older" / "version2.sql"


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "collection.db"
    connection = sqlite3.connect(path)
    connection.executescript(OLDER.read_text(encoding="utf-8"))
    connection.close()
    return path


def shape(place) -> dict:
    """What columns each table of a store has."""
    with Store(place) as store, store._reading() as connection:
        look = sa.inspect(connection)
        return {
            name: {one["name"] for one in look.get_columns(name)} for name in look.get_table_names()
        }


def test_it_has_the_tables_of_a_new_one_and_says_which_version_it_is(file, tmp_path) -> None:
    assert shape(file) == shape(tmp_path / "new.db")
    with Store(file) as store, store._reading() as connection:
        taken = list(connection.scalars(sa.select(tables.migrations.c.number)))
        assert taken == list(range(len(migrations.MIGRATIONS)))


def test_everything_that_was_in_it_is_there_and_goes_on(file) -> None:
    with Store(file) as store:
        assert store.administrator() == hashed("the administrator's token of then")
        assert store.read(stewards.granted) == {"mail office": "invite"}
        assert [one.what for one in store.read(stewards.newest)] == ["invite"]
        found = store.statuses()
        states = ["collecting", "published", "collecting", "closed", "closed", "collecting"]
        assert [one.state for one in found] == states
        assert [one.count for one in found] == [40, 40, 0, 40, 18, 0]
        assert {one.closes for one in found} == {None}
        collecting, published, invited, closed = (one.fingerprint for one in found[:4])
        agreement = store.collection(collecting).agreement
        assert store.add(agreement, perturb_table(agreement, PEOPLE)) == 40
        assert store.move_closing(collecting, 4_000_000_000).closes == 4_000_000_000
        assert store.publish(agreement).count == 80
        shown = PublishedModel.from_json(store.model(published))
        assert store.publish_text(published) == shown.to_json()
        assert store.invitations(invited) == 2
        assert store.publish(closed).count == 40


def test_a_plan_of_then_goes_to_its_end(file) -> None:
    with Store(file) as store:
        (name,) = store.read(plans.fingerprints)
        second = store.read(plans.current, name)
        needed = second.quorum
        table = {key: np.resize(values, needed) for key, values in PEOPLE.items()}
        assert store.add(second, perturb_table(second, table)) == needed
        assert store.write(advance, name) is None
        assert learn_model(store, name) is not None


def test_killed_before_the_end_it_is_the_store_that_it_was(file, monkeypatch) -> None:
    """All missing steps are one transaction."""
    before = _dump(file)

    def fail(_connection) -> None:
        raise RuntimeError

    steps = (*migrations.MIGRATIONS, ("one that fails", fail))
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", steps)
        with pytest.raises(RuntimeError):
            Store(file)
    assert _dump(file) == before
    with Store(file) as store:
        assert len(store.statuses()) == 6


def test_a_column_is_added_on_postgresql_as_well(place) -> None:
    """From the layout of version 2, made by taking away what later versions added."""
    with Store(place) as store, store._writing() as connection:
        tables.withdrawn.drop(connection)
        tables.signatures.drop(connection)
        connection.execute(sa.text("ALTER TABLE collections DROP COLUMN closes"))
        connection.execute(sa.delete(tables.migrations).where(tables.migrations.c.number >= 2))
    with Store(place) as store:
        assert store.statuses() == []
        with store._reading() as connection:
            names = {one["name"] for one in sa.inspect(connection).get_columns("collections")}
        assert names == {column.name for column in tables.collections.c}


def _dump(file: Path) -> list[str]:
    connection = sqlite3.connect(file)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def test_a_new_store_has_taken_every_step(place) -> None:
    with Store(place) as store, store._reading() as connection:
        assert list(connection.scalars(sa.select(tables.migrations.c.number))) == [*STEPS]


def test_a_migration_is_taken_once_and_recorded_with_it(place, monkeypatch) -> None:
    with Store(place):
        pass
    steps = []

    def add_column(connection: sa.Connection) -> None:
        steps.append("taken")
        connection.execute(sa.text("ALTER TABLE settings ADD COLUMN remark TEXT"))

    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, ("remark", add_column)))
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
        patch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, ("half", half)))
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
