"""Exact, whatever the order: compared with Python's whole numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from blurfit import Agreement, Numeric, Schema, perturb_table
from blurfit.learning.sums import EXACT, Screen, merged, rows_that_add_exactly, total
from support.proposals import totals_of

SCHEMA = Schema(features=[Numeric("a", 0, 1), Numeric("b", 0, 1)], target=Numeric("y", 0, 1))
PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 1000}
AGREEMENT = Agreement.propose(SCHEMA, **PROMISE)
TABLE = {name: np.linspace(0, 1, 300) for name in ("a", "b", "y")}
SENT = perturb_table(AGREEMENT, TABLE)
NUMBERS, EXPECTED = SENT.numbers, totals_of(AGREEMENT, SENT)


@given(
    cuts=st.lists(st.integers(0, 300), max_size=6),
    seed=st.integers(0, 100),
    exact_rows=st.integers(1, 400),
)
def test_the_sum_of_any_partition_in_any_order_is_the_same_bits(cuts, seed, exact_rows) -> None:
    """Compared with Python's fractions, rounded once: so all of them are equal to each other."""
    agreement, generator = AGREEMENT, np.random.default_rng(seed)
    shuffled = generator.permutation(NUMBERS)
    parts = [part for part in np.split(shuffled, sorted(cuts)) if len(part)]
    generator.shuffle(parts)
    found = total(agreement, [(len(part), part.sum(axis=0)) for part in parts], exact_rows)
    assert found == EXPECTED
    assert (found.sums + 0.0).tobytes() == (EXPECTED.sums + 0.0).tobytes()


@given(st.binary(min_size=38, max_size=38), st.integers(0, 100))
def test_a_tree_of_any_shape_gives_the_same_bits(sides, seed) -> None:
    """Two services, each with blocks of its own, merged there and then with each other."""
    agreement = AGREEMENT
    chosen = np.unpackbits(np.frombuffer(sides, np.uint8))[:300].astype(bool)
    exact_rows = rows_that_add_exactly(Screen.of(agreement).largest_steps())
    generator = np.random.default_rng(seed)
    halves = []
    for some in (NUMBERS[chosen], NUMBERS[~chosen]):
        blocks = np.array_split(some, generator.integers(1, 9))
        parts = [(len(one), one.sum(axis=0)) for one in blocks if len(one)]
        halves += merged(parts, exact_rows)
    assert total(agreement, halves, exact_rows) == EXPECTED


def test_blocks_are_short_enough_to_be_exact() -> None:
    agreement = AGREEMENT
    screen = Screen.of(agreement)
    rows = rows_that_add_exactly(screen.largest_steps())
    assert rows >= 256
    for part, radius in zip(screen.parts, screen.radii, strict=True):
        assert rows * radius / part.step <= EXACT


def test_merging_what_was_merged_is_merging_and_of_nothing_nothing() -> None:
    agreement, numbers = AGREEMENT, NUMBERS
    parts = [(len(p), p.sum(axis=0)) for p in np.array_split(numbers, 10)]
    once = merged(parts, exact_rows=90)
    assert [rows for rows, _ in once] == [90, 90, 90, 30]
    halves = merged(parts[:5], exact_rows=90) + merged(parts[5:], exact_rows=90)
    assert total(agreement, merged(halves, 90), 90) == total(agreement, parts, 1)
    empty = total(agreement, [], exact_rows=10)
    assert empty.count == 0
    assert empty.fingerprint == agreement.fingerprint
    one = total(agreement, [(1, np.zeros(agreement.width))], 10)
    assert empty.sums.tolist() == one.sums.tolist()
