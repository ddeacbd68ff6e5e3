"""No record is blurred twice, whatever happens in between."""

import functools
import secrets
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from blurfit.contributor import journal as module
from blurfit.contributor.journal import Journal, Portion
from blurfit.errors import ClosedError, ConflictError, InvalidValueError

FINGERPRINT, DIGEST, ROWS = "a1" * 32, "b2" * 32, 7


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "people.csv.journal"


@pytest.fixture
def impatient(monkeypatch) -> None:
    """Whoever finds the file in use says so at once, and not after five seconds."""
    connect = functools.partial(sqlite3.connect, timeout=0.0)
    monkeypatch.setattr(module.sqlite3, "connect", connect)


def opened(path: Path, fingerprint: str = FINGERPRINT, digest: str = DIGEST, rows: int = ROWS):
    return Journal(path, fingerprint, "service", digest, rows)


def on_disk(path: Path) -> bytes:
    """The file, and whatever SQLite keeps beside it."""
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


@pytest.mark.parametrize(
    "change", [{"digest": "c3" * 32}, {"rows": 8}, {"fingerprint": "c3" * 32}], ids=str
)
def test_another_table_or_agreement_is_refused_and_nothing_is_lost(path, change) -> None:
    with opened(path) as journal:
        journal.record(Portion(0, 3, (b"first",)))
    with pytest.raises(ConflictError, match="the table has changed") as refusal:
        opened(path, **change)
    assert str(path) in str(refusal.value)
    with opened(path) as journal:  # at once: whoever was refused holds nothing
        assert list(journal.pending()) == [Portion(0, 3, (b"first",))]


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_two_runs_at_once_are_refused(path, impatient, known: bool) -> None:
    if known:
        with opened(path) as journal:
            journal.record(Portion(0, 3, (b"first",)))
    with opened(path), pytest.raises(InvalidValueError, match="no other run is using"):
        opened(path)
    with opened(path) as journal:
        assert journal.blurred() == (3 if known else 0)


@pytest.mark.parametrize("size", [64, 5000, 300_000])
def test_acknowledged_numbers_are_overwritten(path, size: int) -> None:
    first, second = secrets.token_bytes(size), secrets.token_bytes(size)
    parts = [first[at : at + 16] for at in range(0, size - 16, 512)]
    with opened(path) as journal:
        journal.record(Portion(0, 3, (first,)))
        journal.record(Portion(3, 4, (second,)))
        here = on_disk(path)
        assert sum(part in here for part in parts) > len(parts) / 2  # some lie across two pages
        journal.acknowledge(Portion(0, 3, ()))
        here = path.read_bytes()
        assert not any(part in here for part in parts)
        assert second[:16] in on_disk(path)
    here = on_disk(path)
    assert not any(part in here for part in parts)
    assert second[:16] in on_disk(path)


def test_acknowledged_numbers_are_in_no_file_beside_it_either(path) -> None:
    """A run that is killed leaves behind what lies beside the journal at that moment."""
    message = secrets.token_bytes(5000)
    with opened(path) as journal:
        journal.record(Portion(0, 3, (message,)))
        journal.acknowledge(Portion(0, 3, ()))
        journal.record(Portion(3, 4, (b"second",)))
        here = on_disk(path)
        assert not any(message[at : at + 16] in here for at in range(0, 4900, 100))


def test_what_was_recorded_outlives_a_killed_process(path) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from blurfit.contributor.journal import Journal, Portion\n"
        f"journal = Journal(Path(sys.argv[1]), {FINGERPRINT!r}, 'service', {DIGEST!r}, {ROWS})\n"
        "journal.record(Portion(0, 3, (b'first',)))\n"
        "journal.record(Portion(3, 4, (b'second',)))\n"
        "journal.acknowledge(Portion(0, 3, ()))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=600)
    assert killed.returncode == -signal.SIGKILL
    with opened(path) as journal:
        assert journal.blurred() == 7
        assert list(journal.pending()) == [Portion(3, 4, (b"second",))]


def test_a_file_of_another_kind_is_refused_and_left_as_it_is(path) -> None:
    content = b"age,income\n" * 100
    path.write_bytes(content)
    with pytest.raises(InvalidValueError, match="to be a journal that can be written"):
        opened(path)
    assert path.read_bytes() == content


def test_a_journal_for_a_file_is_none_for_a_service(path) -> None:
    with opened(path):
        pass
    with pytest.raises(ConflictError, match=r"for a file \(--out\)"):
        Journal(path, FINGERPRINT, "file", DIGEST, ROWS)


def test_a_part_of_which_nothing_has_left_may_be_taken_back(tmp_path) -> None:
    """As if it had never been blurred; from the moment when it may have left it never is."""
    path = tmp_path / "journal"
    with Journal(path, "plan", "service", "digest", 4) as kept:
        sent = Portion(0, 2, (b"share 1", b"seed 1"), "wave 1")
        kept.record(sent, has_left=False)
        assert not kept.has_left(sent)
        kept.leave(sent)
        newest = Portion(2, 2, (b"share 2", b"seed 2"), "wave 1")
        kept.record(newest, has_left=False)
    with Journal(path, "plan", "service", "digest", 4) as again:  # it is on disk
        assert [again.has_left(one) for one in (sent, newest)] == [True, False]
        again.take_back(newest)
        assert again.blurred() == 2
        assert [one.messages for one in again.pending()] == [(b"share 1", b"seed 1")]
        with pytest.raises(ConflictError, match="nothing has left"):
            again.take_back(sent)
        whole = Portion(2, 2, (b"submissions",), "wave 2")
        again.record(whole)
        assert again.has_left(whole), "with one database it may have, at once"
        with pytest.raises(ConflictError):
            again.take_back(whole)
    assert b"seed 2" not in path.read_bytes()


def test_a_part_is_handed_over_seeds_first_and_taken_back_if_they_alone_have_left(tmp_path) -> None:
    seen = []

    def closed(part: Portion) -> None:
        raise ClosedError(f"{part.under} has closed")

    with Journal(tmp_path / "journal", "plan", "service", "digest", 4) as kept:
        part = Portion(0, 2, (b"share", b"seed"), "wave 1")
        kept.record(part, has_left=False)
        assert kept.hand_over(part, seen.append, closed) == "taken back"
        assert kept.blurred() == 0
        assert not seen, "nothing of the records was sent"
        kept.record(part, has_left=False)
        with pytest.raises(ClosedError):  # it is said to collect, and takes nothing again
            kept.hand_over(part, seen.append, closed)
        assert kept.blurred() == 0
        kept.record(part, has_left=False)
        with pytest.raises(ClosedError):  # there is no other wave
            kept.hand_over(part, closed, lambda _: seen.append(kept.has_left(part)), "wave 1")
        assert seen == [False], "the seeds went before it was written down that anything may leave"
        assert kept.has_left(part)
        assert [one.start for one in kept.pending()] == [0], "it may be sent again as it is"
        assert kept.hand_over(part, closed, closed) == "late", "the seeds are not announced again"
        assert (kept.blurred(), list(kept.pending())) == (2, []), "for good"
