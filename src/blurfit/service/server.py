"""Serve an application over HTTP: in one process, in several behind one port, or in a thread.

**Connections** cost little before any request of them reaches the service. HTTP leaves it to the
server how long a head may be, how long one waits for it, and how many connections somebody may
hold. uvicorn's protocol has no bound for any of these; the subclass here has:

| bound | beyond it |
| --- | --- |
| bytes and lines of a head, trailers included | 431, and the connection is closed |
| requests that wait behind another one on a connection | 400, closed |
| seconds for a head, and for a body | 408, closed |
| seconds in which nobody takes the answer | cut |
| connections of one address (`blurfit.service.limits`), and of all | 503, closed |
| requests of one address (`blurfit.service.limits`) | 429, closed before any of it is read |

Deadlines are checked by one sweep over all connections, so that a request costs two readings of the
clock and no timer. Connections between two requests are uvicorn's, which closes them after five
seconds.

**The end.** A service that is told to end does so within ten seconds: requests have five, and then
what is waiting is committed. A thread that still computes is not waited for. Whatever it was doing
was acknowledged to nobody, and a transaction that is broken off never happened.

**Several processes**, each a whole service, all of them on one store. A parent binds the port,
forks the workers, starts another where one has died, passes signals on to them, and ends within ten
seconds. It opens no store and answers nobody, so there is little in it that could fail; and if it
is killed, the workers notice and end, too. Each worker has a listening socket of its own on the
same port (SO_REUSEPORT), and the system divides new connections among these. The parent keeps all
of them open: those who wait at the socket of a worker that died are answered by the one that takes
its place. Where sockets cannot share a port, the workers share one socket.

| what | where | so |
| --- | --- | --- |
| submissions, models, waves, tokens, invitations, the log | in the store | transactions see to it |
| requests of an address | in memory that all share | one limit (`blurfit.service.limits`) |
| counts for Prometheus | in memory that all share | sums (`blurfit.service.answers`) |
| connections of an address, bytes of bodies, kept answers | in each worker | a bound on each \
process |
| groups of arrivals, collections that were read, sums over a set | in each worker | work is done \
twice at most: what is remembered never changes |

A step of a collection is one transaction, so it is harmless that every worker looks after them.
Each counts what came its way, so a wave may take some more than its quorum before one of them sees
that it is full: an eighth of what was missing when it last looked, or five seconds' worth.

**Logs** are for people or for machines: one line for each event, with its time and level. Neither
addresses nor anything that was submitted is logged, unless the access log is asked for.
"""

import asyncio
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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from blurfit.errors import InvalidValueError
from blurfit.service.limits import network_of, proxies_in

_log = logging.getLogger(__name__)
_DESCRIPTORS_WANTED = 2**16
_DESCRIPTORS_KEPT_BACK = 128  # for the store, for its pool of connections, and for other databases
_SECONDS_BETWEEN_WARNINGS = 60.0
_SECONDS_TO_TAKE_A_REFUSAL = 1.0


@dataclass(frozen=True)
class Bounds:
    """What one connection, one address and all of them may take."""

    head_bytes: int = 2**16
    head_lines: int = 100
    waiting_requests: int = 8
    head_seconds: float = 10.0
    body_seconds: float = 35.0  # a little more than `limits.SECONDS_FOR_A_BODY`, which says more
    answer_seconds: float = 120.0
    connections_of_an_address: int = 256
    connections: int = 2**15


