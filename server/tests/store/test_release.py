"""From wave to wave: a set is fixed once, learned from beside whoever writes, released once."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import numpy as np
import pytest
from sqlalchemy import event

from blurfit import ClosedError, InfeasibleError, NotPublishedError, learn
from blurfit import randomness as noise
from blurfit.contributor.blur import perturb_table
from blurfit.errors import BelowQuorumError, BetweenWavesError
from blurfit.learning.sums import Totals
from blurfit.model.course import follows, learn_plan
from blurfit.model.model import PublishedModel
from blurfit_server.store import collections, release
from blurfit_server.store.arrivals import Arrival
from blurfit_server.store.store import Store
from server_support.sharing import drive, opened, send
from server_support.stores import arrival, at_once
from support.plans import fill, plan
from support.proposals import PEOPLE, leavers, propose, totals_of
from support.sharing import new_agreement

PLAN = plan("label", waves=2, quorum=60)
NAME = PLAN.fingerprint
FIRST = PLAN.quorums[0]


@pytest.fixture
def store(place):
    with Store(place) as found:
        yield found


def new(agreement) -> Arrival:
    return arrival(perturb_table(agreement, PEOPLE))


def fix(store: Store, fingerprint: str) -> release.Fixed:
    """Fix the open wave, as whoever publishes does first."""
    found = store.write(release.fix, store.course(fingerprint), end=True)
    assert found is not None
    return found


# ---- one set


def test_whoever_comes_while_the_set_is_fixed_comes_too_late(agreement, place) -> None:
    with Store(place) as first, Store(place) as second:
        first.add(agreement, perturb_table(agreement, PEOPLE))
        course = first.course(agreement.fingerprint)
        wave = second.collection(agreement.fingerprint)
        with ThreadPoolExecutor(2) as others:
            with first._writing() as connection:
                assert release.fix(connection, course, end=True) is not None
                late = others.submit(second.receive, wave, [new(agreement)])
                model = others.submit(second.publish_text, agreement.fingerprint)
                assert not wait([late, model], timeout=0.2).done
            assert isinstance(late.result()[0], ClosedError)
            assert model.result() == first.publish_text(agreement.fingerprint)
        assert first.count(agreement) == 40


def test_killed_before_the_set_is_fixed_nothing_happened(agreement, store) -> None:
    store.add(agreement, perturb_table(agreement, PEOPLE))
    with pytest.raises(KeyboardInterrupt), store._writing() as connection:
        release.fix(connection, store.course(agreement.fingerprint), end=True)
        raise KeyboardInterrupt
    assert store.status(agreement.fingerprint).state == "collecting"
    assert store.receive(store.collection(agreement.fingerprint), [new(agreement)]) == [40]
    assert store.publish(agreement).count == 80


def test_a_set_that_was_fixed_changes_no_more_whatever_comes_in_between(agreement, place) -> None:
    """Arrivals, withdrawals, a resumption and another date are refused; then it is learned from."""
    sent, name = perturb_table(agreement, PEOPLE), agreement.fingerprint
    with Store(place) as store:
        store.add(agreement, sent)
        fix(store, name)
        wave = store.collection(name)
        (late,) = store.receive(wave, [new(agreement)])
        assert isinstance(late, ClosedError)
        for refused in (
            lambda: store.withdraw(wave, sent.identifiers[:3]),
            lambda: store.resume(name),
            lambda: store.move_date(name, 4_000_000_000),
        ):
            with pytest.raises(ClosedError):
                refused()
    with Store(place) as store:
        assert store.status(name).state == "closed"
        drive(store)  # finishes what was begun
        model = PublishedModel.from_json(store.model(name))
        expected = learn(agreement, totals_of(agreement, sent))
        assert model.to_json() == expected.to_json()


def test_what_was_closed_by_hand_waits_until_it_is_published(agreement, store) -> None:
    store.add(agreement, perturb_table(agreement, PEOPLE))
    store.close_collection(agreement.fingerprint)
    assert store.due() == []
    store.advance(agreement.fingerprint)
    assert store.status(agreement.fingerprint).state == "closed"
    assert store.publish(agreement).count == 40


def test_an_export_in_between_takes_the_release_over(agreement, store) -> None:
    """Of the same set; what was being learned is thrown away, and was seen by nobody."""
    store.add(agreement, perturb_table(agreement, PEOPLE))
    fixed = fix(store, agreement.fingerprint)
    found = release.outcome_of(fixed.now, *store._released(fixed.wave, None), [], end=True)
    assert store.hand_over(fixed.wave, "file") == (None, None)
    with pytest.raises(InfeasibleError, match="exported to 'file'"):
        store.write(release.keep, fixed, found, store.record_of(fixed.wave))
    assert store.status(agreement.fingerprint).state == "closed"
    assert store.due() == []
    with pytest.raises(NotPublishedError):
        store.model(agreement.fingerprint)


def test_of_two_publishers_who_learn_at_once_the_first_to_be_done_is_kept(
    place, monkeypatch
) -> None:
    """With noise of the database's own too: it is drawn with the set, so both find the same."""
    agreement = propose(database_noise=True)
    both, outcome = threading.Barrier(2), release.outcome_of

    def learned(*given, **named):
        both.wait(60)  # each has added up, and neither has written
        return outcome(*given, **named)

    monkeypatch.setattr(release, "outcome_of", learned)
    with Store(place) as first, Store(place) as second:
        first.add(agreement, perturb_table(agreement, PEOPLE))
        asking = (partial(one.publish_text, agreement.fingerprint) for one in (first, second))
        assert at_once(*asking) == [first.model(agreement.fingerprint)] * 2


