"""A contributor and a plan between two databases: one wave, two shares, once, whatever is lost."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from blurfit.contributor.ledger import Ledger
from blurfit.contributor.sending import default_journal
from blurfit.contributor.shared_client import SharedClient
from blurfit.contributor.shared_plan import SharedPlanClient
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
from blurfit.messages.shares import ShareLayout
from blurfit.service import leading
from blurfit.service.app import Limits, Service
from blurfit.store import plans
from support.joint_plans import Both, both, joint_plan
from support.lots import toss
from support.plans import people, rows, written
from support.sharing import TWO

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


@pytest.fixture
def two() -> Iterator[Both]:
    with both(PLAN) as opened:
        yield opened


@pytest.fixture
def lines(two) -> Iterator[tuple[Line, Line]]:
    free = Limits(requests_per_second=0)
    with (
        TestClient(Service(two.first, free), base_url=TWO[0][1]) as one,
        TestClient(Service(two.second, free), base_url=TWO[1][1]) as other,
    ):
        yield Line(one._transport), Line(other._transport)


@pytest.fixture
def client(lines) -> Iterator[SharedPlanClient]:
    with connected(lines) as client:
        yield client


def connected(lines, patience: float = 0.0) -> SharedPlanClient:
    return SharedPlanClient(PLAN, transports=lines, patience=patience, pause=lambda _seconds: None)


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
    client.check()
    receipt = client.contribute(RECORD)
    first = PLAN.first()
    assert receipt.fingerprint == first.fingerprint
    assert receipt.services == tuple(one.url for one in PLAN.databases)
    for side in (0, 1):
        assert bytes.fromhex(receipt.identifier) in two.holders(side, first.fingerprint)
    assert [(one.once, one.rows) for one in Ledger().entries()] == [(PLAN.fingerprint, 1)]
    others_fill(two)
    with pytest.raises(ConflictError, match="You took part in this plan before"):
        client.contribute(RECORD | {"age": 41})
    assert [len(line.sent) for line in lines] == [1, 1]
    another = client.contribute(RECORD | {"age": 41}, person="another")
    assert another.fingerprint == two.current().fingerprint != first.fingerprint


def test_late_for_a_wave_the_seed_alone_has_left_and_nobody_changes_groups(
    client, two, lines
) -> None:
    first = PLAN.first()
    lines[1].fates = [lambda: others_fill(two)]
    for _ in range(2):
        with pytest.raises(OtherGroupError, match="group 1, which is complete"):
            client.contribute(RECORD)
    (late,) = lines[1].sent
    assert held(two, first, late) == [False, False]
    assert not lines[0].sent, "no share has left"


@pytest.mark.parametrize("how", ["lose request", "lose answer"])
def test_a_seed_that_was_lost_is_sent_again_or_the_record_stays(client, two, lines, how) -> None:
    """Whether it arrived is not known; that nothing of the record has left is."""
    lines[1].fates = [how]
    with pytest.raises(ServiceError):
        client.contribute(RECORD)
    others_fill(two)
    if how == "lose answer":  # the seed is there, so her share is still due, and too late
        with pytest.raises(WaveClosedError, match="left out"):
            client.contribute(RECORD)
        assert lines[1].sent[0] == lines[1].sent[1]
        with pytest.raises(ConflictError, match="took part"):
            client.contribute(RECORD)
        return
    with pytest.raises(OtherGroupError, match="complete"):
        client.contribute(RECORD)
    assert not lines[0].sent


@pytest.mark.parametrize("how", ["lose request", "lose answer"])
def test_a_share_that_may_have_arrived_is_never_blurred_again(client, two, lines, how) -> None:
    """The answer lost, the wave changed in between: the same bytes, or left out, and no more."""
    lines[0].fates = [how]
    with pytest.raises(ServiceError):
        client.contribute(RECORD)
    others_fill(two)
    if how == "lose answer":
        receipt = client.contribute(RECORD)
        assert receipt.fingerprint == PLAN.first().fingerprint
        assert lines[0].sent[0] == lines[0].sent[1]
    else:
        with pytest.raises(WaveClosedError, match="left out"):
            client.contribute(RECORD)
    assert len(set(lines[1].sent)) == 1, "one seed"
    with pytest.raises(ConflictError, match="took part"):
        client.contribute(RECORD)
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
        client.contribute_table(table)
    assert two.states()[0] == ["released", "collecting"]
    assert two.first.count(two.current()) == two.second.count(two.current()) == 10
    assert [len(line.sent) for line in lines] == [1, 2]
    with pytest.raises(ConflictError, match="took part in this plan"):
        client.contribute_table(table)
    assert journal.exists()


def test_a_table_is_resumed_where_it_was(client, two, lines, tmp_path, monkeypatch) -> None:
    toss(monkeypatch, *([1] * FIRST + [2] * 22))
    table = written(tmp_path / "people.csv", rows(people(40, 9), 0, 40), COLUMNS)
    lines[0].fates = ["lose answer"]
    with pytest.raises(ServiceError):
        client.contribute_table(table)  # 18 rows, as many as wave 1 waits for; all have arrived
    two.lead()
    assert client.contribute_table(table) == 40
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
        client.contribute(RECORD)
    assert [line.sent for line in lines] == [[], []]
    two.lead()
    assert client.contribute(RECORD).fingerprint == two.current().fingerprint


def test_a_database_that_lags_behind_is_told_from_one_that_lies(client, two, lines) -> None:
    before = PLAN.first().to_json().encode()
    others_fill(two)
    lines[1].answers = {"/agreement": before}
    with pytest.raises(BetweenWavesError, match="Office is at wave 2 and University at wave 1"):
        client.contribute(RECORD)
    # Another map, with a release of its own that it does follow from.
    with both(PLAN) as elsewhere:
        others_fill(elsewhere)
        (text,) = elsewhere.first.read(plans.release_texts, PLAN.fingerprint)
        lines[1].answers = {
            "/agreement": elsewhere.current().to_json().encode(),
            "/releases": f"[{text}]".encode(),
        }
    with pytest.raises(NotCertifiedError, match="announce different agreements for wave 2"):
        client.contribute(RECORD)
    # A map that follows from nothing.
    document = json.loads(two.current().to_json())
    document["wave"]["map"]["radius"] *= 2
    del document["fingerprint"]
    lines[1].answers = {"/agreement": json.dumps(document).encode()}
    with pytest.raises(BlurfitError):
        client.contribute(RECORD)
    assert [line.sent for line in lines] == [[], []]


def test_another_plan_is_refused(client, lines) -> None:
    lines[1].answers = {"/plan": joint_plan(quorum=61).to_json().encode()}
    with pytest.raises(InvalidValueError, match="Expected the plan"):
        client.check()


def test_after_the_end_nothing_leaves(client, two, lines) -> None:
    others_fill(two)
    leading.end(two.first, two.name, two.follower)
    with pytest.raises(ClosedError, match="come to its end"):
        client.contribute(RECORD)
    with pytest.raises(InvalidValueError, match="two invitations"):
        client.contribute(RECORD, invitations=["one"])
    assert [line.sent for line in lines] == [[], []]


def test_what_an_earlier_run_announced_is_written_down_before_another_client_sends_it(
    client, two, lines, tmp_path
) -> None:
    """The plan's client kept a part of which nothing had left; the wave's own client sends it."""
    table = written(tmp_path / "people.csv", rows(people(6, 9), 0, 6), COLUMNS)
    lines[1].fates = ["lose answer"]
    with pytest.raises(ServiceError):
        client.contribute_table(table)
    others_fill(two)
    with (
        SharedClient(PLAN.first(), transports=lines, patience=0.0) as pinned,
        pytest.raises(ClosedError),
    ):
        pinned.contribute_table(table)
    assert len(lines[0].sent) == 1, "the shares have left, and were refused"
    with pytest.raises(WaveClosedError, match="6 rows were blurred for an earlier wave"):
        client.contribute_table(table)
    assert len(set(lines[1].sent)) == 1, "one blur"
    assert two.second.count(two.current()) == 0


def test_a_wave_is_not_contributed_to_without_remembering_it(two, lines) -> None:
    with (
        SharedClient(PLAN.first(), transports=lines, patience=0.0) as pinned,
        pytest.raises(InvalidValueError, match="wave 1 of the plan"),
    ):
        pinned.contribute(RECORD)
    assert [line.sent for line in lines] == [[], []]


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
            client.contribute(RECORD)
        else:
            client.contribute_table(
                written(tmp_path / "people.csv", rows(people(6, 9), 0, 6), COLUMNS)
            )
    assert [len(line.sent) for line in lines] == [0, 2]
