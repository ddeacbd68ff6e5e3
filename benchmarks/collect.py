"""How many submissions a second the service takes, server and load generator on one machine.

`python benchmarks/collect.py`: d = 14, 119 numbers a submission, one at a time, a hundred and a
thousand at a time, as JSON and as bytes, durably on SQLite; beside the same server that reads,
checks and throws away, beside a bare ASGI application that reads and answers, beside a plain
FastAPI service that commits each request, and beside what the disk takes of as many bytes.
"""

import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import click
import numpy as np
import uvicorn
from measure import table
from served import running

from blurfit import Agreement, Numeric, Schema, Submissions, perturb_table
from blurfit.protocol import BINARY, JSON
from blurfit_server import Store
from blurfit_server.service.app import Limits, Service
from blurfit_server.store.arrivals import Group, Outcome, Receiver
from blurfit_server.store.collections import Collection

SCHEMA = Schema(features=[Numeric(f"x{i}", 0, 1) for i in range(13)], target=Numeric("y", 0, 1))
SERVER = {"http": "httptools", "access_log": False, "log_level": "warning"}


def agreement() -> Agreement:
    """What everything here is collected under."""
    return Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=32768, admission="anyone")


# ---- servers, each in a process of its own


def serve(kind: str, place: str, port: int) -> None:
    """Run one of the servers."""
    agreed = agreement()
    app: Any
    if kind == "fastapi":
        app = plain_fastapi(agreed, place)
    elif kind == "bare":
        app = bare
    else:
        store = Store(place)
        store.open(agreed)
        if kind == "discard":
            # Everything but the transaction: read, take apart, screen, answer.
            store._receive = _count_them  # type: ignore[assignment,method-assign]
        app = Service(store, Limits(requests_per_second=0))
    uvicorn.run(app, port=port, **SERVER)  # type: ignore[arg-type]


def _count_them(_take: Receiver, _wave: Collection, group: Group) -> list[Outcome]:
    return [span.rows.stop - span.rows.start for span in group.spans]


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """The least that an ASGI application does with a body: read it whole, and answer."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": message["type"] + ".complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = b""
    while (message := await receive()).get("more_body"):
        body += message["body"]
    answer = b'{"accepted": 1}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def disk(folder: str, size: int) -> float:
    """How many submissions' bytes a second the disk takes for certain, a mebibyte at a time."""
    chunk, best = bytes(2**20), 0.0
    for _ in range(3):
        with Path(folder, "disk").open("wb", buffering=0) as file:
            start = time.perf_counter()
            for _ in range(64):
                file.write(chunk)
                os.fdatasync(file.fileno())
            best = max(best, 64 * len(chunk) / (time.perf_counter() - start))
    return best / size


