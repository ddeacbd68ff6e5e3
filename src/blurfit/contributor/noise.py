"""The only source of real randomness: x + N(0, σ²) on the grid step·ℤ, from the operating system.

Textbook noise is a real number, a float is not: the last bits of x + σ·z tell which x was blurred.
So everything here happens in whole steps. Values are rounded to the grid before they are blurred
(`to_grid`), the noise is a whole number of steps, and the sum is exact.

| function | noise in steps, s = scale/step | for |
| --- | --- | --- |
| `exact` | k with probability ∝ exp(−k²/(2s²)), exactly | a person's own record |
| `bulk` | round(s·z) with z a float64 normal from ChaCha20 | a table that one party holds |

The sum of n such k is as good as one discrete Gaussian of variance ns²: the logarithms of their
probabilities differ by less than 10n·exp(−π²s²) (Kairouz, Liu and Steinke, 2021), which is nothing
from s = 3 on.

Nothing here takes a seed, on purpose. Reproducible noise protects nobody; it lives in
`blurfit.simulation`.
"""

import math
import secrets

import numpy as np
import numpy.typing as npt
from randomgen import ChaCha  # type: ignore[import-untyped]

from blurfit import validate
from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError

# Whole numbers of steps add exactly in float64 while both stay below this.
MOST_STEPS = 2.0**52
# s = scale/step. The noise stays below MOST_STEPS as long as it stays below 128 deviations: it
# exceeds that with probability e^{-8192}. Noise far finer than the grid would hardly ever show.
LEAST_RATIO, MOST_RATIO = 2.0**-10, 2.0**45
# Steps beyond these would meet the ends of float64's range.
LEAST_STEP, MOST_STEP = 2.0**-256, 2.0**256
# Values that `bulk` blurs at once: 256 kB, which stays in the cache.
CHUNK = 2**15


def exact(values: npt.ArrayLike, scale: npt.ArrayLike, step: float) -> FloatArray:
    """value + step·k, where k is a whole number with probability ∝ exp(−k²/(2s²)), s = scale/step.

    Exactly so: s is the rational number that the two floats are, the sampling is in Python's
    integers, and each random choice is `secrets.randbelow`. The discrete Gaussian gives the same
    concentrated privacy as the continuous one of that scale (Canonne, Kamath and Steinke, "The
    Discrete Gaussian for Differential Privacy", 2020); where that is μ-GDP, the discrete one's
    exact δ is larger by at most μ/(30s²).

    Some tens of thousands of draws a second: enough for a person, slow for a table. How long a draw
    takes depends on what is drawn, so do not let a stranger time it.

    Args:
        values: multiples of `step`, as `to_grid` makes them, below 2⁵² steps.
        scale: σ, one number, or one for each place along the last axis.
        step: the grid's spacing, a power of two.

    >>> blurred = exact([0.25, -1.5], scale=3.0, step=0.25)
    >>> bool((blurred % 0.25 == 0).all())
    True
    """
    whole = _in_steps(values, step)
    ratios = np.broadcast_to(_ratios(scale, step, whole.shape), whole.shape)
    blurred = [
        int(steps) + _discrete_gaussian(*ratio.as_integer_ratio())
        for steps, ratio in zip(whole.flat, ratios.flat, strict=True)
    ]
    return np.asarray(np.array(blurred, dtype=np.float64).reshape(whole.shape) * step)


