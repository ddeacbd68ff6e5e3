"""A plan, a bad network and two services on one store, by random walks.

Requests and answers get lost, are replayed, and come after their wave; both services take the step
at once, while others arrive; the plan is held, resumed and ended. Whoever was acknowledged is in
the sums of her wave, once, and nobody else is: sums on the grid are exact, so that can be told.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

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

from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb_table
from blurfit.errors import BelowQuorumError, BlurfitError, ClosedError, WaveClosedError
from blurfit.messages.submissions import Submissions
from blurfit.model.course import Course
from blurfit.model.moments import PublishedMoments
from blurfit.schema.schema import Numeric, Schema
from blurfit.store import plan_rows, plans
from blurfit.store.advance import advance, learn_model
from blurfit.store.plans import PlanStatus
from blurfit.store.store import Store
from support.stores import arrival

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100).above(50))
_plans = itertools.count()


def new_plan() -> Plan:
    """Each walk has a plan of its own, so all of them can use one store."""
    epsilon = 20 + next(_plans) * 1e-3
    return Plan.propose(SCHEMA, epsilon=epsilon, delta=1e-6, quorum=14, waves=3, admission="anyone")


class Faults(RuleBasedStateMachine):
    """Senders, a network that loses and repeats, and two services that take a plan forward."""

    place = ""
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.services = [Store(self.place), Store(self.place)]
        self.plan = new_plan()
        self.name = self.plan.fingerprint
        self.services[0].write(plans.begin, self.plan)
        self.generator = np.random.default_rng(next(_plans))
        self.counted: dict[str, dict[bytes, np.ndarray]] = {}  # by wave and identifier
        self.published: list[str] = []
        self.seen: PlanStatus | None = None

    def teardown(self) -> None:
        for service in self.services:
            service.close()

    def blurred(self, count: int = 1) -> Submissions | None:
        """People who blur for the wave that collects now; None if the plan has ended."""
        try:
            wave = self.services[0].read(plans.current, self.name)
        except ClosedError:
            return None
        age = self.generator.uniform(0, 100, count)
        return perturb_table(wave, {"age": age, "income": age})

    def deliver(self, service: int, table: Submissions | None) -> object:
        if table is None:
            return None
        store = self.services[service]
        (outcome,) = store.receive(store.collection(table.fingerprint), [arrival(table)])
        if not isinstance(outcome, BlurfitError):
            wave = self.counted.setdefault(table.fingerprint, {})
            for identifier, numbers in zip(table.identifiers, table.numbers, strict=True):
                wave.setdefault(identifier.tobytes(), numbers)
        else:
            assert isinstance(outcome, WaveClosedError)
        return outcome

    @rule(target=sent)
    def blur_but_the_request_is_lost(self) -> Submissions | None:
        return self.blurred()

    @rule(target=sent, service=st.integers(0, 1), count=st.integers(1, 4))
    def send(self, service: int, count: int) -> Submissions | None:
        table = self.blurred(count)
        assert self.deliver(service, table) in (None, count)  # an open wave refuses nobody
        return table

    @rule(table=sent, service=st.integers(0, 1))
    def replay(self, table: Submissions | None, service: int) -> None:
        known = table is not None and table.identifiers[0].tobytes() in self.counted.get(
            table.fingerprint, {}
        )
        outcome = self.deliver(service, table)
        if known:
            assert outcome == 0, "acknowledged whatever has become of the wave, and counted once"

    @rule(service=st.integers(0, 1))
    def step(self, service: int) -> None:
        self.take_the_step(service)

    def take_the_step(self, service: int, **options: bool) -> None:
        try:
            self.services[service].write(advance, self.name, **options)
        except BelowQuorumError:
            return

    @rule(late=sent, count=st.integers(1, 4))
    def both_take_the_step_while_others_arrive(self, late: Submissions | None, count: int) -> None:
        fresh = self.blurred(count)
        with ThreadPoolExecutor(4) as everyone:
            arriving = [
                everyone.submit(self.deliver, 0, fresh),
                everyone.submit(self.deliver, 1, late),
            ]
            steps = [everyone.submit(self.take_the_step, one) for one in (0, 1)]
            for one in (*arriving, *steps):
                one.result()

    @rule(service=st.integers(0, 1), what=st.sampled_from([plans.hold, plans.resume, plans.resume]))
    def hold_or_resume(self, service: int, what) -> None:
        try:
            self.services[service].write(what, self.name)
        except ClosedError:
            assert self.services[service].read(plans.status, self.name).state == "ended"

    @rule(wanted=st.integers(0, 5))
    def end_it_early(self, wanted: int) -> None:
        if wanted == 0:
            self.take_the_step(0, end=True)

    @invariant()
    def published_once_and_what_was_counted(self) -> None:
        status = self.services[1].read(plans.status, self.name)
        if status == self.seen:
            return
        self.seen = status
        for wave in status.waves:
            assert wave.count == len(self.counted.get(wave.fingerprint or "", {}))
        open_now = [wave.number for wave in status.waves if wave.state == "collecting"]
        assert len(open_now) == (0 if status.state == "ended" else 1), "never both or neither"
        texts = self.services[0].read(plans.release_texts, self.name)
        assert texts[: len(self.published)] == self.published, "and for ever"
        if len(texts) > len(self.published):
            self.releases_are_right(texts)
        self.published = texts
        if status.state == "ended":
            text = learn_model(self.services[1], self.name)
            assert text == learn_model(self.services[0], self.name)
            assert text is not None

    def releases_are_right(self, texts: list[str]) -> None:
        """Each is of those who were counted in its wave, and the next wave follows from them."""
        releases = [PublishedMoments.from_json(text) for text in texts]
        for shown in releases:
            counted = self.counted[shown.fingerprint]
            assert shown.count == len(counted) >= shown.agreement.quorum
            assert shown.sums.tolist() == np.sum(list(counted.values()), axis=0).tolist()
        course = Course.of(self.plan, releases)
        agreements = self.services[0].read(plan_rows.agreements, self.name)
        if len(agreements) > len(releases):
            course.require(agreements[-1])


def test_random_walks(place) -> None:
    class Walk(Faults):
        pass

    Walk.place = place
    run_state_machine_as_test(Walk, settings=settings(max_examples=5, stateful_step_count=20))
