"""Closing at a date: nothing is taken from then on, by the database's own clock, and for good."""

import time

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit.contributor.blur import perturb_table
from blurfit.errors import (
    BelowQuorumError,
    ClosedError,
    ConflictError,
    DateClosedError,
    InfeasibleError,
    InvalidValueError,
)
from blurfit.store import plans, publication
from blurfit.store.advance import advance, due, learn_model
from blurfit.store.closing import Clock, move_plan
from blurfit.store.store import Store
from support.closings import let_pass
from support.plans import fill, plan
from support.stores import PEOPLE, propose

FOREVER = 4_000_000_000  # in the year 2096
AGREEMENT = propose()
NAME = AGREEMENT.fingerprint
PEOPLE_BLURRED = perturb_table(AGREEMENT, PEOPLE)
PLAN = plan("label", waves=2, quorum=60)
FIRST, _ = PLAN.quorums


@pytest.fixture
def store(place):
    with Store(place) as opened:
        yield opened


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
            store.move_closing(NAME, closes)
    with pytest.raises(ClosedError):
        store.write(publication.pause, store.collection(NAME))
    model = store.publish(NAME)
    assert model.count == 40
    assert store.status(NAME).state == "published"


def test_a_date_may_be_moved_while_the_collection_is_open(store) -> None:
    store.open(AGREEMENT, closes=FOREVER)
    for closes in (FOREVER - 10, FOREVER + 10, None, FOREVER):
        assert store.move_closing(NAME, closes).closes == closes
    with pytest.raises(InvalidValueError, match="is past by the database's clock"):
        store.move_closing(NAME, int(time.time()) - 5)
    assert not store.open(AGREEMENT)
    assert not store.open(AGREEMENT, closes=FOREVER)
    with pytest.raises(ConflictError, match="move the date with `blurfit until`"):
        store.open(AGREEMENT, closes=FOREVER + 1)
    assert store.status(NAME).closes == FOREVER


def test_one_that_is_opened_with_a_date_that_is_past_is_not_opened(store) -> None:
    with pytest.raises(InvalidValueError, match="Expected a moment in the future"):
        store.open(AGREEMENT, closes=1)
    assert store.statuses() == []


def test_who_closes_by_hand_before_the_date_has_closed_it_then(store) -> None:
    store.open(AGREEMENT, closes=FOREVER)
    assert store.close_collection(NAME).closes is None
    with pytest.raises(ClosedError) as caught:
        store.add(AGREEMENT, PEOPLE_BLURRED)
    assert not isinstance(caught.value, DateClosedError)


def test_a_date_that_has_come_is_kept_when_the_collection_is_closed_by_hand_too(store) -> None:
    store.open(AGREEMENT, closes=FOREVER)
    let_pass(store, NAME)
    assert store.close_collection(NAME).closes == 1_000_000_000


def test_a_collection_that_closed_at_its_date_can_be_handed_over_and_stays_closed(store) -> None:
    store.open(AGREEMENT, closes=FOREVER)
    store.add(AGREEMENT, PEOPLE_BLURRED)
    let_pass(store, NAME)
    assert store.write(publication.hand_over, store.collection(NAME), "file") == (None, None)
    with store._writing() as connection:  # a clock that was set back opens nothing again
        connection.execute(sa.text("UPDATE collections SET closes = 4000000000"))
    assert store.status(NAME).state == "closed"


def test_the_date_of_a_plan_goes_with_it_from_wave_to_wave(store) -> None:
    first = store.write(plans.begin, PLAN, FOREVER)
    fill(store, first, 0, FIRST)
    second = store.write(advance, PLAN.fingerprint)
    assert store.status(second.fingerprint).closes == FOREVER
    assert store.read(plans.status, PLAN.fingerprint).closes == FOREVER
    with pytest.raises(InfeasibleError, match="This is wave 2 of the plan"):
        store.move_closing(second.fingerprint, None)
    store.write(move_plan, PLAN.fingerprint, FOREVER + 5)
    assert store.read(plans.status, PLAN.fingerprint).closes == FOREVER + 5
    assert store.write(plans.begin, PLAN) == second
    with pytest.raises(ConflictError):
        store.write(plans.begin, PLAN, FOREVER)


def test_a_plan_ends_at_its_date_with_what_was_released(store) -> None:
    first = store.write(plans.begin, PLAN, FOREVER)
    fill(store, first, 0, FIRST)
    second = store.write(advance, PLAN.fingerprint)
    fill(store, second, FIRST, FIRST + 3)
    with pytest.raises(BelowQuorumError):
        store.write(advance, PLAN.fingerprint)
    let_pass(store, PLAN.fingerprint)
    with pytest.raises(DateClosedError):
        store.read(plans.current, PLAN.fingerprint)
    with pytest.raises(DateClosedError):
        fill(store, second, FIRST + 3, FIRST + 4)
    assert store.read(due) == [PLAN.fingerprint]
    assert store.write(advance, PLAN.fingerprint) is None
    assert learn_model(store, PLAN.fingerprint) is not None
    status = store.read(plans.status, PLAN.fingerprint)
    assert (status.state, status.reason) == ("ended", "Its date came after 1 of its 2 waves.")
    assert [one.state for one in status.waves] == ["released", "dropped"]
    with pytest.raises(ClosedError):
        store.write(move_plan, PLAN.fingerprint, FOREVER)


def test_a_full_wave_is_released_at_the_date_and_a_held_plan_waits(store) -> None:
    first = store.write(plans.begin, PLAN, FOREVER)
    fill(store, first, 0, FIRST)
    store.write(plans.hold, PLAN.fingerprint)
    let_pass(store, PLAN.fingerprint)
    assert store.read(due) == []
    assert store.write(advance, PLAN.fingerprint) is None
    assert store.read(plans.releases, PLAN.fingerprint) == []
    store.write(plans.resume, PLAN.fingerprint)
    assert store.read(due) == [PLAN.fingerprint]
    assert store.write(advance, PLAN.fingerprint) is None  # released, and no wave follows
    assert len(store.read(plans.releases, PLAN.fingerprint)) == 1
    assert store.read(plans.status, PLAN.fingerprint).state == "ended"


def test_a_plan_whose_date_comes_before_its_first_release_has_no_model(store) -> None:
    first = store.write(plans.begin, PLAN, FOREVER)
    fill(store, first, 0, 5)
    let_pass(store, PLAN.fingerprint)
    assert store.write(advance, PLAN.fingerprint) is None
    assert learn_model(store, PLAN.fingerprint) is None
    status = store.read(plans.status, PLAN.fingerprint)
    assert status.reason == (
        "Its date came after 0 of its 2 waves. There is no model: no wave was released."
    )
    assert [one.state for one in status.waves] == ["dropped", "planned"]
    assert np.all([one.count <= 5 for one in status.waves])
