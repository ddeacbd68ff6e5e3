"""The database as a service: collect over HTTP, lose nothing, publish once.

| request | who | what |
| --- | --- | --- |
| POST /collections | administrator | open a collection from an agreement |
| GET /collections, /collections/{fingerprint} | anyone | state, count, quorum |
| GET …/agreement, …/history, …/model, …/statement, …/statistics | anyone | what all may read |
| POST …/submissions | contributors | one or many, JSON or bytes; answered once they are on disk |
| POST …/invitations | administrator | hashes of one-time invitations |
| POST …/close, …/publish | administrator | stop collecting; learn and publish, once |
| …/shares/… | the other database | publish together: `blurfit.service.peering` |
| POST /agreements | administrator | what a schema and a promise would give; nothing is kept |
| GET /, /c/…, /m/…, /admin | anyone | pages for people: `blurfit.service.website` |
| GET /healthz, /metrics, /openapi.json | anyone | for those who run it |

Submissions take a short way past the router: they are what there is most of. Every refusal is a
problem document. Neither addresses nor anything that was submitted is logged.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InvalidValueError, NotPublishedError, StorageError
from blurfit.messages.shares import ROLES, Role, ShareLayout
from blurfit.messages.submissions import Submission, Submissions
from blurfit.model.published import PublishedModel
from blurfit.model.statement import as_html, as_markdown, as_yaml
from blurfit.protocol import tokens
from blurfit.service import cors, problems, website
from blurfit.service.collector import LINGER, Collector
from blurfit.service.limits import Limiter
from blurfit.service.metrics import Metrics
from blurfit.service.openapi import document
from blurfit.service.peer import publish_remotely
from blurfit.service.peering import Peering
from blurfit.service.problems import RequestError
from blurfit.service.proposal import agreement_from
from blurfit.store import joint_publication
from blurfit.store.collections import Collection
from blurfit.store.store import Status, Store

_log = logging.getLogger(__name__)

BINARY, JSON = "application/vnd.blurfit.submission", "application/json"
INVITATION_HEADER = "blurfit-invitation"
MOST_SUBMISSIONS = 10_000  # in one request
SECONDS_FOR_A_BODY = 30.0
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
STATEMENTS: dict[str, tuple[str, Callable[[PublishedModel], str]]] = {
    "markdown": ("text/markdown; charset=utf-8", as_markdown),
    "html": ("text/html; charset=utf-8", as_html),
    "yaml": ("application/yaml", as_yaml),
}


@dataclass(frozen=True)
class Limits:
    """What one request, and one address, may ask for. A rate of 0 means no limit."""

    body_bytes: int = 64 * 2**20
    requests_per_second: float = 200.0
    burst: float = 2000.0


class Acknowledgement(msgspec.Struct):
    """The submissions are on disk: so many were accepted, and so many of them were new."""

    accepted: int
    new: int


class _Hashes(msgspec.Struct, forbid_unknown_fields=True):
    hashes: list[str]


@dataclass(eq=False)
class Service:
    """An ASGI application over one store; `Service(Store("collection.db"))`.

    `peer_token` is what this service and the one of an agreement's other database know each other
    by; `peer_options` are for `blurfit.service.peer.RemotePeer`.
    """

    store: Store
    limits: Limits = field(default_factory=Limits)
    linger: float = LINGER
    peer_token: str | None = field(default=None, repr=False)
    peer_options: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._limiter = Limiter(self.limits.requests_per_second, self.limits.burst)
        self._metrics = Metrics()
        self._collector = Collector(self.store, self.linger)
        known = tokens.hashed(self.peer_token) if self.peer_token else None
        peering = Peering(self.store, known, _body_of)
        one = "/collections/{fingerprint}"
        self._router = Starlette(
            routes=[
                _route("/collections", get=self._list, post=self._open),
                _route(one, get=self._show),
                _route(one + "/history", get=self._history),
                _route(one + "/agreement", get=self._agreement),
                _route(one + "/model", get=self._model),
                _route(one + "/statement", get=self._statement),
                _route(one + "/statistics", get=self._statistics),
                _route(one + "/invitations", post=self._invite),
                _route(one + "/close", post=self._close),
                _route(one + "/publish", post=self._publish),
                _route(one + "/shares/names", get=peering.names),
                _route(one + "/shares/sum", post=peering.sum),
                _route(one + "/shares/result", post=peering.result),
                _route("/healthz", get=self._health),
                _route("/metrics", get=self._show_metrics),
                _route("/openapi.json", get=self._openapi),
                _route("/agreements", post=self._propose),
                *website.routes(self._origins),
            ],
            exception_handlers={
                BlurfitError: self._refuse,
                RequestError: self._refuse,
                HTTPException: self._refuse_as_http,
            },
            lifespan=self._lifespan,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        client = scope.get("client")
        if client and not self._limiter.allows(client[0]):
            detail = "Wait a second and send the same again; it will be counted once."
            await self._send_refusal(send, RequestError(problems.TOO_MANY, detail))
        elif scope["path"].endswith("/submissions") and scope["path"].startswith("/collections/"):
            origin = cors.origin_in(scope["headers"])
            fingerprint = scope["path"][len("/collections/") : -len("/submissions")]
            crosses = origin is not None and origin in await self._origins(fingerprint)
            if origin is not None and crosses:
                send = cors.admitting(send, origin)
            if scope["method"] == "POST":
                await self._take_submissions(scope, receive, send)
            elif scope["method"] == "OPTIONS" and crosses:
                await cors.answer_preflight(send)
            else:
                refusal = RequestError(problems.NOT_ALLOWED, "Submissions are sent by POST.")
                await self._send_refusal(send, refusal)
        else:
            await self._router(scope, receive, _with_headers(send))

    async def _origins(self, fingerprint: str) -> tuple[str, ...]:
        """Whose pages may send shares to a collection, and where its own page may send them."""
        try:
            collection = self.store.known(fingerprint)
            if collection is None:
                collection = await run_in_threadpool(self.store.collection, fingerprint)
        except BlurfitError:  # unknown, or the store is away: others will say so
            return ()
        return cors.origins_of(collection.agreement)

    # ---- submissions

    async def _take_submissions(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            fingerprint = scope["path"][len("/collections/") : -len("/submissions")]
            collection = self.store.known(fingerprint)
            if collection is None:
                collection = await run_in_threadpool(self.store.collection, fingerprint)
            headers = dict(scope["headers"])
            body = await read_body(headers, receive, self.limits.body_bytes)
            data, count = self._rows(collection, headers, body)
            new = await self._collector.submit(collection, data, count, _invitations(headers))
        except (BlurfitError, RequestError) as error:
            await self._send_refusal(send, error)
            return
        self._metrics.accepted(count, new)
        await _send(send, 200, JSON, b'{"accepted":%d,"new":%d}' % (count, new))

    def _rows(
        self, collection: Collection, headers: dict[bytes, bytes], body: bytes
    ) -> tuple[bytes | memoryview, int]:
        layout = collection.layout
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1")
        if kind == BINARY:
            if layout.fits(body):  # by far the most frequent
                return body, 1
            rows = layout.rows(body)
        elif kind == JSON and not isinstance(layout, ShareLayout):
            rows = layout.rows_of(_from_json(body))
        else:
            raise RequestError(
                problems.WRONG_TYPE, f"Expected content-type {kind!r} to be {BINARY} or {JSON}."
            )
        if len(rows) > MOST_SUBMISSIONS:
            raise RequestError(
                problems.TOO_LARGE,
                f"Expected at most {MOST_SUBMISSIONS} submissions in a request, and got "
                f"{len(rows)}; send them in parts.",
            )
        return rows.reshape(-1).data, len(rows)

    # ---- for everyone

    async def _list(self, _request: Request) -> Response:
        return _json(await run_in_threadpool(self.store.statuses))

    async def _show(self, request: Request) -> Response:
        if website.wants_page(request):
            return website.collection_page(request)
        response = _json(await run_in_threadpool(self.store.status, _fingerprint(request)))
        response.headers["vary"] = "accept"
        return response

    async def _history(self, request: Request) -> Response:
        found = await run_in_threadpool(self.store.history, _fingerprint(request))
        return _json([{"hour": hour, "count": count} for hour, count in found])

    async def _agreement(self, request: Request) -> Response:
        collection = await run_in_threadpool(self.store.collection, _fingerprint(request))
        return Response(collection.agreement.to_json(), media_type=JSON, headers=_FOREVER)

    async def _model(self, request: Request) -> Response:
        text = await run_in_threadpool(self.store.model, _fingerprint(request))
        return Response(text, media_type=JSON, headers=_FOREVER)

    async def _statistics(self, request: Request) -> Response:
        text = await run_in_threadpool(self.store.statistics_text, _fingerprint(request))
        return Response(text, media_type=JSON, headers=_FOREVER)

    async def _statement(self, request: Request) -> Response:
        wanted = request.query_params.get("format", "markdown")
        if wanted not in STATEMENTS:
            raise InvalidValueError(f"Expected format={wanted!r} to be one of {list(STATEMENTS)}.")
        media_type, write = STATEMENTS[wanted]
        text = await run_in_threadpool(self.store.model, _fingerprint(request))
        statement = await run_in_threadpool(lambda: write(PublishedModel.from_json(text)))
        return Response(statement, headers={"content-type": media_type})

    async def _health(self, _request: Request) -> Response:
        await run_in_threadpool(self.store.administrator)  # the store answers
        return _json({"status": "ok"})

    async def _show_metrics(self, _request: Request) -> Response:
        statuses = await run_in_threadpool(self.store.statuses)
        return Response(self._metrics.text(statuses), headers={"content-type": Metrics.MEDIA_TYPE})

    async def _openapi(self, _request: Request) -> Response:
        return _json(document())

    # ---- for the administrator

    async def _open(self, request: Request) -> Response:
        await self._require_administrator(request)
        invited = request.query_params.get("invited", "false")
        if invited not in ("true", "false"):
            raise InvalidValueError(f"Expected invited={invited!r} to be 'true' or 'false'.")
        role = _role(request)
        body = await read_body(dict(request.scope["headers"]), request.receive, 2**20)
        _require_json(request)
        agreement = await run_in_threadpool(Agreement.from_json, body)

        def open_collection() -> tuple[bool, Status]:
            is_new = self.store.open(agreement, invited=invited == "true", role=role)
            return is_new, self.store.status(agreement.fingerprint)

        is_new, status = await run_in_threadpool(open_collection)
        return _json(status, 201 if is_new else 200)

    async def _propose(self, request: Request) -> Response:
        await self._require_administrator(request)  # calibrating takes time that others need
        body = await read_body(dict(request.scope["headers"]), request.receive, 2**20)
        _require_json(request)
        agreement = await run_in_threadpool(agreement_from, body)
        return Response(agreement.to_json(), media_type=JSON)

    async def _invite(self, request: Request) -> Response:
        await self._require_administrator(request)
        fingerprint = _fingerprint(request)
        body = await read_body(dict(request.scope["headers"]), request.receive, 2**20)
        _require_json(request)
        try:
            given = msgspec.json.decode(body, type=_Hashes).hashes
            hashes = [bytes.fromhex(one) for one in given]
        except (msgspec.MsgspecError, UnicodeError, ValueError) as error:
            raise InvalidValueError(
                f'Expected {{"hashes": ["…"]}}, SHA-256 in hexadecimal digits: {error}.'
            ) from error
        if not 0 < len(hashes) <= MOST_SUBMISSIONS or any(len(one) != 32 for one in hashes):
            raise InvalidValueError(
                f"Expected 1 to {MOST_SUBMISSIONS} hashes of 32 bytes each, and got {len(hashes)}."
            )
        new = await run_in_threadpool(self.store.invite, fingerprint, hashes)
        return _json({"accepted": len(hashes), "new": new})

    async def _close(self, request: Request) -> Response:
        await self._require_administrator(request)
        fingerprint = _fingerprint(request)
        return _json(
            await self._collector.between_commits(self.store.close_collection, fingerprint)
        )

    async def _publish(self, request: Request) -> Response:
        await self._require_administrator(request)
        fingerprint = _fingerprint(request)
        collection = await run_in_threadpool(self.store.collection, fingerprint)
        if collection.role == "whole":
            text = await self._collector.between_commits(self.store.publish_text, fingerprint)
        elif collection.role == "first":  # the wire is slow: others write meanwhile
            text = await run_in_threadpool(
                lambda: publish_remotely(
                    self.store, fingerprint, self.peer_token, **self.peer_options
                )
            )
        else:
            text = await self._collector.between_commits(
                self.store.write, joint_publication.consent, collection
            )
            if text is None:
                name = collection.agreement.databases[0].name
                raise NotPublishedError(
                    f"The collection is closed here, and its shares may be summed. Now {name} "
                    "publishes, and the model will be here too."
                )
        return Response(text, media_type=JSON)

    async def _require_administrator(self, request: Request) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        expected = await run_in_threadpool(self.store.administrator)
        if scheme.lower() != "bearer" or not expected or not tokens.matches(token, expected):
            raise RequestError(
                problems.UNAUTHORISED,
                "Send the token that `blurfit serve` printed at its first start: "
                "Authorization: Bearer …",
            )

    # ---- refusals

    async def _refuse(self, _request: Request, error: Exception) -> Response:
        assert isinstance(error, BlurfitError | RequestError)
        kind, problem = self._problem(error)
        headers = {name.decode(): value.decode() for name, value in _extra_headers(kind)}
        body = msgspec.json.encode(problem)
        return Response(body, kind.status, headers, media_type=problems.MEDIA_TYPE)

    async def _refuse_as_http(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = problems.NOT_ALLOWED if error.status_code == 405 else problems.NOT_FOUND
        detail = f"{request.method} {request.url.path}: see /openapi.json for what there is."
        response = await self._refuse(request, RequestError(kind, detail))
        response.headers.update(error.headers or {})
        return response

    async def _send_refusal(self, send: Send, error: BlurfitError | RequestError) -> None:
        kind, problem = self._problem(error)
        body = msgspec.json.encode(problem)
        await _send(send, kind.status, problems.MEDIA_TYPE, body, _extra_headers(kind))

    def _problem(
        self, error: BlurfitError | RequestError
    ) -> tuple[problems.Kind, problems.Problem]:
        if isinstance(error, StorageError):
            _log.error("%s", error)
        kind, problem = problems.of_error(error)
        self._metrics.refused(kind.name)
        return kind, problem

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> Any:
        yield
        await self._collector.close()


async def read_body(headers: dict[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """The whole body, unless it is too large or too slow."""
    stated = headers.get(b"content-length", b"0")
    if not stated.isdigit() or int(stated) > limit:
        raise _too_large(limit)
    message = await receive()
    if not message.get("more_body") and len(message.get("body", b"")) <= limit:
        return bytes(message.get("body", b""))
    parts, size = [], 0
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BODY):
            while True:
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise _too_large(limit)
                if not message.get("more_body"):
                    return b"".join(parts)
                message = await receive()
    except TimeoutError:
        raise RequestError(
            problems.TOO_SLOW,
            f"Expected the whole body within {SECONDS_FOR_A_BODY:g} s; send smaller ones.",
        ) from None


async def _body_of(request: Request, limit: int) -> bytes:
    return await read_body(dict(request.scope["headers"]), request.receive, limit)


def _role(request: Request) -> Role:
    given = request.query_params.get("role", "whole")
    for role in ROLES:
        if given == role:
            return role
    raise InvalidValueError(f"Expected role={given!r} to be one of {list(ROLES)}.")


def _too_large(limit: int) -> RequestError:
    return RequestError(
        problems.TOO_LARGE, f"Expected a body of at most {limit} bytes; send less at once."
    )


def _from_json(body: bytes) -> Submissions:
    if body.lstrip()[:1] == b"[":
        return Submissions.from_json(body)
    return Submissions.gather([Submission.from_json(body)])


def _invitations(headers: dict[bytes, bytes]) -> tuple[bytes, ...]:
    given = headers.get(INVITATION_HEADER.encode())
    if given is None:
        return ()
    return tuple(tokens.hashed(one.strip()) for one in given.decode("latin-1").split(","))


def _fingerprint(request: Request) -> str:
    return str(request.path_params["fingerprint"])


def _require_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != JSON:
        raise RequestError(problems.WRONG_TYPE, f"Expected content-type {kind!r} to be {JSON}.")


def _json(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def _route(path: str, **endpoints: Callable[[Request], Awaitable[Response]]) -> Route:
    """One path with an endpoint for each method."""

    async def endpoint(request: Request) -> Response:
        method = "get" if request.method == "HEAD" else request.method.lower()
        return await endpoints[method](request)

    return Route(path, endpoint, methods=[name.upper() for name in endpoints])


def _extra_headers(kind: problems.Kind) -> list[tuple[bytes, bytes]]:
    extra = [(b"retry-after", b"%d" % kind.retry_after)] if kind.retry_after is not None else []
    if kind is problems.UNAUTHORISED:
        extra.append((b"www-authenticate", b"Bearer"))
    if kind is problems.NOT_ALLOWED:
        extra.append((b"allow", b"POST"))
    return extra


async def _send(
    send: Send, status: int, kind: str, body: bytes, extra: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", b"%d" % len(body)),
        *_RAW_HEADERS,
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(pair for pair in _RAW_HEADERS if pair[0] not in given),
            ]
        await send(message)

    return send_with_headers


def application(store: Store, limits: Limits | None = None, linger: float = LINGER) -> ASGIApp:
    """The service as an ASGI application."""
    return Service(store, limits or Limits(), linger)
