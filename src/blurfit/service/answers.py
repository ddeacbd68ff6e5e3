"""Answers and refusals, with the headers that each of them carries.

Every refusal is a problem document. Neither addresses nor anything that was submitted is logged.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

from blurfit.errors import BlurfitError, StorageError
from blurfit.protocol import problems
from blurfit.protocol.problems import Kind, Problem, RequestError
from blurfit.protocol.wire import JSON, PROBLEM
from blurfit.service import website
from blurfit.service.bodies import Reserve
from blurfit.service.limits import cost_of
from blurfit.service.metrics import Metrics

_log = logging.getLogger(__name__)

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
# Of answers that go out by TLS: browsers come by TLS alone from then on (RFC 6797).
OVER_TLS = [(b"strict-transport-security", b"max-age=31536000")]


def as_json(content: object, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(msgspec.json.encode(content), status, media_type=JSON)


async def send_answer(
    send: Send, status: int, kind: str, body: bytes, extra: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Answer without the router, all headers included."""
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", b"%d" % len(body)),
        *RAW_HEADERS,
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def charging(send: Send, held: Reserve) -> Send:
    """Let whoever asked pay for an answer by its size, and so for what they ask next."""

    async def send_and_charge(message: Any) -> None:
        held.owe(cost_of(len(message.get("body", b"")), json=False))
        await send(message)

    return send_and_charge


def adding(send: Send, more: Iterable[tuple[bytes, bytes]]) -> Send:
    """Add headers to an answer, unless it has its own of that name."""

    async def send_more(message: Any) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            own = (pair for pair in more if pair[0] not in given)
            message["headers"] = [*message["headers"], *own]
        await send(message)

    return send_more


@dataclass(frozen=True)
class Refusals:
    """Errors as answers, each of them counted."""

    metrics: Metrics

    async def answer(self, _request: Request, error: Exception) -> Response:
        """The answer to a request that went through the router."""
        assert isinstance(error, BlurfitError | RequestError)
        kind, problem = self._problem(error)
        headers = {name.decode(): value.decode() for name, value in _extra_headers(kind)}
        return Response(msgspec.json.encode(problem), kind.status, headers, media_type=PROBLEM)

    async def answer_as_http(self, request: Request, error: Exception) -> Response:
        """The answer to a request for which there is no route."""
        assert isinstance(error, HTTPException)
        if error.status_code == 404 and website.wants_page(request):
            self.metrics.refused(problems.NOT_FOUND.name)
            return website.missing_page(request)
        kind = problems.NOT_ALLOWED if error.status_code == 405 else problems.NOT_FOUND
        detail = f"{request.method} {request.url.path}: see /openapi.json for what there is."
        response = await self.answer(request, RequestError(kind, detail))
        response.headers.update(error.headers or {})
        return response

    async def send(self, send: Send, error: BlurfitError | RequestError) -> None:
        """Refuse without the router."""
        kind, problem = self._problem(error)
        body = msgspec.json.encode(problem)
        await send_answer(send, kind.status, PROBLEM, body, _extra_headers(kind))

    def _problem(self, error: BlurfitError | RequestError) -> tuple[Kind, Problem]:
        if isinstance(error, StorageError):
            _log.error("%s", error)
        kind, problem = problems.of_error(error)
        self.metrics.refused(kind.name)
        return kind, problem


def _extra_headers(kind: Kind) -> list[tuple[bytes, bytes]]:
    extra = [(b"retry-after", b"%d" % kind.retry_after)] if kind.retry_after is not None else []
    if kind in (problems.BUSY, problems.TOO_MANY):  # what is left of its body need not come
        extra.append((b"connection", b"close"))
    if kind is problems.UNAUTHORISED:
        extra.append((b"www-authenticate", b"Bearer"))
    if kind is problems.NOT_ALLOWED:
        extra.append((b"allow", b"POST"))
    return extra
