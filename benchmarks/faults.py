"""What attacks and faults do to the service, and to the people who send meanwhile: one table.

`python benchmarks/faults.py`, some two minutes: the real service in processes of its own, first on
SQLite, and then with two workers on PostgreSQL. For each attack there are windows without and with
it, in turns; throughput is that of 32 people who send one submission after another, each from an
address of their own. Peak memory is that of all processes of the service during the attack. At the
end the store is read: whatever was acknowledged must be there, and once.

Attackers, people and service share one machine, and attackers yield to the others (`nice`), so that
what is measured is what the service does about them, and not what they take of the processor.
"""

import json
import multiprocessing
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import honest
import numpy as np
import strangers
from honest import Tally
from rich.console import Console
from rich.table import Table
from served import Served, free_port, watched
from strangers import Target

from blurfit import Agreement, Numeric, Schema, perturb_table
from blurfit.protocol import RemoteDatabase
from blurfit_server import Store

GOAL_MEGABYTES, GOAL_RATIO = 300.0, 0.5
SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
WIDE = Schema(
    features=[Numeric(f"x{place}", 0, 1) for place in range(60)], target=Numeric("y", 0, 1)
)
PROMISE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "quorum": 1000, "admission": "anyone"}
_SETTLING = 0.4  # seconds after an attack began or ended, that are in no window
_context = multiprocessing.get_context("fork")  # each is there at once


@dataclass(frozen=True)
class Attack:
    """Something that strangers do: on how many connections, and from how many addresses."""

    name: str
    deed: str
    target: Target
    connections: int
    addresses: int = 1
    peer: str | None = None


@dataclass
class Finding:
    """What came of an attack; people's submissions a second without and with it, by window."""

    attack: str
    megabytes: float = 0.0
    quiet: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)
    failures: int = 0
    unanswered: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0

    @property
    def ratio(self) -> float:
        """Of the medians."""
        quiet = statistics.median(self.quiet)
        return statistics.median(self.during) / quiet if quiet else float("nan")


def new_tally() -> Tally:
    """Counts in memory that processes share."""
    attack, acknowledged, failures, unanswered = (
        _context.Value("q", 0, lock=False) for _ in range(4)
    )
    return Tally(attack, acknowledged, failures, unanswered, _context.Event())


@dataclass(eq=False)
class Scene:
    """A service with people who send, and one attack after the other."""

    service: Served
    agreement: Agreement
    seconds: float  # of a window
    rounds: int
    findings: list[Finding]
    tally: Tally = field(default_factory=lambda: new_tally())

    @contextmanager
    def with_people(self) -> Iterator[None]:
        """People send meanwhile; afterwards the store is compared with what they were told."""
        folder = self.service.folder
        self.agreement.save(folder / "agreement.json")
        told = folder / "acknowledged"
        sending = _context.Process(
            target=honest.main,
            args=(self.service.port, str(folder / "agreement.json"), str(told), self.tally),
            daemon=True,
        )
        sending.start()
        while not self.tally.acknowledged.value:
            time.sleep(0.05)
        first = len(self.findings)
        try:
            yield
        finally:
            self.tally.stop.set()
            sending.join(60)
        self._compare(honest.acknowledged(told), self.findings[first:])

    def _compare(self, told: list[tuple[int, bytes]], findings: list[Finding]) -> None:
        with Store(self.service.place) as store:
            stored = Counter(
                one.tobytes()
                for part in store.submissions(self.agreement.fingerprint)
                for one in part.identifiers
            )
            counted = store.status(self.agreement.fingerprint).count
            if store.publish(self.agreement).count != counted or counted != stored.total():
                raise SystemExit("The model is not of those who are stored.")
        for number, name in told:
            finding = findings[max(0, number - 1)]
            finding.acknowledged += 1
            finding.lost += stored[name] == 0
            finding.doubled += stored[name] > 1

    def rate(self, seconds: float | None = None) -> float:
        """Submissions a second that are acknowledged in a window from now."""
        before, began = self.tally.acknowledged.value, time.perf_counter()
        time.sleep(seconds or self.seconds)
        took = time.perf_counter() - began
        return float(self.tally.acknowledged.value - before) / took

    @contextmanager
    def observed(self, name: str) -> Iterator[Finding]:
        """A row of the table, of which whoever attacks fills in the windows."""
        finding, tally = Finding(name), self.tally
        self.findings.append(finding)
        tally.attack.value += 1
        failures, unanswered = tally.failures.value, tally.unanswered.value
        with watched(self.service.pid) as peak:
            yield finding
        finding.megabytes = peak.megabytes
        finding.failures = tally.failures.value - failures
        finding.unanswered = tally.unanswered.value - unanswered
        Console(stderr=True).print(row_of(finding))

    def attacked(self, attack: Attack) -> None:
        """Windows without and with an attack, in turns."""
        go, ready, end = (_context.Event() for _ in range(3))
        given = (attack.deed, attack.peer, attack.target, attack.connections, attack.addresses)
        process = _context.Process(
            target=strangers.main, args=(*given, go, ready, end), daemon=True
        )
        process.start()
        ready.wait(60)
        try:
            with self.observed(attack.name) as finding:
                self._turns(finding, go.set, go.clear)
        finally:
            end.set()
            process.kill()
            process.join()

    def faulted(self, name: str, begin: Callable[[], object], stop: Callable[[], object]) -> None:
        """Windows without and with a fault, in turns."""
        with self.observed(name) as finding:
            self._turns(finding, begin, stop)

    def _turns(
        self, finding: Finding, begin: Callable[[], object], stop: Callable[[], object]
    ) -> None:
        for _ in range(self.rounds):
            finding.quiet.append(self.rate())
            begin()
            time.sleep(_SETTLING)
            finding.during.append(self.rate())
            stop()
            time.sleep(3 * _SETTLING)  # what is still under way ends


