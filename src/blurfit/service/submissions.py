"""Take submissions, one or many, as JSON or as bytes, and answer once they are on disk.

They are what there is most of, so they take a short way past the router.
"""

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from blurfit.errors import BlurfitError
from blurfit.messages.shares import ShareLayout
from blurfit.messages.submissions import Submission, Submissions, rows_of
from blurfit.protocol import problems, tokens
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import (
    BINARY,
    COLLECTIONS,
    INVITATION,
    JSON,
    MOST_SUBMISSIONS,
    SUBMISSIONS,
    media_type,
)
from blurfit.service import cors
from blurfit.service.answers import Refusals, send_answer
from blurfit.service.bodies import read_body
from blurfit.service.collector import Collector
from blurfit.service.metrics import Metrics
from blurfit.store.arrivals import Arrival
from blurfit.store.collections import Collection
from blurfit.store.store import Store

_BEFORE, _AFTER = len(COLLECTIONS) + 1, len(SUBMISSIONS)


def is_for_submissions(path: str) -> bool:
    """Whether a request goes where submissions are sent."""
    return path.endswith(SUBMISSIONS) and path.startswith(f"{COLLECTIONS}/")


@dataclass(frozen=True, eq=False)
class SubmissionPath:
    """What is behind …/submissions."""

    store: Store
    collector: Collector
    metrics: Metrics
    refusals: Refusals
    body_bytes: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        fingerprint = scope["path"][_BEFORE:-_AFTER]
        origin = cors.origin_in(scope["headers"])
        crosses = origin is not None and origin in await self.origins(fingerprint)
        if origin is not None and crosses:
            send = cors.admitting(send, origin)
        if scope["method"] == "POST":
            await self._take(fingerprint, dict(scope["headers"]), receive, send)
        elif scope["method"] == "OPTIONS" and crosses:
            await cors.answer_preflight(send)
        else:
            refusal = RequestError(problems.NOT_ALLOWED, "Submissions are sent by POST.")
            await self.refusals.send(send, refusal)

    async def origins(self, fingerprint: str) -> tuple[str, ...]:
        """Whose pages may send shares to a collection, and where its own page may send them."""
        try:
            collection = await self._collection(fingerprint)
        except BlurfitError:  # unknown, or the store is away: others will say so
            return ()
        return cors.origins_of(collection.agreement)

    async def _collection(self, fingerprint: str) -> Collection:
        if (known := self.store.known(fingerprint)) is not None:
            return known
        return await run_in_threadpool(self.store.collection, fingerprint)

    async def _take(
        self, fingerprint: str, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        try:
            collection = await self._collection(fingerprint)
            body = await read_body(headers, receive, self.body_bytes)
            arrival = Arrival(_rows(collection, headers, body), _invitations(headers))
            count = arrival.size // collection.layout.size
            new = await self.collector.submit(collection, arrival)
        except (BlurfitError, RequestError) as error:
            await self.refusals.send(send, error)
            return
        self.metrics.accepted(count, new)
        await send_answer(send, 200, JSON, b'{"accepted":%d,"new":%d}' % (count, new))


def _rows(collection: Collection, headers: dict[bytes, bytes], body: bytes) -> bytes | memoryview:
    """The messages that a body holds, one behind the other."""
    layout = collection.layout
    kind = media_type(headers.get(b"content-type", b"").decode("latin-1"))
    if kind == BINARY:
        if layout.fits(body):  # by far the most frequent
            return body
        rows = layout.rows(body) if isinstance(layout, ShareLayout) else rows_of(layout, body)
    elif kind == JSON and not isinstance(layout, ShareLayout):
        rows = _from_json(body).rows(layout)
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
    return rows.data


def _from_json(body: bytes) -> Submissions:
    if body.lstrip()[:1] == b"[":
        return Submissions.from_json(body)
    return Submissions.gather([Submission.from_json(body)])


def _invitations(headers: dict[bytes, bytes]) -> tuple[bytes, ...]:
    given = headers.get(INVITATION.encode())
    if given is None:
        return ()
    return tuple(tokens.hashed(one.strip()) for one in given.decode("latin-1").split(","))
