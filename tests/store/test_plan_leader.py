"""The first database closes no wave in vain, and ends a plan, whether the second answers or not."""

import pytest
import sqlalchemy as sa
from blurfit.service.leading import TooFewError

from blurfit.errors import (
    BelowQuorumError,
    ClosedError,
    DateClosedError,
    InfeasibleError,
    NotCertifiedError,
    ServiceError,
    WaveClosedError,
)
from blurfit.model.model import PublishedModel
from blurfit.service import leading
from blurfit.store import closing, plan_leader, plans, tables
from blurfit.store.store import Store
from support.joint_plans import Direct, both, joint_plan

PLAN = joint_plan()
FIRST, SECOND = PLAN.quorums
FOREVER = 4_000_000_000


@pytest.fixture
def two():
    with both(PLAN) as opened:
        yield opened


def test_a_wave_fills_by_those_whom_both_have(two) -> None:
    two.send(FIRST - 2)
    two.send(1, sides=(0,))  # shares without seeds, and a seed without a share
    orphan = two.send(1, sides=(0,))
    two.send(1, sides=(1,))
    with pytest.raises(TooFewError, match="2 more") as refusal:
        two.lead()
    assert refusal.value.missing == 2
    assert two.states() == [["collecting", "planned"]] * 2, "nobody can end a plan by one share"
    assert two.deliver(orphan, (1,)) == [1]
    two.send(1)
    two.lead()
    two.check()
    assert two.status().waves[0].count == FIRST + 1


def test_too_uneven_a_wave_goes_on_collecting() -> None:
    """By invitation, a set may leave out a tenth of the first's, and half of the second's."""
    with both(joint_plan(admission="invited")) as two:
        two.send(FIRST)
        two.send(5, sides=(0,))
        with pytest.raises(InfeasibleError, match="of 23 at one of them 5 are not"):
            two.lead()
        assert two.states() == [["collecting", "planned"]] * 2
        two.send(SECOND)
        two.lead()
        two.check()


def test_a_second_that_names_fewer_after_closing_gets_nothing(two) -> None:
    class Lying(Direct):
        def wave(self, agreement):
            found = super().wave(agreement)
            first_look, truth = [True], found.identifiers

            def identifiers():
                names = truth()
                look, first_look[0] = first_look[0], False
                return names if look else names[:-1]

            found.identifiers = identifiers
            return found

    two.send(FIRST)
    with pytest.raises(BelowQuorumError):
        two.lead(Lying(two.second, PLAN))
    assert two.states() == [["collecting", "planned"], ["closing", "planned"]]
    two.lead()  # with the truth it goes on
    two.check()


def test_ended_early_at_both_with_the_best_model_so_far(two) -> None:
    with pytest.raises(BelowQuorumError, match="nothing has been released"):
        leading.end(two.first, two.name, two.follower)
    two.send(FIRST)
    two.lead()
    two.send(3)
    wave = two.current()
    text = leading.end(two.first, two.name, two.follower)
    two.check()
    assert PublishedModel.from_json(text).count == FIRST
    assert two.second.read(plans.model_text, two.name) == text
    assert two.states() == [["released", "dropped"]] * 2
    assert two.status(1).reason == "Its administrator ended it after wave 1 of 2."
    late = two.deliver(two.shared(1, wave))
    assert all(isinstance(one, WaveClosedError) for one in late)
    for side in (0, 1):
        with pytest.raises(ClosedError, match="Its administrator ended it"):
            two.current(side)
    assert leading.end(two.first, two.name, two.follower) == text


def test_ended_with_the_open_wave_if_both_have_its_quorum(two) -> None:
    two.send(FIRST)
    two.lead()
    two.send(SECOND)
    text = leading.end(two.first, two.name, two.follower)
    assert PublishedModel.from_json(text).count == 60
    two.check()


class Away(Direct):
    """A second database that does not answer."""

    def wave(self, _agreement):
        raise ServiceError("Nobody answers.")

    tell = wave


def test_ended_while_the_second_is_away(two) -> None:
    """Nothing is thrown away for a moment's silence; who holds it first says that it may be."""
    away = Away(two.second, PLAN)
    two.send(FIRST)
    two.lead()
    two.send(SECOND)
    with pytest.raises(ServiceError, match="Nothing has ended"):
        leading.end(two.first, two.name, away)
    assert two.status().state == "collecting"
    two.first.write(plans.hold, two.name)
    text = leading.end(two.first, two.name, away)
    assert PublishedModel.from_json(text).count == FIRST
    assert [two.status(side).state for side in (0, 1)] == ["ended", "collecting"]
    assert two.first.read(plan_leader.leading) == [two.name]
    two.lead()  # when it is back
    two.check()
    assert two.second.read(plans.model_text, two.name) == text


def test_its_date_goes_from_wave_to_wave_and_ends_it_at_both() -> None:
    with both(PLAN) as two:
        for store in two.stores:
            store.write(closing.move_plan, two.name, FOREVER)
        two.send(FIRST)
        two.lead()
        assert [two.status(side).closes for side in (0, 1)] == [FOREVER, FOREVER]
        two.send(3)
        pass_the_date(two.first, two.current())
        with pytest.raises(DateClosedError):
            two.current()
        assert two.first.read(plan_leader.leading) == [two.name]
        two.lead()
        two.check()
        assert two.states() == [["released", "dropped"]] * 2
        assert two.status(1).reason == "Its date came after 1 of its 2 waves."
        texts = {store.read(plans.model_text, two.name) for store in two.stores}
        assert len(texts) == 1


def test_a_full_wave_is_released_when_the_date_comes_and_none_without_its_quorum() -> None:
    for come, released in ((FIRST, "released"), (FIRST - 1, "dropped")):
        with both(PLAN) as two:
            two.send(come)
            pass_the_date(two.first, two.current())
            two.lead()
            two.check()
            assert two.states() == [[released, "planned"]] * 2
            assert [two.status(side).state for side in (0, 1)] == ["ended", "ended"]


def test_its_date_ends_it_also_if_the_second_takes_no_further_wave() -> None:
    """Because what was announced does not follow there."""

    class Rounds(Direct):
        def wave(self, agreement):
            found = super().wave(agreement)
            take = found.release
            stranger = joint_plan(quorum=61).first().to_json()
            found.release = lambda moments, following: take(moments, following and stranger)
            return found

    with both(PLAN) as two:
        two.send(FIRST)
        other = Rounds(two.second, PLAN)
        for _ in range(2):
            with pytest.raises(NotCertifiedError, match="Expected an agreement of the plan"):
                two.lead(other)
        pass_the_date(two.first, two.current())
        two.lead(other)
        assert two.states() == [["released", "dropped"], ["released", "planned"]]
        assert len({store.read(plans.model_text, two.name) for store in two.stores}) == 1


def pass_the_date(store: Store, wave) -> None:
    """As if the plan's date had come."""
    c = tables.collections.c
    here = sa.update(tables.collections).where(c.fingerprint == wave.fingerprint)
    store.write(lambda connection: connection.execute(here.values(closes=1)))
