"""Serve an application over HTTP: in one process, in several behind one port, or in a thread.

Within which bounds connections are is in `blurfit.service.limits`.

**The end.** A service that is told to end does so within ten seconds: requests have five, and then
what is waiting is committed. A thread that still computes is not waited for. Whatever it was doing
was acknowledged to nobody, and a transaction that is broken off never happened.

**Several processes**, each a whole service, all of them on one store. A parent binds the port,
forks the workers, starts another where one has died, passes signals on to them, and ends within ten
seconds. It opens no store and answers nobody; if it is killed, the workers notice and end, too.
Each worker has a listening socket of its own on the same port (SO_REUSEPORT). The parent keeps all
of them open: those who wait at the socket of a worker that died are answered by the one that takes
its place. Where sockets cannot share a port, the workers share one socket.

Requests of an address and counts for Prometheus stand in memory that all share. Connections, bytes
of bodies and kept answers are bounded in each worker. A step of a collection is one transaction, so
it is harmless that every worker looks after them. Each counts what came its way, so a wave may take
some more than its quorum before one of them sees that it is full.

**Logs** are for people or for machines: one line for each event, with its time and level. Neither
addresses nor anything that was submitted is logged, unless the access log is asked for.
"""

import ctypes
import datetime as dt
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import uvicorn
from starlette.types import ASGIApp

from blurfit.errors import InvalidValueError
from blurfit.service.limits import Bounds, Gate, proxies_in

_log = logging.getLogger(__name__)
SECONDS_TO_END = 5.0  # that requests have when the service is told to end
SECONDS_TO_STOP = 9.0  # after which nothing is waited for, and workers are killed
_SECONDS_OF_A_THREAD = 0.0005
_M_MMAP_THRESHOLD, _GIVEN_BACK = -3, 2**15  # bytes


def prepare_process() -> None:
    """Let a process serve beside threads that compute, and give memory back that it does not need.

    A thread that computes would keep Python's lock for 5 ms at a time, and the loop wait as long
    for each of its steps; and the C library would keep freed blocks of the size of bodies.
    """
    sys.setswitchinterval(_SECONDS_OF_A_THREAD)
    with suppress(AttributeError, OSError, TypeError):  # a C library that has no such setting
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _GIVEN_BACK)


class Server(uvicorn.Server):
    """uvicorn's server, which ends in time although what it should commit may hang."""

    def handle_exit(self, sig: int, frame: object) -> None:
        """Stop, as a signal says, and be late at most once."""
        late = threading.Timer(SECONDS_TO_STOP, _leave_late)
        late.daemon = True
        late.start()
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


def _leave_late() -> None:
    _log.warning("Stopped before all had ended; what was acknowledged is stored.")
    leave()


def leave(code: int = 0) -> None:
    """End this process at once, by default as one that did its work."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def leave_threads_behind() -> None:
    """End this process if it would wait for a thread, at its end, that still computes."""
    others = {*threading.enumerate()} - {threading.current_thread()}
    if not all(one.daemon for one in others):
        leave()


def configured(app: ASGIApp, *, bounds: Bounds | None = None, **options: Any) -> uvicorn.Config:
    """Say how a service is served, and within which bounds; options are uvicorn's.

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
    """Yield the address, at a free port of this machine, where an application answers meanwhile."""
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


# ---- several processes

SECONDS_BETWEEN_STARTS = 1.0  # in one place: one that dies at once must not make a loop
_STOP = (signal.SIGTERM, signal.SIGINT)


def refuse_unless_possible(workers: int, place: str) -> None:
    """Refuse several workers where the store, or the system, is for one."""
    if workers == 1:
        return
    if not place.startswith("postgres"):
        raise InvalidValueError(
            f"Expected a postgresql:// store for --workers {workers}, and got {place!r}: SQLite "
            "lets one process write at a time, and the others would wait for it. Use one worker, "
            "or PostgreSQL."
        )
    if not hasattr(os, "fork"):
        raise InvalidValueError(
            f"Expected --workers 1, and got {workers}: this system cannot fork processes. Start "
            "several services at several ports, behind a proxy."
        )


def listening(host: str, port: int, workers: int, backlog: int) -> list[socket.socket]:
    """Open a socket for each worker, all of them on one port that nobody else listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Alone at first: sockets that may share a port would also share it with another service.
    alone = socket.create_server((host, port), family=family, backlog=backlog)
    if workers == 1 or not sys.platform.startswith("linux"):
        return [alone] * workers
    port = alone.getsockname()[1]
    alone.close()
    return [
        socket.create_server((host, port), family=family, backlog=backlog, reuse_port=True)
        for _ in range(workers)
    ]


class Worker(uvicorn.Server):
    """uvicorn's server, which leaves Ctrl-C to the parent, and stops when the parent says so."""

    def handle_exit(self, sig: int, frame: object) -> None:
        """Stop, as a signal of the parent says."""
        if sig != signal.SIGINT:
            super().handle_exit(sig, frame)  # type: ignore[arg-type]


