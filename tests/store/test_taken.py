"""Identifiers are taken once, and told in one statement."""

import numpy as np

from blurfit import Store
from blurfit.store import taken
from support.stores import propose


def test_thousands_are_taken_told_and_withdrawn(place) -> None:
    names = np.random.default_rng(1).integers(0, 256, (3000, 16), dtype=np.uint8)
    names[:3, 8:] = 0  # zeros at the end, and all of them zero
    names[0] = 0
    keys = [one.tobytes() for one in names]
    with Store(place) as store:
        agreement = propose()
        store.open(agreement)
        collection = store.collection(agreement.fingerprint)
        assert store.write(taken.take, collection, names[:2000]) == 2000
        if "sqlite" in place:
            store.write(taken.settle)
        assert store.write(taken.take, collection, names[1000:]) == 1000
        assert store.read(taken.known_among, collection, names) == set(keys)
        assert store.read(taken.withdrawn_among, collection, keys) == set()
        for _ in range(2):
            store.write(taken.withdraw, collection, names[:5])
        assert store.read(taken.withdrawn_among, collection, keys) == set(keys[:5])
        assert store.read(taken.withdrawn_among, collection, []) == set()
