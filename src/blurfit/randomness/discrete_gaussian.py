"""Draw k with probability ∝ exp(−k²/(2s²)), exactly, a whole table at a time.

**The law.** For a given s (a float, taken as the rational number that it is) let B = 2ᵇ be the
width of a cell such that 32 ≤ s/B < 64 (B = 1 for s < 64). A round draws a 64-bit word and reads

    slot (16 bits) → cell h      sign (1 bit)      offset (b bits)      coin (the other 47 − b bits)

    m = hB + offset,    k = m or −1 − m, by the sign: every whole number has one such name.

Cell h owns c_h of the 2¹⁶ slots, c_h = ⌈τ·exp(−(hB)²/(2s²))⌉ for a whole number τ, so that k is
proposed with probability c_h/(2¹⁷B), and |k| ≥ hB. It is kept with probability

    r·exp(−k²/(2s²)),  r = τ/c_h,       which is at most 1 because of how c_h was rounded.

So a round ends in k with probability (τ/(2¹⁷B))·exp(−k²/(2s²)): the factor in front is the same for
all k. One more slot is for all m ≥ K = HB ≥ 6s: it picks block i = 0, 1, … with probability 2⁻ⁱ⁻¹
and one of its L = 64B ≥ s numbers, and keeps k with r = τ·2ⁱ⁺¹·L/B, which gives the same factor.
There r·exp(−k²/(2s²)) ≤ 2¹⁶·2ⁱ⁺¹·64·exp(−(6 + i)²/2) < 1, as τ ≤ 2¹⁶: it is 0.13 at i = 0, and
each next i multiplies it by 2·exp(−6.5 − i) < 1. Slots that nobody owns end a round in nothing. A
draw repeats rounds until one keeps something, so **its law is the discrete Gaussian's: nothing is
cut off, and no probability is rounded.** (Layers of equal height are Marsaglia's ziggurat; here
they have equal width, so that all of them are powers of two.)

**The coin is never rounded either.** Its bits say that a uniform u lies in [j, j + 1)/2^c. Floats
only sort out the clear cases: u is below the least that any k of this cell needs (98 of 100), or
below or above r·exp(−k²/(2s²)) by more than 2⁻³⁰ of it. There the float's error is below 2⁻⁴⁰:
k²/(2s²) has a relative error of 4 ulp, so that exp of it is wrong by 700·2⁻⁵⁰ at most where it is
above 10⁻³⁰⁰, and by 4 ulp more because NumPy's exp is. What is left, about one draw in 10⁷, is
decided by as many further bits as it takes, against bounds on r·exp(−k²/(2s²)) in decimal numbers
of growing precision (Python's `Decimal.exp` is correctly rounded).

**The bits** are those of `blurfit.randomness.bits`, at a distance from chance of less than 2⁻⁹⁸ for
the 2¹⁶ numbers that `blurfit.contributor.noise` draws at once, so of less than 2⁻⁷⁴ for a million
million of them. That is negligible against the thousandth of δ that is kept back for discrete
noise.

How many rounds a draw takes depends on the noise and not on what it will be added to.
"""

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context
from fractions import Fraction
from functools import lru_cache

import numpy as np

from blurfit.data import BoolArray, IntArray, WordArray
from blurfit.randomness import bits

SLOTS = 2**16
DEVIATIONS = 6  # K/s at least: beyond it, the last slot
TAIL_CELLS = 64  # L/B
MARGIN = 2.0**-30  # what floats decide is clearer than this
TINY = 1e-300  # below it floats decide nothing


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells for one s: which slot is whose, and below which coin nothing needs a look."""

    ratio: float
    offset_bits: int
    peak: int  # τ
    owners: np.ndarray[tuple[int], np.dtype[np.uint16]]  # of slots: a cell, the tail or nobody
    counts: IntArray  # c_h; for the tail and nobody 1
    sure: WordArray  # a coin below this keeps whatever the cell holds

    @property
    def coin_bits(self) -> int:
        """How many bits of a word are left for the coin."""
        return 47 - self.offset_bits

    @property
    def tail(self) -> int:
        """H: the number of cells, and the owner of the tail's slot; one more is nobody."""
        return len(self.counts) - 2


@lru_cache(maxsize=256)
def cells_of(ratio: float) -> Cells:
    """Return the cells for s = `ratio`, between 2⁻¹⁰ and 2⁴⁵."""
    offset_bits = max(0, math.frexp(ratio)[1] - 6)
    width = ratio / 2.0**offset_bits  # s/B, without rounding
    edges = np.arange(math.ceil(DEVIATIONS * width) + 1) / width
    heights = np.exp(-(edges**2) / 2)
    least, most = 1, SLOTS - 1
    while least < most:  # the largest τ whose slots are there, the tail's included
        peak = (least + most + 1) // 2
        fits = _counts(peak, heights).sum() < SLOTS
        least, most = (peak, most) if fits else (least, peak - 1)
    counts = _counts(least, heights)
    owners = np.full(SLOTS, len(counts) + 1, dtype=np.uint16)
    owners[: counts.sum()] = np.repeat(np.arange(len(counts)), counts)
    owners[counts.sum()] = len(counts)
    lowest = least * heights[1:] / counts * (1 - MARGIN)
    sure = np.floor(lowest * 2.0 ** (47 - offset_bits)).astype(np.uint64)
    return Cells(
        ratio,
        offset_bits,
        least,
        owners,
        np.append(counts, (1, 1)),
        np.append(sure, np.zeros(2, np.uint64)),
    )


