"""What anyone may read and contributors may do, who may do more, and the pages.

`{fingerprint}` is that of a course, or of one of its waves. **Pages** are static files, read once,
without a build step. A page reads its address (an invitation is after #) and asks the service for
the rest; it computes no statistics. Its policy allows scripts, styles and requests of this service
alone, none of them inline, and no text may become HTML.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from importlib.resources import files
from string import Template
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from blurfit import protocol
from blurfit.agreement.agreement import AgreementDocument
from blurfit.agreement.plan import PlanDocument
from blurfit.errors import BlurfitError, InfeasibleError, StorageError, one_of
from blurfit.messages.submissions import identifiers_of
from blurfit.model.model import PublishedModel
from blurfit.model.release import MomentsDocument, PublishedMoments
from blurfit.model.statement import as_html, as_markdown, as_yaml
from blurfit.schema.columns import Categorical
from blurfit.schema.derived import Curve, Poly
from blurfit.wording import Message
from blurfit_server.service import answers
from blurfit_server.service.answers import shown
from blurfit_server.service.intake import origins_in
from blurfit_server.service.limits import document_in, held_by, run_in_daemon_thread
from blurfit_server.service.operations import (
    OBJECT,
    SAME,
    TEXT,
    Operation,
    answer,
    array,
    content,
    get,
    header,
    operation,
    or_page,
    post,
    query,
    reference,
)
from blurfit_server.store.arrivals import Bearer, Right
from blurfit_server.store.collections import Status
from blurfit_server.store.store import Store

_log = logging.getLogger("blurfit.audit_log")

# ---- documents

Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0)]


class Hour(Struct):
    """How many came in an hour, which is counted since 1970 in UTC."""

    hour: Count
    count: Count


class Invitation(Struct):
    """Whether a submission with an invitation would be let in."""

    usable: bool


class Secrets(Struct, forbid_unknown_fields=True):
    """Of submissions that are to be withdrawn: `blurfit.messages.submissions`."""

    secrets: Annotated[list[Fingerprint], Meta(min_length=1, max_length=protocol.MOST_SUBMISSIONS)]


NUMBERS_OF_A_REQUEST = 1000  # published ones, from which a table is computed at no further cost
AGREED = {"oneOf": [reference(AgreementDocument), reference(PlanDocument)]}
STATEMENTS: dict[str, tuple[str, Callable[..., str]]] = {
    "markdown": ("text/markdown; charset=utf-8", as_markdown),
    "html": ("text/html; charset=utf-8", as_html),
    "yaml": ("application/yaml", as_yaml),
}
_QUESTION = "The name of a question of the collection; of another, the request is refused."
LANG = query("lang", {"enum": list(answers.LANGUAGES)})


def _language_in(request: Request) -> str:
    """Return the language that a request names for what it asks; else it is English."""
    language = request.query_params.get("lang", "en")
    one_of(answers.LANGUAGES, lang=language)
    return language


def _curves(model: PublishedModel, output: str) -> dict[str, list[tuple[float, ...]]]:
    """Return, of each number of which there is a curve, (answer, mean response, lower, upper)."""
    features = map(model.agreement.schema.question, model.features)
    found = {}
    for name in dict.fromkeys(one.of[0] for one in features if isinstance(one, Curve | Poly)):
        with suppress(InfeasibleError):
            told = model.effect(name, output=output)
            line = [] if told.line is None else told.line.tolist()
            rows = zip(line, told.to_facts()["rows"], strict=True)
            numbers = ("estimate", "lower", "upper")
            found[name] = [(x, *(row[one] for one in numbers)) for x, row in rows]
    return found


# ---- who may


def bearer_of(store: Store, request: Request, right: Right | None = None) -> Bearer:
    """Return whose token was sent; refuse one that is nobody's, or not good for this."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    who = None
    if scheme.lower() == "bearer" and token:
        who = store.bearer(protocol.hashed(token))
    if who is None or (right is not None and right not in who.rights):
        made = "" if right is None else f" --right {right}"
        raise protocol.RequestError(
            protocol.UNAUTHORISED,
            "Send the token that `blurfit serve` printed at its first start, or one that "
            "`blurfit token{made}` made: Authorization: Bearer …",
            made=made,
        )
    return who


