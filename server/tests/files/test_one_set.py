"""One agreement, one set: every order of ordinary commands that would release sums over two.

What two such sums give away is the first test; the others are the ways to them that are refused.
"""

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from blurfit import (
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    PublishedModel,
    Submissions,
    perturb_table,
)
from blurfit.files.engines import Threads
from blurfit.files.learn import Work, release_files, scanned
from blurfit.messages.files import Writer
from blurfit.model.release import PublishedMoments
from blurfit.release_record import ReleaseReceipt
from blurfit_server import Store
from blurfit_server.service.app import in_a_thread
from blurfit_server.store import release
from blurfit_server.store.export import export
from blurfit_server.store.store import backup, mark_restored, move_here, restore
from support.proposals import PEOPLE, propose, write_file

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


@pytest.fixture
def agreed():
    return propose()


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def learn(agreement, *words: object, receipt: Path | None = None):
    found = release_files(agreement, [str(word) for word in words], Threads(1), receipt=receipt)
    return PublishedModel.from_json(found.text())


def shown(path: Path, agreement) -> str:
    """The sums that a receipt beside the files makes public."""
    (found,) = path.glob("*.release.json")
    text = msgspec.json.decode(found.read_bytes(), type=ReleaseReceipt).moments
    assert text is not None
    assert PublishedMoments.from_json(text).fingerprint == agreement.fingerprint
    return text


def test_what_two_sums_give_away(agreement, late, tmp_path) -> None:
    """Their difference is the late person's own submission, with her noise alone."""
    write_file(tmp_path / "a.parquet", agreement, perturb_table(agreement, PEOPLE))
    write_file(tmp_path / "late.parquet", agreement, late)
    files = [str(tmp_path / "a.parquet"), str(tmp_path / "late.parquet")]
    sums = []
    for some in (files[:1], files):
        with scanned(agreement, Work.of(agreement, some), Threads(1)) as (found, _):
            sums.append(found.sums)
    (theirs,) = late.numbers
    np.testing.assert_allclose(sums[1] - sums[0], theirs, atol=1e-9)


def test_publish_export_and_learn_with_one_more(store, agreement, late, tmp_path) -> None:
    published = store.publish(agreement)
    export(store, agreement.fingerprint, tmp_path / "a.parquet")
    write_file(tmp_path / "late.parquet", agreement, late)
    with pytest.raises(ConflictError, match="published from some of these"):
        learn(agreement, tmp_path)
    assert not list(tmp_path.glob("*.json")), "and nothing is recorded"
    assert learn(agreement, tmp_path / "a.parquet").to_json() == published.to_json()
    text = store.moments_text(agreement.fingerprint)
    assert shown(tmp_path, agreement) == text, "the very same sums"


def test_learn_twice_with_two_receipts(agreement, late, tmp_path) -> None:
    lake = folder(tmp_path / "lake")
    write_file(lake / "a.parquet", agreement, perturb_table(agreement, PEOPLE))
    first = learn(agreement, lake, receipt=tmp_path / "first.json")
    write_file(lake / "late.parquet", agreement, late)
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
    write_file(lake / "a.parquet", agreement, perturb_table(agreement, PEOPLE))
    learn(agreement, lake, receipt=tmp_path / "kept.json")
    shutil.copy(lake / "a.parquet", copy)
    write_file(copy / "late.parquet", agreement, late)
    with pytest.raises(ConflictError, match=r"added: late\.parquet"):
        learn(agreement, copy, receipt=tmp_path / "kept.json")
    assert not list(copy.glob("*.json"))


def test_a_file_beside_those_of_a_release(agreement, late, tmp_path) -> None:
    """Not with them, not alone, and not together with a folder of its own."""
    lake, other = folder(tmp_path / "lake"), folder(tmp_path / "other")
    for number, rows in enumerate(np.array_split(np.arange(40), 2)):
        write_file(
            lake / f"{number}.parquet",
            agreement,
            perturb_table(agreement, {k: v[rows] for k, v in PEOPLE.items()}),
        )
    learn(agreement, lake)
    write_file(lake / "late.parquet", agreement, late)
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


# ---- ways that need no copy by hand


