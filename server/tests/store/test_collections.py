"""Courses and waves: opened once, told how far they are, steered, dated, invited to."""

import time

import pytest
import sqlalchemy as sa

from blurfit import perturb_table
from blurfit.agreement.agreement import Agreement
from blurfit.errors import (
    BelowQuorumError,
    ClosedError,
    ConflictError,
    DateClosedError,
    InfeasibleError,
    InvalidValueError,
    NotInvitedError,
    NotPublishedError,
    OtherGroupError,
    UnknownCollectionError,
)
from blurfit_server.store.arrivals import Arrival
from blurfit_server.store.database import Clock
from blurfit_server.store.store import Store
from server_support.closings import let_pass
from server_support.sharing import drive
from support import sharing
from support.lots import hashes
from support.plans import fill, people, plan, rows
from support.proposals import PEOPLE, propose

FOREVER = 4_000_000_000  # in the year 2096
AGREEMENT = propose()
NAME = AGREEMENT.fingerprint
PEOPLE_BLURRED = perturb_table(AGREEMENT, PEOPLE)
PLAN = plan("label", waves=2, quorum=60)
EVERYONE = people(60, 4)
FIRST = PLAN.quorums[0]


@pytest.fixture
def store(place):
    with Store(place) as opened:
        yield opened


# ---- what never changes


@pytest.mark.parametrize("name", ["ab" * 32, "AB" * 32, "", "\x00", "ab" * 31, "é" * 64])
def test_what_was_never_opened_is_unknown(store, name: str) -> None:
    """Also what a database would choke on, such as PostgreSQL on a zero byte."""
    for what in (store.collection, store.status, store.current, store.hold, store.publish_text):
        with pytest.raises(UnknownCollectionError, match="Nothing is collected"):
            what(name)


def test_roles_fit_the_document_and_stay() -> None:
    split, one = sharing.propose(), propose()
    with Store() as store:
        with pytest.raises(InvalidValueError, match=r"first or second.*--as first"):
            store.open(split)
        with pytest.raises(InvalidValueError, match="to be 'whole'"):
            store.open(one, role="first")
        with pytest.raises(InvalidValueError, match="role="):
            store.open(split, role="third")  # type: ignore[arg-type]
        assert store.statuses() == []
        assert store.open(split, role="second")
        assert not store.open(split, role="second")
        with pytest.raises(ConflictError, match="to be 'second'"):
            store.open(split, role="first")


def test_a_wave_that_was_collected_by_itself_is_not_opened_by_a_plan(store) -> None:
    """It may have been exported, and learned from with others: the plan's would be a second set."""
    fill(store, PLAN.first(), 0, FIRST)
    store.close_collection(PLAN.first().fingerprint)
    with pytest.raises(ConflictError, match="by itself"):
        store.open(PLAN)
    assert [one.fingerprint for one in store.statuses()] == [PLAN.first().fingerprint]


def test_a_wave_is_steered_by_its_plan_alone(store) -> None:
    store.open(PLAN)
    wave = PLAN.first().fingerprint
    assert not store.open(PLAN.first())
    fill(store, PLAN.first(), 0, FIRST)
    for what in (store.close_collection, store.publish_text, store.release, store.pause):
        with pytest.raises(InfeasibleError, match="Hold the plan, or end it early"):
            what(wave)
    with pytest.raises(InfeasibleError, match="Hold the plan, or end it early"):
        store.close_collection(PLAN.fingerprint)
    assert store.status(wave).state == "collecting"
    for what in (store.model, store.moments_text):
        with pytest.raises(NotPublishedError, match="wave 1 of the plan"):
            what(wave)
    with pytest.raises(UnknownCollectionError):
        store.collection(PLAN.fingerprint)


# ---- steering


def test_what_is_held_collects_and_releases_nothing(store) -> None:
    store.open(PLAN)
    assert store.hold(PLAN.fingerprint).state == "held"
    fill(store, PLAN.first(), 0, FIRST + 1)
    drive(store)
    assert store.status(PLAN.fingerprint).waves[0].state == "collecting"
    store.resume(PLAN.fingerprint)
    drive(store)
    assert store.current(PLAN.fingerprint).wave.number == 2
    assert store.moments(PLAN.first()).count == FIRST + 1
    store.open(AGREEMENT)
    with pytest.raises(InfeasibleError, match="nothing to hold"):
        store.hold(NAME)


def test_what_has_ended_is_not_steered(store) -> None:
    store.open(PLAN)
    fill(store, PLAN.first(), 0, FIRST)
    store.publish(PLAN)
    for what in (store.hold, store.pause, store.resume, store.current):
        with pytest.raises(ClosedError, match="come to its end"):
            what(PLAN.fingerprint)
    store.open(AGREEMENT)
    store.close_collection(NAME)
    for what in (store.pause, store.resume):
        with pytest.raises(ClosedError):
            what(NAME)
    with pytest.raises(ClosedError):
        store.current(NAME)


