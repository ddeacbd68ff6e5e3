"""Several processes behind one port: each a whole service, and all of them on one store.

A parent binds the port, forks the workers, starts another where one has died, passes signals on to
them, and ends within ten seconds. It opens no store and answers nobody, so there is little in it
that could fail; and if it is killed, the workers notice and end, too.

Each worker has a listening socket of its own on the same port (SO_REUSEPORT), and the system
divides new connections among these. The parent keeps all of them open: those who wait at the socket
of a worker that died are answered by the one that takes its place. Where sockets cannot share a
port, the workers share one socket.

With several processes, what one would keep in memory is kept

| what | where | so |
| --- | --- | --- |
| submissions, models, waves, tokens, invitations, deeds | in the store | transactions see to it |
| requests of an address | in memory that all share | one limit (`blurfit.service.limits`) |
| counts for Prometheus | in memory that all share | sums (`blurfit.service.metrics`) |
| connections of an address, bytes of bodies, kept answers | in each worker | a bound on each \
process |
| groups of arrivals, collections that were read, sums over a set | in each worker | work is done \
twice at most: what is remembered never changes |

Plans advance in one transaction, so it is harmless that every worker looks after them. Each counts
what came its way, so a wave may take some more than its quorum before one of them sees that it is
full: an eighth of what was missing when it last looked, or five seconds' worth.
"""

import logging
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import uvicorn

from blurfit.errors import InvalidValueError

_log = logging.getLogger(__name__)

SECONDS_TO_STOP = 9.0  # then whoever is left is killed
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