def test_a_url_with_one_folder_and_then_with_another(agreement, late, tmp_path) -> None:
    """Seen before: receipts in both folders, none for the URL, and two models."""
    a, b, lake = (folder(tmp_path / name) for name in ("a", "b", "lake"))
    write_file(lake / "far.parquet", agreement, perturb_table(agreement, PEOPLE))
    write_file(a / "late.parquet", agreement, late)
    write_file(b / "other.parquet", agreement, perturb_table(agreement, LATE))
    with in_a_thread(Starlette(routes=[Mount("/", StaticFiles(directory=lake))])) as url:
        far = f"{url}/far.parquet"
        with pytest.raises(InvalidValueError, match=r"far\.parquet.*--receipt"):
            learn(agreement, far, a)
        assert not list(tmp_path.rglob("*.release.json"))
        assert learn(agreement, far, a, receipt=tmp_path / "kept.json").count == 41
        for receipt in ("kept.json", "other.json"):
            with pytest.raises(ConflictError, match=r"added: other\.parquet"):
                learn(agreement, far, b, receipt=tmp_path / receipt)
    assert not list(b.glob("*.json"))


def test_export_move_and_export_again(store, agreement, late, tmp_path) -> None:
    """Seen before: the store wrote the same people a second time, to be learned from alone."""
    lake = folder(tmp_path / "lake")
    write_file(lake / "late.parquet", agreement, late)
    export(store, agreement.fingerprint, tmp_path / "a.parquet")
    (tmp_path / "a.parquet").rename(lake / "a.parquet")
    assert learn(agreement, lake).count == 41
    with pytest.raises(InfeasibleError, match="nor exported again"):
        export(store, agreement.fingerprint, tmp_path / "a.parquet")
    assert not list(tmp_path.glob("*a.parquet*"))


def killed(*_arguments: object) -> None:
    raise KeyboardInterrupt


def test_an_export_killed_before_its_file_has_its_name(
    store, agreement, tmp_path, monkeypatch
) -> None:
    """Complete on disk and written down as such: it gets its name, and is not written again."""
    place = tmp_path / "a.parquet"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            export(store, agreement.fingerprint, place)
    (part,) = tmp_path.iterdir()
    before = part.read_bytes()
    assert export(store, agreement.fingerprint, place) == 40
    assert [one.name for one in tmp_path.iterdir()] == ["a.parquet"]
    assert place.read_bytes() == before
    with pytest.raises(InfeasibleError, match="nor exported again"):
        export(store, agreement.fingerprint, place)
    assert learn(agreement, place).count == 40


def test_an_export_killed_before_it_was_complete(store, agreement, tmp_path, monkeypatch) -> None:
    """Nothing could be learned from it: it may be repeated, to the same place."""
    with monkeypatch.context() as patched:
        patched.setattr(Writer, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InfeasibleError, match=r"a\.parquet.*nor exported again"):
        export(store, agreement.fingerprint, tmp_path / "b.parquet")
    assert export(store, agreement.fingerprint, tmp_path / "a.parquet") == 40


def test_of_two_exports_at_once_one_is_written(place, agreement, tmp_path, monkeypatch) -> None:
    """The second one finds out when its file is complete, and removes it."""
    add, out = Writer.add, tmp_path / "a.parquet"
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.close_collection(agreement.fingerprint)

        def export_in_between(writer: Writer, table: Submissions) -> None:
            monkeypatch.setattr(Writer, "add", add)
            export(store, agreement.fingerprint, out)
            add(writer, table)

        monkeypatch.setattr(Writer, "add", export_in_between)
        with pytest.raises(InfeasibleError, match="nor exported again"):
            export(store, agreement.fingerprint, out)
    assert [one.name for one in tmp_path.glob("*a.parquet*")] == ["a.parquet"]


