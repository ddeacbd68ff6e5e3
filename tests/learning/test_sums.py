"""Exact, whatever the order: compared with Python's whole numbers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import Agreement, Numeric, Schema, perturb_table
from blurfit.learning.admission import Screen
from blurfit.learning.sums import EXACT, block_sums, merged, rows_that_add_exactly, total

SCHEMA = Schema(features=[Numeric("a", 0, 1), Numeric("b", 0, 1)], target=Numeric("y", 0, 1))
AGREEMENTS = {
    mechanism: Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-6, quorum=1000, mechanism=mechanism, weight_bound=2.0
    )
    for mechanism in ("moment", "input")
}
TABLE = {name: np.linspace(0, 1, 300) for name in ("a", "b", "y")}
NUMBERS = {
    mechanism: np.hstack([part.quadratic, part.linear])
    for mechanism, part in (
        (name, perturb_table(agreement, TABLE)) for name, agreement in AGREEMENTS.items()
    )
}


def exact(agreement: Agreement, numbers: np.ndarray) -> tuple[list, list]:
    """A and c as fractions, record by record."""
    d = agreement.dimension
    k = agreement.layout.widths[0]
    gram = [Fraction(0)] * (d * (d + 1) // 2)
    moment = [Fraction(0)] * d
    rows, columns = np.triu_indices(d)
    for row in numbers.tolist():
        q, p = [Fraction(v) for v in row[:k]], [Fraction(v) for v in row[k:]]
        for place in range(len(gram)):
            gram[place] += (
                q[place] if agreement.mechanism == "moment" else q[rows[place]] * q[columns[place]]
            )
        moment = [a + b for a, b in zip(moment, p, strict=True)]
    return gram, moment


@pytest.mark.parametrize("mechanism", ["moment", "input"])
@given(cuts=st.lists(st.integers(0, 300), max_size=6), seed=st.integers(0, 100))
def test_the_sum_is_exact_and_rounded_once(mechanism, cuts, seed) -> None:
    agreement, numbers = AGREEMENTS[mechanism], NUMBERS[mechanism]
    shuffled = np.random.default_rng(seed).permutation(numbers)
    parts = [part for part in np.split(shuffled, sorted(cuts)) if len(part)]
    found = total(
        agreement, [(len(part), block_sums(agreement, part)) for part in parts], exact_rows=100
    )
    gram, moment = exact(agreement, numbers)
    rows, columns = np.triu_indices(agreement.dimension)
    assert found.count == 300
    assert found.gram[rows, columns].tolist() == [float(value) for value in gram]
    assert found.moment.tolist() == [float(value) for value in moment]


@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_blocks_are_short_enough_to_be_exact(mechanism) -> None:
    agreement = AGREEMENTS[mechanism]
    screen = Screen.of(agreement)
    rows = rows_that_add_exactly(agreement, screen.largest_steps())
    assert rows >= 256
    steps = screen.quadratic_radius / agreement.grid.quadratic
    assert rows * steps <= EXACT
    assert rows * screen.linear_radius / agreement.grid.linear <= EXACT


@pytest.mark.parametrize("quorum", [2**21, 2**30])
def test_large_quorums_add_exactly_too(quorum) -> None:
    """Where one q̃q̃ᵀ has up to 2⁵³ steps, and a million rows are added at once."""
    agreement = Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-6, quorum=quorum, mechanism="input", weight_bound=2.0
    )
    assert rows_that_add_exactly(agreement, Screen.of(agreement).largest_steps()) > 2**20
    part = perturb_table(agreement, TABLE)
    numbers = np.hstack([part.quadratic, part.linear])
    gram, moment = exact(agreement, numbers)
    rows, columns = np.triu_indices(agreement.dimension)
    for pieces in (1, 7):
        parts = [(len(p), block_sums(agreement, p)) for p in np.array_split(numbers, pieces)]
        found = total(agreement, parts, exact_rows=100)
        assert found.gram[rows, columns].tolist() == [float(value) for value in gram]
        assert found.moment.tolist() == [float(value) for value in moment]


def test_merging_what_was_merged_is_merging() -> None:
    agreement, numbers = AGREEMENTS["moment"], NUMBERS["moment"]
    parts = [(len(p), block_sums(agreement, p)) for p in np.array_split(numbers, 10)]
    once = merged(parts, exact_rows=90)
    assert [rows for rows, _ in once] == [90, 90, 90, 30]
    halves = merged(parts[:5], exact_rows=90) + merged(parts[5:], exact_rows=90)
    assert total(agreement, merged(halves, 90), 90) == total(agreement, parts, 1)


def test_nothing_at_all() -> None:
    agreement = AGREEMENTS["moment"]
    empty = total(agreement, [], exact_rows=10)
    assert empty.count == 0
    assert empty.fingerprint == agreement.fingerprint
