"""Blocks: how rows become them, put together by two services at once, in no order of arrival."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from blurfit.contributor.blur import perturb_table
from blurfit.store import blocks, collections
from blurfit.store.blocks import MANY
from blurfit.store.store import Store
from support.stores import PEOPLE, totals_of


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


SENT = 300


@pytest.mark.parametrize("at_once", [1, SENT])
def test_the_order_of_arrival_is_not_kept_within_a_block(agreement, at_once) -> None:
    """Seen before: 600 of 600 in the order in which they came."""
    people = {name: np.resize(values, SENT) for name, values in PEOPLE.items()}
    table = perturb_table(agreement, people)
    arrived = [one.tobytes() for one in table.identifiers]
    with Store() as store:
        if at_once == 1:
            for one in table:
                store.add(agreement, one)
        else:
            store.add(agreement, table)
        found = list(store.submissions(agreement.fingerprint))
        stored = [one.tobytes() for part in found for one in part.identifiers]
        assert sorted(stored) == sorted(arrived)
        assert max(len(part) for part in found) >= MANY
        for part in found:
            names = [one.tobytes() for one in part.identifiers]
            assert names == sorted(names), "the order of random names, and no other"
        kept = sum(one == other for one, other in zip(stored, arrived, strict=True))
        alone = sum(len(part) for part in found if len(part) < 2)  # the last, not yet put together
        assert alone < MANY
        assert kept < alone + SENT / 10
        np.testing.assert_array_equal(
            store.read(_totals, store.collection(agreement.fingerprint)),
            totals_of(agreement, table).sums,
        )


def _totals(connection, collection):
    return blocks.totals(connection, collection).sums
