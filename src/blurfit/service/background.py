"""Work that takes long, or waits for somebody else, and does not keep a service from stopping.

A thread of a pool is joined when the process ends, so one that hangs on another machine's answer
would keep it from ending. A thread of this kind is not; so it may do only what can be broken off
anywhere, as publishing together can (`blurfit.store.joint`).
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
LONG = 2**14  # bytes of a text: up to here it is read at once, and beyond in turn
_PAUSE = 2.0  # as long as the work before took


async def run_in_daemon_thread(work: Callable[[], _Found]) -> _Found:
    """Return the result of some work, done in a thread of its own that ends with the process."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_Found] = loop.create_future()

    def settle(give: Callable[[], None]) -> None:
        if not answer.done():  # else nobody waits any more
            give()

    def run() -> None:
        try:
            give = partial(answer.set_result, work())
        except BaseException as problem:  # whatever it is, it is for whoever waits
            give = partial(answer.set_exception, problem)
        try:
            loop.call_soon_threadsafe(settle, give)
        except RuntimeError:  # the loop has ended, and so has the service
            return

    threading.Thread(target=run, name="blurfit-background", daemon=True).start()
    return await answer


class Turns:
    """Work that takes long, one piece at a time; after each, the next waits twice as long.

    While JSON is read, or written, nothing else of this process runs. So that is a third of the
    time at most, however much of it there is, and only one text is in memory as Python's objects.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._next = 0.0  # when somebody has a turn

    async def take(
        self, work: Callable[_Given, _Found], *given: _Given.args, **named: _Given.kwargs
    ) -> _Found:
        """Return the result of some work, done when its turn has come."""

        def timed() -> _Found:
            began = time.thread_time()
            try:
                return work(*given, **named)
            finally:
                self._next = time.monotonic() + _PAUSE * (time.thread_time() - began)

        async with self._turn:
            await asyncio.sleep(max(0.0, self._next - time.monotonic()))
            return await run_in_daemon_thread(timed)


class InProgress(Generic[_Found]):
    """Work that takes long, once at a time under each name: whoever asks for it meanwhile, perhaps
    because waiting took too long, waits for what is under way.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[_Found]] = {}

    async def join(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, _Found]]) -> _Found:
        """Return the result, starting the work unless it runs."""
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = asyncio.create_task(work())
            task.add_done_callback(lambda ended: self._end(name, ended))
        return await asyncio.shield(task)

    def _end(self, name: Hashable, ended: asyncio.Task[_Found]) -> None:
        del self._tasks[name]
        if not ended.cancelled():
            ended.exception()  # seen, even if nobody waits any more