@dataclass(eq=False)
class Workers:
    """The parent. `work` is what a worker does, given its number and its socket, until SIGTERM.

    `heeds` are further signals that it is told of, such as SIGHUP.
    """

    work: Callable[[int, socket.socket], None]
    sockets: Sequence[socket.socket]
    heeds: Sequence[int] = ()
    _running: dict[int, int] = field(default_factory=dict, repr=False)  # numbers by process
    _started: dict[int, float] = field(default_factory=dict, repr=False)  # when, by number
    _ending: bool = False

    def run(self) -> None:
        """Run them until SIGTERM or SIGINT; then end all, and raise KeyboardInterrupt."""
        heard, hears = socket.socketpair()
        self._alive = os.pipe()  # closed by the system when this process ends, however it does
        hears.setblocking(False)
        for number in (*_STOP, *self.heeds, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        before = signal.set_wakeup_fd(hears.fileno())
        try:
            self._see_to_it()
            while True:
                told = _next_signals(heard, self._seconds_until_start())
                self._reap()
                if set(told) & set(_STOP):
                    raise KeyboardInterrupt
                for number in {*told} & {*self.heeds}:
                    self._tell(number)
                self._see_to_it()
        finally:
            self._end(heard)
            signal.set_wakeup_fd(before)

    def _see_to_it(self) -> None:
        """Start a worker wherever one is missing, unless the last one there has only just begun."""
        now = time.monotonic()
        for number in range(len(self.sockets)):
            if number in self._running.values():
                continue
            if now - self._started.get(number, float("-inf")) >= SECONDS_BETWEEN_STARTS:
                self._started[number] = now
                self._start(number)

    def _seconds_until_start(self) -> float | None:
        waiting = set(range(len(self.sockets))) - set(self._running.values())
        if not waiting:
            return None
        first = min(self._started[number] for number in waiting)
        return max(0.0, first + SECONDS_BETWEEN_STARTS - time.monotonic())

    def _start(self, number: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if pid := os.fork():
            self._running[pid] = number
            return
        code = 1
        try:
            self._become(number)
            self.work(number, self.sockets[number])
            code = 0
        except KeyboardInterrupt:  # how uvicorn hands on the signal that ended it
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            leave(code)

    def _become(self, number: int) -> None:
        """Leave behind what is the parent's, in a process that was just forked."""
        signal.set_wakeup_fd(-1)
        for one in (*self.heeds, signal.SIGCHLD):
            signal.signal(one, signal.SIG_DFL)
        for one in _STOP:
            signal.signal(one, signal.default_int_handler)
        os.close(self._alive[1])
        for other in self.sockets:
            if other is not self.sockets[number]:
                other.close()

        def follow() -> None:
            os.read(self._alive[0], 1)  # nothing comes, but the end of whoever could write
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=follow, daemon=True).start()

    def _tell(self, number: int) -> None:
        for pid in self._running:
            os.kill(pid, number)

    def _reap(self) -> None:
        """Take note of those who have ended."""
        for pid, number in list(self._running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._running[pid]
                code = os.waitstatus_to_exitcode(status)
                if code or not self._ending:
                    _log.warning("Worker %d (process %d) ended with %d.", number, pid, code)

    def _end(self, heard: socket.socket) -> None:
        """Tell all to end, wait a while, and kill whoever is left."""
        self._ending = True
        for one in self.sockets:
            one.close()  # whoever comes now is refused, and does not wait in vain
        self._tell(signal.SIGTERM)
        deadline = time.monotonic() + SECONDS_TO_STOP
        while self._running and (left := deadline - time.monotonic()) > 0:
            _next_signals(heard, left)
            self._reap()
        for pid, number in self._running.items():
            _log.warning("Worker %d (process %d) did not end, and was killed.", number, pid)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _next_signals(heard: socket.socket, seconds: float | None) -> bytes:
    """Return numbers of signals that have come; nothing if none comes for so long."""
    ready, _, _ = select.select([heard], [], [], seconds)
    return heard.recv(4096) if ready else b""


# ---- logs

Style = Literal["text", "json"]
STYLES: tuple[Style, ...] = ("text", "json")


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON, in which no line of a message begins another one."""
        found: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=False)


class TextLines(logging.Formatter):
    """Time, level, logger and message; what would begin another line is shown as it is written."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, and the traceback of an error below it."""
        message = record.getMessage().replace("\\", "\\\\")
        message = message.replace("\n", "\\n").replace("\r", "\\r")
        line = f"{_time(record)} {record.levelname.lower()} {record.name}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _time(record: logging.LogRecord) -> str:
    return dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")


def configuration(style: Style, *, access: bool) -> dict[str, Any]:
    """Return what uvicorn gives to `logging.config.dictConfig`: all on standard error."""
    formatter = {"text": TextLines, "json": JsonLines}[style]
    quiet = {"level": "WARNING", "handlers": ["lines"], "propagate": False}
    spoken = quiet | {"level": "INFO"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": formatter}},
        "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "loggers": {
            "blurfit": quiet,
            "blurfit.audit_log": spoken,
            "blurfit.service.peers": spoken,
            "uvicorn": quiet,
            "uvicorn.error": quiet,
            "uvicorn.access": spoken if access else quiet,
        },
    }
