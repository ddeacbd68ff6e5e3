"""Verdicts and the key are written once; how they come about is in test_verifying.py."""

import numpy as np
import pytest

from blurfit import Store
from blurfit.errors import ConflictError
from blurfit.store import verdicts
from support.sharing import new_agreement

AGREEMENT = new_agreement(proofs=True)
NAMES = np.arange(48, dtype=np.uint8).reshape(3, 16)


@pytest.fixture
def store(place):
    with Store(place) as one:
        one.open(AGREEMENT, role="second")
        yield one


def test_what_was_found_first_stands(store) -> None:
    collection = store.collection(AGREEMENT.fingerprint)
    assert len(store.read(verdicts.found, collection)) == 0
    stands = store.write(verdicts.record, collection, NAMES[:2], np.array([True, False]))
    assert stands.tolist() == [True, False]
    stands = store.write(verdicts.record, collection, NAMES, np.array([False, True, True]))
    assert stands.tolist() == [True, False, True]
    assert len(store.read(verdicts.found, collection)) == 3
    valid = {one.tobytes() for one in store.read(verdicts.found, collection, valid=True)}
    assert valid == {NAMES[0].tobytes(), NAMES[2].tobytes()}
    assert not len(store.write(verdicts.record, collection, NAMES[:0], np.zeros(0, dtype=bool)))


def test_another_key_is_refused_for_ever(store) -> None:
    collection = store.collection(AGREEMENT.fingerprint)
    for _ in range(2):
        store.write(verdicts.fix_key, collection, b"k" * 32)
    with pytest.raises(ConflictError, match="secret"):
        store.write(verdicts.fix_key, collection, b"x" * 32)
