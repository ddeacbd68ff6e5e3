"""What one stranger who keeps to her rate may take from everyone else, and from memory.

`python benchmarks/floods.py`, some two minutes: the real service on SQLite, 32 people who send one
submission after another, and one flood after another, each beside windows without it. A flood by
whoever asks for the signing key, which costs next to nothing, is the control: attackers and service
share this machine, so what counts is throughput during a flood in relation to that during the
control, of which there is one with few connections and one with as many as the larger floods have
from an address. Memory is that of the service: at most during a flood, and five seconds after it.

At last the service is told to end while it computes.
"""

import json
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from faults import GOAL_MEGABYTES, GOAL_RATIO, PROMISE, SCHEMA, Attack, Finding, Scene, opened
from rich.console import Console
from rich.table import Table
from served import Served, resident
from strangers import Target

from blurfit import Agreement, Numeric, Schema, perturb_table
from blurfit.messages.signing import Signer
from blurfit_server import Store
from blurfit_server.cli.serve import signing_key_in

_TEXT = "application/json"
_PATIENCE = 40.0  # seconds
_CONTROL = "control: the signing key"


def published(place: str, width: int, key: str) -> str:
    """A collection with so many columns that has been published, by its fingerprint."""
    names = [f"x{number}" for number in range(width - 1)]
    schema = Schema([Numeric(one, 0, 1) for one in names], Numeric("y", 0, 1))
    terms = PROMISE | {"quorum": 4, "epsilon": 100, "signing_keys": [key]}
    agreement = Agreement.propose(schema, **terms)
    generator = np.random.default_rng(1)
    people = {name: generator.random(4) for name in (*names, "y")}
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, people))
        store.release(agreement)
    return agreement.fingerprint


def name_twice(size: int) -> bytes:
    """Secrets of so many bytes in JSON, in which a name appears twice."""
    secrets = ",".join(f'"{number:064x}"' for number in range(size // 67))
    return f'{{"secrets":[{secrets}],"secrets":[]}}'.encode()


def floods_of(service: Served, people: Agreement, kept: dict[int, str]) -> Iterator[Attack]:
    """The control, and then what may be worse; at most so many connections, from here alone."""
    port, here = service.port, f"/collections/{people.fingerprint}"
    twice = Target(port, f"{here}/withdrawals", name_twice(950_000), _TEXT)
    half = Target(port, f"{here}/withdrawals", b" " * 2**20, _TEXT)
    yield Attack(_CONTROL, "reading", Target(port, "/signing-key"), 8)
    yield Attack(f"{_CONTROL}, 250 connections", "reading", Target(port, "/signing-key"), 250)
    yield Attack("the OpenAPI document", "reading", Target(port, "/openapi.json"), 8)
    for width, fingerprint in kept.items():
        path = f"/collections/{fingerprint}"
        yield Attack(f"moments, d = {width:,}", "reading", Target(port, f"{path}/moments"), 8)
    path = f"/collections/{kept[min(kept)]}"
    words = Target(port, f"{path}/statement?format=html")
    yield Attack(f"statements, d = {min(kept):,}", "reading", words, 8)
    yield Attack("withdrawals of 0.95 MB with a name twice", "whole_bodies", twice, 4)
    yield Attack("half-sent withdrawals, 250 connections", "all_but_a_little", half, 250)
    yield Attack("the same from each of 6 addresses", "all_but_a_little", half, 1500, 6)


def seconds_to_stop(service: Served, requests: int = 4) -> float:
    """From SIGTERM to the end, while documents are read for an administrator."""
    text = b"{" + b",".join(b'"%d":0' % number for number in range(90_000)) + b',"89999":0}'
    headers = {"content-type": _TEXT, "authorization": f"Bearer {service.token}"}

    def ask() -> None:
        given = urllib.request.Request(f"{service.url}/collections", text, headers)
        with suppress(OSError):
            urllib.request.urlopen(given, timeout=120).close()

    asking = [threading.Thread(target=ask, daemon=True) for _ in range(requests)]
    for one in asking:
        one.start()
    time.sleep(1.0)
    assert service.process is not None
    service.process.terminate()
    began = time.perf_counter()
    with suppress(subprocess.TimeoutExpired):
        service.process.wait(_PATIENCE)
    service.kill()
    return time.perf_counter() - began


@click.command()
@click.option("--seconds", default=1.5, show_default=True, help="How long a window is.")
@click.option("--rounds", default=2, show_default=True, help="Windows of each kind.")
@click.option("--widths", default="100,300,1000", help="How wide what is read is.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write it there, too.")
def main(seconds: float, rounds: int, widths: str, path: Path | None) -> None:
    """Flood, measure, and print one table."""
    findings: list[Finding] = []
    after: list[float] = []
    many: list[bool] = []  # whether on many connections
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place, people = f"sqlite:///{folder / 'store.db'}", Agreement.propose(SCHEMA, **PROMISE)
        private, _ = signing_key_in(folder / "store.db.signing-key")
        key = Signer(str(private)).key
        kept = {width: published(place, width, key) for width in map(int, widths.split(","))}
        with Served(place, folder) as service:
            opened(service, people)
            scene = Scene(service, people, seconds, rounds, findings)
            before = resident(service.pid) / 1e6
            with scene.with_people():
                for number, flood in enumerate(floods_of(service, people, kept), start=3):
                    many.append(flood.connections >= 250)
                    scene.attacked(replace(flood, target=replace(flood.target, network=number)))
                    time.sleep(5)
                    after.append(resident(service.pid) / 1e6)
            stopped = seconds_to_stop(service)
    controls = [findings[number].ratio for number in many]  # the first, or the second
    table = Table(
        *("flood", "MB at most", "MB after", "quiet, a second", "during", "ratio", "of control"),
        title=f"{before:.0f} MB before; ended {stopped:.1f} s after SIGTERM",
    )
    for one, left, control in zip(findings, after, controls, strict=True):
        of_control = one.ratio / control
        shown = (one.megabytes, left, statistics.median(one.quiet), statistics.median(one.during))
        missed = one.megabytes > GOAL_MEGABYTES or of_control < GOAL_RATIO
        table.add_row(
            *(one.attack, *(f"{number:,.0f}" for number in shown)),
            *(f"{one.ratio:.2f}", f"{of_control:.2f}"),
            style="bold" if missed else "",
        )
    Console(width=130).print(table)
    if path is not None:
        found = [vars(one) | {"ratio": one.ratio} for one in findings]
        path.write_text(json.dumps({"stopped": stopped, "findings": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
