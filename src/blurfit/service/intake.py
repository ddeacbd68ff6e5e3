"""Take submissions, one or many, as JSON or as bytes, and answer once they are on disk.

Most requests are these, so they take a short way past the router. How long a body may be follows
from the agreement, and how much may come from an address, or to a collection, counts submissions.
Long JSON is read in turn, one body at a time, and so is found out whether a large batch is known
already: such requests wait for each other, and nobody else waits for them.
"""

from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InfeasibleError, UnknownCollectionError
from blurfit.messages.shares import OVERHEAD, Role, ShareLayout, public_key, unseal
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
from blurfit.service.bodies import Reserve, read_body
from blurfit.service.collector import Collector
from blurfit.service.detached import LONG
from blurfit.service.limits import Limiter, cost_of
from blurfit.service.metrics import Metrics
from blurfit.service.signatory import Signatory
from blurfit.store import plans
from blurfit.store.arrivals import Arrival, all_known
from blurfit.store.collections import Collection
from blurfit.store.store import Store

JSON_BYTES = 4 * 2**20  # of a body; numbers take thirty times as much while they are read
_BATCH_HEAD_BYTES = 16
_PROVED_BYTES = 64 * 2**20  # of a batch with proofs, each of 11 to 18 kB
_A_BATCH = 64  # from here on it is worth a look whether all of it is known
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
    crowds: Limiter
    body_bytes: int
    signing: Signatory
    share_key: str | None = field(default=None, repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        fingerprint = scope["path"][_BEFORE:-_AFTER]
        origin = cors.origin_in(scope["headers"])
        crosses = origin is not None and origin in await self.origins(fingerprint)
        if origin is not None and crosses:
            send = cors.admitting(send, origin)
        if scope["method"] == "POST":
            await self._take(fingerprint, dict(scope["headers"]), receive, send, scope["held"])
        elif scope["method"] == "OPTIONS" and crosses:
            await cors.answer_preflight(send)
        else:
            refusal = RequestError(problems.NOT_ALLOWED, "Submissions are sent by POST.")
            await self.refusals.send(send, refusal)

    async def origins(self, fingerprint: str) -> tuple[str, ...]:
        """Whose pages may send shares to a collection, and where its own page may send them."""
        try:
            collection = await self._collection(fingerprint)
        except UnknownCollectionError:
            return await run_in_threadpool(self._origins_of_plan, fingerprint)
        except BlurfitError:  # the store is away: others will say so
            return ()
        return cors.origins_of(collection.agreement)

    def _origins_of_plan(self, fingerprint: str) -> tuple[str, ...]:
        try:
            return cors.origins_of(self.store.read(plans.plan_of, fingerprint))
        except BlurfitError:
            return ()

    async def _collection(self, fingerprint: str) -> Collection:
        if (known := self.store.known(fingerprint)) is not None:
            return known
        return await run_in_threadpool(self.store.collection, fingerprint)

    async def _take(
        self,
        fingerprint: str,
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
        held: Reserve,
    ) -> None:
        try:
            collection = await self._collection(fingerprint)
            self._refuse_if_crowded(fingerprint, 1)  # before anything of it is read
            self.signing.refuse_another_key(collection.agreement, collection.role)
            limit = min(self.body_bytes, largest_body(collection, headers))
            json, one = _kind(headers) == JSON, collection.layout.size

            def cost(size: int) -> float:
                """Each submission has `one` bytes, unless it is in JSON."""
                return cost_of(size, 0.0 if json else size / one, json=json)

            body = await read_body(headers, receive, limit, held, cost)
            agreement, role = collection.agreement, collection.role
            if (private := unsealing_key(agreement, role, self.share_key)) is not None:
                body = unseal(body, private, fingerprint, role)
            turns = held.allowance.turns
            if json and len(body) > LONG:
                rows = await turns.take(_rows, collection, headers, body)
            else:
                rows = _rows(collection, headers, body)
            arrival = Arrival(rows, _invitations(headers))
            count = arrival.size // one
            held.owe(cost_of(len(body), count, json=json))
            self._refuse_if_crowded(fingerprint, count - 1)
            new = 0  # if every row of a batch came before, there is nothing to write
            if count < _A_BATCH or not await turns.take(
                self.store.read, all_known, collection, arrival
            ):
                new = await self.collector.submit(collection, arrival)
        except (BlurfitError, RequestError) as error:
            await self.refusals.send(send, error)
            return
        self.metrics.accepted(count, new)
        signature = self.signing.receipt(collection, arrival.rows)
        answer = b'{"accepted":%d,"new":%d' % (count, new)
        if signature is not None:
            answer += b',"signature":"%s"' % signature.encode()
        await send_answer(send, 200, JSON, answer + b"}")

    def _refuse_if_crowded(self, fingerprint: str, more: int) -> None:
        if more and not self.crowds.allows(fingerprint, more):
            raise RequestError(
                problems.CROWDED,
                "So many submissions arrive at this collection that others would have to wait. "
                "Wait a few seconds and send the same request again; it will be counted once.",
            )


def largest_body(collection: Collection, headers: dict[bytes, bytes]) -> int:
    """How many bytes an honest body may have: as many rows as may come at once, and no more."""
    one = collection.layout.size
    if _kind(headers) == JSON:  # at most 25 characters for the 8 bytes of a number
        return max(JSON_BYTES, 4 * one)
    most = MOST_SUBMISSIONS + 1  # one too many is told in better words
    if collection.agreement.proofs:
        most = max(1, _PROVED_BYTES // one)
    return OVERHEAD + _BATCH_HEAD_BYTES + most * one


def unsealing_key(agreement: Agreement, role: Role, private: str | None) -> str | None:
    """The private key for shares that are sealed to this database; None if they are not sealed.

    Refuses an agreement that seals them to a key which is not this service's.
    """
    key = agreement.databases[role == "second"].key if agreement.databases else None
    if role == "whole" or key is None:
        return None
    if private is None or public_key(private) != key:
        raise InfeasibleError(
            f"Expected this service to have the private key of {key}, to which the agreement seals "
            "shares: start it with `blurfit serve --share-key-file` and the file of that key, or "
            "agree on the key that it prints."
        )
    return private


def _kind(headers: dict[bytes, bytes]) -> str:
    return media_type(headers.get(b"content-type", b"").decode("latin-1"))


def _rows(collection: Collection, headers: dict[bytes, bytes], body: bytes) -> bytes | memoryview:
    """The messages that a body holds, one after the other."""
    layout = collection.layout
    kind = _kind(headers)
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
