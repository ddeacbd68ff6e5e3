"""How much anyone may take: requests of an address, memory for bodies, and time for long work.

**Rates.** A bucket fills at a steady rate and holds a burst. What is counted is work and not
requests: a batch costs as much as the requests that it stands for (`ROWS_OF_A_REQUEST`), and so do
a long body and a long answer (`BYTES_OF_A_REQUEST`, `JSON_OF_A_REQUEST`). All that is known of a
bucket is when it will be full again:

    left(now) = burst − rate · (full − now)

and what costs c moves it to max(now, full) + c/rate. These times stand in two rows of a table, at
places given by a keyed hash of the address. Somebody whose places are taken in both rows by others
who ask for much would have to wait with them; two rows of 2¹⁹ places make that rare, and since the
hash has a key nobody can bring it about. So no address is kept anywhere, nothing has to be
forgotten, and however many there are, each takes the same time. The table is in memory that all
processes forked from this one share: the workers of a service (`blurfit.service.server`) keep to
one limit. Two that look at the same moment may let one request too many pass.

**Addresses.** Whoever has an IPv6 address has at least the 2⁶⁴ of its network, so these count as
one; an IPv4 address that is written as an IPv6 one is itself.

**Bodies** are read within bounds of size, time and kind. Whatever the path, a body is held in one
`Allowance` of memory from its first byte to the answer, and paid for by the size that is stated,
before any of it is read. Long JSON is read in turn.

**Work that takes long**, or waits for somebody else, does not keep a service from stopping. A
thread of a pool is joined when the process ends, so one that hangs on another machine's answer
would keep it from ending. A daemon thread is not; so it may do only what can be broken off
anywhere, as publishing together can (`blurfit.store.joint`).
"""

import asyncio
import hashlib
import mmap
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from ipaddress import IPv6Address, ip_address, ip_network
from itertools import islice
from typing import Any, Generic, ParamSpec, TypeVar

from starlette.requests import Request
from starlette.types import Receive

from blurfit.data import read_json
from blurfit.errors import InvalidValueError, nonnegative
from blurfit.protocol import problems
from blurfit.protocol.http import JSON, media_type
from blurfit.protocol.problems import RequestError
from blurfit.protocol.tokens import hashed, new_token

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
LONG = 2**14  # bytes of a text: up to here it is read at once, and beyond in turn
_PAUSE = 2.0  # as long as the work before took


async def run_in_daemon_thread(work: Callable[[], _Found]) -> _Found:
    """Return the result of some work, done in a thread of its own that ends with the process."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_Found] = loop.create_future()

    def settle(give: Callable[[], None]) -> None:
        if not answer.done():  # else nobody waits any more
            give()

    def run() -> None:
        try:
            give = partial(answer.set_result, work())
        except BaseException as problem:  # whatever it is, it is for whoever waits
            give = partial(answer.set_exception, problem)
        try:
            loop.call_soon_threadsafe(settle, give)
        except RuntimeError:  # the loop has ended, and so has the service
            return

    threading.Thread(target=run, name="blurfit-background", daemon=True).start()
    return await answer


class Turns:
    """Work that takes long, one piece at a time; after each, the next waits twice as long.

    While JSON is read, or written, nothing else of this process runs. So that is a third of the
    time at most, however much of it there is, and only one text is in memory as Python's objects.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._next = 0.0  # when somebody has a turn

    async def take(
        self, work: Callable[_Given, _Found], *given: _Given.args, **named: _Given.kwargs
    ) -> _Found:
        """Return the result of some work, done when its turn has come."""

        def timed() -> _Found:
            began = time.thread_time()
            try:
                return work(*given, **named)
            finally:
                self._next = time.monotonic() + _PAUSE * (time.thread_time() - began)

        async with self._turn:
            await asyncio.sleep(max(0.0, self._next - time.monotonic()))
            return await run_in_daemon_thread(timed)


