import sqlalchemy as sa

from blurfit.store import tables
from blurfit.store.store import Store


def test_a_new_store_has_every_table(place) -> None:
    with Store(place) as store, store._reading() as connection:
        found = set(sa.inspect(connection).get_table_names())
        assert found == {table.name for table in tables.metadata.sorted_tables}


def test_what_is_there_already_is_left_alone(place) -> None:
    with Store(place) as store, store._writing() as connection:
        for value in (b"first", b"second"):
            insert = tables.insert_if_absent(connection, tables.settings)
            connection.execute(insert.values(name="name", value=value))
        value = tables.settings.c.value
        kept = connection.scalar(sa.select(value).where(tables.settings.c.name == "name"))
        assert bytes(kept) == b"first"