def bulk(
    values: npt.ArrayLike, scale: npt.ArrayLike, step: float, *, out: FloatArray | None = None
) -> FloatArray:
    """value + step·round(s·z), s = scale/step, where z is a float64 normal from ChaCha20.

    Each call keys a generator of its own with 256 bits of the operating system, so threads and
    forked processes never share a stream. For one trusted party that blurs many records, such as a
    bulk upload or a simulation of contributors; a contributor's own device uses `exact`.

    **What it costs in δ.** Were z normal, rounding would be post-processing and cost nothing. But
    NumPy's ziggurat draws z from 256 layers of 2⁵² equidistant points, at most 3.92·2⁻⁵² apart.
    A step is 1/s wide on that axis, so it holds some 2⁵⁰/s points of a layer: its two ends and
    floating-point rounding make it three too few at worst. Hence the law P̃ of a draw is at least
    (1 − η)·P for the ideal law P and η = s·2⁻⁴⁸ (for s ≥ 1): **each draw is an ideal one with
    probability 1 − η**, and otherwise it is something that does not depend on the data. Only
    beyond 3.65 deviations the points lie wider, and beyond 13.7 there are none: what P̃ lacks
    there sums to a share of at most τ = s·2⁻⁶² of all draws. So, for submissions of m numbers:

    * one submission that promised (ε, δ) keeps (ε, δ + mη + (1 + e^ε)mτ);
    * a model from N submissions keeps what it would with t fewer in its quorum, for δ greater by mη
      + (1 + e^ε)Nmτ + Pr[Binomial(N, mη) > t]: what the t unlucky ones drew is independent of
      the data, and the theory lets such records be anything.

    At s = 2¹⁶, m = 119 and N = 2²⁰ these are mη = 3·10⁻⁸, Nmτ = 2·10⁻⁶, and t = 6 is exceeded with
    probability 4·10⁻¹⁵. All of it grows with s, so a grid finer than needed is worse, not better.
    These are worst cases, reasoned rather than certified; they hold against those who cannot tell
    ChaCha20 from chance. `exact` needs neither clause.

    Args:
        values: multiples of `step`, as `to_grid` makes them, below 2⁵² steps.
        scale: σ, one number, or one for each place along the last axis.
        step: the grid's spacing, a power of two.
        out: where to write, a C-contiguous float64 array; `values` itself saves the memory of a
            second table.

    >>> table = np.zeros((3, 2))
    >>> bulk(table, scale=[1.0, 0.5], step=2.0**-16, out=table) is table
    True
    """
    given = np.asarray(values, dtype=np.float64)
    ratios = _ratios(scale, step, given.shape)
    result = _room_for(given, out)
    width = max(1, ratios.size)
    rows, blurred_rows = given.reshape(-1, width), result.reshape(-1, width)
    at_once = max(1, CHUNK // width)
    scratch = np.empty((at_once, width))
    generator = np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))
    for start in range(0, len(rows), at_once):
        whole = _in_steps(rows[start : start + at_once], step)
        noise = scratch[: len(whole)]
        generator.standard_normal(out=noise)
        noise *= ratios
        np.rint(noise, out=noise)
        noise += whole
        noise += 0.0  # −0.0 becomes 0.0: the sign of a zero would say more than the grid does
        np.multiply(noise, step, out=blurred_rows[start : start + at_once])
    return result


