"""Stores of both kinds: a SQLite file, and a database on a real PostgreSQL server."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from blurfit.messages.submissions import Submissions
from blurfit_server.store.arrivals import Arrival
from server_support import postgres
from support.memory import memory

# For what a service decides before it asks its store: it decides alike whatever that is.
whatever_it_keeps = pytest.mark.parametrize("place", ["sqlite"], indirect=True)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    with postgres.server() as url:
        yield url


@pytest.fixture(scope="session")
def places(postgresql) -> Iterator[postgres.Places]:
    with postgres.Places.on(postgresql) as found:
        yield found


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A folder that waits for no disk, where there is one.

    What is written survives the kill of a process as it does on a disk: nothing that a test can do
    from within loses more.
    """
    with tempfile.TemporaryDirectory(prefix="blurfit-", dir=memory()) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request) -> str:
    """Where a store can be opened, again and again."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('in_memory') / 'collection.db'}"
    return request.getfixturevalue("places").fresh()


def arrival(table: Submissions, invitations: Sequence[bytes] = ()) -> Arrival:
    """Some submissions as a request brings them."""
    return Arrival(table.rows(table.layout).data, invitations)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Do each of these in a thread of its own; what each returns, or the first error."""
    with ThreadPoolExecutor(len(works)) as everyone:
        return [one.result() for one in [everyone.submit(work) for work in works]]
