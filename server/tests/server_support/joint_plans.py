"""A plan between two stores: people whose shares are known, and the second without a wire."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import SharedRecords, share
from blurfit.messages.submissions import expand
from blurfit.model.course import Course
from blurfit.model.release import PublishedMoments
from blurfit.schema.schema import Schema
from blurfit_server.store import blocks
from blurfit_server.store.joint import Peer
from blurfit_server.store.store import Store
from server_support.sharing import arrival, drive, opened
from support.plans import FEATURES, TARGETS, people, rows
from support.sharing import TWO

EVERYONE = 120


@cache
def joint_plan(
    task: str = "number", waves: int = 2, quorum: int = 60, databases=TWO, **changes
) -> Plan:
    """A plan between two databases."""
    terms = {"epsilon": 1.0, "delta": 1e-6, "quorum": quorum, "admission": "anyone"} | changes
    schema = Schema(FEATURES, TARGETS[task])
    return Plan.propose(schema, waves=waves, counts=task == "count", databases=databases, **terms)


class Both:
    """The two databases of a plan, and what was sent to them."""

    def __init__(self, plan: Plan | Agreement, first: Store, second: Store) -> None:
        self.plan, self.name, self.stores = plan, plan.fingerprint, (first, second)
        self.first, self.second = first, second
        self.peer = opened(plan, first, second)
        self.at = 0  # people so far
        self.numbers: dict[str, dict[bytes, np.ndarray]] = {}  # by wave: what each one blurred

    def current(self, side: int = 0) -> Agreement:
        return self.stores[side].current(self.name)

    def status(self, side: int = 0):
        return self.stores[side].status(self.name)

    def states(self) -> list[list[str]]:
        return [[one.state for one in self.status(side).waves] for side in (0, 1)]

    def shared(self, count: int, wave: Agreement | None = None) -> SharedRecords:
        """The next people, blurred and shared for a wave."""
        wave = self.current() if wave is None else wave
        self.at += count
        sent = share(wave, rows(people(EVERYONE, 4), self.at - count, self.at))
        masks = expand(sent.second.words, wave.width)
        exact = (sent.first.words - masks).view(np.int64)
        known = self.numbers.setdefault(wave.fingerprint, {})
        known |= {name.tobytes(): v for name, v in zip(sent.first.identifiers, exact, strict=True)}
        return sent

    def deliver(
        self, sent: SharedRecords, sides: tuple[int, ...] = (1, 0), tokens=None
    ) -> list[object]:
        """The shares to some of the databases; what became of each."""
        name, outcomes = sent.first.layout.fingerprint, []
        for side in sides:
            store, shares = self.stores[side], (sent.first, sent.second)[side]
            given = arrival(shares)
            if tokens is not None:
                given = type(given)(given.rows, tokens[side])
            (outcome,) = store.receive(store.collection(name), [given])
            outcomes.append(outcome)
        return outcomes

    def send(self, count: int, sides: tuple[int, ...] = (1, 0)) -> SharedRecords:
        sent = self.shared(count)
        assert self.deliver(sent, sides) == [count] * len(sides)
        return sent

    def lead(self, peer: Peer | None = None) -> None:
        """Do everything that the first database has to do now."""
        drive(self.first, peer or self.peer)

    def check(self) -> None:
        """Both have published the same: of each wave the sums of whom both hold, no one else."""
        texts = [store.releases(self.name) for store in self.stores]
        assert texts[0] == texts[1]
        assert self.status(0).state == self.status(1).state
        assert self.states()[0] == self.states()[1]
        releases = self.check_sums()
        if self.status().state != "ended":
            assert self.current(0) == self.current(1)
            Course.of(self.plan, releases).require(self.current())

    def check_sums(self, *, exactly: bool = True) -> list[PublishedMoments]:
        """Published are sums of some whom both hold; of all of them, if nobody lied."""
        releases = [PublishedMoments.from_json(one) for one in self.first.releases(self.name)]
        for shown in releases:
            held = [self.holders(side, shown.fingerprint) for side in (0, 1)]
            common = held[0] & held[1]
            known = self.numbers[shown.fingerprint]
            assert len(common) >= shown.count >= shown.agreement.quorum
            if exactly:
                assert shown.count == len(common)
                if not shown.agreement.database_noise:
                    total = np.sum([known[one] for one in common], axis=0)
                    step = shown.agreement.step
                    assert shown.sums.tolist() == (total * step).tolist()
        return releases

    def holders(self, side: int, wave: str) -> set[bytes]:
        store = self.stores[side]
        found = store.read(blocks.held_identifiers, store.collection(wave).key)
        return {one.tobytes() for one in found}


@contextmanager
def both(plan: Plan | Agreement, *places) -> Iterator[Both]:
    one, other = places or (":memory:", ":memory:")
    with Store(one) as first, Store(other) as second:
        yield Both(plan, first, second)
