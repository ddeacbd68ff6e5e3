"""Two shares of a record reach two databases, once, whatever is lost."""

import sqlite3
from collections.abc import Iterator

import numpy as np
import pytest

from blurfit import Agreement, Client, NotInvitedError, Numeric, Schema
from blurfit.contributor.blur import share
from blurfit.errors import (
    InvalidValueError,
    ServiceError,
)
from blurfit.messages.submissions import expand
from blurfit.protocol import hashed, new_token
from blurfit_server.store import blocks
from blurfit_server.store.store import Store
from server_support.lines import Line, answering
from support.sharing import TWO

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 3, "admission": "anyone", "proofs": False}
PERSON = {"age": 30, "income": 50}


@pytest.fixture
def agreement() -> Agreement:
    return Agreement.propose(SCHEMA, databases=TWO, **PROMISE)


@pytest.fixture
def stores(agreement) -> Iterator[tuple[Store, Store]]:
    with Store() as first, Store() as second:
        first.open(agreement, role="first")
        second.open(agreement, role="second")
        yield first, second


@pytest.fixture
def ways(stores) -> Iterator[tuple[Line, Line]]:
    with answering(*stores) as found:
        yield found


def reached(agreement, ways, patience: float = 30.0) -> Client:
    return Client.of(agreement, transports=ways, patience=patience, pause=lambda _seconds: None)


def kept_by(store, agreement):
    """What one of them holds: identifiers, and words."""
    collection = store.collection(agreement.fingerprint)
    parts = store.read(lambda connection: list(blocks.rows(connection, collection)))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def blurred(stores, agreement) -> np.ndarray:
    """What the two together hold, in the order of the identifiers."""
    found = []
    for store in stores:
        identifiers, words = kept_by(store, agreement)
        found.append(words[np.argsort(identifiers.view("S16").ravel())])
    return (found[0] - expand(found[1], 5)).view(np.int64)


@pytest.mark.parametrize("away", [0, 1])
def test_no_share_without_its_seed_and_the_same_again_later(agreement, stores, ways, away) -> None:
    ways[away].fates[:] = ["lose request"] * 1000
    shared = share(agreement, PERSON)
    with reached(agreement, ways, patience=0.0) as client:
        with pytest.raises(ServiceError, match="lost on its way"):
            client.submit(shared)
        assert [store.count(agreement) for store in stores] == [0, 1 - away]
        ways[away].fates.clear()
        assert client.submit(shared) == 1
        assert client.submit(shared) == 0, "it is there"
    assert [store.count(agreement) for store in stores] == [1, 1]


def table(tmp_path, rows: int = 25):
    lines = [f"{row},{row * 3 % 101}\n" for row in range(rows)]
    (tmp_path / "people.csv").write_text("age,income\n" + "".join(lines))
    return tmp_path / "people.csv"


@pytest.mark.parametrize("away", [0, 1])
def test_a_table_goes_on_where_it_was(agreement, stores, ways, tmp_path, away, monkeypatch) -> None:
    monkeypatch.setattr("blurfit.contributor.sending.ROWS_AT_ONCE", 6)
    people = table(tmp_path)
    ways[away].fates[:] = ["fine", "fine", "lose answer"] + ["lose request"] * 1000
    told = []
    with reached(agreement, ways, patience=0.0) as client:
        with pytest.raises(ServiceError):
            client.contribute_table(agreement, people)
        ways[away].fates.clear()
        rows = client.contribute_table(
            agreement, people, progress=lambda done, of: told.append((done, of))
        )
        assert rows == 25
        assert client.contribute_table(agreement, people) == 25, (
            "sent already: nothing is sent again"
        )
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


def test_invitations_of_both_are_needed(tmp_path) -> None:
    agreement = Agreement.propose(SCHEMA, databases=TWO, **PROMISE | {"admission": "invited"})
    with Store() as first, Store() as second:
        tokens = [[new_token() for _ in range(4)] for _ in range(2)]
        for store, role, some in ((first, "first", tokens[0]), (second, "second", tokens[1])):
            store.open(agreement, role=role)
            store.invite(agreement.fingerprint, [hashed(one) for one in some])
        with answering(first, second) as ways, reached(agreement, ways) as client:
            with pytest.raises(NotInvitedError):
                client.contribute(agreement, PERSON)
            assert [one.count(agreement) for one in (first, second)] == [0, 0]
            assert not ways[0].sent, "the seed was refused, and no share has left"
            with pytest.raises(InvalidValueError, match="two invitations"):
                client.contribute(agreement, PERSON, invitations=["one"])
            client.contribute(agreement, PERSON, invitations=[t[0] for t in tokens])
            people = table(tmp_path, 3)
            with pytest.raises(InvalidValueError, match="University for each of 3 rows"):
                client.contribute_table(agreement, people, invitations=[tokens[0], tokens[1][:2]])
            with pytest.raises(InvalidValueError, match="a list from each database"):
                client.contribute_table(agreement, people, invitations=tokens[0][:2])
            given = [some[1:] for some in tokens]
            assert client.contribute_table(agreement, people, invitations=given) == 3
            assert [s.unused_invitations(agreement.fingerprint) for s in (first, second)] == [0, 0]


def test_databases_are_those_of_the_agreement(agreement, tmp_path) -> None:
    """One place says so, whatever is asked for; nobody sends the share where the seed goes."""
    alone = Agreement.propose(SCHEMA, **PROMISE)
    urls = [url for _, url in TWO]
    people = table(tmp_path, 3)
    for given, other in ((urls, alone), (urls[:1], agreement), (urls[::-1], agreement)):
        with Client(*given, patience=0.0) as client:
            for attempt in (
                lambda client=client, other=other: client.contribute(other, PERSON),
                lambda client=client, other=other: client.contribute_table(other, people),
                lambda client=client, other=other: client.current(other),
            ):
                with pytest.raises(InvalidValueError, match="Expected a client for"):
                    attempt()
    assert not list(tmp_path.glob("*.journal"))
    with pytest.raises(InvalidValueError, match="names its two databases"):
        Client.of(agreement, urls[0])
    with pytest.raises(InvalidValueError, match="address of a service"):
        Client.of(alone)
