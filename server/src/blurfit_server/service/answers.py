"""Answers and refusals: headers, kept responses, origins, counts, signatures and languages.

An unhandled exception is answered 500 with a name, under which the log has its traceback. Neither
addresses nor anything that was submitted is logged.

**Constant answers** (agreements, models, statements, pages …) are kept plain and compressed, with
an `ETag` (RFC 9110). A long one is made in turn, once for all who wait for it.

**Other origins (CORS).** A contributor's page sends shares to both databases: allowed for the
places in `CROSSING` alone, and for the two origins that the agreement names.

**Counts.** Exact counts would show when each person sends. So from a hundred on a count has two
digits, rounded down: it changes with every tenth to hundredth arrival, and then tells that somebody
came, and not who. Two facts are never rounded away: that a quorum is reached, and how many are in
what is published. Prometheus gets rounded counts, too, unless it sends a token that is good for
`read`. Counters stand in memory that forked processes share, a row for each worker; a new worker
goes on with the row of the one that died, so no count falls while the service runs.

**Signatures.** Where an agreement names its key, receipts and withdrawals are signed when given,
publications when first asked for, and two databases hand each other theirs. A service without the
private key refuses submissions before any is stored; what is there can be published, unsigned.

**Languages.** A message keeps its English template and its values (`blurfit.wording`), and
`sentences.de.po` pairs templates. A template that has no German stays English. No text that was put
together is read again, so a refusal costs the same in every language, whatever a stranger sent; of
each value that it repeats it shows 100 printable characters. The pages' words are in
`pages/*.en.js`, and in `pages.de.po`.
"""

import gzip
import hashlib
import json
import logging
import mmap
import re
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from inspect import iscoroutinefunction
from types import SimpleNamespace
from typing import Any, Literal

import msgspec
import numpy as np
from prometheus_client import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope, Send

from blurfit import errors, protocol
from blurfit.agreement.agreement import Agreement
from blurfit.messages.signing import (
    Deed,
    Signature,
    Signer,
    about_release,
    about_submissions,
    is_signed,
)
from blurfit.messages.submissions import Role
from blurfit.model.model import with_signatures
from blurfit.protocol import COLLECTIONS, INVITATION, JSON, PROBLEM, Kind, RequestError
from blurfit.wording import Language, Message
from blurfit_server.service.limits import LONG, InProgress, Reserve, Turns, cost_of
from blurfit_server.store.collections import Collection, Status
from blurfit_server.store.store import Store


def shown(count: int, quorum: int) -> int:
    """Return two digits of a count, rounded down, but never below a quorum that is reached.

    >>> shown(87, 2000), shown(1999, 2000), shown(2044, 2000), shown(123_456, 2000)
    (87, 1900, 2000, 120000)
    """
    step: int = 10 ** max(0, len(str(count)) - 2)
    rounded = count - count % step
    return max(rounded, quorum) if count >= quorum else rounded


def for_strangers(status: Status) -> Status:
    """Round the counts of a state, but those of waves that are released."""
    waves = [
        one if one.state == "released" else replace(one, count=shown(one.count, one.quorum))
        for one in status.waves
    ]
    newest = [one for one in waves if one.fingerprint is not None][-1]
    return replace(status, count=newest.count, waves=tuple(waves))


ACCEPTED = ("new", "again")
REFUSED = tuple(one.name for one in vars(protocol).values() if isinstance(one, Kind))
_PLACES = {name: place for place, name in enumerate((*ACCEPTED, *REFUSED))}