# ---- dates


def test_the_clock_is_that_of_the_database(store) -> None:
    before = int(time.time())
    with store._reading() as connection:
        assert before - 1 <= connection.scalar(sa.select(Clock())) <= time.time() + 1


def test_nothing_is_taken_from_the_date_on_and_what_was_taken_counts(store) -> None:
    assert store.open(AGREEMENT, closes=FOREVER)
    assert store.status(NAME).closes == FOREVER
    assert store.add(AGREEMENT, PEOPLE_BLURRED) == 40
    let_pass(store, NAME)
    assert store.status(NAME).state == "closed"
    assert store.add(AGREEMENT, PEOPLE_BLURRED) == 0  # they are acknowledged as ever
    with pytest.raises(DateClosedError, match="until 2001-09-09 01:46:40 UTC, and that has passed"):
        store.add(AGREEMENT, perturb_table(AGREEMENT, PEOPLE))
    for closes in (FOREVER, None):
        with pytest.raises(ClosedError, match="closed for good"):
            store.move_date(NAME, closes)
    with pytest.raises(ClosedError):
        store.pause(NAME)
    assert store.publish(NAME).count == 40
    assert store.status(NAME).state == "published"


def test_a_date_may_be_moved_while_submissions_are_taken(store) -> None:
    store.open(AGREEMENT, closes=FOREVER)
    for closes in (FOREVER - 10, FOREVER + 10, None, FOREVER):
        assert store.move_date(NAME, closes).closes == closes
    with pytest.raises(InvalidValueError, match="is past by the database's clock"):
        store.move_date(NAME, int(time.time()) - 5)
    assert not store.open(AGREEMENT)
    assert not store.open(AGREEMENT, closes=FOREVER)
    with pytest.raises(ConflictError, match="move the date with `blurfit until`"):
        store.open(AGREEMENT, closes=FOREVER + 1)
    assert store.status(NAME).closes == FOREVER
    with pytest.raises(InvalidValueError, match="Expected a moment in the future"):
        store.open(PLAN, closes=1)
    assert len(store.statuses()) == 1


def test_who_closes_by_hand_before_the_date_has_closed_it_then(store) -> None:
    store.open(AGREEMENT, closes=FOREVER)
    assert store.close_collection(NAME).closes is None
    with pytest.raises(ClosedError) as caught:
        store.add(AGREEMENT, PEOPLE_BLURRED)
    assert not isinstance(caught.value, DateClosedError)


def test_a_date_that_has_come_is_kept_when_it_is_closed_by_hand_too(store) -> None:
    store.open(AGREEMENT, closes=FOREVER)
    let_pass(store, NAME)
    assert store.close_collection(NAME).closes == 1_000_000_000


def test_what_closed_at_its_date_can_be_handed_over_and_stays_closed(store) -> None:
    store.open(AGREEMENT, closes=FOREVER)
    store.add(AGREEMENT, PEOPLE_BLURRED)
    let_pass(store, NAME)
    assert store.hand_over(store.collection(NAME), "file") == (None, None)
    with store._writing() as connection:  # a clock that was set back opens nothing again
        connection.execute(sa.text("UPDATE courses SET closes = 4000000000"))
    assert store.status(NAME).state == "closed"


def test_a_plan_ends_at_its_date_with_what_was_released(store) -> None:
    store.open(PLAN, closes=FOREVER)
    fill(store, PLAN.first(), 0, FIRST)
    drive(store)
    second = store.current(PLAN.fingerprint)
    fill(store, second, FIRST, FIRST + 3)
    assert store.due() == []
    let_pass(store, PLAN.fingerprint)
    with pytest.raises(DateClosedError):
        store.current(PLAN.fingerprint)
    with pytest.raises(DateClosedError):
        fill(store, second, FIRST + 3, FIRST + 4)
    with pytest.raises(DateClosedError):
        store.invite(PLAN.fingerprint, [b"0" * 32])
    drive(store)
    status = store.status(PLAN.fingerprint)
    assert (status.state, status.reason) == ("ended", "Its date came after 1 of its 2 waves.")
    assert [one.state for one in status.waves] == ["released", "dropped"]
    assert status.model == PLAN.first().fingerprint
    with pytest.raises(ClosedError):
        store.move_date(PLAN.fingerprint, FOREVER)


