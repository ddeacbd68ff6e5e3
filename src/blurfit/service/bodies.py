"""Read what a request brings, within bounds of size, time and kind, and all of them together within
a bound of memory.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.types import Receive

from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import media_type
from blurfit.service.networks import network_of

SECONDS_FOR_A_BODY = 30.0
SMALL = 2**20  # bytes: enough for whatever is no submission
IN_FLIGHT = 2**26  # bytes of all submissions that are being read or wait to be stored


@dataclass
class Reserve:
    """Bytes that one request holds of what is allowed."""

    allowance: "Allowance"
    network: str
    collection: str
    size: int = 0

    def take(self, more: int) -> None:
        """Hold more, or refuse."""
        of = self.allowance
        if (
            of.taken + more > of.total
            or of.shares[self.network] + more > of.total // 2
            or of.shares[self.collection] + more > of.total // 4 * 3
        ):
            raise RequestError(
                problems.BUSY, "Too much is being read at once. Send the same again after a while."
            )
        self.size += more
        of.taken += more
        of.shares[self.network] += more
        of.shares[self.collection] += more


@dataclass
class Allowance:
    """How many bytes of bodies there may be in memory.

    One address gets half of it at most, and what comes to one collection three quarters: something
    is left for the others.
    """

    total: int = IN_FLIGHT
    taken: int = 0
    shares: Counter[str] = field(default_factory=Counter, repr=False)

    @contextmanager
    def reserve(self, address: str, collection: str) -> Iterator[Reserve]:
        """What one request holds, until it has been answered."""
        held = Reserve(self, network_of(address), f"collection {collection}")
        try:
            yield held
        finally:
            self.taken -= held.size
            for name in (held.network, held.collection):
                self.shares[name] -= held.size
                if self.shares[name] <= 0:
                    del self.shares[name]


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
        async with asyncio.timeout(SECONDS_FOR_A_BODY):
            while more:
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise _too_large(limit)
                if held is not None:
                    held.take(len(parts[-1]))
                more = message.get("more_body", False)
    except TimeoutError:
        raise RequestError(
            problems.TOO_SLOW,
            f"Expected the whole body within {SECONDS_FOR_A_BODY:g} s; send smaller ones.",
        ) from None
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


async def body_of(request: Request, kind: str, limit: int = SMALL) -> bytes:
    """The body of a request, which must be of this media type."""
    given = media_type(request.headers.get("content-type", ""))
    if given != kind:
        raise RequestError(problems.WRONG_TYPE, f"Expected content-type {given!r} to be {kind}.")
    return await read_body(dict(request.scope["headers"]), request.receive, limit)


def _too_large(limit: int) -> RequestError:
    return RequestError(
        problems.TOO_LARGE, f"Expected a body of at most {limit} bytes; send less at once."
    )