def guarded(
    right: Right, what: str | None = None
) -> Callable[[answers.Endpoint], answers.Endpoint]:
    """Guard an endpoint of an object with a `store`: for those who have the right alone.

    Each use of one that changes something is written down with its outcome, as `what`.
    """

    def guard(endpoint: answers.Endpoint) -> answers.Endpoint:
        @wraps(endpoint)
        async def guarded_endpoint(self: Any, request: Request) -> Response:
            who = (await run_in_threadpool(bearer_of, self.store, request, right)).name
            if what is None:
                return await answers.called(endpoint, self, request)
            try:
                response = await answers.called(endpoint, self, request)
            except Exception as error:  # the service answers what nobody foresaw
                kind = protocol.UNEXPECTED
                if isinstance(error, BlurfitError | protocol.RequestError):
                    kind, _ = protocol.of_error(error)
                await _write_down(self.store, request, who, what, kind.status)
                raise
            await _write_down(self.store, request, who, what, response.status_code)
            return response

        vars(guarded_endpoint)["security"] = "administrator"  # for `service.operations`
        return guarded_endpoint

    return guard


async def _write_down(store: Store, request: Request, who: str, what: str, outcome: int) -> None:
    """Write into the store and the log; where the store is away, into the log alone."""
    fingerprint = request.path_params.get("fingerprint")
    if fingerprint is not None:
        fingerprint = fingerprint.replace("\0", "")  # which no text of PostgreSQL may have
    _log.info("%s: %s %s: %s", who, what, fingerprint or "", outcome)
    try:
        await run_in_threadpool(store.log, who, what, fingerprint, outcome)
    except StorageError as error:
        _log.error("what %s did could not be written down: %s", who, error)


def fingerprint_in(request: Request) -> str:
    """Return which collection a request is about."""
    return str(request.path_params["fingerprint"])


def newest_wave(store: Store, fingerprint: str) -> str:
    """Return the fingerprint of a wave: itself, or that of the newest wave of a plan."""
    course = store.course(fingerprint)
    if course.by_hand or course.fingerprint != fingerprint:
        return fingerprint
    return [one.fingerprint for one in store.status(fingerprint).waves if one.fingerprint][-1]


# ---- constant documents


@dataclass(frozen=True, eq=False)
class Papers:
    """What never changes of what is collected, or only by being signed."""

    store: Store
    signing: answers.Signatory
    shelf: answers.Shelf
    _shown: dict[str, str] = field(default_factory=dict, repr=False)  # which wave has the model

    async def document(self, request: Request, fingerprint: str) -> Response:
        """Return the agreement or the plan under a fingerprint."""

        def find() -> str:
            course = self.store.course(fingerprint)
            if course.fingerprint == fingerprint:
                return course.text
            return self.store.collection(fingerprint).agreement.to_json()

        make = partial(answers.Kept.made, media_type=protocol.JSON, headers=answers.FOREVER)
        return (await self.shelf.get(("document", fingerprint), find, make)).answer(request)

    async def published(self, request: Request, wave: str, document: answers.Document) -> Response:
        """Return a model or moments, to be kept for ever once everybody has signed who should."""

        def find() -> str:
            of = self.store.model if document == "model" else self.store.moments_text
            return of(wave)

        def make(text: str) -> answers.Kept:
            signed, missing = self.signing.signed(wave, document, text)
            return answers.Kept.made(
                signed,
                protocol.JSON,
                answers.ASKED_AFTER if missing else answers.FOREVER,
                missing or None,
            )

        missing = partial(self.signing.missing, wave, document)
        return (await self.shelf.get((document, wave), find, make, missing)).answer(request)

    async def shown_at(self, fingerprint: str) -> str:
        """Return the fingerprint of the wave with which the model of a course is shown."""
        if fingerprint not in self._shown:
            self._shown[fingerprint] = await run_in_threadpool(self.store.shown_at, fingerprint)
        return self._shown[fingerprint]

    async def model(self, request: Request, fingerprint: str) -> Response:
        """Return the model of a course."""
        return await self.published(request, await self.shown_at(fingerprint), "model")

    async def computed(
        self,
        request: Request,
        name: tuple[str | None, ...],
        find: Callable[[], str],
        make: Callable[[str], dict[str, Any]],
    ) -> Response:
        """Answer what follows from something published, computed once and signed."""

        def write(text: str) -> answers.Kept:
            signed = self.signing.with_own(str(name[1]), make(text))
            return answers.Kept.made(msgspec.json.encode(signed), protocol.JSON)

        return (await self.shelf.get(name, find, write)).answer(request)


