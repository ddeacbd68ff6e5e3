"""Withdraw what was sent, for whoever names its secret: `blurfit.store.withdrawal`.

The blocks of a collection are searched for it, so a withdrawal costs as much as a hundred requests
of the same address, or as one for each block where there are more, whether it is of one submission
or of ten thousand. One is looked after at a time, beside whoever writes, and others write between
any few of its blocks: so however many withdraw, and wherever their rows are, nobody else waits for
long. Pages of the other of two databases may ask as well, since a receipt is for both.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.arrays import ByteArray
from blurfit.errors import InvalidValueError
from blurfit.json_reader import read_json
from blurfit.messages.receipts import identifiers_of
from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import JSON, MOST_SUBMISSIONS, Withdrawal
from blurfit.service import cors
from blurfit.service.answers import as_json
from blurfit.service.bodies import body_of
from blurfit.service.collector import Collector
from blurfit.service.detached import detached
from blurfit.service.documents import Secrets
from blurfit.service.limits import Limiter
from blurfit.service.reading import fingerprint_in
from blurfit.service.signatory import Signatory
from blurfit.store import blocks
from blurfit.store.collections import Collection
from blurfit.store.store import Store
from blurfit.store.withdrawal import Withdrawn, withdraw

_REQUESTS = 100  # that one withdrawal costs as much as, at least


@dataclass(frozen=True, eq=False)
class Withdrawals:
    """An endpoint for people with a receipt."""

    store: Store
    collector: Collector
    signing: Signatory
    limiter: Limiter
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def withdraw(self, request: Request) -> Response:
        """Take submissions out of a collection, for good."""
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        names = identifiers_in(await body_of(request, JSON))
        address = request.client.host if request.client else ""
        cost = max(_REQUESTS, await run_in_threadpool(self.store.read, blocks.number, collection))
        if not self.limiter.allows(address, cost):
            raise RequestError(problems.TOO_MANY, "Wait some seconds, and ask for the same again.")
        loop = asyncio.get_running_loop()

        def write(what: Callable[..., int], *given: Any) -> int:
            turn = self.collector.between_commits(self.store.write, what, *given)
            return asyncio.run_coroutine_threadsafe(turn, loop).result()

        async with self._turn:
            done = await detached(lambda: withdraw(self.store, collection, names, write))
        return cors.crossing(
            request, collection.agreement, as_json(self._answer(collection, names, done))
        )

    async def preflight(self, request: Request) -> Response:
        """Tell a browser what a page of the other database may ask."""
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        response = Response(status_code=204)
        response.headers["access-control-allow-methods"] = "POST"
        response.headers["access-control-allow-headers"] = "content-type"
        response.headers["access-control-max-age"] = "600"
        return cors.crossing(request, collection.agreement, response)

    def _answer(self, collection: Collection, names: ByteArray, done: Withdrawn) -> Withdrawal:
        others = {*done.unknown, *done.staying}
        told = b"".join(one for one in map(bytes, names) if one not in others)
        signature = self.signing.of_submissions("withdrawal", collection, told) if told else None
        unknown, staying = ([one.hex() for one in some] for some in (done.unknown, done.staying))
        return Withdrawal(done.withdrawn, done.new, unknown, signature, staying)


def identifiers_in(body: bytes) -> ByteArray:
    """The identifiers whose secrets a body names."""
    try:
        given = read_json(body, Secrets).secrets
    except ValueError as error:
        raise InvalidValueError(
            f'Expected {{"secrets": ["…"]}}, 1 to {MOST_SUBMISSIONS} of them, each in 64 '
            f"hexadecimal digits, as a receipt gives them: {error}."
        ) from error
    return identifiers_of([bytes.fromhex(one) for one in dict.fromkeys(given)])
