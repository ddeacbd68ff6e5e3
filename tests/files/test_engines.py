"""Threads and a real cluster, whose workers may die: the same sums."""

import os
import signal
import sys
import threading

import dask
import numpy as np
import pytest

from blurfit import Agreement, BlurfitError, Numeric, Schema, ServiceError, perturb_table
from blurfit.files import engines as module
from blurfit.files import learn
from blurfit.files.engines import Cluster, Threads
from blurfit.files.learn import Work, scanned
from blurfit.messages import files
from blurfit.messages.files import Writer


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

    assert list(Threads(3).map(work, range(20))) == list(range(20))
    assert 1 < max(most) <= 3


# ---- cluster


SCHEMA_CLUSTER = Schema(
    features=[Numeric(f"x{i}", 0, 1) for i in range(13)], target=Numeric("income", 0, 1)
)
AGREEMENT_CLUSTER = Agreement.propose(SCHEMA_CLUSTER, epsilon=1, delta=1e-6, quorum=2_000)
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
    with scanned(AGREEMENT_CLUSTER, plan_cluster, Threads(2)) as (expected, _):
        assert expected.count == ROWS
    seen: list[int] = []
    with Cluster(workers=2) as cluster:
        before = cluster.client.run(os.getpid)
        assert len(before) == 2

        def kill_one(done: int, _of: int) -> None:
            seen.append(done)
            if len(seen) == 5:
                os.kill(next(iter(before.values())), signal.SIGKILL)

        with scanned(AGREEMENT_CLUSTER, plan_cluster, cluster, kill_one) as (found, _):
            pass
        cluster.client.wait_for_workers(2, timeout=300)
        after = cluster.client.run(os.getpid)
    assert set(after.values()) != set(before.values()), "one was killed, and replaced"
    assert len(seen) >= 5
    assert found == expected


def test_workers_that_die_again_and_again_are_an_error(plan_cluster) -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        Cluster(workers=1) as cluster,
        pytest.raises(ServiceError, match="Nothing was published"),
    ):
        list(cluster.map(_die, plan_cluster.tasks[:1]))


def _die(_task):
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
