"""What split trust costs: the first database's durable ingest against one database's, the sums of
2²¹ shares against a plain NumPy sum, and bytes for each contributor.

`python benchmarks/shares.py`: d = 14, 119 numbers a submission, bytes over HTTP on loopback, SQLite
with full synchronisation, server and load generator on one machine. Each server in a process of its
own; they take turns, and the best round counts.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import uvicorn
from collect import SCHEMA, SERVER, run, send
from measure import best_times, table
from served import running

from blurfit import Agreement, perturb_table
from blurfit.contributor.blur import share
from blurfit.messages.submissions import Role, Shares, sum_of_masks
from blurfit.protocol import BINARY
from blurfit_server import Store
from blurfit_server.service.app import Limits, Service
from blurfit_server.store import blocks, joint
from blurfit_server.store.arrivals import Arrival

DATABASES = [("First", "https://first.example"), ("Second", "https://second.example")]
ROLES: tuple[Role, ...] = ("whole", "first", "second")


def agreement(role: Role) -> Agreement:
    """What everything here is collected under: one database, or two."""
    split_trust: dict[str, Any] = {"databases": DATABASES, "proofs": False}
    return Agreement.propose(
        SCHEMA,
        epsilon=1,
        delta=1e-6,
        quorum=32768,
        admission="anyone",
        **({} if role == "whole" else split_trust),
    )


WIDTH = agreement("first").width


def serve(role: Role, place: str, port: int) -> None:
    """Run one database's service."""
    store = Store(place)
    store.open(agreement(role), role=role)
    uvicorn.run(Service(store, Limits(requests_per_second=0)), port=port, **SERVER)  # type: ignore[arg-type]


def requests(role: Role, count: int, at_once: int) -> list[bytes]:
    """Whole HTTP requests, with fresh submissions or shares."""
    agreed, generator = agreement(role), np.random.default_rng()
    people = {c: generator.random(count) for c in (*(f"x{i}" for i in range(13)), "y")}
    bodies = []
    if role == "whole":
        table = perturb_table(agreed, people)
        size = agreed.layout.size
        raw = table.to_bytes()
        head, rows = raw[:8], raw[16:]
        for start in range(0, count, at_once):
            part = rows[start * size : (start + at_once) * size]
            batch = head + (len(part) // size).to_bytes(8, "little") + part
            bodies.append(part if at_once == 1 else batch)
    else:
        shared = share(agreed, people)
        shares = shared.first if role == "first" else shared.second
        for start in range(0, count, at_once):
            rows_ = slice(start, start + at_once)
            part_ = Shares(shares.identifiers[rows_], shares.words[rows_], shares.layout)
            bodies.append(part_.to_bytes())
    return [
        b"POST /collections/%s/submissions HTTP/1.1\r\nhost: x\r\ncontent-type: %s\r\n"
        b"content-length: %d\r\n\r\n%s" % (agreed.fingerprint.encode(), BINARY.encode(), len(b), b)
        for b in bodies
    ]


def ingest(folder: str, rounds: int, fraction: float) -> Iterator[tuple[str, ...]]:
    """How many a second are on disk."""
    for name, at_once, most, connections in (
        ("one at a time", 1, 20_000, 128),
        ("100 at a time", 100, 100_000, 32),
    ):
        count = int(most * fraction)
        best: dict[Role, float] = dict.fromkeys(ROLES, 0.0)
        for _ in range(rounds):
            for role in ROLES:
                with running(__file__, folder, role) as server:
                    made = requests(role, count, at_once)
                    seconds, _ = run(send(server.port, made, connections))
                best[role] = max(best[role], count / seconds)
        for role in ROLES[1:]:
            ratio = best[role] / best["whole"]
            yield (
                f"{role} database, {name}",
                f"{best[role]:,.0f} a second",
                f"one database, {best['whole']:,.0f}",
                f"{ratio:.2f}",
            )


def filled(folder: str, role: Role, count: int, left_out: int) -> tuple[Store, str]:
    """A store with so many random shares, of which some are not in the common set."""
    generator, agreed = np.random.default_rng(1), agreement(role)
    store = Store(Path(folder, f"{role}-{left_out}.db"))
    store.open(agreed, role=role)
    collection = store.collection(agreed.fingerprint)
    gone = []
    for _ in range(0, count, 2**14):
        names = generator.integers(0, 256, (2**14, 16), dtype=np.uint8)
        words = generator.integers(0, 2**64, (2**14, collection.layout.width), dtype=np.uint64)
        store.receive(collection, [Arrival(collection.layout.joined(names, words).data)])
        gone.append(names[: left_out * 2**14 // count])
    store.close_collection(agreed.fingerprint)
    here = store.read(blocks.held_identifiers, collection.key)
    store.write(joint.record, collection, np.concatenate(gone), here)
    return store, agreed.fingerprint


def plain_sum(count: int, rounds: int) -> float:
    """Seconds for a plain sum of as many numbers in memory."""
    plain = np.random.default_rng(2).integers(0, 2**64, (count, WIDTH), dtype=np.uint64)
    return best_times(lambda: plain.sum(axis=0, dtype=np.uint64), rounds=rounds)[0]


def sums(folder: str, rounds: int, count: int) -> Iterator[tuple[str, ...]]:
    """Σ over a whole collection of shares, against a plain sum of as many numbers in memory."""
    baseline = plain_sum(count, rounds)
    against = f"NumPy sum, {8 * WIDTH * count / baseline / 2**30:.1f} GiB/s"
    cases: tuple[tuple[Role, int], ...] = (("first", 0), ("first", count // 128))
    for role, left_out in (*cases, ("second", count // 128)):
        store, fingerprint = filled(folder, role, count, left_out)
        with store:
            collection = store.collection(fingerprint)
            reading = partial(store.read, joint.sums_over, collection)
            (seconds,) = best_times(reading, rounds=rounds)
        yield (
            f"{role}: sums of {count:,} shares, {left_out:,} left out",
            f"{seconds:.3f} s",
            against,
            f"{baseline / seconds:.2f}",
        )
    words: npt.NDArray[np.uint64] = np.random.default_rng(3).integers(
        0, 2**64, (count // 16, 4), dtype=np.uint64
    )
    (seconds,) = best_times(lambda: sum_of_masks(words, WIDTH), rounds=1)
    yield (
        "second: expand and add masks, on one core",
        f"{count // 16 / seconds:,.0f} a second",
        against,
        f"{baseline / 16 / seconds:.2f}",
    )


def sizes() -> Iterator[tuple[str, ...]]:
    """Bytes that leave each contributor."""
    one = requests("whole", 2, 1)[0].partition(b"\r\n\r\n")[2]
    for role in ROLES[1:]:
        other = requests(role, 2, 1)[0].partition(b"\r\n\r\n")[2]
        yield (
            f"bytes of a share for the {role} database",
            str(len(other)),
            f"one submission, {len(one)}",
            f"{len(other) / len(one):.2f}",
        )


@click.command()
@click.option("--serve", "server", nargs=3, hidden=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--shares", default=2**21, show_default=True, help="How many shares are summed.")
@click.option("--fraction", default=1.0, show_default=True, help="Send so much of each load.")
def main(server: tuple[str, str, str] | None, rounds: int, shares: int, fraction: float) -> None:
    """Measure, and print a table."""
    if server:
        serve(server[0], server[1], int(server[2]))  # type: ignore[arg-type]
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [*sizes(), *ingest(folder, rounds, fraction), *sums(folder, rounds, shares)]
    table("Shares", ("what", "measured", "against", "ratio"), rows)


if __name__ == "__main__":
    main()