@dataclass(eq=False)
class Metrics:
    """Counters of a service of so many processes, and gauges that are read from the store."""

    workers: int = 1
    worker: int = 0  # which of them counts here
    _counts: "memoryview[int]" = field(init=False, repr=False)

    MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

    def __post_init__(self) -> None:
        memory = mmap.mmap(-1, 8 * self.workers * len(_PLACES))
        self._counts = memoryview(memory).cast("Q")

    def accepted(self, count: int, new: int) -> None:
        """Count submissions that are on disk, some of them new."""
        self._add("new", new)
        self._add("again", count - new)

    def refused(self, kind: str) -> None:
        """Count a request that was refused."""
        self._add(kind, 1)

    def text(self, statuses: list[Status], *, exact: bool) -> bytes:
        """Return everything in Prometheus's text format, rounded unless exact."""
        submissions = CounterMetricFamily(
            "blurfit_submissions",
            "Submissions that are on disk, by whether they had been there before",
            labels=["kind"],
        )
        refusals = CounterMetricFamily(
            "blurfit_refusals", "Requests that were refused, by kind", labels=["kind"]
        )
        come = GaugeMetricFamily(
            "blurfit_collection_submissions",
            "Submissions in a collection",
            labels=["fingerprint", "state"],
        )
        quorums = GaugeMetricFamily(
            "blurfit_collection_quorum",
            "Submissions that a collection needs",
            labels=["fingerprint"],
        )
        for name in ACCEPTED:
            count = self._sum(name)
            submissions.add_metric([name], count if exact else shown(count, count + 1))
        for name in REFUSED:
            if refused := self._sum(name):
                refusals.add_metric([name], refused)
        for one in statuses if exact else map(for_strangers, statuses):
            come.add_metric([one.fingerprint, one.state], one.count)
            quorums.add_metric([one.fingerprint], one.quorum)
        families: Any = SimpleNamespace(collect=lambda: [submissions, refusals, come, quorums])
        return generate_latest(families)

    def _add(self, name: str, count: int) -> None:
        self._counts[self.worker * len(_PLACES) + _PLACES[name]] += count

    def _sum(self, name: str) -> int:
        return sum(self._counts[_PLACES[name] :: len(_PLACES)])


# ---- answers

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
    """Answer in JSON, with messages in the language of whoever asks."""
    return Response(msgspec.json.encode(content, enc_hook=_rendered), status, media_type=JSON)


def _rendered(value: object) -> str:
    if isinstance(value, Message):
        return language_of(wanted.get()).render(value)
    raise NotImplementedError(type(value))


Endpoint = Callable[..., Any]  # of an object and a request


def route_of(path: str, endpoints: dict[str, Endpoint]) -> Route:
    """Serve the endpoints of a path, one for each method."""

    async def endpoint(request: Request) -> Response:
        method = "get" if request.method == "HEAD" else request.method.lower()
        return await called(endpoints[method], request)

    return Route(path, endpoint, methods=[name.upper() for name in endpoints])


