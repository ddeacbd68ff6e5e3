"""Two databases over HTTP: what the first asks, what the second answers, and the driver of tasks.

What each may do is in `blurfit_server.store.joint`. The wire may break at any step: whatever gets
no answer is asked again. It has a token for this course (`blurfit.protocol.for_agreement`),
compared in constant time, and TLS where it leaves the machine. The other database is a stranger:
its answers are bounded in bytes, pages and seconds.

**Proofs** are verified by the draft's ping-pong topology (section 5.7.1), `BATCH` contributors at a
time, before the set is fixed. A verdict is written once, so a batch may be asked again. Whoever
sends another half afterwards learns whether it fits, which it does by chance once in 2⁶⁴. The key
follows from the secret that both services share, which no contributor knows (section 9.1); it is
written down before the first proof is looked at.

**Jobs** does what the store's outbox says (`blurfit_server.store.database`). Every service on the
store may drive, a thread for each course that has something to do; what fails is tried again, soon
and then less often. Where a course has one database, those whose arrival filled a wave are answered
when the next one is open, so nobody blurs for a wave that is full.
"""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta, Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit import protocol
from blurfit.data import BoolArray, ByteArray, WordArray, read_json
from blurfit.errors import (
    BlurfitError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    ServiceError,
    UnknownCollectionError,
)
from blurfit.proofs import field as field64
from blurfit.proofs.prio3 import HELPER, LEADER, SEED_WORDS, Halves, Prepared
from blurfit.protocol import OCTETS, ONE_COLLECTION, PEER, Exchange, RequestError, path_of
from blurfit.wording import Message, Series
from blurfit_server.service import limits
from blurfit_server.service.answers import EXPECTED, Signatory, Signatures
from blurfit_server.service.endpoints import Count, Fingerprint, fingerprint_in
from blurfit_server.service.operations import BYTES, PRINT, answer, content, get, post, query
from blurfit_server.store import blocks as sets
from blurfit_server.store.collections import Collection, Course, Status
from blurfit_server.store.database import LONGEST_PAUSES, Task, next_tasks
from blurfit_server.store.joint import News, judged
from blurfit_server.store.store import Store

_NEWS = Message("what the first database tells")
SECONDS_TO_ANSWER = 5.0  # for which the second database is tried, each time
SECONDS_TO_PUBLISH = 15.0  # where an administrator waits for the answer, and may ask again
IDENTIFIERS_AT_ONCE = 2**18
MOST_PAGES = sets.MOST_SHARES // IDENTIFIERS_AT_ONCE + 1  # the last is not full
BATCH = 512  # proofs
_BYTES_FOR_A_NUMBER = 32  # of a sum, in JSON
_A_GROUP = 2**13  # bits, in bytes, of those who came together with the last one that fits
_PROOFS_AT_ONCE = 64  # that are computed together, so that they stay in the cache
_SECONDS_FOR_PROOFS = 20.0  # after which whoever waits is told how far it is
_PEER = f"{ONE_COLLECTION}{PEER}"
_REFUSED = (protocol.INFEASIBLE, protocol.CLOSED, protocol.CONFLICT, protocol.BELOW_QUORUM)
# Everything here needs the token that both databases have, and an agreement between two of them.
_asked = partial(post, security="peer")


class Sums(Struct, forbid_unknown_fields=True):
    """Σ mask mod 2⁶⁴ over a set; whole numbers as texts, since JSON's are too short."""

    digest: Fingerprint
    count: Count
    sums: list[Annotated[str, Meta(pattern="^[0-9]{1,20}$")]]


# ---- what the first asks


@contextmanager
def _blaming_the_other() -> Iterator[None]:
    """Raise what is wrong with an answer as the other database's fault, not the administrator's."""
    try:
        yield
    except (InvalidValueError, NotCertifiedError) as error:
        if type(error) not in (InvalidValueError, NotCertifiedError):
            raise  # what is known by a kind of its own
        raise ServiceError("Its answer is not what both agreed on: {error}", error=error) from error


