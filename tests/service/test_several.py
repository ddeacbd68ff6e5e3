"""Several services on one PostgreSQL: both receive, either publishes, nobody is counted twice."""

import threading

import numpy as np

from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.store.store import Store
from support.serving import Serving
from support.stores import propose, totals_of

SENDERS, BATCHES = 4, 15


def test_two_services_on_one_database(places, tmp_path) -> None:
    agreement = propose(mechanism="moment", quorum=50)
    place = places.fresh()
    services = [Serving(place, tmp_path), Serving(place, tmp_path)]
    sent: list = []
    failed: list[BaseException] = []

    def send(number: int) -> None:
        """Batches to one service and then the other; every third to both, as the unsure do."""
        generator = np.random.default_rng(number)
        try:
            with Client(services[0].url) as one, Client(services[1].url) as other:
                for turn in range(BATCHES):
                    rows = int(generator.choice([1, 7, 300]))
                    people = {c: generator.uniform(0, 100, rows) for c in ("age", "income")}
                    batch = perturb_table(agreement, people)
                    first, second = (one, other) if turn % 2 else (other, one)
                    assert first.submit(batch) == rows
                    if turn % 3 == 0:
                        assert second.submit(batch) == 0, "it is there already"
                    sent.append(batch)
        except BaseException as error:
            failed.append(error)

    try:
        services[0].start()
        services[1].start()
        assert services[0].post("/collections", content=agreement.to_json()).status_code == 201
        threads = [threading.Thread(target=send, args=(number,)) for number in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        path = f"/collections/{agreement.fingerprint}/publish"
        answers = [service.post(path) for service in reversed(services)]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].content == answers[1].content
    finally:
        for service in services:
            service.stop()
    assert len(sent) == SENDERS * BATCHES
    expected = totals_of(agreement, *sent)
    with Store(place) as store:
        assert store.moments(agreement).sums.tolist() == expected.sums.tolist()
        assert store.publish(agreement).count == expected.count
