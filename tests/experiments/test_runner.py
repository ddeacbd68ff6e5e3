"""Seeds make CSVs equal to the last byte: with other workers, and after a kill."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from blurfit import InvalidValueError
from blurfit.experiments.figures import PaperFigure
from blurfit.experiments.runner import run

# So weak a promise that no posterior has to be sampled: seconds instead of minutes.
FIGURE = PaperFigure("fig2a", label=True, epsilon=1000.0, quorums=(128, 512))


@pytest.fixture(scope="module")
def whole(people, tmp_path_factory) -> bytes:
    out = tmp_path_factory.mktemp("whole")
    return run(FIGURE, people, trials=6, workers=1, out=out).read_bytes()


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_workers_change_nothing(people, tmp_path, whole) -> None:
    assert run(FIGURE, people, trials=6, workers=2, out=tmp_path).read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["fig2a.csv"]  # no journal is left


class Killed(BaseException):
    """As by a signal: nothing catches it."""


@pytest.mark.parametrize("after", [1, 3])
def test_a_killed_run_resumes_to_the_same_csv(people, tmp_path, whole, after) -> None:
    def kill(done: int, total: int) -> None:
        if done == after:
            raise Killed

    with pytest.raises(Killed):
        run(FIGURE, people, trials=6, workers=1, out=tmp_path, progress=kill)
    journal = tmp_path / "fig2a.journal"
    assert len(journal.read_text().splitlines()) == 1 + after
    with journal.open("a") as file:
        file.write('{"cell": "128:0:5", "ro')  # cut off in the middle of a line
    calls = []
    path = run(
        FIGURE,
        people,
        trials=6,
        workers=1,
        out=tmp_path,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert path.read_bytes() == whole
    assert calls[0] == (after + 1, 5)


def test_another_seed_is_another_csv(people, tmp_path) -> None:
    experiment = PaperFigure("fig2a", label=True, epsilon=1000.0, quorums=(128,))
    first = run(experiment, people, trials=2, workers=1, out=tmp_path / "a").read_bytes()
    again = run(experiment, people, trials=2, workers=1, out=tmp_path / "b").read_bytes()
    more = run(experiment, people, trials=3, workers=1, out=tmp_path / "c").read_bytes()
    assert first == again != more


def test_zero_trials_are_refused(people, tmp_path) -> None:
    with pytest.raises(InvalidValueError, match="trials=0"):
        run(FIGURE, people, trials=0, workers=1, out=tmp_path)


SCRIPT = """
from pathlib import Path
from blurfit.datasets import make_census
from blurfit.experiments.figures import PaperFigure
from blurfit.experiments.cohort import Cohort
from blurfit.experiments.runner import run
people = Cohort.of(make_census(5013, seed=1), seed=3)
figure = PaperFigure("fig2a", label=True, epsilon=1000.0, quorums=(128, 512))
run(figure, people, trials=10_000, workers=2, out=Path({out!r}))  # minutes: it will not end first
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_workers_end_when_the_run_is_killed(tmp_path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT.format(out=str(tmp_path))]
    journal = tmp_path / "fig2a.journal"
    with subprocess.Popen(command) as process:
        try:
            while not journal.exists() or len(journal.read_text().splitlines()) < 4:
                assert process.poll() is None
                time.sleep(0.05)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        finally:
            process.kill()
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