class InProgress(Generic[_Found]):
    """Work that takes long, once at a time under each name: whoever asks for it meanwhile, perhaps
    because waiting took too long, waits for what is under way.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[_Found]] = {}

    async def join(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, _Found]]) -> _Found:
        """Return the result, starting the work unless it runs."""
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = asyncio.create_task(work())
            task.add_done_callback(lambda ended: self._end(name, ended))
        return await asyncio.shield(task)

    def _end(self, name: Hashable, ended: asyncio.Task[_Found]) -> None:
        del self._tasks[name]
        if not ended.cancelled():
            ended.exception()  # seen, even if nobody waits any more


# ---- addresses


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """What an address is counted as.

    >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8::1:2:3:4")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64')
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:  # a socket's name, or a test's
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found) >> 64 << 64, 64)))


def proxies_in(text: str) -> frozenset[str]:
    """What the addresses of trusted proxies, separated by commas, are counted as: for an IPv6 one
    its /64, which its operator has to herself.

    >>> sorted(proxies_in("10.0.0.1, 2001:db8::1"))
    ['10.0.0.1', '2001:db8::/64']
    """
    given = [one.strip() for one in text.split(",") if one.strip()]
    for one in given:
        try:
            ip_address(one)
        except ValueError:
            raise InvalidValueError(
                f"Expected trusted proxy {one!r} to be an address such as 10.0.0.1: a name, a "
                "network or * would let anyone claim any address."
            ) from None
    return frozenset(network_of(one) for one in given)


# ---- rates

ROWS_OF_A_REQUEST = 50  # submissions that cost no more than a request
BYTES_OF_A_REQUEST = 2**15  # of a body or an answer, and
JSON_OF_A_REQUEST = 2**14  # of a body in JSON, which has to be read
_PLACES = 2**19  # of a row
_TOLERANCE = 1e-6  # of a request, for rounding


def _table() -> "memoryview[float]":
    return memoryview(mmap.mmap(-1, 2 * 8 * _PLACES)).cast("d")


@dataclass
class Limiter:
    """`rate` requests a second and `burst` at once for each address; a rate of 0 means no limit.

    >>> limiter = Limiter(rate=1, burst=2, clock=lambda: 0.0)
    >>> [limiter.allows("a"), limiter.allows("a"), limiter.allows("a"), limiter.allows("b")]
    [True, True, False, True]
    """

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _full: "memoryview[float]" = field(default_factory=_table, repr=False)
    _key: bytes = field(default_factory=lambda: hashed(new_token())[:16], repr=False)
    counted_as: Callable[[str], str] = network_of  # what is limited by anything but address: `str`

    def __post_init__(self) -> None:
        nonnegative(rate=self.rate, burst=self.burst)

    def allows(self, address: str, cost: float = 1.0) -> bool:
        """Whether one more request is fine now, or something that costs as much as several."""
        if not self.rate:
            return True
        now, places = self.clock(), self._places(address)
        if self._left(places, now) + _TOLERANCE < min(cost, self._enough):
            return False
        self._charge(places, now, cost)
        return True

    def has_left(self, address: str) -> bool:
        """Whether a request would be fine now; nothing is charged."""
        left = self._left(self._places(address), self.clock())
        return not self.rate or left + _TOLERANCE >= min(1.0, self._enough)

    @property
    def _enough(self) -> float:
        """What must be left, at most: as much as a full bucket holds, less the request itself.

        Whatever is allowed at all is allowed to somebody who waited. It is charged as a whole, so
        that the next one waits the longer, and the rate is kept however large a batch is.
        """
        return max(self.burst - 1.0, min(self.burst, 1.0))

    def charge(self, address: str, cost: float) -> None:
        """Charge what is known too late to refuse it: the next requests wait for it."""
        if self.rate:
            self._charge(self._places(address), self.clock(), cost)

    def _left(self, places: tuple[int, int], now: float) -> float:
        return self.burst - self.rate * (self._full_at(places, now) - now)

    def _full_at(self, places: tuple[int, int], now: float) -> float:
        return max(now, min(self._full[place] for place in places))

    def _charge(self, places: tuple[int, int], now: float, cost: float) -> None:
        full = self._full_at(places, now) + cost / self.rate
        for place in places:
            self._full[place] = max(self._full[place], full)

    def _places(self, address: str) -> tuple[int, int]:
        name = self.counted_as(address).encode()
        found = int.from_bytes(hashlib.blake2b(name, digest_size=8, key=self._key).digest())
        return found % _PLACES, _PLACES + (found >> 32) % _PLACES


