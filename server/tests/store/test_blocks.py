"""Identifiers as sets, and rows in blocks."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import InvalidValueError, perturb_table
from blurfit.data import ByteArray
from blurfit_server import Store
from blurfit_server.store import blocks
from blurfit_server.store.blocks import MANY
from server_support.sharing import opened, send
from server_support.stores import at_once
from support.proposals import PEOPLE, totals_of
from support.sharing import identifier_of, propose

# ---- identifiers


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


# ---- blocks


def people(count: int) -> dict:
    return {name: np.linspace(0, 100, count) for name in ("age", "income")}


def test_two_services_put_blocks_together_at_once(agreement, place) -> None:
    with Store(place) as first, Store(place) as second:
        for one in perturb_table(agreement, people(60)):
            first.add(agreement, one)
        collection = first.collection(agreement.fingerprint)
        at_once(*(partial(one.write, blocks.put_together, collection) for one in (first, second)))
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
