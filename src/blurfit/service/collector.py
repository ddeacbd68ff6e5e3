"""Group commit: whoever arrives while one commit is under way goes into the next.

A durable commit costs about the same for one submission as for a thousand, so arrivals wait a
moment for each other, and each is answered once the commit that holds it has returned. One thread
writes; meanwhile the event loop reads the next requests. Collections take turns, a group each, so
that however much comes to one, the others wait for no more than one group of it.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, ParamSpec, TypeVar

from blurfit.errors import BlurfitError, StorageError
from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.store.arrivals import Arrival, Outcome
from blurfit.store.collections import Collection
from blurfit.store.store import Store

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_log = logging.getLogger(__name__)

LINGER = 0.002  # seconds that the first of a group waits for others
GROUP_BYTES = 2**24  # a group is closed when it holds so much
TIDY_BYTES = 2**23  # after so much has been written, the store is tidied
WAITING_BYTES = 2**28  # beyond this much in memory, newcomers are sent away for a while
SECONDS_TO_STORE = 20.0  # after which somebody is told that it is not known


class Waiting(NamedTuple):
    """An arrival, and who waits for its outcome."""

    arrival: Arrival
    answer: "asyncio.Future[int]"

    @property
    def size(self) -> int:
        """How many bytes it holds in memory."""
        return self.arrival.size


@dataclass
class Collector:
    """Takes arrivals from an event loop and commits them in groups."""

    store: Store
    linger: float = LINGER
    # Is told of new rows that are on disk, in the thread that writes, before they are acknowledged.
    stored: Callable[[Collection, int], object] = lambda _collection, _new: None

    def __post_init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="blurfit-writer")
        self._tidier = ThreadPoolExecutor(1, thread_name_prefix="blurfit-tidier")
        self._tidying: asyncio.Future[None] | None = None
        self._since_tidied = 0
        self._queues: dict[Collection, list[Waiting]] = {}
        self._bytes = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    async def submit(self, collection: Collection, arrival: Arrival) -> int:
        """How many of its rows were new, when they are on disk; else the reason is raised."""
        if self._bytes > WAITING_BYTES or self._closing:
            raise StorageError("Too much is waiting to be stored.")
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(collection, []).append(Waiting(arrival, answer))
        self._bytes += arrival.size
        self._wake.set()
        try:
            return await asyncio.wait_for(answer, SECONDS_TO_STORE)
        except TimeoutError:  # a database that hangs: nobody waits with it
            raise RequestError(
                problems.UNAVAILABLE,
                "Whether this was stored is not known yet. Send the same again after a while; it "
                "will be counted once.",
            ) from None

    async def between_commits(
        self,
        work: Callable[_Given, _Found],
        *arguments: _Given.args,
        **named: _Given.kwargs,
    ) -> _Found:
        """Do something else in the thread that writes, when no commit is under way."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, partial(work, *arguments, **named))

    async def close(self) -> None:
        """Commit what is waiting, and stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        self._writer.shutdown()
        self._tidier.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not (self._closing and not self._queues):
            if not self._wake.is_set():  # nobody came during the last commit
                await self._wake.wait()
                await asyncio.sleep(self.linger)
            self._wake.clear()
            for collection, group in self._take_turns():
                outcomes = await loop.run_in_executor(self._writer, self._commit, collection, group)
                self._answer(group, outcomes)
                self._tidy(sum(waiting.size for waiting in group))

    def _tidy(self, written: int) -> None:
        """Let the store put things in their place, when there are enough of them, and meanwhile."""
        self._since_tidied += written
        busy = self._tidying is not None and not self._tidying.done()
        if self._since_tidied >= TIDY_BYTES and not busy:
            self._since_tidied = 0
            loop = asyncio.get_running_loop()
            self._tidying = loop.run_in_executor(self._tidier, self._tidy_quietly)

    def _tidy_quietly(self) -> None:
        try:
            self.store.tidy()
        except Exception:  # nothing depends on it, and the writer will do it at last
            _log.exception("The store could not be tidied.")

    def _take_turns(self) -> list[tuple[Collection, list[Waiting]]]:
        """One group of each collection; what is left over has its turn after all the others."""
        turns = []
        queues, self._queues = self._queues, {}
        for collection, queue in queues.items():
            members = _first_group(queue)
            turns.append((collection, queue[:members]))
            if queue[members:]:
                self._queues[collection] = queue[members:]
                self._wake.set()
        return turns

    def _answer(self, group: list[Waiting], outcomes: list[Outcome] | BlurfitError) -> None:
        for place, waiting in enumerate(group):
            self._bytes -= waiting.size
            if waiting.answer.done():  # whoever asked has gone away
                continue
            outcome = outcomes if isinstance(outcomes, BlurfitError) else outcomes[place]
            if isinstance(outcome, BlurfitError):
                waiting.answer.set_exception(outcome)
            else:
                waiting.answer.set_result(outcome)

    def _commit(self, collection: Collection, group: list[Waiting]) -> list[Outcome] | BlurfitError:
        try:
            outcomes = self.store.receive(collection, [waiting.arrival for waiting in group])
        except BlurfitError as error:
            _log.error("A group of %d arrivals was not stored: %s", len(group), error)
            return error
        except Exception as error:
            # Whatever it is, someone waits for an answer, and the others are not to blame for it.
            if len(group) > 1:
                apart = [self._commit(collection, [waiting]) for waiting in group]
                return [one if isinstance(one, BlurfitError) else one[0] for one in apart]
            _log.exception("An arrival was not stored.")
            return StorageError(type(error).__name__)
        self.stored(collection, sum(one for one in outcomes if isinstance(one, int)))
        return outcomes


def _first_group(queue: list[Waiting]) -> int:
    """How many of a queue go into one group, which is of bounded size."""
    size = 0
    for place, waiting in enumerate(queue):
        size += waiting.size
        if place and size > GROUP_BYTES:
            return place
    return len(queue)
