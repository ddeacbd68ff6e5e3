"""A closed collection as a file, and what becomes of its one release."""

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit import InfeasibleError, NotCertifiedError, NotPublishedError, Store, perturb_table
from blurfit.files.engines.threads import Threads
from blurfit.files.handover import export
from blurfit.files.learn import learn_files
from blurfit.files.receipt import mark
from blurfit.messages.submission_files import open_submissions
from blurfit.store import tables
from support.stores import PEOPLE


def read(path, agreement):
    with open_submissions(path, agreement.layout) as file:
        parts = [part for group in range(file.groups) for part in file.parts(group)]
        return file.released, [np.concatenate(column) for column in zip(*parts, strict=True)]


def test_a_closed_collection_is_written_whole(place, agreement, tmp_path) -> None:
    table = perturb_table(agreement, PEOPLE)
    told: list[tuple[int, int]] = []
    with Store(place) as store:
        store.add(agreement, table)
        with pytest.raises(NotPublishedError, match="still collecting"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")
        assert not (tmp_path / "a.parquet").exists()
        store.stop(agreement.fingerprint)
        rows = export(
            store,
            agreement.fingerprint,
            tmp_path / "a.parquet",
            lambda done, of: told.append((done, of)),
        )
    assert rows == 40
    assert told[-1] == (40, 40)
    released, (names, numbers) = read(tmp_path / "a.parquet", agreement)
    assert released is None
    np.testing.assert_array_equal(names, table.identifiers)
    np.testing.assert_array_equal(numbers, np.hstack([table.quadratic, table.linear]))


def test_an_input_collection_is_handed_over(place, agreement, tmp_path) -> None:
    """Its model comes from files from then on; further models of moments are free."""
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.stop(agreement.fingerprint)
        for name in ("a.parquet", "b.parquet"):
            export(store, agreement.fingerprint, tmp_path / name)
        model = learn_files(agreement, [str(tmp_path / "a.parquet")], Threads(1))
        if agreement.mechanism == "input":
            with pytest.raises(InfeasibleError, match="was exported"):
                store.publish(agreement)
        else:
            assert store.publish_text(agreement.fingerprint) == model.to_json()


def test_a_published_collection_says_which_model(place, agreement, tmp_path) -> None:
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        model = store.publish(agreement)
        export(store, agreement.fingerprint, tmp_path / "a.parquet")
        assert store.model(agreement.fingerprint) == model.to_json()
    assert read(tmp_path / "a.parquet", agreement)[0] == mark(model)


def test_an_empty_collection(agreement, tmp_path) -> None:
    with Store() as store:
        store.open(agreement)
        store.stop(agreement.fingerprint)
        with pytest.raises(NotPublishedError, match="Nobody"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")


def test_damaged_numbers_are_noticed(agreement, tmp_path) -> None:
    place = f"sqlite:///{tmp_path / 'c.db'}"
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.stop(agreement.fingerprint)
        engine = sa.create_engine(place)
        with engine.begin() as connection:
            rows = bytearray(connection.scalar(sa.select(tables.blocks.c.rows)))
            rows[23] ^= 0x40
            connection.execute(sa.update(tables.blocks).values(rows=bytes(rows)))
        engine.dispose()
        with pytest.raises(NotCertifiedError, match="storage is damaged"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()
