"""Two databases and a bad network by random walks: one wave, one set, one sum, whoever fails.

Requests and answers get lost at every step, are replayed and overtaken; people reach one side
only, or come late; either side holds the course, or closes it; the first publishes twice at once;
somebody with the peer's token lies about names, and asks for other sets. What every contributor
sent is known exactly, so the published sums say who was counted.
"""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import SharedRecords
from blurfit.errors import BlurfitError, ClosedError, PausedError, ServiceError, WaveClosedError
from blurfit_server.store import joint
from blurfit_server.store.store import Store
from server_support.joint_plans import Both, joint_plan
from server_support.sharing import Direct
from support.plans import FEATURES, TARGETS
from support.sharing import new_agreement

_fresh = itertools.count()
_OPTIONAL = st.one_of(st.none(), st.integers(0, 12))


def by_hand():
    return new_agreement(schema=(FEATURES, TARGETS["number"]), quorum=6)


def at_quorum() -> Plan:
    return joint_plan(quorum=20, epsilon=4 + next(_fresh) * 1e-3)


class Wire(Direct):
    """The way to the second database: it breaks at one moment, before or after a step was done
    there, and keeps for which sets sums were given.
    """

    def __init__(self, walk: "JointWalk", breaks: int | None = None, fewer: int = 0) -> None:
        super().__init__(*walk.stores)
        self.walk, self.left, self.fewer = walk, breaks, fewer

    def carried(self, work: Callable[..., Any], *given: Any) -> Any:
        self.moment()
        answer = work(*given)
        self.moment()
        return answer

    def moment(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise ServiceError("The connection broke.")

    def identifiers(self, wave):
        return self.carried(super().identifiers, wave)[self.fewer :]

    def close(self, wave):
        self.carried(super().close, wave)

    def masks(self, wave, digest, count, left_out):
        words = self.carried(super().masks, wave, digest, count, left_out)
        assert count >= wave.agreement.quorum
        self.walk.given.setdefault(wave.fingerprint, set()).add(digest + words.tobytes())
        return words

    def tell(self, course, news):
        self.carried(super().tell, course, news)


class JointWalk(RuleBasedStateMachine):
    """Contributors, two databases, what is between them, and a liar."""

    stores: tuple[Store, Store]  # which all walks share
    document: Callable[[], Any]
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.two = Both(type(self).document(), *self.stores)
        self.given: dict[str, set[bytes]] = {}  # by wave: the sums that the second gave
        self.published: list[list[str]] = [[], []]
        self.lied = False

    def wave(self):
        """The wave that both have open, and take submissions for, if they do."""
        if "paused" in (self.two.status(0).state, self.two.status(1).state):
            return None
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
        refused = isinstance(outcome, ClosedError | PausedError)
        assert outcome == 0 if known else outcome == len(shared) or refused

    def work_off(self, wire: Wire) -> None:
        """Do what is to be done, each thing by itself, as a service does."""
        for task in self.stores[0].due():
            if task.course == self.two.name:
                try:
                    self.stores[0].work(task, wire)
                except BlurfitError:
                    continue

    @rule(breaks=_OPTIONAL)
    def the_first_goes_on(self, breaks: int | None) -> None:
        self.work_off(Wire(self, breaks))

    @rule(side=st.integers(0, 1), what=st.sampled_from(["hold", "pause", "resume", "resume"]))
    def hold_or_resume(self, side: int, what: str) -> None:
        try:
            getattr(self.stores[side], what)(self.two.name)
        except BlurfitError:
            return

    def publish(self, wire: Wire) -> None:
        try:
            self.stores[0].publish_text(self.two.name, wire)
        except BlurfitError:
            return

    @rule(wanted=st.integers(0, 4), breaks=_OPTIONAL, agree=st.booleans())
    def the_first_publishes(self, wanted: int, breaks: int | None, agree: bool) -> None:
        if agree and wanted < 2:
            self.the_second_consents()
        if wanted == 0:
            self.publish(Wire(self, breaks))

    @rule()
    def the_second_consents(self) -> None:
        try:
            self.stores[1].publish_text(self.two.name)
        except BlurfitError:
            return

    @rule(wanted=st.integers(0, 3), breaks=_OPTIONAL)
    def several_at_once(self, wanted: int, breaks: int | None) -> None:
        if wanted:
            return
        with ThreadPoolExecutor(3) as everyone:
            for one in [
                everyone.submit(self.publish, Wire(self, breaks)),
                everyone.submit(self.the_second_consents),
                everyone.submit(self.work_off, Wire(self)),
            ]:
                one.result()

    @rule(wanted=st.integers(0, 5), fewer=st.integers(1, 3))
    def the_second_lies_about_its_names(self, wanted: int, fewer: int) -> None:
        if wanted == 0:
            self.lied = True
            self.work_off(Wire(self, fewer=fewer))

    @rule(wanted=st.integers(0, 9), fewer=st.integers(0, 2))
    def somebody_asks_the_second_for_another_set(self, wanted: int, fewer: int) -> None:
        if wanted:
            return
        self.lied = True
        wire, names = Wire(self), [one.fingerprint for one in self.two.status(1).waves]
        wave = self.stores[0].collection([one for one in names if one][-1])
        try:
            here = wire.identifiers(wave)
            digest = joint.digest_of(wave, here[fewer:])
            wire.masks(wave, digest, len(here) - fewer, here[:fewer])
        except BlurfitError:
            return

    @invariant()
    def one_set_and_one_sum_for_each_wave(self) -> None:
        assert all(len(sums) == 1 for sums in self.given.values())

    @invariant()
    def published_once_and_alike(self) -> None:
        texts = [store.releases(self.two.name) for store in self.stores]
        for now, before in zip(texts, self.published, strict=True):
            assert now[: len(before)] == before, "for ever"
        assert texts[1] == texts[0][: len(texts[1])]
        if texts != self.published:
            self.two.check_sums(exactly=not self.lied)
        self.published = texts

    @invariant()
    def at_the_end_both_have_one_model(self) -> None:
        if [self.two.status(side).model for side in (0, 1)].count(None) == 0:
            here, there = (store.model(self.two.name) for store in self.stores)
            assert here == there


def walks(document: Callable[[], Any]) -> type[JointWalk]:
    return type("Walk", (JointWalk,), {"document": staticmethod(document)})


@pytest.mark.parametrize("document", [by_hand, at_quorum])
def test_random_walks(place, in_memory, document) -> None:
    walk = walks(document)
    with Store(place) as first, Store(in_memory / "second.db") as second:
        walk.stores = first, second
        run_state_machine_as_test(walk, settings=settings(max_examples=6, stateful_step_count=25))


def test_a_plan_that_reaches_its_end(in_memory) -> None:
    """Broken once at each moment, in either wave."""
    kind = walks(at_quorum)
    with Store(in_memory / "first.db") as first, Store(in_memory / "second.db") as second:
        kind.stores = first, second
        walk = kind()
        for quorum in walk.two.plan.quorums:
            walk.contribute(quorum, (1, 0))
            late = walk.two.shared(1)
            for breaks in (*range(12), None, None):
                walk.the_first_goes_on(breaks)
                walk.one_set_and_one_sum_for_each_wave()
                walk.published_once_and_alike()
            assert all(isinstance(one, WaveClosedError) for one in walk.two.deliver(late))
        walk.at_the_end_both_have_one_model()
        assert [walk.two.status(side).state for side in (0, 1)] == ["ended", "ended"]
        assert len(walk.given) == 2


@pytest.mark.parametrize("breaks", range(10))
def test_an_agreement_that_reaches_its_end(in_memory, breaks) -> None:
    kind = walks(by_hand)
    with Store(in_memory / "first.db") as first, Store(in_memory / "second.db") as second:
        kind.stores = first, second
        walk = kind()
        walk.contribute(9, (1, 0))
        walk.contribute(1, (0,))
        walk.contribute(1, (1,))
        second.close_collection(walk.two.name)
        walk.publish(Wire(walk, breaks))
        assert (second.status(walk.two.name).state == "published") == (breaks == 9)
        for _ in range(2):  # what was begun is finished, without being asked for
            walk.work_off(Wire(walk))
        if breaks < 6:  # the set was not fixed
            walk.publish(Wire(walk))
        assert [store.status(walk.two.name).state for store in walk.stores] == ["published"] * 2
        walk.published_once_and_alike()
        walk.one_set_and_one_sum_for_each_wave()
        assert first.moments(walk.two.name).count == 9
