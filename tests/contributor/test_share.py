import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import Agreement, InfeasibleError, InvalidValueError, Numeric, Schema
from blurfit.agreement.terms import largest_steps
from blurfit.contributor import blur as module
from blurfit.contributor.blur import in_steps, share, shared_with
from blurfit.learning.sums import total
from blurfit.messages.submissions import Submissions, expand
from blurfit_server.store.collections import Collection, Course
from blurfit_server.store.joint import totals_of

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
TWO = [("Office", "https://first.example"), ("University", "https://second.example")]
VECTORS = json.loads(Path(__file__).parents[1].joinpath("vectors", "shares.json").read_text())
PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 20, "admission": "anyone", "proofs": False}
AGREEMENT = Agreement.propose(SCHEMA, databases=TWO, **PROMISE)
LIMIT = int(largest_steps(AGREEMENT.calibration, AGREEMENT.step))
STEP, WIDTH = AGREEMENT.step, 5  # products of (c, age, income), but c²


def blurred(steps: np.ndarray) -> Submissions:
    """Given whole steps as what contributors blurred: the noise is fixed by the test."""
    generator = np.random.default_rng(len(steps))
    identifiers = generator.integers(0, 256, (len(steps), 16), dtype=np.uint8)
    return Submissions(identifiers, AGREEMENT.fingerprint, steps.astype(np.float64) * STEP)


def from_shares(table: Submissions, seeds: np.ndarray):
    """Σ as the two databases find it: sums of shares, minus sums of masks, each mod 2⁶⁴."""
    shared = shared_with(AGREEMENT, table, seeds)
    first, second = (
        Collection.of(1, 1, Course(1, AGREEMENT.fingerprint, AGREEMENT.to_json(), role), AGREEMENT)
        for role in ("first", "second")
    )
    words = first.sums(shared.first.words) - second.sums(shared.second.words)
    return totals_of(AGREEMENT, len(table), words)


def of_one_database(table: Submissions):
    parts = [(1, row) for row in table.numbers]
    return total(AGREEMENT, parts, exact_rows=2)


@st.composite
def collections(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Any number of contributors, with honest numbers up to the largest that there are."""
    count = draw(st.one_of(st.integers(1, 8), st.integers(1, 3000)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    bounds = np.full(WIDTH, LIMIT)
    shape = draw(st.sampled_from(["uniform", "largest", "smallest", "signs"]))
    steps = generator.integers(-bounds, bounds, (count, WIDTH), endpoint=True)
    if shape != "uniform":
        sign = {"largest": 1, "smallest": -1}.get(shape, np.sign(steps))
        steps = sign * np.broadcast_to(bounds, steps.shape)
    return steps, generator.integers(0, 2**64, (count, 4), dtype=np.uint64)


@given(collections())
def test_sums_from_shares_are_those_of_one_database_bit_for_bit(drawn) -> None:
    steps, seeds = drawn
    table = blurred(steps)
    found, expected = from_shares(table, seeds), of_one_database(table)
    assert found == expected
    assert found.sums.tobytes() == (expected.sums + 0.0).tobytes()
    exact = [sum(column) for column in steps.T.tolist()]  # in whole numbers of any size
    assert found.sums.tolist() == [float(one) * STEP for one in exact]


@given(st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=WIDTH, max_size=WIDTH), st.data())
def test_so_many_contributors_cannot_overflow(steps, data) -> None:
    """2³² contributors of the same numbers: their sum is 2³² times these, in whole numbers."""
    steps = [max(-LIMIT, min(LIMIT, one)) for one in steps]
    masks = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=WIDTH, max_size=WIDTH))
    shares = np.array(
        [(2**32 * v + m) % 2**64 for v, m in zip(steps, masks, strict=True)], dtype=np.uint64
    )
    found = totals_of(AGREEMENT, 2**32, shares - np.array(masks, dtype=np.uint64))
    assert found.sums.tolist() == [float(2**32 * one) * STEP for one in steps]


def test_sums_that_nobody_honest_makes_are_refused() -> None:
    words = np.zeros(WIDTH, dtype=np.uint64)
    for place in (0, 4):
        words[place] = 7 * LIMIT
        totals_of(AGREEMENT, 7, words)
        words[place] = 7 * LIMIT + 8
        with pytest.raises(InfeasibleError, match="larger than 7"):
            totals_of(AGREEMENT, 7, words)
        words[place] = 2**63
        with pytest.raises(InfeasibleError, match="larger than 7"):
            totals_of(AGREEMENT, 7, words)
        words[place] = 0


def test_one_record_is_shared() -> None:
    shared = share(AGREEMENT, {"age": 30, "income": 50})
    first, second = shared.first, shared.second
    assert len(shared) == len(first) == len(second) == 1
    assert (first.identifiers == second.identifiers).all()
    assert shared.identifier == first.identifiers[0].tobytes().hex()
    v = (first.words - expand(second.words, WIDTH)).view(np.int64)[0]
    assert (np.abs(v) <= LIMIT).all(), "a blurred record"


def test_nothing_whole_is_made_where_trust_is_shared() -> None:
    record = {"age": 30, "income": 50}
    for make in (module.perturb, module.perturb_table):
        with pytest.raises(InfeasibleError, match="shared between two databases"):
            make(AGREEMENT, record)
    one = Agreement.propose(SCHEMA, **PROMISE)
    with pytest.raises(InvalidValueError, match="two databases"):
        share(one, record)


def test_numbers_off_the_grid_are_refused() -> None:
    table = blurred(np.zeros((1, WIDTH), dtype=np.int64))
    for wrong in (STEP / 2, STEP * 2.0**63):
        numbers = table.numbers.copy()
        numbers[0, 3] = wrong
        off = Submissions(table.identifiers, table.fingerprint, numbers)
        with pytest.raises(InvalidValueError, match="grid"):
            in_steps(AGREEMENT, off)


def test_vectors() -> None:
    vector = VECTORS["shared"]
    seeds = np.frombuffer(bytes.fromhex(vector["seed"]), "<u8").astype(np.uint64).reshape(1, 4)
    steps = np.array([[int(one) for one in vector["steps"]]])
    shared = shared_with(AGREEMENT, blurred(steps), seeds)
    assert [str(one) for one in shared.first.words[0].tolist()] == vector["masked"]
    assert shared.second.words.astype("<u8").tobytes().hex() == vector["seed"]
