"""A set is fixed once, learned from beside whoever writes, and has one release."""

import threading

import numpy as np
import pytest
from blurfit.service.peer import publish
from blurfit.store.withdrawal import withdraw

from blurfit import ClosedError, InfeasibleError, NotPublishedError, learn
from blurfit.contributor.blur import perturb_table
from blurfit.errors import BelowQuorumError
from blurfit.model import release
from blurfit.model.release import Release
from blurfit.randomness import database
from blurfit.store import advance, blocks, plans, publication
from blurfit.store.arrivals import Arrival
from blurfit.store.store import Store
from support.plans import people, plan
from support.sharing import new_agreement, opened, send
from support.stores import arrival, propose, totals_of

PEOPLE = {name: np.linspace(0, 100, 40) for name in ("age", "income")}


def new(agreement) -> Arrival:
    return arrival(perturb_table(agreement, PEOPLE))


def test_whoever_comes_while_the_set_is_fixed_comes_too_late(agreement, place) -> None:
    with Store(place) as first, Store(place) as second:
        first.add(agreement, perturb_table(agreement, PEOPLE))
        collection = first.collection(agreement.fingerprint)
        late: list[object] = []
        models: list[str] = []
        with first._writing() as connection:
            assert publication.fix(connection, collection) is None
            threads = [
                threading.Thread(
                    target=lambda: late.extend(
                        second.receive(second.collection(agreement.fingerprint), [new(agreement)])
                    )
                ),
                threading.Thread(
                    target=lambda: models.append(second.publish_text(agreement.fingerprint))
                ),
            ]
            for thread in threads:
                thread.start()
            threads[0].join(0.2)
            assert not late
            assert not models
        for thread in threads:
            thread.join()
        assert isinstance(late[0], ClosedError)
        assert models == [first.publish_text(agreement.fingerprint)], "whoever continues finds it"
        assert first.count(agreement) == 40


def test_killed_before_the_set_is_fixed_nothing_happened(agreement, place) -> None:
    with Store(place) as kept:
        kept.add(agreement, perturb_table(agreement, PEOPLE))
        collection = kept.collection(agreement.fingerprint)
        with pytest.raises(KeyboardInterrupt), kept._writing() as connection:
            publication.fix(connection, collection)
            raise KeyboardInterrupt
        assert kept.status(agreement.fingerprint).state == "collecting"
        assert kept.receive(kept.collection(agreement.fingerprint), [new(agreement)]) == [40]
        assert kept.publish(agreement).count == 80


def test_below_the_quorum_nothing_is_fixed(agreement, place) -> None:
    with Store(place) as store:
        few = {name: values[:19] for name, values in PEOPLE.items()}
        store.add(agreement, perturb_table(agreement, few))
        with pytest.raises(BelowQuorumError, match="1 more contributors"):
            store.publish(agreement)
        assert store.status(agreement.fingerprint).state == "collecting"
        store.add(agreement, perturb_table(agreement, few))
        assert store.publish(agreement).count == 38


def test_a_set_that_was_fixed_changes_no_more_whatever_comes_in_between(agreement, place) -> None:
    """Arrivals, withdrawals, a resumption and another date are refused; then it is learned from."""
    sent = perturb_table(agreement, PEOPLE)
    with Store(place) as store:
        store.add(agreement, sent)
        collection = store.collection(agreement.fingerprint)
        assert store.write(publication.fix, collection) is None
        (late,) = store.receive(collection, [new(agreement)])
        assert isinstance(late, ClosedError)
        for refused in (
            lambda: withdraw(store, collection, sent.identifiers[:3]),
            lambda: store.write(publication.pause, collection, resume=True),
            lambda: store.move_closing(agreement.fingerprint, 4_000_000_000),
        ):
            with pytest.raises(ClosedError):
                refused()
    with Store(place) as store:
        assert store.status(agreement.fingerprint).state == "closed"
        model = store.publish(agreement)
        expected = learn(agreement, totals_of(agreement, sent))
        assert (model.count, model.weights.tolist()) == (40, expected.weights.tolist())


def test_an_export_in_between_takes_the_release_over(agreement, place) -> None:
    """Of the same set; what was being learned is thrown away, and was seen by nobody."""
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        collection = store.collection(agreement.fingerprint)
        assert store.write(publication.fix, collection) is None
        found = Release.of(agreement, store.read(blocks.totals, collection))
        assert store.write(publication.hand_over, collection, "file") == (None, None)
        with pytest.raises(InfeasibleError, match="exported to 'file'"):
            store.write(publication.keep, collection, found)
        assert store.status(agreement.fingerprint).state == "closed"
        with pytest.raises(NotPublishedError):
            store.model(agreement.fingerprint)


