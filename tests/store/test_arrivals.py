"""Names that two services take at the same moment."""

import threading

import numpy as np

from blurfit.contributor.perturb import perturb_table
from blurfit.store.arrivals import Arrival, receive_new
from blurfit.store.store import Store


def arrival(agreement, count: int) -> Arrival:
    people = {name: np.linspace(0, 100, count) for name in ("age", "income")}
    batch = perturb_table(agreement, people)
    return Arrival(batch.identifiers, np.hstack([batch.quadratic, batch.linear]))


def test_a_second_service_waits_for_the_first_and_then_knows(agreement, place) -> None:
    same = arrival(agreement, 20)
    other = Arrival(same.names[::-1], same.numbers)  # the same names for other numbers
    with Store(place) as first, Store(place) as second:
        first.open(agreement)
        collection = first.collection(agreement.fingerprint)
        outcomes: dict[str, object] = {}

        def late(name: str, what: Arrival) -> None:
            (outcomes[name],) = second.receive(second.collection(agreement.fingerprint), [what])

        with first._writing() as connection:
            (new,), _ = receive_new(connection, collection, [same])
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


def test_a_first_that_fails_leaves_the_names_to_the_second(agreement, place) -> None:
    same = arrival(agreement, 5)
    with Store(place) as first, Store(place) as second:
        first.open(agreement)
        collection = first.collection(agreement.fingerprint)
        try:
            with first._writing() as connection:
                receive_new(connection, collection, [same])
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        assert second.receive(second.collection(agreement.fingerprint), [same]) == [5]
