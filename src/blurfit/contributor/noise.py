"""The only source of real randomness: x + N(0, σ²) on the grid step·ℤ, from the operating system.

Textbook noise is a real number, a float is not: the last bits of x + σ·z tell which x was blurred.
So everything here happens in whole steps. Values are rounded to the grid before they are blurred
(`to_grid`), the noise is a whole number of steps, and the sum is exact.

`add` draws k steps with probability ∝ exp(−k²/(2s²)), s = scale/step, exactly, for one record as
for a table.

The sum of n such k is as good as one discrete Gaussian of variance ns²: the logarithms of their
probabilities differ by less than 10n·exp(−π²s²) (Kairouz, Liu and Steinke, 2021), which is
negligible from s = 3 on.

Nothing here takes a seed, on purpose. Reproducible noise protects nobody; it lives in
`blurfit.simulation`.
"""

import math

import numpy as np
import numpy.typing as npt

from blurfit.agreement.numbers import LEAST_RATIO, MOST_RATIO
from blurfit.agreement.waves import Lot
from blurfit.data import ByteArray, FloatArray
from blurfit.errors import InvalidValueError, positive, whole
from blurfit.randomness import bits
from blurfit.randomness.discrete_gaussian import draw

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
    """Return value + step·k, k a whole number with Pr[k] ∝ exp(−k²/(2s²)), s = scale/step.

    Exactly so: s is the rational number that the two floats are, and every random choice has the
    probability that it should have (`blurfit.randomness.discrete_gaussian`, with the proof). A
    person's record and a table of a million draw from this one law.

    The discrete Gaussian gives the same concentrated privacy as the continuous one of that scale
    (Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020); where
    that is μ-GDP, the discrete one's exact δ is larger by at most μ/(30s²).

    Args:
        values: multiples of `step`, as `to_grid` makes them, below 2⁵² steps.
        scale: σ, one number, or one for each place along the last axis.
        step: the grid's spacing, a power of two.
        out: where to write, a C-contiguous float64 array; `values` itself saves the memory of a
            second table.

    >>> blurred = add([0.25, -1.5], scale=3.0, step=0.25)
    >>> bool((blurred % 0.25 == 0).all())
    True
    """
    given = np.asarray(values, dtype=np.float64)
    ratios = _ratios(scale, step, given.shape)
    result = _room_for(given, out)
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

    >>> to_grid([0.9, -0.9, 0.3], 0.5, toward_zero=True).tolist()
    [0.5, -0.5, 0.0]
    >>> to_grid([0.9, -0.9, 0.3], 0.5, toward_zero=False).tolist()
    [1.0, -1.0, 0.5]
    """
    steps = _steps(np.asarray(values, dtype=np.float64), step)
    whole = np.trunc(steps) if toward_zero else np.rint(steps)
    return np.asarray((whole + 0.0) * step)


def to_grid_at_random(values: npt.ArrayLike, step: float) -> FloatArray:
    """Return ⌊value/step + u⌋·step, u uniform in [0, 1): a multiple of `step`, without bias.

    u does not depend on the value, so given u this rounds as `to_grid` does, with other places at
    which it jumps: two values end up at most one step further apart than they are.

    >>> set(to_grid_at_random([0.75] * 1000, 0.5).tolist()) == {0.5, 1.0}
    True
    """
    steps = _steps(np.asarray(values, dtype=np.float64), step)
    drawn = (bits.words(steps.size) >> np.uint64(11)).astype(np.float64).reshape(steps.shape)
    return np.asarray((np.floor(steps + drawn * 2.0**-53) + 0.0) * step)


def dither(values: npt.ArrayLike, step: float, fine: float) -> FloatArray:
    """Fill a grid's gaps: value + fine·k, k uniform in [−step/(2·fine), step/(2·fine)).

    Each value is a multiple of `step` and becomes a multiple of `fine`, both powers of two. It does
    not depend on anything but the value, so it is post-processing and costs no privacy. Without
    bias, because there are 2ᵏ choices.

    >>> spread = dither(np.zeros(1000), step=1.0, fine=2.0**-20)
    >>> bool((np.abs(spread) <= 0.5).all() and len(set(spread.tolist())) > 900)
    True
    """
    given = np.asarray(values, dtype=np.float64)
    _in_steps(given, step)
    halvings = round(math.log2(step / fine))
    if halvings == 0:
        return given
    drawn = bits.words(given.size) >> np.uint64(64 - halvings)
    choices = drawn.astype(np.float64).reshape(given.shape)
    return _in_steps(given, fine) * fine + (choices - 2.0 ** (halvings - 1)) * fine


def new_identifiers(count: int) -> npt.NDArray[np.uint8]:
    """Draw an identifier for each of so many submissions: (count, 16) bytes.

    >>> new_identifiers(3).shape
    (3, 16)
    """
    whole(count=count)
    return np.frombuffer(bits.octets(16 * count), dtype=np.uint8).reshape(count, 16)


def new_secret() -> str:
    """Draw 256 bits, from which a receipt's identifiers follow (`blurfit.messages.signing`).

    >>> len(new_secret())
    64
    """
    return bits.octets(32).hex()


def new_groups(lot: Lot, count: int, first: int = 1) -> ByteArray:
    """Toss a coin for each of so many people: which wave of a plan, from wave `first` on.

    In proportion to how many people each wave waits for, in a random order (`Lot.shares`).
    """
    offset = bits.whole(128) * lot.in_all(first) >> 128
    shares = lot.shares(count, offset, first)
    groups = np.repeat(np.arange(1, len(shares) + 1, dtype=np.uint8), shares)
    return groups[np.argsort(bits.words(count))]


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


def _room_for(values: FloatArray, out: FloatArray | None) -> FloatArray:
    if out is None:
        return np.empty(values.shape)
    if out.shape != values.shape or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise InvalidValueError(
            f"Expected out to be a C-contiguous float64 array of shape {values.shape}, but it is "
            f"{out.dtype} of shape {out.shape}."
        )
    return out
