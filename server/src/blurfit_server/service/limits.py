"""How much anyone may take: connections, requests of an address, memory for bodies, and time.

| bound | beyond it |
| --- | --- |
| bytes and lines of a head, trailers included | 431, and the connection is closed |
| requests that wait behind another one on a connection | 400, closed |
| seconds for a head, and for a body | 408, closed |
| seconds in which nobody takes the answer | cut |
| connections of one address, and of all | 503, closed |
| requests of one address | 429, closed before any of it is read |

One sweep over all connections checks deadlines. uvicorn closes idle ones after five seconds.

**Rates.** A bucket fills at a steady rate and holds a burst; a batch, a long body and a long answer
cost as much as several requests (`ROWS_OF_A_REQUEST`, `BYTES_OF_A_REQUEST`, `JSON_OF_A_REQUEST`).

    left(now) = burst − rate · (full − now),    and a cost c moves full to max(now, full) + c/rate

Times `full` stand in two rows of 2¹⁹ places, at a keyed hash of the address: a collision in both is
rare, and nobody without the key can bring it about. So no address is kept, and nothing has to be
forgotten. All workers share the table.

**Bodies** are bounded in size, time and kind. Each is held in one `Allowance` of memory from its
first byte to the answer, paid for by the stated size before any of it is read. Long JSON is read in
turn.
"""

import asyncio
import hashlib
import logging
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

import httptools
from starlette.requests import Request
from starlette.types import Receive
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from blurfit import errors, protocol
from blurfit.data import read_json
from blurfit.errors import InvalidValueError, nonnegative
from blurfit.protocol import JSON, RequestError, hashed, media_type, new_token
from blurfit.wording import Message, Quote

_log = logging.getLogger(__name__)
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_Kind = TypeVar("_Kind")
LONG = 2**14  # bytes of a text: up to here it is read at once, and beyond in turn
_PAUSE = 2.0  # as long as the work before took


