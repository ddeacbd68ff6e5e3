"""What the demonstrations share: people who do not exist, a service in a thread, and a bar."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from blurfit.protocol import tokens
from blurfit.service.app import Limits, Service
from blurfit.service.remote import RemoteDatabase
from blurfit.service.server import in_a_thread
from blurfit.simulation import Census, make_census
from blurfit.store.store import Store

EPSILON, DELTA = 1.0, 1e-6
CONTRIBUTORS, HELD_OUT = 50_000, 10_000


def people_of(contributors: int) -> tuple[Census, Census]:
    """Those who take part, and others to test a model on."""
    people = make_census(contributors + HELD_OUT, seed=2026)
    return people.head(contributors), people.take(HELD_OUT, start=contributors)


def bar(console: Console) -> Progress:
    """How many have sent what they blurred."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=console)


@dataclass(frozen=True)
class Running:
    """A service on this machine: who runs it, where it is, and its administrator's token."""

    name: str
    url: str
    store: Store
    token: str

    def administer(self) -> RemoteDatabase:
        """As its administrator sees it."""
        return RemoteDatabase(self.url, token=self.token)


@contextmanager
def running_service(name: str, peer_token: str | None = None) -> Iterator[Running]:
    """A service in a thread, at a free port; its store is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "collection.db") as store:
        token = tokens.new_token()
        store.appoint(tokens.hashed(token))
        app = Service(store, Limits(requests_per_second=0), peer_token=peer_token)
        with in_a_thread(app) as url:
            yield Running(name, url, store, token)