# ---- what anyone may read


@dataclass(frozen=True, eq=False)
class Reading:
    """Endpoints that change nothing, and ask for no token."""

    store: Store
    metrics: answers.Metrics
    papers: Papers

    @get(protocol.COLLECTIONS, answer(array(Status), "Their states."))
    def collections(self, _request: Request) -> list[Status]:
        """All collections, each with its waves."""
        return [answers.for_strangers(one) for one in self.store.statuses()]

    @get(protocol.ONE_COLLECTION, or_page(answer(Status, "The state.")))
    def collection(self, request: Request) -> Response:
        """State, count and quorum of a collection and of its waves, or its page for a browser."""
        if wants_page(request):
            others = origins_in(self.store, fingerprint_in(request))
            return collection_page(request, others)
        response = answers.as_json(
            answers.for_strangers(self.store.status(fingerprint_in(request)))
        )
        response.headers["vary"] = "accept"
        return response

    @get(f"{protocol.ONE_COLLECTION}/document", answer(AGREED, "Always the same bytes.") | SAME)
    async def document(self, request: Request) -> Response:
        """What everyone agreed on: the agreement or the plan with this fingerprint."""
        return await self.papers.document(request, fingerprint_in(request))

    @get(
        f"{protocol.ONE_COLLECTION}/agreement",
        answer(AgreementDocument, "The agreement; of a plan, later another.") | SAME,
        *(protocol.CLOSED, protocol.DATE_CLOSED, protocol.BETWEEN_WAVES),
    )
    async def agreement(self, request: Request) -> Response:
        """What a record is to be blurred under now: of a plan, the wave that collects."""
        fingerprint = fingerprint_in(request)
        course = await run_in_threadpool(self.store.course, fingerprint)
        if course.by_hand or course.fingerprint != fingerprint:
            return await self.papers.document(request, fingerprint)
        found = await run_in_threadpool(self.store.current, fingerprint)
        response = await self.papers.document(request, found.fingerprint)
        response.headers["cache-control"] = "no-cache"  # later, another
        return response

    @get(
        f"{protocol.ONE_COLLECTION}/releases",
        answer(array(MomentsDocument), "The releases.") | SAME,
    )
    async def releases(self, request: Request) -> Response:
        """What the waves so far have published, in order."""
        fingerprint = fingerprint_in(request)
        count = await run_in_threadpool(self.store.released, fingerprint)

        def find() -> str:
            return f"[{','.join(self.store.releases(fingerprint))}]"

        make = partial(answers.Kept.made, media_type=protocol.JSON)
        found = await self.papers.shelf.get(("releases", fingerprint, count), find, make)
        return found.answer(request)

    @get(
        f"{protocol.ONE_COLLECTION}/moments",
        answer(MomentsDocument, "The moments, always the same bytes; models are free.") | SAME,
        protocol.NOT_PUBLISHED,
    )
    async def moments(self, request: Request) -> Response:
        """The blurred sums of one wave."""
        return await self.papers.published(request, fingerprint_in(request), "moments")

    @get(
        f"{protocol.ONE_COLLECTION}/model",
        answer(OBJECT, "The model, always the same bytes.") | SAME,
        protocol.NOT_PUBLISHED,
    )
    async def model(self, request: Request) -> Response:
        """The published model."""
        return await self.papers.model(request, fingerprint_in(request))

    @get(
        f"{protocol.ONE_COLLECTION}/statement",
        content("The statement.", "text/markdown", "text/html", "application/yaml") | SAME,
        *(protocol.INVALID, protocol.NOT_PUBLISHED),
        parameters=[query("format", {"enum": list(STATEMENTS)}), LANG],
    )
    async def statement(self, request: Request) -> Response:
        """The privacy statement in words, in English or in another language (but for YAML)."""
        fingerprint = fingerprint_in(request)
        wanted = request.query_params.get("format", "markdown")
        one_of(STATEMENTS, format=wanted)
        language = _language_in(request)
        media_type, write = STATEMENTS[wanted]
        spoken: dict[str, Any] = {
            "language": language,
            "tell": answers.language_of(language).render,
        }
        how = {} if wanted == "yaml" else spoken

        def make(text: str) -> answers.Kept:
            return answers.Kept.made(write(PublishedModel.from_json(text), **how), media_type)

        find, name = partial(self.store.model, fingerprint), (wanted, language, fingerprint)
        found = await self.papers.shelf.get(("statement", *name), find, make)
        return found.answer(request)

    @get(
        f"{protocol.ONE_COLLECTION}/estimates",
        answer(OBJECT, "Of each output, its coefficients with their errors; and caveats.") | SAME,
        *(protocol.INVALID, protocol.NOT_PUBLISHED),
        parameters=[LANG],
    )
    async def estimates(self, request: Request) -> Response:
        """The coefficients of the model with errors and 95 % intervals; or why there are none."""
        language = _language_in(request)
        render = answers.language_of(language).render

        def make(text: str) -> dict[str, Any]:
            model = PublishedModel.from_json(text)
            outputs = [one for one, _ in zip(model.outputs, model.inference, strict=False)]
            said = {"refusal": model.refusal, "doubt": model.doubt}
            return {
                "estimates": {
                    one: [each.to_dict() for each in model.estimates(output=one)] for one in outputs
                },
                "curves": {one: _curves(model, one) for one in outputs},
                "caveats": [render(one) for one in model.guarantee.caveats],
                **{name: text and render(text) for name, text in said.items()},
            }

        wave = await self.papers.shown_at(fingerprint_in(request))
        find = partial(self.store.model, wave)
        return await self.papers.computed(request, ("estimates", wave, language), find, make)

    @get(
        f"{protocol.ONE_COLLECTION}/tables",
        answer(OBJECT, "Rows with estimates, errors and intervals; what is assumed.") | SAME,
        *(protocol.INVALID, protocol.INFEASIBLE, protocol.NOT_PUBLISHED),
        parameters=[*(query(name, {"minLength": 1}, _QUESTION) for name in ("of", "by")), LANG],
    )
    async def tables(self, request: Request) -> Response:
        """The mean or the shares of a question, by the levels of another; without one, of all."""
        of = request.query_params.get("of")
        by = None if of is None else request.query_params.get("by")
        wave = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        for name in filter(None, (of, by)):
            wave.agreement.schema.question(name)
        # Anyone may ask for as many as there are pairs of questions.
        held_by(request).pay(wave.agreement.width / NUMBERS_OF_A_REQUEST)
        language = _language_in(request)
        render = answers.language_of(language).render

        def make(text: str) -> dict[str, Any]:
            moments = PublishedMoments.from_json(text)
            if of is None:
                found = moments.describe()
            elif isinstance(moments.agreement.schema.question(of), Categorical):
                found = moments.table(of, by)
            else:
                found = moments.mean(of, by=by)
            return found.to_facts() | {"assumes": list(map(render, found.assumes))}

        key = ("tables", wave.fingerprint, of, by, language)
        find = partial(self.store.moments_text, wave.fingerprint)
        return await self.papers.computed(request, key, find, make)

    @get(f"{protocol.ONE_COLLECTION}/history", answer(array(Hour), "Hours in which anyone came."))
    def history(self, request: Request) -> list[Hour]:
        """How many came in which hour, of a plan to its newest wave."""
        found = self.store.history(newest_wave(self.store, fingerprint_in(request)))
        return [Hour(hour, shown(count, count + 1)) for hour, count in found]

    @get("/signing-key", answer(OBJECT, "The key, or null where this service signs nothing."))
    def signing_key(self, _request: Request) -> dict[str, str | None]:
        """The public key with which this service signs, where an agreement names it."""
        return {"key": self.papers.signing.key}

    @get("/healthz", answer(OBJECT, "It does."))
    def health(self, _request: Request) -> dict[str, str]:
        """Whether the store answers, and could keep what is sent now."""
        self.store.check()
        return {"status": "ok"}

    @get("/metrics", content("Counters.", "text/plain"), protocol.UNAUTHORISED)
    def counters(self, request: Request) -> Response:
        """Counters for Prometheus; exact for whoever has a token, and rounded for others."""
        if exact := "authorization" in request.headers:
            bearer_of(self.store, request, "read")
        text = self.metrics.text(self.store.statuses(), exact=exact)
        return Response(text, headers={"content-type": answers.Metrics.MEDIA_TYPE})