@pytest.mark.parametrize("how", ["moved", "renamed", "linked", "copied"])
def test_a_file_away_from_its_receipt(agreement, late, tmp_path, how) -> None:
    """A file of a release is known wherever it is: alone and with others it is refused."""
    lake, other = folder(tmp_path / "lake"), folder(tmp_path / "other")
    for number, rows in enumerate(np.array_split(np.arange(40), 2)):
        write_file(
            lake / f"{number}.parquet",
            agreement,
            perturb_table(agreement, {k: v[rows] for k, v in PEOPLE.items()}),
        )
    learn(agreement, lake)
    there = other / ("new.parquet" if how == "renamed" else "0.parquet")
    if how == "linked":
        there.hardlink_to(lake / "0.parquet")
    elif how == "copied":
        shutil.copy(lake / "0.parquet", there)
    else:
        (lake / "0.parquet").rename(there)
    with pytest.raises(ConflictError, match=r"releases\.db"):
        learn(agreement, other)
    write_file(other / "late.parquet", agreement, late)
    with pytest.raises(ConflictError, match=r"releases\.db"):
        learn(agreement, other)
    assert not list(other.glob("*.json"))


def test_all_files_moved_and_renamed_give_the_release_again(tmp_path) -> None:
    """And noise of the database is not drawn a second time."""
    agreement = propose(database_noise=True)
    lake, other = folder(tmp_path / "lake"), folder(tmp_path / "other")
    write_file(lake / "a.parquet", agreement, perturb_table(agreement, PEOPLE))
    first = learn(agreement, lake)
    (lake / "a.parquet").rename(other / "b.parquet")
    assert learn(agreement, other).to_json() == first.to_json()
    assert shown(other, agreement) == shown(lake, agreement)


def test_one_receipt_folder_serves_several_agreements(agreement, tmp_path) -> None:
    """As the waves of a plan need, each of which is an agreement."""
    kept, lake = folder(tmp_path / "kept"), folder(tmp_path / "lake")
    for number, one in enumerate((agreement, propose(epsilon=2))):
        write_file(lake / f"{number}.parquet", one, perturb_table(one, PEOPLE))
        learn(one, lake / f"{number}.parquet", receipt=kept)
    assert len(list(kept.iterdir())) == 2


# ---- backups


@pytest.fixture
def backed_up(agreed, tmp_path) -> Path:
    """Backups of Monday and Tuesday, one person apart, of a store that is lost."""
    with Store(tmp_path / "store.db") as kept:
        kept.add(agreed, perturb_table(agreed, PEOPLE))
        backup(tmp_path / "store.db", tmp_path / "monday.db")
        kept.add(agreed, perturb_table(agreed, LATE))
        backup(tmp_path / "store.db", tmp_path / "tuesday.db")
    (tmp_path / "store.db").unlink()
    return tmp_path


@pytest.mark.parametrize("second", ["monday.db", "tuesday.db"])
def test_restore_twice_and_publish_both(agreed, backed_up, second) -> None:
    """Two backups of a lost store, or one restored twice: one of them goes on."""
    restore(backed_up / "monday.db", backed_up / "one.db", original_lost=True)
    with pytest.raises(InvalidValueError, match=r"one\.db.*could publish too"):
        restore(backed_up / second, backed_up / "two.db", original_lost=True)
    assert restore(backed_up / second, backed_up / "two.db").closed == (agreed.fingerprint,)
    (backed_up / "one.db").unlink()  # lost as well
    assert restore(backed_up / second, backed_up / "three.db", original_lost=True).closed == ()


def test_restore_while_the_original_is_there(agreed, backed_up) -> None:
    restore(backed_up / "monday.db", backed_up / "store.db", original_lost=True)
    backup(backed_up / "store.db", backed_up / "wednesday.db")
    with pytest.raises(InvalidValueError, match=r"store\.db.*could publish too"):
        restore(backed_up / "wednesday.db", backed_up / "again.db", original_lost=True)
    (backed_up / "store.db").unlink()
    Store(backed_up / "store.db").close()  # another one under its name
    backup(backed_up / "store.db", backed_up / "new.db")
    assert (
        restore(backed_up / "wednesday.db", backed_up / "again.db", original_lost=True).closed == ()
    )


