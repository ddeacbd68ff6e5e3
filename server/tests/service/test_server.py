"""In a thread, in one process or in several: it ends in time, and logs a line for each event."""

import asyncio
import logging
import logging.config
import os
import signal
import socket
import subprocess
import sys
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
from blurfit_server.service import app as module
from blurfit_server.service import app as serving
from blurfit_server.service.app import (
    Server,
    Workers,
    configuration,
    configured,
    listening,
    refuse_unless_possible,
)
from blurfit_server.store.store import Store
from server_support.serving import Serving
from support import processes
from support.proposals import propose, totals_of


def computing(*arguments: str) -> None:
    """`blurfit …` beside a thread that never ends, and that Python would wait for."""
    threading.Thread(target=lambda: [time.sleep(1) for _ in iter(int, 1)]).start()
    processes.blurfit(*arguments)


def test_a_service_ends_although_a_thread_still_computes(tmp_path) -> None:
    """Seen before: it had said that it stopped, and was still there 40 s after SIGTERM."""
    place = f"sqlite:///{tmp_path / 'collection.db'}"
    service = Serving(place, tmp_path, command=computing)
    service.start()
    try:
        assert service.process is not None
        service.process.terminate()
        assert service.process.wait(300) == 0
    finally:
        service.kill()


async def never_ends(scope, receive, send) -> None:
    """An application that starts, and does not come to an end."""
    assert scope["type"] == "lifespan"
    await receive()
    Path("started").touch()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.Event().wait()


def serve_what_never_ends() -> None:
    serving.SECONDS_TO_STOP = 0.3
    Server(configured(never_ends, port=0)).run()


def test_a_server_ends_although_its_application_does_not(tmp_path) -> None:
    """A publication that computes while it writes, or a database that hangs."""
    process = processes.start(serve_what_never_ends, out=tmp_path / "out", folder=tmp_path)
    try:
        while not (tmp_path / "started").exists():
            time.sleep(0.05)
        process.terminate()
        assert process.wait(300) == 0
    finally:
        process.kill()


FREED = """
import os, sys
from pathlib import Path
from blurfit_server.service.app import prepare_process

def resident():
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")

prepare_process()
before = resident()
kept, bodies = [], []
for size in (2**22, *[2**16] * 1600):  # a large one first: blocks of its size would be kept, too
    bodies.append(b"x" * size)
    kept.append(b"x" * 10_000)  # what stays lies in between
    if size > 2**16:
        bodies.clear()
assert resident() - before > 90e6
bodies.clear()
assert resident() - before < 40e6, resident() - before
assert sys.getswitchinterval() < 0.001
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is looked up in /proc")
def test_memory_of_bodies_is_given_back() -> None:
    """Seen before: 1.5 GB that a flood had taken were kept after it."""
    subprocess.run([sys.executable, "-c", FREED], check=True, timeout=600)


# ---- several processes


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
    agreement = propose(quorum=50)
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


# ---- logs


@pytest.fixture(params=["text", "json"])
def style(request):
    return request.param


def lines(style: str, capsys, *messages: str) -> list[str]:
    try:
        logging.config.dictConfig(configuration(style, access=False))
        for message in messages:
            logging.getLogger("blurfit.audit_log").info("%s", message)
        logging.getLogger("uvicorn.access").info("an address")
    finally:
        for name in ("blurfit", "blurfit.audit_log", "uvicorn", "uvicorn.error", "uvicorn.access"):
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True
            logger.setLevel(logging.NOTSET)
    return capsys.readouterr().err.splitlines()


def test_a_message_cannot_begin_another_line(style, capsys) -> None:
    found = lines(style, capsys, "one\n2026-01-01 info forged", "two")
    assert len(found) == 2
    assert "address" not in "".join(found)
