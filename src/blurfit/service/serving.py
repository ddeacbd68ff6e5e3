"""Serve an application over HTTP: as `blurfit serve` does, or in a thread while a block lasts.

A service that is told to end does so within ten seconds: requests have five, and then what is
waiting is committed. A thread that still computes is not waited for. Whatever it was doing was
acknowledged to nobody, and a transaction that is broken off never happened.
"""

import ctypes
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from blurfit.service.front import Bounds, Gate
from blurfit.service.networks import proxies_in

SECONDS_TO_END = 5.0  # that requests have when the service is told to end
SECONDS_TO_STOP = 9.0  # after which nothing is waited for
_SECONDS_OF_A_THREAD = 0.0005
_M_MMAP_THRESHOLD, _GIVEN_BACK = -3, 2**15  # bytes
_log = logging.getLogger(__name__)


def prepare_process() -> None:
    """Let a process serve beside threads that compute, and give memory back that it does not need.

    A thread that computes keeps Python's lock for 5 ms at a time, unless told otherwise, and the
    loop would wait as long for each of its steps. And the C library keeps what was freed, for
    blocks up to a size that grows with every larger one: bodies and answers are larger than what is
    set here, so they go back to the system at once.
    """
    sys.setswitchinterval(_SECONDS_OF_A_THREAD)
    with suppress(AttributeError, OSError, TypeError):  # a C library that has no such setting
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _GIVEN_BACK)


class Server(uvicorn.Server):
    """uvicorn's server, which ends in time although what it should commit may hang."""

    def handle_exit(self, sig: int, frame: object) -> None:
        """What is told by a signal."""
        late = threading.Timer(SECONDS_TO_STOP, _leave_late)
        late.daemon = True
        late.start()
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


def _leave_late() -> None:
    _log.warning("Stopped before all had ended; what was acknowledged is stored.")
    leave()


def leave() -> None:
    """End this process at once, as one that did its work."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def leave_threads_behind() -> None:
    """End this process if it would wait for a thread, at its end, that still computes."""
    others = {*threading.enumerate()} - {threading.current_thread()}
    if not all(one.daemon for one in others):
        leave()


def configured(app: ASGIApp, *, bounds: Bounds | None = None, **options: Any) -> uvicorn.Config:
    """How a service is served, and within which bounds; options are uvicorn's.

    Logging stays as the process has it, unless `log_config` is given: uvicorn's own closes all
    handlers that are there.
    """
    proxies = proxies_in(options.get("forwarded_allow_ips") or "")
    gate = Gate(bounds or Bounds(), proxies, getattr(app, "may_ask", lambda _address: True))
    defaults: dict[str, Any] = {
        "http": gate.protocol,
        "ws": "none",
        "lifespan": "on",
        "log_config": None,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": SECONDS_TO_END,
    }
    return uvicorn.Config(app, **defaults | options)


@contextmanager
def in_a_thread(app: ASGIApp, **options: Any) -> Iterator[str]:
    """The address, on this machine and at a free port, where an application answers meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(configured(app, **options))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