async def run_in_daemon_thread(work: Callable[[], _Found]) -> _Found:
    """Return the result of some work, done in a thread of its own that ends with the process.

    A thread of a pool is joined at the end, so one that hangs on another machine's answer would
    keep a service from stopping. What is done here may be broken off anywhere.
    """
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
    """Work that takes long, once at a time under each name: whoever asks meanwhile waits for it."""

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
    """Return what an address is counted as: of IPv6 its /64, which whoever has one has at least.

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
    """Return what the addresses of trusted proxies, separated by commas, are counted as."""
    given = [one.strip() for one in text.split(",") if one.strip()]
    for one in given:
        try:
            ip_address(one)
        except ValueError:
            raise InvalidValueError(
                "Expected trusted proxy {value!r} to be an address such as 10.0.0.1: a name, a "
                "network or * would let anyone claim any address.",
                value=one,
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
        """Tell whether so much is fine now, and charge it."""
        if not self.rate:
            return True
        now, places = self.clock(), self._places(address)
        if self._left(places, now) + _TOLERANCE < min(cost, self._enough):
            return False
        self._charge(places, now, cost)
        return True

    def has_left(self, address: str) -> bool:
        """Tell whether a request would be fine now; nothing is charged."""
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
    """Return how many requests a body stands for, or an answer."""
    free = JSON_OF_A_REQUEST if json else BYTES_OF_A_REQUEST
    return max(rows / ROWS_OF_A_REQUEST, size / free)


# ---- connections

_DESCRIPTORS = 2**16
_KEPT_BACK = 128  # descriptors for the store, for its pool of connections, and for other databases
_SECONDS_BETWEEN_WARNINGS = 60.0
_SECONDS_TO_TAKE_A_REFUSAL = 1.0
_TOO_LONG = "The head of the request is too long."


@dataclass(frozen=True)
class Bounds:
    """What one connection, one address and all of them may take."""

    head_bytes: int = 2**16
    head_lines: int = 100
    waiting_requests: int = 8
    head_seconds: float = 10.0
    body_seconds: float = 35.0  # a little more than `limits.SECONDS_FOR_A_BODY`, which says more
    answer_seconds: float = 120.0
    connections_of_an_address: int = 256
    connections: int = 2**15


@dataclass(eq=False)
class Gate:
    """All connections of a server, counted by address, and the sweep that ends the late ones.

    `proxies` are addresses that speak for others, and may hold as many connections as there are.
    `may_ask` tells whether an address has requests left; else it is sent away unread.
    """

    bounds: Bounds = field(default_factory=Bounds)
    proxies: frozenset[str] = frozenset()
    may_ask: Callable[[str], bool] = lambda _address: True

    def __post_init__(self) -> None:
        self._inside: dict[_Guarded, str] = {}
        self._counts: Counter[str] = Counter()
        self._sweeping = False
        self._turned_away = 0
        self._warned = float("-inf")

    def protocol(self, **given: Any) -> "_Guarded":
        """Make a protocol for a new connection: what uvicorn calls."""
        return _Guarded(self, **given)

    def admits(self, one: "_Guarded", address: str) -> bool:
        """Count a connection in, unless there are too many."""
        network, bounds = network_of(address), self.bounds
        crowded = network not in self.proxies and (
            self._counts[network] >= bounds.connections_of_an_address
        )
        if crowded or len(self._inside) >= bounds.connections:
            return False
        self._inside[one] = network
        self._counts[network] += 1
        if not self._sweeping:
            self._sweeping = True
            self._sweep_later()
        return True

    def forget(self, one: "_Guarded") -> None:
        """Count a connection out."""
        network = self._inside.pop(one, None)
        if network is not None:
            self._counts[network] -= 1
            if not self._counts[network]:
                del self._counts[network]

    def turned_away(self) -> None:
        """Remember that something was refused, and log now and then how often."""
        self._turned_away += 1
        now = asyncio.get_running_loop().time()
        if now - self._warned >= _SECONDS_BETWEEN_WARNINGS:
            _log.warning(
                "Connections refused or cut since the last report: %d; %d are open.",
                *(self._turned_away, len(self._inside)),
            )
            self._turned_away, self._warned = 0, now

    def _sweep_later(self) -> None:
        bounds = self.bounds
        shortest = min(bounds.head_seconds, bounds.body_seconds, bounds.answer_seconds)
        asyncio.get_running_loop().call_later(min(1.0, shortest / 4), self._sweep)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        for one in list(self._inside):
            one.end_if_late(now)
        if self._inside:
            self._sweep_later()
        else:
            self._sweeping = False


_OFFERS = (b"upgrade", b"http2-settings")  # header fields of an offer to upgrade


class _Guarded(HttpToolsProtocol):
    """uvicorn's protocol, with bounds."""

    def __init__(self, gate: Gate, **given: Any) -> None:
        super().__init__(**given)
        self._gate, self._bounds = gate, gate.bounds
        self._admitted = True
        self._unread = 0  # bytes since the parser last made something of them
        self._of_head = 0  # bytes of the lines that it made of them
        self._status = 400  # what to answer if the parser gives up
        self._due = float("inf")  # when what is coming must be here
        self._writable_by = float("inf")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._due = self.loop.time() + self._bounds.head_seconds
        address = self.client[0] if self.client else ""
        self._admitted = self._gate.admits(self, address)
        if not self._admitted:
            self._cut(503, "Too many connections. Try again later.")
        elif not self._gate.may_ask(address):
            # Closed at once, what is still on its way would take the answer with it.
            self._admitted = False
            self._gate.turned_away()
            self._say(429, "Too many requests. Try again later.")
            self._due = self.loop.time() + _SECONDS_TO_TAKE_A_REFUSAL
            self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gate.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._admitted or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        is_reading_a_body = self.cycle is not None and self.cycle.more_body
        if self._due == float("inf") and not is_reading_a_body:
            self._due = self.loop.time() + self._bounds.head_seconds
        self._unread += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserUpgrade:
            self._cut(400, "Nothing but HTTP/1.1 is spoken here.")
        except httptools.HttpParserError:
            words = _TOO_LONG if self._status == 431 else "This is not an HTTP request."
            self._cut(self._status, words)
        else:
            if self._unread > self._bounds.head_bytes:
                self._cut(431, _TOO_LONG)

    def _parse(self, data: bytes) -> None:
        """Parse what came; an offer to upgrade is ignored, as RFC 9110 allows (section 7.8).

        The parser stops behind the head of a request with an offer. So the request is parsed anew
        without it; the first time nothing was begun.
        """
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                if not self._has_offer():
                    raise
                data = self._head_without_offer() + data[offer.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as before
            else:
                return

    def _has_offer(self) -> bool:
        """Return whether the request offers to speak another protocol; CONNECT demands it."""
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            if name == b"connection":
                tokens = [token.strip() for token in value.split(b",")]
                value = b", ".join(token for token in tokens if token.lower() not in _OFFERS)
            if name not in _OFFERS:
                lines.append(name + b": " + value)
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._of_head = 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)
        if len(self.headers) > self._bounds.head_lines:
            self._give_up(431)

    def _count(self, length: int) -> None:
        self._of_head += length
        if self._of_head > self._bounds.head_bytes:
            self._give_up(431)

    def _give_up(self, status: int) -> None:
        """Stop the parser, in the middle of what it was given."""
        self._status = status
        raise ValueError(status)

    def on_headers_complete(self) -> None:
        if self._has_offer():
            return
        if len(self.pipeline) >= self._bounds.waiting_requests:
            self._give_up(400)
        self._unread = 0
        self._due = self.loop.time() + self._bounds.body_seconds
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._has_offer():
            return
        self._unread = 0
        self._due = float("inf")
        super().on_message_complete()

    def pause_writing(self) -> None:
        self._writable_by = self.loop.time() + self._bounds.answer_seconds
        super().pause_writing()

    def resume_writing(self) -> None:
        self._writable_by = float("inf")
        super().resume_writing()

    def end_if_late(self, now: float) -> None:
        """Close the connection if something has not come, or has not been taken, in time."""
        if now > self._due and not self._admitted:
            self.transport.abort()
        elif now > self._writable_by:
            self._gate.turned_away()
            self.transport.abort()
        elif now > self._due and not self.pipeline:  # those wait for us
            if self.transport.is_closing():
                self.transport.abort()
            else:
                self._cut(408, "The request did not arrive in time.")

    def _cut(self, status: int, words: str) -> None:
        """Say why, and hang up."""
        self._gate.turned_away()
        self._say(status, words)
        self.transport.close()

    def _say(self, status: int, words: str) -> None:
        """Answer, unless an answer is under way."""
        if self.cycle is None or self.cycle.response_complete:
            again = b"retry-after: 2\r\n" if status in (429, 503) else b""
            self.transport.write(
                b"%scontent-type: text/plain\r\ncontent-length: %d\r\n%sconnection: close\r\n\r\n%s"
                % (STATUS_LINE[status], len(words), again, words.encode("ascii"))
            )


