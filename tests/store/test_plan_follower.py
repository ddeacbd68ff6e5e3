"""The second database sums over one set, takes one release, and checks whatever it is told."""

from dataclasses import replace

import pytest

from blurfit.errors import (
    BetweenWavesError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
)
from blurfit.model.course import learn_plan
from blurfit.store import (
    commitment,
    identifier_sets,
    plan_follower,
    plans,
)
from blurfit.store.joint_plans import News
from support.joint_plans import Direct, both, joint_plan

PLAN = joint_plan()
FIRST, _ = PLAN.quorums


@pytest.fixture
def two():
    with both(PLAN) as opened:
        yield opened


def test_no_other_set_is_ever_summed_over(two) -> None:
    sent = two.send(FIRST + 1)
    two.lead()
    wave = two.second.collection(PLAN.first().fingerprint)
    held = two.second.read(identifier_sets.identifiers_of, wave)
    digest = commitment.digest_of(wave, held[1:])
    with pytest.raises(InfeasibleError):
        two.second.write(plan_follower.accept, wave, digest, FIRST, held[:1])
    chosen = two.second.read(commitment.recorded, wave)
    assert chosen.count == FIRST + 1
    assert len(sent) == FIRST + 1


def test_a_second_that_is_asked_for_another_set_before_the_release(two) -> None:
    """Whoever has the peer's token, and asks first, fixes the set: there is no other afterwards."""
    two.send(FIRST + 1)
    peer = two.follower.wave(PLAN.first())
    wave = two.second.collection(PLAN.first().fingerprint)
    held = peer.identifiers()
    with pytest.raises(InfeasibleError, match="closed"):  # no sum while more may come
        peer.masks(commitment.digest_of(wave, held[1:]), FIRST, held[:1])
    peer.close_wave()
    peer.masks(commitment.digest_of(wave, held[1:]), FIRST, held[:1])
    with pytest.raises(ConflictError, match="There will never be another"):
        two.lead()
    assert two.states() == [["closing", "planned"]] * 2
    assert two.first.read(plans.release_texts, two.name) == []


def test_no_other_sums_and_no_wave_of_another_plan_are_taken(two) -> None:
    two.send(FIRST)
    other = joint_plan(quorum=61)  # of whom nothing follows here
    peer = two.follower.wave(PLAN.first())
    with pytest.raises(InvalidValueError, match="set that was fixed"), both(PLAN) as elsewhere:
        elsewhere.send(FIRST)
        elsewhere.lead()
        (text,) = elsewhere.first.read(plans.release_texts, PLAN.fingerprint)
        peer.release(text, None)
    kept: list[tuple[str, str | None]] = []

    class Announcing(Direct):
        def wave(self, agreement):
            found = super().wave(agreement)
            tell = found.release

            def release(moments, following):
                kept.append((moments, following))
                tell(moments, other.first().to_json())

            found.release = release
            return found

    with pytest.raises(NotCertifiedError, match="Expected an agreement of the plan"):
        two.lead(Announcing(two.second, PLAN))
    assert two.states() == [["released", "collecting"], ["closing", "planned"]]
    with pytest.raises(BetweenWavesError):
        two.current(1)  # so no contributor blurs
    two.lead()
    two.check()
    ((moments, following),) = kept
    peer.release(moments, following)  # again changes nothing
    with pytest.raises(ConflictError, match="a wave has one"):
        peer.release(text, following)


def test_a_model_that_does_not_follow_is_not_taken(two) -> None:
    two.send(FIRST)
    two.lead()
    found = learn_plan(PLAN, two.first.read(plans.releases, two.name))
    text = replace(found, weights=found.weights + 1.0).to_json()
    with pytest.raises(InvalidValueError, match="follows from the plan's releases"):
        two.follower.tell(News("ended", None, text))
    assert two.status(1).state == "collecting"


def test_held_after_closing_no_sum_is_told(two) -> None:
    two.send(FIRST)
    peer = two.follower.wave(PLAN.first())
    peer.close_wave()
    two.second.write(plans.hold, two.name)
    with pytest.raises(InfeasibleError, match="University holds the plan"):
        two.lead()
    two.second.write(plans.resume, two.name)
    two.lead()
    two.check()
