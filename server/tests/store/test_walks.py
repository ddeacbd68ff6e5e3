"""A bad network and two services on one store, by random walks: nothing lost, nothing doubled.

Requests and responses get lost, are replayed, duplicated and overtaken, and come after their wave;
both services release at once, while others arrive; the course is paused, held, resumed and ended.
Whoever was acknowledged is in the sums of her wave, once, and nobody else is: sums on the grid are
exact, so that can be told. An agreement is the course of one wave, and a plan of three.
"""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
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

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb_table
from blurfit.errors import (
    BetweenWavesError,
    BlurfitError,
    ClosedError,
    InfeasibleError,
    PausedError,
)
from blurfit.messages.submissions import Submissions
from blurfit.model.course import Course
from blurfit.model.release import PublishedMoments
from blurfit.schema.schema import Numeric, Schema
from blurfit_server.store import release
from blurfit_server.store.store import Store
from server_support.stores import arrival

TARGET = Numeric("income", 0, 100)
FEATURES = [Numeric("age", 0, 100)]
_fresh = itertools.count()  # each walk has a document of its own, so all of them use one store


def by_hand() -> Agreement:
    promise = {"epsilon": 300 + next(_fresh) * 1e-3, "delta": 1e-6, "quorum": 3}
    return Agreement.propose(Schema(FEATURES, TARGET), **promise, admission="anyone")


def at_quorum() -> Plan:
    promise = {"epsilon": 20 + next(_fresh) * 1e-3, "delta": 1e-6, "quorum": 14}
    return Plan.propose(Schema(FEATURES, TARGET.above(50)), **promise, waves=3, admission="anyone")


