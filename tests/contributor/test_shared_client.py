"""A contributor's two shares reach two real services, over connections that break."""

import sqlite3
from collections.abc import Iterator

import httpx2 as httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from blurfit import Agreement, InvalidValueError, NotInvitedError, Numeric, Schema, ServiceError
from blurfit.contributor.share import share
from blurfit.contributor.shared_client import SharedClient
from blurfit.messages.masks import expand
from blurfit.protocol.tokens import hashed, new_token
from blurfit.service.app import Limits, Service
from blurfit.store import blocks
from blurfit.store.store import Store

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))
PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 3, "admission": "anyone", "proofs": False}
RECORD = {"age": 30, "income": 50}


@pytest.fixture
def agreement() -> Agreement:
    return Agreement.propose(SCHEMA, databases=TWO, **PROMISE)


class Breaking(httpx.BaseTransport):
    """A connection that breaks some times, before the request arrives or after."""

    def __init__(self, way: httpx.BaseTransport, breaks: list[str]) -> None:
        self.way, self.breaks, self.carried = way, breaks, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        how = self.breaks.pop(0) if self.breaks else ""
        if how == "request":
            raise httpx.ConnectError("broken")
        answer = self.way.handle_request(request)
        self.carried += 1
        if how == "answer":
            raise httpx.ReadError("broken")
        return answer


@pytest.fixture
def two(agreement) -> Iterator[tuple[tuple[Store, Store], list[Breaking]]]:
    with Store() as first, Store() as second:
        first.open(agreement, role="first")
        second.open(agreement, role="second")
        with (
            TestClient(Service(first, Limits(requests_per_second=0)), base_url=TWO[0][1]) as one,
            TestClient(Service(second, Limits(requests_per_second=0)), base_url=TWO[1][1]) as other,
        ):
            yield (first, second), [Breaking(client._transport, []) for client in (one, other)]


def connected(agreement, ways, patience: float = 30.0) -> SharedClient:
    return SharedClient(agreement, transports=ways, patience=patience, pause=lambda _seconds: None)


def held(store, agreement):
    """What one of them holds: identifiers, and words."""
    collection = store.collection(agreement.fingerprint)
    parts = store.read(lambda connection: list(blocks.rows(connection, collection)))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def blurred(stores, agreement) -> np.ndarray:
    """What the two together hold, in the order of the identifiers."""
    found = []
    for store in stores:
        identifiers, words = held(store, agreement)
        found.append(words[np.argsort(identifiers.view("S16").ravel())])
    return (found[0] - expand(found[1], 5)).view(np.int64)


def test_each_database_gets_its_share(agreement, two) -> None:
    stores, ways = two
    with connected(agreement, ways) as client:
        client.check()
        receipt = client.contribute(RECORD)
    assert receipt.complete
    assert receipt.held_by == ("Office", "University")
    assert receipt.fingerprint == agreement.fingerprint
    identifiers = [held(store, agreement)[0].tobytes().hex() for store in stores]
    assert identifiers == [receipt.identifier] * 2
    assert (np.abs(blurred(stores, agreement)) < 2**31).all()


def test_each_is_sent_until_it_is_acknowledged(agreement, two) -> None:
    stores, ways = two
    ways[0].breaks[:] = ["request", "answer", "answer"]
    ways[1].breaks[:] = ["answer", "request"]
    with connected(agreement, ways) as client:
        assert client.contribute(RECORD).complete
    assert (ways[0].carried, ways[1].carried) == (3, 2)
    assert [store.count(agreement) for store in stores] == [1, 1]


@pytest.mark.parametrize("away", [0, 1])
def test_the_receipt_says_who_has_it(agreement, two, away) -> None:
    stores, ways = two
    ways[away].breaks[:] = ["request"] * 1000
    shared = share(agreement, RECORD)
    with connected(agreement, ways, patience=0.0) as client:
        receipt = client.submit(shared)
        assert not receipt.complete
        assert receipt.held_by == ((), (TWO[1][0],))[away == 0], "no share without its seed"
        assert isinstance(receipt.failures[TWO[away][0]], ServiceError)
        assert [store.count(agreement) for store in stores] == [0, 1 - away]
        ways[away].breaks.clear()
        assert client.submit(shared).complete
    assert [store.count(agreement) for store in stores] == [1, 1]