def test_sums_alone_are_what_publishing_gives_where_there_is_no_model() -> None:
    agreement, people = leavers()
    name = agreement.fingerprint
    with Store() as store:
        store.add(agreement, perturb_table(agreement, people))
        assert not store.status(name).sums
        shown = store.publish_text(name)
        assert store.status(name).sums
        assert shown == store.publish_text(name) == store.moments(agreement).to_json()
        with pytest.raises(InfeasibleError, match=r"are published, .*moments.survival\(\)"):
            store.publish(agreement)


def test_more_than_can_be_added_exactly_beside_noise_is_refused_for_good(monkeypatch) -> None:
    """The refusal is written down: nobody asks again and again, and nothing more is taken."""
    agreement = propose(database_noise=True)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        monkeypatch.setattr(noise, "rows_that_add_exactly", lambda *_: 39)
        with pytest.raises(InfeasibleError, match="count=40 to be at most 39"):
            store.publish(agreement)
        monkeypatch.undo()
        with pytest.raises(InfeasibleError, match="count=40 to be at most 39"):
            store.publish(agreement)
        assert store.status(agreement.fingerprint).state == "closed"
        assert store.due() == []


# ---- noise of the database itself


def test_noise_of_its_own_is_drawn_once_whoever_asks_again(place, monkeypatch) -> None:
    """It was written down with the set, so whoever continues after a kill adds the same."""
    agreement = propose(database_noise=True)
    sent, drawn = perturb_table(agreement, PEOPLE), []

    def watched(*arguments) -> Totals:
        drawn.append(noise.with_database_noise(*arguments))
        return drawn[-1]

    def power_cut(*_arguments) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(release, "with_database_noise", watched)
    with Store(place) as store:
        store.add(agreement, sent)
        with monkeypatch.context() as patch:
            patch.setattr(release, "keep", power_cut)
            with pytest.raises(KeyboardInterrupt):
                store.publish(agreement)
        assert store.status(agreement.fingerprint).state == "closed"
    with Store(place) as store:
        first = store.publish_text(agreement.fingerprint)
        assert store.publish_text(agreement.fingerprint) == first
        assert len(drawn) == 2, "one that was lost, one that is kept, and none for who asks again"
        shown = store.moments(agreement)
    assert (shown.sums == drawn[0].sums).all()
    assert (drawn[1].sums == drawn[0].sums).all()
    added = (shown.sums - totals_of(agreement, sent).sums) / agreement.step
    assert (added == np.rint(added)).all()
    assert (added != 0).all()


# ---- learning holds up nobody


class Watched:
    """Notes what is worked out, while anyone else may hold the rows of some courses.

    A transaction that writes would keep others from that: on SQLite from everything, on PostgreSQL
    from its course. They would wait for seconds, and then be told that the store is busy.
    """

    def __init__(self, monkeypatch, *places: tuple[str, str]) -> None:
        self.places, self.learned, self.patch = places, [], monkeypatch

    def watch(self, module, name: str) -> None:
        original = getattr(module, name)

        def watched(*arguments, **named):
            for place, fingerprint in self.places:
                with Store(place) as other:
                    course = other.course(fingerprint)
                    other.write(collections.standing, course, alone=True)
            self.learned.append(name)
            return original(*arguments, **named)

        self.patch.setattr(module, name, watched)


def test_no_transaction_writes_while_one_database_learns(agreement, place, monkeypatch) -> None:
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        watched = Watched(monkeypatch, (place, agreement.fingerprint))
        watched.watch(release, "moments_of")
        watched.watch(release.Followed, "model")
        store.publish(agreement)
    assert watched.learned == ["moments_of", "model"]


def test_no_transaction_writes_while_two_databases_learn(place, in_memory, monkeypatch) -> None:
    shared = new_agreement()
    there = f"sqlite:///{in_memory / 'second.db'}"
    with Store(place) as first, Store(there) as second:
        peer = opened(shared, first, second)
        send(shared, first, second, *range(10))
        second.close_collection(shared.fingerprint)
        watched = Watched(monkeypatch, (place, shared.fingerprint), (there, shared.fingerprint))
        watched.watch(release.Followed, "model")
        first.publish_text(shared.fingerprint, peer)
    assert watched.learned == ["model"] * 2, "the second learns again, to see it is the same"


