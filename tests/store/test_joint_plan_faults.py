"""A plan between two databases by random walks: one wave, one set, one sum, whoever fails or lies.

People reach both, or one side alone, and come late; the wire breaks at any call; either side holds
the plan, the first ends it; somebody with the peer's token asks for other sets.
"""

import itertools

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from blurfit.contributor.blur import SharedRecords
from blurfit.errors import BlurfitError, ClosedError, ServiceError, WaveClosedError
from blurfit.service import leading
from blurfit.store import commitment, plan_rows, plans
from blurfit.store.store import Store
from support.joint_plans import Both, Direct, joint_plan

_fresh = itertools.count()


class Wire(Direct):
    """It breaks at one call, on its way there or back, and keeps which sums were given."""

    def __init__(self, walk: "JointWalk", breaks: int | None) -> None:
        super().__init__(walk.two.second, walk.two.plan)
        self.walk, self.left = walk, breaks

    def wave(self, agreement):
        found = super().wave(agreement)
        found.masks = self.walk.noting(agreement, found.masks)
        for name in ("identifiers", "close_wave", "masks", "release"):
            setattr(found, name, self.carried(getattr(found, name)))
        return found

    def tell(self, news) -> None:
        self.carried(super().tell)(news)

    def carried(self, work):
        def carry(*given):
            self.moment()
            answer = work(*given)
            self.moment()
            return answer

        return carry

    def moment(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise ServiceError("The connection broke.")


class JointWalk(RuleBasedStateMachine):
    """Contributors, two databases of a plan, what is between them, and a liar."""

    stores: tuple[Store, Store]  # which all walks share
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        plan = joint_plan(quorum=20, epsilon=4 + next(_fresh) * 1e-3)
        self.two = Both(plan, *self.stores)
        self.given: dict[str, set[bytes]] = {}  # by wave: the sums that the second gave
        self.published: list[list[str]] = [[], []]

    def noting(self, agreement, masks):
        def noted(digest, count, left_out):
            words = masks(digest, count, left_out)
            self.given.setdefault(agreement.fingerprint, set()).add(digest + words.tobytes())
            return words

        return noted

    def wave(self):
        """The wave that both have open, if they do."""
        try:
            one, other = self.two.current(0), self.two.current(1)
        except BlurfitError:
            return None
        return one if one == other else None

    @rule(
        target=sent,
        count=st.integers(1, 6),
        sides=st.sampled_from([(1, 0), (1, 0), (1, 0), (1,), (0,)]),
    )
    def contribute(self, count: int, sides: tuple[int, ...]) -> SharedRecords | None:
        wave = self.wave()
        if wave is None or self.two.at + count > 110:
            return None
        shared = self.two.shared(count, wave)
        assert self.two.deliver(shared, sides) == [count] * len(sides)
        return shared

    @rule(shared=sent, side=st.integers(0, 1))
    def comes_late_or_again(self, shared: SharedRecords | None, side: int) -> None:
        if shared is None:
            return
        name = shared.first.layout.fingerprint
        known = shared.first.identifiers[0].tobytes() in self.two.holders(side, name)
        (outcome,) = self.two.deliver(shared, (side,))
        assert outcome == 0 if known else outcome == len(shared) or isinstance(outcome, ClosedError)

    @rule(breaks=st.one_of(st.none(), st.integers(0, 12)))
    def the_first_leads(self, breaks: int | None) -> None:
        try:
            self.two.lead(Wire(self, breaks))
        except BlurfitError:
            return

    @rule(side=st.integers(0, 1), what=st.sampled_from([plans.hold, plans.resume, plans.resume]))
    def hold_or_resume(self, side: int, what) -> None:
        try:
            self.stores[side].write(what, self.two.name)
        except ClosedError:
            assert self.two.status(side).state == "ended"

    @rule(wanted=st.integers(0, 9), breaks=st.one_of(st.none(), st.integers(0, 12)))
    def end_it_early(self, wanted: int, breaks: int | None) -> None:
        if wanted == 0:
            try:
                leading.end(self.stores[0], self.two.name, Wire(self, breaks))
            except BlurfitError:
                return

    @rule(wanted=st.integers(0, 9), fewer=st.integers(0, 2))
    def somebody_asks_the_second_for_another_set(self, wanted: int, fewer: int) -> None:
        if wanted:
            return
        newest = self.stores[1].read(plan_rows.agreements, self.two.name)[-1]
        peer = Wire(self, None).wave(newest)
        try:
            here = peer.identifiers()
            wave = self.stores[1].collection(newest.fingerprint)
            digest = commitment.digest_of(wave, here[fewer:])
            peer.masks(digest, len(here) - fewer, here[:fewer])
        except BlurfitError:
            return

    @invariant()
    def one_set_and_one_sum_for_each_wave(self) -> None:
        assert all(len(sums) == 1 for sums in self.given.values())

    @invariant()
    def published_once_and_alike(self) -> None:
        texts = [store.read(plans.release_texts, self.two.name) for store in self.stores]
        for now, before in zip(texts, self.published, strict=True):
            assert now[: len(before)] == before, "for ever"
        assert texts[1] == texts[0][: len(texts[1])]
        if texts != self.published:
            self.sums_are_right()
        self.published = texts

    def sums_are_right(self) -> None:
        for shown in self.stores[0].read(plans.releases, self.two.name):
            held = [self.two.holders(side, shown.fingerprint) for side in (0, 1)]
            known = self.two.numbers[shown.fingerprint]
            common = held[0] & held[1]
            total = np.sum([known[one] for one in common], axis=0)
            assert shown.count == len(common) >= shown.agreement.quorum
            step = shown.agreement.grid.quadratic
            assert shown.sums.tolist() == (total * step).tolist()

    @invariant()
    def at_the_end_both_have_one_model(self) -> None:
        if [self.two.status(side).model for side in (0, 1)].count(None) == 0:
            here, there = (store.read(plans.model_text, self.two.name) for store in self.stores)
            assert here == there


def test_random_walks(in_memory) -> None:
    class Walk(JointWalk):
        pass

    with Store(in_memory / "first.db") as first, Store(in_memory / "second.db") as second:
        Walk.stores = first, second
        run_state_machine_as_test(Walk, settings=settings(max_examples=6, stateful_step_count=25))


def test_a_walk_that_reaches_the_end(in_memory) -> None:
    """Broken once at each moment, in either wave."""

    class Walk(JointWalk):
        pass

    with Store(in_memory / "first.db") as first, Store(in_memory / "second.db") as second:
        Walk.stores = first, second
        walk = Walk()
        for quorum in walk.two.plan.quorums:
            walk.contribute(quorum, (1, 0))
            late = walk.two.shared(1)
            for breaks in (3, 7, 0, 1, 5):
                walk.the_first_leads(breaks)
                walk.one_set_and_one_sum_for_each_wave()
                walk.published_once_and_alike()
            walk.the_first_leads(None)
            walk.published_once_and_alike()
            assert all(isinstance(one, WaveClosedError) for one in walk.two.deliver(late))
        walk.at_the_end_both_have_one_model()
        assert [walk.two.status(side).state for side in (0, 1)] == ["ended", "ended"]
        assert len(walk.given) == 2
