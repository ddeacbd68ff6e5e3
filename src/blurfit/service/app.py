"""The database as a service: collect over HTTP, lose nothing, publish once.

Each endpoint declares where it is and what it answers (`blurfit.service.operations`):

| what | who | where |
| --- | --- | --- |
| send submissions | contributors | `blurfit.service.intake`, past the router |
| states, agreements, models, moments; invitations, withdrawals | anyone | `endpoints` |
| propose, open, invite, steer, publish | administrators | `administration` |
| publish together | the other database | `peers` |
| pages for people | anyone | `website` |

What happens by itself, from wave to wave and between two databases, is done by `jobs`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from blurfit.errors import BlurfitError
from blurfit.messages.signing import Signer
from blurfit.protocol import problems
from blurfit.protocol.http import JSON, OUTDATED, is_old
from blurfit.protocol.problems import RequestError
from blurfit.service import intake, operations, translation, website
from blurfit.service.administration import Administration
from blurfit.service.answers import (
    OVER_TLS,
    RAW_HEADERS,
    Kept,
    Metrics,
    Refusals,
    Router,
    Shelf,
    Signatory,
    adding,
    charging,
    error_boundary,
    let_across,
)
from blurfit.service.endpoints import Contributing, Papers, Reading
from blurfit.service.intake import LINGER, Collector, SubmissionPath, is_for_submissions
from blurfit.service.limits import IN_FLIGHT, Allowance, Limiter
from blurfit.service.operations import OBJECT, SAME, answer
from blurfit.service.peers import LOOK_EVERY, Jobs, Peering
from blurfit.store.store import Store


@dataclass(frozen=True)
class Limits:
    """What one request, one address, one collection, and all bodies together may take. A rate of 0
    means no limit.

    A batch counts as several requests: `blurfit.service.limits`.
    """

    body_bytes: int = 32 * 2**20
    bytes_in_flight: int = IN_FLIGHT
    requests_per_second: float = 200.0
    burst: float = 2000.0
    submissions_per_second: float = 0.0  # to one collection; ten times as many at once

    def limiter(self) -> Limiter:
        """What holds each address to its rate."""
        return Limiter(self.requests_per_second, self.burst)

    def collection_limiter(self) -> Limiter:
        """What holds each collection to its rate, whoever sends to it."""
        rate = self.submissions_per_second
        return Limiter(rate, 10 * rate, counted_as=str)


@dataclass(eq=False)
class Service:
    """An ASGI application over one store; `Service(Store("collection.db"))`.

    `peer_token` is what this service and the one of an agreement's other database know each other
    by; `peer_options` are for `blurfit.service.peers.RemotePeer`. `share_key` is the private key to
    which agreements seal this database's shares (`blurfit.messages.submissions`), `signing_key` the
    one with which it signs where agreements name it (`blurfit.service.answers`). `limiter`,
    `collection_limiter` and `metrics` are given where several processes have them in common
    (`blurfit.service.server`).
    """

    store: Store
    limits: Limits = field(default_factory=Limits)
    linger: float = LINGER
    look_every: float = LOOK_EVERY
    peer_token: str | None = field(default=None, repr=False)
    share_key: str | None = field(default=None, repr=False)
    signing_key: str | None = field(default=None, repr=False)
    peer_options: dict[str, Any] = field(default_factory=dict, repr=False)
    limiter: Limiter | None = field(default=None, repr=False)
    collection_limiter: Limiter | None = field(default=None, repr=False)
    metrics: Metrics = field(default_factory=Metrics, repr=False)

    def __post_init__(self) -> None:
        metrics = self.metrics
        self._allowance = Allowance(
            self.limits.bytes_in_flight, limiter=self.limiter or self.limits.limiter()
        )
        self._collector = Collector(self.store, self.linger)
        self._signing = Signatory(
            self.store, Signer(self.signing_key) if self.signing_key else None
        )
        self._jobs = Jobs(
            *(self.store, self._signing, self.peer_token, self.peer_options, self.look_every),
            wrote=self._collector.tidy,
        )
        self._collector.stored = self._jobs.stored
        self._refusals = Refusals(metrics)
        self._submissions = SubmissionPath(
            self.store,
            self._collector,
            metrics,
            self._refusals,
            self.collection_limiter or self.limits.collection_limiter(),
            self.limits.body_bytes,
            self._signing,
            self.share_key,
        )
        self._router = Router(
            routes=self._routes(metrics),
            exception_handlers={
                BlurfitError: self._refusals.answer,
                RequestError: self._refusals.answer,
                HTTPException: self._answer_unrouted,
            },
            lifespan=self._lifespan,
        )
        # A redirect to the path without a slash would name whatever host the request does.
        self._router.router.redirect_slashes = False
        self._answer = error_boundary(self._dispatch, self._refusals)

    def _routes(self, metrics: Metrics) -> list[Route]:
        store, signing = self.store, self._signing
        papers = Papers(store, signing, Shelf(self._allowance.turns))
        parts = (
            Reading(store, metrics, papers),
            Contributing(store, signing),
            Administration(store, self._jobs, papers, self.share_key, self.limits.body_bytes),
            Peering(store, self.peer_token, signing),
            self,
        )
        declared = [one for part in parts for _, one in operations.declared_by(part)]
        self.document = operations.document([*declared, intake.operation(), *website.operations()])
        self._description = Kept.made(msgspec.json.encode(self.document), JSON)
        return [*operations.routes(parts), *website.routes(self._submissions.origins)]

    @operations.get("/openapi.json", answer(OBJECT, "This document.") | SAME)
    async def describe(self, request: Request) -> Response:
        """This document."""
        return self._description.answer(request)

    def may_ask(self, address: str) -> bool:
        """Whether an address has requests left."""
        return self._allowance.limiter.has_left(address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        if scope.get("scheme") == "https":
            send = adding(send, OVER_TLS)
        await self._answer(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        address = client[0] if client else ""
        accepted = dict(scope["headers"]).get(b"accept-language")  # programs name none
        language = "en" if accepted is None else translation.best_of(accepted.decode("latin-1"))
        translation.wanted.set(language)
        if client and not self._allowance.limiter.allows(address):
            detail = "Wait a second and send the same request again; it will be counted once."
            await self._refusals.send(send, RequestError(problems.TOO_MANY, detail))
            return
        about = "".join(scope["path"].split("/", 3)[2:3])  # /collections/{fingerprint}/…
        with self._allowance.reserve(address, about) as held:
            scope["held"] = held
            across = await let_across(scope, send, self._submissions.origins)
            if across is None:
                return
            send = across
            if is_for_submissions(scope["path"]):
                await self._submissions(scope, receive, send)
            else:
                send = charging(adding(send, RAW_HEADERS), held)
                await self._router(scope, receive, send)
                if scope["method"] == "POST":
                    self._collector.tidy()

    async def _answer_unrouted(self, request: Request, error: Exception) -> Response:
        """Answer a request for which there is no route, with a page where a person asks."""
        assert isinstance(error, HTTPException)
        if error.status_code == 404 and website.wants_page(request):
            self.metrics.refused(problems.NOT_FOUND.name)
            return website.missing_page(request)
        if is_old(request.url.path):
            return await self._refusals.answer(request, RequestError(problems.OUTDATED, OUTDATED))
        kind = problems.NOT_ALLOWED if error.status_code == 405 else problems.NOT_FOUND
        detail = f"{request.method} {request.url.path}: see /openapi.json for what there is."
        response = await self._refusals.answer(request, RequestError(kind, detail))
        response.headers.update(error.headers or {})
        return response

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self._jobs.start()
        yield
        await self._jobs.close()
        await self._collector.close()