def raise_descriptor_limit() -> int:
    """Allow as many descriptors as this process may have, 65,536 at most, and return how many
    connections they serve; the limit that a shell gives is often 1,024.
    """
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return Bounds.connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):  # not allowed here: then with fewer
            pass
    if soft == resource.RLIM_INFINITY:
        return Bounds.connections
    return max(16, min(Bounds.connections, soft - _KEPT_BACK))


# ---- bodies

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
                protocol.TOO_MANY,
                "Wait a few seconds and send the same request again; it will be counted once.",
            )
        self.paid = cost

    def owe(self, cost: float) -> None:
        """Pay what a request turned out to cost, late: the next ones of this address wait for it.

        To ask for the rest then, of a bucket that has just paid for the request, would refuse for
        ever what costs more than a bucket holds.
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
        """Yield what one request holds, until it has been answered."""
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
    """Read the whole body, unless it is too large or too slow; `cost` is what so many bytes cost.

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
            protocol.TOO_SLOW,
            "Expected the whole body within {seconds:g} s; send smaller ones.",
            seconds=seconds,
        ) from None
    held.allowance.unfinished.pop(held, None)
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def held_by(request: Request) -> Reserve:
    """Return what a request holds, and has paid."""
    found: Reserve = request.scope["held"]
    return found


def _busy() -> RequestError:
    return RequestError(
        protocol.BUSY, "Too much is being read at once. Send the same request again later."
    )


async def body_of(request: Request, kind: str, limit: int = SMALL) -> bytes:
    """Read the body of a request, which must be of this media type."""
    given = media_type(request.headers.get("content-type", ""))
    if given != kind:
        raise RequestError(
            protocol.WRONG_TYPE,
            "Expected content-type {given!r} to be {kind}.",
            given=given,
            kind=kind,
        )
    return await read_body(
        dict(request.scope["headers"]),
        request.receive,
        limit,
        held_by(request),
        partial(cost_of, json=kind == JSON),
    )


async def document_in(
    request: Request, kind: type[_Kind], expected: Message, limit: int = SMALL
) -> _Kind:
    """Read what a request says in JSON; `expected` is what it should be, in words."""
    text = await body_of(request, JSON, limit)
    if len(text) <= LONG:
        return document_from(text, kind, expected)
    return await held_by(request).allowance.turns.take(document_from, text, kind, expected)


def document_from(text: bytes, kind: type[_Kind], expected: Message) -> _Kind:
    """Read what a text in JSON says; `expected` is what it should be, in words."""
    try:
        found: _Kind = read_json(text, kind)
    except ValueError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, errors.BlurfitError):
            cause = cause.__cause__
        if cause is not None:  # the type that was read refuses a value
            raise InvalidValueError(cause.message) from error
        why = Quote(str(error).removesuffix("."))
        raise InvalidValueError(
            "Expected {expected}: {why}.", expected=expected, why=why
        ) from error
    return found


def _too_large(limit: int) -> RequestError:
    return RequestError(
        protocol.TOO_LARGE,
        "Expected a body of at most {limit} bytes; send less at once.",
        limit=limit,
    )