def table(tmp_path, rows: int = 25):
    lines = [f"{row},{row * 3 % 101}\n" for row in range(rows)]
    (tmp_path / "people.csv").write_text("age,income\n" + "".join(lines))
    return tmp_path / "people.csv"


@pytest.mark.parametrize("away", [0, 1])
def test_a_table_goes_on_where_it_was(agreement, two, tmp_path, away, monkeypatch) -> None:
    monkeypatch.setattr("blurfit.contributor.sending.ROWS_AT_ONCE", 6)
    stores, ways = two
    people = table(tmp_path)
    ways[away].breaks[:] = ["", "", "answer"] + ["request"] * 1000
    told = []
    with connected(agreement, ways, patience=0.0) as client:
        with pytest.raises(ServiceError):
            client.contribute_table(people)
        ways[away].breaks.clear()
        rows = client.contribute_table(people, progress=lambda done, of: told.append((done, of)))
        assert rows == 25
        assert client.contribute_table(people) == 25, "sent already: nothing is sent again"
    assert told[0] == (18, 25)
    assert told[-1] == (25, 25)
    assert [store.count(agreement) for store in stores] == [25, 25]
    assert (np.abs(blurred(stores, agreement)) < 2**31).all(), "shares of one and the same noise"
    (journal,) = tmp_path.glob("*.journal")
    with sqlite3.connect(journal) as file:
        kept = file.execute("SELECT rows, acknowledged FROM parts").fetchall()
        assert file.execute("SELECT * FROM messages").fetchall() == []
    file.close()
    assert kept == [(6, 1)] * 4 + [(1, 1)]


def test_the_part_that_was_shared_is_sent_again_as_it_was(agreement, two, tmp_path) -> None:
    _, ways = two
    people = table(tmp_path, 3)
    ways[1].breaks[:] = ["request"] * 1000
    with connected(agreement, ways, patience=0.0) as client, pytest.raises(ServiceError):
        client.contribute_table(people)
    (journal,) = tmp_path.glob("*.journal")
    with sqlite3.connect(journal) as file:
        messages = file.execute("SELECT message FROM messages ORDER BY place").fetchall()
    file.close()
    assert [len(message) for (message,) in messages] == [16 + 3 * 104, 16 + 3 * 96], "both"


def test_invitations_of_both_are_needed(tmp_path) -> None:
    agreement = Agreement.propose(SCHEMA, databases=TWO, **PROMISE | {"admission": "invited"})
    with Store() as first, Store() as second:
        tokens = [[new_token() for _ in range(4)] for _ in range(2)]
        for store, role, some in ((first, "first", tokens[0]), (second, "second", tokens[1])):
            store.open(agreement, role=role)
            store.invite(agreement.fingerprint, [hashed(one) for one in some])
        with (
            TestClient(Service(first), base_url=TWO[0][1]) as one,
            TestClient(Service(second), base_url=TWO[1][1]) as other,
            connected(agreement, [one._transport, other._transport]) as client,
        ):
            receipt = client.contribute(RECORD)
            assert receipt.held_by == ()
            assert all(isinstance(f, NotInvitedError) for f in receipt.failures.values())
            with pytest.raises(InvalidValueError, match="two invitations"):
                client.contribute(RECORD, invitations=["one"])
            assert client.contribute(RECORD, invitations=[t[0] for t in tokens]).complete
            people = table(tmp_path, 3)
            with pytest.raises(InvalidValueError, match="University for each of 3 rows"):
                client.contribute_table(people, invitations=[tokens[0], tokens[1][:2]])
            given = [some[1:] for some in tokens]
            assert client.contribute_table(people, invitations=given) == 3
            assert [s.invitations(agreement.fingerprint) for s in (first, second)] == [0, 0]


def test_only_for_split_trust() -> None:
    with pytest.raises(InvalidValueError, match="trust='shared'"):
        SharedClient(Agreement.propose(SCHEMA, **PROMISE))