# ---- what is attacked


def path_of(agreement: Agreement) -> str:
    """Where its submissions go."""
    return f"/collections/{agreement.fingerprint}/submissions"


def opened(service: Served, *agreements: Agreement, role: Any = "whole") -> None:
    """Open collections at a service."""
    with RemoteDatabase(service.url, token=service.token) as database:
        for one in agreements:
            database.open(one, role=role)


def known_batch(service: Served, agreement: Agreement, rows: int = 10_000) -> bytes:
    """A batch that is stored already."""
    generator = np.random.default_rng(1)
    batch = perturb_table(
        agreement, {c: generator.uniform(0, 100, rows) for c in ("age", "income")}
    )
    with Store(service.place) as store:
        store.add(agreement, batch)
    return batch.to_bytes()


def long_json(agreement: Agreement) -> bytes:
    """As many submissions as fit the longest body in JSON that is taken."""
    generator = np.random.default_rng(2)
    names = [one.name for one in WIDE.features] + ["y"]
    some = perturb_table(agreement, {name: generator.random(80) for name in names}).to_json()
    return some.encode()[: 4 * 2**20]


def attacks_on(service: Served, people: Agreement, wide: Agreement) -> Iterator[Attack]:
    """Attacks on the front."""
    port = service.port
    front, large = Target(port), Target(port, path_of(wide))
    known = Target(port, path_of(people), known_batch(service, people))
    text = Target(port, path_of(wide), long_json(wide), "application/json")
    yield Attack("heads without end", "huge_head", front, 8)
    yield Attack("URLs without end", "endless_url", front, 8)
    yield Attack("1,100 silent sockets", "silence", front, 1100)
    yield Attack("200 slow bodies", "slow_body", large, 200)
    yield Attack("20 unfinished bodies of 31 MiB", "unfinished_body", large, 20)
    yield Attack("the same from 20 addresses", "unfinished_body", large, 20, 20)
    yield Attack("JSON of 4 MiB, 8 addresses", "whole_bodies", text, 8, 8)
    yield Attack("10,000 known names again and again", "whole_bodies", known, 8)
    yield Attack("the same from 16 addresses", "whole_bodies", known, 16, 16)
    yield Attack("nonsense from 5,000 addresses", "nonsense", large, 64, 5000)


def hostile_peers(service: Served) -> Iterator[Attack]:
    """Another database that an agreement names, and that does not mean well."""
    for kind in strangers.PEERS:
        port = free_port()
        databases = [("First", service.url), ("Second", f"http://127.0.0.1:{port}")]
        agreement = Agreement.propose(SCHEMA, **PROMISE, proofs=False, databases=databases)
        opened(service, agreement, role="first")
        path = f"/collections/{agreement.fingerprint}/publish"
        target = Target(service.port, path, token=service.token, peer=port)
        yield Attack(f"another database, {kind}", "lured", target, 4, 4, kind)


