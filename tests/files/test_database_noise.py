"""Whoever learns from files draws the database's noise once, and the receipt keeps it."""

import json

import numpy as np
import pytest

from blurfit import ConflictError, InfeasibleError, PublishedMoments, Store, perturb_table
from blurfit.files.engines import Threads
from blurfit.files.learn import export, release_files
from blurfit.messages.files import Writer
from support.stores import PEOPLE, propose, totals_of


def test_one_noise_for_a_set_of_files(tmp_path) -> None:
    agreement = propose(database_noise=True)
    sent, file = perturb_table(agreement, PEOPLE), tmp_path / "all.parquet"
    with Writer(file, agreement.layout) as writer:
        writer.add(sent)
    first = release_files(agreement, [str(file)], Threads(1))
    assert release_files(agreement, [str(file)], Threads(1)) == first
    (receipt,) = tmp_path.glob("*.release.json")
    assert json.loads(receipt.read_text())["database_noise"] is True
    shown = PublishedMoments.from_json(first.moments)
    added = (shown.sums - totals_of(agreement, sent).sums) / agreement.grid.quadratic
    assert (added == np.rint(added)).all()
    assert (added != 0).all()


def test_what_a_store_published_is_not_learned_again_with_other_noise(tmp_path) -> None:
    agreement = propose(database_noise=True)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.publish(agreement)
        export(store, agreement.fingerprint, tmp_path / "all.parquet")
    with pytest.raises(ConflictError, match="with other noise"):
        release_files(agreement, [str(tmp_path / "all.parquet")], Threads(1))


def test_a_folder_without_a_receipt_gets_the_one_that_there_is(tmp_path) -> None:
    """Seen before: noise was drawn again where the first folder's receipt was lost, or where a file
    was moved to a folder that is now the first; the mean of both releases has less of it.
    """
    agreement = propose(database_noise=True)
    files = [tmp_path / name / f"{name}.parquet" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        with Writer(file, agreement.layout) as writer:
            writer.add(perturb_table(agreement, PEOPLE))
    first = release_files(agreement, map(str, files), Threads(1))
    (receipt,) = files[0].parent.glob("*.release.json")
    receipt.unlink()
    assert release_files(agreement, map(str, files), Threads(1)) == first
    moved = tmp_path / "another" / "two.parquet"
    moved.parent.mkdir()
    files[1].rename(moved)
    assert release_files(agreement, map(str, [files[0], moved]), Threads(1)) == first
    assert len(list(moved.parent.glob("*.release.json"))) == 1


def test_an_unpublished_collection_is_not_exported_as_its_noise_could_be_drawn_twice(
    tmp_path,
) -> None:
    agreement = propose(database_noise=True)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.close_collection(agreement.fingerprint)
        with pytest.raises(InfeasibleError, match="publish here"):
            export(store, agreement.fingerprint, tmp_path / "all.parquet")
        assert store.publish(agreement).count == 40
    assert not list(tmp_path.iterdir())
