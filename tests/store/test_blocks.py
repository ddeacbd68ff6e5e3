"""Blocks: how rows become them, and that two services may put them together at once."""

import threading
from dataclasses import replace

import numpy as np

from blurfit.contributor.blur import perturb_table
from blurfit.store import blocks, collections
from blurfit.store.store import Store


def people(count: int) -> dict:
    return {name: np.linspace(0, 100, count) for name in ("age", "income")}


def test_long_arrivals_become_several_blocks(agreement, place) -> None:
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, people(9000)))
        sizes = [len(part) for part in store.submissions(agreement.fingerprint)]
        collection = store.collection(agreement.fingerprint)
        assert max(sizes) <= collection.block_rows <= collections.LARGEST
        assert sum(sizes) == 9000


def test_where_sums_cannot_be_exact_blocks_are_still_long(agreement) -> None:
    with Store() as store:
        store.open(agreement)
        collection = store.collection(agreement.fingerprint)
        assert replace(collection, exact_rows=1).block_rows == collections.LARGEST
        assert replace(collection, exact_rows=1000).block_rows == 1000


def test_two_services_put_blocks_together_at_once(agreement, place) -> None:
    with Store(place) as first, Store(place) as second:
        for one in perturb_table(agreement, people(60)):
            first.add(agreement, one)
        collection = first.collection(agreement.fingerprint)
        failures: list[BaseException] = []

        def together(store: Store) -> None:
            try:
                with store._writing() as connection:
                    blocks.put_together(connection, collection)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=together, args=(one,)) for one in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        parts = list(first.submissions(agreement.fingerprint))
        assert len(parts) <= 2
        assert first.count(agreement) == sum(len(part) for part in parts) == 60
        identifiers = np.concatenate([part.identifiers for part in parts])
        assert len(np.unique(identifiers, axis=0)) == 60
