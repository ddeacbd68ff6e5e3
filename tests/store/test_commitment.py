import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import (
    Agreement,
    BelowQuorumError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
)
from blurfit.store import commitment
from blurfit.store.store import Store
from support.sharing import SCHEMA, identifier_of, opened, propose, send

NAMES = st.lists(st.binary(min_size=16, max_size=16), max_size=20)


def rows(names: list[bytes]) -> commitment.ByteArray:
    return commitment.as_identifiers(b"".join(names))


@given(NAMES, NAMES)
def test_sets_of_names(some, others) -> None:
    some[1:1] = [b"\0" * 16, b"\0" * 15 + b"x", b"x" + b"\0" * 15]  # zeros are bytes like any other
    kept = commitment.minus(rows(some), rows(others))
    assert [one.tobytes() for one in kept] == [one for one in some if one not in others]
    known = commitment.in_order(rows(others))
    assert commitment.among(rows(some), known).tolist() == [one in others for one in some]
    in_order = [one.tobytes() for one in commitment.in_order(rows(some))]
    assert in_order == sorted(set(some))


def test_roles_fit_the_agreement() -> None:
    split, one = propose(), Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=3)
    with Store() as store:
        with pytest.raises(InvalidValueError, match=r"first or second.*--as first"):
            store.open(split)
        with pytest.raises(InvalidValueError, match="to be 'whole'"):
            store.open(one, role="first")
        with pytest.raises(InvalidValueError, match="role="):
            store.open(split, role="third")  # type: ignore[arg-type]
        assert store.open(split, role="second")
        assert not store.open(split, role="second")
        with pytest.raises(ConflictError, match="'second'"):
            store.open(split, role="first")


@pytest.mark.parametrize("at_once", [3, 5, 2**16])
def test_names_in_order_and_a_page_at_a_time(place, at_once, monkeypatch) -> None:
    monkeypatch.setattr(commitment, "AT_ONCE", at_once)
    agreement = propose()
    with Store(place) as first, Store() as second:
        opened(agreement, first, second)
        send(agreement, first, None, *range(10))
        expected = sorted(map(identifier_of, range(10)))
        found = first.read(commitment.identifiers_of, first.collection(agreement.fingerprint))
        assert [one.tobytes() for one in found] == expected
        after, pages = b"", []
        while page := first.read(
            commitment.page, first.collection(agreement.fingerprint), after, 4
        ):
            pages.append(page)
            after = page[-16:]
        assert [len(page) // 16 for page in pages] == [4, 4, 2]
        assert b"".join(pages) == b"".join(expected)


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
        assert np.array_equal(kept.listed, commitment.in_order(few[:2]))


@pytest.mark.parametrize("gone", [0, 3, 4, 6])
def test_the_fewer_are_written_down_of_those_in_a_set_and_those_left_out(place, gone) -> None:
    agreement = propose()
    with Store(place) as store:
        store.open(agreement, role="second")
        send(agreement, None, store, *range(9))
        store.close_collection(agreement.fingerprint)
        collection = store.collection(agreement.fingerprint)
        here = store.read(commitment.identifiers_of, collection)
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


def test_each_database_does_its_own_part() -> None:
    agreement = propose()
    with Store() as first, Store() as second:
        opened(agreement, first, second)
        with pytest.raises(InfeasibleError, match="opened as 'first'"):
            commitment.require_role(first.collection(agreement.fingerprint), "second")


def test_names_are_sixteen_bytes() -> None:
    with pytest.raises(InvalidValueError, match="17 bytes"):
        commitment.as_identifiers(b"x" * 17)
