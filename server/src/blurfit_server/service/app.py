"""The database as a service: collect over HTTP, lose nothing, publish once; in one process, in
several behind one port, or in a thread.

| what | who | where |
| --- | --- | --- |
| send submissions | contributors | `blurfit_server.service.intake`, past the router |
| states, agreements, models, moments; invitations, withdrawals | anyone | `endpoints` |
| propose, open, invite, steer, publish | administrators | `administration` |
| publish together, and what happens by itself | the other database | `peers` |
| pages for people | anyone | `endpoints` |

**The end** takes at most ten seconds: requests have five, then what waits is committed. A thread
that still computes was acknowledged to nobody, and a broken transaction never happened.

**Several processes**, each a whole service on one store. A parent binds the port, forks workers,
replaces dead ones and passes signals on; it opens no store. Each worker listens on a socket of its
own (SO_REUSEPORT), which the parent keeps open, so that those who wait at a dead worker's socket
are answered by its successor; elsewhere they share one. Rates and counts stand in shared memory;
connections, bodies and kept answers are bounded in each worker. Each worker counts what came its
way, so a wave may take some more than its quorum before one of them sees that it is full.

**Logs**: one line for each event, with its time and level, and no addresses (unless the access log
is asked for) nor anything that was submitted.
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
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from blurfit import protocol
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.messages.signing import Signer
from blurfit.protocol import JSON, RequestError
from blurfit_server.service import answers, endpoints, intake, operations
from blurfit_server.service.administration import Administration
from blurfit_server.service.intake import LINGER, Collector, SubmissionPath, is_for_submissions
from blurfit_server.service.limits import IN_FLIGHT, Allowance, Bounds, Gate, Limiter, proxies_in
from blurfit_server.service.operations import OBJECT, SAME, answer
from blurfit_server.service.peers import LOOK_EVERY, Jobs, Peering
from blurfit_server.store.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """What one request, one address, one collection, and all bodies together may take.

    A rate of 0 means no limit; a batch counts as several requests
    (`blurfit_server.service.limits`).
    """

    body_bytes: int = 32 * 2**20
    bytes_in_flight: int = IN_FLIGHT
    requests_per_second: float = 200.0
    burst: float = 2000.0
    submissions_per_second: float = 0.0  # to one collection; ten times as many at once

    def limiter(self) -> Limiter:
        """Hold each address to its rate."""
        return Limiter(self.requests_per_second, self.burst)

    def collection_limiter(self) -> Limiter:
        """Hold each collection to its rate, whoever sends to it."""
        rate = self.submissions_per_second
        return Limiter(rate, 10 * rate, counted_as=str)


@dataclass(eq=False)
class Service:
    """An ASGI application over one store; `Service(Store("collection.db"))`.

    `peer_token` is what this service and the one of an agreement's other database know each other
    by; `peer_options` are for `blurfit_server.service.peers.RemotePeer`. `share_key` is the private
    key to which agreements seal this database's shares, `signing_key` the one with which it signs
    where agreements name it. `limiter`, `collection_limiter` and `metrics` are given where several
    processes have them in common (`blurfit_server.service.app`).
    """

    store: Store
    limits: Limits = field(default_factory=Limits)
    linger: float = LINGER
    look_every: float = LOOK_EVERY
    peer_token: str | None = field(default=None, repr=False)
    share_key: str | None = field(default=None, repr=False)
    signing_key: str | None = field(default=None, repr=False)
    peer_options: dict[str, Any] = field(default_factory=dict, repr=False)
    limiter: Limiter | None = field(default=None, repr=False)
    collection_limiter: Limiter | None = field(default=None, repr=False)
    metrics: answers.Metrics = field(default_factory=answers.Metrics, repr=False)

    def __post_init__(self) -> None:
        metrics = self.metrics
        self._allowance = Allowance(
            self.limits.bytes_in_flight, limiter=self.limiter or self.limits.limiter()
        )
        self._collector = Collector(self.store, self.linger)
        self._signing = answers.Signatory(
            self.store, Signer(self.signing_key) if self.signing_key else None
        )
        self._jobs = Jobs(
            *(self.store, self._signing, self.peer_token, self.peer_options, self.look_every),
            wrote=self._collector.tidy,
        )
        self._collector.stored = self._jobs.stored
        self._refusals = answers.Refusals(metrics)
        self._submissions = SubmissionPath(
            self.store,
            self._collector,
            metrics,
            self.collection_limiter or self.limits.collection_limiter(),
            self.limits.body_bytes,
            self._signing,
            self.share_key,
        )
        # A redirect to the path without a slash would name whatever host the request does.
        self._router = Router(
            self._routes(metrics), redirect_slashes=False, lifespan=self._lifespan
        )

    def _routes(self, metrics: answers.Metrics) -> list[Route]:
        store, signing = self.store, self._signing
        papers = endpoints.Papers(store, signing, answers.Shelf(self._allowance.turns))
        parts = (
            endpoints.Reading(store, metrics, papers),
            endpoints.Contributing(store, signing),
            Administration(store, self._jobs, papers, self.share_key, self.limits.body_bytes),
            Peering(store, self.peer_token, signing),
            self,
        )
        declared = [one for part in parts for _, one in operations.declared_by(part)]
        self.document = operations.document(
            [*declared, intake.operation(), *endpoints.page_operations()]
        )
        self._description = answers.Kept.made(msgspec.json.encode(self.document), JSON)
        return [*operations.routes(parts), *endpoints.page_routes(self._submissions.origins)]

    @operations.get("/openapi.json", answer(OBJECT, "This document.") | SAME)
    async def describe(self, request: Request) -> Response:
        """This document."""
        return self._description.answer(request)

    def may_ask(self, address: str) -> bool:
        """Tell whether an address has requests left."""
        return self._allowance.limiter.has_left(address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; with 500 and a name for the log where nobody foresaw an error."""
        scope["app"] = self  # so that the router raises where it finds nothing
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        if scope.get("scheme") == "https":
            send = answers.adding(send, answers.OVER_TLS)
        started = False

        async def noted(message: Any) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._dispatch(scope, receive, noted)
        except Exception:
            name = protocol.new_token()[:12]
            _log.exception("request %s (%s) failed", name, scope["method"])
            if not started:
                refusal = RequestError(
                    protocol.UNEXPECTED,
                    "Request {name} failed for a reason that is not its own. Whoever runs the "
                    "service finds it in the log under that name. What was acknowledged is stored.",
                    name=name,
                )
                await self._refusals.send(send, refusal)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        address = client[0] if client else ""
        accepted = dict(scope["headers"]).get(b"accept-language")  # programs name none
        language = "en" if accepted is None else answers.best_of(accepted.decode("latin-1"))
        answers.wanted.set(language)
        if client and not self._allowance.limiter.allows(address):
            refusal = RequestError(
                protocol.TOO_MANY,
                "Wait a second and send the same request again; it will be counted once.",
            )
            await self._refusals.send(send, refusal)
            return
        about = "".join(scope["path"].split("/", 3)[2:3])  # /collections/{fingerprint}/…
        with self._allowance.reserve(address, about) as held:
            scope["held"] = held
            across = await answers.let_across(scope, send, self._submissions.origins)
            if across is None:
                return
            try:
                if is_for_submissions(scope["path"]):
                    await self._submissions(scope, receive, across)
                else:
                    framed = answers.charging(answers.adding(across, answers.RAW_HEADERS), held)
                    await self._router(scope, receive, framed)
                    if scope["method"] == "POST":
                        self._collector.tidy()
            except (BlurfitError, RequestError) as error:
                await self._refusals.send(across, error)
            except HTTPException as error:
                await self._answer_unrouted(Request(scope, receive), error, across)

    async def _answer_unrouted(self, request: Request, error: HTTPException, send: Send) -> None:
        """Answer a request for which there is no route, with a page where a person asks."""
        if error.status_code == 404 and endpoints.wants_page(request):
            self.metrics.refused(protocol.NOT_FOUND.name)
            page = endpoints.missing_page(request)
            await page(request.scope, request.receive, answers.adding(send, answers.RAW_HEADERS))
            return
        kind = protocol.NOT_ALLOWED if error.status_code == 405 else protocol.NOT_FOUND
        refusal = RequestError(
            kind,
            "{method} {path}: see /openapi.json for what there is.",
            method=request.method,
            path=request.url.path,
        )
        more = [
            (name.lower().encode(), one.encode()) for name, one in (error.headers or {}).items()
        ]
        await self._refusals.send(send, refusal, more)

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        self._jobs.start()
        yield
        await self._jobs.close()
        await self._collector.close()


