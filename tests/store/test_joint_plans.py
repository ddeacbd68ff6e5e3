"""A plan between two databases: one wave, one set, one sum, wherever either of them is stopped."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from blurfit.service.leading import TooFewError
from blurfit.store.advance import advance
from blurfit.store.joint_plans import News
from blurfit.store.withdrawal import withdraw
from sqlalchemy import event

from blurfit.errors import (
    BetweenWavesError,
    ClosedError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotInvitedError,
    ServiceError,
    WaveClosedError,
)
from blurfit.model.course import learn_plan
from blurfit.model.model import PublishedModel
from blurfit.service import leading
from blurfit.store import (
    commitment,
    identifier_sets,
    joint_publication,
    plan_follower,
    plan_leader,
    plans,
    shared_sums,
)
from blurfit.store.backup import backup, restore
from blurfit.store.store import Store
from support.joint_plans import Both, Direct, both, joint_plan
from support.lots import hashes

PLAN = joint_plan()
FIRST, SECOND = PLAN.quorums
FOREVER = 4_000_000_000


@pytest.fixture
def two():
    with both(PLAN) as opened:
        yield opened


def test_both_go_from_wave_to_wave_and_publish_the_same(two) -> None:
    assert two.current(0) == two.current(1) == PLAN.first()
    two.send(FIRST)
    assert two.first.read(plan_leader.leading) == [two.name]
    assert two.second.read(plan_leader.leading) == []
    two.lead()
    assert two.states() == [["released", "collecting"]] * 2
    two.check()
    two.send(SECOND)
    two.lead()
    two.check()
    assert two.states() == [["released", "released"]] * 2
    texts = {store.read(plans.model_text, two.name) for store in two.stores}
    assert texts == {learn_plan(PLAN, two.first.read(plans.releases, two.name)).to_json()}
    assert two.first.read(plan_leader.leading) == []
    two.lead()  # again changes nothing
    two.check()


def test_whichever_store_either_has(place, in_memory) -> None:
    """One store may be the first for one plan and the second for another."""
    places = place, in_memory / "other.db"
    for plan, order in ((PLAN, places), (joint_plan(quorum=61), places[::-1])):
        with both(plan, *order) as two:
            two.send(plan.quorums[0])
            two.lead()
            two.check()
            two.send(2)
            leading.end(two.first, two.name, two.follower)
            two.check()
            assert two.states() == [["released", "dropped"]] * 2


@pytest.mark.parametrize("noise", [False, True], ids=["alone", "with noise of the databases"])
def test_to_the_logistic_model_itself(noise) -> None:
    """Newton's wave, whose gradient has the largest numbers, and noise of both databases."""
    with both(joint_plan("label", 3, 90, database_noise=noise)) as two:
        for quorum in two.plan.quorums:
            two.send(quorum)
            two.lead()
            two.check()
        model = PublishedModel.from_json(two.second.read(plans.model_text, two.name))
        assert (model.link, model.count, len(model.waves)) == ("logistic", 90, 3)
        draws = {one.agreement.database_draws for one in two.first.read(plans.releases, two.name)}
        assert draws == {2 if noise else 0}


def test_between_two_waves_nobody_is_told_to_blur(two) -> None:
    """The second closes first: whoever is late is refused where the seed goes."""

    class Stopped(Direct):
        def wave(self, agreement):
            found = super().wave(agreement)
            found.masks = lost
            return found

    def lost(*_given):
        raise ServiceError("The connection broke.")

    two.send(FIRST)
    late = two.shared(1)
    with pytest.raises(ServiceError):
        two.lead(Stopped(two.second, PLAN))
    assert two.states() == [["closing", "planned"]] * 2
    for side in (0, 1):
        with pytest.raises(BetweenWavesError, match="Wave 1 is being published"):
            two.current(side)
    assert all(isinstance(one, WaveClosedError) for one in two.deliver(late))
    assert two.first.read(plans.still_open, two.name) == PLAN.first()  # to which people are invited
    two.lead()
    two.check()


