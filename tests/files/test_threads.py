"""Threads: all of them, in order, and no more at a time than there is room for."""

import threading

import numpy as np
import pytest

from blurfit import Agreement, InvalidValueError, Numeric, Schema, perturb_table
from blurfit.files.engines import Threads
from blurfit.files.learn import Work
from blurfit.messages.files import Writer

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20)


@pytest.fixture
def plan(tmp_path) -> Work:
    """Twelve files of 50 people."""
    for number in range(12):
        people = {c: np.linspace(0, 100, 50) for c in ("age", "income")}
        with Writer(tmp_path / f"{number}.parquet", AGREEMENT.layout) as writer:
            writer.add(perturb_table(AGREEMENT, people))
    return Work.of(AGREEMENT, sorted(str(path) for path in tmp_path.iterdir()))


@pytest.mark.parametrize("count", [1, 3])
def test_everything_is_looked_at_once(plan, count) -> None:
    told: list[int] = []
    parts, suspects = Threads(count).scan(AGREEMENT.to_json(), plan.tasks, told.append)
    assert sum(rows for rows, _ in parts) == plan.rows == 600
    assert told == [50] * 12
    assert suspects is not None
    assert len(suspects) == 0
    found = list(Threads(count).records(AGREEMENT.to_json(), plan.tasks, None))
    assert [len(batch) for batch in found] == [50] * 12
    assert [int(batch["place"][0, 0]) for batch in found] == list(range(12)), "in order"


def test_no_more_at_a_time_than_there_are_threads() -> None:
    running, most = set(), []
    lock = threading.Lock()

    def work(item: int) -> int:
        with lock:
            running.add(item)
            most.append(len(running))
        threading.Event().wait(0.01)
        with lock:
            running.remove(item)
        return item

    assert list(Threads(3)._map(work, range(20))) == list(range(20))
    assert 1 < max(most) <= 3


def test_an_error_stops_the_rest(plan, tmp_path) -> None:
    (tmp_path / "3.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidValueError, match=r"3\.parquet"):
        Threads(2).scan(AGREEMENT.to_json(), plan.tasks, lambda _rows: None)
