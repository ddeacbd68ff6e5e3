"""Read what a request brings, within bounds of size, time and kind, and all of them together within
a bound of memory.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from starlette.requests import Request
from starlette.types import Receive

from blurfit.errors import InvalidValueError
from blurfit.json_reader import read_json
from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import JSON, media_type
from blurfit.service.networks import network_of

_Kind = TypeVar("_Kind")
SECONDS_FOR_A_BODY = 30.0
_LOOKED_AT = 64  # unfinished bodies, where one must be given up
SMALL = 2**20  # bytes: enough for whatever is no submission
IN_FLIGHT = 2**26  # bytes of all submissions that are being read or wait to be stored


@dataclass(eq=False)
class Reserve:
    """Bytes that one request holds of what is allowed."""

    allowance: "Allowance"
    network: str
    collection: str
    size: int = 0
    coming: asyncio.Timeout | None = None  # while its body is being read
    given_up: bool = False  # to let others in

    def take(self, more: int) -> None:
        """Hold more, or refuse; from whoever holds more than that, and still sends, if need be."""
        of = self.allowance
        if of.shares[self.network] + more > of.total // 2:
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
    """How many bytes of bodies there may be in memory.

    One address gets half of it at most, and what comes to one collection three quarters: something
    is left for the others.

    When all of that is taken, room is made by those who have not sent all of theirs: of some of the
    oldest unfinished bodies, that of the address with the largest share is given up for one with a
    smaller share. So unfinished bodies, from however many addresses, keep nobody out who sends less
    than they do.
    """

    total: int = IN_FLIGHT
    taken: int = 0
    shares: Counter[str] = field(default_factory=Counter, repr=False)
    unfinished: dict[Reserve, None] = field(default_factory=dict, repr=False)  # the oldest first

    @contextmanager
    def reserve(self, address: str, collection: str) -> Iterator[Reserve]:
        """What one request holds, until it has been answered."""
        held = Reserve(self, network_of(address), f"collection {collection}")
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
    headers: dict[bytes, bytes], receive: Receive, limit: int, held: Reserve | None = None
) -> bytes:
    """The whole body, unless it is too large or too slow."""
    stated = headers.get(b"content-length", b"0")
    if not stated.isdigit() or int(stated) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BODY) as coming:
            while more:
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise _too_large(limit)
                more = message.get("more_body", False)
                if held is not None and held.given_up:
                    raise _busy()
                if held is not None:
                    held.take(len(parts[-1]))
                    if more and held.coming is None:  # most bodies come in one piece
                        held.coming = coming
                        held.allowance.unfinished[held] = None
    except TimeoutError:
        if held is not None and held.given_up:
            raise _busy() from None
        raise RequestError(
            problems.TOO_SLOW,
            f"Expected the whole body within {SECONDS_FOR_A_BODY:g} s; send smaller ones.",
        ) from None
    if held is not None:
        held.allowance.unfinished.pop(held, None)
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def _busy() -> RequestError:
    return RequestError(
        problems.BUSY, "Too much is being read at once. Send the same request again later."
    )


async def body_of(request: Request, kind: str, limit: int = SMALL) -> bytes:
    """The body of a request, which must be of this media type."""
    given = media_type(request.headers.get("content-type", ""))
    if given != kind:
        raise RequestError(problems.WRONG_TYPE, f"Expected content-type {given!r} to be {kind}.")
    return await read_body(dict(request.scope["headers"]), request.receive, limit)


async def document_in(
    request: Request, kind: type[_Kind], expected: str, limit: int = SMALL
) -> _Kind:
    """What a request says in JSON; `expected` is what it should be, in words."""
    return document_from(await body_of(request, JSON, limit), kind, expected)


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