# ---- serving

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
            "Expected a postgresql:// store for --workers {workers}, and got {place!r}: SQLite "
            "lets one process write at a time, and the others would wait for it. Use one worker, "
            "or PostgreSQL.",
            workers=workers,
            place=place,
        )
    if not hasattr(os, "fork"):
        raise InvalidValueError(
            "Expected --workers 1, and got {workers}: this system cannot fork processes. Start "
            "several services at several ports, behind a proxy.",
            workers=workers,
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
        return json.dumps(found)  # in ASCII: no character of a message moves a cursor


class TextLines(logging.Formatter):
    """Time, level, logger and message; what a terminal would obey is shown as it is written."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, and the traceback of an error below it."""
        message = _shown(record.getMessage().replace("\\", "\\\\"))
        line = f"{_time(record)} {record.levelname.lower()} {record.name}: {message}"
        if not record.exc_info:
            return line
        below = self.formatException(record.exc_info).splitlines()
        return "\n  ".join([line, *map(_shown, below)])


def _shown(text: str) -> str:
    """Return a text with escapes for characters that cannot be printed: one line."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


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
            "blurfit_server.service.peers": spoken,
            "uvicorn": quiet,
            "uvicorn.error": quiet,
            "uvicorn.access": spoken if access else quiet,
        },
    }
