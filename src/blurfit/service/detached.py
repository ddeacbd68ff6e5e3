"""Work that waits for somebody else, and that does not keep a service from stopping.

A thread of a pool is joined when the process ends, so one that hangs on another machine's answer
would keep it from ending. A thread of this kind is not; so it may do only what can be broken off
anywhere, as publishing together can (`blurfit.store.joint_publication`).
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

_Found = TypeVar("_Found")


async def detached(work: Callable[[], _Found]) -> _Found:
    """What some work comes to, done in a thread of its own that ends with the process."""
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

    threading.Thread(target=run, name="blurfit-detached", daemon=True).start()
    return await answer


class Underway(Generic[_Found]):
    """Work that takes long, once at a time under each name: whoever asks for it meanwhile, perhaps
    because waiting took too long, waits for what is under way.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[_Found]] = {}

    async def join(self, name: str, work: Callable[[], _Found]) -> _Found:
        """What it comes to, begun now or before."""
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = asyncio.create_task(detached(work))
            task.add_done_callback(lambda ended: self._end(name, ended))
        return await asyncio.shield(task)

    def _end(self, name: str, ended: asyncio.Task[_Found]) -> None:
        del self._tasks[name]
        if not ended.cancelled():
            ended.exception()  # seen, even if nobody waits any more