def on_sqlite(folder: Path, findings: list[Finding], seconds: float, rounds: int) -> None:
    """One process on SQLite."""
    people, wide = (Agreement.propose(one, **PROMISE) for one in (SCHEMA, WIDE))
    with Served(
        f"sqlite:///{folder / 'store.db'}", folder, ("--peer-token-file", secret(folder))
    ) as service:
        opened(service, people, wide)
        scene = Scene(service, people, seconds, rounds, findings)
        with scene.with_people():
            for attack in (*attacks_on(service, people, wide), *hostile_peers(service)):
                scene.attacked(attack)
            with scene.observed("killed, and started again") as finding:
                finding.quiet.append(scene.rate())
                began, before = time.perf_counter(), scene.tally.acknowledged.value
                service.kill()
                service.start()
                scene.rate()
                took = time.perf_counter() - began
                finding.during.append((scene.tally.acknowledged.value - before) / took)


def on_postgresql(
    folder: Path, url: str, findings: list[Finding], seconds: float, rounds: int
) -> None:
    """Two workers on PostgreSQL."""
    import psycopg

    people, wide = (Agreement.propose(one, **PROMISE) for one in (SCHEMA, WIDE))
    with ExitStack() as stack:
        service = stack.enter_context(Served(url, folder, ("--workers", "2")))
        opened(service, people, wide)
        scene = Scene(service, people, seconds, rounds, findings)
        stack.enter_context(scene.with_people())
        holder = stack.enter_context(psycopg.connect(url))
        names = [one.name for one in WIDE.features] + ["y"]
        one = perturb_table(wide, {name: np.array([0.5]) for name in names})
        locked = Target(service.port, path_of(wide), next(iter(one)).to_bytes())
        holder.execute(
            "SELECT 1 FROM collections WHERE fingerprint = %s FOR UPDATE", [wide.fingerprint]
        )
        name = "a collection's row is locked, and 8 send there"
        scene.attacked(Attack(name, "whole_bodies", locked, 8, 8))
        holder.rollback()

        def kill_one() -> None:
            listed = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text()
            os.kill(int(listed.split()[0]), signal.SIGKILL)

        scene.faulted("one of two workers is killed", kill_one, lambda: None)


def secret(folder: Path) -> str:
    """A file with a secret that this service shares with another database."""
    from blurfit import protocol

    path = folder / "peer.txt"
    protocol.write_token(path, protocol.new_token())
    return str(path)


@contextmanager
def a_postgresql(url: str | None) -> Iterator[str]:
    """The one that was named, or that of the tests."""
    if url is not None:
        yield url
        return
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from server_support import postgres  # type: ignore[import-not-found]

    with postgres.server() as server:
        yield postgres.fresh_database(server)


# ---- what is shown


def row_of(one: Finding) -> str:
    """A line of what was found."""
    return "  ".join(columns_of(one))


def columns_of(one: Finding) -> tuple[str, ...]:
    """A row of the table."""
    quiet, during = statistics.median(one.quiet), statistics.median(one.during)
    return (
        one.attack,
        f"{one.megabytes:.0f}",
        f"{quiet:,.0f}",
        f"{during:,.0f}",
        f"{one.ratio:.2f}",
        *(f"{number:,}" for number in (one.failures, one.unanswered, one.acknowledged)),
        *(f"{number:,}" for number in (one.lost, one.doubled)),
    )


@click.command()
@click.option("--seconds", default=1.5, show_default=True, help="How long a window is.")
@click.option("--rounds", default=3, show_default=True, help="Windows of each kind.")
@click.option("--postgresql", "url", help="An empty database; else one of the tests' own.")
@click.option("--only", type=click.Choice(["sqlite", "postgresql"]), help="One half of it.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write it there, too.")
def main(seconds: float, rounds: int, url: str | None, only: str | None, path: Path | None) -> None:
    """Attack, measure, and print one table."""
    began, load = time.perf_counter(), os.getloadavg()[0]
    findings: list[Finding] = []
    if only != "postgresql":
        with tempfile.TemporaryDirectory() as folder:
            on_sqlite(Path(folder), findings, seconds, rounds)
    if only != "sqlite":
        with tempfile.TemporaryDirectory() as folder, a_postgresql(url) as place:
            on_postgresql(Path(folder), place, findings, seconds, rounds)
    table = Table(
        *("attack", "MB", "quiet, a second", "during", "ratio", "5xx", "unanswered"),
        *("acknowledged", "lost", "doubled"),
        title=f"{os.cpu_count()} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after, "
        f"{time.perf_counter() - began:.0f} s",
    )
    for one in findings:
        missed = one.megabytes > GOAL_MEGABYTES or one.ratio < GOAL_RATIO
        table.add_row(*columns_of(one), style="bold" if missed else "")
    Console(width=150).print(table)
    if path is not None:
        found = [asdict(one) | {"ratio": one.ratio} for one in findings]
        path.write_text(json.dumps({"load": load, "findings": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
