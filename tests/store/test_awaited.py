"""Whoever looks at one of two databases is told if the other has the next step."""

import pytest
from blurfit.service.peer import publish

from blurfit.errors import NotPublishedError, ServiceError
from blurfit.service import leading
from blurfit.store import joint_publication, plans
from blurfit.store.store import Store
from support.joint_plans import Direct as Follower
from support.joint_plans import both, joint_plan
from support.sharing import Direct, new_agreement, opened, send


class Deaf(Direct):
    """A second database that is gone when the result is brought."""

    def deliver(self, model: str | None, moments: str) -> None:
        raise ServiceError("nobody answers")


class DeafFollower(Follower):
    """A second database of a plan that is never told how it ended."""

    def tell(self, news) -> None:
        raise ServiceError("nobody answers")


def test_a_closed_second_waits_for_the_first_and_a_first_until_the_second_has_it() -> None:
    agreement = new_agreement()
    name = agreement.fingerprint
    with Store() as first, Store() as second:
        peer = opened(agreement, first, second)

        def awaited() -> list[str | None]:
            return [store.status(name).awaits for store in (first, second)]

        send(agreement, first, second, 1, 2, 3)
        assert awaited() == [None, None]
        second.write(joint_publication.consent, second.collection(name))
        assert awaited() == [None, "Office"]
        with pytest.raises(ServiceError):
            publish(first, name, Deaf(second, name))
        assert awaited() == ["University", "Office"]
        publish(first, name, peer)
        assert awaited() == [None, None]


def test_one_database_waits_for_nobody(agreement) -> None:
    with Store() as store:
        store.open(agreement)
        store.close_collection(agreement.fingerprint)
        assert store.status(agreement.fingerprint).awaits is None


def test_a_plan_of_which_the_second_does_not_hear() -> None:
    plan = joint_plan()
    with both(plan) as two:

        def awaited() -> list[str | None]:
            return [two.status(side).awaits for side in (0, 1)]

        two.send(plan.quorums[0])
        assert awaited() == [None, None]
        wave = two.first.collection(two.current().fingerprint)
        two.follower.wave(wave.agreement).close_wave()  # and the first goes no further
        assert awaited() == [None, "Office"]
        two.lead()
        assert awaited() == [None, None]
        two.send(plan.quorums[1])
        with pytest.raises(ServiceError):
            leading.lead(two.first, two.name, DeafFollower(two.second, plan))
        assert awaited() == ["University", "Office"]
        assert two.status(1).state == "ended"
        with pytest.raises(NotPublishedError, match="Its model comes from Office"):
            two.second.read(plans.shown_at, two.name)
        two.lead()
        assert awaited() == [None, None]
        assert two.second.read(plans.model_text, two.name) == two.first.read(
            plans.model_text, two.name
        )
