"""Let in whoever has a token that is good for what is asked, and write down what they did."""

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.errors import BlurfitError, StorageError
from blurfit.protocol import problems, tokens
from blurfit.protocol.problems import RequestError
from blurfit.store import stewards
from blurfit.store.stewards import Bearer, Right
from blurfit.store.store import Store

_log = logging.getLogger("blurfit.deeds")

Endpoint = Callable[[Any, Request], Awaitable[Response]]


async def bearer_of(store: Store, request: Request, right: Right | None = None) -> Bearer:
    """Whose token was sent; refuses one that is nobody's, or not good for this."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    who = None
    if scheme.lower() == "bearer" and token:
        who = await run_in_threadpool(store.read, stewards.bearer, tokens.hashed(token))
    if who is None or (right is not None and right not in who.rights):
        made = "" if right is None else f" --right {right}"
        raise RequestError(
            problems.UNAUTHORISED,
            "Send the token that `blurfit serve` printed at its first start, or one that "
            f"`blurfit token{made}` made: Authorization: Bearer …",
        )
    return who


def steward(right: Right, deed: str | None = None) -> Callable[[Endpoint], Endpoint]:
    """An endpoint of an object with a `store`, for those who have the right; each use of one that
    changes something is written down with its outcome, as this deed.
    """

    def guarded(endpoint: Endpoint) -> Endpoint:
        @wraps(endpoint)
        async def answer(self: Any, request: Request) -> Response:
            who = (await bearer_of(self.store, request, right)).name
            if deed is None:
                return await endpoint(self, request)
            try:
                response = await endpoint(self, request)
            except Exception as error:  # `blurfit.service.answers` answers what nobody handles
                kind = problems.UNEXPECTED
                if isinstance(error, BlurfitError | RequestError):
                    kind, _ = problems.of_error(error)
                await _write_down(self.store, request, who, deed, kind.status)
                raise
            await _write_down(self.store, request, who, deed, response.status_code)
            return response

        vars(answer)["security"] = "administrator"  # for `blurfit.service.operations`
        return answer

    return guarded


async def _write_down(store: Store, request: Request, who: str, what: str, outcome: int) -> None:
    """In the store and in the log; where the store is away, in the log alone."""
    fingerprint = request.path_params.get("fingerprint")
    _log.info("%s: %s %s: %s", who, what, fingerprint or "", outcome)
    try:
        await run_in_threadpool(store.write, stewards.write_down, who, what, fingerprint, outcome)
    except StorageError as error:
        _log.error("what %s did could not be written down: %s", who, error)
