"""Whoever publishes holds the collection: others wait, and find one model."""

import threading

import numpy as np
import pytest

from blurfit import ClosedError, InfeasibleError
from blurfit.contributor.perturb import perturb_table
from blurfit.randomness import database
from blurfit.store import publication
from blurfit.store.arrivals import Arrival
from blurfit.store.store import Store
from support.stores import arrival, propose

PEOPLE = {name: np.linspace(0, 100, 40) for name in ("age", "income")}


def new(agreement) -> Arrival:
    return arrival(perturb_table(agreement, PEOPLE))


def test_whoever_comes_during_publication_comes_too_late(agreement, place) -> None:
    with Store(place) as first, Store(place) as second:
        first.add(agreement, perturb_table(agreement, PEOPLE))
        collection = first.collection(agreement.fingerprint)
        late: list[object] = []
        models: list[str] = []
        with first._writing() as connection:
            model = publication.publish(connection, collection)
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
        assert models == [model.text()]
        assert first.count(agreement) == 40


def test_killed_before_the_commit_it_never_happened(agreement, place) -> None:
    with Store(place) as kept:
        kept.add(agreement, perturb_table(agreement, PEOPLE))
        collection = kept.collection(agreement.fingerprint)
        with pytest.raises(KeyboardInterrupt), kept._writing() as connection:
            publication.publish(connection, collection)
            raise KeyboardInterrupt
        assert kept.status(agreement.fingerprint).state == "collecting"
        assert kept.receive(kept.collection(agreement.fingerprint), [new(agreement)]) == [40]
        assert kept.publish(agreement).count == 80


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
