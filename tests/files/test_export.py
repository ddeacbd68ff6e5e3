"""A closed collection as a file, and what becomes of its one release."""

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit import (
    ConflictError,
    InfeasibleError,
    NotCertifiedError,
    NotPublishedError,
    Store,
    perturb_table,
)
from blurfit.files.engines import Threads
from blurfit.files.learn import export, learn_files
from blurfit.messages.files import open_submissions
from blurfit.model.release import Release
from blurfit.store import database
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
        store.close_collection(agreement.fingerprint)
        rows = export(
            store,
            agreement.fingerprint,
            tmp_path / "a.parquet",
            lambda done, of: told.append((done, of)),
        )
    assert rows == 40
    assert told[-1] == (40, 40)
    released, (identifiers, numbers) = read(tmp_path / "a.parquet", agreement)
    assert released is None
    order = np.lexsort(table.identifiers.T[::-1])  # no order of arrival is kept
    np.testing.assert_array_equal(identifiers, table.identifiers[order])
    np.testing.assert_array_equal(numbers, table.numbers[order])


def test_a_closed_collection_is_handed_over(place, agreement, tmp_path) -> None:
    """Its model comes from that file from then on."""
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.close_collection(agreement.fingerprint)
        export(store, agreement.fingerprint, tmp_path / "a.parquet")
        with pytest.raises(ConflictError, match=r"a\.parquet.*not exported again"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")
        with pytest.raises(ConflictError, match=r"b\.parquet.*exported before"):
            export(store, agreement.fingerprint, tmp_path / "b.parquet")
        assert learn_files(agreement, [str(tmp_path)], Threads(1)).count == 40
        with pytest.raises(InfeasibleError, match=r"was exported to .*a\.parquet"):
            store.publish(agreement)


def test_a_published_collection_says_which_model(place, agreement, tmp_path) -> None:
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        model = store.publish(agreement)
        export(store, agreement.fingerprint, tmp_path / "a.parquet")
        assert store.model(agreement.fingerprint) == model.to_json()
        sums = store.moments_text(agreement.fingerprint)
    expected = Release(model.to_json(), sums).mark()
    assert read(tmp_path / "a.parquet", agreement)[0] == expected


def test_an_empty_collection(agreement, tmp_path) -> None:
    with Store() as store:
        store.open(agreement)
        store.close_collection(agreement.fingerprint)
        with pytest.raises(NotPublishedError, match="Nobody"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")


def test_damaged_numbers_are_noticed(agreement, tmp_path) -> None:
    place = f"sqlite:///{tmp_path / 'c.db'}"
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.close_collection(agreement.fingerprint)
        engine = sa.create_engine(place)
        with engine.begin() as connection:
            rows = bytearray(connection.scalar(sa.select(database.blocks.c.rows)))
            rows[23] ^= 0x40
            connection.execute(sa.update(database.blocks).values(rows=bytes(rows)))
        engine.dispose()
        with pytest.raises(NotCertifiedError, match="storage is damaged"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()
