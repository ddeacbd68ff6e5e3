"""The database as a service: collect over HTTP, lose nothing, publish once.

| request | who | what |
| --- | --- | --- |
| POST /collections | administrator | open a collection from an agreement |
| GET /collections, /collections/{fingerprint} | anyone | state, count, quorum |
| GET …/agreement, …/history, …/model, … | anyone | `blurfit.service.reading` |
| POST …/submissions | contributors | `blurfit.service.intake` |
| POST …/withdrawals | contributors | `blurfit.service.withdrawals` |
| GET …/invitation | who holds one | `blurfit.service.invitations` |
| POST …/invitations, …/pause, …/close, … | administrator | `blurfit.service.administration` |
| POST …/until | administrator | when it closes: `blurfit.service.closing_dates` |
| POST /plans, GET /plans/{fingerprint}, … | both | plans of waves: `blurfit.service.planning` |
| …/shares/… | the other database | publish together: `blurfit.service.peering` |
| POST /agreements | administrator | what a schema and a promise would give; nothing is kept |
| GET /signing-key | anyone | the public key of this service: `blurfit.service.signatory` |
| GET /deeds | who may read them | what was done with tokens: `blurfit.service.deeds` |
| GET /, /c/…, /m/…, /admin | anyone | pages for people: `blurfit.service.website` |
| GET /healthz, /metrics, /openapi.json | anyone | for those who run it |
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from blurfit.errors import BlurfitError
from blurfit.messages.signing import Signer
from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import COLLECTIONS, ONE_COLLECTION, ONE_PLAN, PLANS, WITHDRAWALS
from blurfit.service import website
from blurfit.service.administration import Administration
from blurfit.service.advancing import LOOK_EVERY, Advancing
from blurfit.service.answers import Refusals, over_tls, with_headers
from blurfit.service.bodies import IN_FLIGHT, Allowance
from blurfit.service.closing_dates import ClosingDates
from blurfit.service.collector import LINGER, Collector
from blurfit.service.countersigning import Countersigning
from blurfit.service.deeds import Deeds
from blurfit.service.following import Following
from blurfit.service.intake import SubmissionPath, is_for_submissions
from blurfit.service.invitations import Invitations
from blurfit.service.leading import Leading
from blurfit.service.limits import Limiter
from blurfit.service.metrics import Metrics
from blurfit.service.outlooks import Outlooks
from blurfit.service.peering import Peering
from blurfit.service.planning import Planning
from blurfit.service.reading import Reading
from blurfit.service.sides import LookingAtSides
from blurfit.service.signatory import Signatory
from blurfit.service.unexpected import Router, foreseen
from blurfit.service.withdrawals import Withdrawals
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

    def crowds(self) -> Limiter:
        """What holds each collection to its rate, whoever sends to it."""
        rate = self.submissions_per_second
        return Limiter(rate, 10 * rate, counted_as=str)


@dataclass(eq=False)
class Service:
    """An ASGI application over one store; `Service(Store("collection.db"))`.

    `peer_token` is what this service and the one of an agreement's other database know each other
    by; `peer_options` are for `blurfit.service.peer.RemotePeer`. `share_key` is the private key to
    which agreements seal this database's shares (`blurfit.messages.sealing`), `signing_key` the one
    with which it signs where agreements name it (`blurfit.service.signatory`). `limiter`, `crowds`
    and `metrics` are given where several processes have them in common (`blurfit.service.workers`).
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
    crowds: Limiter | None = field(default=None, repr=False)
    metrics: Metrics = field(default_factory=Metrics, repr=False)

    def __post_init__(self) -> None:
        metrics = self.metrics
        self._limiter = self.limiter or self.limits.limiter()
        self._collector = Collector(self.store, self.linger)
        self._signing = Signatory(
            self.store, Signer(self.signing_key) if self.signing_key else None
        )
        leading = Leading(self.store, self.peer_token, self.peer_options, signing=self._signing)
        both = Countersigning(self.store, self._signing, self.peer_token, self.peer_options)
        self._advancing = Advancing(self.store, self._collector, leading, both, self.look_every)
        self._refusals = Refusals(metrics)
        self._submissions = SubmissionPath(
            self.store,
            self._collector,
            metrics,
            self._refusals,
            self._limiter,
            self.crowds or self.limits.crowds(),
            self.limits.body_bytes,
            self._signing,
            self.share_key,
            Allowance(self.limits.bytes_in_flight),
        )
        self._router = Router(
            routes=self._routes(metrics),
            exception_handlers={
                BlurfitError: self._refusals.answer,
                RequestError: self._refusals.answer,
                HTTPException: self._refusals.answer_as_http,
            },
            lifespan=self._lifespan,
        )
        # A redirect to the path without a slash would name whatever host the request does.
        self._router.router.redirect_slashes = False
        self._answer = foreseen(self._dispatch, self._refusals)

    def _routes(self, metrics: Metrics) -> list[Route]:
        signing, one = self._signing, ONE_COLLECTION
        reading = Reading(self.store, metrics, signing)
        administration = Administration(
            self.store,
            self._collector,
            signing,
            self.peer_token,
            self.peer_options,
            self.share_key,
            self.limits.body_bytes,
        )
        peering = Peering(self.store, self.peer_token, signing)
        following = Following(self.store, peering)
        planning = Planning(
            self.store,
            self._collector,
            self._advancing,
            signing,
            self.share_key,
            self.limits.body_bytes,
        )
        closing = ClosingDates(self.store, self._collector)
        guests, deeds = Invitations(self.store), Deeds(self.store)
        withdrawals = Withdrawals(self.store, self._collector, signing, self._limiter)
        return [
            _route(COLLECTIONS, get=reading.collections, post=administration.open),
            _route(one, get=reading.collection),
            _route(one + "/history", get=reading.history),
            _route(one + "/agreement", get=reading.agreement),
            _route(one + "/model", get=reading.model),
            _route(one + "/statement", get=reading.statement),
            _route(one + "/moments", get=reading.moments),
            _route(one + "/invitations", post=administration.invite),
            _route(one + "/invitation", get=guests.check, options=guests.preflight),
            _route(one + WITHDRAWALS, post=withdrawals.withdraw, options=withdrawals.preflight),
            _route(one + "/pause", post=administration.pause),
            _route(one + "/resume", post=administration.resume),
            _route(one + "/sides", get=LookingAtSides(self.store).look),
            _route(one + "/until", post=closing.move),
            _route(one + "/close", post=administration.close),
            _route(one + "/publish", post=administration.publish),
            _route(one + "/shares/identifiers", get=peering.identifiers),
            _route(one + "/shares/proofs", post=peering.proofs),
            _route(one + "/shares/sum", post=peering.sum),
            _route(one + "/shares/result", post=peering.result),
            _route(one + "/shares/close", post=following.close),
            _route(one + "/shares/release", post=following.release),
            _route(one + "/shares/signatures", post=peering.signatures),
            _route("/signing-key", get=reading.signing_key),
            _route("/deeds", get=deeds.newest),
            _route(PLANS, get=planning.plans, post=planning.open),
            _route(PLANS + "/proposal", post=planning.propose),
            _route(ONE_PLAN, get=planning.status),
            _route(ONE_PLAN + "/plan", get=planning.plan),
            _route(ONE_PLAN + "/agreement", get=planning.agreement),
            _route(ONE_PLAN + "/releases", get=planning.releases),
            _route(ONE_PLAN + "/model", get=planning.model),
            _route(ONE_PLAN + "/statement", get=planning.statement),
            _route(ONE_PLAN + "/invitations", post=planning.invite),
            _route(ONE_PLAN + "/hold", post=planning.hold),
            _route(ONE_PLAN + "/resume", post=planning.resume),
            _route(ONE_PLAN + "/until", post=closing.move_plan),
            _route(ONE_PLAN + "/publish", post=planning.publish),
            _route(ONE_PLAN + "/shares/state", post=following.state),
            _route("/agreements", post=administration.propose),
            _route("/outlooks", post=Outlooks(self.store).estimate),
            _route("/healthz", get=reading.health),
            _route("/metrics", get=reading.counters),
            _route("/openapi.json", get=reading.openapi),
            *website.routes(self._submissions.origins),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        if scope.get("scheme") == "https":
            send = over_tls(send)
        await self._answer(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if client and not self._limiter.allows(client[0]):
            detail = "Wait a second and send the same again; it will be counted once."
            await self._refusals.send(send, RequestError(problems.TOO_MANY, detail))
        elif is_for_submissions(scope["path"]):
            await self._submissions(scope, receive, send)
        else:
            await self._router(scope, receive, with_headers(send))

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self._advancing.start()
        yield
        await self._advancing.close()
        await self._collector.close()


def _route(path: str, **endpoints: Callable[[Request], Awaitable[Response]]) -> Route:
    """One path with an endpoint for each method."""

    async def endpoint(request: Request) -> Response:
        method = "get" if request.method == "HEAD" else request.method.lower()
        return await endpoints[method](request)

    return Route(path, endpoint, methods=[name.upper() for name in endpoints])
