"""What strangers may do to a service, each for as long as an event is set, from processes that
yield to everyone else on the machine.

Every address of 127.0.0.0/8 is this machine, so an attacker has as many as he likes.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.synchronize import Event

_NO_LONGER = 0.02  # seconds between two looks at whether to go on
_PAUSE = 0.05  # after a connection was cut, unless the attacker is in a hurry


@dataclass(frozen=True)
class Target:
    """A service, and what an attacker knows of it."""

    port: int
    path: str = ""  # where submissions go
    body: bytes = b""  # one that is well made
    kind: str = "application/vnd.blurfit.submission.v2"
    token: str = ""  # of an administrator, who is lured
    peer: int = 0  # a port at which the attacker plays the other database
    language: str = ""  # that he asks for answers in
    network: int = 3  # of 127.0.0.0/8, from which he comes: what one attack was charged is its own

    def head(self, length: int) -> bytes:
        """Of a request that announces so many bytes."""
        return (
            f"POST {self.path} HTTP/1.1\r\nhost: x\r\ncontent-type: {self.kind}\r\n"
            f"content-length: {length}\r\n\r\n"
        ).encode()


class Connection:
    """One connection of an attacker, and whether the attack still goes on."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, go: Event
    ) -> None:
        self.reader, self.writer, self.go = reader, writer, go

    async def say(self, data: bytes) -> None:
        """Send something, and wait until it is on its way."""
        self.writer.write(data)
        await self.writer.drain()

    async def stay(self) -> None:
        """Be silent, until the attack is over or the other side hangs up."""
        while self.go.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_NO_LONGER * 5):
                    if not await self.reader.read(2**16):
                        return

    async def answer(self) -> None:
        """Take an answer, whatever it is."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        await self.reader.readexactly(int(length or 0))


Deed = Callable[[Connection, Target], Awaitable[None]]


async def besiege(
    target: Target, go: Event, end: Event, connections: int, addresses: int, deed: Deed
) -> None:
    """Do something on so many connections, from so many addresses, again and again."""
    numbers = count()

    async def one() -> None:
        while not end.is_set():
            if not go.is_set():
                await asyncio.sleep(_NO_LONGER)
                continue
            number = next(numbers) % addresses
            address = f"127.{target.network}.{number // 250}.{number % 250 + 1}"
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", target.port, local_addr=(address, 0)
                )
                try:
                    await deed(Connection(reader, writer, go), target)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0 if deed in HURRIED else _PAUSE)

    await asyncio.gather(*(one() for _ in range(connections)))


# ---- deeds


async def huge_head(connection: Connection, _target: Target) -> None:
    """Short lines without end."""
    await connection.say(b"GET / HTTP/1.1\r\n")
    while connection.go.is_set():
        await connection.say(b"a:\r\n" * 2**12)


async def endless_url(connection: Connection, _target: Target) -> None:
    """A first line without end."""
    await connection.say(b"GET /")
    while connection.go.is_set():
        await connection.say(b"a" * 2**14)


async def silence(connection: Connection, _target: Target) -> None:
    """Nothing at all."""
    await connection.stay()


async def slow_body(connection: Connection, target: Target) -> None:
    """A body, a byte at a time."""
    await connection.say(target.head(100_000))
    while connection.go.is_set():
        await connection.say(b"x")
        await asyncio.sleep(0.1)


async def unfinished_body(connection: Connection, target: Target) -> None:
    """Nearly all of a body of 31 MiB, and then silence."""
    await connection.say(target.head(31 * 2**20))
    for _ in range(30):
        if connection.go.is_set():
            await connection.say(bytes(2**20))
    await connection.stay()


async def whole_bodies(connection: Connection, target: Target) -> None:
    """The same body again and again."""
    while connection.go.is_set():
        await connection.say(target.head(len(target.body)) + target.body)
        await connection.answer()


async def reading(connection: Connection, target: Target) -> None:
    """Ask for the same thing as often as it is answered."""
    wanted = f"accept-language: {target.language}\r\n" if target.language else ""
    while connection.go.is_set():
        await connection.say(f"GET {target.path} HTTP/1.1\r\nhost: x\r\n{wanted}\r\n".encode())
        await connection.answer()


async def all_but_a_little(connection: Connection, target: Target) -> None:
    """All of a body but its last seven bytes, and then silence."""
    await connection.say(target.head(len(target.body)) + target.body[:-7])
    await connection.stay()


async def nonsense(connection: Connection, target: Target) -> None:
    """A small body that is refused, and good-bye."""
    await connection.say(target.head(8) + b"nonsense")
    await connection.answer()


async def lured(connection: Connection, target: Target) -> None:
    """An administrator asks for a model, which the other database shall help with."""
    await connection.say(
        f"POST {target.path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {target.token}\r\n"
        "content-length: 0\r\n\r\n".encode()
    )
    await connection.answer()


# ---- the other database


async def endless(writer: asyncio.StreamWriter) -> None:
    """An answer without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(bytes(2**16))
        await writer.drain()


async def compressed(writer: asyncio.StreamWriter) -> None:
    """An answer that stands for far more."""
    import gzip

    bomb = gzip.compress(bytes(2**26))
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n")
    writer.write(b"content-length: %d\r\n\r\n%s" % (len(bomb), bomb))
    await writer.drain()


async def dripping(writer: asyncio.StreamWriter) -> None:
    """An answer, a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1600000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def playing(port: int, say: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> None:
    """Play the other database."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            await say(writer)
        writer.close()

    await asyncio.start_server(answer, "127.0.0.1", port)


DEEDS: dict[str, Deed] = {
    one.__name__: one
    for one in (
        *(huge_head, endless_url, silence, slow_body, unfinished_body, whole_bodies),
        *(nonsense, lured, reading, all_but_a_little),
    )
}
HURRIED = (reading, whole_bodies)
PEERS = {one.__name__: one for one in (endless, compressed, dripping)}


def main(
    deed: str,
    peer: str | None,
    target: Target,
    connections: int,
    addresses: int,
    go: Event,
    ready: Event,
    end: Event,
) -> None:
    """Attack whenever `go` is set, until the end."""
    os.nice(5)
    parent = os.getppid()

    async def run() -> None:
        if peer is not None:
            await playing(target.peer, PEERS[peer])
        ready.set()
        attacking = asyncio.create_task(
            besiege(target, go, end, connections, addresses, DEEDS[deed])
        )
        while not end.is_set() and os.getppid() == parent:
            await asyncio.sleep(_NO_LONGER)
        attacking.cancel()

    with suppress(asyncio.CancelledError):
        asyncio.run(run())
    time.sleep(0)
