"""A person, or a table, and a plan at one or two databases: in one wave, once, whatever is lost."""

import json
from collections.abc import Iterator

import pytest

from blurfit import Agreement, Client, Plan
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.sending import Account, default_journal
from blurfit.errors import (
    BetweenWavesError,
    BlurfitError,
    ClosedError,
    ConflictError,
    InvalidValueError,
    NotCertifiedError,
    NotInvitedError,
    OtherGroupError,
    ServiceError,
    WaveClosedError,
)
from blurfit.messages.submissions import ShareLayout
from blurfit.protocol import hashed
from blurfit_server import Store
from server_support.joint_plans import Both, both, joint_plan
from server_support.lines import Line, answering
from server_support.sharing import Direct, drive
from support.lots import invitations, toss
from support.plans import people, plan, rows, written
from support.sharing import TWO

PLAN = joint_plan()
FIRST = PLAN.quorums[0]
RECORD = {"age": 40, "education": 12, "region": "west", "married": 1, "income": 30_000}
COLUMNS = ("age", "education", "region", "married", "income")


@pytest.fixture(autouse=True)
def a_coin(monkeypatch) -> None:
    toss(monkeypatch, 1)


def connected(agreed, lines, patience: float = 0.0) -> Client:
    options = {"transports": lines, "patience": patience, "pause": lambda _seconds: None}
    return Client.of(agreed, None if agreed.databases else TWO[0][1], **options)


# ---- one database or two


class Alone:
    """One database, with the words of `Both`."""

    def __init__(self, agreed: Plan, store: Store) -> None:
        self.plan, self.name, self.stores = agreed, agreed.fingerprint, (store,)
        store.open(agreed)

    def current(self) -> Agreement:
        return self.stores[0].current(self.name)

    def send(self, count: int) -> None:
        wave = self.current()
        self.stores[0].add(wave, perturb_table(wave, rows(people(60), 0, count)))

    def lead(self) -> None:
        drive(self.stores[0])

    def end(self) -> None:
        self.stores[0].publish(self.name)


@pytest.fixture(params=[1, 2], ids=["one database", "two databases"])
def world(request) -> Iterator[Alone | Both]:
    if request.param == 2:
        with both(PLAN) as opened:
            opened.end = lambda: opened.first.publish_text(opened.name, opened.peer)
            yield opened
    else:
        with Store() as store:
            yield Alone(plan("number", waves=2, quorum=60, admission="anyone"), store)


@pytest.fixture
def ways(world) -> Iterator[list[Line]]:
    with answering(*world.stores) as found:
        yield found


@pytest.fixture
def person(world, ways) -> Iterator[Client]:
    with connected(world.plan, ways) as found:
        yield found


def others_fill(world: Alone | Both) -> None:
    """The open wave gets the rest of its quorum, and is released."""
    wave = world.current()
    world.send(wave.quorum - world.stores[0].count(wave))
    world.lead()


def test_one_record_goes_to_each_database_once(person, world, ways) -> None:
    person.agreed(world.plan.fingerprint)
    first = world.current()
    receipt = person.contribute(world.plan.fingerprint, RECORD)
    assert receipt.fingerprint == first.fingerprint
    assert receipt.services == tuple(url for _, url in TWO[: len(ways)])
    for store in world.stores:
        assert store.count(first) == 1
    assert [(one.once, one.rows) for one in Account().entries()] == [(world.name, 1)]
    with pytest.raises(ConflictError, match="You took part in this plan before"):
        person.contribute(world.plan, RECORD | {"age": 41})
    others_fill(world)
    second = world.current()
    for agreed in (world.plan, second):
        with pytest.raises(ConflictError, match="nobody takes part twice"):
            person.contribute(agreed, RECORD)
    assert [len(way.sent) for way in ways] == [1] * len(ways)
    another = person.contribute(world.plan, RECORD, person="Ada")  # at the same machine
    assert another.fingerprint == second.fingerprint != first.fingerprint
    with pytest.raises(ConflictError, match="'Ada' took part"):
        person.contribute(world.plan, RECORD, person="Ada")


def test_a_coin_is_tossed_once_and_whoever_comes_early_comes_back(
    person, world, ways, monkeypatch
) -> None:
    toss(monkeypatch, 2, 1)  # a second toss would please
    for _ in range(3):
        with pytest.raises(OtherGroupError, match="group 2, which comes later"):
            person.contribute(world.plan, RECORD)
    assert not any(way.sent for way in ways)
    others_fill(world)
    receipt = person.contribute(world.plan, RECORD)
    assert receipt.fingerprint == world.current().fingerprint


@pytest.mark.parametrize("how", ["lose request", "lose answer"])
def test_what_may_have_arrived_is_never_blurred_again(person, world, ways, how) -> None:
    """The answer lost, the wave changed in between: the same bytes, or left out, and no more."""
    first = world.current()
    ways[0].fates = [how]
    with pytest.raises(ServiceError):
        person.contribute(world.plan, RECORD)
    others_fill(world)
    if how == "lose answer":
        receipt = person.contribute(world.plan, RECORD)
        assert receipt.fingerprint == first.fingerprint
        assert ways[0].sent[0] == ways[0].sent[1]
    else:
        with pytest.raises(WaveClosedError, match="left out"):
            person.contribute(world.plan, RECORD)
    for way in ways:
        assert len(set(way.sent)) == 1, "one blur, one seed"
    with pytest.raises(ConflictError, match="took part"):
        person.contribute(world.plan, RECORD)
    assert [store.count(world.current()) for store in world.stores] == [0] * len(ways)


