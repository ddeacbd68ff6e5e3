"""One release of a set of files, whoever asks, however often, and killed wherever."""

import itertools
import os
import threading
from pathlib import Path

import msgspec
import pytest

from blurfit import ConflictError, InfeasibleError, InvalidValueError, StorageError
from blurfit import release_record as module
from blurfit.model.release import Release
from blurfit.release_record import Identity, ReleaseReceipt, ReleaseRecord, Remembered
from support import processes

FILES = [Identity("a.parquet", 10, "aa"), Identity("b.parquet", 20, "bb")]
PRINT = "f0" * 32
FIRST, SECOND = Release("first", "sums"), Release("second")


@pytest.fixture
def places(tmp_path) -> list[str]:
    """Files in two folders."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return [str(tmp_path / "one" / "a.parquet"), str(tmp_path / "two" / "b.parquet")]


def of(places, files=FILES, **options) -> ReleaseRecord:
    return ReleaseRecord.of_files(PRINT, places, files, **options)


def test_what_another_folder_has_is_released_and_nothing_else(places, tmp_path) -> None:
    """Noise of the database is drawn anew for each release: a second one must not come out."""
    of(places).record(FIRST)
    (tmp_path / "ahead").mkdir()
    moved = [str(tmp_path / "ahead" / "a.parquet"), places[1]]
    assert of(moved).record(SECOND) == FIRST, "if it came in between"
    Path(places[0]).with_name(f"{PRINT[:12]}.release.json").unlink()
    assert of(places).find() == FIRST


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([*FILES, Identity("c.parquet", 1, "cc")], "added: c.parquet"),
        (FILES[:1], "missing: b.parquet"),
        ([FILES[0], Identity("b.parquet", 20, "xx")], "the same names, other contents"),
    ],
)
def test_a_changed_set_is_refused(places, files, words) -> None:
    of(places).record(FIRST)
    for folders in (places, places[:1], places[1:]):
        with pytest.raises(ConflictError, match=words):
            of(folders, files).find()
        with pytest.raises(ConflictError, match="give away whom they differ in"):
            of(folders, files).record(SECOND)
    assert of(places).find() == FIRST


def test_sets_that_share_a_folder_exclude_each_other(places, tmp_path) -> None:
    (tmp_path / "three").mkdir()
    other = [places[1], str(tmp_path / "three" / "c.parquet")]
    of(places).record(FIRST)
    with pytest.raises(ConflictError):
        of(other, FILES[1:]).record(SECOND)
    assert not list((tmp_path / "three").iterdir()), "its claim is gone"


def test_that_there_is_no_model_is_recorded_too(places) -> None:
    for _ in range(2):
        with pytest.raises(InfeasibleError, match="without curvature"):
            of(places).record(Release(refusal="without curvature")).text()
    with pytest.raises(InfeasibleError, match="without curvature"):
        of(places).find().text()
    with pytest.raises(InfeasibleError, match="without curvature"):
        of(places).record(SECOND).text()


def record_and_die(places: list[str], last: int) -> None:
    """Record a release, in a process that is gone after some step of it."""
    steps = itertools.count(1)

    def counted(function):
        def run(*arguments):
            result = function(*arguments)
            if next(steps) == last:
                os._exit(9)
            return result

        return run

    for kind in (module._Beside, Remembered):
        kind.swap = counted(kind.swap)
    of(places).record(FIRST)


@pytest.mark.parametrize("step", range(1, 6))
def test_killed_after_each_step(places, step) -> None:
    """Either nothing was released and the same run may be repeated, or the first model stays."""
    assert processes.start(record_and_die, places, step).wait(300) == 9
    found = of(places).find()
    assert found == (None if step < 3 else FIRST)
    if found is None:
        for folders, files in ((places[:1], FILES[:1]), (places[1:], FILES[1:])):
            try:
                assert of(folders, files).find() is None
            except ConflictError as error:
                claim = str(error)
                assert "that was never finished" in claim
    assert of(places).record(SECOND) == (found or SECOND)
    assert of(places).find() == (found or SECOND)


def test_of_many_at_once_one_wins(places) -> None:
    told: list[Release] = []
    start = threading.Barrier(12)

    def run(number: int) -> None:
        start.wait()
        told.append(of(places).record(Release(f"model {number}")))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 12
    assert set(told) == {of(places).find()}


def test_a_receipt_that_is_none_is_refused(places) -> None:
    place = of(places).places[0]
    place.write_text("{}")
    with pytest.raises(InvalidValueError, match="restore it from a backup"):
        of(places).find()
    place.write_bytes(
        msgspec.json.encode(ReleaseReceipt(module.FORMAT, 2, PRINT, [], str(place), model="x"))
    )
    with pytest.raises(ConflictError, match="version 2"):
        of(places).find()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(places, tmp_path) -> None:
    (tmp_path / "one").chmod(0o500)
    with pytest.raises(InvalidValueError, match="Make the folder writable"):
        of(places).record(FIRST)
    assert of(places).find() is None


# ---- remembered


FILES_REMEMBERED = tuple(Identity(name, size, name * 32) for size, name in enumerate("abc"))


def of_remembered(*files: Identity, fingerprint: str = "f0" * 32) -> Remembered:
    return Remembered(fingerprint, files)


def test_a_claim_is_replaced_or_removed() -> None:
    assert of_remembered(*FILES_REMEMBERED).swap(None, b"claim")
    assert of_remembered(*FILES_REMEMBERED).swap(b"claim", b"complete")
    assert of_remembered(FILES_REMEMBERED[1]).receipts() == [b"complete"]
    assert not of_remembered(*FILES_REMEMBERED).swap(b"claim", None)
    assert of_remembered(*FILES_REMEMBERED).receipts() == [b"complete"], (
        "somebody else completed it: that stays"
    )
    assert of_remembered(*FILES_REMEMBERED).swap(b"complete", None)
    assert of_remembered(*FILES_REMEMBERED).receipts() == []
    assert of_remembered(FILES_REMEMBERED[1]).swap(None, b"another")


def test_a_home_that_cannot_be_written_is_an_error(home, monkeypatch) -> None:
    home.write_text("a file")
    with pytest.raises(StorageError, match="BLURFIT_HOME"):
        of_remembered(*FILES_REMEMBERED).receipts()
    (home.parent / "damaged").mkdir()
    (home.parent / "damaged" / "releases.db").write_text("no database" * 1000)
    monkeypatch.setenv("BLURFIT_HOME", str(home.parent / "damaged"))
    with pytest.raises(StorageError, match=r"releases\.db"):
        of_remembered(*FILES_REMEMBERED).receipts()


def test_an_account_without_a_home_is_told_to_name_one(monkeypatch) -> None:
    """As in a container that runs as a number: nothing is released, and it says what to do."""
    for name in ("BLURFIT_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    with pytest.raises(StorageError, match="BLURFIT_HOME must name a folder"):
        of_remembered(*FILES_REMEMBERED).receipts()


# ---- stores


def test_what_a_store_released_is_known_by_its_identity() -> None:
    """The second one gets the first one's release, and has to see that it is another."""
    record = ReleaseRecord.of_store(PRINT, b"identity")
    assert record.find() is None
    assert record.record(FIRST) == FIRST
    assert ReleaseRecord.of_store(PRINT, b"identity").record(SECOND) == FIRST
    assert ReleaseRecord.of_store(PRINT, b"another").find() is None
    assert ReleaseRecord.of_store("0f" * 32, b"identity").find() is None