async def called(endpoint: Endpoint, *given: Any) -> Response:
    """Return the answer of an endpoint: in JSON, unless it makes one of its own."""
    if iscoroutinefunction(endpoint):
        found = await endpoint(*given)
    else:
        found = await run_in_threadpool(endpoint, *given)
    return found if isinstance(found, Response) else as_json(found)


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
    """Errors as problem documents, in the language of whoever asks; each of them is counted."""

    metrics: Metrics

    async def send(
        self,
        send: Send,
        error: errors.BlurfitError | RequestError,
        more: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Answer with an error."""
        if isinstance(error, errors.StorageError):
            _log.error("%s", error)
        kind, detail = protocol.of_error(error)
        self.metrics.refused(kind.name)
        problem = kind.problem(detail, language_of(wanted.get(), LONGEST_VALUE))
        extra = [*more]
        if kind.retry_after is not None:
            extra.append((b"retry-after", b"%d" % kind.retry_after))
        if kind in (protocol.BUSY, protocol.TOO_MANY):  # what is left of its body need not come
            extra.append((b"connection", b"close"))
        if kind is protocol.UNAUTHORISED:
            extra.append((b"www-authenticate", b"Bearer"))
        await send_answer(send, kind.status, PROBLEM, msgspec.json.encode(problem), extra)


# ---- constant answers

FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
ASKED_AFTER = {"cache-control": "no-cache"}  # kept by browsers, but asked after
SHELF_BYTES = 2**25
_LEVEL = 4  # of compression: numbers get as small as at 9, in a tenth of the time


@dataclass(frozen=True)
class Kept:
    """An answer as it is sent; what may change has a `version`, which is looked at each time."""

    plain: bytes = field(repr=False)
    compressed: bytes = field(repr=False)
    tag: str
    media_type: str
    headers: Mapping[str, str]
    version: Hashable = None

    @classmethod
    def made(
        cls,
        plain: str | bytes,
        media_type: str,
        headers: Mapping[str, str] = ASKED_AFTER,
        version: Hashable = None,
    ) -> "Kept":
        """Keep the answer with this content."""
        plain = plain.encode() if isinstance(plain, str) else plain
        compressed = gzip.compress(plain, _LEVEL, mtime=0)
        tag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
        return cls(plain, compressed, tag, media_type, headers, version)

    def answer(
        self, request: Request, status: int = 200, more: Mapping[str, str] | None = None
    ) -> Response:
        """Send it to somebody; nothing but the tag, if that is what they have."""
        headers = {
            "content-type": self.media_type,
            "etag": self.tag,
            "vary": "accept-encoding",
            **self.headers,
            **(more or {}),
        }
        if status == 200 and self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.compressed, status, headers | {"content-encoding": "gzip"})
        return Response(self.plain, status, headers)


class Shelf:
    """Answers by name, up to so many bytes; the newest stays however long it is."""

    def __init__(self, turns: Turns, most: int = SHELF_BYTES) -> None:
        self._turns, self._most = turns, most
        self._kept: dict[Hashable, Kept] = {}  # what was not asked for longest comes first
        self._making: InProgress[Kept] = InProgress()

    async def get(
        self,
        name: Hashable,
        find: Callable[[], str],
        make: Callable[[str], Kept],
        version: Callable[[], Hashable] = lambda: None,
    ) -> Kept:
        """Return what is kept under a name, if still good; else made of what `find` finds."""
        found = self._kept.get(name)
        if found is not None and found.version is not None:
            found = found if await run_in_threadpool(version) == found.version else None
        if found is None:
            found = await self._making.join(name, lambda: self._made(find, make))
        self._keep(name, found)
        return found

    async def _made(self, find: Callable[[], str], make: Callable[[str], Kept]) -> Kept:
        text = await run_in_threadpool(find)
        if len(text) > LONG:
            return await self._turns.take(make, text)
        return await run_in_threadpool(make, text)

    def _keep(self, name: Hashable, found: Kept) -> None:
        self._kept.pop(name, None)
        self._kept[name] = found
        size = sum(len(one.plain) + len(one.compressed) for one in self._kept.values())
        for other in list(self._kept):
            if size <= self._most or other == name:
                return
            gone = self._kept.pop(other)
            size -= len(gone.plain) + len(gone.compressed)


# ---- other origins

CROSSING = {  # the last part of a path: what a page of another origin may do there, with what
    "": ("GET", "accept-language"),  # its state, in which counts are rounded as for anybody
    "submissions": ("POST", f"content-type, {INVITATION}"),
    "invitation": ("GET", INVITATION),
    "withdrawals": ("POST", "content-type"),
}
Origins = Callable[[str], Awaitable[Sequence[str]]]


async def let_across(scope: Scope, send: Send, origins: Origins) -> Send | None:
    """Return a `send` that lets a page of a database of the agreement read the answer, where it
    may ask for it; None once a browser has been told what such a page may ask (a preflight).

    `origins` tells whose pages those are, given a fingerprint.
    """
    origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
    if origin is None:  # programs name none
        return send
    _, _, path = scope["path"].partition(f"{COLLECTIONS}/")
    fingerprint, _, place = path.partition("/")
    if place not in CROSSING or origin.decode("latin-1") not in await origins(fingerprint):
        return send
    send = adding(send, [(b"access-control-allow-origin", origin), (b"vary", b"origin")])
    if scope["method"] != "OPTIONS":
        return send
    method, names = CROSSING[place]
    told = {"methods": method, "headers": names}
    headers = [(b"access-control-max-age", b"600"), (b"content-length", b"0")]
    headers += [(f"access-control-allow-{a}".encode(), b.encode()) for a, b in told.items()]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
    return None


# ---- signatures

Document = Literal["model", "moments"]
EXPECTED = Message("signatures of a model and of moments")


class Signatures(msgspec.Struct):
    """Of what two databases have published, by either of them."""

    model: list[Signature] = msgspec.field(default_factory=list)
    moments: list[Signature] = msgspec.field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Signatory:
    """Signs for a service; without a key, nothing."""

    store: Store
    signer: Signer | None = field(default=None, repr=False)

    @property
    def key(self) -> str | None:
        """Return the public key of this service, if it has one."""
        return None if self.signer is None else self.signer.key

    def refuse_another_key(self, agreement: Agreement, role: Role) -> None:
        """Refuse an agreement under which this service would have to sign, and cannot."""
        wanted = key_of(agreement, role)
        if wanted is not None and wanted != self.key:
            raise errors.InfeasibleError(
                "Expected this service to have the private key of {wanted}, with which the "
                "agreement says that it signs: start it with `blurfit serve --signing-key-file` "
                "and the file of that key, or agree on the key that it prints.",
                wanted=wanted,
            )

    def of_submissions(self, deed: Deed, collection: Collection, identifiers: bytes) -> str | None:
        """Sign that submissions were stored here, or withdrawn; None if that is not agreed."""
        if key_of(collection.agreement, collection.role) is None or self.signer is None:
            return None
        message = about_submissions(deed, collection.fingerprint, collection.role, identifiers)
        return self.signer.sign(message).signature

    def receipt(self, collection: Collection, rows: bytes | memoryview) -> str | None:
        """Sign for messages of the collection's layout, one after another."""
        if key_of(collection.agreement, collection.role) is None:
            return None
        layout = collection.layout
        table = np.frombuffer(rows, dtype=np.uint8).reshape(-1, layout.size)
        return self.of_submissions("receipt", collection, layout.identifiers(table).tobytes())

    def signed(self, fingerprint: str, document: Document, text: str) -> tuple[str, int]:
        """Return a published text with its signatures, and how many of those agreed on are missing.

        This service's own is made if need be.
        """
        collection = self.store.collection(fingerprint)
        keys = len(collection.agreement.signing_keys)
        if not keys:
            return text, 0
        found = self._signatures(collection, document, text)
        return with_signatures(text, found), keys - len(found)

    def with_own(self, fingerprint: str, document: dict[str, Any]) -> dict[str, Any]:
        """Return what follows from something published, with this service's signature if agreed."""
        collection = self.store.collection(fingerprint)
        told = {"fingerprint": fingerprint} | document
        if self.signer is None or key_of(collection.agreement, collection.role) != self.key:
            return told
        made = self.signer.sign(about_release(told))
        return told | {"signatures": [msgspec.to_builtins(made)]}

    def missing(self, fingerprint: str, document: Document) -> int:
        """Return how many signatures of something published are still to come."""
        collection = self.store.collection(fingerprint)
        kept = self.store.signatures(collection, document)
        return len(collection.agreement.signing_keys) - len(kept)

    def _signatures(
        self, collection: Collection, document: Document, text: str
    ) -> tuple[Signature, ...]:
        kept = self.store.signatures(collection, document)
        own = key_of(collection.agreement, collection.role)
        if self.signer is None or own != self.key or own in {one.key for one in kept}:
            return kept
        made = self.signer.sign(about_release(json.loads(text)))
        self.store.keep_signatures(collection, document, [made])
        return self.store.signatures(collection, document)

    # ---- of two databases

    def all_of(self, collection: Collection) -> Signatures:
        """Return every signature that there is of what a collection has published."""
        published = self._published(collection).items()
        return Signatures(
            **{one: [*self._signatures(collection, one, text)] for one, text in published}
        )

    def take(self, collection: Collection, given: Signatures) -> None:
        """Keep signatures that others made, if they are right."""
        for document, text in self._published(collection).items():
            message = about_release(json.loads(text))
            some = getattr(given, document)
            if not all(
                one.key in collection.agreement.signing_keys
                and is_signed(message, one.key, one.signature)
                for one in some
            ):
                raise errors.InvalidValueError(
                    "Expected signatures of the {document} that is published here, by the keys of "
                    "the agreement: both databases publish the same bytes.",
                    document=document,
                )
            self.store.keep_signatures(collection, document, some)

    def _published(self, collection: Collection) -> dict[Document, str]:
        """Return what a wave shows: its sums, and the model of its course if it has that."""
        found: dict[Document, str] = {}
        name, store = collection.fingerprint, self.store
        with suppress(errors.NotPublishedError):
            if store.shown_at(name) == name:
                found["model"] = store.model(name)
        with suppress(errors.NotPublishedError):
            found["moments"] = store.moments_text(name)
        return found

    def require_all(self, collection: Collection) -> None:
        """Refuse while a signature is missing of something that is published."""
        for document in self._published(collection):
            if self.missing(collection.fingerprint, document):
                raise errors.ServiceError(
                    "Expected the signature of {databases_name}, and it has not signed yet.",
                    databases_name=collection.agreement.databases[1].name,
                )


def key_of(agreement: Agreement, role: Role) -> str | None:
    """Return the public key with which the database in this role signs, if it does."""
    if not agreement.signing_keys:
        return None
    return agreement.signing_keys[role == "second"]


# ---- languages

LANGUAGES = ("en", "de")
LONGEST_VALUE = 100  # characters of each value in a refusal, which may repeat a request
_PAIR = re.compile(r'^msgid (".+")\nmsgstr (".+")$', re.M)
_WORDS = re.compile(r'^(  (?:"[\w.-]+"|\w+): )("(?:[^"\\]|\\.)*"),$', re.M)  # name: "text",

wanted: ContextVar[str] = ContextVar("wanted", default="en")  # by whoever asks


def best_of(accepted: str) -> str:
    """Return the first of the languages that a browser names which there is.

    >>> best_of("fr-CH, de-AT;q=0.9, en;q=0.8"), best_of("")
    ('de', 'en')
    """
    tags = (re.split("[-;]", one.strip().lower())[0] for one in accepted.split(",")[:20])
    return next((tag for tag in tags if tag in LANGUAGES), "en")


@cache
def language_of(name: str, longest: int | None = None) -> Language:
    """Return how messages are rendered in a language, with values of so many characters."""
    if name == "en":
        return Language({}, longest=longest)
    return Language(catalogue(name), comma=True, longest=longest)


@cache
def catalogue(language: str, name: str = "sentences") -> Mapping[str, str]:
    """Return the templates of a language by the English ones: of sentences, or of pages' words."""
    path = files("blurfit_server.service").joinpath(f"{name}.{language}.po")
    pairs = _PAIR.findall(path.read_text(encoding="utf-8"))
    return {json.loads(english): json.loads(other) for english, other in pairs}


def words_in(language: str, english: str) -> str:
    """Return a script of words in another language, from the English one."""
    known = catalogue(language, "pages")

    def told_there(found: re.Match[str]) -> str:
        text = json.loads(found[2])
        return f"{found[1]}{json.dumps(known.get(text, text), ensure_ascii=False)},"

    return _WORDS.sub(told_there, english)
