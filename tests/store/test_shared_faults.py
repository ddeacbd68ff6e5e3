"""Two databases and a bad network by random walks: nobody doubled, nobody outside, no second sum.

Requests and answers get lost at every step, are replayed and overtaken; either side is down for
long; people reach one side only; both publish at once; one side lies about its names, or asks for
another set. Every contributor has a bit of her own, so that the published sums say who was counted.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from blurfit.service.peer import Peer, publish
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from blurfit import BlurfitError, ClosedError, ConflictError, ServiceError
from blurfit.store import commitment, identifier_sets, joint_publication
from blurfit.store.store import Store
from support.sharing import MOST, arrival, counted, identifier_of, marked, new_agreement, opened

LOST = ServiceError("The connection broke.")
Lie = Callable[[np.ndarray], np.ndarray]


class Wire(Peer):
    """The way to the second database: it breaks at one step, before or after it was done there.

    It keeps which sets sums were given for, whoever asked.
    """

    def __init__(self, walk: "TwoDatabases", breaks: int | None = None, lie: Lie | None = None):
        self.walk, self.breaks, self.lie, self.step = walk, breaks, lie, 0

    def _carry(self, work: Callable[[], object]) -> object:
        """Each call has two moments at which it may break: on its way there, and back."""
        before, after = self.step, self.step + 1
        self.step += 2
        if self.breaks == before or self.walk.down[1]:
            raise LOST
        answer = work()
        if self.breaks == after:
            raise LOST
        return answer

    def identifiers(self):
        found = self._carry(self.walk.peer.identifiers)
        return self.lie(found) if self.lie else found

    def masks(self, digest, count, left_out):
        return self._carry(lambda: self.walk.ask(digest, count, left_out))

    def deliver(self, model, moments):
        self._carry(lambda: self.walk.peer.deliver(model, moments))


class TwoDatabases(RuleBasedStateMachine):
    """Contributors, two databases, what is between them, and liars."""

    stores: tuple[Store, Store]  # which all walks share
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.agreement = new_agreement()
        self.mark = self.agreement.fingerprint
        self.peer = opened(self.agreement, *self.stores)
        self.down = [False, False]
        self.people = 0
        self.held: tuple[set[int], set[int]] = (set(), set())
        self.acknowledged: tuple[set[int], set[int]] = (set(), set())
        self.models: set[str] = set()
        self.sums_given: dict[bytes, list[int]] = {}
        self.lied = self.liars = False

    @initialize(liars=st.booleans(), early=st.integers(0, 8))
    def begin(self, liars: bool, early: int) -> None:
        """Some have come already, and half of the walks have no liars."""
        self.liars = liars
        for _ in range(early):
            self.contribute_both()

    # ---- contributors

    def deliver(self, side: int, *people: int, answered: bool = True) -> object:
        if self.down[side]:
            return LOST
        shared = marked(self.agreement, *people)
        shares = shared.second if side else shared.first
        (outcome,) = self.stores[side].receive(
            self.stores[side].collection(self.mark), [arrival(shares)]
        )
        if not isinstance(outcome, BlurfitError):
            self.held[side].update(people)
            if answered:
                self.acknowledged[side].update(people)
        return outcome

    @rule(target=sent, sides=st.sets(st.integers(0, 1)), answered=st.booleans())
    @precondition(lambda self: self.people < MOST)
    def contribute(self, sides: set[int], answered: bool) -> int:
        person = self.people
        self.people += 1
        for side in sides:
            outcome = self.deliver(side, person, answered=answered)
            assert outcome == 1 or isinstance(outcome, ClosedError) or outcome is LOST
        return person

    @rule(target=sent)
    @precondition(lambda self: self.people < MOST)
    def contribute_to_both(self) -> int:
        return self.contribute_both()

    def contribute_both(self) -> int:
        person = self.people
        self.people += 1
        for side in (0, 1):
            self.deliver(side, person)
        return person

    @rule(person=sent, side=st.integers(0, 1))
    def replay(self, person: int, side: int) -> None:
        before = person in self.held[side]
        outcome = self.deliver(side, person)
        if before and not self.down[side]:
            assert outcome == 0, "accepted again, and counted once"

    @rule(people=st.lists(sent, min_size=1, max_size=5), side=st.integers(0, 1))
    def a_heap_arrives_late(self, people: list[int], side: int) -> None:
        assert not isinstance(self.deliver(side, *people), ConflictError)

    @rule(person=sent, side=st.integers(0, 1))
    def an_attacker_uses_an_identifier_again(self, person: int, side: int) -> None:
        if person not in self.held[side]:
            return
        other = marked(self.agreement, person)
        words = (other.second if side else other.first).words + np.uint64(1)
        identifiers = other.first.identifiers
        forged = arrival(
            type(other.first)(identifiers, words, (other.second, other.first)[not side].layout)
        )
        (outcome,) = self.stores[side].receive(self.stores[side].collection(self.mark), [forged])
        assert outcome == 0, "acknowledged alike, and ignored"

    @rule(side=st.integers(0, 1))
    @precondition(lambda self: not any(self.down))
    def goes_down(self, side: int) -> None:
        self.down[side] = True

    @rule()
    @precondition(lambda self: any(self.down))
    def comes_back(self) -> None:
        self.down = [False, False]

    # ---- administrators

    @rule(side=st.integers(0, 1))
    def close(self, side: int) -> None:
        self.stores[side].close_collection(self.mark)

    @rule(breaks=st.one_of(st.none(), st.integers(0, 5)))
    def the_first_publishes(self, breaks: int | None) -> None:
        self.publish(Wire(self, breaks))

    @rule(breaks=st.one_of(st.none(), st.integers(0, 5)))
    def both_agree_and_the_first_publishes(self, breaks: int | None) -> None:
        self.stores[1].close_collection(self.mark)
        self.publish(Wire(self, breaks))

    def publish(self, wire: Wire) -> None:
        if self.down[0]:
            return
        try:
            self.models.add(publish(self.stores[0], self.mark, wire))
        except BlurfitError:
            return
        assert self.stores[1].model(self.mark) == self.stores[0].model(self.mark)

    @rule()
    def the_second_publishes(self) -> None:
        model = self.stores[1].write(
            joint_publication.consent, self.stores[1].collection(self.mark)
        )
        if model is not None:
            self.models.add(model)

    @rule(breaks=st.one_of(st.none(), st.integers(0, 5)))
    def both_publish_at_once(self, breaks: int | None) -> None:
        with ThreadPoolExecutor(3) as everyone:
            for one in [
                everyone.submit(self.publish, Wire(self, breaks)),
                everyone.submit(self.the_second_publishes),
                everyone.submit(self.publish, Wire(self)),
            ]:
                one.result()

    # ---- liars

    @rule(fewer=st.integers(0, 3), more=st.booleans())
    @precondition(lambda self: self.liars)
    def the_second_lies_about_its_names(self, fewer: int, more: bool) -> None:
        self.lied = True

        def lie(names: np.ndarray) -> np.ndarray:
            extra = identifier_sets.as_identifiers(
                b"".join(identifier_of(n) for n in range(self.people))
            )
            return np.concatenate([names[fewer:], extra]) if more else names[fewer:]

        self.publish(Wire(self, lie=lie))

    @rule(fewer=st.integers(0, 4))
    @precondition(lambda self: self.liars)
    def somebody_asks_the_second_for_another_set(self, fewer: int) -> None:
        if self.down[1]:
            return
        self.lied = True
        try:
            here = self.peer.identifiers()
            left_out = here[:fewer]
            common = here[fewer:]
            collection = self.stores[1].collection(self.mark)
            self.ask(commitment.digest_of(collection, common), len(common), left_out)
        except BlurfitError:
            pass

    def ask(self, digest: bytes, count: int, left_out: np.ndarray):
        sums = self.peer.masks(digest, count, left_out)
        assert count >= self.agreement.quorum
        assert self.sums_given.setdefault(digest, sums.tolist()) == sums.tolist()
        return sums

    # ---- what holds

    @invariant()
    def at_most_one_model(self) -> None:
        assert len(self.models) <= 1

    @invariant()
    def no_second_sum(self) -> None:
        assert len(self.sums_given) <= 1

    @invariant()
    def what_was_acknowledged_is_stored_and_only_those_who_reached_both_are_summed(self) -> None:
        both = self.held[0] & self.held[1]
        for store, acknowledged, held in zip(
            self.stores, self.acknowledged, self.held, strict=True
        ):
            status = store.status(self.mark)
            assert acknowledged <= held
            assert status.count == len(held)
            if status.state != "published":
                continue
            found = counted(store, self.agreement)
            assert found <= both
            assert len(found) >= self.agreement.quorum
            if not self.lied:
                assert found == both


def test_random_walks(place, in_memory) -> None:
    class Walk(TwoDatabases):
        pass

    with Store(place) as first, Store(in_memory / "second.db") as second:
        Walk.stores = first, second
        run_state_machine_as_test(Walk, settings=settings(max_examples=10, stateful_step_count=30))


def test_a_walk_that_reaches_the_end(place, in_memory) -> None:
    """Broken once at each of the six moments, and published in the end."""

    class Walk(TwoDatabases):
        pass

    with Store(place) as first, Store(in_memory / "second.db") as second:
        Walk.stores = first, second
        for breaks in range(6):
            _to_the_end(Walk(), breaks)


def _to_the_end(walk: TwoDatabases, breaks: int) -> None:
    for _ in range(9):
        walk.contribute_both()
    walk.contribute({0}, True)
    walk.contribute({1}, True)
    walk.close(1)
    walk.the_first_publishes(breaks)
    assert (walk.stores[1].status(walk.mark).state == "published") == (breaks == 5)
    walk.the_first_publishes(None)
    assert len(walk.models) == 1
    walk.the_second_publishes()
    assert len(walk.models) == len(walk.sums_given) == 1
    assert counted(walk.stores[1], walk.agreement) == set(range(9))
