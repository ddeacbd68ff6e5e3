"""Two shares of a record reach two databases, once, whatever is lost; of a plan, in one wave."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx2 as httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from blurfit import Agreement, Client, NotInvitedError, Numeric, Schema
from blurfit.contributor.account import Ledger
from blurfit.contributor.blur import share
from blurfit.contributor.sending import default_journal
from blurfit.errors import (
    BetweenWavesError,
    BlurfitError,
    ClosedError,
    ConflictError,
    InvalidValueError,
    NotCertifiedError,
    OtherGroupError,
    ServiceError,
    WaveClosedError,
)
from blurfit.messages.masks import expand
from blurfit.messages.shares import ShareLayout
from blurfit.protocol.tokens import hashed, new_token
from blurfit.service import leading
from blurfit.service.app import Limits, Service
from blurfit.store import blocks, plans
from blurfit.store.store import Store
from support.joint_plans import Both, both, joint_plan
from support.lots import toss
from support.plans import people, rows, written
from support.sharing import TWO

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 3, "admission": "anyone", "proofs": False}
PERSON = {"age": 30, "income": 50}
PLAN = joint_plan()
FIRST, SECOND = PLAN.quorums
RECORD = {"age": 40, "education": 12, "region": "west", "married": 1, "income": 30_000}
COLUMNS = ("age", "education", "region", "married", "income")


@dataclass
class Line(httpx.BaseTransport):
    """The way to one database: what happens before or instead of each POST, in turn."""

    way: httpx.BaseTransport
    fates: list = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    answers: dict = field(default_factory=dict)  # by the end of a path: another answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for path, answer in self.answers.items():
            if request.url.path.endswith(path):
                return httpx.Response(200, content=answer)
        if request.method != "POST":
            return self.way.handle_request(request)
        fate = self.fates.pop(0) if self.fates else "fine"
        if callable(fate):
            fate = fate() or "fine"
        if fate == "lose request":
            raise httpx.ConnectError("lost on its way")
        self.sent.append(request.content)
        answer = self.way.handle_request(request)
        answer.read()
        if fate == "lose answer":
            raise httpx.ReadError("the answer was lost")
        return answer


@pytest.fixture(autouse=True)
def a_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BLURFIT_HOME", str(tmp_path / "home"))
    toss(monkeypatch, 1)


@contextmanager
def answering(first: Store, second: Store) -> Iterator[tuple[Line, Line]]:
    """The services of two databases in this process."""
    free = Limits(requests_per_second=0)
    with (
        TestClient(Service(first, free), base_url=TWO[0][1]) as one,
        TestClient(Service(second, free), base_url=TWO[1][1]) as other,
    ):
        yield Line(one._transport), Line(other._transport)


# ---- one agreement


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


def test_each_database_gets_its_share(agreement, stores, ways) -> None:
    with reached(agreement, ways) as client:
        client.check(agreement)
        receipt = client.contribute(agreement, PERSON)
    assert receipt.services == tuple(url for _, url in TWO)
    assert receipt.fingerprint == agreement.fingerprint
    identifiers = [kept_by(store, agreement)[0].tobytes().hex() for store in stores]
    assert identifiers == [receipt.identifier] * 2
    assert (np.abs(blurred(stores, agreement)) < 2**31).all()


def test_each_is_sent_until_it_is_acknowledged(agreement, stores, ways) -> None:
    ways[0].fates[:] = ["lose request", "lose answer", "lose answer"]
    ways[1].fates[:] = ["lose answer", "lose request"]
    with reached(agreement, ways) as client:
        client.contribute(agreement, PERSON)
    assert [len(way.sent) for way in ways] == [3, 2]
    assert [store.count(agreement) for store in stores] == [1, 1]


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


def test_the_part_that_was_shared_is_sent_again_as_it_was(
    agreement, stores, ways, tmp_path
) -> None:
    people = table(tmp_path, 3)
    ways[1].fates[:] = ["lose request"] * 1000
    with reached(agreement, ways, patience=0.0) as client, pytest.raises(ServiceError):
        client.contribute_table(agreement, people)
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
            assert [s.invitations(agreement.fingerprint) for s in (first, second)] == [0, 0]


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


# ---- a plan of waves


@pytest.fixture
def two() -> Iterator[Both]:
    with both(PLAN) as opened:
        yield opened


@pytest.fixture
def lines(two) -> Iterator[tuple[Line, Line]]:
    with answering(*two.stores) as found:
        yield found


@pytest.fixture
def client(lines) -> Iterator[Client]:
    with connected(lines) as client:
        yield client


def connected(lines, patience: float = 0.0) -> Client:
    return Client.of(PLAN, transports=lines, patience=patience, pause=lambda _seconds: None)


def others_fill(two: Both) -> None:
    """The open wave gets the rest of its quorum, and is released."""
    wave = two.current()
    two.send(wave.quorum - two.first.count(wave))
    two.lead()


def held(two: Both, wave, sent: bytes) -> list[bool]:
    """Whether each of the two has what was sent for a wave."""
    layout = ShareLayout(wave.fingerprint, wave.width, "seed")
    (name,) = layout.identifiers(layout.rows(sent))
    return [name.tobytes() in two.holders(side, wave.fingerprint) for side in (0, 1)]


def test_one_record_goes_to_both_once(client, two, lines) -> None:
    client.check(PLAN)
    receipt = client.contribute(PLAN, RECORD)
    first = PLAN.first()
    assert receipt.fingerprint == first.fingerprint
    assert receipt.services == tuple(one.url for one in PLAN.databases)
    for side in (0, 1):
        assert bytes.fromhex(receipt.identifier) in two.holders(side, first.fingerprint)
    assert [(one.once, one.rows) for one in Ledger().entries()] == [(PLAN.fingerprint, 1)]
    others_fill(two)
    with pytest.raises(ConflictError, match="You took part in this plan before"):
        client.contribute(PLAN, RECORD | {"age": 41})
    assert [len(line.sent) for line in lines] == [1, 1]
    another = client.contribute(PLAN, RECORD | {"age": 41}, person="another")
    assert another.fingerprint == two.current().fingerprint != first.fingerprint


def test_late_for_a_wave_the_seed_alone_has_left_and_nobody_changes_groups(
    client, two, lines
) -> None:
    first = PLAN.first()
    lines[1].fates = [lambda: others_fill(two)]
    for _ in range(2):
        with pytest.raises(OtherGroupError, match="group 1, which is complete"):
            client.contribute(PLAN, RECORD)
    (late,) = lines[1].sent
    assert held(two, first, late) == [False, False]
    assert not lines[0].sent, "no share has left"


@pytest.mark.parametrize("how", ["lose request", "lose answer"])
def test_a_seed_that_was_lost_is_sent_again_or_the_record_stays(client, two, lines, how) -> None:
    """Whether it arrived is not known; that nothing of the record has left is."""
    lines[1].fates = [how]
    with pytest.raises(ServiceError):
        client.contribute(PLAN, RECORD)
    others_fill(two)
    if how == "lose answer":  # the seed is there, so her share is still due, and too late
        with pytest.raises(WaveClosedError, match="left out"):
            client.contribute(PLAN, RECORD)
        assert lines[1].sent[0] == lines[1].sent[1]
        with pytest.raises(ConflictError, match="took part"):
            client.contribute(PLAN, RECORD)
        return
    with pytest.raises(OtherGroupError, match="complete"):
        client.contribute(PLAN, RECORD)
    assert not lines[0].sent


@pytest.mark.parametrize("how", ["lose request", "lose answer"])
def test_a_share_that_may_have_arrived_is_never_blurred_again(client, two, lines, how) -> None:
    """The answer lost, the wave changed in between: the same bytes, or left out, and no more."""
    lines[0].fates = [how]
    with pytest.raises(ServiceError):
        client.contribute(PLAN, RECORD)
    others_fill(two)
    if how == "lose answer":
        receipt = client.contribute(PLAN, RECORD)
        assert receipt.fingerprint == PLAN.first().fingerprint
        assert lines[0].sent[0] == lines[0].sent[1]
    else:
        with pytest.raises(WaveClosedError, match="left out"):
            client.contribute(PLAN, RECORD)
    assert len(set(lines[1].sent)) == 1, "one seed"
    with pytest.raises(ConflictError, match="took part"):
        client.contribute(PLAN, RECORD)
    assert two.second.count(two.current()) == 0


def test_a_table_goes_through_the_waves(client, two, lines, tmp_path, monkeypatch) -> None:
    """Rows on their way when others fill their wave are left out, and nothing of them has left; the
    others take part in their own."""
    toss(monkeypatch, 1, 2)
    table = written(tmp_path / "people.csv", rows(people(20, 9), 0, 20), COLUMNS)
    journal = default_journal(table, PLAN.first())
    two.send(5)
    lines[1].fates = [lambda: others_fill(two)]
    with pytest.raises(WaveClosedError, match="10 rows are in a group that was complete"):
        client.contribute_table(PLAN, table)
    assert two.states()[0] == ["released", "collecting"]
    assert two.first.count(two.current()) == two.second.count(two.current()) == 10
    assert [len(line.sent) for line in lines] == [1, 2]
    with pytest.raises(ConflictError, match="took part in this plan"):
        client.contribute_table(PLAN, table)
    assert journal.exists()


def test_a_table_is_resumed_where_it_was(client, two, lines, tmp_path, monkeypatch) -> None:
    toss(monkeypatch, *([1] * FIRST + [2] * 22))
    table = written(tmp_path / "people.csv", rows(people(40, 9), 0, 40), COLUMNS)
    lines[0].fates = ["lose answer"]
    with pytest.raises(ServiceError):
        client.contribute_table(PLAN, table)  # the 18 of wave 1, who have arrived
    two.lead()
    assert client.contribute_table(PLAN, table) == 40
    assert [two.first.count(one) for one in (PLAN.first(), two.current())] == [18, 22]
    assert lines[0].sent[0] == lines[0].sent[1]


def test_both_must_be_at_the_same_wave(client, two, lines) -> None:
    two.send(FIRST)
    stuck = two.follower.wave(PLAN.first())
    first_only = type(two.follower)(two.second, PLAN)

    def away(_agreement):
        found = type(stuck)(two.second, PLAN.first())
        found.release = lambda *_given: (_ for _ in ()).throw(ServiceError("away"))
        return found

    first_only.wave = away
    with pytest.raises(ServiceError):
        two.lead(first_only)
    assert two.states() == [["released", "collecting"], ["closing", "planned"]]
    with pytest.raises(BetweenWavesError, match="opens in a moment"):
        client.contribute(PLAN, RECORD)
    assert [line.sent for line in lines] == [[], []]
    two.lead()
    assert client.contribute(PLAN, RECORD).fingerprint == two.current().fingerprint


def test_a_database_that_lags_behind_is_told_from_one_that_lies(client, two, lines) -> None:
    before = PLAN.first().to_json().encode()
    others_fill(two)
    lines[1].answers = {"/agreement": before}
    with pytest.raises(BetweenWavesError, match="Office is at wave 2 and University at wave 1"):
        client.contribute(PLAN, RECORD)
    # Another map, with a release of its own that it does follow from.
    with both(PLAN) as elsewhere:
        others_fill(elsewhere)
        (text,) = elsewhere.first.read(plans.release_texts, PLAN.fingerprint)
        lines[1].answers = {
            "/agreement": elsewhere.current().to_json().encode(),
            "/releases": f"[{text}]".encode(),
        }
    with pytest.raises(NotCertifiedError, match="announce different agreements for wave 2"):
        client.contribute(PLAN, RECORD)
    # A map that follows from nothing.
    document = json.loads(two.current().to_json())
    document["wave"]["map"]["radius"] *= 2
    del document["fingerprint"]
    lines[1].answers = {"/agreement": json.dumps(document).encode()}
    with pytest.raises(BlurfitError):
        client.contribute(PLAN, RECORD)
    assert [line.sent for line in lines] == [[], []]


def test_another_plan_is_refused(client, lines) -> None:
    lines[1].answers = {"/plan": joint_plan(quorum=61).to_json().encode()}
    with pytest.raises(InvalidValueError, match="Expected the plan"):
        client.check(PLAN)


def test_after_the_end_nothing_leaves(client, two, lines) -> None:
    others_fill(two)
    leading.end(two.first, two.name, two.follower)
    with pytest.raises(ClosedError, match="come to its end"):
        client.contribute(PLAN, RECORD)
    with pytest.raises(InvalidValueError, match="two invitations"):
        client.contribute(PLAN, RECORD, invitations=["one"])
    assert [line.sent for line in lines] == [[], []]


def test_what_an_earlier_run_announced_is_written_down_before_another_client_sends_it(
    client, two, lines, tmp_path
) -> None:
    """The plan's client kept a part of which nothing had left; the wave's own client sends it."""
    table = written(tmp_path / "people.csv", rows(people(6, 9), 0, 6), COLUMNS)
    lines[1].fates = ["lose answer"]
    with pytest.raises(ServiceError):
        client.contribute_table(PLAN, table)
    others_fill(two)
    with (
        Client.of(PLAN.first(), transports=lines, patience=0.0) as pinned,
        pytest.raises(ClosedError),
    ):
        pinned.contribute_table(PLAN.first(), table)
    assert len(lines[0].sent) == 1, "the shares have left, and were refused"
    with pytest.raises(WaveClosedError, match="6 rows were blurred for an earlier wave"):
        client.contribute_table(PLAN, table)
    assert len(set(lines[1].sent)) == 1, "one blur"
    assert two.second.count(two.current()) == 0


def test_a_wave_by_itself_is_one_part_in_its_plan(client, two, lines) -> None:
    """Whoever names the wave is remembered as whoever names the plan, and a closed one is told."""
    first = PLAN.first()
    assert client.contribute(first, RECORD).fingerprint == first.fingerprint
    for agreed in (first, PLAN):
        with pytest.raises(ConflictError, match="nobody takes part twice"):
            client.contribute(agreed, RECORD)
    others_fill(two)
    with pytest.raises(WaveClosedError, match="nothing was blurred or sent"):
        client.contribute(first, RECORD, person="another")
    assert [len(line.sent) for line in lines] == [1, 1]


@pytest.mark.parametrize("how", ["record", "table"])
def test_a_wave_that_is_said_to_collect_and_takes_nothing(
    client, two, lines, tmp_path, how
) -> None:
    """Nobody blurs for it again and again."""
    two.send(FIRST)
    two.follower.wave(PLAN.first()).close_wave()
    lines[1].answers = {"/agreement": PLAN.first().to_json().encode()}
    with pytest.raises(ClosedError, match="Wave 1 has closed"):
        if how == "record":
            client.contribute(PLAN, RECORD)
        else:
            client.contribute_table(
                PLAN, written(tmp_path / "people.csv", rows(people(6, 9), 0, 6), COLUMNS)
            )
    assert [len(line.sent) for line in lines] == [0, 2]
