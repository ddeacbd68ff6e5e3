"""Each database's sum is over the set that was fixed, and both make Σv of exactly these people."""

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit import InfeasibleError, NotCertifiedError
from blurfit.store import commitment, identifier_sets, joint_publication, shared_sums
from blurfit.store.store import Store
from support.sharing import WIDTH, identifier_of, marked, new_agreement, opened, send


@pytest.fixture
def two(place, in_memory):
    """A first database of each kind, and a second beside it; nine people who reached both."""
    agreement = new_agreement()
    with Store(place) as first, Store(in_memory / "second.db") as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, *range(9))
        yield agreement, first, second, peer


@pytest.mark.parametrize("gone", [0, 2, 6])
def test_sums_are_of_the_set_and_of_nobody_else(two, gone) -> None:
    """Whether those who are in the set are listed, those who are not, or nobody is left out."""
    agreement, *stores, _ = two
    inside = marked(agreement, *range(gone, 9))
    left_out = identifier_sets.as_identifiers(b"".join(map(identifier_of, range(gone))))
    for store, shares in zip(stores, (inside.first, inside.second), strict=True):
        collection = store.collection(agreement.fingerprint)
        store.write(commitment.record, collection, left_out)
        chosen, found = store.read(shared_sums.sums_over, collection)
        assert (chosen.count, chosen.inside) == (9 - gone, gone > 4)
        assert found.tolist() == collection.sums(shares.words).tolist()


def test_both_make_the_sums_of_what_was_blurred(two) -> None:
    agreement, first, second, peer = two
    second.close_collection(agreement.fingerprint)
    here = first.collection(agreement.fingerprint)
    chosen, left_out = first.write(joint_publication.fix, here, peer.identifiers())
    masks = peer.masks(chosen.digest, chosen.count, left_out)
    count, words = first.read(shared_sums.together, here, masks)
    # Sender k has sent 2^(k // 5) in number k mod 5, and nothing else (`support.sharing.marked`).
    expected = [sum(2 ** (k // WIDTH) for k in range(9) if k % WIDTH == at) for at in range(WIDTH)]
    assert (count, words.tolist()) == (9, expected)
    totals = shared_sums.totals_of(here, count, words)
    assert totals.count == 9
    assert totals.sums.tolist() == [agreement.grid.quadratic * one for one in expected]
    with pytest.raises(NotCertifiedError, match="5 sums from the other database, and got 4"):
        first.read(shared_sums.together, here, masks[1:])
    with pytest.raises(InfeasibleError, match="larger than 9 blurred records"):
        shared_sums.totals_of(here, count, words + np.uint64(2**62))


def test_nothing_is_summed_before_a_set_is_fixed(two) -> None:
    agreement, *stores, _ = two
    for store in stores:
        with pytest.raises(InfeasibleError, match="fixed before"):
            store.read(shared_sums.sums_over, store.collection(agreement.fingerprint))


def test_damage_is_found(two) -> None:
    agreement, first, second, peer = two
    second.close_collection(agreement.fingerprint)
    here = first.collection(agreement.fingerprint)
    first.write(joint_publication.fix, here, peer.identifiers())
    with first._writing() as connection:
        connection.execute(sa.text("DELETE FROM blocks"))
    with pytest.raises(NotCertifiedError, match="Expected 9 shares"):
        first.read(shared_sums.sums_over, here)