class Wire(Direct):
    """Each call has two moments, on its way there and on its way back: it breaks once at each."""

    def __init__(self, store, plan) -> None:
        super().__init__(store, plan)
        self.broken: set[tuple[str, ...]] = set()

    def wave(self, agreement):
        found = super().wave(agreement)
        for name in ("identifiers", "close_wave", "masks", "release"):
            setattr(found, name, self.carried(agreement.fingerprint, getattr(found, name)))
        return found

    def tell(self, news: News) -> None:
        self.carried(news.state, super().tell)(news)

    def carried(self, what: str, work):
        def carry(*given):
            self.breaks_once(what, work.__name__, "there")
            answer = work(*given)
            self.breaks_once(what, work.__name__, "back")
            return answer

        return carry

    def breaks_once(self, *moment: str) -> None:
        if moment not in self.broken:
            self.broken.add(moment)
            raise ServiceError("The connection broke.")


def test_broken_at_every_moment(two) -> None:
    """The plan comes to its end all the same, and nothing is published twice."""
    wire, seen = Wire(two.second, PLAN), []
    for quorum in PLAN.quorums:
        two.send(quorum)
        for _ in range(100):
            try:
                two.lead(wire)
                break
            except ServiceError:
                seen.append(two.first.read(plans.release_texts, two.name))
                assert all(seen[-1][: len(one)] == one for one in seen), "once, and for ever"
        two.check()
    assert len(wire.broken) == len(seen) == 2 * (4 + 4 + 1)
    assert two.first.read(plans.model_text, two.name) == two.second.read(plans.model_text, two.name)


def test_killed_at_any_statement_of_either(in_memory) -> None:
    """The first time that a statement of a transaction is reached, whoever runs it is killed.

    Nothing is summed over two sets, no wave has two sums, and in the end all is as if nothing had
    happened.
    """
    with both(PLAN, in_memory / "first.db", in_memory / "second.db") as two:
        killed, sums = killed_everywhere(two)
        assert two.first.read(plans.model_text, two.name) == two.second.read(
            plans.model_text, two.name
        )
    assert len(killed) > 60
    assert [len(one) for one in sums.values()] == [1] * 4, "each side, each wave: one set, one sum"


def killed_everywhere(two: Both) -> tuple[set[tuple], dict[str, set[bytes]]]:
    """Where they were killed, and which sums were given by whom."""
    killed: set[tuple] = set()
    sums: dict[str, set[bytes]] = {}
    given, released = shared_sums.sums_over, []

    def noted(connection, collection):
        chosen, words = given(connection, collection)
        mark = f"{collection.role} {collection.fingerprint}"
        sums.setdefault(mark, set()).add(chosen.digest + words.tobytes())
        return chosen, words

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_sums, "sums_over", noted)
        for quorum in PLAN.quorums:
            two.send(quorum)
            with ExitStack() as listening:
                for side, store in enumerate(two.stores):
                    listening.enter_context(mortal(store, killed, (quorum, side)))
                for _ in range(500):
                    try:
                        two.lead()
                        break
                    except KeyboardInterrupt:
                        continue
            two.check()
            texts = two.first.read(plans.release_texts, two.name)
            assert texts[: len(released)] == released, "published once, and for ever"
            released = texts
    return killed, sums


@contextmanager
def mortal(store: Store, killed: set[tuple], where: tuple) -> Iterator[None]:
    """Killed when a statement is reached that was not reached before, in a transaction's order."""
    so_far: list[str] = []

    def reached(_connection, _cursor, statement, *_more) -> None:
        if statement.startswith("BEGIN"):
            so_far.clear()
        so_far.append(statement)
        if (mark := (*where, *so_far)) not in killed:
            killed.add(mark)
            raise KeyboardInterrupt

    engine = store._engine
    event.listen(engine, "before_cursor_execute", reached)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", reached)


def test_shares_are_published_by_their_plan_alone(two) -> None:
    two.send(FIRST)
    name = PLAN.first().fingerprint
    with pytest.raises(InfeasibleError, match="Expected a collection of whole submissions"):
        two.first.write(advance, two.name)
    for store in two.stores:
        with pytest.raises(InfeasibleError, match="Hold the plan"):
            store.close_collection(name)
    held = two.follower.wave(PLAN.first()).identifiers()
    with pytest.raises(InfeasibleError, match="Hold the plan"):
        two.first.write(joint_publication.fix, two.first.collection(name), held)
    with pytest.raises(InfeasibleError, match="Hold the plan"):
        two.second.write(
            joint_publication.take_result, two.second.collection(name), None, "moments"
        )
    with pytest.raises(InfeasibleError, match="second of an agreement's two databases"):
        two.first.write(plan_follower.close, two.first.collection(name))


# ---- held, resumed, ended