def test_of_two_publishers_who_learn_at_once_the_first_to_be_done_is_kept(place) -> None:
    """With noise of the database's own too: it is drawn with the set, so both find the same."""
    agreement = propose(database_noise=True)
    with Store(place) as first, Store(place) as second:
        first.add(agreement, perturb_table(agreement, PEOPLE))
        both = threading.Barrier(2)
        found: list[str] = []

        def ask(store: Store) -> None:
            def write(what, *given):
                if what is publication.keep:
                    both.wait(60)  # each has learned, and neither has written
                return store.write(what, *given)

            found.append(store.publish_text(agreement.fingerprint, write))

        threads = [threading.Thread(target=ask, args=(one,)) for one in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 2
        assert set(found) == {first.model(agreement.fingerprint)}


def test_sums_alone_are_what_publishing_gives_where_there_is_no_model() -> None:
    agreement = propose(sends="targets", public_rows="00" * 32)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        assert not store.status(agreement.fingerprint).sums
        shown = store.publish_text(agreement.fingerprint)
        assert store.status(agreement.fingerprint).sums
        assert (
            shown == store.publish_text(agreement.fingerprint) == store.moments(agreement).to_json()
        )
        with pytest.raises(InfeasibleError, match=r"The sums are published, .*public=rows"):
            store.publish(agreement)


def test_more_than_can_be_added_exactly_beside_noise_is_refused_for_good(monkeypatch) -> None:
    """The refusal is written down: nobody asks again and again, and nothing more is taken."""
    agreement = propose(database_noise=True)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        monkeypatch.setattr(database, "rows_that_add_exactly", lambda *_: 39)
        with pytest.raises(InfeasibleError, match="count=40 to be at most 39"):
            store.publish(agreement)
        monkeypatch.undo()
        with pytest.raises(InfeasibleError, match="count=40 to be at most 39"):
            store.publish(agreement)
        assert store.status(agreement.fingerprint).state == "closed"


# ---- learning holds up nobody


class Watched:
    """Notes what is learned, while anyone else may hold the rows of some collections.

    A transaction that writes would keep others from that: on SQLite from everything, on PostgreSQL
    from its collection. They would wait for seconds, and then be told that the store is busy.
    """

    def __init__(self, monkeypatch, *places: tuple[str, str]) -> None:
        self.places, self.learned, self.patch = places, [], monkeypatch

    def watch(self, module, name: str) -> None:
        original = getattr(module, name)

        def watched(*arguments, **named):
            for place, fingerprint in self.places:
                with Store(place) as other:
                    other.write(publication.held, other.collection(fingerprint))
            self.learned.append(name)
            return original(*arguments, **named)

        self.patch.setattr(module, name, watched)


def test_no_transaction_writes_while_one_database_learns(agreement, place, monkeypatch) -> None:
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        watched = Watched(monkeypatch, (place, agreement.fingerprint))
        watched.watch(release, "learn")
        store.publish(agreement)
    assert watched.learned == ["learn"]


def test_no_transaction_writes_while_two_databases_learn(place, in_memory, monkeypatch) -> None:
    shared = new_agreement()
    there = f"sqlite:///{in_memory / 'second.db'}"
    with Store(place) as first, Store(there) as second:
        peer = opened(shared, first, second)
        send(shared, first, second, *range(10))
        second.close_collection(shared.fingerprint)
        watched = Watched(monkeypatch, (place, shared.fingerprint), (there, shared.fingerprint))
        watched.watch(release, "learn")
        publish(first, shared.fingerprint, peer)
    assert watched.learned == ["learn"] * 2, "the second learns again, to see that it is the same"


def test_no_transaction_writes_while_the_model_of_a_plan_is_learned(place, monkeypatch) -> None:
    agreed = plan("label", waves=2, quorum=40, admission="anyone")
    with Store(place) as store:
        for _ in range(2):
            wave = store.write(plans.begin, agreed)
            store.add(wave, perturb_table(wave, people(wave.quorum)))
            store.write(advance.advance, agreed.fingerprint)
        watched = Watched(monkeypatch, (place, wave.fingerprint))
        watched.watch(advance, "learn_plan")
        assert advance.learn_model(store, agreed.fingerprint) is not None
    assert watched.learned