@dataclass(eq=False)
class Gate:
    """All connections of a server, counted by address, and the sweep that ends the late ones.

    `proxies` are addresses that speak for others, and may hold as many connections as there are.
    `may_ask` tells whether an address has requests left: whoever comes again and again although
    there are none is sent away before anything is read.
    """

    bounds: Bounds = field(default_factory=Bounds)
    proxies: frozenset[str] = frozenset()
    may_ask: Callable[[str], bool] = lambda _address: True

    def __post_init__(self) -> None:
        self._inside: dict[Guarded, str] = {}
        self._counts: Counter[str] = Counter()
        self._sweeping = False
        self._turned_away = 0
        self._warned = float("-inf")

    def protocol(self, **given: Any) -> "Guarded":
        """A protocol for a new connection: what uvicorn calls."""
        return Guarded(self, **given)

    def admits(self, one: "Guarded", address: str) -> bool:
        """Count a connection in, unless there are too many."""
        network, bounds = network_of(address), self.bounds
        crowded = network not in self.proxies and (
            self._counts[network] >= bounds.connections_of_an_address
        )
        if crowded or len(self._inside) >= bounds.connections:
            self.turned_away()
            return False
        self._inside[one] = network
        self._counts[network] += 1
        if not self._sweeping:
            self._sweeping = True
            self._sweep_later()
        return True

    def forget(self, one: "Guarded") -> None:
        """Count a connection out."""
        network = self._inside.pop(one, None)
        if network is not None:
            self._counts[network] -= 1
            if not self._counts[network]:
                del self._counts[network]

    def turned_away(self) -> None:
        """Remember that something was refused, and log now and then how often."""
        self._turned_away += 1
        now = asyncio.get_running_loop().time()
        if now - self._warned >= _SECONDS_BETWEEN_WARNINGS:
            _log.warning(
                "Connections refused or cut since the last report: %d; %d are open.",
                *(self._turned_away, len(self._inside)),
            )
            self._turned_away, self._warned = 0, now

    def _sweep_later(self) -> None:
        bounds = self.bounds
        shortest = min(bounds.head_seconds, bounds.body_seconds, bounds.answer_seconds)
        asyncio.get_running_loop().call_later(min(1.0, shortest / 4), self._sweep)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        for one in list(self._inside):
            one.end_if_late(now)
        if self._inside:
            self._sweep_later()
        else:
            self._sweeping = False


