"""One agreement, one set: every order of ordinary commands that would release sums over two.

What two such sums give away is the first test; the others are the ways to them that are refused.
"""

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from blurfit import ConflictError, InfeasibleError, Store, Submissions, perturb_table
from blurfit.files.engines.threads import Threads
from blurfit.files.handover import export
from blurfit.files.learn import Work, learn_files, totals
from blurfit.files.release_receipts import ReleaseReceipt
from blurfit.messages.submission_writer import Writer
from blurfit.model.moments import PublishedMoments
from blurfit.theory.triangle import pack
from support.stores import PEOPLE

LATE = {"age": np.array([55.0]), "income": np.array([44.0])}


@pytest.fixture
def late(agreement) -> Submissions:
    """The submission of one more person."""
    return perturb_table(agreement, LATE)


@pytest.fixture
def store(agreement):
    """A closed collection, not published."""
    with Store() as kept:
        kept.add(agreement, perturb_table(agreement, PEOPLE))
        kept.close_collection(agreement.fingerprint)
        yield kept


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def add_late(path: Path, agreement, late: Submissions) -> None:
    with Writer(path / "late.parquet", agreement.layout) as writer:
        writer.add(late)


def learn(agreement, *words: object, receipt: Path | None = None):
    return learn_files(agreement, [str(word) for word in words], Threads(1), receipt=receipt)


def shown(path: Path, agreement) -> str:
    """The sums that a receipt beside the files makes public."""
    (found,) = path.glob("*.release.json")
    text = msgspec.json.decode(found.read_bytes(), type=ReleaseReceipt).moments
    assert text is not None
    assert PublishedMoments.from_json(text).fingerprint == agreement.fingerprint
    return text


def test_what_two_sums_give_away(agreement, late, tmp_path) -> None:
    """Their difference is the late person's own submission, with her noise alone."""
    with Writer(tmp_path / "a.parquet", agreement.layout) as writer:
        writer.add(perturb_table(agreement, PEOPLE))
    add_late(tmp_path, agreement, late)
    files = [str(tmp_path / "a.parquet"), str(tmp_path / "late.parquet")]
    few, all_of_them = (
        totals(agreement, Work.of(agreement, some), Threads(1)) for some in (files[:1], files)
    )
    (theirs,) = late.numbers
    if agreement.mechanism == "input":
        q, p = np.split(theirs, 2)
        theirs = np.concatenate([pack(np.outer(q, q)), p])
    np.testing.assert_allclose(all_of_them.sums - few.sums, theirs, atol=1e-9)


def test_publish_export_and_learn_with_one_more(store, agreement, late, tmp_path) -> None:
    published = store.publish(agreement)
    export(store, agreement.fingerprint, tmp_path / "a.parquet")
    add_late(tmp_path, agreement, late)
    with pytest.raises(ConflictError, match="published from some of these"):
        learn(agreement, tmp_path)
    assert not list(tmp_path.glob("*.json")), "and nothing is recorded"
    assert learn(agreement, tmp_path / "a.parquet").to_json() == published.to_json()
    if agreement.mechanism == "moment":
        text = store.moments_text(agreement.fingerprint)
        assert shown(tmp_path, agreement) == text, "the very same sums"


def test_export_learn_with_one_more_and_publish_the_store(store, agreement, late, tmp_path) -> None:
    export(store, agreement.fingerprint, tmp_path / "a.parquet")
    add_late(tmp_path, agreement, late)
    assert learn(agreement, tmp_path).count == 41
    with pytest.raises(InfeasibleError, match="was exported"):
        store.publish(agreement)
    assert store.status(agreement.fingerprint).state == "closed"


def test_export_twice_and_learn_in_two_folders(store, agreement, late, tmp_path) -> None:
    one, two = folder(tmp_path / "one"), folder(tmp_path / "two")
    export(store, agreement.fingerprint, one / "a.parquet")
    with pytest.raises(ConflictError, match=r"one/a\.parquet"):
        export(store, agreement.fingerprint, two / "a.parquet")
    assert not list(two.iterdir())
    (one / "a.parquet").unlink()
    export(store, agreement.fingerprint, one / "a.parquet")  # the same place again
    assert learn(agreement, one).count == 40


def test_learn_twice_with_two_receipts(agreement, late, tmp_path) -> None:
    lake = folder(tmp_path / "lake")
    with Writer(lake / "a.parquet", agreement.layout) as writer:
        writer.add(perturb_table(agreement, PEOPLE))
    first = learn(agreement, lake, receipt=tmp_path / "first.json")
    add_late(lake, agreement, late)
    with pytest.raises(ConflictError, match=r"added: late\.parquet"):
        learn(agreement, lake, receipt=tmp_path / "second.json")
    with pytest.raises(ConflictError, match=r"added: late\.parquet"):
        learn(agreement, lake)
    assert not (tmp_path / "second.json").exists()
    again = learn(agreement, lake / "a.parquet", receipt=tmp_path / "second.json")
    assert again.to_json() == first.to_json()
    texts = {path.read_text() for path in tmp_path.rglob("*.json")}
    assert len(texts) == 1, "beside the files, and in both receipts"


def test_a_receipt_that_was_given_stays_with_its_files(agreement, late, tmp_path) -> None:
    """Copied to another folder, files can still be recognised by who keeps one receipt."""
    lake, copy = folder(tmp_path / "lake"), folder(tmp_path / "copy")
    with Writer(lake / "a.parquet", agreement.layout) as writer:
        writer.add(perturb_table(agreement, PEOPLE))
    learn(agreement, lake, receipt=tmp_path / "kept.json")
    shutil.copy(lake / "a.parquet", copy)
    add_late(copy, agreement, late)
    with pytest.raises(ConflictError, match=r"added: late\.parquet"):
        learn(agreement, copy, receipt=tmp_path / "kept.json")
    assert not list(copy.glob("*.json"))


def test_a_file_beside_those_of_a_release(agreement, late, tmp_path) -> None:
    """Not with them, not alone, and not together with a folder of its own."""
    lake, other = folder(tmp_path / "lake"), folder(tmp_path / "other")
    for number, rows in enumerate(np.array_split(np.arange(40), 2)):
        with Writer(lake / f"{number}.parquet", agreement.layout) as writer:
            writer.add(perturb_table(agreement, {k: v[rows] for k, v in PEOPLE.items()}))
    learn(agreement, lake)
    add_late(lake, agreement, late)
    shutil.copy(lake / "late.parquet", other)
    for words in (
        [lake],
        [lake / "0.parquet"],
        [lake / "late.parquet"],
        [lake / "0.parquet", lake / "1.parquet", other],
    ):
        with pytest.raises(ConflictError):
            learn(agreement, *words)
    assert not list(other.glob("*.json"))


def test_a_published_collection_beside_another(agreement, tmp_path) -> None:
    """Two databases that have published under one agreement are never learned from together."""
    for name in ("a", "b"):
        with Store() as kept:
            kept.add(agreement, perturb_table(agreement, PEOPLE))
            kept.publish(agreement)
            export(kept, agreement.fingerprint, tmp_path / f"{name}.parquet")
    with pytest.raises(ConflictError, match="published from some of these"):
        learn(agreement, tmp_path)


def test_the_same_sums_give_any_number_of_models(store, agreement, tmp_path) -> None:
    """Published, exported and learned again and again: always the sums of the one set."""
    published = store.publish(agreement)
    for name in ("one", "two"):
        export(store, agreement.fingerprint, folder(tmp_path / name) / "a.parquet")
        assert learn(agreement, tmp_path / name).to_json() == published.to_json()
    assert store.publish(agreement).to_json() == published.to_json()
