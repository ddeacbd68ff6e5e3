"""Publish where strangers sent seeds to the second of two databases that the first never heard of.

`python benchmarks/orphans.py --orphans 400000 --orphans 4200000`: twenty people whose shares both
databases have, beside so many orphans. Both services are processes of their own on SQLite; the
orphans are put into the second's store as a service would put them, before it starts.
"""

import json
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from measure import table
from served import Served, free_port, watched

from blurfit import Agreement, Numeric, Schema, protocol
from blurfit.contributor.blur import share
from blurfit.messages.submissions import Role, Shares
from blurfit.protocol import RemoteDatabase
from blurfit_server import Store
from blurfit_server.store.arrivals import Arrival

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PEOPLE = 20
_AT_ONCE = 10_000  # as many as one request may bring


@dataclass(frozen=True)
class Publication:
    """How long it took to publish, from the administrator's request to the model."""

    orphans: int
    filling: float  # seconds, to put the orphans into the store
    closing: float
    publishing: float
    first: float  # peak memory in megabytes
    second: float
    count: int  # people in the model


def fill(place: Path, agreement: Agreement, role: Role, shares: Shares, orphans: int) -> None:
    """A store with some people's shares and, at the second database, orphans."""
    generator = np.random.default_rng(1)
    with Store(place) as store:
        store.open(agreement, role=role)
        collection = store.collection(agreement.fingerprint)
        layout = shares.layout
        batches = [(shares.identifiers, shares.words)]
        for start in range(0, orphans, _AT_ONCE):
            count = min(_AT_ONCE, orphans - start)
            names = generator.integers(0, 256, (count, 16), dtype=np.uint8)
            words = generator.integers(0, 2**64, (count, shares.words.shape[1]), dtype=np.uint64)
            batches.append((names, words))
            taken = [Arrival(layout.joined(*one).data) for one in batches]
            assert all(isinstance(one, int) for one in store.receive(collection, taken))
            batches = []
        if batches:
            store.receive(collection, [Arrival(layout.joined(*batches[0]).data)])


def publish(folder: Path, orphans: int) -> Publication:
    """Fill two stores, serve them, and publish."""
    ports = free_port(), free_port()
    databases = [(f"Database {p}", f"http://127.0.0.1:{p}") for p in ports]
    agreement = Agreement.propose(
        SCHEMA,
        epsilon=300,
        delta=1e-6,
        quorum=3,
        admission="anyone",
        proofs=False,
        databases=databases,
    )
    generator = np.random.default_rng(2)
    shared = share(agreement, {c: generator.uniform(0, 100, PEOPLE) for c in ("age", "income")})
    secret = folder / "peer.txt"
    protocol.write_token(secret, protocol.new_token())
    began = time.perf_counter()
    services = []
    sides: list[tuple[Role, Shares, int, int]] = [
        ("first", shared.first, ports[0], 0),
        ("second", shared.second, ports[1], orphans),
    ]
    for role, shares, port, here in sides:
        home = folder / role
        home.mkdir()
        fill(home / "store.db", agreement, role, shares, here)
        place = f"sqlite:///{home / 'store.db'}"
        services.append(Served(place, home, ("--peer-token-file", str(secret)), port))
    filling = time.perf_counter() - began
    with ExitStack() as stack:
        first, second = (stack.enter_context(one) for one in services)
        one, other = (
            stack.enter_context(RemoteDatabase(s.url, token=s.token, patience=600))
            for s in (first, second)
        )
        seen = stack.enter_context(watched(first.pid)), stack.enter_context(watched(second.pid))
        began = time.perf_counter()
        other.close_collection(agreement)
        closed = time.perf_counter()
        model = one.publish(agreement)
        done = time.perf_counter()
    memory = seen[0].megabytes, seen[1].megabytes
    return Publication(orphans, filling, closed - began, done - closed, *memory, model.count)


@click.command()
@click.option("--orphans", default=(400_000, 4_200_000), multiple=True, show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write it there, too.")
def main(orphans: tuple[int, ...], path: Path | None) -> None:
    """Publish beside so many orphans, and print a table."""
    found = []
    for count in orphans:
        with tempfile.TemporaryDirectory() as folder:
            found.append(publish(Path(folder), count))
        click.echo(found[-1], err=True)
    rows = [
        [
            *(f"{one.orphans:,}", f"{one.closing:.2f} s", f"{one.publishing:.1f} s"),
            *(f"{one.first:.0f} MB", f"{one.second:.0f} MB", str(one.count)),
        ]
        for one in found
    ]
    heads = ("orphans", "close", "publish", "memory: first", "second", "in the model")
    table("Publishing beside orphans", heads, rows)
    if path is not None:
        path.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n")


if __name__ == "__main__":
    main()