class RemotePeer:
    """A `store.joint.Peer` over HTTP, until a `with` ends; options are `Exchange`'s."""

    def __init__(
        self, store: Store, course: Course, secret: str, signing: Signatory, **options: Any
    ) -> None:
        sums = 2**12 + _BYTES_FOR_A_NUMBER * course.document.first().width
        bound = {"most_bytes": max(2**20, 16 * IDENTIFIERS_AT_ONCE, sums)}
        token = protocol.for_agreement(secret, course.fingerprint)
        self._exchange = Exchange(course.document.databases[1].url, token=token, **bound | options)
        self._store, self._secret, self._signing = store, secret, signing
        self._held: dict[str, ByteArray] = {}  # whose shares it has, by wave

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._exchange.close()

    @_blaming_the_other()
    def identifiers(self, wave: Collection) -> ByteArray:
        """Return everyone whose share it has, in order."""
        parts, after = [], b""
        for _ in range(MOST_PAGES):
            path = f"{_path(wave.fingerprint)}/identifiers?after={after.hex()}"
            parts.append(sets.as_identifiers(self._exchange.get(path)))
            if len(parts[-1]) < IDENTIFIERS_AT_ONCE:
                found = self._held[wave.fingerprint] = np.concatenate(parts)
                return found
            before, after = after, parts[-1][-1].tobytes()
            if after <= before:
                raise ServiceError(
                    "Expected identifiers in order from {exchange_url}.",
                    exchange_url=self._exchange.url,
                )
        raise ServiceError(
            "Expected at most {most_pages:,} identifiers from "
            "{exchange_url}, and there are more: somebody has sent it shares that are not "
            "here.",
            most_pages=MOST_PAGES * IDENTIFIERS_AT_ONCE,
            exchange_url=self._exchange.url,
        )

    @_blaming_the_other()
    def close(self, wave: Collection) -> None:
        """Let it take no more shares of a wave."""
        self._exchange.post(f"{_path(wave.fingerprint)}/close")

    def verify(self, wave: Collection, theirs: ByteArray) -> None:
        """Find a verdict on everyone whose shares both have."""
        key = protocol.verification_key(self._secret, wave.fingerprint)
        verify(self._store, wave, partial(self._answers, wave), theirs, key)

    @_blaming_the_other()
    def _answers(self, wave: Collection, names: ByteArray, words: WordArray) -> WordArray:
        """Return its answers to the first's half of some verifiers: seeds, or zeros."""
        rows = np.hstack([names, words.astype("<u8").view(np.uint8)])
        answer = self._exchange.post(
            f"{_path(wave.fingerprint)}/proofs", rows.tobytes(), content_type=OCTETS
        )
        if len(answer) != 8 * SEED_WORDS * len(names):
            raise ServiceError(
                "Expected {names_count} answers to proofs from {exchange_url}, and got "
                "{answer_count} bytes.",
                names_count=len(names),
                exchange_url=self._exchange.url,
                answer_count=len(answer),
            )
        return np.frombuffer(answer, dtype="<u8").reshape(-1, SEED_WORDS).astype(np.uint64)

    @_blaming_the_other()
    def masks(self, wave: Collection, digest: bytes, count: int, left_out: ByteArray) -> WordArray:
        """Return Σ mask over the set that is left without these, which it commits to."""
        held = self._held.get(wave.fingerprint)
        answer = self._exchange.post(
            f"{_path(wave.fingerprint)}/sum?digest={digest.hex()}&count={count}",
            sets.members(self.identifiers(wave) if held is None else held, left_out),
            content_type=OCTETS,
        )
        try:
            found = read_json(answer, Sums)
            words = np.array([int(one) for one in found.sums], dtype=np.uint64)
        except (OverflowError, ValueError) as error:
            raise ServiceError(
                "Expected sums from {exchange_url}: {error}.",
                exchange_url=self._exchange.url,
                error=error,
            ) from error
        if len(words) != wave.agreement.width:
            raise ServiceError(
                "Expected {width} sums from {exchange_url}, and got {word_count}.",
                width=wave.agreement.width,
                exchange_url=self._exchange.url,
                word_count=len(words),
            )
        if (found.digest, found.count) != (digest.hex(), count):
            raise ServiceError(
                "Expected sums over the set {digest} of {count}, and got some over "
                "{digest_2} of {found_count}.",
                digest=digest.hex(),
                count=count,
                digest_2=found.digest,
                found_count=found.count,
            )
        return words

    def tell(self, course: Course, news: News) -> None:
        """Let it know what was released, or how the course stands here."""
        self._exchange.post(f"{_path(course.fingerprint)}/news", msgspec.json.encode(news))

    @_blaming_the_other()
    def sign(self, wave: Collection) -> None:
        """Hand it the first's signatures, and get its own; raise if one is still missing."""
        kept = msgspec.json.encode(self._signing.all_of(wave))
        answer = self._exchange.post(f"{_path(wave.fingerprint)}/signatures", kept)
        self._signing.take(wave, limits.document_from(answer, Signatures, EXPECTED))
        self._signing.require_all(wave)