class Guarded(HttpToolsProtocol):
    """uvicorn's protocol, with bounds."""

    def __init__(self, gate: Gate, **given: Any) -> None:
        super().__init__(**given)
        self._gate, self._bounds = gate, gate.bounds
        self._admitted = True
        self._unread = 0  # bytes since the parser last made something of them
        self._of_head = 0  # bytes of the lines that it made of them
        self._status = 400  # what to answer if the parser gives up
        self._due = float("inf")  # when what is coming must be here
        self._writable_by = float("inf")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit whoever comes, or not; the time for a first head begins."""
        super().connection_made(transport)
        self._due = self.loop.time() + self._bounds.head_seconds
        address = self.client[0] if self.client else ""
        self._admitted = self._gate.admits(self, address)
        if not self._admitted:
            self._refuse(503, "Too many connections. Try again later.")
        elif not self._gate.may_ask(address):
            # Closed at once, what is still on its way would take the answer with it.
            self._admitted = False
            self._gate.turned_away()
            self._say(429, "Too many requests. Try again later.")
            self._due = self.loop.time() + _SECONDS_TO_TAKE_A_REFUSAL
            self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it out."""
        self._gate.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Let the parser read, until there is too much of what leads nowhere."""
        if not self._admitted or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        if self._due == float("inf") and not self._is_reading_a_body:
            self._due = self.loop.time() + self._bounds.head_seconds
        self._unread += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._cut(400, "Nothing but HTTP/1.1 is spoken here.")
        except httptools.HttpParserError:
            words = "The head of the request is too long."
            self._cut(
                self._status, words if self._status == 431 else "This is not an HTTP request."
            )
        else:
            if self._unread > self._bounds.head_bytes:
                self._cut(431, "The head of the request is too long.")

    @property
    def _is_reading_a_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._of_head = 0

    def on_url(self, url: bytes) -> None:
        """Part of the first line."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head, or of the trailer."""
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)
        if len(self.headers) > self._bounds.head_lines:
            self._give_up(431)

    def _count(self, length: int) -> None:
        self._of_head += length
        if self._of_head > self._bounds.head_bytes:
            self._give_up(431)

    def _give_up(self, status: int) -> None:
        """Stop the parser, in the middle of what it was given."""
        self._status = status
        raise ValueError(status)

    def on_headers_complete(self) -> None:
        """The head is here; the time for the body begins."""
        if len(self.pipeline) >= self._bounds.waiting_requests:
            self._give_up(400)
        self._unread = 0
        self._due = self.loop.time() + self._bounds.body_seconds
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All is here; now it is the service's turn."""
        self._unread = 0
        self._due = float("inf")
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The answer is not taken as fast as it is given."""
        self._writable_by = self.loop.time() + self._bounds.answer_seconds
        super().pause_writing()

    def resume_writing(self) -> None:
        """It was taken."""
        self._writable_by = float("inf")
        super().resume_writing()

    def end_if_late(self, now: float) -> None:
        """Close the connection if something has not come, or has not been taken, in time."""
        if now > self._due and not self._admitted:
            self.transport.abort()
        elif now > self._writable_by:
            self._gate.turned_away()
            self.transport.abort()
        elif now > self._due and not self.pipeline:  # those wait for us
            if self.transport.is_closing():
                self.transport.abort()
            else:
                self._cut(408, "The request did not arrive in time.")

    def _cut(self, status: int, words: str) -> None:
        self._gate.turned_away()
        self._refuse(status, words)

    def _refuse(self, status: int, words: str) -> None:
        """Say why, and hang up."""
        self._say(status, words)
        self.transport.close()

    def _say(self, status: int, words: str) -> None:
        """Answer, unless an answer is under way."""
        if self.cycle is None or self.cycle.response_complete:
            again = b"retry-after: 2\r\n" if status in (429, 503) else b""
            self.transport.write(
                b"%scontent-type: text/plain\r\ncontent-length: %d\r\n%sconnection: close\r\n\r\n%s"
                % (STATUS_LINE[status], len(words), again, words.encode("ascii"))
            )


def raise_descriptor_limit() -> int:
    """Allow as many descriptors as this process may have, 65,536 at most; how many connections they
    serve is returned.

    Each connection takes one; the limit that a shell gives is often 1,024.
    """
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return Bounds.connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else hard
    wanted = min(wanted, _DESCRIPTORS_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):  # not allowed here: then with fewer
            pass
    if soft == resource.RLIM_INFINITY:
        return Bounds.connections
    return max(16, min(Bounds.connections, soft - _DESCRIPTORS_KEPT_BACK))


SECONDS_TO_END = 5.0  # that requests have when the service is told to end
SECONDS_TO_STOP = 9.0  # after which nothing is waited for, and workers are killed
_SECONDS_OF_A_THREAD = 0.0005
_M_MMAP_THRESHOLD, _GIVEN_BACK = -3, 2**15  # bytes


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
    """A socket for each worker, all of them on one port that nobody else listens on."""
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
        """What is told by a signal."""
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

    def run(self) -> None:
        """Until SIGTERM or SIGINT: then end all of them, and raise KeyboardInterrupt."""
        heard, hears = socket.socketpair()
        self._alive = os.pipe()  # closed by the system when this process ends, however it does
        hears.setblocking(False)
        for number in (*_STOP, *self.heeds, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._wake = signal.set_wakeup_fd(hears.fileno())
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
            signal.set_wakeup_fd(self._wake)

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
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

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
        for pid in list(self._running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                number, code = self._running.pop(pid), os.waitstatus_to_exitcode(status)
                _log.warning("Worker %d (process %d) ended with %d.", number, pid, code)

    def _end(self, heard: socket.socket) -> None:
        """Tell all to end, wait a while, and kill whoever is left."""
        for one in self.sockets:
            one.close()  # whoever comes now is refused, and does not wait in vain
        self._tell(signal.SIGTERM)
        deadline = time.monotonic() + SECONDS_TO_STOP
        while self._running and (left := deadline - time.monotonic()) > 0:
            _next_signals(heard, left)
            for pid in list(self._running):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del self._running[pid]
        for pid, number in self._running.items():
            _log.warning("Worker %d (process %d) did not end, and was killed.", number, pid)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _next_signals(heard: socket.socket, seconds: float | None) -> bytes:
    """Numbers of signals that have come; nothing if none comes for so long."""
    ready, _, _ = select.select([heard], [], [], seconds)
    return heard.recv(4096) if ready else b""


# ---- logs

Style = Literal["text", "json"]
STYLES: tuple[Style, ...] = ("text", "json")


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON, in which no line of a message begins another record."""
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
        """The record as one line, and the traceback of an error below it."""
        message = record.getMessage().replace("\\", "\\\\")
        message = message.replace("\n", "\\n").replace("\r", "\\r")
        line = f"{_time(record)} {record.levelname.lower()} {record.name}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _time(record: logging.LogRecord) -> str:
    return dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")


def configuration(style: Style, *, access: bool) -> dict[str, Any]:
    """For `logging.config.dictConfig`, which uvicorn calls: all on standard error."""
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
