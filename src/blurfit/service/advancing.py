"""Plans go from wave to wave by themselves: quorum reached, sums published, next wave open.

The step is taken in the thread that writes, right after the group of arrivals that filled the wave,
and before any of them is answered: whoever has been answered finds the plan where it is now, so
nobody who sends one part after the other blurs for a wave that is full. It is one transaction
(`blurfit.store.advance`); other processes that share the store may try it too, and one of them
does it. The model, a function of what was published, is learned beside the writer.

A service that was killed between the arrivals and the step takes it when it starts again. So does
every other service on the store: each looks around every few seconds.

Where a plan has two databases the first one leads (`blurfit.service.leading`): a step then needs
answers from the other, so it is taken beside the writer, in a thread for each plan. So are missing
signatures asked for (`blurfit.service.countersigning`).
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from blurfit.errors import BelowQuorumError, UnknownCollectionError
from blurfit.service.background import run_in_daemon_thread
from blurfit.service.countersigning import Countersigning
from blurfit.service.intake import Collector
from blurfit.service.leading import Leading
from blurfit.store.advance import advance, due, learn_model, missing
from blurfit.store.collections import Collection
from blurfit.store.store import Store

_log = logging.getLogger(__name__)

LOOK_EVERY = 5.0  # seconds
SECONDS_TO_STOP = 3.0
_NEVER = 2**62
_OFTEN = 8  # what is missing is counted again when an eighth of it has come this way


@dataclass(eq=False)
class Advancing:
    """Takes the plans of a store forward."""

    store: Store
    collector: Collector
    leading: Leading
    countersigning: Countersigning
    look_every: float = LOOK_EVERY

    def __post_init__(self) -> None:
        self.collector.stored = self.stored
        self._until_counted: dict[str, int] = {}  # by plan: so many more, then it is counted
        # By plan, or by collection, while something is done together with the other database.
        self._beside: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._closing = False

    def start(self) -> None:
        """Look around now, and from now on."""
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())

    async def close(self) -> None:
        """Stop looking; what is under way is waited for, unless the store hangs."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=SECONDS_TO_STOP)
            self._task.cancel()

    def stored(self, collection: Collection, new: int) -> None:
        """Some new rows of a collection are on disk: take the step if they filled a wave.

        They are stored whatever happens here, so nothing is raised.
        """
        wave = collection.agreement.wave
        if wave is None or not new:
            return
        left = self._until_counted.get(wave.plan, 0) - new
        if left > 0:
            self._until_counted[wave.plan] = left
            return
        try:
            wanted = self.store.read(missing, wave.plan)
            self._until_counted[wave.plan] = max(1, wanted // _OFTEN)
            if wanted <= 0:
                if collection.role == "whole":
                    self.step(wave.plan)
                self.look_soon()
        except UnknownCollectionError:  # a wave that was opened without its plan, in Python
            self._until_counted[wave.plan] = _NEVER
        except Exception:  # the store is away: the next look will tell
            _log.exception("Plan %s was not taken forward yet.", wave.plan)

    def step(self, plan: str) -> None:
        """Publish the open wave and open the next, unless too few have come."""
        try:
            self.store.write(advance, plan)
        except BelowQuorumError:  # another process took the step, and a new wave collects
            return

    async def learned(self, plan: str) -> str | None:
        """The model of a plan that has ended, learned now if need be."""
        return await run_in_daemon_thread(lambda: learn_model(self.store, plan))

    def look_soon(self) -> None:
        """Look around as soon as possible, from whichever thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    async def _run(self) -> None:
        while not self._closing:
            self._wake.clear()  # before looking: who wakes it meanwhile is not missed
            try:
                for plan in await run_in_daemon_thread(lambda: self.store.read(due)):
                    await self._take_forward(plan)
                for plan in await run_in_daemon_thread(self.leading.due):
                    self._begin(plan, self.leading.forward)
                for collection in await run_in_daemon_thread(self.countersigning.due):
                    self._begin(collection, self.countersigning.ask)
            except Exception:
                _log.exception("Plans could not be looked after; this will be tried again.")
            with suppress(TimeoutError):
                wait = self.leading.seconds_to_wait(self.look_every)
                await asyncio.wait_for(self._wake.wait(), wait)

    def _begin(self, name: str, step: Callable[[str], None]) -> None:
        """Do something together with the other database, unless somebody is at it."""
        before = self._beside.get(name)
        if not self._closing and (before is None or before.done()):
            self._beside[name] = asyncio.create_task(self._do(name, step))

    async def _do(self, name: str, step: Callable[[str], None]) -> None:
        try:
            await run_in_daemon_thread(lambda: step(name))
        except Exception:
            _log.exception("The next step of %s failed; it will be tried again.", name)

    async def _take_forward(self, plan: str) -> None:
        if not self._closing:
            await self.collector.between_commits(self.step, plan)
            await self.learned(plan)
