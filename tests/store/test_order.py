"""A store does not keep who came before whom."""

import numpy as np
import pytest

from blurfit.contributor.perturb import perturb_table
from blurfit.store import blocks
from blurfit.store.store import Store
from support.stores import PEOPLE, totals_of

SENT = 600


@pytest.mark.parametrize("at_once", [1, SENT])
def test_nothing_in_a_closed_collection_tells_the_order_of_arrival(agreement, at_once) -> None:
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
        store.close_collection(agreement.fingerprint)
        found = list(store.submissions(agreement.fingerprint))
        stored = [one.tobytes() for part in found for one in part.identifiers]
        assert sorted(stored) == sorted(arrived)
        assert len(found) <= 3
        for part in found:
            names = [one.tobytes() for one in part.identifiers]
            assert names == sorted(names), "the order of random names, and no other"
        kept = sum(one == other for one, other in zip(stored, arrived, strict=True))
        assert kept < SENT / 10
        np.testing.assert_array_equal(
            store.read(_totals, store.collection(agreement.fingerprint)),
            totals_of(agreement, table).sums,
        )


def _totals(connection, collection):
    return blocks.totals(connection, collection).sums
