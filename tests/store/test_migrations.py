"""Each step is taken once or not at all, and a store of another version is left alone."""

import pytest
import sqlalchemy as sa

from blurfit import InvalidValueError
from blurfit.store import migrations, tables
from blurfit.store.store import Store

STEPS = range(len(migrations.MIGRATIONS))


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


def test_a_store_from_before_the_first_release_is_left_alone(place) -> None:
    with Store(place) as store, store._writing() as connection:
        connection.execute(sa.update(tables.migrations).values(name="create the tables"))
    with pytest.raises(InvalidValueError, match="written before its first release"):
        Store(place)