def plain_fastapi(agreed: Agreement, place: str) -> Any:
    """What one would write in an afternoon: a model, a table, a commit for each request."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Message(BaseModel):
        format: str
        version: int
        identifier: str
        fingerprint: str
        numbers: list[float]

    file = sqlite3.connect(place, check_same_thread=False)
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = FULL")
    file.execute("CREATE TABLE submissions (identifier TEXT PRIMARY KEY, numbers BLOB)")
    app = FastAPI()

    @app.post("/collections/{fingerprint}/submissions")
    async def submit(fingerprint: str, message: Message) -> dict[str, int]:
        assert fingerprint == agreed.fingerprint
        numbers = np.array(message.numbers)
        with file:
            file.execute(
                "INSERT OR IGNORE INTO submissions VALUES (?, ?)",
                (message.identifier, numbers.tobytes()),
            )
        return {"accepted": 1}

    return app


# ---- load: connections that send the next request as soon as the last is answered


@dataclass
class Sender(asyncio.Protocol):
    """One connection; messages are whole HTTP requests, made beforehand."""

    messages: Iterator[bytes]
    latencies: list[float]
    pause: float
    finished: "asyncio.Future[None]"
    _answer: bytes = field(default=b"", repr=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        """Go on when an answer is complete."""
        self._answer += data
        head, _, body = self._answer.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        if not length or len(body) < int(length):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"refused: {self._answer.decode()}")
        self.latencies.append(time.perf_counter() - self._since)
        self._answer = b""
        if self.pause:
            asyncio.get_running_loop().call_later(self.pause, self._next)
        else:
            self._next()

    def _next(self) -> None:
        message = next(self.messages, None)
        if message is None:
            self._transport.close()
            self.finished.set_result(None)
        else:
            self._since = time.perf_counter()
            self._transport.write(message)


async def send(
    port: int, messages: list[bytes], connections: int, pause: float = 0.0
) -> tuple[float, list[float]]:
    """How long it took, and how long each request took."""
    loop = asyncio.get_running_loop()
    waiting, latencies = iter(messages), list[float]()
    ends = [loop.create_future() for _ in range(connections)]
    start = time.perf_counter()
    for end in ends:
        await loop.create_connection(
            lambda end=end: Sender(waiting, latencies, pause, end),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
    await asyncio.gather(*ends)
    return time.perf_counter() - start, latencies


def requests(agreed: Agreement, count: int, at_once: int, kind: str) -> list[bytes]:
    """Whole HTTP requests, with fresh submissions."""
    generator = np.random.default_rng()
    people = {c: generator.random(count) for c in (*(f"x{i}" for i in range(13)), "y")}
    table = perturb_table(agreed, people)
    made = []
    for start in range(0, count, at_once):
        rows = slice(start, start + at_once)
        part = Submissions(table.identifiers[rows], table.fingerprint, table.numbers[rows])
        message = next(iter(part)) if at_once == 1 else part
        body = message.to_bytes() if kind == BINARY else message.to_json().encode()
        made.append(
            b"POST /collections/%s/submissions HTTP/1.1\r\nhost: x\r\ncontent-type: %s\r\n"
            b"content-length: %d\r\n\r\n%s"
            % (agreed.fingerprint.encode(), kind.encode(), len(body), body)
        )
    return made


@dataclass(frozen=True)
class Load:
    """A way to send."""

    name: str
    kind: str
    at_once: int
    count: int
    connections: int


LOADS = (
    Load("one at a time, bytes", BINARY, 1, 30_000, 128),
    Load("one at a time, JSON", JSON, 1, 12_000, 128),
    Load("100 at a time, bytes", BINARY, 100, 200_000, 32),
    Load("1,000 at a time, bytes", BINARY, 1000, 200_000, 8),
    Load("100 at a time, JSON", JSON, 100, 30_000, 16),
)


def measure(folder: str, rounds: int, fraction: float) -> Iterator[tuple[str, ...]]:
    """Rows of the table; servers take turns, and the best round counts."""
    agreed = agreement()
    for load in LOADS:
        count = int(load.count * fraction)
        best = {"durable": 0.0, "discard": 0.0, "bare": 0.0}
        taken = dict.fromkeys(best, float("inf"))  # processor time of the server for each
        for _ in range(rounds):
            for kind in best:
                made = requests(agreed, count, load.at_once, load.kind)
                with running(__file__, folder, kind) as server:
                    before = server.processor_seconds()
                    seconds, _ = run(send(server.port, made, load.connections))
                    spent = server.processor_seconds() - before
                best[kind] = max(best[kind], count / seconds)
                taken[kind] = min(taken[kind], spent / count)
        for kind in ("discard", "bare"):
            ratios = best["durable"] / best[kind], taken[kind] / taken["durable"]
            told = f"{ratios[0]:.2f}; {ratios[1]:.2f} by processor time"
            yield load.name, f"{best['durable']:,.0f}", f"{kind}, {best[kind]:,.0f}", told
        if load.at_once == 1:
            yield latency(folder, load, best["durable"] / 2)


def latency(folder: str, load: Load, rate: float) -> tuple[str, ...]:
    """p99 where half as many come as could."""
    pause = load.connections / rate
    with running(__file__, folder, "durable") as server:
        made = requests(agreement(), int(rate * 3), load.at_once, load.kind)
        seconds, latencies = run(send(server.port, made, load.connections, pause))
    middle, high = np.percentile(latencies, [50, 99]) * 1e3
    words = f"{load.name}, at {len(made) / seconds:,.0f} a second"
    return words, f"p50 {middle:.1f} ms", "p99", f"{high:.1f} ms"


def against_fastapi(folder: str, rounds: int, fraction: float) -> Iterator[tuple[str, ...]]:
    """Bytes to our service against JSON to a plain one that commits each request."""
    agreed = agreement()
    best = {"durable": 0.0, "fastapi": 0.0}
    for _ in range(rounds):
        for kind, media, most in (("durable", BINARY, 30_000), ("fastapi", JSON, 4000)):
            count = int(most * fraction)
            with running(__file__, folder, kind) as server:
                seconds, _ = run(send(server.port, requests(agreed, count, 1, media), 128))
            best[kind] = max(best[kind], count / seconds)
    ratio = best["durable"] / best["fastapi"]
    yield (
        "FastAPI, one commit a request",
        f"{best['fastapi']:,.0f}",
        "ours, bytes",
        f"{ratio:.1f}",
    )


def run(work: Any) -> Any:
    """On the fastest event loop there is."""
    import uvloop

    return uvloop.run(work)


@click.command()
@click.option("--serve", "server", nargs=3, hidden=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--fraction", default=1.0, show_default=True, help="Send so much of each load.")
def main(server: tuple[str, str, str] | None, rounds: int, fraction: float) -> None:
    """Measure, and print a table."""
    if server:
        serve(server[0], server[1], int(server[2]))
        return
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        rows += measure(folder, rounds, fraction)
        rows += against_fastapi(folder, rounds, fraction)
        size = len(next(iter(requests(agreement(), 1, 1, BINARY))).partition(b"\r\n\r\n")[2])
        rows.append(("the disk, as many bytes", f"{disk(folder, size):,.0f}", "", ""))
    table("Collecting", ("what", "submissions a second", "against", "ratio"), rows)


if __name__ == "__main__":
    main()
