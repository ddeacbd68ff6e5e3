"""Σzzᵀ and Σzy of a whole table in one pass, at the speed of BLAS.

An estimator needs of its rows only their sums. So each block of rows is centred by the public
bounds, cut to [−1, 1] and multiplied while it is in the processor's cache, and no encoded table is
ever held. The same numbers as `Schema.encode` gives, up to rounding, at a fraction of the time.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from blurfit.schema.columns import Numeric

FloatArray = npt.NDArray[np.float64]
Order = Literal["C", "F"]

# Numbers in a block: 512 kB, of which two more are kept to centre and to scale by.
NUMBERS_AT_ONCE = 2**16
LEAST_ROWS = 256  # enough for BLAS where rows are long
# Blocks that one thread takes at once. Rows of more columns are left to BLAS and its own threads.
BLOCKS_AT_ONCE = 16
MOST_COLUMNS = 64


class EncodedSums(NamedTuple):
    """Σzzᵀ, (d, d), and Σzy, (d, k), where the intercept's z = 1 is last if there is one."""

    gram: FloatArray
    moments: FloatArray


def encoded_sums(
    values: npt.NDArray[Any], targets: FloatArray, columns: Sequence[Numeric], *, intercept: bool
) -> EncodedSums:
    """The sums over all rows of zzᵀ and of zy for each column y of `targets`.

    z = (v − centre)·2/width of each value v, cut to [−1, 1]. It is cut last, so that |z| ≤ 1 holds
    to the last bit, and v − centre comes first, so that narrow bounds far from zero lose no digits.

    Args:
        values: (n, d) finite numbers of any real type, best in rows or in columns without gaps.
        targets: (n, k), already encoded.
        columns: the bounds of each column of `values`.
        intercept: whether to add a z that is always 1.

    >>> age = Numeric("age", 0, 100)
    >>> sums = encoded_sums(np.array([[25], [130]]), np.array([[1.0], [0.5]]), [age],
    ...                     intercept=True)
    >>> sums.gram.tolist(), sums.moments.tolist()
    ([[1.25, 0.5], [0.5, 2.0]], [[0.0], [1.5]])
    """
    n, d = values.shape
    at_once = min(n, max(LEAST_ROWS, NUMBERS_AT_ONCE // d))
    in_columns = values.flags.f_contiguous and not values.flags.c_contiguous
    order: Order = "F" if in_columns else "C"
    # As large as a block each: NumPy is fast where one loop runs through all three.
    centre = _repeated([column.centre for column in columns], at_once, order)
    slope = _repeated([2 / column.width for column in columns], at_once, order)
    stride = BLOCKS_AT_ONCE * at_once if d <= MOST_COLUMNS else n
    parts = [slice(start, start + stride) for start in range(0, n, stride)]

    def sums_of(part: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        return _sums(values[part], targets[part], centre, slope, order)

    # How the rows are parted depends on their number alone: so does the rounding of the sums.
    with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as pool:
        grams, totals, moments = zip(*pool.map(sums_of, parts), strict=True)
    gram, total, moment = sum(grams), sum(totals), sum(moments)
    if not intercept:
        return EncodedSums(gram, moment)
    return EncodedSums(
        np.block([[gram, total[:, None]], [total, np.float64(n)]]),
        np.vstack([moment, targets.sum(axis=0)]),
    )


def _sums(
    values: npt.NDArray[Any],
    targets: FloatArray,
    centre: FloatArray,
    slope: FloatArray,
    order: Order,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Σzzᵀ, Σz and Σzy, block by block, with `np.dot`: other threads run meanwhile, unlike `@`."""
    at_once, d = centre.shape
    z, ones = np.empty((at_once, d), order=order), np.ones(at_once)
    gram, total, moments = np.zeros((d, d)), np.zeros(d), np.zeros((d, targets.shape[1]))
    for start in range(0, len(values), at_once):
        rows = values[start : start + at_once]
        count = len(rows)
        block = z[:count]
        with np.errstate(over="ignore"):  # an infinity is cut to the bound like all that is outside
            np.subtract(rows, centre[:count], out=block)
            np.multiply(block, slope[:count], out=block)
        np.clip(block, -1.0, 1.0, out=block)
        gram += np.dot(block.T, block)
        total += np.dot(ones[:count], block)
        moments += np.dot(block.T, targets[start : start + at_once])
    return gram, total, moments


def _repeated(row: Sequence[float], rows: int, order: Order) -> FloatArray:
    return np.array(np.broadcast_to(row, (rows, len(row))), order=order)
