"""Take submissions, one or many, as JSON or as bytes, and answer once they are on disk.

**The short way.** Most requests are these, so they go past the router. The agreement bounds the
length of a body. Long JSON is read in turn, one body at a time.

**Group commit.** A durable commit costs about the same for one submission as for a thousand, so
arrivals wait a moment for each other, and each is answered once its commit has returned. Each
collection has a lane of its own. SQLite takes one writer at a time: one thread serves all lanes in
turn, a group each, so that others wait for no more than one group of a busy collection. On
PostgreSQL a collection whose row is locked keeps one thread, and the others write meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from blurfit import protocol
from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InfeasibleError, StorageError
from blurfit.messages import submissions
from blurfit_server.service import operations
from blurfit_server.service.answers import Metrics, Signatory, send_answer
from blurfit_server.service.limits import LONG, Limiter, Reserve, cost_of, read_body
from blurfit_server.service.operations import BYTES, answer, array, header, reference
from blurfit_server.store.arrivals import Arrival, Outcome
from blurfit_server.store.collections import Collection
from blurfit_server.store.store import Store

_log = logging.getLogger(__name__)

JSON_BYTES = 4 * 2**20  # of a body; numbers take thirty times as much while they are read
_BATCH_HEAD_BYTES = 16
_PROVED_BYTES = 64 * 2**20  # of a batch with proofs, each of 11 to 18 kB
_A_BATCH = 64  # from here on it is worth a look whether all of it is known
_BEFORE, _AFTER = len(protocol.COLLECTIONS) + 1, len(protocol.SUBMISSIONS)


# ---- group commit

LINGER = 0.002  # seconds that the first of a group waits for others
WRITERS = 4  # threads, where a database takes several writers
GROUP_BYTES = 2**24  # a group is closed when it holds so much
TIDY_BYTES = 2**23  # after so much has been written, the store is tidied
TIDY_SECONDS = 5.0  # and so long after anything was written: a log that is lost holds no more
WAITING_BYTES = 2**28  # beyond this much in memory, newcomers are sent away for a while
SECONDS_TO_STORE = 20.0  # after which somebody is told that it is not known


Waiting = tuple[Arrival, "asyncio.Future[int]"]  # and who waits for its outcome


@dataclass
class Collector:
    """Takes arrivals from an event loop and commits them in groups."""

    store: Store
    linger: float = LINGER
    # Is told of a wave released at quorum whose new rows are on disk, before they are acknowledged.
    stored: Callable[[Collection], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        writers = WRITERS if self.store.takes_several_writers else 1
        self._writer = ThreadPoolExecutor(writers, thread_name_prefix="blurfit-writer")
        self._tidier = ThreadPoolExecutor(1, thread_name_prefix="blurfit-tidier")
        self._tidying: asyncio.Future[None] | None = None
        self._tidy_later: asyncio.TimerHandle | None = None
        self._since_tidied = 0
        self._queues: dict[Collection, list[Waiting]] = {}
        self._lanes: dict[Collection, asyncio.Task[None]] = {}
        self._bytes = 0
        self._closing = False

    async def submit(self, collection: Collection, arrival: Arrival) -> int:
        """Return how many of its rows were new, when they are on disk; else raise why not."""
        if self._bytes > WAITING_BYTES or self._closing:
            raise StorageError("Too much is waiting to be stored.")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(collection, []).append((arrival, answer))
        self._bytes += arrival.size
        if collection not in self._lanes:
            self._lanes[collection] = asyncio.create_task(self._run(collection))
        try:
            return await asyncio.wait_for(answer, SECONDS_TO_STORE)
        except TimeoutError:  # a database that hangs: nobody waits with it
            raise protocol.RequestError(
                protocol.UNAVAILABLE,
                "It is not known yet whether this was stored. Send the same request again later; "
                "it will be counted once.",
            ) from None

    async def close(self) -> None:
        """Commit what is waiting, and stop."""
        self._closing = True
        await asyncio.gather(*self._lanes.values())
        if self._tidy_later is not None:
            self._tidy_later.cancel()
        self._writer.shutdown()
        self._tidier.shutdown()

    async def _run(self, collection: Collection) -> None:
        """Commit what came for a collection, until nobody came during the last commit."""
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(self.linger)
            while queue := self._queues.pop(collection, None):
                for group in _groups(queue):
                    outcomes = await loop.run_in_executor(
                        self._writer, self._commit, collection, group
                    )
                    self.tidy(sum(arrival.size for arrival, _ in group))
                    stored = None if collection.course.by_hand else self.stored
                    if stored and any(isinstance(one, int) and one for one in outcomes):
                        await stored(collection)
                    for (arrival, answer), outcome in zip(group, outcomes, strict=True):
                        self._bytes -= arrival.size
                        if answer.done():  # whoever asked has gone away
                            continue
                        if isinstance(outcome, BlurfitError):
                            answer.set_exception(outcome)
                        else:
                            answer.set_result(outcome)
        finally:
            del self._lanes[collection]

    def tidy(self, written: int = 0) -> None:
        """Let the store tidy up beside the writer, once there is enough to tidy, and in time."""
        self._since_tidied += written
        if self._since_tidied >= TIDY_BYTES:
            self._tidy_now()
        elif self._tidy_later is None and not self._closing:
            loop = asyncio.get_running_loop()
            self._tidy_later = loop.call_later(TIDY_SECONDS, self._tidy_now)

    def _tidy_now(self) -> None:
        if self._tidy_later is not None:
            self._tidy_later.cancel()
            self._tidy_later = None
        if self._closing or (self._tidying is not None and not self._tidying.done()):
            return
        self._since_tidied = 0
        loop = asyncio.get_running_loop()
        self._tidying = loop.run_in_executor(self._tidier, self._tidy_quietly)

    def _tidy_quietly(self) -> None:
        try:
            self.store.tidy()
        except Exception:  # nothing depends on it, and the writer does it in the end
            _log.exception("The store could not be tidied.")

    def _commit(self, collection: Collection, group: list[Waiting]) -> list[Outcome]:
        try:
            return self.store.receive(collection, [arrival for arrival, _ in group])
        except BlurfitError as error:
            _log.error("A group of %d arrivals was not stored: %s", len(group), error)
            return [error] * len(group)
        except Exception as error:
            # Whatever it is, someone waits for an answer, and the others are not to blame for it.
            if len(group) > 1:
                return [outcome for one in group for outcome in self._commit(collection, [one])]
            _log.exception("An arrival was not stored.")
            return [StorageError(type(error).__name__)]


def _groups(queue: list[Waiting]) -> list[list[Waiting]]:
    """Return the queue in parts of bounded size, in order."""
    groups: list[list[Waiting]] = [[]]
    size = 0
    for waiting in queue:
        more = waiting[0].size
        if groups[-1] and size + more > GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(waiting)
        size += more
    return groups


# ---- submissions


class SubmissionDocument(Struct, forbid_unknown_fields=True):
    """One blurred record: `blurfit.messages.submissions`."""

    format: Literal["blurfit-submission"]
    version: Literal[1]
    identifier: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    numbers: Annotated[list[float], Meta(min_length=1)]


def is_for_submissions(path: str) -> bool:
    """Tell whether a request goes where submissions are sent."""
    return path.endswith(protocol.SUBMISSIONS) and path.startswith(f"{protocol.COLLECTIONS}/")


@dataclass(frozen=True, eq=False)
class SubmissionPath:
    """What is behind …/submissions."""

    store: Store
    collector: Collector
    metrics: Metrics
    collection_limiter: Limiter
    body_bytes: int
    signing: Signatory
    share_key: str | None = field(default=None, repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or raise why not."""
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"allow": "POST"})
        fingerprint, headers = scope["path"][_BEFORE:-_AFTER], dict(scope["headers"])
        held: Reserve = scope["held"]
        if (collection := self.store.known(fingerprint)) is None:
            collection = await run_in_threadpool(self.store.collection, fingerprint)
        agreement, role = collection.agreement, collection.role
        self._refuse_if_crowded(fingerprint, 1)  # before anything of it is read
        self.signing.refuse_another_key(agreement, role)
        limit = min(self.body_bytes, largest_body(collection, headers))
        json, one = _kind(headers) == protocol.JSON, collection.layout.size

        def cost(size: int) -> float:
            """Each submission has `one` bytes, unless it is in JSON."""
            return cost_of(size, 0.0 if json else size / one, json=json)

        body = await read_body(headers, receive, limit, held, cost)
        if (private := unsealing_key(agreement, role, self.share_key)) is not None:
            body = submissions.unseal(body, private, fingerprint, role)
        turns = held.allowance.turns
        if json and len(body) > LONG:
            rows = await turns.take(_rows, collection, headers, body)
        else:
            rows = _rows(collection, headers, body)
        given = headers.get(protocol.INVITATION.encode(), b"").decode("latin-1")
        invitations = [protocol.hashed(one.strip()) for one in given.split(",")] if given else []
        arrival = Arrival(rows, invitations)
        count = arrival.size // one
        held.owe(cost_of(len(body), count, json=json))
        self._refuse_if_crowded(fingerprint, count - 1)
        new = 0  # if every row of a batch came before, there is nothing to write
        if count < _A_BATCH or not await turns.take(self.store.is_known, collection, arrival):
            new = await self.collector.submit(collection, arrival)
        self.metrics.accepted(count, new)
        signature = self.signing.receipt(collection, arrival.rows)
        answer = b'{"accepted":%d,"new":%d' % (count, new)
        if signature is not None:
            answer += b',"signature":"%s"' % signature.encode()
        await send_answer(send, 200, protocol.JSON, answer + b"}")

    async def origins(self, fingerprint: str) -> tuple[str, ...]:
        """Return whose pages may send shares, and where the page of a collection may send them."""
        return await run_in_threadpool(origins_in, self.store, fingerprint)

    def _refuse_if_crowded(self, fingerprint: str, more: int) -> None:
        if more and not self.collection_limiter.allows(fingerprint, more):
            raise protocol.RequestError(
                protocol.CROWDED,
                "So many submissions arrive at this collection that others would have to wait. "
                "Wait a few seconds and send the same request again; it will be counted once.",
            )


