import numpy as np
import pytest

from blurfit import (
    BelowQuorumError,
    ConflictError,
    InvalidValueError,
)
from blurfit.arrays import ByteArray
from blurfit.store import commitment, identifier_sets
from blurfit.store.store import Store
from support.sharing import identifier_of, opened, propose, send


def rows(names: list[bytes]) -> ByteArray:
    return identifier_sets.as_identifiers(b"".join(names))


def test_one_set_for_ever(place) -> None:
    agreement = propose()
    with Store() as first, Store(place) as second:
        opened(agreement, first, second)
        send(agreement, None, second, *range(6))
        mark = agreement.fingerprint
        assert second.read(commitment.recorded, second.collection(mark)) is None
        few = rows([identifier_of(n) for n in range(4)])
        with pytest.raises(BelowQuorumError, match=r"quorum 3.*are 2"):
            second.write(commitment.record, second.collection(mark), few)
        stranger = rows([identifier_of(99)])
        with pytest.raises(InvalidValueError, match="among the 6"):
            second.write(commitment.record, second.collection(mark), stranger)
        with pytest.raises(InvalidValueError, match="each once"):
            second.write(commitment.record, second.collection(mark), rows([identifier_of(1)] * 2))
        assert second.read(commitment.recorded, second.collection(mark)) is None, (
            "what is refused leaves nothing"
        )
        chosen = second.write(commitment.record, second.collection(mark), few[:2])
        assert chosen.count == 4
        again = second.write(commitment.record, second.collection(mark), few[1::-1])
        assert again.digest == chosen.digest
        for other in (few[:1], few[1:3], few[:0]):
            with pytest.raises(ConflictError, match="never be another"):
                second.write(commitment.record, second.collection(mark), other)
        kept = second.read(commitment.recorded, second.collection(mark))
        assert (kept.digest, kept.count) == (chosen.digest, 4)
        assert not kept.inside
        assert np.array_equal(kept.listed, identifier_sets.in_order(few[:2]))


@pytest.mark.parametrize("gone", [0, 3, 4, 6])
def test_the_fewer_are_written_down_of_those_in_a_set_and_those_left_out(place, gone) -> None:
    agreement = propose()
    with Store(place) as store:
        store.open(agreement, role="second")
        send(agreement, None, store, *range(9))
        store.close_collection(agreement.fingerprint)
        collection = store.collection(agreement.fingerprint)
        here = store.read(identifier_sets.identifiers_of, collection)
        store.write(commitment.record, collection, here[:gone])
        kept = store.read(commitment.recorded, collection)
        assert kept is not None
        assert (kept.count, kept.inside, len(kept.listed)) == (
            9 - gone,
            gone > 4,
            min(gone, 9 - gone),
        )
        assert kept.has(here).tolist() == [False] * gone + [True] * (9 - gone)
        assert kept.has(here[::-1]).tolist() == [True] * (9 - gone) + [False] * gone


def test_digests_tell_sets_and_agreements_apart() -> None:
    names = rows([identifier_of(n) for n in range(3)])
    with Store() as first, Store() as second:
        found = set()
        for agreement in (propose(), propose(epsilon=2)):
            opened(agreement, first, second)
            collection = first.collection(agreement.fingerprint)
            found |= {commitment.digest_of(collection, names[:n]) for n in range(4)}
        assert len(found) == 8