# ---- what contributors may do, beside sending

_WITHDRAWAL_COSTS = 100  # requests, at least
_SECRETS = Message(
    "{example}, 1 to {most} of them, each in 64 hexadecimal digits, as a receipt gives them",
    example='{"secrets": ["…"]}',
    most=protocol.MOST_SUBMISSIONS,
)


@dataclass(frozen=True, eq=False)
class Contributing:
    """Endpoints for people with an invitation, or with a receipt.

    The blocks of a collection are searched for what is withdrawn, so a withdrawal costs as much as
    a hundred requests of the same address, or as one for each block where there are more; that is
    paid before its body is read. One is looked after at a time, beside whoever writes.
    """

    store: Store
    signing: answers.Signatory
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @get(
        f"{protocol.ONE_COLLECTION}/invitation",
        answer(Invitation, "Of one that is not good, nobody can tell why."),
        parameters=[header(protocol.INVITATION)],
    )
    def check_invitation(self, request: Request) -> Invitation:
        """Whether a submission with this invitation would be let in now."""
        given = protocol.hashed(request.headers.get(protocol.INVITATION, ""))
        wave = self.store.collection(newest_wave(self.store, fingerprint_in(request)))
        return Invitation(not wave.invited or self.store.is_unused(wave, given))

    @post(
        f"{protocol.ONE_COLLECTION}{protocol.WITHDRAWALS}",
        answer(protocol.Withdrawal, "They are not in the sums; asked again, the same."),
        *(protocol.CLOSED, protocol.WAVE_CLOSED),
        body=Secrets,
    )
    async def withdraw(self, request: Request) -> protocol.Withdrawal:
        """Withdraw submissions by their secrets, until the collection closes."""
        held = held_by(request)
        held.pay(_WITHDRAWAL_COSTS)  # before anything of it is read
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        held.owe(await run_in_threadpool(self.store.blocks, collection))
        secrets = (await document_in(request, Secrets, _SECRETS)).secrets

        def work() -> protocol.Withdrawal:
            names = identifiers_of([bytes.fromhex(one) for one in dict.fromkeys(secrets)])
            done = self.store.withdraw(collection, names)
            others = {*done.unknown, *done.staying}
            told = b"".join(one for one in map(bytes, names) if one not in others)
            sign = partial(self.signing.of_submissions, "withdrawal", collection)
            unknown, staying = ([x.hex() for x in some] for some in (done.unknown, done.staying))
            signature = sign(told) if told else None
            return protocol.Withdrawal(done.withdrawn, done.new, unknown, signature, staying)

        async with self._turn:
            return await run_in_daemon_thread(work)