def _path(fingerprint: str) -> str:
    return path_of(fingerprint) + PEER


# ---- what the second answers


@dataclass(frozen=True, eq=False)
class Peering:
    """The answers of a second database; `secret` is None where nobody may ask."""

    store: Store
    secret: str | None = field(repr=False)
    signing: Signatory
    # What was summed, by set: whoever gave up waiting, and asks again, finds it done.
    _summed: dict[tuple[str, bytes], Sums] = field(default_factory=dict, repr=False)
    _summing: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @get(
        f"{_PEER}/identifiers",
        content("16 bytes each, 2¹⁸ of them at most.", OCTETS),
        *(protocol.INVALID, protocol.INFEASIBLE),
        parameters=[query("after", {"pattern": "^([0-9a-f]{32})?$"})],
        security="peer",
    )
    def identifiers(self, request: Request) -> Response:
        """The identifiers of the shares here, in order, when the first may know them."""
        self._admit(request)
        after = _hexadecimal(request, "after", (0, 32))
        wave = self.store.collection(fingerprint_in(request))
        found = self.store.show_identifiers(wave, after, IDENTIFIERS_AT_ONCE)
        return Response(found, media_type=OCTETS)

    @_asked(f"{_PEER}/close", answer(Status, "No more shares are taken for it."), *_REFUSED)
    def close(self, request: Request) -> Status:
        """Close a wave that has its quorum at both databases."""
        self._admit(request)
        wave = self.store.collection(fingerprint_in(request))
        self.store.close_for_first(wave)
        return self.store.status(wave.fingerprint)

    @_asked(f"{_PEER}/proofs", content("32 bytes each.", OCTETS), *_REFUSED, body={OCTETS: BYTES})
    async def proofs(self, request: Request) -> Response:
        """Verify what some contributors have proved: answers to the first database's half."""
        await run_in_threadpool(self._admit, request)
        wave = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        if not wave.agreement.proofs:
            raise InvalidValueError("Expected an agreement with proofs: this one has none.")
        width = wave.agreement.proving.prio3.verifier_words
        data = await limits.body_of(request, OCTETS, BATCH * (16 + 8 * width))
        if len(data) % (16 + 8 * width):
            raise InvalidValueError(
                "Expected identifiers of 16 bytes with {width} words each, and got {data_count} "
                "bytes: it was cut short.",
                width=width,
                data_count=len(data),
            )
        table = np.frombuffer(data, dtype=np.uint8).reshape(-1, 16 + 8 * width)
        names = np.ascontiguousarray(table[:, :16])
        words = np.ascontiguousarray(table[:, 16:]).view("<u8").astype(np.uint64)
        key = protocol.verification_key(self.secret or "", wave.fingerprint)
        answers = await run_in_threadpool(judge, self.store, wave, names, words, key)
        return Response(answers.astype("<u8").tobytes(), media_type=OCTETS)

    @_asked(
        f"{_PEER}/sum",
        answer(Sums, "The sums mod 2⁶⁴; asked again, the same."),
        *_REFUSED,
        body={OCTETS: BYTES},
        parameters=[query("digest", PRINT), query("count", {"type": "integer", "minimum": 0})],
    )
    async def sum(self, request: Request) -> Sums:
        """Commit to one set of contributors, for ever, and tell the sum of their masks."""
        await run_in_threadpool(self._admit, request)
        digest = _hexadecimal(request, "digest", (64,))
        count = request.query_params.get("count", "")
        if not (count.isascii() and count.isdigit() and len(count) <= 18):
            raise InvalidValueError(
                "Expected count={count!r} to be how many are in the set.", count=count
            )
        bits = await limits.body_of(request, OCTETS, sets.MOST_SHARES // 8 + _A_GROUP)

        def commit_and_sum() -> Sums:
            wave = self.store.collection(fingerprint_in(request))
            self.store.require_consent(wave)  # also to what was summed before
            with self._summing:
                if (found := self._summed.get((wave.fingerprint, digest))) is None:
                    chosen, many, words = self.store.sum_of_masks(wave, digest, int(count), bits)
                    found = Sums(chosen.hex(), many, [str(int(word)) for word in words])
                    self._summed[wave.fingerprint, digest] = found
            return found

        return await limits.run_in_daemon_thread(commit_and_sum)

    @_asked(f"{_PEER}/news", answer(Status, "How far it is here."), *_REFUSED, body=News)
    async def news(self, request: Request) -> Status:
        """Publish here too what the first has released; be held, go on, or end as it does."""
        await run_in_threadpool(self._admit, request)
        # As long as all that comes to one collection may be.
        most = limits.held_by(request).allowance.total // 4 * 3
        found = await limits.document_in(request, News, _NEWS, most)
        take = partial(self.store.take_news, fingerprint_in(request), found)
        return await limits.run_in_daemon_thread(take)

    @_asked(
        f"{_PEER}/signatures",
        answer(Signatures, "Those of both databases."),
        *_REFUSED,
        body=Signatures,
    )
    async def signatures(self, request: Request) -> Signatures:
        """Keep the other database's signatures of the result, and tell all that there are."""
        await run_in_threadpool(self._admit, request)
        given = await limits.document_in(request, Signatures, EXPECTED)

        def take() -> Signatures:
            wave = self.store.collection(fingerprint_in(request))
            wave.require_role("second")
            self.signing.take(wave, given)
            return self.signing.all_of(wave)

        return await run_in_threadpool(take)

    def _admit(self, request: Request) -> None:
        """Refuse a request that does not come from the other database of this course."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        course = fingerprint_in(request)
        with suppress(UnknownCollectionError):
            course = self.store.course(course).fingerprint
        # Something is compared in any case, so that one cannot tell by time whether there is one.
        expected = protocol.for_agreement(self.secret or protocol.new_token(), course)
        right = protocol.matches(token, protocol.hashed(expected))
        if scheme.lower() != "bearer" or self.secret is None or not right:
            raise RequestError(
                protocol.UNAUTHORISED,
                "This is for the agreement's other database. Start both services with "
                "`blurfit serve --peer-token-file`, and the same token.",
            )
        limits.held_by(request).is_peer = True


def _hexadecimal(request: Request, name: str, lengths: tuple[int, ...]) -> bytes:
    text = request.query_params.get(name, "")
    if len(text) in lengths and re.fullmatch("[0-9a-fA-F]*", text):
        return bytes.fromhex(text)
    raise InvalidValueError(
        "Expected {name}={text!r} to be {lengths} hexadecimal digits.",
        name=name,
        text=text,
        lengths=Series(lengths, " or "),
    )


# ---- proofs, at both


def verify(
    store: Store,
    wave: Collection,
    ask: Callable[[ByteArray, WordArray], WordArray],
    theirs: ByteArray,
    key: bytes,
    seconds: float = _SECONDS_FOR_PROOFS,
) -> None:
    """Find a verdict on everyone whose shares both have; refuse for now if that takes longer.

    `ask` tells the second's answers to the first's half of some verifiers.
    """
    store.fix_verification_key(wave, key)
    waiting = sets.in_order(sets.minus(theirs, sets.in_order(store.read(judged, wave))))
    ends, left = time.monotonic() + seconds, len(waiting)
    for block in store.read(sets.keys, wave):
        found = store.read(sets.rows_of, wave, block)
        if found is None:  # put together with others meanwhile: look at what is there now
            verify(store, wave, ask, theirs, key, ends - time.monotonic())
            return
        names, words = found
        wanted = sets.among(names, waiting)
        names, words = names[wanted], words[wanted]
        for start in range(0, len(names), BATCH):
            if time.monotonic() > ends:
                raise RequestError(
                    protocol.BUSY,
                    "Proofs are being verified, and {left:,} are still to be. Ask again: nothing "
                    "is done twice.",
                    left=left,
                )
            some = slice(start, start + BATCH)
            prepared, canonical = _prepared(wave, names[some], words[some], key)
            answers = ask(names[some], prepared.words())
            good = canonical & wave.agreement.proving.prio3.confirm(prepared, answers)
            store.record_verdicts(wave, names[some], good)
            left -= len(good)


def judge(
    store: Store, wave: Collection, names: ByteArray, words: WordArray, key: bytes
) -> WordArray:
    """Return the second database's answers to the first's half of some verifiers."""
    store.require_consent(wave)
    store.fix_verification_key(wave, key)
    prio3 = wave.agreement.proving.prio3
    here, shares = store.read(sets.rows_among, wave, names)
    places = np.flatnonzero(sets.among(names, here))
    answers = np.zeros((len(names), SEED_WORDS), dtype=np.uint64)
    if not len(places):
        return answers
    order = np.searchsorted(sets.sortable(here), sets.sortable(names[places]))
    prepared, canonical = _prepared(wave, names[places], shares[order], key)
    valid, seeds = prio3.decide(prepared, words[places])
    valid &= canonical
    valid = store.record_verdicts(wave, names[places], valid)
    answers[places[valid]] = seeds[valid]
    return answers


def _prepared(
    wave: Collection, names: ByteArray, words: WordArray, key: bytes
) -> tuple[Prepared, BoolArray]:
    """Return one's own half of some verifiers, and which shares are made of field elements."""
    prio3 = wave.agreement.proving.prio3
    parts, good = [], []
    for start in range(0, len(names), _PROOFS_AT_ONCE):
        some = slice(start, start + _PROOFS_AT_ONCE)
        rows = words[some].astype(np.uint64, copy=False)
        who = LEADER if wave.role == "first" else HELPER
        halves = prio3.leader_halves(rows) if who == LEADER else prio3.helper_halves(rows)
        canonical = field64.is_canonical(halves.inputs) & field64.is_canonical(halves.proofs)
        modulus = np.uint64(field64.MODULUS)
        halves = Halves(
            halves.inputs % modulus, halves.proofs % modulus, halves.blinds, halves.parts
        )
        parts.append(prio3.prepare(who, halves, names[some], key))
        good.append(canonical)
    fields = zip(*(vars(part).values() for part in parts), strict=True)
    return Prepared(*map(np.concatenate, fields)), np.concatenate(good)


# ---- jobs

_log = logging.getLogger(__name__)

LOOK_EVERY = 5.0  # seconds
SECONDS_TO_STOP = 3.0
SECONDS_TO_ADVANCE = 10.0  # that those who filled a wave wait for the next one
# Seconds before something is tried again; twice as many each time, up to LONGEST_PAUSES.
FIRST_PAUSE = 1.0


@dataclass(eq=False)
class Jobs:
    """Drives the courses of a store; `secret` is what this service and other databases share."""

    store: Store
    signing: Signatory
    secret: str | None = field(default=None, repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    look_every: float = LOOK_EVERY
    wrote: Callable[[], None] = lambda: None  # is told when something may have been written

    def __post_init__(self) -> None:
        self._running: dict[tuple[str, bool], asyncio.Task[None]] = {}
        self._driver: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._closing = False

    def start(self) -> None:
        """Look around now, and from now on."""
        self._loop = asyncio.get_running_loop()
        self._driver = self._loop.create_task(self._drive())

    async def close(self) -> None:
        """Stop looking; what is under way is waited for, unless the store hangs."""
        self._closing = True
        self._wake.set()
        if self._driver is not None:
            working = [self._driver, *self._running.values()]
            await asyncio.wait(working, timeout=SECONDS_TO_STOP)
            self._driver.cancel()

    def wake(self) -> None:
        """Look around as soon as possible, from whichever thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    async def stored(self, collection: Collection) -> None:
        """Take a course forward if what was just stored has filled its wave.

        Whatever happens here, it is stored: so nothing is raised.
        """
        course = collection.course
        if self._closing:
            return
        if course.role != "whole":  # a step needs the other database, for which nobody waits
            self.wake()
            return
        try:
            for task in await limits.run_in_daemon_thread(self.store.due):
                if task.course == course.fingerprint and task.what == "advance":
                    await asyncio.wait([self._begin(task)], timeout=SECONDS_TO_ADVANCE)
        except Exception:  # the store is away: the next look will tell
            _log.exception("It was not found out whether %s can go on.", course.fingerprint)

    def publish(self, course: Course) -> None:
        """Publish a course now, and do what follows from that; may take as long as the wire."""
        with self._peer(course, SECONDS_TO_PUBLISH) as peer:
            try:
                self.store.publish_text(course.fingerprint, peer)
            except ServiceError as error:  # whoever asked may ask again: nothing is done twice
                remedy = "Ask for the same again when it is back; nothing is done twice."
                if error.status == 401:
                    remedy = "Start both services with the same --peer-token-file."
                name = course.document.databases[1].name
                raise ServiceError(
                    "{name} did not help: {error} {remedy}",
                    error.status,
                    name=name,
                    error=error,
                    remedy=remedy,
                ) from error
            for task in self.store.due():  # to sign, above all
                if task.course == course.fingerprint:
                    self._work(task, peer)
        self.wake()

    async def _drive(self) -> None:
        while not self._closing:
            self._wake.clear()  # before looking: who wakes it meanwhile is not missed
            wait = self.look_every
            try:
                tasks, wait = await limits.run_in_daemon_thread(self._due)
                for task in () if self._closing else tasks:
                    self._begin(task)
            except Exception:
                _log.exception("What is to be done could not be read; this will be tried again.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    def _due(self) -> tuple[list[Task], float]:
        """Return what can be done now, and how long to wait for more."""
        tasks = self.store.read(next_tasks)
        # Where both share no secret, somebody else leads, or nobody.
        alone = self.secret is None
        able = [
            (task, seconds)
            for task, seconds in tasks
            if not (alone and self.store.course(task.course).role == "first")
        ]
        soonest = min((seconds for _, seconds in able), default=self.look_every)
        due = [task for task, seconds in able if seconds <= 0]
        return due, min(self.look_every, max(soonest, 0.1))

    def _begin(self, task: Task) -> asyncio.Task[None]:
        """Do something in a thread of its own, unless somebody is at it."""
        lane = task.course, task.what == "sign"
        running = self._running.get(lane)
        if running is None or running.done():
            running = self._running[lane] = asyncio.create_task(self._do(task))
        return running

    async def _do(self, task: Task) -> None:
        def work() -> None:
            course = self.store.course(task.course)
            try:
                with self._peer(course, SECONDS_TO_ANSWER) as peer:
                    self._work(task, peer)
            except BlurfitError as error:
                self._put_off(task, error)
            if task.what != "sign":
                self.wake()  # something else may follow from it

        try:
            await limits.run_in_daemon_thread(work)
        except Exception:
            _log.exception("%s failed; it will be tried again.", _named(task))
        self.wrote()

    def _work(self, task: Task, peer: RemotePeer | None) -> None:
        try:
            self.store.work(task, peer)
        except Exception as error:
            if not isinstance(error, BlurfitError | RequestError):
                _log.exception("%s failed for a reason that is not its own.", _named(task))
            self._put_off(task, error)
        else:
            _log.info("%s is done.", _named(task))

    def _put_off(self, task: Task, error: Exception) -> None:
        if task.what == "tell" and isinstance(error, ConflictError):
            _log.warning("%s is refused for good: %s", _named(task), error)
            return
        pause = min(FIRST_PAUSE * 2.0**task.attempts, LONGEST_PAUSES[task.what])
        self.store.put_off(task, pause, error if isinstance(error, BlurfitError) else None)
        _log.warning("%s is tried again in %g s: %s", _named(task), pause, error)

    @contextmanager
    def _peer(self, course: Course, patience: float) -> Iterator[RemotePeer | None]:
        """Reach the second database, where this is the first of two."""
        if course.role != "first":
            yield None
            return
        if self.secret is None:
            raise InfeasibleError(
                "Expected a token that both databases share: start both services with "
                "`blurfit serve --peer-token-file peer.txt`, and the same token in the file."
            )
        options = {"patience": patience} | self.options
        with RemotePeer(self.store, course, self.secret, self.signing, **options) as peer:
            yield peer


def _named(task: Task) -> str:
    return f"{task.what} {task.course}" + (f", wave {task.wave}" if task.wave else "")
