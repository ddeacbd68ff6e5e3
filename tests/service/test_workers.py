"""Several processes behind one port: one dies and is replaced, and all that they tell is one."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.errors import InvalidValueError
from blurfit.service import server as module
from blurfit.service.server import Workers, listening, refuse_unless_possible
from blurfit.store.store import Store
from support import processes
from support.serving import Serving
from support.stores import propose, totals_of


def children(pid: int) -> set[int]:
    """The processes that a process has started and that have not ended."""
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def wait_for(what, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


@pytest.fixture
def service(places, tmp_path) -> Iterator[Serving]:
    serving = Serving(places.fresh(), tmp_path, ("--workers", "2"))
    serving.start()
    try:
        yield serving
    finally:
        serving.stop()


def test_a_worker_is_killed_and_nothing_is_lost_or_doubled(service) -> None:
    agreement = propose(mechanism="moment", quorum=50)
    assert service.post("/collections", content=agreement.to_json()).status_code == 201
    pid = service.process.pid
    wait_for(lambda: len(children(pid)) == 2)
    before, sent, failed = children(pid), [], []
    killed = threading.Event()

    def send(number: int) -> None:
        """Until a worker has been killed, and a while longer; a new connection now and then."""
        generator, left = np.random.default_rng(number), 2
        try:
            while left:
                left -= killed.is_set()
                with Client(service.url) as client:
                    for rows in (1, 5):
                        people = {c: generator.uniform(0, 100, rows) for c in ("age", "income")}
                        batch = perturb_table(agreement, people)
                        sent.append(batch)
                        client.submit(batch)
                        client.submit(batch)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(sent) > 10 or failed)
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    killed.set()
    wait_for(lambda: len(children(pid)) == 2 and victim not in children(pid))
    for thread in threads:
        thread.join()
    assert not failed
    path = f"/collections/{agreement.fingerprint}"
    answers = [service.post(f"{path}/publish") for _ in range(6)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1, "one model, whoever is asked"
    expected = totals_of(agreement, *sent)
    told = {counted(service) for _ in range(6)}
    assert len(told) == 1, "whoever is asked tells the sums of both"
    assert told.pop() <= expected.count, "a worker that was killed may have counted no more"
    with Store(service.place) as store:
        assert store.moments(agreement).sums.tolist() == expected.sums.tolist()
        assert store.publish(agreement).count == expected.count
    assert "ended with -9" in (service.folder / "serve.log").read_text()
    service.process.terminate()
    assert service.process.wait(300) == 0
    wait_for(lambda: not any(Path(f"/proc/{one}").exists() for one in before))


def counted(service: Serving) -> float:
    """New submissions, as Prometheus is told."""
    text = service.client.get(f"{service.url}/metrics").text
    (found,) = (
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if (sample.name, sample.labels) == ("blurfit_submissions_total", {"kind": "new"})
    )
    return found


def test_workers_end_with_a_parent_that_was_killed(service) -> None:
    pid = service.process.pid
    wait_for(lambda: len(children(pid)) == 2)
    orphans = children(pid)
    service.kill()
    wait_for(lambda: not any(Path(f"/proc/{one}").exists() for one in orphans))


# ---- the parent by itself


def idle(folder: Path, sleep: float) -> None:
    """A parent of two workers that write down what they are told."""

    def work(number: int, _socket: socket.socket) -> None:
        def told(*_: object) -> None:
            (folder / f"told-{number}").touch()

        def end(*_: object) -> None:
            time.sleep(sleep)
            raise KeyboardInterrupt

        signal.signal(signal.SIGHUP, told)
        signal.signal(signal.SIGTERM, end)
        (folder / f"ready-{number}").touch()
        while True:
            signal.pause()

    Workers(work, listening("127.0.0.1", 0, 2, 8), [signal.SIGHUP]).run()


def stubborn(folder: Path) -> None:
    module.SECONDS_TO_STOP = 0.2
    idle(folder, 3600.0)


def is_there(folder: Path, name: str) -> bool:
    return all((folder / f"{name}-{number}").exists() for number in range(2))


def test_signals_are_handed_on(tmp_path) -> None:
    parent = processes.start(idle, tmp_path, 0.0, out=tmp_path / "log")
    try:
        wait_for(lambda: is_there(tmp_path, "ready"))
        parent.send_signal(signal.SIGHUP)
        wait_for(lambda: is_there(tmp_path, "told"))
        parent.terminate()
        assert parent.wait(300) == 1  # KeyboardInterrupt, which nobody caught here
    finally:
        parent.kill()


def test_whoever_does_not_end_is_killed(tmp_path) -> None:
    parent = processes.start(stubborn, tmp_path, out=tmp_path / "log")
    try:
        wait_for(lambda: is_there(tmp_path, "ready"))
        parent.terminate()
        assert parent.wait(300) == 1
    finally:
        parent.kill()


def test_a_port_that_is_taken_is_not_shared() -> None:
    first = listening("127.0.0.1", 0, 2, 8)
    try:
        port = first[0].getsockname()[1]
        assert {one.getsockname()[1] for one in first} == {port}
        with pytest.raises(OSError, match="in use"):
            listening("127.0.0.1", port, 2, 8)
    finally:
        for one in first:
            one.close()


def test_sqlite_is_for_one() -> None:
    refuse_unless_possible(1, "sqlite:///collection.db")
    refuse_unless_possible(4, "postgresql://user@host/name")
    with pytest.raises(InvalidValueError, match="one process write at a time"):
        refuse_unless_possible(2, "sqlite:///collection.db")