# ---- pages

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
PAGES = {
    "/": ("home.html", "All collections"),
    "/c/{fingerprint}": ("contribute.html", "Contribute"),
    "/m/{fingerprint}": ("model.html", "A model"),
    "/admin": ("administration.html", "Administration"),
    "/glossary": ("glossary.html", "What words mean"),
}
COLLECTION, MISSING, FRAME = "collection.html", "missing.html", "frame.html"
IMPORT = re.compile(r'^(?:import|export) [^;]*?from "\./(.*?)";', re.M)
MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def all_files() -> Mapping[str, answers.Kept]:
    """Return every file of the pages; asked after, so that those of a page are of one age."""
    folder = files("blurfit_server.service").joinpath("pages")
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    for name in [name for name in texts if name.endswith(".en.js")]:
        for one in answers.LANGUAGES:
            if one != "en":
                texts[name.replace(".en.", f".{one}.")] = answers.words_in(one, texts[name])
    frame, found = Template(texts.pop(FRAME)), {}
    for name, text in texts.items():
        kind = MEDIA_TYPES[name.rpartition(".")[2]]
        headers = answers.ASKED_AFTER
        if kind == MEDIA_TYPES["html"]:
            title, _, page = text.rstrip().partition("\n")
            scripts = _scripts(name.replace(".html", ".js"), texts)
            text = frame.substitute(title=title, scripts=scripts, page=page)
            headers = headers | PAGE_HEADERS
        found[name] = answers.Kept.made(text.encode(), kind, headers)
    return found