def test_a_wave_by_itself_is_one_part_in_its_plan(person, world, ways) -> None:
    """Whoever names the wave is remembered as whoever names the plan; a closed one is refused
    before anything is blurred."""
    first = world.current()
    assert person.contribute(first, RECORD).fingerprint == first.fingerprint
    for agreed in (first, world.plan):
        with pytest.raises(ConflictError, match="nobody takes part twice"):
            person.contribute(agreed, RECORD)
    others_fill(world)
    with pytest.raises(WaveClosedError, match="nothing was blurred or sent"):
        person.contribute(first, RECORD, person="another")
    assert [len(way.sent) for way in ways] == [1] * len(ways)
    receipt = person.contribute(world.plan, RECORD, person="another")  # and so they may
    assert receipt.fingerprint == world.current().fingerprint


def test_after_the_end_nothing_leaves(person, world, ways) -> None:
    others_fill(world)
    world.end()
    with pytest.raises(ClosedError, match="come to its end"):
        person.contribute(world.plan, RECORD)
    with pytest.raises(InvalidValueError, match="for each record, one from each database"):
        person.contribute(world.plan, RECORD, invitations=["one", "two", "three"])
    assert not any(way.sent for way in ways)


def test_another_plan_than_one_was_invited_to_is_refused(person, world, ways) -> None:
    assert person.agreed(world.name) == world.plan
    ways[-1].answers = {"/document": joint_plan(quorum=61).to_json().encode()}
    with pytest.raises(NotCertifiedError, match="not the one that you were invited to"):
        person.agreed(world.plan.fingerprint)


def test_a_wave_of_one_plan_is_not_taken_for_another_plan_s(person, world, ways) -> None:
    """Although the same client has found it to follow, from its own plan."""
    first = person.current(world.plan)
    other = joint_plan(databases=world.plan.databases, epsilon=2.0)
    for way in ways:
        way.answers = {"/agreement": first.to_json().encode()}
    with pytest.raises(NotCertifiedError):
        person.current(other)


# ---- one database


def test_whoever_comes_after_their_wave_is_told_that_it_is_complete() -> None:
    invited = plan("number", waves=2, quorum=60)
    given = {group: invitations(invited, group, 1) for group in (1, 2)}
    with Store() as store, answering(store) as ways, connected(invited, ways) as client:
        world = Alone(invited, store)
        store.invite(invited.first().fingerprint, [hashed(one) for (one,) in given.values()])
        with pytest.raises(NotInvitedError, match="Nothing was blurred"):
            client.contribute(invited, RECORD)
        with pytest.raises(OtherGroupError, match="comes later"):
            client.contribute(invited, RECORD, invitations=given[2], person="early")
        others_fill(world)
        with pytest.raises(OtherGroupError, match="group 1, which is complete"):
            client.contribute(invited, RECORD, invitations=given[1], person="late")
        receipt = client.contribute(invited, RECORD, invitations=given[2], person="early")
        assert receipt.fingerprint == world.current().fingerprint


# ---- two databases


@pytest.fixture
def two() -> Iterator[Both]:
    with both(PLAN) as opened:
        yield opened


@pytest.fixture
def lines(two) -> Iterator[list[Line]]:
    with answering(*two.stores) as found:
        yield found


@pytest.fixture
def client(lines) -> Iterator[Client]:
    with connected(PLAN, lines) as found:
        yield found


def held(two: Both, wave, sent: bytes) -> list[bool]:
    """Whether each of the two has what was sent for a wave."""
    layout = ShareLayout(wave.fingerprint, wave.width, "seed")
    (name,) = layout.identifiers(layout.rows(sent))
    return [name.tobytes() in two.holders(side, wave.fingerprint) for side in (0, 1)]


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


def test_both_must_be_at_the_same_wave(client, two, lines) -> None:
    two.send(FIRST)

    class Away(Direct):
        def tell(self, course, news) -> None:
            raise ServiceError("away")

    with pytest.raises(ServiceError):
        two.lead(Away(two.first, two.second))
    assert two.states() == [["released", "collecting"], ["fixed", "planned"]]
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
        (text,) = elsewhere.first.releases(PLAN.fingerprint)
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
        connected(PLAN.first(), lines) as pinned,
        pytest.raises(ClosedError),
    ):
        pinned.contribute_table(PLAN.first(), table)
    assert len(lines[0].sent) == 1, "the shares have left, and were refused"
    with pytest.raises(WaveClosedError, match="6 rows were blurred for an earlier wave"):
        client.contribute_table(PLAN, table)
    assert len(set(lines[1].sent)) == 1, "one blur"
    assert two.second.count(two.current()) == 0


@pytest.mark.parametrize("how", ["record", "table"])
def test_a_wave_that_is_said_to_collect_and_takes_nothing(
    client, two, lines, tmp_path, how
) -> None:
    """Nobody blurs for it again and again."""
    two.send(FIRST)
    two.second.close_for_first(two.second.collection(PLAN.first().fingerprint))
    lines[1].answers = {"/agreement": PLAN.first().to_json().encode()}
    with pytest.raises(ClosedError, match="Wave 1 has closed"):
        if how == "record":
            client.contribute(PLAN, RECORD)
        else:
            client.contribute_table(
                PLAN, written(tmp_path / "people.csv", rows(people(6, 9), 0, 6), COLUMNS)
            )
    assert [len(line.sent) for line in lines] == [0, 2]
