"""A plan between two stores: marked contributors, and the second database without a wire."""

from functools import cache

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.share import SharedRecords, share
from blurfit.schema.schema import Schema
from blurfit.service import leading
from blurfit.service.leading import Follower, WavePeer
from blurfit.store import commitment, joint_plans, joint_publication, plans
from blurfit.store.joint_plans import News
from blurfit.store.store import Store
from support.plans import FEATURES, TARGETS, people, rows
from support.sharing import TWO, arrival


@cache
def joint_plan(
    task: str = "label", waves: int = 2, quorum: int = 60, databases=TWO, **changes
) -> Plan:
    """A plan between two databases."""
    terms = {"epsilon": 1.0, "delta": 1e-6, "quorum": quorum, "admission": "anyone"} | changes
    schema = Schema(FEATURES, TARGETS[task])
    return Plan.propose(schema, waves=waves, counts=task == "count", databases=databases, **terms)


class DirectWave(WavePeer):
    """What the second database's service does with its store in one wave."""

    def __init__(self, store: Store, agreement: Agreement) -> None:
        self.store, self.name = store, agreement.fingerprint

    @property
    def wave(self):
        return self.store.collection(self.name)

    def identifiers(self):
        found = self.store.read(joint_plans.shown_identifiers, self.wave, b"", 2**18)
        return commitment.as_identifiers(found)

    def close_wave(self) -> None:
        self.store.write(joint_plans.close, self.wave)

    def masks(self, digest, count, left_out):
        self.store.write(joint_plans.accept, self.wave, digest, count, left_out)
        return self.store.read(joint_publication.sums_over, self.wave)[1]

    def release(self, moments: str, following: str | None) -> None:
        self.store.write(joint_plans.take_release, self.wave, moments, following)


class Direct(Follower):
    """The second database of a plan without a wire."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self.store, self.plan = store, plan

    def wave(self, agreement: Agreement) -> DirectWave:
        return DirectWave(self.store, agreement)

    def tell(self, news: News) -> None:
        name = self.plan.fingerprint
        if news.state == "ended":
            joint_plans.check_model(self.plan, self.store.read(plans.releases, name), news.model)
        self.store.write(joint_plans.take_news, name, news)


def begun(plan: Plan, first: Store, second: Store) -> Direct:
    """The plan, opened at both."""
    first.write(plans.begin, plan, "first")
    second.write(plans.begin, plan, "second")
    return Direct(second, plan)


def current(store: Store, plan: Plan) -> Agreement:
    return store.read(plans.current, plan.fingerprint)


def shared(agreement: Agreement, start: int, stop: int) -> SharedRecords:
    """Some of seventy people, blurred and shared."""
    return share(agreement, rows(people(70, 4), start, stop))


def send(agreement: Agreement, sent: SharedRecords, *stores: Store | None) -> list[object]:
    """The shares to the stores, in the order of the databases; what became of them."""
    outcomes: list[object] = []
    for store, shares in zip(stores, (sent.first, sent.second), strict=True):
        if store is not None:
            (outcome,) = store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
            outcomes.append(outcome)
    return outcomes


def lead(first: Store, plan: Plan, follower: Follower) -> None:
    leading.lead(first, plan.fingerprint, follower)