def test_either_may_hold_it(two) -> None:
    two.send(FIRST)
    two.second.write(plans.hold, two.name)
    with pytest.raises(InfeasibleError, match="University holds the plan"):
        two.lead()
    assert two.states() == [["collecting", "planned"]] * 2
    two.first.write(plans.hold, two.name)
    two.lead()  # says so, and releases nothing
    two.second.write(plans.resume, two.name)
    assert [two.status(side).state for side in (0, 1)] == ["held", "held"]
    assert two.states() == [["collecting", "planned"]] * 2
    two.first.write(plans.resume, two.name)
    two.lead()
    two.check()
    assert two.status(1).state == "collecting"


# ---- people


def test_nobody_is_invited_to_two_waves_at_either() -> None:
    plan = joint_plan(admission="invited")
    with both(plan) as two:
        tokens = [
            hashes(plan, 1, FIRST, side) + hashes(plan, 2, 52, side) for side in ("one", "other")
        ]
        for store, some in zip(two.stores, tokens, strict=True):
            store.invite(plan.first().fingerprint, some)
        given = [some[:FIRST] for some in tokens]
        assert two.deliver(two.shared(FIRST), tokens=given) == [FIRST, FIRST]
        two.lead()
        again = two.shared(1)
        for side in (0, 1):
            (outcome,) = two.deliver(again, (side,), [some[:1] for some in tokens])
            assert isinstance(outcome, NotInvitedError)
        assert two.deliver(again, tokens=[some[-1:] for some in tokens]) == [1, 1]


def test_it_is_opened_as_one_of_two_and_never_as_the_other(two) -> None:
    assert two.first.write(plans.begin, PLAN, role="first") == PLAN.first()
    with pytest.raises(ConflictError, match="to be 'first'"):
        two.first.write(plans.begin, PLAN, role="second")
    with Store() as store:
        with pytest.raises(InvalidValueError, match="--as first"):
            store.write(plans.begin, PLAN)
        assert store.read(plans.fingerprints) == []


# ---- backups


@pytest.mark.parametrize("side", [0, 1])
def test_a_database_that_was_restored_takes_no_plan_forward(in_memory, side) -> None:
    """The original may have summed over a set since; a second one would give people away."""
    places = [in_memory / "first.db", in_memory / "second.db"]
    with both(PLAN, *places) as two:
        two.send(FIRST)
        backup(places[side], in_memory / "backup.db")
        two.lead()
        two.send(1, sides=(0,))
    places[side].unlink()
    restore(in_memory / "backup.db", in_memory / "again.db", original_lost=True)
    places[side] = in_memory / "again.db"
    with Store(places[0]) as first, Store(places[1]) as second:
        again = first, second
        assert again[side].read(plans.status, PLAN.fingerprint).state == "ended"
        wave = second.collection(PLAN.first().fingerprint)
        follower = Direct(second, PLAN)
        before = again[1 - side].read(plans.release_texts, PLAN.fingerprint)
        if side == 1:
            with pytest.raises(ClosedError, match="restored from a backup"):
                follower.wave(PLAN.first()).identifiers()
            with pytest.raises((ClosedError, InfeasibleError), match="restored"):
                held = second.read(identifier_sets.identifiers_of, wave)
                second.write(
                    plan_follower.accept,
                    wave,
                    commitment.digest_of(wave, held),
                    len(held),
                    held[:0],
                )
        else:
            with pytest.raises(InvalidValueError):  # it would tell of an end without a model
                leading.lead(first, PLAN.fingerprint, follower)
        assert again[1 - side].read(plans.release_texts, PLAN.fingerprint) == before
        assert again[side].read(plans.release_texts, PLAN.fingerprint) == []


# ---- people who leave


def test_nobody_leaves_a_wave_that_is_about_to_be_published(two) -> None:
    """It could be neither published nor filled again, once the second has closed it."""
    gone = two.send(1)
    two.send(FIRST - 2)
    first, second = (store.collection(PLAN.first().fingerprint) for store in two.stores)
    assert withdraw(two.second, second, gone.second.identifiers).new == 1
    two.send(1)
    assert two.first.read(plan_leader.ready, two.name) is not None
    with pytest.raises(TooFewError, match="1 more"):
        two.lead()
    two.send(1)
    for store, wave in zip(two.stores, (first, second), strict=True):
        with pytest.raises(WaveClosedError, match="nobody can leave it any more"):
            withdraw(store, wave, store.read(identifier_sets.identifiers_of, wave)[-1:])
    two.lead()
    two.check()
    assert two.first.read(plans.releases, two.name)[0].count == FIRST
