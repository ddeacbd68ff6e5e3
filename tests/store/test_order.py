"""A store does not keep who came before whom."""

import numpy as np
import pytest

from blurfit.contributor.blur import perturb_table
from blurfit.store import blocks
from blurfit.store.blocks import MANY
from blurfit.store.store import Store
from support.stores import PEOPLE, totals_of

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
