"""Threads and a real cluster, whose workers may die: the same sums."""

import os
import signal
import sys
import threading

import dask
import numpy as np
import pytest

from blurfit import (
    Agreement,
    BlurfitError,
    InvalidValueError,
    Numeric,
    Schema,
    ServiceError,
    perturb_table,
)
from blurfit.files import learn
from blurfit.files import scan as module
from blurfit.files.learn import Work, totals
from blurfit.files.scan import Cluster, Threads
from blurfit.messages import files
from blurfit.messages.files import Writer
from support.stores import write_file

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20)


@pytest.fixture
def plan(tmp_path) -> Work:
    """Twelve files of 50 people."""
    for number in range(12):
        people = {c: np.linspace(0, 100, 50) for c in ("age", "income")}
        write_file(tmp_path / f"{number}.parquet", AGREEMENT, perturb_table(AGREEMENT, people))
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


# ---- cluster


SCHEMA_CLUSTER = Schema(
    features=[Numeric(f"x{i}", 0, 1) for i in range(13)], target=Numeric("income", 0, 1)
)
AGREEMENT_CLUSTER = Agreement.propose(
    SCHEMA_CLUSTER, epsilon=1, delta=1e-6, quorum=2_000, mechanism="input", weight_bound=2.0
)
ROWS = 8_000


@pytest.fixture
def plan_cluster(tmp_path, monkeypatch) -> Work:
    """Two files that share a quarter of their rows, in 20 tasks."""
    monkeypatch.setattr(files, "MOST_ROWS", 250)
    monkeypatch.setattr(learn, "GROUPS_AT_ONCE", 2)
    generator = np.random.default_rng(2)
    people = {
        c.name: generator.random(ROWS) for c in (*SCHEMA_CLUSTER.features, SCHEMA_CLUSTER.target)
    }
    table = perturb_table(AGREEMENT_CLUSTER, people)
    numbers = table.numbers
    for name, rows in (("a", slice(0, 5_000)), ("b", slice(3_000, ROWS))):
        with Writer(tmp_path / f"{name}.parquet", AGREEMENT_CLUSTER.layout) as writer:
            writer.append(table.identifiers[rows], numbers[rows])
    found = Work.of(AGREEMENT_CLUSTER, [str(tmp_path / f"{name}.parquet") for name in "ab"])
    assert len(found.tasks) == 20
    return found


def test_a_worker_that_dies_changes_nothing(plan_cluster) -> None:
    expected = totals(AGREEMENT_CLUSTER, plan_cluster, Threads(2))
    assert expected.count == ROWS
    seen: list[int] = []
    with Cluster(workers=2) as cluster:
        before = cluster._client.run(os.getpid)
        assert len(before) == 2

        def kill_one(rows: int) -> None:
            seen.append(rows)
            if len(seen) == 5:
                os.kill(next(iter(before.values())), signal.SIGKILL)

        assert cluster.processor_seconds() > 0
        found = totals(AGREEMENT_CLUSTER, plan_cluster, cluster, kill_one)
        cluster._client.wait_for_workers(2, timeout=300)
        after = cluster._client.run(os.getpid)
    assert set(after.values()) != set(before.values()), "one was killed, and replaced"
    assert len(seen) >= 5
    assert found == expected


def test_workers_that_die_again_and_again_are_an_error(plan_cluster, monkeypatch) -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        Cluster(workers=1) as cluster,
    ):
        monkeypatch.setattr(module, "scan", _die)
        with pytest.raises(ServiceError, match="Nothing was published"):
            cluster.scan(AGREEMENT_CLUSTER.to_json(), plan_cluster.tasks[:1], lambda _rows: None)


def _die(_text, _task):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_scheduler_that_is_not_there(monkeypatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    away = Cluster("tcp://127.0.0.1:1")
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1:1.*dask\s+scheduler"), away:
        pass


def test_without_the_package(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BlurfitError, match=r"blurfit\[cluster\]"), Cluster():
        pass
