"""From wave to wave in a store: each step happens as a whole or not at all, and once."""

import threading

import numpy as np
import pytest

from blurfit.contributor.perturb import perturb_table
from blurfit.errors import (
    BelowQuorumError,
    ClosedError,
    InfeasibleError,
    NotInvitedError,
    UnknownCollectionError,
)
from blurfit.model.waves import follows, learn_plan
from blurfit.store import collections, plans
from blurfit.store.arrivals import Arrival
from blurfit.store.store import Store
from support.plans import people, plan, rows
from support.stores import in_memory, place, postgresql  # noqa: F401 (fixtures)

PLAN = plan("label", waves=2, quorum=60)
EVERYONE = people(60, 4)
FIRST, SECOND = PLAN.quorums


@pytest.fixture
def store(place):  # noqa: F811
    with Store(place) as opened:
        yield opened


def fill(store: Store, agreement, start: int, stop: int) -> None:
    store.add(agreement, perturb_table(agreement, rows(EVERYONE, start, stop)))


def test_a_plan_goes_to_its_end(store) -> None:
    first = store.write(plans.begin, PLAN)
    assert first == PLAN.first()
    assert store.write(plans.begin, PLAN) == first  # again changes nothing
    fill(store, first, 0, FIRST)
    second = store.write(plans.advance, PLAN.fingerprint)
    follows(PLAN, store.read(plans.releases, PLAN.fingerprint), second)
    assert store.read(plans.current, PLAN.fingerprint) == second
    with pytest.raises(ClosedError):
        fill(store, first, 0, 1)
    fill(store, second, FIRST, 60)
    assert store.write(plans.advance, PLAN.fingerprint) is None
    assert store.write(plans.advance, PLAN.fingerprint) is None
    model = learn_plan(PLAN, store.read(plans.releases, PLAN.fingerprint))
    assert tuple(one.count for one in model.waves) == PLAN.quorums
    with pytest.raises(ClosedError):
        fill(store, second, 0, 1)


def test_below_its_quorum_a_wave_goes_on(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST - 1)
    with pytest.raises(BelowQuorumError):
        store.write(plans.advance, PLAN.fingerprint)
    assert store.status(first.fingerprint).state == "collecting"
    assert store.read(plans.releases, PLAN.fingerprint) == []


def test_stopped_in_the_middle_nothing_was_published(store, monkeypatch) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)

    def stop(*_given, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(collections, "begin", stop)
        with pytest.raises(KeyboardInterrupt):
            store.write(plans.advance, PLAN.fingerprint)
    assert store.status(first.fingerprint).state == "collecting"
    assert store.read(plans.releases, PLAN.fingerprint) == []
    assert store.write(plans.advance, PLAN.fingerprint).wave.number == 2


def test_two_who_advance_at_once_open_one_wave(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    found: list[object] = []

    def advance() -> None:
        try:
            found.append(store.write(plans.advance, PLAN.fingerprint).fingerprint)
        except BelowQuorumError as error:
            found.append(type(error))

    both = [threading.Thread(target=advance) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    second = store.read(plans.current, PLAN.fingerprint)
    assert sorted(map(str, found)) == sorted([second.fingerprint, str(BelowQuorumError)])


def test_invitations_belong_to_the_plan(store) -> None:
    first = store.write(plans.begin, PLAN)
    tokens = [bytes([number]) * 32 for number in range(FIRST + 2)]
    store.invite(first.fingerprint, tokens)
    sent = perturb_table(first, rows(EVERYONE, 0, FIRST))
    messages = b"".join(one.to_bytes() for one in sent)
    collection = store.collection(first.fingerprint)
    assert store.receive(collection, [Arrival(messages, tokens[:FIRST])]) == [FIRST]
    second = store.write(plans.advance, PLAN.fingerprint)
    later = store.collection(second.fingerprint)
    one, other = (
        next(iter(perturb_table(second, rows(EVERYONE, at, at + 1)))).to_bytes() for at in (20, 21)
    )
    refused, taken = store.receive(later, [Arrival(one, tokens[:1]), Arrival(other, tokens[-1:])])
    assert isinstance(refused, NotInvitedError)  # it was used in wave 1
    assert taken == 1
    assert store.invitations(second.fingerprint) == 1


def test_unknown_plans_and_two_databases_are_refused(store) -> None:
    for what in (plans.advance, plans.current):
        with pytest.raises(UnknownCollectionError):
            store.write(what, "ab" * 32)
    databases = (("One", "https://one.example"), ("Two", "https://two.example"))
    shared = type(PLAN).propose(
        PLAN.schema, waves=2, epsilon=1, delta=1e-6, quorum=60, databases=databases
    )
    with pytest.raises(InfeasibleError, match="one database"):
        store.write(plans.begin, shared)


def test_a_later_wave_is_published_as_its_sums_alone(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    second = store.write(plans.advance, PLAN.fingerprint)
    fill(store, second, FIRST, 60)
    release = store.release(second)
    assert release.to_json() == store.release(second).to_json()
    assert np.isfinite(release.sums).all()
    with pytest.raises(InfeasibleError, match="learn_plan"):
        store.publish_text(second.fingerprint)
