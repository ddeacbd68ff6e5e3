"""Exact noise: x + N(0, σ²) on the grid step·ℤ, from the operating system's bits.

Used for everything that is drawn: noise of contributors, fits and databases, masks, identifiers,
secrets and tokens. The last bits of a float x + σ·z reveal x, so values are rounded to the grid
first (`to_grid`), and the noise is a whole number k of steps with probability ∝ exp(−k²/(2s²)), s =
σ/step. The sum is exact. No function accepts a seed.

*Distribution* (`docs/theory/discrete-gaussian.md`). For 32 ≤ s/B < 64, B = 2ᵇ (B = 1 for s < 64), a
round reads a 64-bit word:

    slot (16 bits) → cell h      sign (1 bit)      offset (b bits)      coin (the other 47 − b bits)

    m = hB + offset,    k = m or −1 − m, by the sign: every whole number has one such name.

Cell h owns c_h = ⌈τ·exp(−(hB)²/(2s²))⌉ slots, and k is accepted with probability
τ/c_h·exp(−k²/(2s²)) ≤ 1. One slot is for the tail m ≥ HB ≥ 6s. So every k has one and the same
factor times exp(−k²/(2s²)): nothing is truncated, and no probability is rounded. Floats decide only
coins that are clear by 2⁻³⁰, where they err by 2⁻⁴⁰ at most; the rest, about one in 10⁷, is decided
by further bits against decimal bounds.

*Bits.* All of them are made of `octets`, the only code that reads the operating system's, and of
AES-256 keyed by them. If AES-256 is a pseudorandom permutation, a million million numbers are at a
distance of less than 2⁻⁷⁴ from chance. The number of rounds depends on the noise and not on the
value that it is added to.

*Noise of a database* (`docs/theory/database-noise.md`) is a discrete Gaussian of standard deviation
σ/√counts for each number. It is drawn once, in the transaction that fixes whose sums it is added
to, and kept: a retry adds the same noise.

Tests: `tests/randomness`, `tests/test_architecture.py`.
"""

import math
import os
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from blurfit import errors
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import Lot
from blurfit.agreement.numbers import LEAST_RATIO, MOST_RATIO
from blurfit.data import BoolArray, ByteArray, FloatArray, IntArray, WordArray
from blurfit.errors import InfeasibleError, InvalidValueError, positive
from blurfit.learning.sums import Screen, Totals, rows_that_add_exactly

# ---- the one source of bits


def octets(count: int) -> bytes:
    """Return so many bytes, straight from the operating system."""
    return os.urandom(count)


