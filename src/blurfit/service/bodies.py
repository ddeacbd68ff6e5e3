"""Read what a request brings, within bounds of size, time and kind, and all of them together within
a bound of memory.

Whatever the path, a body is held in one `Allowance` of memory from its first byte to the answer,
and paid for by the size that is stated, before any of it is read. Long JSON is read in turn
(`blurfit.service.detached`), beside everyone else.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

from starlette.requests import Request
from starlette.types import Receive

from blurfit.errors import InvalidValueError
from blurfit.json_reader import read_json
from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import JSON, media_type
from blurfit.service.detached import LONG, Turns
from blurfit.service.limits import Limiter, cost_of
from blurfit.service.networks import network_of

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
        raise InvalidValueError(f"Expected {expected}: {error}.") from error
    return found


def _too_large(limit: int) -> RequestError:
    return RequestError(
        problems.TOO_LARGE, f"Expected a body of at most {limit} bytes; send less at once."
    )
