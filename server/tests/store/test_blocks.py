"""Identifiers as sets, rows in blocks, and halves of those who came."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import Agreement, InvalidValueError, perturb_table
from blurfit.data import ByteArray
from blurfit.messages.submissions import Submissions
from blurfit.model.release import PublishedMoments
from blurfit.schema.schema import Numeric, Schema
from blurfit_server import Store
from blurfit_server.store import blocks
from blurfit_server.store.blocks import MANY
from server_support.sharing import opened, send
from server_support.stores import at_once
from support.lying import climbing
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


# ---- halves


SCHEMA = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 100))
PROMISE = {"epsilon": 1, "delta": 1e-6}
AGREEMENT = Agreement.propose(SCHEMA, **PROMISE, quorum=10_000)
LIARS = 100


def crowd(count, seed=1):
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(50, 15, count), 0, 100)
    return {"age": age, "income": np.clip(30 + 0.4 * age + rng.normal(0, 8, count), 0, 100)}


@pytest.fixture(scope="module")
def honest() -> np.ndarray:
    return perturb_table(AGREEMENT, crowd(10_000)).numbers


@pytest.fixture(scope="module")
def false(honest) -> np.ndarray:
    """100 submissions that move the slope of 10,000 others as far down as they can."""

    def slope(sums) -> float:
        return PublishedMoments(AGREEMENT, 10_100, sums).fit().estimates()[1].value

    row = climbing(AGREEMENT, honest.sum(axis=0), slope, LIARS, -1, steps=2)
    return np.tile(row, (LIARS, 1))


def modest(numbers) -> np.ndarray:
    """The same lies, a fifth shorter."""
    step = AGREEMENT.grid.quadratic
    return np.trunc(0.8 * numbers / step) * step


def look(agreement, *arrivals):
    """What is told of numbers that came one group after the other."""
    rng = np.random.default_rng(4)
    with Store() as store:
        for numbers in arrivals:
            names = rng.integers(0, 256, (len(numbers), 16), dtype=np.uint8)
            store.add(agreement, Submissions(names, agreement.fingerprint, numbers))
        return store.compare_halves(agreement.fingerprint)


def test_honest_people_raise_no_alarm(honest) -> None:
    found = look(AGREEMENT, *np.split(honest, 10))
    assert (found.people, found.disagree, found.long) == (10_000, False, 0)
    assert "Liars who come evenly and are not greedy cannot be seen" in found.told


def test_liars_who_come_together_are_seen_wherever_it_is(honest, false) -> None:
    for place in (0, 3, 9):
        arrivals = np.split(honest, 10)
        arrivals.insert(place, modest(false))
        found = look(AGREEMENT, *arrivals)
        assert found.disagree
        assert found.long == 0, "they are not greedy"
        assert "contributors may be lying together" in found.told
        assert "collect anew" in found.told


def test_liars_who_come_evenly_are_seen_by_their_greed_alone(honest, false) -> None:
    each = [np.vstack(both) for both in zip(np.split(honest, 10), np.split(false, 10), strict=True)]
    found = look(AGREEMENT, *each)
    assert not found.disagree
    assert found.long == LIARS
    assert "100 of 10,100 submissions are longer than honest ones are" in found.told
    few = np.split(modest(false), 10)
    shorter = [np.vstack(both) for both in zip(np.split(honest, 10), few, strict=True)]
    found = look(AGREEMENT, *shorter)
    assert not found.disagree
    assert found.long == 0, "and so nothing shows: the statement says what they could do"


def test_people_who_differ_honestly_by_when_they_come_raise_it_too() -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=2000)
    young, old = crowd(1000), crowd(1000, seed=2)
    young["age"] = young["age"] / 2
    found = look(agreement, *(perturb_table(agreement, one).numbers for one in (young, old)))
    assert found.disagree
    assert "as long as when somebody comes has nothing to do with what they answer" in found.told


def test_of_very_many_numbers_combinations_are_compared() -> None:
    schema = Schema([Numeric(f"x{k}", 0, 1) for k in range(22)], Numeric("y", 0, 1))
    agreement = Agreement.propose(schema, **PROMISE, quorum=2000)
    assert agreement.width > 256
    rng = np.random.default_rng(6)
    table = {name: rng.uniform(0, 1, 2000) for name in schema.columns} | {"y": rng.random(2000)}
    numbers = perturb_table(agreement, table).numbers
    found = look(agreement, *np.split(numbers, 2))
    assert (found.people, found.disagree) == (2000, False)
    table = {name: np.where(np.arange(2000) < 1000, 0.2, 0.8) for name in table}
    assert look(agreement, *np.split(perturb_table(agreement, table).numbers, 2)).disagree


def test_too_few_are_not_compared() -> None:
    assert look(AGREEMENT, perturb_table(AGREEMENT, crowd(40)).numbers).people == 0
    with Store() as store:
        store.open(AGREEMENT)
        found = store.compare_halves(AGREEMENT.fingerprint)
    assert found.told == "0 people are too few to compare one half with the other."