def test_no_transaction_writes_while_the_next_wave_or_the_model_of_a_plan_is_found(
    place, monkeypatch
) -> None:
    with Store(place) as store:
        store.open(PLAN)
        watched = Watched(monkeypatch, (place, NAME))
        watched.watch(release.Followed, "next_agreement")
        watched.watch(release.Followed, "model")
        fill(store, PLAN.first(), 0, FIRST)
        drive(store)
        fill(store, store.current(NAME), FIRST, 60)
        drive(store)
    assert watched.learned == ["next_agreement", "model"]


# ---- from wave to wave


def test_below_its_quorum_a_wave_goes_on(store) -> None:
    store.open(PLAN)
    fill(store, PLAN.first(), 0, FIRST - 1)
    store.advance(NAME)
    with pytest.raises(BelowQuorumError):
        store.publish(PLAN)
    assert store.status(PLAN.first().fingerprint).state == "collecting"
    assert store.releases(NAME) == []
    assert store.due() == []


def test_ended_early_with_the_best_model_so_far(store) -> None:
    store.open(PLAN)
    fill(store, PLAN.first(), 0, FIRST)
    drive(store)
    second = store.current(NAME)
    fill(store, second, FIRST, 59)  # one too few
    model = store.publish(PLAN)
    assert model.to_json() == learn_plan(PLAN, [store.moments(PLAN.first())]).to_json()
    assert model.count == FIRST
    status = store.status(NAME)
    assert status.reason == "Its administrator ended it after wave 1 of 2."
    assert status.model == PLAN.first().fingerprint
    assert [one.state for one in status.waves] == ["released", "dropped"]
    with pytest.raises(InfeasibleError):  # and nothing of it is ever shown
        store.moments_text(second.fingerprint)


def test_ended_early_while_somebody_else_takes_it_forward(store, monkeypatch) -> None:
    """It ends all the same, without the wave that was opened meanwhile."""
    store.open(PLAN)
    fill(store, PLAN.first(), 0, FIRST)
    learn = store._released

    def overtaken(wave, shared):
        monkeypatch.undo()
        found = learn(wave, shared)
        store.advance(NAME)
        assert [one.state for one in store.status(NAME).waves] == ["released", "collecting"]
        return found

    monkeypatch.setattr(store, "_released", overtaken)
    assert store.publish(PLAN).count == FIRST
    assert [one.state for one in store.status(NAME).waves] == ["released", "dropped"]


@pytest.mark.parametrize("error", [InfeasibleError("no map"), np.linalg.LinAlgError("no map")])
def test_sums_that_teach_nothing_end_the_plan_with_words(store, monkeypatch, error) -> None:
    store.open(PLAN)
    fill(store, PLAN.first(), 0, FIRST)

    def refuse(*_given):
        raise error

    monkeypatch.setattr(release.Followed, "next_agreement", refuse)
    drive(store)
    status = store.status(NAME)
    assert (status.state, status.model) == ("ended", PLAN.first().fingerprint)
    assert status.reason == "No wave follows wave 1 of 2: no map"


def test_no_model_at_all_is_said_and_not_tried_for_ever(store, monkeypatch) -> None:
    store.open(PLAN)
    fill(store, PLAN.first(), 0, FIRST)

    def refuse(*_given):
        raise InfeasibleError("nothing to learn from.")

    monkeypatch.setattr(release.Followed, "model", refuse)
    for what in (store.publish_text, store.shown_at):
        with pytest.raises(NotPublishedError, match=r"1 of 2. There is no model: nothing to learn"):
            what(NAME)
    assert store.due() == []


def test_a_model_of_fewer_waves_where_the_last_says_nothing(store, monkeypatch) -> None:
    model = release.Followed.model

    def only_one(course):
        if len(course.releases) > 1:
            raise InfeasibleError("too long a step.")
        return model(course)

    monkeypatch.setattr(release.Followed, "model", only_one)
    store.open(PLAN)
    for start, stop in ((0, FIRST), (FIRST, 60)):
        fill(store, store.current(NAME), start, stop)
        drive(store)
    assert PublishedModel.from_json(store.model(NAME)).count == FIRST
    assert store.status(NAME).model == PLAN.first().fingerprint


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_killed_at_any_statement_nothing_is_half_done(store) -> None:
    """The wave collects, or is fixed, or was released and the next one collects; and whoever finds
    the task goes on from there.
    """
    store.open(PLAN)
    fill(store, PLAN.first(), 0, FIRST)
    left, at, seen = 0, 0, set()

    def killed(*_given) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    while True:
        left, engine = at, store._engine
        event.listen(engine, "before_cursor_execute", killed)
        try:
            store.advance(NAME)
            break
        except KeyboardInterrupt:
            at += 1
        finally:
            event.remove(engine, "before_cursor_execute", killed)
        states = tuple(one.state for one in store.status(NAME).waves)
        seen.add(states)
        if states == ("fixed", "planned"):
            with pytest.raises(BetweenWavesError):
                store.current(NAME)
        assert len(store.releases(NAME)) == (states[0] == "released")
        assert store.due() or states == ("released", "collecting")
    assert seen == {("collecting", "planned"), ("fixed", "planned"), ("released", "collecting")}
    assert at > 5, "there were hardly any moments to be killed at"
    follows(PLAN, [store.moments(PLAN.first())], store.current(NAME))
