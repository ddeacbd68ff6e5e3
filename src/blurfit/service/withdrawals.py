"""Withdraw what was sent, for whoever names its secret: `blurfit.store.withdrawal`.

The blocks of a collection are searched for it, so a withdrawal costs as much as a hundred requests
of the same address, whether it is of one submission or of ten thousand. Pages of the other of two
databases may ask as well, since a receipt is for both.
"""

from dataclasses import dataclass

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
from blurfit.service.documents import Secrets
from blurfit.service.limits import Limiter
from blurfit.service.reading import fingerprint_in
from blurfit.service.signatory import Signatory
from blurfit.store.collections import Collection
from blurfit.store.store import Store
from blurfit.store.withdrawal import Withdrawn, remove, where

_REQUESTS = 100.0  # that one withdrawal costs as much as


@dataclass(frozen=True, eq=False)
class Withdrawals:
    """An endpoint for people with a receipt."""

    store: Store
    collector: Collector
    signing: Signatory
    limiter: Limiter

    async def withdraw(self, request: Request) -> Response:
        """Take submissions out of a collection, for good."""
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        names = identifiers_in(await body_of(request, JSON))
        address = request.client.host if request.client else ""
        if not self.limiter.allows(address, _REQUESTS):
            raise RequestError(problems.TOO_MANY, "Wait some seconds, and ask for the same again.")
        found = await run_in_threadpool(self.store.read, where, collection, names)
        done = await self.collector.between_commits(
            self.store.write, remove, collection, names, found
        )
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
        unknown = set(done.unknown)
        told = b"".join(one for one in map(bytes, names) if one not in unknown)
        signature = self.signing.of_submissions("withdrawal", collection, told) if told else None
        return Withdrawal(done.withdrawn, done.new, [one.hex() for one in done.unknown], signature)


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
