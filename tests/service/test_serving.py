"""An application in a thread answers while the block lasts, and is gone after it."""

import asyncio
import io
import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2 as httpx
import pytest

from blurfit.service import server as serving
from blurfit.service.app import Service
from blurfit.service.server import Server, configured, in_a_thread
from blurfit.store.store import Store
from support import processes
from support.serving import Serving


def test_it_answers_for_as_long_as_the_block_lasts(tmp_path) -> None:
    with Store(tmp_path / "collection.db") as store, in_a_thread(Service(store)) as url:
        answer = httpx.get(f"{url}/healthz", trust_env=False, verify=False, timeout=300)
        assert answer.json() == {"status": "ok"}
        assert "server" not in answer.headers, "nobody needs to know"
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/healthz", trust_env=False, verify=False, timeout=300)


def test_whoever_serves_keeps_the_handlers_of_logs_that_were_there() -> None:
    class Owner(logging.StreamHandler):
        """Closes its stream when it is closed, as some libraries' do."""

        def close(self) -> None:
            self.stream.close()
            super().close()

    handler = Owner(io.StringIO())
    with Store() as store:
        configured(Service(store))
    assert not handler.stream.closed
    handler.close()


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
from blurfit.service.server import prepare_process

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
