"""The sampler's law: by its own arithmetic (every slot, cell and coin), and by what it draws.

Statistical tests draw from the operating system and fail by chance less than once in 10⁷ runs.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, ks_2samp

from blurfit import randomness as bits
from blurfit import randomness as module
from blurfit.randomness import MARGIN, SLOTS, TAIL_CELLS, cells_of, draw
from support.canonne import discrete_gaussian
from support.fair import probabilities, shape_pvalue

CHANCE = 1e-9
RATIOS = [2.0**-10, 0.3, 0.7, 3.0, 31.9, 64.0, 1000.3, 8191.7, 2.0**20, 2.0**45]
ratios = st.floats(2.0**-10, 2.0**45)


def exp(value: Fraction) -> mpmath.mpf:
    return mpmath.exp(mpmath.mpf(value.numerator) / value.denominator)


def height(k: int, ratio: float) -> mpmath.mpf:
    """exp(−k²/(2s²)) to 60 digits."""
    with mpmath.workdps(60):
        return exp(-(Fraction(k) ** 2) / (2 * Fraction(ratio) ** 2))


@settings(max_examples=60, deadline=None)
@given(ratio=ratios)
def test_cells_are_what_the_proof_asks(ratio: float) -> None:
    cells = cells_of(ratio)
    width, count = 2**cells.offset_bits, cells.tail
    assert 32 <= ratio / width < 64 or (width == 1 and ratio < 64)
    assert count * width >= 6 * ratio
    assert TAIL_CELLS * width >= ratio
    assert cells.peak <= SLOTS
    slots = np.bincount(cells.owners, minlength=count + 2)
    assert slots[count] == 1
    assert slots.sum() == SLOTS
    assert np.array_equal(slots[:count], cells.counts[:count])
    assert cells.offset_bits + cells.coin_bits + 16 + 1 == 64
    for cell in {0, 1, count // 3, count - 1} & set(range(count)):
        owned = int(cells.counts[cell])
        assert cells.peak * height(cell * width, ratio) <= owned  # kept with probability ≤ 1
        least = cells.peak * height((cell + 1) * width, ratio) / owned
        assert mpmath.mpf(int(cells.sure[cell])) / 2**cells.coin_bits <= least
    assert not cells.sure[count:].any()


@settings(max_examples=40, deadline=None)
@given(ratio=ratios, block=st.integers(0, 40))
def test_the_tail_is_kept_with_a_probability(ratio: float, block: int) -> None:
    cells = cells_of(ratio)
    first = (cells.tail + block * TAIL_CELLS) << cells.offset_bits
    assert cells.peak * 2 ** (block + 1) * TAIL_CELLS * height(first, ratio) < 1


@pytest.mark.parametrize("ratio", [0.7, 3.0, 100.0])
def test_a_round_ends_in_each_number_with_one_factor_times_its_height(ratio, monkeypatch) -> None:
    """By counting: all slots and signs, and the coin at which each proposal ceases to be kept."""
    cells = cells_of(ratio)
    offsets, found = 2**cells.offset_bits, {}
    places = np.array([np.flatnonzero(cells.owners == cell)[0] for cell in range(cells.tail)])
    for sign in (0, 1):
        for offset in range(offsets):
            base = (places << 48) | (sign << 47) | (offset << cells.coin_bits)
            low = np.zeros(len(places), np.int64)  # bisect for the first coin that is refused
            high = np.full(len(places), 2**cells.coin_bits, np.int64)
            monkeypatch.setattr(module, "_below", lambda *_: True)
            while (high - low > 1).any():
                middle = (low + high) // 2
                values, kept = module._round(cells, (base | middle).astype(np.uint64))
                low, high = np.where(kept, middle, low), np.where(kept, high, middle)
            for cell, value in enumerate(values.tolist()):
                chance = int(cells.counts[cell]) / SLOTS / 2 / offsets
                found[value] = found.get(value, 0.0) + chance * high[cell] / 2**cells.coin_bits
    reach = cells.tail * offsets
    assert sorted(found) == list(range(-reach, reach))  # each once, zero included
    factor = cells.peak / (2 * SLOTS * offsets)
    for value, chance in found.items():
        expected = factor * math.exp(-((value / ratio) ** 2) / 2)
        assert math.isclose(chance, expected, rel_tol=1e-8, abs_tol=2.0**-40)


@settings(max_examples=60, deadline=None)
@given(
    ratio=st.floats(2.0**-3, 2.0**45),
    deviations=st.floats(-9, 9),
    known=st.integers(0, 47),
    share=st.floats(0, 1, exclude_max=True),
    bit=st.booleans(),
)
def test_an_undecided_coin_is_decided_by_the_truth(ratio, deviations, known, share, bit) -> None:
    """Whatever bits follow: the number that they spell is below the height, or is not."""
    value, coin = int(deviations * ratio), int(share * 2**known)
    drawn: list[int] = []

    def whole(count: int) -> int:
        drawn.append((2**count - 1) * bit)
        return drawn[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "whole", whole)
        found = module._below(Fraction(3, 4), value, ratio, coin, known)
    for one in drawn:
        coin, known = coin << 64 | one, known + 64
    with mpmath.workdps(200):
        threshold = mpmath.mpf(3) / 4 * exp(-(Fraction(value) ** 2) / (2 * Fraction(ratio) ** 2))
        spelt = mpmath.mpf(coin + (1 if found else 0)) / mpmath.mpf(2) ** known
        assert spelt <= threshold if found else spelt >= threshold


@settings(max_examples=60, deadline=None)
@given(exponent=st.fractions(-25_000, 0), digits=st.integers(20, 120))
def test_bounds_on_the_exponential(exponent: Fraction, digits: int) -> None:
    low, high = module._exp(exponent, digits)
    with mpmath.workdps(digits + 40):
        truth = exp(exponent)
        assert mpmath.mpf(low.numerator) / low.denominator <= truth
        assert mpmath.mpf(high.numerator) / high.denominator >= truth
    if exponent > -23_000:
        assert 0 <= high - low <= high * Fraction(1, 10 ** (digits - 2))


@pytest.mark.statistical
@pytest.mark.parametrize("ratio", RATIOS[1:])
def test_shape(ratio: float) -> None:
    assert shape_pvalue(draw(ratio, 400_000), ratio, cells=40) > CHANCE


@pytest.mark.statistical
def test_every_single_probability() -> None:
    """s = 100: some five hundred numbers, cells of two, each with its own probability."""
    k, chances = probabilities(100.0)
    count = 2_000_000
    expected = chances * count
    enough = expected > 20
    seen = draw(100.0, count)
    counts = np.bincount(seen - k[0], minlength=len(k))
    rest = [counts[~enough].sum()], [expected[~enough].sum()]
    found = chisquare(np.append(counts[enough], rest[0]), np.append(expected[enough], rest[1]))
    assert found.pvalue > CHANCE


@pytest.mark.statistical
@pytest.mark.parametrize("ratio", [0.7, 3.0, 40.0, 5000.0])
def test_the_tail_itself(ratio: float) -> None:
    """What the last slot keeps, by the exact probabilities beyond K, for K = 2s."""
    full = cells_of(ratio)
    width = 2**full.offset_bits
    tail = math.ceil(2 * ratio / width)
    peak = 1 / 20  # r = τ·2ⁱ⁺¹·64·exp(−k²/(2s²)): a probability from K on, where the last is e⁻²
    assert peak * 2 * TAIL_CELLS * height(tail * width, ratio) < 1
    cells = module.Cells(
        ratio, full.offset_bits, Fraction(peak), full.owners, np.ones(tail + 2, int), full.sure
    )
    rounds = 3000
    kept = [k for k, ok in (module._tail(cells, negative=False) for _ in range(rounds)) if ok]
    start = tail * width
    k = np.arange(start, start + math.ceil(12 * ratio) + 20)
    weights = np.exp(-((k / ratio) ** 2) / 2)
    assert min(kept, default=start) >= start
    # A round keeps k with probability 2⁻ⁱ⁻¹/L·τ·2ⁱ⁺¹·(L/B)·exp(−k²/(2s²)) = τ/B·exp(−k²/(2s²)).
    expected = peak / width * weights.sum()
    assert abs(len(kept) - rounds * expected) < 7 * math.sqrt(rounds * expected) + 7
    if len(kept) > 30 and ratio > 1:
        middle = k[np.searchsorted(np.cumsum(weights) / weights.sum(), 0.5)]
        share = weights[k <= middle].sum() / weights.sum()
        below = sum(one <= middle for one in kept)
        assert abs(below - share * len(kept)) < 7 * math.sqrt(len(kept) / 4)


@pytest.mark.statistical
@pytest.mark.parametrize("ratio", [0.7, 3.0, 77.3, 1000.0])
def test_another_exact_sampler_draws_the_same(ratio: float) -> None:
    theirs = np.array([discrete_gaussian(*ratio.as_integer_ratio()) for _ in range(3000)])
    ours = draw(ratio, 60_000)
    assert shape_pvalue(theirs, ratio, 20) > CHANCE
    assert ks_2samp(ours, theirs, method="asymp").pvalue > CHANCE


@pytest.mark.statistical
@pytest.mark.parametrize("ratio", [40.0, 8191.7, 2.0**33])
def test_moments_independence_and_last_digits(ratio: float) -> None:
    count = 1_000_000
    z = draw(ratio, count) / ratio
    for power, value in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0)):
        deviation = (z**power).std() / math.sqrt(count)
        assert abs((z**power).mean() - value) < 6.5 * deviation
    for series in (z, np.abs(z) - np.abs(z).mean()):
        for lag in (1, 2, 3, 63, 1000):
            correlation = (series[lag:] * series[:-lag]).mean() / (series**2).mean()
            assert abs(correlation) < 6.5 / math.sqrt(count)
    digits = np.bincount((z * ratio).astype(np.int64) % 16, minlength=16)
    assert chisquare(digits).pvalue > CHANCE


def test_floats_decide_only_what_is_clear(monkeypatch) -> None:
    """Coins that lie on the height are handed on, whatever float64 makes of them."""
    cells = cells_of(1000.3)
    handed: list[int] = []
    monkeypatch.setattr(module, "_below", lambda *given: handed.append(given[1]) or False)
    cell, offset = 100, 3
    value = (cell << cells.offset_bits) + offset
    kept_with = cells.peak / int(cells.counts[cell]) * float(height(value, 1000.3))
    slot = int(np.flatnonzero(cells.owners == cell)[0])
    for nudge, expected in ((-3, True), (0, None), (3, False)):
        coin = int(kept_with * (1 + nudge * MARGIN) * 2**cells.coin_bits)
        word = slot << 48 | offset << cells.coin_bits | coin
        found, kept = module._round(cells, np.array([word], np.uint64))
        assert found.tolist() == [value]
        if expected is None:
            assert handed == [value]
        else:
            assert kept.tolist() == [expected]
    assert handed == [value]
