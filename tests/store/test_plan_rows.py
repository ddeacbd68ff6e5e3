"""What is written down of a plan: its state, its waves, its end, and that its model was learned."""

import pytest

from blurfit.errors import ClosedError, UnknownCollectionError
from blurfit.store import plan_rows, plans
from blurfit.store.store import Store
from support.plans import plan

PLAN = plan("label", waves=2, quorum=60)
NAME = PLAN.fingerprint


@pytest.fixture
def store(place):
    with Store(place) as opened:
        opened.write(plans.begin, PLAN)
        yield opened


def test_a_row_tells_the_plan_and_how_it_stands(store) -> None:
    held = store.write(plan_rows.hold_row, NAME)
    assert held == plan_rows.Held(PLAN, "collecting", None, learned=False)
    assert store.read(plan_rows.hold_row, NAME, update=False) == held
    assert store.read(plan_rows.agreements, NAME) == [PLAN.first()]


def test_a_plan_is_unfinished_until_its_model_is_learned_or_there_is_none(store) -> None:
    assert store.read(plan_rows.unfinished) == [(NAME, "collecting")]
    store.write(plan_rows.change_state, NAME, "held")
    assert store.read(plan_rows.unfinished) == [(NAME, "held")]
    store.write(plan_rows.end, NAME, "nobody came")
    assert store.read(plan_rows.unfinished) == [(NAME, "ended")]
    store.write(plan_rows.learned, NAME, None)
    assert store.read(plan_rows.unfinished) == []
    held = store.read(plan_rows.hold_row, NAME, update=False)
    assert held == plan_rows.Held(PLAN, "ended", "nobody came", learned=True)


def test_the_state_of_a_plan_that_has_ended_stays(store) -> None:
    store.write(plan_rows.end, NAME, None)
    with pytest.raises(ClosedError, match="nothing to hold or to resume"):
        store.write(plan_rows.change_state, NAME, "collecting")


@pytest.mark.parametrize("unknown", ["ab" * 32, "no\0name"])
def test_a_plan_that_was_not_begun_here(store, unknown) -> None:
    with pytest.raises(UnknownCollectionError, match="was begun here"):
        store.read(plan_rows.row_of, unknown)
