"""The database as a service: collect over HTTP, lose nothing, publish once.

Each endpoint declares where it is and what it answers (`blurfit.service.operations`):

| what | who | where |
| --- | --- | --- |
| send submissions | contributors | `blurfit.service.intake`, past the router |
| states, agreements, models, moments; invitations, withdrawals | anyone | `endpoints` |
| propose, open, invite, steer, publish | administrators | `administration` |
| publish together, and what happens by itself | the other database | `peers` |
| pages for people | anyone | `website` |
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from blurfit import protocol
from blurfit.errors import BlurfitError
from blurfit.messages.signing import Signer
from blurfit.protocol import JSON, OTHER_RELEASE, RequestError, is_old
from blurfit.service import intake, operations, translation, website
from blurfit.service.administration import Administration
from blurfit.service.answers import (
    OVER_TLS,
    RAW_HEADERS,
    Kept,
    Metrics,
    Refusals,
    Shelf,
    Signatory,
    adding,
    charging,
    let_across,
)
from blurfit.service.endpoints import Contributing, Papers, Reading
from blurfit.service.intake import LINGER, Collector, SubmissionPath, is_for_submissions
from blurfit.service.limits import IN_FLIGHT, Allowance, Limiter
from blurfit.service.operations import OBJECT, SAME, answer
from blurfit.service.peers import LOOK_EVERY, Jobs, Peering
from blurfit.store.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """What one request, one address, one collection, and all bodies together may take.

    A rate of 0 means no limit; a batch counts as several requests (`blurfit.service.limits`).
    """

    body_bytes: int = 32 * 2**20
    bytes_in_flight: int = IN_FLIGHT
    requests_per_second: float = 200.0
    burst: float = 2000.0
    submissions_per_second: float = 0.0  # to one collection; ten times as many at once

    def limiter(self) -> Limiter:
        """Hold each address to its rate."""
        return Limiter(self.requests_per_second, self.burst)

    def collection_limiter(self) -> Limiter:
        """Hold each collection to its rate, whoever sends to it."""
        rate = self.submissions_per_second
        return Limiter(rate, 10 * rate, counted_as=str)


@dataclass(eq=False)
class Service:
    """An ASGI application over one store; `Service(Store("collection.db"))`.

    `peer_token` is what this service and the one of an agreement's other database know each other
    by; `peer_options` are for `blurfit.service.peers.RemotePeer`. `share_key` is the private key to
    which agreements seal this database's shares, `signing_key` the one with which it signs where
    agreements name it. `limiter`, `collection_limiter` and `metrics` are given where several
    processes have them in common (`blurfit.service.server`).
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
            self.collection_limiter or self.limits.collection_limiter(),
            self.limits.body_bytes,
            self._signing,
            self.share_key,
        )
        # A redirect to the path without a slash would name whatever host the request does.
        self._router = Router(
            self._routes(metrics), redirect_slashes=False, lifespan=self._lifespan
        )

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
        """Tell whether an address has requests left."""
        return self._allowance.limiter.has_left(address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; with 500 and a name for the log where nobody foresaw an error."""
        scope["app"] = self  # so that the router raises where it finds nothing
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        if scope.get("scheme") == "https":
            send = adding(send, OVER_TLS)
        started = False

        async def noted(message: Any) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._dispatch(scope, receive, noted)
        except Exception:
            name = protocol.new_token()[:12]
            _log.exception("request %s (%s) failed", name, scope["method"])
            if not started:
                detail = (
                    f"Request {name} failed for a reason that is not its own. Whoever runs the "
                    "service finds it in the log under that name. What was acknowledged is stored."
                )
                await self._refusals.send(send, RequestError(protocol.UNEXPECTED, detail))

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        address = client[0] if client else ""
        accepted = dict(scope["headers"]).get(b"accept-language")  # programs name none
        language = "en" if accepted is None else translation.best_of(accepted.decode("latin-1"))
        translation.wanted.set(language)
        if client and not self._allowance.limiter.allows(address):
            detail = "Wait a second and send the same request again; it will be counted once."
            await self._refusals.send(send, RequestError(protocol.TOO_MANY, detail))
            return
        about = "".join(scope["path"].split("/", 3)[2:3])  # /collections/{fingerprint}/…
        with self._allowance.reserve(address, about) as held:
            scope["held"] = held
            across = await let_across(scope, send, self._submissions.origins)
            if across is None:
                return
            try:
                if is_for_submissions(scope["path"]):
                    await self._submissions(scope, receive, across)
                else:
                    framed = charging(adding(across, RAW_HEADERS), held)
                    await self._router(scope, receive, framed)
                    if scope["method"] == "POST":
                        self._collector.tidy()
            except (BlurfitError, RequestError) as error:
                await self._refusals.send(across, error)
            except HTTPException as error:
                await self._answer_unrouted(Request(scope, receive), error, across)

    async def _answer_unrouted(self, request: Request, error: HTTPException, send: Send) -> None:
        """Answer a request for which there is no route, with a page where a person asks."""
        if error.status_code == 404 and website.wants_page(request):
            self.metrics.refused(protocol.NOT_FOUND.name)
            page = website.missing_page(request)
            await page(request.scope, request.receive, adding(send, RAW_HEADERS))
            return
        if is_old(request.url.path):
            await self._refusals.send(send, RequestError(protocol.OUTDATED, OTHER_RELEASE))
            return
        kind = protocol.NOT_ALLOWED if error.status_code == 405 else protocol.NOT_FOUND
        detail = f"{request.method} {request.url.path}: see /openapi.json for what there is."
        more = [
            (name.lower().encode(), one.encode()) for name, one in (error.headers or {}).items()
        ]
        await self._refusals.send(send, RequestError(kind, detail), more)

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        self._jobs.start()
        yield
        await self._jobs.close()
        await self._collector.close()
