"""Work that waits for somebody else, and that does not keep a service from stopping.

A thread of a pool is joined when the process ends, so one that hangs on another machine's answer
would keep it from ending. A thread of this kind is not; so it may do only what can be broken off
anywhere, as publishing together can (`blurfit.store.joint_publication`).
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

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
