"""Stores of both kinds: a SQLite file, and a database on a real PostgreSQL server."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.learning.sums import Totals
from blurfit.messages.files import Writer
from blurfit.messages.submissions import Submissions
from blurfit.schema.schema import Numeric, Schema
from blurfit.store.arrivals import Arrival
from support import postgres

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
# For what a service decides before it asks its store: it decides alike whatever that is.
whatever_it_keeps = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
# For what is collected in files, as `input` alone is.
either_mechanism = pytest.mark.parametrize("agreement", ["moment", "input"], indirect=True)
PEOPLE = {"age": np.linspace(0, 100, 40), "income": np.linspace(0, 100, 40)}


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
    with tempfile.TemporaryDirectory(prefix="blurfit-", dir=postgres.memory()) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request) -> str:
    """Where a store can be opened, again and again."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('in_memory') / 'collection.db'}"
    return request.getfixturevalue("places").fresh()


@pytest.fixture
def agreement(request) -> Agreement:
    """By `moment`, which stores collect, unless a test asks for `input`."""
    return propose(mechanism=getattr(request, "param", "moment"))


def propose(**changes) -> Agreement:
    """With little noise, so that few people make a model without anything being sampled."""
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 20, "admission": "anyone"}
    if changes.get("mechanism") == "input":
        promise["weight_bound"] = 2.0
    return Agreement.propose(SCHEMA, **promise | changes)


def write_file(path: Path, agreement: Agreement, table: Submissions) -> str:
    """Write submissions into a file, in a folder that is made if need be; return its name."""
    path.parent.mkdir(exist_ok=True)
    with Writer(path, agreement.layout) as writer:
        writer.add(table)
    return str(path)


def arrival(table: Submissions, invitations: Sequence[bytes] = ()) -> Arrival:
    """Some submissions as a request brings them."""
    return Arrival(table.rows(table.layout).data, invitations)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Do each of these in a thread of its own; what each returns, or the first error."""
    with ThreadPoolExecutor(len(works)) as everyone:
        return [one.result() for one in [everyone.submit(work) for work in works]]


def totals_of(agreement: Agreement, *tables: Submissions) -> Totals:
    """What some submissions come to, by a plain way: exact sums of fractions, rounded once."""
    numbers = [[Fraction(one) for one in row] for table in tables for row in table.numbers.tolist()]
    if agreement.mechanism == "input":
        d = agreement.schema.dimension
        upper = [(i, j) for i in range(d) for j in range(i, d)]
        numbers = [[*(row[i] * row[j] for i, j in upper), *row[d:]] for row in numbers]
    sums = [float(sum(column)) for column in zip(*numbers, strict=True)]
    return Totals(len(numbers), np.array(sums), agreement.fingerprint)
