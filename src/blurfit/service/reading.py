"""What anyone may read: states, agreements, models, moments, statements, and how the service is
doing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.errors import InvalidValueError
from blurfit.model.published import PublishedModel
from blurfit.model.registry import as_yaml
from blurfit.model.statement import as_html, as_markdown
from blurfit.protocol import problems
from blurfit.protocol.wire import COLLECTIONS, JSON, ONE_COLLECTION
from blurfit.service import website
from blurfit.service.answers import FOREVER, as_json
from blurfit.service.authorisation import admit
from blurfit.service.documents import AgreementDocument, Hour, Moments
from blurfit.service.metrics import Metrics
from blurfit.service.operations import OBJECT, answer, array, content, get, or_page, query
from blurfit.service.shown_counts import for_strangers, shown
from blurfit.service.signatory import Signatory, is_final
from blurfit.store.store import Status, Store

STATEMENTS: dict[str, tuple[str, Callable[[PublishedModel], str]]] = {
    "markdown": ("text/markdown; charset=utf-8", as_markdown),
    "html": ("text/html; charset=utf-8", as_html),
    "yaml": ("application/yaml", as_yaml),
}
MODEL = answer(OBJECT, "The model, always the same bytes.")
STATEMENT = content("The statement.", "text/markdown", "text/html", "application/yaml")
FORMAT = query("format", {"enum": list(STATEMENTS)})


@dataclass(frozen=True, eq=False)
class Reading:
    """Endpoints that change nothing, and ask for no token."""

    store: Store
    metrics: Metrics
    signing: Signatory

    @get(COLLECTIONS, answer(array(Status), "Their states."))
    async def collections(self, _request: Request) -> Response:
        """All collections."""
        found = await run_in_threadpool(self.store.statuses)
        return as_json([for_strangers(one) for one in found])

    @get(ONE_COLLECTION, or_page(answer(Status, "The state.")))
    async def collection(self, request: Request) -> Response:
        """State, count and quorum of a collection, or its page for a browser."""
        if website.wants_page(request):
            return website.collection_page(request)
        found = await run_in_threadpool(self.store.status, fingerprint_in(request))
        response = as_json(for_strangers(found))
        response.headers["vary"] = "accept"
        return response

    @get(f"{ONE_COLLECTION}/history", answer(array(Hour), "Hours in which anyone came."))
    async def history(self, request: Request) -> Response:
        """How many came in which hour."""
        found = await run_in_threadpool(self.store.history, fingerprint_in(request))
        return as_json([Hour(hour, shown(count, count + 1)) for hour, count in found])

    @get(
        f"{ONE_COLLECTION}/agreement",
        answer(AgreementDocument, "The agreement, always the same bytes."),
    )
    async def agreement(self, request: Request) -> Response:
        """What everyone agreed on."""
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        return Response(collection.agreement.to_json(), media_type=JSON, headers=FOREVER)

    @get(f"{ONE_COLLECTION}/model", MODEL, problems.NOT_PUBLISHED)
    async def model(self, request: Request) -> Response:
        """The published model."""
        text = await run_in_threadpool(self.signing.model, fingerprint_in(request))
        return published(text)

    @get(
        f"{ONE_COLLECTION}/moments",
        answer(Moments, "The moments, always the same bytes; models are free."),
        problems.NOT_PUBLISHED,
    )
    async def moments(self, request: Request) -> Response:
        """The blurred sums of a `moment` collection."""
        text = await run_in_threadpool(self.signing.moments, fingerprint_in(request))
        return published(text)

    @get(
        f"{ONE_COLLECTION}/statement",
        STATEMENT,
        problems.INVALID,
        problems.NOT_PUBLISHED,
        parameters=[FORMAT],
    )
    async def statement(self, request: Request) -> Response:
        """The privacy statement in words."""
        return await statement_of(request, self.store.model)

    @get("/signing-key", answer(OBJECT, "The key, or null where this service signs nothing."))
    async def signing_key(self, _request: Request) -> Response:
        """The public key with which this service signs, where an agreement names it."""
        return as_json({"key": self.signing.key})

    @get("/healthz", answer(OBJECT, "It does."))
    async def health(self, _request: Request) -> Response:
        """Whether the store answers, and could keep what is sent now."""
        await run_in_threadpool(self.store.check)
        return as_json({"status": "ok"})

    @get("/metrics", content("Counters.", "text/plain"), problems.UNAUTHORISED)
    async def counters(self, request: Request) -> Response:
        """Counters for Prometheus; exact for whoever has a token, and rounded for others."""
        if exact := "authorization" in request.headers:
            await admit(self.store, request, "read")
        statuses = await run_in_threadpool(self.store.statuses)
        text = self.metrics.text(statuses, exact=exact)
        return Response(text, headers={"content-type": Metrics.MEDIA_TYPE})


async def statement_of(request: Request, find: Callable[[str], str]) -> Response:
    """The statement of the model that is found under the request's fingerprint, as it is wanted."""
    wanted = request.query_params.get("format", "markdown")
    if wanted not in STATEMENTS:
        raise InvalidValueError(f"Expected format={wanted!r} to be one of {list(STATEMENTS)}.")
    media_type, write = STATEMENTS[wanted]
    text = await run_in_threadpool(find, fingerprint_in(request))
    statement = await run_in_threadpool(lambda: write(PublishedModel.from_json(text)))
    return Response(statement, headers={"content-type": media_type})


def fingerprint_in(request: Request) -> str:
    """Which collection a request is about."""
    return str(request.path_params["fingerprint"])


def published(text: str) -> Response:
    """To be kept for ever, once everybody has signed it who should."""
    return Response(text, media_type=JSON, headers=FOREVER if is_final(text) else None)
