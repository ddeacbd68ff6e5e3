"""A plan in a store: begun once, told how far it is, held and resumed; nobody takes part twice."""

import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb_table
from blurfit.errors import (
    BelowQuorumError,
    ClosedError,
    ConflictError,
    InfeasibleError,
    NotInvitedError,
    NotPublishedError,
    OtherGroupError,
    UnknownCollectionError,
)
from blurfit.store import plans
from blurfit.store.advance import advance
from blurfit.store.arrivals import Arrival
from blurfit.store.store import Store
from support.lots import hashes
from support.plans import fill, people, plan, rows

PLAN = plan("label", waves=2, quorum=60)
EVERYONE = people(60, 4)
FIRST, SECOND = PLAN.quorums


@pytest.fixture
def store(place):
    with Store(place) as opened:
        yield opened


def test_a_plan_is_begun_once(store) -> None:
    first = store.write(plans.begin, PLAN)
    assert first == PLAN.first()
    assert store.write(plans.begin, PLAN) == first  # again changes nothing
    assert Plan.from_json(store.read(plans.document, PLAN.fingerprint)) == PLAN
    assert store.read(plans.fingerprints) == [PLAN.fingerprint]


def test_a_wave_that_was_collected_by_itself_is_not_opened_by_a_plan(store) -> None:
    """It may have been exported, and learned from with others: the plan's would be a second set."""
    first = PLAN.first()
    fill(store, first, 0, FIRST)
    store.close_collection(first.fingerprint)
    with pytest.raises(ConflictError, match="by itself"):
        store.write(plans.begin, PLAN)
    assert store.read(plans.fingerprints) == []


def test_the_status_tells_every_wave(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, 7)
    found = store.read(plans.status, PLAN.fingerprint)
    assert (found.state, found.invited, found.reason, found.model) == (
        "collecting",
        True,
        None,
        None,
    )
    assert [(one.state, one.count, one.quorum) for one in found.waves] == [
        ("collecting", 7, FIRST),
        ("planned", 0, SECOND),
    ]
    assert [one.fingerprint for one in found.waves] == [first.fingerprint, None]


def test_a_plan_that_is_held_collects_and_releases_nothing(store) -> None:
    first = store.write(plans.begin, PLAN)
    store.write(plans.hold, PLAN.fingerprint)
    fill(store, first, 0, FIRST + 1)
    assert store.write(advance, PLAN.fingerprint) is None
    assert store.read(plans.status, PLAN.fingerprint).waves[0].state == "collecting"
    store.write(plans.resume, PLAN.fingerprint)
    assert store.write(advance, PLAN.fingerprint).wave.number == 2
    assert store.read(plans.releases, PLAN.fingerprint)[0].count == FIRST + 1


def test_invitations_belong_to_the_plan(store) -> None:
    first = store.write(plans.begin, PLAN)
    tokens = [*hashes(PLAN, 1, FIRST), *hashes(PLAN, 2, 3)]
    store.invite(first.fingerprint, tokens[:-1])
    sent = perturb_table(first, rows(EVERYONE, 0, FIRST))
    messages = b"".join(one.to_bytes() for one in sent)
    collection = store.collection(first.fingerprint)
    assert store.receive(collection, [Arrival(messages, tokens[:FIRST])]) == [FIRST]
    second = store.write(advance, PLAN.fingerprint)
    # One that is given out under the first wave's name is good for the wave that collects.
    assert store.invite(first.fingerprint, tokens[-1:]) == 1
    assert store.invite(second.fingerprint, tokens[-1:]) == 0
    later = store.collection(second.fingerprint)
    one, *others = (
        next(iter(perturb_table(second, rows(EVERYONE, at, at + 1)))).to_bytes()
        for at in (20, 21, 22)
    )
    refused, *taken = store.receive(
        later,
        [
            Arrival(one, tokens[:1]),
            *(
                Arrival(message, [token])
                for message, token in zip(others, tokens[-2:], strict=True)
            ),
        ],
    )
    assert isinstance(refused, NotInvitedError)  # it was used in wave 1
    assert taken == [1, 1]
    assert store.invitations(second.fingerprint) == 1


def test_colluders_who_all_come_first_are_spread_over_the_waves(store) -> None:
    """Of 20,000 who are invited to three waves, 2,000 collude, come first and try every wave.

    By arrival they would be half of the first wave: ε = 1.455 where 1 is promised. By lot they are
    a tenth of it, which its noise covers; what they learn is no more than 10 % of one wave do.
    """
    big = plan("label", waves=3, quorum=20_000)
    first = store.write(plans.begin, big)
    collection = store.collection(first.fingerprint)
    everyone = sorted(
        one for group, count in enumerate(big.quorums, 1) for one in hashes(big, group, count)
    )
    store.invite(first.fingerprint, everyone)
    table = people(200, 4)
    messages = [one.to_bytes() for _ in range(30) for one in perturb_table(first, table)]

    def come(guests: list[bytes], messages: list[bytes]) -> list[object]:
        arrivals = [Arrival(one, [who]) for one, who in zip(messages, guests, strict=True)]
        return store.receive(collection, arrivals)

    guilty, others = everyone[:2000], everyone[2000:]
    outcomes = come(guilty, messages[:2000])
    inside = sum(one == 1 for one in outcomes)
    assert 340 < inside < 460
    assert sum(isinstance(one, OtherGroupError) for one in outcomes) == 2000 - inside
    quorum = big.quorums[0]
    honest = [one for one in others if big.lot.group_of(one) == 1]
    fresh = messages[2000:]
    assert come(honest[: quorum - inside - 1], fresh[: quorum - inside - 1])
    with pytest.raises(BelowQuorumError):  # also with as many as its noise needs
        store.write(advance, big.fingerprint)
    assert store.count(first) == quorum - 1 >= first.honest
    come(honest[quorum - inside - 1 :][:1], fresh[-1:])
    assert store.write(advance, big.fingerprint).wave.number == 2
    learned = first.calibration.guarantee(count=quorum - inside).epsilon
    alone = Agreement.propose(big.schema, epsilon=1, delta=1e-6, quorum=20_000)
    assert learned <= alone.calibration.guarantee(count=18_000).epsilon < 1.06


def test_a_wave_is_closed_and_published_by_its_plan_alone(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    for what in (store.close_collection, store.publish_text, store.release):
        with pytest.raises(InfeasibleError, match="Hold the plan, or end it early"):
            what(first.fingerprint)
    assert store.status(first.fingerprint).state == "collecting"
    for what in (store.model, store.moments_text):
        with pytest.raises(NotPublishedError, match="wave 1 of the plan"):
            what(first.fingerprint)


def test_unknown_plans_are_refused(store) -> None:
    for what in (advance, plans.current, plans.status, plans.document, plans.shown_at, plans.hold):
        for unknown in ("ab" * 32, "no\0name"):
            with pytest.raises(UnknownCollectionError):
                store.write(what, unknown)


def test_what_has_ended_is_not_held(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    store.write(advance, PLAN.fingerprint, end=True)
    for what in (plans.hold, plans.resume, plans.current):
        with pytest.raises(ClosedError, match="come to its end"):
            store.write(what, PLAN.fingerprint)
