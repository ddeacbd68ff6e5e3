"""Sums in the field are those of the numbers, for a set that leaves somebody out."""

import numpy as np
import pytest

from blurfit import Store
from blurfit.contributor.blur import proved_with
from blurfit.errors import NotCertifiedError
from blurfit.messages.submissions import Submissions
from blurfit.randomness.database import words
from blurfit.store import proved_sums
from blurfit.store.commitment import Commitment
from blurfit.store.identifier_sets import in_order
from support.sharing import arrival, new_agreement

AGREEMENT = new_agreement(proofs=True)


def test_the_sums_of_both_come_to_the_sum_of_the_numbers() -> None:
    generator = np.random.default_rng(3)
    steps = generator.integers(-900, 900, (9, AGREEMENT.width))
    names = generator.integers(0, 256, (9, 16), dtype=np.uint8)
    table = Submissions(names, AGREEMENT.fingerprint, steps * AGREEMENT.grid.quadratic)
    shared = proved_with(AGREEMENT, table, [generator.bytes(128) for _ in range(9)])
    sums, left_out = [], in_order(names[[2, 5]])
    for role, shares in (("first", shared.first), ("second", shared.second)):
        with Store() as store:
            store.open(AGREEMENT, role=role)
            collection = store.collection(AGREEMENT.fingerprint)
            store.receive(collection, [arrival(shares)])
            chosen = Commitment(b"", 7, left_out, words(AGREEMENT))
            count, total = store.read(proved_sums.over, collection, chosen)
            assert count == 7
            sums.append(total)
    found = proved_sums.together(AGREEMENT, 7, *sums).view(np.int64)
    assert found.tolist() == np.delete(steps, [2, 5], axis=0).sum(axis=0).tolist()
    noise = generator.integers(-(2**40), 2**40, (2, AGREEMENT.width))
    noisy = [proved_sums.plus(one, n.view(np.uint64)) for one, n in zip(sums, noise, strict=True)]
    both = proved_sums.together(AGREEMENT, 7, *noisy).view(np.int64)
    assert (both == found + noise.sum(axis=0)).all()
    with pytest.raises(NotCertifiedError, match="does not add in the field"):
        proved_sums.together(AGREEMENT, 7, sums[0], sums[1] | np.uint64(2**64 - 2**32))
