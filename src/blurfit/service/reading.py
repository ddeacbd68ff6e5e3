"""What anyone may read: states, agreements, models, moments, statements, and how the service is
doing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.errors import InvalidValueError
from blurfit.model.export import as_yaml
from blurfit.model.model import PublishedModel
from blurfit.model.statement import as_html, as_markdown
from blurfit.protocol import problems
from blurfit.protocol.wire import COLLECTIONS, JSON, ONE_COLLECTION
from blurfit.service import website
from blurfit.service.answers import ASKED_AFTER, FOREVER, Kept, Shelf, as_json
from blurfit.service.authorisation import bearer_of
from blurfit.service.documents import AgreementDocument, Hour, Moments
from blurfit.service.metrics import Metrics, for_strangers, shown
from blurfit.service.operations import OBJECT, SAME, answer, array, content, get, or_page, query
from blurfit.service.signatory import Signatory
from blurfit.store.signatures import Document
from blurfit.store.store import Status, Store

STATEMENTS: dict[str, tuple[str, Callable[[PublishedModel], str]]] = {
    "markdown": ("text/markdown; charset=utf-8", as_markdown),
    "html": ("text/html; charset=utf-8", as_html),
    "yaml": ("application/yaml", as_yaml),
}
MODEL = answer(OBJECT, "The model, always the same bytes.") | SAME
STATEMENT = content("The statement.", "text/markdown", "text/html", "application/yaml") | SAME
FORMAT = query("format", {"enum": list(STATEMENTS)})


@dataclass(frozen=True, eq=False)
class Papers:
    """What never changes of collections and plans, or only by being signed."""

    store: Store
    signing: Signatory
    shelf: Shelf

    async def agreement(self, request: Request, fingerprint: str) -> Response:
        """The agreement under a fingerprint."""
        return await self.constant(
            *(request, "agreement", fingerprint),
            lambda: self.store.collection(fingerprint).agreement.to_json(),
        )

    async def constant(
        self, request: Request, name: str, fingerprint: str, find: Callable[[], str]
    ) -> Response:
        """A document in JSON that is the same for ever."""
        make = partial(Kept.made, media_type=JSON, headers=FOREVER)
        return (await self.shelf.get((name, fingerprint), find, make)).answer(request)

    async def published(self, request: Request, fingerprint: str, document: Document) -> Response:
        """A model or moments, to be kept for ever once everybody has signed who should."""

        def find() -> str:
            of = self.store.model if document == "model" else self.store.moments_text
            return of(fingerprint)

        def make(text: str) -> Kept:
            signed, missing = self.signing.signed(fingerprint, document, text)
            headers = ASKED_AFTER if missing else FOREVER
            return Kept.made(signed, JSON, headers, missing or None)

        missing = partial(self.signing.missing, fingerprint, document)
        found = await self.shelf.get((document, fingerprint), find, make, missing)
        return found.answer(request)

    async def statement(self, request: Request, fingerprint: str) -> Response:
        """The statement of a published model, as it is wanted."""
        wanted = request.query_params.get("format", "markdown")
        if wanted not in STATEMENTS:
            raise InvalidValueError(f"Expected format={wanted!r} to be one of {list(STATEMENTS)}.")
        media_type, write = STATEMENTS[wanted]

        def make(text: str) -> Kept:
            return Kept.made(write(PublishedModel.from_json(text)), media_type)

        find = partial(self.store.model, fingerprint)
        found = await self.shelf.get(("statement", wanted, fingerprint), find, make)
        return found.answer(request)


@dataclass(frozen=True, eq=False)
class Reading:
    """Endpoints that change nothing, and ask for no token."""

    store: Store
    metrics: Metrics
    papers: Papers

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
        answer(AgreementDocument, "The agreement, always the same bytes.") | SAME,
    )
    async def agreement(self, request: Request) -> Response:
        """What everyone agreed on."""
        return await self.papers.agreement(request, fingerprint_in(request))

    @get(f"{ONE_COLLECTION}/model", MODEL, problems.NOT_PUBLISHED)
    async def model(self, request: Request) -> Response:
        """The published model."""
        return await self.papers.published(request, fingerprint_in(request), "model")

    @get(
        f"{ONE_COLLECTION}/moments",
        answer(Moments, "The moments, always the same bytes; models are free.") | SAME,
        problems.NOT_PUBLISHED,
    )
    async def moments(self, request: Request) -> Response:
        """The blurred sums of a `moment` collection."""
        return await self.papers.published(request, fingerprint_in(request), "moments")

    @get(
        f"{ONE_COLLECTION}/statement",
        STATEMENT,
        problems.INVALID,
        problems.NOT_PUBLISHED,
        parameters=[FORMAT],
    )
    async def statement(self, request: Request) -> Response:
        """The privacy statement in words."""
        return await self.papers.statement(request, fingerprint_in(request))

    @get("/signing-key", answer(OBJECT, "The key, or null where this service signs nothing."))
    async def signing_key(self, _request: Request) -> Response:
        """The public key with which this service signs, where an agreement names it."""
        return as_json({"key": self.papers.signing.key})

    @get("/healthz", answer(OBJECT, "It does."))
    async def health(self, _request: Request) -> Response:
        """Whether the store answers, and could keep what is sent now."""
        await run_in_threadpool(self.store.check)
        return as_json({"status": "ok"})

    @get("/metrics", content("Counters.", "text/plain"), problems.UNAUTHORISED)
    async def counters(self, request: Request) -> Response:
        """Counters for Prometheus; exact for whoever has a token, and rounded for others."""
        if exact := "authorization" in request.headers:
            await bearer_of(self.store, request, "read")
        statuses = await run_in_threadpool(self.store.statuses)
        text = self.metrics.text(statuses, exact=exact)
        return Response(text, headers={"content-type": Metrics.MEDIA_TYPE})


def fingerprint_in(request: Request) -> str:
    """Which collection a request is about."""
    return str(request.path_params["fingerprint"])