def cost_of(size: int, rows: float = 0.0, *, json: bool) -> float:
    """How many requests a body stands for, or an answer."""
    free = JSON_OF_A_REQUEST if json else BYTES_OF_A_REQUEST
    return max(rows / ROWS_OF_A_REQUEST, size / free)


# ---- bodies

_Kind = TypeVar("_Kind")
_LOOKED_AT = 64  # unfinished bodies, where one must be given up
SMALL = 2**20  # bytes: enough for whatever is no submission
SECONDS_FOR_A_BODY, SECONDS_FOR_A_SMALL_ONE = 30.0, 10.0
IN_FLIGHT = 2**26  # bytes of all bodies that are being read, or whose answers are under way


@dataclass(eq=False)
class Reserve:
    """What one request holds of the memory that is allowed, and what it has paid."""

    allowance: "Allowance"
    address: str
    network: str
    collection: str
    size: int = 0
    coming: asyncio.Timeout | None = None  # while its body is being read
    given_up: bool = False  # to let others in
    paid: float = 1.0  # as any request that was let in
    is_peer: bool = False  # the other of two databases, which may send more at once than others

    def pay(self, cost: float) -> None:
        """Pay what a request costs beyond what it has paid, or be refused."""
        if cost <= self.paid:
            return
        if not self.allowance.limiter.allows(self.address, cost - self.paid):
            raise RequestError(
                problems.TOO_MANY,
                "Wait a few seconds and send the same request again; it will be counted once.",
            )
        self.paid = cost

    def owe(self, cost: float) -> None:
        """Pay what a request turned out to cost, late: the next ones of this address wait for it.

        How many submissions there are in JSON is seen once it is read, and how long an answer is
        once it is there. To ask for the rest then, of a bucket that has just paid for the request,
        would refuse for ever what costs more than a bucket holds. Names and fingerprint alone take
        more than a hundredth of `JSON_OF_A_REQUEST` for each submission, so what those owe is never
        more than was paid before.
        """
        if cost > self.paid:
            self.allowance.limiter.charge(self.address, cost - self.paid)
            self.paid = cost

    def take(self, more: int) -> None:
        """Hold more, or refuse; from whoever holds more than that, and still sends, if need be."""
        of = self.allowance
        if of.shares[self.network] + more > of.total // 2 and not self.is_peer:
            raise _busy()
        while of.taken + more > of.total:
            of.make_room_for(self.network, more)
        while of.shares[self.collection] + more > of.total // 4 * 3:
            of.make_room_for(self.network, more, self.collection)
        self._hold(more)

    def give_up(self) -> None:
        """Read no further; what was read is let go as soon as its reader has its turn."""
        assert self.coming is not None
        self.given_up = True
        if not self.coming.expired():
            self.coming.reschedule(0.0)  # in the past: now
        self._hold(-self.size)

    def _hold(self, more: int) -> None:
        of = self.allowance
        self.size += more
        of.taken += more
        for name in (self.network, self.collection):
            of.shares[name] += more
            if of.shares[name] <= 0:
                del of.shares[name]


