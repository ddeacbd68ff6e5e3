"""Identifiers that two services take at the same moment."""

import threading

import numpy as np
import pytest

from blurfit.contributor.blur import perturb_table
from blurfit.messages.submissions import Submissions
from blurfit.store import arrivals
from blurfit.store.arrivals import Arrival, Group, receive_new
from blurfit.store.store import Store
from support.stores import arrival


def batch_of(agreement, count: int) -> Submissions:
    people = {name: np.linspace(0, 100, count) for name in ("age", "income")}
    return perturb_table(agreement, people)


def test_a_second_service_waits_for_the_first_and_then_knows(agreement, place) -> None:
    batch = batch_of(agreement, 20)
    same = arrival(batch)  # and the same identifiers for other numbers:
    other = arrival(Submissions(batch.identifiers[::-1], batch.fingerprint, batch.numbers))
    with Store(place) as first, Store(place) as second:
        first.open(agreement)
        collection = first.collection(agreement.fingerprint)
        outcomes: dict[str, object] = {}

        def late(name: str, what: Arrival) -> None:
            (outcomes[name],) = second.receive(second.collection(agreement.fingerprint), [what])

        with first._writing() as connection:
            (new,), _ = receive_new(connection, collection, Group.of(collection, [same]))
            assert new == 20
            threads = [
                threading.Thread(target=late, args=("again", same)),
                threading.Thread(target=late, args=("other", other)),
            ]
            for thread in threads:
                thread.start()
            threads[0].join(0.2)
            assert not outcomes, "nobody is told anything before the first has committed"
        for thread in threads:
            thread.join()
        assert outcomes["again"] == 0
        assert outcomes["other"] == 0, "ignored, and answered alike"
        assert first.count(agreement) == 20


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)  # SQLite has one writer at a time
def test_another_service_takes_an_identifier_just_after_it_was_looked_for(
    agreement, place, monkeypatch
) -> None:
    look = arrivals.known_among
    batch = batch_of(agreement, 3)
    known, raced, new = ([arrival(Submissions.gather([one]))] for one in batch)
    with Store(place) as first, Store(place) as second:
        first.open(agreement)
        collection = first.collection(agreement.fingerprint)
        first.receive(collection, known)

        def overtaken(*given):
            found = look(*given)
            monkeypatch.setattr(arrivals, "known_among", look)
            second.receive(second.collection(agreement.fingerprint), raced)
            return found

        monkeypatch.setattr(arrivals, "known_among", overtaken)
        assert first.receive(collection, known + raced + new) == [0, 0, 1]
        parts = list(first.submissions(agreement.fingerprint))
        assert sorted(one.identifier for part in parts for one in part) == sorted(
            one.identifier for one in batch
        )


def test_a_first_that_fails_leaves_the_identifiers_to_the_second(agreement, place) -> None:
    same = arrival(batch_of(agreement, 5))
    with Store(place) as first, Store(place) as second:
        first.open(agreement)
        collection = first.collection(agreement.fingerprint)
        try:
            with first._writing() as connection:
                receive_new(connection, collection, Group.of(collection, [same]))
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        assert second.receive(second.collection(agreement.fingerprint), [same]) == [5]


def test_a_group_is_one_table_and_what_does_not_pass_is_refused_by_place(agreement) -> None:
    """However many are refused, where ever they stand: the others are as they came."""
    batches = [batch_of(agreement, count) for count in (3, 1, 4, 2)]
    spoilt = batches[2].numbers.copy()
    spoilt[1, 0] = 2.0**40
    batches[2] = Submissions(batches[2].identifiers, agreement.fingerprint, spoilt)
    with Store() as store:
        store.open(agreement)
        collection = store.collection(agreement.fingerprint)
        group = Group.of(collection, [arrival(batch) for batch in batches])
        good = [batch for batch in batches if batch is not batches[2]]
        assert list(group.refusals) == [2]
        assert "Submission 1 has a norm" in str(group.refusals[2])
        assert len(group.numbers) == 6
        for span, batch in zip(group.spans, good, strict=True):
            np.testing.assert_array_equal(group.identifiers[span.rows], batch.identifiers)
            np.testing.assert_array_equal(group.numbers[span.rows], batch.numbers)
        outcomes = store.receive(collection, [arrival(batch) for batch in batches])
        assert [outcomes[place] for place in (0, 1, 3)] == [3, 1, 2]
        assert "a norm above" in str(outcomes[2])
        (alone,) = store.receive(collection, [arrival(batches[2])])
        assert "a norm above" in str(alone)
        assert store.count(agreement) == 6