def words(count: int) -> WordArray:
    """Return words of 64 uniform bits: a key stream of AES-256, each call with a key of its own.

    The key has 256 bits of the operating system, so threads and forked processes never share a
    stream. If AES-256 is a pseudorandom permutation, the count/2 = b blocks are at a distance of at
    most b²/2¹²⁹ from chance (`docs/theory/discrete-gaussian.md`).
    """
    stream = Cipher(algorithms.AES256(octets(32)), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


def whole(bits: int) -> int:
    """Return a whole number of so many uniform bits."""
    return int.from_bytes(octets((bits + 7) // 8)) >> (-bits % 8)


def below(limit: int) -> int:
    """Return a uniform whole number from 0 to limit − 1; those that are larger are drawn again."""
    bits = (limit - 1).bit_length()
    while (found := whole(bits)) >= limit:
        pass
    return found


# ---- noise

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
    """Draw `count` independent whole numbers from the discrete Gaussian with s = `ratio`."""
    cells = cells_of(ratio)
    found, kept = _round(cells, words(count))
    again = np.flatnonzero(~kept)
    while len(again):  # some 3 of 100 (more for s < 1)
        values, kept = _round(cells, words(len(again)))
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
    while whole(1):
        block += 1
    length = TAIL_CELLS << cells.offset_bits
    size = (cells.tail << cells.offset_bits) + block * length + whole(length.bit_length() - 1)
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
        coin, known, digits = coin << 64 | whole(64), known + 64, digits + 20
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


# Whole numbers of steps add exactly in float64 while both stay below this. Messages never say
# which value does not: it may be somebody's, or a sum that is not blurred yet.
MOST_STEPS = 2.0**52
# Steps beyond these would meet the ends of float64's range.
LEAST_STEP, MOST_STEP = 2.0**-256, 2.0**256
# Values that are blurred at once, each with a key of its own: half a megabyte, for the cache.
CHUNK = 2**16


def add(
    values: npt.ArrayLike, scale: npt.ArrayLike, step: float, *, out: FloatArray | None = None
) -> FloatArray:
    """Return value + step·k, k a whole number with Pr[k] ∝ exp(−k²/(2s²)), s = scale/step: exactly
    so, as s is the rational number that the two floats are.

    The discrete Gaussian gives the same concentrated privacy as the continuous one of that scale
    (Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020); where
    that is μ-GDP, the discrete one's exact δ is larger by at most μ/(30s²).

    Args:
        values: multiples of `step`, as `to_grid` makes them, below 2⁵² steps.
        scale: σ, one number, or one for each place along the last axis.
        step: the grid's spacing, a power of two.
        out: where to write, a C-contiguous float64 array; it may be `values` itself.

    >>> blurred = add([0.25, -1.5], scale=3.0, step=0.25)
    >>> bool((blurred % 0.25 == 0).all())
    True
    """
    given = np.asarray(values, dtype=np.float64)
    ratios = _ratios(scale, step, given.shape)
    result = np.empty(given.shape) if out is None else out
    if result.shape != given.shape or result.dtype != np.float64 or not result.flags.c_contiguous:
        raise InvalidValueError(
            f"Expected out to be a C-contiguous float64 array of shape {given.shape}, but it is "
            f"{result.dtype} of shape {result.shape}."
        )
    width = max(1, ratios.size)
    rows, blurred_rows = given.reshape(-1, width), result.reshape(-1, width)
    groups = [
        (ratio, np.flatnonzero(ratios.ravel() == ratio)) for ratio in np.unique(ratios).tolist()
    ]
    at_once = max(1, CHUNK // width)
    for start in range(0, len(rows), at_once):
        blurred = _in_steps(rows[start : start + at_once], step)
        for ratio, places in groups:
            drawn = draw(ratio, len(blurred) * len(places)).reshape(len(blurred), -1)
            if len(groups) == 1:
                blurred += drawn
            else:
                blurred[:, places] += drawn
        blurred += 0.0  # −0.0 becomes 0.0: the sign of a zero would say more than the grid does
        np.multiply(blurred, step, out=blurred_rows[start : start + at_once])
    return result


def to_grid(values: npt.ArrayLike, step: float, *, toward_zero: bool) -> FloatArray:
    """Round to multiples of `step`, a power of two: exact, because dividing by it is.

    Towards zero no |value| ever grows, so neither does a norm, and what is proved from a bound on
    it stays proved. Otherwise to the nearest multiple (even ones for ties).

    >>> [to_grid([0.9, -0.9, 0.3], 0.5, toward_zero=one).tolist() for one in (True, False)]
    [[0.5, -0.5, 0.0], [1.0, -1.0, 0.5]]
    """
    steps = _steps(np.asarray(values, dtype=np.float64), step)
    whole = np.trunc(steps) if toward_zero else np.rint(steps)
    return np.asarray((whole + 0.0) * step)


def to_grid_at_random(values: npt.ArrayLike, step: float) -> FloatArray:
    """Return ⌊value/step + u⌋·step, u uniform in [0, 1): a multiple of `step`, without bias.

    Given u, which does not depend on the value, two values end up at most one step further apart
    than they are. u is compared with the distance to the next step, because the sum could be
    rounded up.
    """
    steps = _steps(np.asarray(values, dtype=np.float64), step)
    drawn = (words(steps.size) >> np.uint64(11)).astype(np.float64).reshape(steps.shape)
    below = np.floor(steps)
    return np.asarray((below + (drawn * 2.0**-53 >= 1 - (steps - below)) + 0.0) * step)


def dither(values: npt.ArrayLike, step: float, fine: float) -> FloatArray:
    """Fill a grid's gaps: value + fine·k, k uniform in [−step/(2·fine), step/(2·fine)).

    Each value is a multiple of `step` and becomes a multiple of `fine`, both powers of two: post-
    processing, which costs no privacy. Without bias, because there are 2ᵏ choices.
    """
    given = np.asarray(values, dtype=np.float64)
    _in_steps(given, step)
    halvings = round(math.log2(step / fine))
    if halvings == 0:
        return given
    drawn = words(given.size) >> np.uint64(64 - halvings)
    choices = drawn.astype(np.float64).reshape(given.shape)
    return _in_steps(given, fine) * fine + (choices - 2.0 ** (halvings - 1)) * fine


def new_identifiers(count: int) -> npt.NDArray[np.uint8]:
    """Draw an identifier for each of so many submissions: (count, 16) bytes."""
    errors.whole(count=count)
    return np.frombuffer(octets(16 * count), dtype=np.uint8).reshape(count, 16)


def new_secret() -> str:
    """Draw 256 bits, from which a receipt's identifiers follow (`blurfit.messages.submissions`)."""
    return octets(32).hex()


def new_groups(lot: Lot, count: int, first: int = 1) -> ByteArray:
    """Toss a coin for each of so many people: which wave of a plan, from wave `first` on.

    In proportion to how many people each wave waits for, in a random order (`Lot.shares`).
    """
    offset = whole(128) * lot.in_all(first) >> 128
    shares = lot.shares(count, offset, first)
    groups = np.repeat(np.arange(1, len(shares) + 1, dtype=np.uint8), shares)
    return groups[np.argsort(words(count))]


def _in_steps(values: npt.ArrayLike, step: float) -> FloatArray:
    """Return value/step, whole numbers below 2⁵²; refuse anything else."""
    given = np.asarray(values, dtype=np.float64)
    steps = _steps(given, step)
    whole = np.rint(steps)
    if not np.array_equal(whole * step, given):
        raise InvalidValueError(
            f"Expected values to be multiples of step={step!r}, and some are not; round them with "
            "to_grid() first."
        )
    return np.asarray(whole)


def _steps(values: FloatArray, step: float) -> FloatArray:
    positive(step=step)
    if math.frexp(step)[0] != 0.5 or not LEAST_STEP <= step <= MOST_STEP:
        raise InvalidValueError(
            f"Expected step={step!r} to be a power of two between 2**-256 and 2**256, such as "
            "2.0**-20: only then is rounding to its multiples exact."
        )
    with np.errstate(over="ignore"):  # an overflow is above the limit, and is refused below
        steps = np.asarray(values / step)
    if not (np.abs(steps) < MOST_STEPS).all():  # so neither is NaN
        raise InvalidValueError(
            f"Expected values to be finite and below 2**52 steps of step={step!r}, and some are "
            "not; take a coarser step."
        )
    return steps


def _ratios(scale: npt.ArrayLike, step: float, shape: tuple[int, ...]) -> FloatArray:
    """Return s = scale/step, exactly: one number, or one for each place along the last axis."""
    _steps(np.zeros(1), step)
    scales = np.asarray(scale)
    if scales.ndim and scales.shape != shape[-1:]:
        raise InvalidValueError(
            f"Expected scale.shape={scales.shape} to be () or {shape[-1:]}, one for each place "
            f"along the last axis of values.shape={shape}."
        )
    for one in set(scales.ravel().tolist()):  # a table has many places and few different scales
        positive(scale=one)
        if not LEAST_RATIO * step <= one <= MOST_RATIO * step:
            raise InvalidValueError(
                f"Expected scale={one!r} to be between 2**-10 and 2**45 times step={step!r};"
                " take a step of about scale/2**16."
            )
    return np.asarray(scales.astype(np.float64) / step)


def database_steps(agreement: Agreement, draws: int = 1) -> IntArray:
    """Draw D in steps of the grid, fresh at each call: (draws, width)."""
    found = np.empty((draws, agreement.width), dtype=np.int64)
    ratios = agreement.database_ratios
    for ratio in np.unique(ratios).tolist():
        places = np.flatnonzero(ratios == ratio)
        found[:, places] = draw(ratio, draws * len(places)).reshape(draws, -1)
    return found


def database_words(agreement: Agreement) -> WordArray:
    """Draw D mod 2⁶⁴, as sums of shares are; zeros where the agreement has no such noise."""
    if not agreement.database_noise:
        return np.zeros(agreement.width, dtype=np.uint64)
    return np.asarray(database_steps(agreement)[0].view(np.uint64))


def with_database_noise(
    agreement: Agreement, totals: Totals, drawn: WordArray | None = None
) -> Totals:
    """Return the totals of whole submissions with D in them, `drawn` before by `database_words` or
    now; as they are where the agreement has none.
    """
    if not agreement.database_noise:
        return totals
    if totals.draws:
        raise InvalidValueError("Expected totals without the database's noise: it is added once.")
    most = rows_that_add_exactly(Screen.of(agreement).largest_steps())
    if totals.count > most:
        raise InfeasibleError(
            f"Expected count={totals.count} to be at most {most}, so that sums are exact before "
            "the database's noise is added: collect the rest under another agreement."
        )
    given = database_words(agreement) if drawn is None else drawn
    noise = given.view(np.int64) * agreement.step  # exact: the step is a power of two
    return replace(totals, sums=totals.sums + noise, draws=1)
