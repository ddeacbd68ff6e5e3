"""Seeds make CSVs equal to the last byte: with other workers, and after a kill."""

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from blurfit import InvalidValueError
from blurfit_lab.experiments import figures
from blurfit_lab.experiments.figures import ExcessRisk, PaperFigure
from blurfit_lab.experiments.runner import (
    Provenance,
    Row,
    known_of,
    read_csv,
    run,
    write_csv,
)
from support import processes

FIGURE = PaperFigure("fig2a", label=True, epsilon=1000.0, quorums=(128, 512))


@pytest.fixture(scope="module", autouse=True)
def small_cells():
    """Of one trial each: two make as many cells as there are in a run of six."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "TRIALS_AT_ONCE", 1)
        yield


@pytest.fixture(scope="module")
def whole(people, small_cells, tmp_path_factory) -> bytes:
    out = tmp_path_factory.mktemp("whole")
    return run(FIGURE, people, trials=2, workers=1, out=out).read_bytes()


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_workers_change_nothing(people, tmp_path, whole) -> None:
    assert run(FIGURE, people, trials=2, workers=2, out=tmp_path).read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["fig2a.csv"]  # no journal is left


class Killed(BaseException):
    """As by a signal: nothing catches it."""


@pytest.mark.parametrize("after", [1, 3])
def test_a_killed_run_resumes_to_the_same_csv(people, tmp_path, whole, after) -> None:
    def kill(done: int, total: int) -> None:
        if done == after:
            raise Killed

    with pytest.raises(Killed):
        run(FIGURE, people, trials=2, workers=1, out=tmp_path, progress=kill)
    journal = tmp_path / "fig2a.journal"
    assert len(journal.read_text().splitlines()) == 1 + after
    with journal.open("a") as file:
        file.write('{"cell": "128:0:1", "ro')  # cut off in the middle of a line
    calls = []
    path = run(
        FIGURE,
        people,
        trials=2,
        workers=1,
        out=tmp_path,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert path.read_bytes() == whole
    assert calls[0] == (after + 1, 5)


def test_another_seed_is_another_csv(people, tmp_path, whole) -> None:
    others = replace(people, seed=people.seed + 1)
    assert run(FIGURE, others, trials=2, workers=1, out=tmp_path).read_bytes() != whole


def test_zero_trials_are_refused(people, tmp_path) -> None:
    with pytest.raises(InvalidValueError, match="trials=0"):
        run(FIGURE, people, trials=0, workers=1, out=tmp_path)


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_workers_end_when_the_run_is_killed(people, tmp_path) -> None:
    terms = {"trials": 10_000, "workers": 2, "out": tmp_path}  # minutes: it will not end first
    process = processes.start(partial(run, FIGURE, people, **terms))
    journal = tmp_path / "fig2a.journal"
    try:
        while not journal.exists() or len(journal.read_text().splitlines()) < 4:
            assert process.poll() is None
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    finally:
        process.kill()
        process.wait()
    assert children
    given_up = time.monotonic() + 600  # which no machine is slow enough for
    while alive := [child for child in children if not is_gone(child)]:
        assert time.monotonic() < given_up, alive
        time.sleep(0.05)


def is_gone(process: str) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


ROWS = [Row("moment", "default", 0.1, 128, 0, 1 / 3), Row("moment", "default", 0.1, 128, 1, 2e-17)]


def test_csv_keeps_every_digit(tmp_path) -> None:
    write_csv(tmp_path / "a.csv", ROWS)
    assert read_csv(tmp_path / "a.csv") == ROWS


@pytest.mark.parametrize("cut", [0, 1, 20, 60])
def test_a_journal_has_whole_cells_of_its_own_question(tmp_path, cut) -> None:
    journal = tmp_path / "a.journal"
    assert known_of(journal, {"trials": 3}) == {}
    with journal.open("a") as file:
        file.writelines(json.dumps({"cell": cell, "rows": ROWS}) + "\n" for cell in ("one", "two"))
    text = journal.read_text()
    journal.write_text(text[: len(text) - cut])
    whole = {"one": ROWS} if cut else {"one": ROWS, "two": ROWS}
    assert known_of(journal, {"trials": 3}) == whole
    assert known_of(journal, {"trials": 4}) == {}


def test_cells_are_within_the_population() -> None:
    cells = ExcessRisk(quorums=(500, 900, 980)).cells(range(1000), 100)  # only their number counts
    assert cells == [f"{epsilon}:{n}:100" for epsilon in (0.1, 1.0) for n in (500, 900)]


def test_facts(tmp_path) -> None:
    assert Provenance.read(tmp_path) == Provenance()
    facts = Provenance("ACS", synthetic=False, rows=7, trials=2, workers=1)
    facts.took("fig1a", 1.26, 2.5)
    facts.write(tmp_path)
    assert Provenance.read(tmp_path) == facts
    assert facts.seconds == {"fig1a": 1.3}
    assert facts.computing == {"fig1a": 2.5}
    assert facts.title == "ACS"
    assert "SYNTHETIC" in Provenance("made up").title