def operation() -> operations.Operation:
    """Describe what is behind …/submissions."""
    one_or_many = {"oneOf": [reference(SubmissionDocument), array(SubmissionDocument)]}
    each = "An invitation for each submission, separated by commas."
    return operations.operation(
        *("post", f"{protocol.ONE_COLLECTION}{protocol.SUBMISSIONS}"),
        f"Send one submission or up to {protocol.MOST_SUBMISSIONS:,}; answered once they are "
        "on disk",
        answer(protocol.Acknowledgement, "They are on disk, each counted once."),
        *(protocol.NOT_INVITED, protocol.OTHER_GROUP, protocol.CLOSED),
        *(protocol.WAVE_CLOSED, protocol.DATE_CLOSED, protocol.PAUSED),
        *(protocol.CROWDED, protocol.CONFLICT, protocol.INFEASIBLE),
        body={protocol.JSON: one_or_many, protocol.BINARY: BYTES},
        parameters=[header(protocol.INVITATION, each)],
    )


def largest_body(collection: Collection, headers: dict[bytes, bytes]) -> int:
    """Return how many bytes an honest body may have: as many rows as may come at once."""
    one = collection.layout.size
    if _kind(headers) == protocol.JSON:  # at most 25 characters for the 8 bytes of a number
        return max(JSON_BYTES, 4 * one)
    most = protocol.MOST_SUBMISSIONS + 1  # one too many is told in better words
    if collection.agreement.proofs:
        most = max(1, _PROVED_BYTES // one)
    return submissions.OVERHEAD + _BATCH_HEAD_BYTES + most * one


def unsealing_key(agreement: Agreement, role: submissions.Role, private: str | None) -> str | None:
    """Return the private key of shares that are sealed to this database; None if they are not.

    Refuse an agreement that seals them to a key which is not this service's.
    """
    key = agreement.databases[role == "second"].key if agreement.databases else None
    if role == "whole" or key is None:
        return None
    if private is None or submissions.public_key(private) != key:
        raise InfeasibleError(
            "Expected this service to have the private key of {key}, to which the agreement seals "
            "shares: start it with `blurfit serve --share-key-file` and the file of that key, or "
            "agree on the key that it prints.",
            key=key,
        )
    return private


def _kind(headers: dict[bytes, bytes]) -> str:
    return protocol.media_type(headers.get(b"content-type", b"").decode("latin-1"))


def _rows(collection: Collection, headers: dict[bytes, bytes], body: bytes) -> bytes | memoryview:
    """Return the messages that a body holds, one after the other."""
    layout = collection.layout
    kind = _kind(headers)
    if kind == protocol.BINARY:
        if layout.fits(body):  # by far the most frequent
            return body
        rows = layout.rows(body)
    elif kind == protocol.JSON and not isinstance(layout, submissions.ShareLayout):
        if body.lstrip()[:1] == b"[":
            some = submissions.Submissions.from_json(body)
        else:
            some = submissions.Submissions.gather([submissions.Submission.from_json(body)])
        rows = some.rows(layout)
    else:
        raise protocol.RequestError(
            protocol.WRONG_TYPE,
            "Expected content-type {kind!r} to be {binary} or {json}.",
            kind=kind,
            binary=protocol.BINARY,
            json=protocol.JSON,
        )
    if len(rows) > protocol.MOST_SUBMISSIONS:
        raise protocol.RequestError(
            protocol.TOO_LARGE,
            "Expected at most {most_submissions} submissions in a request, and got "
            "{rows_count}; send them in parts.",
            most_submissions=protocol.MOST_SUBMISSIONS,
            rows_count=len(rows),
        )
    return rows.data


def origins_in(store: Store, fingerprint: str) -> tuple[str, ...]:
    """Return where the two databases of a collection are, if it has two."""
    try:
        return tuple(one.url for one in store.course(fingerprint).document.databases)
    except BlurfitError:  # unknown, or the store is away: others will say so
        return ()