@dataclass
class Allowance:
    """What requests may take of a service: memory for bodies above all, their address's rate, and
    turns at reading long texts.

    One address gets half of the memory at most, and what comes to one collection three quarters:
    something is left for the others.

    When all of that is taken, room is made by those who have not sent all of theirs: of some of the
    oldest unfinished bodies, that of the address with the largest share is given up for one with a
    smaller share. So unfinished bodies, from however many addresses, keep nobody out who sends less
    than they do.
    """

    total: int = IN_FLIGHT
    taken: int = 0
    shares: Counter[str] = field(default_factory=Counter, repr=False)
    unfinished: dict[Reserve, None] = field(default_factory=dict, repr=False)  # the oldest first
    limiter: Limiter = field(default_factory=lambda: Limiter(0, 0), repr=False, compare=False)
    turns: Turns = field(default_factory=Turns, repr=False, compare=False)

    @contextmanager
    def reserve(self, address: str, collection: str) -> Iterator[Reserve]:
        """What one request holds, until it has been answered."""
        held = Reserve(self, address, network_of(address), f"collection {collection}")
        try:
            yield held
        finally:
            self.unfinished.pop(held, None)
            held._hold(-held.size)

    def make_room_for(self, network: str, more: int, collection: str | None = None) -> None:
        """Give up a body of whoever holds more than this one would, or refuse.

        For a collection which has its share it must be one that comes to that.
        Those that are looked at go to the end, so that the next who needs room looks at others.
        """
        holds = self.shares[network] + more
        seen = list(islice(self.unfinished, _LOOKED_AT))
        for one in seen:
            del self.unfinished[one]
            self.unfinished[one] = None
        fitting = [one for one in seen if collection in (None, one.collection)]
        most = max(fitting, key=lambda one: (self.shares[one.network], one.size), default=None)
        if most is None or self.shares[most.network] <= holds:
            raise _busy()
        del self.unfinished[most]
        most.give_up()


async def read_body(
    headers: dict[bytes, bytes],
    receive: Receive,
    limit: int,
    held: Reserve,
    cost: Callable[[int], float],
) -> bytes:
    """The whole body, unless it is too large or too slow; `cost` is what so many bytes cost.

    What is stated is paid before any of it is read; in chunks, of which nobody says how long they
    are, it is the most that it may be.
    """
    stated = headers.get(b"content-length", b"0")
    if not stated.isdigit() or int(stated) > limit:
        raise _too_large(limit)
    held.pay(cost(limit if b"transfer-encoding" in headers else int(stated)))
    seconds = SECONDS_FOR_A_BODY if limit > SMALL else SECONDS_FOR_A_SMALL_ONE
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(seconds) as coming:
            while more:
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise _too_large(limit)
                more = message.get("more_body", False)
                if held.given_up:
                    raise _busy()
                held.take(len(parts[-1]))
                if more and held.coming is None:  # most bodies come in one piece
                    held.coming = coming
                    held.allowance.unfinished[held] = None
    except TimeoutError:
        if held.given_up:
            raise _busy() from None
        raise RequestError(
            problems.TOO_SLOW,
            f"Expected the whole body within {seconds:g} s; send smaller ones.",
        ) from None
    held.allowance.unfinished.pop(held, None)
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def held_by(request: Request) -> Reserve:
    """What a request holds, and has paid."""
    found: Reserve = request.scope["held"]
    return found


def _busy() -> RequestError:
    return RequestError(
        problems.BUSY, "Too much is being read at once. Send the same request again later."
    )


async def body_of(request: Request, kind: str, limit: int = SMALL) -> bytes:
    """The body of a request, which must be of this media type."""
    given = media_type(request.headers.get("content-type", ""))
    if given != kind:
        raise RequestError(problems.WRONG_TYPE, f"Expected content-type {given!r} to be {kind}.")
    return await read_body(
        dict(request.scope["headers"]),
        request.receive,
        limit,
        held_by(request),
        partial(cost_of, json=kind == JSON),
    )


async def document_in(
    request: Request, kind: type[_Kind], expected: str, limit: int = SMALL
) -> _Kind:
    """What a request says in JSON; `expected` is what it should be, in words."""
    text = await body_of(request, JSON, limit)
    if len(text) <= LONG:
        return document_from(text, kind, expected)
    return await held_by(request).allowance.turns.take(document_from, text, kind, expected)


def document_from(text: bytes, kind: type[_Kind], expected: str) -> _Kind:
    """What a text in JSON says; `expected` is what it should be, in words."""
    try:
        found: _Kind = read_json(text, kind)
    except ValueError as error:
        why = str(error).removesuffix(".")
        raise InvalidValueError(f"Expected {expected}: {why}.") from error
    return found


def _too_large(limit: int) -> RequestError:
    return RequestError(
        problems.TOO_LARGE, f"Expected a body of at most {limit} bytes; send less at once."
    )