def to_grid(values: npt.ArrayLike, step: float, *, toward_zero: bool) -> FloatArray:
    """Each value as a multiple of `step`, a power of two: exact, because dividing by it is.

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


def dither(values: npt.ArrayLike, step: float, fine: float) -> FloatArray:
    """Value + fine·k, k uniform in [−step/(2·fine), step/(2·fine)): the gaps of a grid, filled.

    Each value is a multiple of `step` and becomes a multiple of `fine`, both powers of two. It does
    not depend on anything but the value, so it is post-processing and costs no privacy. Straight
    from the operating system, without bias, because there are 2ᵏ choices.

    >>> spread = dither(np.zeros(1000), step=1.0, fine=2.0**-20)
    >>> bool((np.abs(spread) <= 0.5).all() and len(set(spread.tolist())) > 900)
    True
    """
    given = np.asarray(values, dtype=np.float64)
    _in_steps(given, step)
    bits = round(math.log2(step / fine))
    if bits == 0:
        return given
    drawn = np.frombuffer(secrets.token_bytes(8 * given.size), dtype=np.uint64)
    choices = (drawn >> np.uint64(64 - bits)).astype(np.float64).reshape(given.shape)
    return _in_steps(given, fine) * fine + (choices - 2.0 ** (bits - 1)) * fine


def new_identifier() -> str:
    """A submission's name: 128 random bits as 32 hexadecimal digits, which say nothing of anyone.

    >>> len(new_identifier())
    32
    """
    return secrets.token_hex(16)


def new_identifiers(count: int) -> npt.NDArray[np.uint8]:
    """As many names as there are submissions in a table: (count, 16) bytes.

    >>> new_identifiers(3).shape
    (3, 16)
    """
    validate.whole(count=count)
    return np.frombuffer(secrets.token_bytes(16 * count), dtype=np.uint8).reshape(count, 16)


def _discrete_gaussian(a: int, b: int) -> int:
    """k with probability ∝ exp(−k²/(2s²)), s = a/b (Canonne, Kamath and Steinke, Algorithm 3).

    Draw k with probability ∝ exp(−|k|/t), t = ⌊s⌋ + 1, and keep it with probability
    exp(−(|k| − s²/t)²/(2s²)), which is exp(−(|k|tb² − a²)²/(2a²b²t²)). The product of the two
    is ∝ exp(−k²/(2s²)).
    """
    t = a // b + 1
    centre, unit, denominator = a * a, t * b * b, 2 * (a * b * t) ** 2
    while True:
        k = _discrete_laplace(t)
        if _happens((abs(k) * unit - centre) ** 2, denominator):
            return k


def _discrete_laplace(t: int) -> int:
    """k with probability ∝ exp(−|k|/t) (Algorithm 2): |k| = rest + t·quotient, then a sign."""
    while True:
        rest = secrets.randbelow(t)
        if not _happens_below_one(rest, t):
            continue
        quotient = 0
        while _happens_below_one(1, 1):
            quotient += 1
        size = rest + t * quotient
        negative = secrets.randbelow(2)
        if not negative:
            return size
        if size:  # zero must not be counted twice
            return -size


def _happens(a: int, b: int) -> bool:
    """True with probability exp(−a/b) (Algorithm 1): all of ⌊a/b⌋ times exp(−1), then the rest."""
    whole, rest = divmod(a, b)
    return all(_happens_below_one(1, 1) for _ in range(whole)) and _happens_below_one(rest, b)


def _happens_below_one(a: int, b: int) -> bool:
    """True with probability exp(−x), x = a/b ≤ 1 (Algorithm 1): the k-th trial succeeds with
    probability x/k, and the first failure is the k-th with probability x^{k−1}/(k−1)! − x^k/k!;
    over odd k this sums to exp(−x).
    """
    k = 1
    while secrets.randbelow(b * k) < a:
        k += 1
    return k % 2 == 1


def _in_steps(values: npt.ArrayLike, step: float) -> FloatArray:
    """value/step, whole numbers below 2⁵²; anything else is refused."""
    given = np.asarray(values, dtype=np.float64)
    steps = _steps(given, step)
    whole = np.rint(steps)
    if not np.array_equal(whole * step, given):
        culprit = float(given[whole * step != given][0])
        raise InvalidValueError(
            f"Expected values to be multiples of step={step!r}, but they contain {culprit!r}; "
            "round them with to_grid() first."
        )
    return np.asarray(whole)


def _steps(values: FloatArray, step: float) -> FloatArray:
    validate.positive(step=step)
    if math.frexp(step)[0] != 0.5 or not LEAST_STEP <= step <= MOST_STEP:
        raise InvalidValueError(
            f"Expected step={step!r} to be a power of two between 2**-256 and 2**256, such as "
            "2.0**-20: only then is rounding to its multiples exact."
        )
    with np.errstate(over="ignore"):  # an overflow is above the limit, and is refused below
        steps = np.asarray(values / step)
    if not (np.abs(steps) < MOST_STEPS).all():  # so neither is NaN
        culprit = float(values[~(np.abs(steps) < MOST_STEPS)][0])
        raise InvalidValueError(
            f"Expected values to be finite and below 2**52 steps of step={step!r}, but they "
            f"contain {culprit!r}; take a coarser step."
        )
    return steps


def _ratios(scale: npt.ArrayLike, step: float, shape: tuple[int, ...]) -> FloatArray:
    """s = scale/step, without rounding: one number, or one for each place along the last axis."""
    _steps(np.zeros(1), step)
    scales = np.asarray(scale)
    if scales.ndim and scales.shape != shape[-1:]:
        raise InvalidValueError(
            f"Expected scale.shape={scales.shape} to be () or {shape[-1:]}, one for each place "
            f"along the last axis of values.shape={shape}."
        )
    for one in set(scales.ravel().tolist()):  # a table has many places and few different scales
        validate.positive(scale=one)
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
