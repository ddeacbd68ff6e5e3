"""Seeds make CSVs equal to the last byte: with other workers, and after a kill."""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from blurfit import InvalidValueError
from blurfit_lab.experiments import figures
from blurfit_lab.experiments.figures import PaperFigure
from blurfit_lab.experiments.runner import run
from support import processes

# So weak a promise that no posterior has to be sampled: seconds instead of minutes.
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