def test_back_up_in_the_middle_of_an_export(agreed, tmp_path, monkeypatch) -> None:
    """The original may have completed it: what is restored neither publishes nor exports."""
    with Store(tmp_path / "store.db") as kept:
        kept.add(agreed, perturb_table(agreed, PEOPLE))
        kept.close_collection(agreed.fingerprint)
        with monkeypatch.context() as patched:
            patched.setattr(Writer, "add", killed)
            with pytest.raises(KeyboardInterrupt):
                export(kept, agreed.fingerprint, tmp_path / "a.parquet")
        backup(tmp_path / "store.db", tmp_path / "backup.db")
        export(kept, agreed.fingerprint, tmp_path / "a.parquet")
    (tmp_path / "store.db").unlink()
    restore(tmp_path / "backup.db", tmp_path / "again.db", original_lost=True)
    with Store(tmp_path / "again.db") as again:
        with pytest.raises(InfeasibleError, match="restored from a backup"):
            again.publish(agreed)
        with pytest.raises(InfeasibleError, match="restored from a backup"):
            export(again, agreed.fingerprint, tmp_path / "a.parquet")


# ---- copies of a store


def copied(store: Path, to: Path) -> Path:
    """Copy a store's files as a backup of files does."""
    to.mkdir(exist_ok=True)
    for path in store.parent.glob(f"{store.name}*"):
        shutil.copy(path, to)
    return to / store.name


@pytest.fixture
def original(agreed, tmp_path) -> Path:
    """A store that collects from 40 people."""
    with Store(folder(tmp_path / "original") / "store.db") as kept:
        kept.add(agreed, perturb_table(agreed, PEOPLE))
    return tmp_path / "original" / "store.db"


def publish(place: Path | str, agreed, late: Submissions | None = None) -> PublishedModel:
    with Store(place) as kept:
        if late is not None:
            kept.add(agreed, late)
        return kept.publish(agreed)


def lose(store: Path) -> None:
    store.parent.rename(store.parent.with_name("gone"))


def test_a_plain_copy_of_a_store_is_refused(agreed, original, tmp_path) -> None:
    """Seen before: the original published 41 people, and the copy 40."""
    copy = copied(original, tmp_path / "copy")
    assert publish(original, agreed, perturb_table(agreed, LATE)).count == 41
    with pytest.raises(InvalidValueError, match="restore --moved"):
        Store(copy)
    with pytest.raises(InvalidValueError, match=r"original/store\.db.*could publish too"):
        move_here(copy)
    lose(original)
    move_here(copy)
    with Store(copy) as kept:
        with pytest.raises(InfeasibleError, match="released from this store, or a copy"):
            kept.publish(agreed)
        with pytest.raises(InfeasibleError, match="released from this store, or a copy"):
            export(kept, agreed.fingerprint, tmp_path / "a.parquet")


def test_a_copy_of_the_same_people_gives_the_same_release(original, agreed, tmp_path) -> None:
    copy = copied(original, tmp_path / "copy")
    first = publish(original, agreed)
    lose(original)
    move_here(copy)
    assert publish(copy, agreed).to_json() == first.to_json()