def test_a_plan_whose_date_comes_before_its_first_release_has_no_model(store) -> None:
    store.open(PLAN, closes=FOREVER)
    fill(store, PLAN.first(), 0, 5)
    let_pass(store, PLAN.fingerprint)
    drive(store)
    status = store.status(PLAN.fingerprint)
    assert status.reason == (
        "Its date came after 0 of its 2 waves. There is no model: no wave was released."
    )
    assert [one.state for one in status.waves] == ["dropped", "planned"]
    with pytest.raises(NotPublishedError, match="no wave was released"):
        store.model(PLAN.fingerprint)


# ---- invitations


def test_invitations_belong_to_the_course(store) -> None:
    store.open(PLAN)
    first = PLAN.first()
    tokens = [*hashes(PLAN, 1, FIRST), *hashes(PLAN, 2, 3)]
    store.invite(PLAN.fingerprint, tokens[:-1])
    wave = store.collection(first.fingerprint)
    assert store.is_unused(wave, tokens[0])
    assert not store.is_unused(wave, tokens[-2]), "it is good in the second wave"
    sent = perturb_table(first, rows(EVERYONE, 0, FIRST))
    messages = b"".join(one.to_bytes() for one in sent)
    assert store.receive(wave, [Arrival(messages, tokens[:FIRST])]) == [FIRST]
    drive(store)
    second = store.current(PLAN.fingerprint)
    # One that is given out under the first wave's name is good for the wave that collects.
    assert store.invite(first.fingerprint, tokens[-1:]) == 1
    assert store.invite(second.fingerprint, tokens[-1:]) == 0
    later = store.collection(second.fingerprint)
    one, *others = (
        next(iter(perturb_table(second, rows(EVERYONE, at, at + 1)))).to_bytes()
        for at in (20, 21, 22)
    )
    given = zip((one, *others), (tokens[0], *tokens[-2:]), strict=True)
    refused, *taken = store.receive(later, [Arrival(message, [who]) for message, who in given])
    assert isinstance(refused, NotInvitedError)  # it was used in wave 1
    assert taken == [1, 1]
    assert store.unused_invitations(second.fingerprint) == 1


def test_colluders_who_all_come_first_are_spread_over_the_waves(store) -> None:
    """Of 20,000 who are invited to three waves, 2,000 collude, come first and try every wave.

    By arrival they would be half of the first wave: ε = 1.455 where 1 is promised. By lot they are
    a tenth of it, which its noise covers; what they learn is no more than 10 % of one wave do.
    """
    big = plan("label", waves=3, quorum=20_000)
    store.open(big)
    first = big.first()
    wave = store.collection(first.fingerprint)
    everyone = sorted(
        one for group, count in enumerate(big.quorums, 1) for one in hashes(big, group, count)
    )
    store.invite(big.fingerprint, everyone)
    messages = [one.to_bytes() for _ in range(30) for one in perturb_table(first, people(200, 4))]

    def come(guests: list[bytes], messages: list[bytes]) -> list[object]:
        arrivals = [Arrival(one, [who]) for one, who in zip(messages, guests, strict=True)]
        return store.receive(wave, arrivals)

    guilty, others = everyone[:2000], everyone[2000:]
    outcomes = come(guilty, messages[:2000])
    inside = sum(one == 1 for one in outcomes)
    assert 340 < inside < 460
    assert sum(isinstance(one, OtherGroupError) for one in outcomes) == 2000 - inside
    quorum = big.quorums[0]
    honest = [one for one in others if big.lot.group_of(one) == 1]
    fresh = messages[2000:]
    assert come(honest[: quorum - inside - 1], fresh[: quorum - inside - 1])
    assert store.due() == []
    with pytest.raises(BelowQuorumError):  # also with as many as its noise needs
        store.publish(big)
    assert store.count(first) == quorum - 1 >= first.honest
    come(honest[quorum - inside - 1 :][:1], fresh[-1:])
    drive(store)
    assert store.current(big.fingerprint).wave.number == 2
    learned = first.calibration.guarantee(count=quorum - inside).epsilon
    alone = Agreement.propose(big.schema, epsilon=1, delta=1e-6, quorum=20_000)
    assert learned <= alone.calibration.guarantee(count=18_000).epsilon < 1.06


def test_invitations_of_any_own_collection_are_not_joined(place) -> None:
    """The other database is asked about those that are joined, and could use them here."""
    with Store(place) as store:
        here, other = (propose(quorum=quorum, admission="invited") for quorum in (30, 40))
        for agreement in (here, other):
            store.open(agreement)
        store.invite(other.fingerprint, [b"0" * 32])
        for made in ([], [b"1" * 32]):
            with pytest.raises(ConflictError, match="1 of these are this database's own"):
                store.invite(here.fingerprint, made, [b"0" * 32])
        assert store.unused_invitations(here.fingerprint) == 0