def _scripts(own: str, texts: Mapping[str, str]) -> str:
    """Name a page's script, and before it all that it imports, and what those import."""
    if own not in texts:
        return ""
    needed: set[str] = set()
    waiting = [own]
    while waiting:
        new = set(IMPORT.findall(texts[waiting.pop()])) - needed
        needed |= new
        waiting += new
    links = [f'<link rel="modulepreload" href="/pages/{name}">' for name in sorted(needed)]
    return "\n".join((*links, f'<script type="module" src="/pages/{own}"></script>'))


def page_routes(origins: answers.Origins) -> list[Route]:
    """Return the pages' addresses; `origins` tells to whom the page of a collection may send."""

    def page(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            sends = name == PAGES["/c/{fingerprint}"][0]
            others = await origins(request.path_params["fingerprint"]) if sends else ()
            return _page(request, name, others)

        return endpoint

    found = [Route(path, page(name), methods=["GET"]) for path, (name, _) in PAGES.items()]
    return [*found, Route("/pages/{name}", _file, methods=["GET"])]


def page_operations() -> Iterator[Operation]:
    """Describe the pages; what they show they ask for at the other addresses."""
    page = content("A page.", "text/html") | SAME
    lost = {"404": content("A page that says that this is not a fingerprint.", "text/html")["200"]}
    file = content("A file.", "text/css", "text/javascript", "image/svg+xml") | SAME
    name = {"name": "name", "in": "path", "required": True, "schema": TEXT}
    for path, (_, title) in PAGES.items():
        yield operation(
            "get", path, f"{title}, as a page", page | lost if "{fingerprint}" in path else page
        )
    yield operation(
        *("get", "/pages/{name}", "Parts of the pages", file, protocol.NOT_FOUND), parameters=[name]
    )


def wants_page(request: Request) -> bool:
    """Tell whether a browser asks on behalf of a person; programs ask for JSON, or for anything."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and "application/json" not in accepted


def collection_page(request: Request, others: Sequence[str] = ()) -> Response:
    """Return the page of a collection, which asks its `others` how many they have."""
    response = _page(request, COLLECTION, others)
    response.headers["vary"] = "accept, accept-encoding"
    return response


def missing_page(request: Request) -> Response:
    """Return the page for a person at an address where there is nothing."""
    return all_files()[MISSING].answer(request, 404)


def _page(request: Request, name: str, others: Sequence[str] = ()) -> Response:
    """Return a page, which says itself what is wrong with its address; it may ask `others`."""
    fingerprint = request.path_params.get("fingerprint")
    is_address = fingerprint is None or re.fullmatch("[0-9a-f]{64}", fingerprint)
    response = all_files()[name].answer(request, 200 if is_address else 404)
    allowed = " ".join(("connect-src 'self'", *others))
    response.headers["content-security-policy"] = POLICY.replace("connect-src 'self'", allowed)
    return response


async def _file(request: Request) -> Response:
    found = all_files().get(request.path_params["name"])
    if found is None or found.media_type == MEDIA_TYPES["html"]:
        raise HTTPException(404)
    return found.answer(request)