def _counts(peak: int, heights: np.ndarray[tuple[int], np.dtype[np.float64]]) -> IntArray:
    """Return c_h, rounded up from a little more than what a float says."""
    found = np.ceil(peak * heights[:-1] * (1 + MARGIN)).astype(np.int64)
    found[0] = peak  # exp(0) = 1 has no error
    return found


def draw(ratio: float, count: int) -> IntArray:
    """`count` independent whole numbers from the discrete Gaussian with s = `ratio`.

    >>> draw(1000.0, 5).shape
    (5,)
    """
    cells = cells_of(ratio)
    found, kept = _round(cells, bits.words(count))
    again = np.flatnonzero(~kept)
    while len(again):  # some 3 of 100 (more for s < 1)
        values, kept = _round(cells, bits.words(len(again)))
        found[again[kept]] = values[kept]
        again = again[~kept]
    return found


def _round(cells: Cells, words: WordArray) -> tuple[IntArray, BoolArray]:
    """One round for each word: what it proposes, and whether that is kept."""
    offset_bits, coin_bits = cells.offset_bits, cells.coin_bits
    owner = cells.owners.take((words >> np.uint64(48)).view(np.int64))
    size = owner.astype(np.int64)
    size <<= offset_bits
    size |= ((words >> np.uint64(coin_bits)) & np.uint64((1 << offset_bits) - 1)).view(np.int64)
    # The sign's bit is the 48th: −(0 or 1) leaves a number as it is, or makes m into −1 − m.
    size ^= -((words >> np.uint64(47)) & np.uint64(1)).view(np.int64)
    coin = words & np.uint64((1 << coin_bits) - 1)
    kept = coin < cells.sure.take(owner)
    unsure = np.flatnonzero(~kept)
    if len(unsure):
        _look(cells, owner, coin, size, kept, unsure)
    return size, kept


def _look(
    cells: Cells,
    owner: np.ndarray[tuple[int], np.dtype[np.uint16]],
    coin: WordArray,
    size: IntArray,
    kept: BoolArray,
    unsure: IntArray,
) -> None:
    """Decide the coins that are not below all that their cell may need, in place."""
    in_tail = owner[unsure] == cells.tail
    for place in unsure[in_tail]:
        size[place], kept[place] = _tail(cells, negative=bool(size[place] < 0))
    some = unsure[owner[unsure] < cells.tail]
    height = cells.peak / cells.counts.take(owner[some])
    height *= np.exp(-((size[some] / cells.ratio) ** 2) / 2)
    low = coin[some] * 2.0**-cells.coin_bits  # at most 47 bits: as exact as the next line's
    high = (coin[some] + np.uint64(1)) * 2.0**-cells.coin_bits
    kept[some] = high <= height * (1 - MARGIN)
    below = np.maximum(height * (1 + MARGIN), TINY)
    for place in some[~kept[some] & (low < below)]:
        factor = Fraction(cells.peak, int(cells.counts[owner[place]]))
        kept[place] = _below(
            factor, int(size[place]), cells.ratio, int(coin[place]), cells.coin_bits
        )


def _tail(cells: Cells, *, negative: bool) -> tuple[int, bool]:
    """Draw K steps or more, for a round that fell into the last slot, and whether they are kept."""
    block = 0
    while bits.whole(1):
        block += 1
    length = TAIL_CELLS << cells.offset_bits
    size = (cells.tail << cells.offset_bits) + block * length + bits.whole(length.bit_length() - 1)
    value = -1 - size if negative else size
    factor = Fraction(cells.peak * 2 ** (block + 1) * TAIL_CELLS)
    kept = _below(factor, value, cells.ratio, 0, 0)
    return (value, True) if kept else (0, False)


def _below(factor: Fraction, value: int, ratio: float, coin: int, known: int) -> bool:
    """Tell whether u < factor·exp(−value²/(2s²)), for u uniform in [coin, coin + 1)/2^known.

    Bits are drawn until the interval of u lies on one side of the bounds, 64 more of them and 20
    digits more of the bounds each time; the interval straddles them with probability 2⁻⁶⁴ each.
    Where a logarithm says that the product is below e^−known, it is below every u > 0 of so many
    bits, for that is at least 2^−known: no float errs by the difference.
    """
    exponent = -(Fraction(value) ** 2) / (2 * Fraction(ratio) ** 2)
    logarithm = float(exponent) + math.log(factor.numerator) - math.log(factor.denominator)
    digits = 20 + known // 3
    while True:
        coin, known, digits = coin << 64 | bits.whole(64), known + 64, digits + 20
        if coin and logarithm < -known:
            return False
        low, high = (factor * bound for bound in _exp(exponent, digits))
        if Fraction(coin + 1, 2**known) <= low:
            return True
        if Fraction(coin, 2**known) >= high:
            return False


def _exp(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Bounds on the exponential of a number that is not positive, `digits` digits apart or so.

    The exponent is enclosed in decimals of so many places that exp changes by a share of 10^−digits
    at most; exp is correctly rounded, so a unit in the last place to each side encloses it. Below
    10^−9988 the bounds are 0 and that: a coin would have to begin with 33,000 zeros to tell.
    """
    if exponent < -23000:  # exp(−23000) < 10^−9988
        return Fraction(0), Fraction(1, 10**9988)
    context = Context(prec=digits + 10, Emin=MIN_EMIN, Emax=MAX_EMAX)
    scaled = exponent * 10**digits
    low, high = (
        context.create_decimal(whole).scaleb(-digits, context)
        for whole in (math.floor(scaled), math.ceil(scaled))
    )
    return (
        Fraction(context.next_minus(context.exp(low))),
        min(Fraction(1), Fraction(context.next_plus(context.exp(high)))),
    )
