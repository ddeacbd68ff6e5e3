"""What a connection may cost before any request of it reaches the service.

HTTP leaves it to the server how long a head may be, how long one waits for it, and how many
connections somebody may hold. uvicorn's protocol has no bound for any of these; the subclass here
has:

| bound | beyond it |
| --- | --- |
| bytes and lines of a head, trailers included | 431, and the connection is closed |
| requests that wait behind another one on a connection | 400, closed |
| seconds for a head, and for a body | 408, closed |
| seconds in which nobody takes the answer | cut |
| connections of one address (`blurfit.service.limits`), and of all | 503, closed |
| requests of one address (`blurfit.service.limits`) | 429, closed before any of it is read |

Deadlines are checked by one sweep over all connections, so that a request costs two readings of the
clock and no timer. Connections between two requests are uvicorn's, which closes them after five
seconds.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from blurfit.service.limits import network_of

_log = logging.getLogger(__name__)
_DESCRIPTORS_WANTED = 2**16
_DESCRIPTORS_KEPT_BACK = 128  # for the store, for its pool of connections, and for other databases
_SECONDS_BETWEEN_WARNINGS = 60.0
_SECONDS_TO_TAKE_A_REFUSAL = 1.0


@dataclass(frozen=True)
class Bounds:
    """What one connection, one address and all of them may take."""

    head_bytes: int = 2**16
    head_lines: int = 100
    waiting_requests: int = 8
    head_seconds: float = 10.0
    body_seconds: float = 35.0  # a little more than `bodies.SECONDS_FOR_A_BODY`, which says more
    answer_seconds: float = 120.0
    connections_of_an_address: int = 256
    connections: int = 2**15


@dataclass(eq=False)
class Gate:
    """All connections of a server, counted by address, and the sweep that ends the late ones.

    `proxies` are addresses that speak for others, and may hold as many connections as there are.
    `may_ask` tells whether an address has requests left: whoever comes again and again although
    there are none is sent away before anything is read.
    """

    bounds: Bounds = field(default_factory=Bounds)
    proxies: frozenset[str] = frozenset()
    may_ask: Callable[[str], bool] = lambda _address: True

    def __post_init__(self) -> None:
        self._inside: dict[Guarded, str] = {}
        self._counts: Counter[str] = Counter()
        self._sweeping = False
        self._turned_away = 0
        self._warned = float("-inf")

    def protocol(self, **given: Any) -> "Guarded":
        """A protocol for a new connection: what uvicorn calls."""
        return Guarded(self, **given)

    def admits(self, one: "Guarded", address: str) -> bool:
        """Count a connection in, unless there are too many."""
        network, bounds = network_of(address), self.bounds
        crowded = network not in self.proxies and (
            self._counts[network] >= bounds.connections_of_an_address
        )
        if crowded or len(self._inside) >= bounds.connections:
            self.turned_away()
            return False
        self._inside[one] = network
        self._counts[network] += 1
        if not self._sweeping:
            self._sweeping = True
            self._sweep_later()
        return True

    def forget(self, one: "Guarded") -> None:
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


class Guarded(HttpToolsProtocol):
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
        """Admit whoever comes, or not; the time for a first head begins."""
        super().connection_made(transport)
        self._due = self.loop.time() + self._bounds.head_seconds
        address = self.client[0] if self.client else ""
        self._admitted = self._gate.admits(self, address)
        if not self._admitted:
            self._refuse(503, "Too many connections. Try again later.")
        elif not self._gate.may_ask(address):
            # Closed at once, what is still on its way would take the answer with it.
            self._admitted = False
            self._gate.turned_away()
            self._say(429, "Too many requests. Try again later.")
            self._due = self.loop.time() + _SECONDS_TO_TAKE_A_REFUSAL
            self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it out."""
        self._gate.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Let the parser read, until there is too much of what leads nowhere."""
        if not self._admitted or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        if self._due == float("inf") and not self._is_reading_a_body:
            self._due = self.loop.time() + self._bounds.head_seconds
        self._unread += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._cut(400, "Nothing but HTTP/1.1 is spoken here.")
        except httptools.HttpParserError:
            words = "The head of the request is too long."
            self._cut(
                self._status, words if self._status == 431 else "This is not an HTTP request."
            )
        else:
            if self._unread > self._bounds.head_bytes:
                self._cut(431, "The head of the request is too long.")

    @property
    def _is_reading_a_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._of_head = 0

    def on_url(self, url: bytes) -> None:
        """Part of the first line."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head, or of the trailer."""
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
        """The head is here; the time for the body begins."""
        if len(self.pipeline) >= self._bounds.waiting_requests:
            self._give_up(400)
        self._unread = 0
        self._due = self.loop.time() + self._bounds.body_seconds
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All is here; now it is the service's turn."""
        self._unread = 0
        self._due = float("inf")
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The answer is not taken as fast as it is given."""
        self._writable_by = self.loop.time() + self._bounds.answer_seconds
        super().pause_writing()

    def resume_writing(self) -> None:
        """It was taken."""
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
        self._gate.turned_away()
        self._refuse(status, words)

    def _refuse(self, status: int, words: str) -> None:
        """Say why, and hang up."""
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
    """Allow as many descriptors as this process may have, 65,536 at most; how many connections they
    serve is returned.

    Each connection takes one; the limit that a shell gives is often 1,024.
    """
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return Bounds.connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else hard
    wanted = min(wanted, _DESCRIPTORS_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):  # not allowed here: then with fewer
            pass
    if soft == resource.RLIM_INFINITY:
        return Bounds.connections
    return max(16, min(Bounds.connections, soft - _DESCRIPTORS_KEPT_BACK))
