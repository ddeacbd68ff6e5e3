"""Do what the store's outbox says is still to be done (`blurfit.store.outbox`): one driver for all.

Every service on the store may drive: to do something twice changes nothing. Each course has a
thread of its own while there is something to do, so a database that hangs keeps nobody else
waiting, and neither does learning keep those who write. What fails is tried again, soon and then
less often. Each outcome is a line of the log.

Where a course has one database, those whose arrival filled a wave are answered when the next one is
open: whoever has been answered finds the course where it is now, so nobody who sends one part after
the other blurs for a wave that is full.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from blurfit.errors import BlurfitError, ConflictError, ServiceError
from blurfit.protocol.problems import RequestError
from blurfit.service.limits import run_in_daemon_thread
from blurfit.service.peers import SECONDS_TO_ANSWER, SECONDS_TO_PUBLISH, RemotePeer, shared_secret
from blurfit.service.signing import Signatory
from blurfit.store.collections import Collection, Course
from blurfit.store.outbox import Task
from blurfit.store.store import Store

_log = logging.getLogger(__name__)

LOOK_EVERY = 5.0  # seconds
SECONDS_TO_STOP = 3.0
SECONDS_TO_ADVANCE = 10.0  # that those who filled a wave wait for the next one
FIRST_PAUSE = 1.0  # seconds before something is tried again, and twice as many each time, up to
LONGEST_PAUSE = {"advance": 60.0, "tell": 60.0, "sign": 3600.0}


@dataclass(eq=False)
class Jobs:
    """Drives the courses of a store; `secret` is what this service and other databases share."""

    store: Store
    signing: Signatory
    secret: str | None = field(default=None, repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    look_every: float = LOOK_EVERY
    wrote: Callable[[], None] = lambda: None  # is told when something may have been written

    def __post_init__(self) -> None:
        self._running: dict[tuple[str, bool], asyncio.Task[None]] = {}
        self._driver: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._closing = False

    def start(self) -> None:
        """Look around now, and from now on."""
        self._loop = asyncio.get_running_loop()
        self._driver = self._loop.create_task(self._drive())

    async def close(self) -> None:
        """Stop looking; what is under way is waited for, unless the store hangs."""
        self._closing = True
        self._wake.set()
        if self._driver is not None:
            working = [self._driver, *self._running.values()]
            await asyncio.wait(working, timeout=SECONDS_TO_STOP)
            self._driver.cancel()

    def wake(self) -> None:
        """Look around as soon as possible, from whichever thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    async def stored(self, collection: Collection) -> None:
        """Take a course forward if what was just stored has filled its wave.

        Whatever happens here, it is stored: so nothing is raised.
        """
        course = collection.course
        if self._closing:
            return
        if course.role != "whole":  # a step needs the other database, for which nobody waits
            self.wake()
            return
        try:
            for task in await run_in_daemon_thread(self.store.due):
                if task.course == course.fingerprint and task.what == "advance":
                    await asyncio.wait([self._begin(task)], timeout=SECONDS_TO_ADVANCE)
        except Exception:  # the store is away: the next look will tell
            _log.exception("It was not found out whether %s can go on.", course.fingerprint)

    def publish(self, course: Course) -> None:
        """Publish a course now, and do what follows from that; may take as long as the wire."""
        with self._peer(course, SECONDS_TO_PUBLISH) as peer:
            try:
                self.store.publish_text(course.fingerprint, peer)
            except ServiceError as error:  # whoever asked may ask again: nothing is done twice
                remedy = "Ask for the same again when it is back; nothing is done twice."
                if error.status == 401:
                    remedy = "Start both services with the same --peer-token-file."
                name = course.document.databases[1].name
                raise ServiceError(
                    f"{name} did not help: {error} {remedy}", error.status
                ) from error
            for task in self.store.due():  # to sign, above all
                if task.course == course.fingerprint:
                    self._work(task, peer)
        self.wake()

    async def _drive(self) -> None:
        while not self._closing:
            self._wake.clear()  # before looking: who wakes it meanwhile is not missed
            wait = self.look_every
            try:
                tasks, wait = await run_in_daemon_thread(self._due)
                for task in () if self._closing else tasks:
                    self._begin(task)
            except Exception:
                _log.exception("What is to be done could not be read; this will be tried again.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    def _due(self) -> tuple[list[Task], float]:
        """Return what can be done now, and how long to wait for more."""
        due, soonest = self.store.due(), self.store.seconds_to_next()
        # Where both share no secret, somebody else leads, or nobody.
        alone = self.secret is None
        able = [one for one in due if not (alone and self.store.course(one.course).role == "first")]
        if soonest is None or len(able) < len(due):
            return able, self.look_every
        return able, min(self.look_every, max(soonest, 0.1))

    def _begin(self, task: Task) -> asyncio.Task[None]:
        """Do something in a thread of its own, unless somebody is at it."""
        lane = task.course, task.what == "sign"
        running = self._running.get(lane)
        if running is None or running.done():
            running = self._running[lane] = asyncio.create_task(self._do(task))
        return running

    async def _do(self, task: Task) -> None:
        def work() -> None:
            course = self.store.course(task.course)
            try:
                with self._peer(course, SECONDS_TO_ANSWER) as peer:
                    self._work(task, peer)
            except BlurfitError as error:
                self._put_off(task, error)
            if task.what != "sign":
                self.wake()  # something else may follow from it

        try:
            await run_in_daemon_thread(work)
        except Exception:
            _log.exception("%s failed; it will be tried again.", _named(task))
        self.wrote()

    def _work(self, task: Task, peer: RemotePeer | None) -> None:
        try:
            self.store.work(task, peer)
        except Exception as error:
            if not isinstance(error, BlurfitError | RequestError):
                _log.exception("%s failed for a reason that is not its own.", _named(task))
            self._put_off(task, error)
        else:
            _log.info("%s is done.", _named(task))

    def _put_off(self, task: Task, error: Exception) -> None:
        if task.what == "tell" and isinstance(error, ConflictError):
            _log.warning("%s is refused for good: %s", _named(task), error)
            return
        pause = min(FIRST_PAUSE * 2.0**task.attempts, LONGEST_PAUSE[task.what])
        self.store.put_off(task, pause, error if isinstance(error, BlurfitError) else None)
        _log.warning("%s is tried again in %g s: %s", _named(task), pause, error)

    @contextmanager
    def _peer(self, course: Course, patience: float) -> Iterator[RemotePeer | None]:
        """Reach the second database, where this is the first of two."""
        if course.role != "first":
            yield None
            return
        secret, options = shared_secret(self.secret), {"patience": patience} | self.options
        with RemotePeer(self.store, course, secret, self.signing, **options) as peer:
            yield peer


def _named(task: Task) -> str:
    return f"{task.what} {task.course}" + (f", wave {task.wave}" if task.wave else "")