def test_killed_between_the_record_and_the_store(original, agreed, monkeypatch) -> None:
    """The text is in the record, and what the store then publishes."""
    with monkeypatch.context() as patched, Store(original) as kept:
        patched.setattr(release, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            kept.publish(agreed)
    with Store(original) as kept:
        recorded = kept.record_of(kept.collection(agreed.fingerprint)).find()
        assert recorded is not None
        kept.publish(agreed)
        assert kept.moments_text(agreed.fingerprint) == recorded.moments


def test_a_copy_and_an_export(original, agreed, tmp_path) -> None:
    """The export of an unpublished collection is its release, also to the same file."""
    copy = copied(original, tmp_path / "copy")
    with Store(original) as kept:
        kept.close_collection(agreed.fingerprint)
        export(kept, agreed.fingerprint, tmp_path / "a.parquet")
    lose(original)
    move_here(copy)
    with Store(copy) as kept:
        kept.add(agreed, perturb_table(agreed, LATE))
        kept.close_collection(agreed.fingerprint)
        with pytest.raises(InfeasibleError, match="of this store or a copy"):
            export(kept, agreed.fingerprint, tmp_path / "a.parquet")
        with pytest.raises(InfeasibleError, match="released from this store, or a copy"):
            kept.publish(agreed)
    assert learn(agreed, tmp_path / "a.parquet").count == 40


def test_a_store_that_a_backup_of_files_has_put_back(original, agreed, tmp_path) -> None:
    """At its place, and yet another file: closed for good, or declared to be up to date."""
    copy = copied(original, tmp_path / "copy")
    publish(original, agreed, perturb_table(agreed, LATE))
    lose(original)
    shutil.copytree(copy.parent, original.parent)
    with pytest.raises(InvalidValueError, match="restore --in-place"):
        Store(original)
    assert mark_restored(original) == (agreed.fingerprint,)
    with Store(original) as kept, pytest.raises(InfeasibleError, match="restored from a backup"):
        kept.publish(agreed)


def test_a_store_that_was_marked_as_restored_while_it_was_open(original, agreed, tmp_path) -> None:
    """Seen before: two releases, as the open store recorded under the identity that it had had."""
    with Store(original) as kept:
        assert mark_restored(original) == (agreed.fingerprint,)
        later = propose(quorum=35)
        kept.add(later, perturb_table(later, PEOPLE))
        copy = copied(original, tmp_path / "copy")
        kept.add(later, perturb_table(later, LATE))
        assert kept.publish(later).count == 41
    lose(original)
    move_here(copy)
    with Store(copy) as kept, pytest.raises(InfeasibleError, match="store, or a copy"):
        kept.publish(later)


def test_an_export_does_not_outlast_a_restore(original, agreed, tmp_path, monkeypatch) -> None:
    """What a restored store ends is in no file that is written meanwhile."""
    with Store(original) as kept:
        kept.close_collection(agreed.fingerprint)
        written = kept.submissions

        def restored_meanwhile(fingerprint: str):
            mark_restored(original)
            return written(fingerprint)

        monkeypatch.setattr(kept, "submissions", restored_meanwhile)
        with pytest.raises(InfeasibleError, match="restored from a backup"):
            export(kept, agreed.fingerprint, tmp_path / "a.parquet")
    assert not list(tmp_path.glob("*.parquet"))


def test_a_store_that_is_moved_or_linked_goes_on(original, agreed, tmp_path) -> None:
    """On its disk it stays the file that it was, whatever the way there is called."""
    (tmp_path / "link").symlink_to(original.parent)
    Store(tmp_path / "link" / "store.db").close()
    (original.parent / "hard.db").hardlink_to(original)
    Store(original.parent / "hard.db").close()
    copy = copied(original, tmp_path / "copy")
    with pytest.raises(InvalidValueError, match=r"original/store\.db.*could publish too"):
        move_here(copy)
    original.parent.rename(tmp_path / "new")
    Store(tmp_path / "new" / "store.db").close()
    assert publish(tmp_path / "new" / "store.db", agreed).count == 40


def test_the_original_is_lost_but_its_release_is_known(agreed, original, tmp_path) -> None:
    """Seen before: after `mv`, a restored store went on and published a second time."""
    backup(original, tmp_path / "monday.db")
    publish(original, agreed, perturb_table(agreed, LATE))
    lose(original)
    with pytest.raises(InvalidValueError, match="has been released"):
        restore(tmp_path / "monday.db", tmp_path / "again.db", original_lost=True)
    assert not (tmp_path / "again.db").exists()
    restore(tmp_path / "monday.db", tmp_path / "again.db")
    with (
        Store(tmp_path / "again.db") as again,
        pytest.raises(InfeasibleError, match="restored from a backup"),
    ):
        again.publish(agreed)


def test_what_a_backup_holds_does_not_keep_the_rest_from_going_on(original, agreed, tmp_path):
    other = propose(epsilon=2)
    publish(original, agreed)
    with Store(original) as kept:
        kept.add(other, perturb_table(other, PEOPLE))
    backup(original, tmp_path / "monday.db")
    lose(original)
    restore(tmp_path / "monday.db", tmp_path / "again.db", original_lost=True)
    assert publish(tmp_path / "again.db", other).count == 40


def test_a_copied_postgresql(places, agreed) -> None:
    """A database made from another one is told by its number, as one from a dump is."""
    url, copy = places.fresh(), places.fresh()
    with Store(url) as kept:
        kept.add(agreed, perturb_table(agreed, PEOPLE))
    places.copy(url, copy)
    assert publish(url, agreed, perturb_table(agreed, LATE)).count == 41
    with pytest.raises(InvalidValueError, match="restore --moved"):
        Store(copy)
    move_here(copy)
    with Store(copy) as kept, pytest.raises(InfeasibleError, match="from this store, or a copy"):
        kept.publish(agreed)
