"""A bad network and two services on one store, by random walks: nothing lost, nothing doubled.

Requests and responses get lost, are replayed, duplicated and overtaken; publishing races with
submissions. Every submission carries a value of its own, a different power of two of the grid's
step, so that the published sums say who was counted, and how often.
"""

import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from blurfit import Agreement, BlurfitError, ClosedError, ConflictError, InfeasibleError
from blurfit.messages.submissions import Submissions
from blurfit.schema.schema import Numeric, Schema
from blurfit.store import publication
from blurfit.store.store import Store
from support.published import moments_in
from support.stores import arrival

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
MOST = 40  # senders, such that the largest mark still passes the screen
IDENTIFIERS = np.random.default_rng(5).integers(0, 256, (200, 16), dtype=np.uint8)
_collections = itertools.count()


def new_agreement() -> Agreement:
    """Each walk has an agreement of its own, so all of them can use one store."""
    return Agreement.propose(
        SCHEMA,
        epsilon=300 + next(_collections) * 1e-3,  # so little noise that nothing is sampled
        delta=1e-6,
        quorum=3,
        admission="anyone",
    )


def marks(senders: Iterable[int], width: int) -> np.ndarray:
    """In steps of the grid: each sender has a bit of its own, so sums say who is in them."""
    steps = np.zeros(width)
    for sender in senders:
        steps[sender % width] += 2.0 ** (sender // width)
    return steps


class Faults(RuleBasedStateMachine):
    """Senders, a network that loses and repeats, and two services."""

    services: tuple[Store, Store]  # which all walks share
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.agreement = new_agreement()
        self.fingerprint = self.agreement.fingerprint
        for service in self.services:
            service.open(self.agreement)
        self.senders = 0
        self.acknowledged: set[int] = set()
        self.delivered: set[int] = set()
        self.models: set[str] = set()
        self.fixed = False

    def message(self, sender: int, mark: int | None = None) -> Submissions:
        """The sender's submission: a bit of its own in one of the numbers."""
        steps = marks([sender if mark is None else mark], self.agreement.width)
        numbers = steps[None] * self.agreement.grid.quadratic
        return Submissions(IDENTIFIERS[sender : sender + 1], self.fingerprint, numbers)

    def deliver(self, service: int, *senders: int) -> list[object]:
        group = [arrival(self.message(sender)) for sender in senders]
        try:
            outcomes = self.services[service].receive(
                self.services[service].collection(self.fingerprint), group
            )
        except BlurfitError as error:
            return [error] * len(group)
        for sender, outcome in zip(senders, outcomes, strict=True):
            if not isinstance(outcome, BlurfitError):
                self.delivered.add(sender)
        return outcomes

    def new_sender(self) -> int:
        self.senders += 1
        return self.senders - 1

    @rule(target=sent)
    @precondition(lambda self: self.senders < MOST)
    def send_but_the_request_is_lost(self) -> int:
        return self.new_sender()

    @rule(target=sent, service=st.integers(0, 1), answered=st.booleans())
    @precondition(lambda self: self.senders < MOST)
    def send(self, service: int, answered: bool) -> int:
        sender = self.new_sender()
        (outcome,) = self.deliver(service, sender)
        if answered and not isinstance(outcome, BlurfitError):
            self.acknowledged.add(sender)
        assert not isinstance(outcome, ConflictError)
        assert isinstance(outcome, ClosedError) == self.fixed
        return sender

    @rule(sender=sent, service=st.integers(0, 1))
    def replay(self, sender: int, service: int) -> None:
        before = sender in self.delivered
        (outcome,) = self.deliver(service, sender)
        if before:
            assert outcome == 0, "accepted again, and counted once"
            self.acknowledged.add(sender)
        else:
            assert isinstance(outcome, ClosedError) if self.fixed else outcome == 1

    @rule(senders=st.lists(sent, min_size=1, max_size=6), service=st.integers(0, 1))
    def a_late_heap_arrives_in_any_order(self, senders: list[int], service: int) -> None:
        outcomes = self.deliver(service, *senders)
        assert not any(isinstance(outcome, ConflictError) for outcome in outcomes)

    @rule(senders=st.lists(sent, min_size=1, max_size=6))
    def both_services_get_the_same_at_once(self, senders: list[int]) -> None:
        with ThreadPoolExecutor(2) as both:
            first = both.submit(self.deliver, 0, *senders)
            second = both.submit(self.deliver, 1, *reversed(senders))
            outcomes = first.result() + second.result()
        assert sum(one for one in outcomes if isinstance(one, int)) <= len(set(senders))

    @rule(sender=sent, service=st.integers(0, 1))
    def an_attacker_uses_an_identifier_again(self, sender: int, service: int) -> None:
        other = self.message(sender, mark=(sender + 1) % MOST)
        if sender not in self.delivered:
            return  # then it would be a sender like any other
        (outcome,) = self.services[service].receive(
            self.services[service].collection(self.fingerprint), [arrival(other)]
        )
        assert outcome == 0, "acknowledged alike, and ignored"

    @rule(service=st.integers(0, 1))
    def publish(self, service: int) -> None:
        try:
            self.models.add(self.services[service].publish_text(self.fingerprint))
            self.fixed = True
        except InfeasibleError:
            assert len(self.delivered) < 3

    @rule(service=st.integers(0, 1))
    def publish_but_it_is_killed_before_a_model_is_kept(self, service: int) -> None:
        store = self.services[service]
        try:
            store.write(publication.fix, store.collection(self.fingerprint))
            self.fixed = True
        except InfeasibleError:
            assert len(self.delivered) < 3

    @rule(senders=st.lists(sent, min_size=1, max_size=4))
    def publish_races_with_submissions(self, senders: list[int]) -> None:
        with ThreadPoolExecutor(3) as everyone:
            arriving = everyone.submit(self.deliver, 0, *senders)
            publishing = [
                everyone.submit(service.publish_text, self.fingerprint) for service in self.services
            ]
            arriving.result()
            for one in publishing:
                try:
                    self.models.add(one.result())
                    self.fixed = True
                except InfeasibleError:
                    assert not self.models or len(self.models) == 1

    @invariant()
    def at_most_one_model(self) -> None:
        assert len(self.models) <= 1

    @invariant()
    def counted_once(self) -> None:
        counts = {service.count(self.agreement) for service in self.services}
        assert counts == {len(self.delivered)}
        assert self.acknowledged <= self.delivered
        if self.models:
            shown = moments_in(self.services[0].moments_text(self.fingerprint))
            steps = shown.sums / self.agreement.grid.quadratic
            assert steps.tolist() == marks(self.delivered, self.agreement.width).tolist()


def test_random_walks(place) -> None:
    class Walk(Faults):
        pass

    with Store(place) as first, Store(place) as second:
        Walk.services = first, second
        run_state_machine_as_test(Walk, settings=settings(max_examples=10, stateful_step_count=30))