class Walk(RuleBasedStateMachine):
    """Senders, a network that loses and repeats, and two services."""

    services: tuple[Store, Store]  # which all walks share
    document: Callable[[], Any]
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.course = type(self).document()
        self.name = self.course.fingerprint
        for service in self.services:
            service.open(self.course)
        self.generator = np.random.default_rng(next(_fresh))
        self.counted: dict[str, dict[bytes, np.ndarray]] = {}  # by wave and identifier
        self.published: list[str] = []
        self.models: set[str] = set()
        self.seen: object = None

    def blurred(self, count: int = 1) -> Submissions | None:
        """People who blur for the wave that collects now; None if none does."""
        try:
            wave = self.services[0].current(self.name)
        except (ClosedError, BetweenWavesError):
            return None
        age = self.generator.uniform(0, 100, count)
        return perturb_table(wave, {"age": age, "income": age})

    def deliver(self, service: int, *tables: Submissions | None) -> list[object]:
        """Bring some heaps of submissions as one group; each is told by itself."""
        store, given = self.services[service], [one for one in tables if one is not None]
        outcomes: list[object] = []
        for wave, heap in itertools.groupby(given, lambda one: one.fingerprint):
            group = list(heap)
            found = store.receive(store.collection(wave), [arrival(one) for one in group])
            for table, outcome in zip(group, found, strict=True):
                if isinstance(outcome, BlurfitError):
                    assert isinstance(outcome, ClosedError | PausedError)
                    continue
                known = self.counted.setdefault(wave, {})
                for name, numbers in zip(table.identifiers, table.numbers, strict=True):
                    known.setdefault(name.tobytes(), numbers)
            outcomes += found
        return outcomes

    def is_counted(self, table: Submissions) -> bool:
        known = self.counted.get(table.fingerprint, {})
        return all(one.tobytes() in known for one in table.identifiers)

    @rule(target=sent)
    def blur_but_the_request_is_lost(self) -> Submissions | None:
        return self.blurred()

    @rule(target=sent, service=st.integers(0, 1), count=st.integers(1, 4))
    def send(self, service: int, count: int) -> Submissions | None:
        table = self.blurred(count)
        outcomes = self.deliver(service, table)
        paused = self.services[0].status(self.name).state == "paused"
        assert paused or table is None or outcomes == [count], "an open wave refuses nobody"
        return table

    @rule(table=sent, service=st.integers(0, 1))
    def replay(self, table: Submissions | None, service: int) -> None:
        if table is not None and self.is_counted(table):
            assert self.deliver(service, table) == [0], "acknowledged for ever, and counted once"

    @rule(tables=st.lists(sent, min_size=1, max_size=6), service=st.integers(0, 1))
    def a_late_heap_arrives_in_any_order(self, tables: list, service: int) -> None:
        self.deliver(service, *tables)

    @rule(table=sent, service=st.integers(0, 1))
    def an_attacker_uses_an_identifier_again(self, table: Submissions | None, service: int) -> None:
        if table is not None and self.is_counted(table):
            other = Submissions(table.identifiers, table.fingerprint, table.numbers * 0)
            assert self.deliver(service, other) == [0], "acknowledged alike, and ignored"

    @rule(tables=st.lists(sent, min_size=1, max_size=4), count=st.integers(1, 4))
    def both_services_get_the_same_and_release_at_once(self, tables: list, count: int) -> None:
        fresh = self.blurred(count)
        with ThreadPoolExecutor(4) as everyone:
            for one in (
                everyone.submit(self.deliver, 0, fresh, *tables),
                everyone.submit(self.deliver, 1, *reversed(tables), fresh),
                everyone.submit(self.step, 0),
                everyone.submit(self.step, 1),
            ):
                one.result()

    @rule(service=st.integers(0, 1))
    def step(self, service: int) -> None:
        """Do what is to be done."""
        for task in self.services[service].due():
            if task.course == self.name:
                self.services[service].work(task)

    @rule(service=st.integers(0, 1))
    def killed_before_the_release_is_kept(self, service: int) -> None:
        store = self.services[service]
        with suppress(InfeasibleError):
            store.write(
                release.fix, store.course(self.name), end=isinstance(self.course, Agreement)
            )

    @rule(service=st.integers(0, 1), what=st.sampled_from(["hold", "pause", "resume", "resume"]))
    def hold_or_resume(self, service: int, what: str) -> None:
        with suppress(InfeasibleError):
            getattr(self.services[service], what)(self.name)

    @rule(wanted=st.integers(0, 2), service=st.integers(0, 1))
    def publish(self, wanted: int, service: int) -> None:
        if wanted == 0:
            with suppress(InfeasibleError):
                self.models.add(self.services[service].publish_text(self.name))

    @invariant()
    def published_once_and_what_was_counted(self) -> None:
        status = self.services[1].status(self.name)
        if status == self.seen:
            return
        self.seen = status
        for wave in status.waves:
            assert wave.count == len(self.counted.get(wave.fingerprint or "", {}))
        open_now = [one.number for one in status.waves if one.state in ("collecting", "fixed")]
        is_over = status.state in ("ended", "published")
        assert len(open_now) == (0 if is_over else 1), "never both or neither"
        texts = self.services[0].releases(self.name)
        assert texts[: len(self.published)] == self.published, "and for ever"
        if len(texts) > len(self.published):
            self.releases_are_right(texts)
        self.published = texts
        if is_over:
            self.models |= {service.model(self.name) for service in self.services}
        assert len(self.models) <= 1

    def releases_are_right(self, texts: list[str]) -> None:
        """Each is of those who were counted in its wave, and the next wave follows from them."""
        releases = [PublishedMoments.from_json(text) for text in texts]
        for shown in releases:
            counted = self.counted[shown.fingerprint]
            assert shown.count == len(counted) >= shown.agreement.quorum
            assert shown.sums.tolist() == np.sum(list(counted.values()), axis=0).tolist()
        with suppress(ClosedError, BetweenWavesError):
            Course.of(self.course, releases).require(self.services[0].current(self.name))


@pytest.mark.parametrize("document", [by_hand, at_quorum])
def test_random_walks(place, document) -> None:
    walk = type("ThisWalk", (Walk,), {"document": staticmethod(document)})
    with Store(place) as first, Store(place) as second:
        walk.services = first, second
        run_state_machine_as_test(walk, settings=settings(max_examples=8, stateful_step_count=25))
