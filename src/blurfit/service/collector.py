"""Group commit: whoever arrives while one commit is under way goes into the next.

A durable commit costs about the same for one submission as for a thousand, so arrivals wait a
moment for each other, and each is answered once the commit that holds it has returned. Threads
write; meanwhile the event loop reads the next requests.

Each collection has a lane of its own, in which one commit follows another. SQLite takes one writer
at a time, and so there is one thread for all lanes: they take turns, a group each, so that however
much comes to one collection, the others wait for no more than one group of it. PostgreSQL takes
several: there a collection whose row somebody holds locked keeps one thread, and the others write
meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

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
WRITERS = 4  # threads, where a database takes several writers
GROUP_BYTES = 2**24  # a group is closed when it holds so much
TIDY_BYTES = 2**23  # after so much has been written, the store is tidied
TIDY_SECONDS = 5.0  # and so long after anything was written: a log that is lost holds no more
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
        writers = WRITERS if self.store.takes_several_writers else 1
        self._writer = ThreadPoolExecutor(writers, thread_name_prefix="blurfit-writer")
        self._tidier = ThreadPoolExecutor(1, thread_name_prefix="blurfit-tidier")
        self._tidying: asyncio.Future[None] | None = None
        self._tidy_later: asyncio.TimerHandle | None = None
        self._since_tidied = 0
        self._queues: dict[Collection, list[Waiting]] = {}
        self._lanes: dict[Collection, asyncio.Task[None]] = {}
        self._bytes = 0
        self._closing = False

    async def submit(self, collection: Collection, arrival: Arrival) -> int:
        """How many of its rows were new, when they are on disk; else the reason is raised."""
        if self._bytes > WAITING_BYTES or self._closing:
            raise StorageError("Too much is waiting to be stored.")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(collection, []).append(Waiting(arrival, answer))
        self._bytes += arrival.size
        if collection not in self._lanes:
            self._lanes[collection] = asyncio.create_task(self._run(collection))
        try:
            return await asyncio.wait_for(answer, SECONDS_TO_STORE)
        except TimeoutError:  # a database that hangs: nobody waits with it
            raise RequestError(
                problems.UNAVAILABLE,
                "It is not known yet whether this was stored. Send the same request again later; "
                "it will be counted once.",
            ) from None

    async def between_commits(
        self,
        work: Callable[_Given, _Found],
        *arguments: _Given.args,
        **named: _Given.kwargs,
    ) -> _Found:
        """Do something else in a thread that writes, when its turn comes."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._writer, partial(work, *arguments, **named))
        finally:
            self._tidy(0)

    def in_turn(self) -> Callable[..., Any]:
        """`Store.write`, for a thread beside those that write: it waits for its turn."""
        loop = asyncio.get_running_loop()

        def write(what: Callable[..., Any], *given: Any) -> Any:
            turn = self.between_commits(self.store.write, what, *given)
            return asyncio.run_coroutine_threadsafe(turn, loop).result()

        return write

    async def close(self) -> None:
        """Commit what is waiting, and stop."""
        self._closing = True
        await asyncio.gather(*self._lanes.values())
        if self._tidy_later is not None:
            self._tidy_later.cancel()
        self._writer.shutdown()
        self._tidier.shutdown()

    async def _run(self, collection: Collection) -> None:
        """Commit what came for a collection, until nobody came during the last commit."""
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(self.linger)
            while queue := self._queues.pop(collection, None):
                for group in _groups(queue):
                    outcomes = await loop.run_in_executor(
                        self._writer, self._commit, collection, group
                    )
                    self._answer(group, outcomes)
                    self._tidy(sum(waiting.size for waiting in group))
        finally:
            del self._lanes[collection]

    def _tidy(self, written: int) -> None:
        """Let the store tidy up beside the writer, once there is enough to tidy, and in time."""
        self._since_tidied += written
        if self._since_tidied >= TIDY_BYTES:
            self._tidy_now()
        elif self._tidy_later is None and not self._closing:
            loop = asyncio.get_running_loop()
            self._tidy_later = loop.call_later(TIDY_SECONDS, self._tidy_now)

    def _tidy_now(self) -> None:
        if self._tidy_later is not None:
            self._tidy_later.cancel()
            self._tidy_later = None
        if self._closing or (self._tidying is not None and not self._tidying.done()):
            return
        self._since_tidied = 0
        loop = asyncio.get_running_loop()
        self._tidying = loop.run_in_executor(self._tidier, self._tidy_quietly)

    def _tidy_quietly(self) -> None:
        try:
            self.store.tidy()
        except Exception:  # nothing depends on it, and the writer does it in the end
            _log.exception("The store could not be tidied.")

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


def _groups(queue: list[Waiting]) -> list[list[Waiting]]:
    """The queue in parts of bounded size, in order."""
    groups: list[list[Waiting]] = [[]]
    size = 0
    for waiting in queue:
        if groups[-1] and size + waiting.size > GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(waiting)
        size += waiting.size
    return groups
