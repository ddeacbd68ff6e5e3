"""Identifiers are taken once, told in one statement, and form sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import InvalidValueError
from blurfit.data import ByteArray
from blurfit.store import blocks
from blurfit.store.store import Store
from support import stores
from support.sharing import identifier_of, opened, propose, send

NAMES = st.lists(st.binary(min_size=16, max_size=16), max_size=20)


def rows(names: list[bytes]) -> ByteArray:
    return blocks.as_identifiers(b"".join(names))


@given(NAMES, NAMES)
def test_sets_of_names(some, others) -> None:
    some[1:1] = [b"\0" * 16, b"\0" * 15 + b"x", b"x" + b"\0" * 15]  # zeros are bytes like any other
    kept = blocks.minus(rows(some), rows(others))
    assert [one.tobytes() for one in kept] == [one for one in some if one not in others]
    known = blocks.in_order(rows(others))
    assert blocks.among(rows(some), known).tolist() == [one in others for one in some]
    in_order = [one.tobytes() for one in blocks.in_order(rows(some))]
    assert in_order == sorted(set(some))


@pytest.mark.parametrize("at_once", [3, 5, 2**16])
def test_names_in_order_and_a_page_at_a_time(place, at_once, monkeypatch) -> None:
    monkeypatch.setattr(blocks, "AT_ONCE", at_once)
    agreement = propose()
    with Store(place) as first, Store() as second:
        opened(agreement, first, second)
        send(agreement, first, None, *range(10))
        expected = sorted(map(identifier_of, range(10)))
        found = first.read(blocks.held_identifiers, first.collection(agreement.fingerprint).key)
        assert [one.tobytes() for one in found] == expected
        after, pages = b"", []
        while page := first.read(
            blocks.page_of_identifiers, first.collection(agreement.fingerprint).key, after, 4
        ):
            pages.append(page)
            after = page[-16:]
        assert [len(page) // 16 for page in pages] == [4, 4, 2]
        assert b"".join(pages) == b"".join(expected)


@pytest.mark.parametrize("held", [0, 1, 8, 9, 1000])
def test_a_set_travels_as_a_bit_for_each_who_is_held(held) -> None:
    generator = np.random.default_rng(held)
    names = blocks.in_order(generator.integers(0, 256, (held, 16), dtype=np.uint8))
    left_out = names[generator.random(len(names)) < 0.7]
    bits = blocks.members(names, left_out)
    assert len(bits) == -(-held // 8)
    assert (blocks.left_out_by(names, bits) == left_out).all()
    with pytest.raises(InvalidValueError, match="a bit for each"):
        blocks.left_out_by(names, bits + b"x")


def test_names_are_sixteen_bytes() -> None:
    with pytest.raises(InvalidValueError, match="17 bytes"):
        blocks.as_identifiers(b"x" * 17)


def test_thousands_are_taken_told_and_withdrawn(place) -> None:
    names = np.random.default_rng(1).integers(0, 256, (3000, 16), dtype=np.uint8)
    names[:3, 8:] = 0  # zeros at the end, and all of them zero
    names[0] = 0
    keys = [one.tobytes() for one in names]
    with Store(place) as store:
        agreement = stores.propose()
        store.open(agreement)
        wave = store.collection(agreement.fingerprint).key
        assert store.write(blocks.take_identifiers, wave, names[:2000]) == 2000
        if "sqlite" in place:
            store.write(blocks.settle_identifiers)
        assert store.write(blocks.take_identifiers, wave, names[1000:]) == 1000
        assert store.read(blocks.known_among, wave, names) == set(keys)
        assert store.read(blocks.withdrawn_among, wave, keys) == set()
        for _ in range(2):
            store.write(blocks.withdraw_identifiers, wave, names[:5])
        assert store.read(blocks.withdrawn_among, wave, keys) == set(keys[:5])
        assert store.read(blocks.withdrawn_among, wave, []) == set()
