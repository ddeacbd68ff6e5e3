"""Σvvᵀ of a whole table in one pass, at the speed of BLAS.

An estimator needs of its rows only their sums. So each block of rows is centred by the public
bounds, cut to [−1, 1] and multiplied while it is in the processor's cache, and no encoded table is
ever held. These are the numbers that `blurfit.schema.vectors.values` gives, up to rounding, at a
fraction of the time.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple

import numpy as np

from blurfit.arrays import AnyArray, FloatArray, IntArray
from blurfit.schema.columns import Binary, Categorical, Feature

Order = Literal["C", "F"]

# Numbers in a block: 512 kB, of which two more are kept to centre and to scale by.
NUMBERS_AT_ONCE = 2**16
LEAST_ROWS = 256  # enough for BLAS where rows are long
# Blocks that one thread takes at once. Rows of more columns are left to BLAS and its own threads.
BLOCKS_AT_ONCE = 16
MOST_COLUMNS = 64


class JointTotals(NamedTuple):
    """Sums over all rows: of vvᵀ (k, k), of v (k,), of v·t (k, m), of ttᵀ (m, m) and of t (m,)."""

    gram: FloatArray
    total: FloatArray
    cross: FloatArray
    squares: FloatArray
    targets: FloatArray

    def matrix(self, count: int) -> FloatArray:
        """Σ(1, v, t)(1, v, t)ᵀ."""
        return np.block(
            [
                [np.array([[float(count)]]), self.total[None], self.targets[None]],
                [self.total[:, None], self.gram, self.cross],
                [self.targets[:, None], self.cross.T, self.squares],
            ]
        )


def joint_totals(values: AnyArray, targets: FloatArray, columns: Sequence[Feature]) -> JointTotals:
    """The sums over all rows of the products of their columns v and targets t.

    v = (x − centre)·2/width of each value x, cut to [−1, 1]. It is cut last, so that |v| ≤ 1 holds
    to the last bit, and x − centre comes first, so that narrow bounds far from zero lose no digits.
    A categorical has a column for each level, with one 1 in each row. Where a column need not be
    said, all are encoded as in `blurfit.schema.columns`, block by block.

    Args:
        values: (n, d) finite numbers of any real type, best in rows or in columns without gaps; of
            a categorical, the place of its level.
        targets: (n, m), already encoded.
        columns: what each column of `values` is.

    >>> from blurfit import Numeric
    >>> found = joint_totals(np.array([[25], [130]]), np.array([[1.0], [0.5]]),
    ...                      [Numeric("age", 0, 100)])
    >>> found.matrix(2).tolist()
    [[2.0, 0.5, 1.5], [0.5, 1.25, 0.0], [1.5, 0.0, 1.25]]
    """
    if any(column.optional for column in columns):
        return _totals_with_unsaid(values, targets, columns)
    n, d = values.shape
    levels = _Levels.of(columns)
    at_once = min(n, max(LEAST_ROWS, NUMBERS_AT_ONCE // (d + levels.width)))
    in_columns = values.flags.f_contiguous and not values.flags.c_contiguous
    order: Order = "F" if in_columns else "C"
    # As large as a block each: NumPy is fast where one loop runs through all three.
    numbers = [column for column in columns if not isinstance(column, Categorical)]
    centre = _repeated([_centre(column) for column in numbers], at_once, order)
    slope = _repeated([_slope(column) for column in numbers], at_once, order)
    stride = BLOCKS_AT_ONCE * at_once if d <= MOST_COLUMNS else n
    parts = [slice(start, start + stride) for start in range(0, n, stride)]

    def sums_of(part: slice) -> JointTotals:
        return _sums(values[part], targets[part], centre, slope, levels, order)

    # How the rows are parted depends on their number alone: so does the rounding of the sums.
    if len(parts) == 1:  # no thread is started for a few rows
        found = [sums_of(parts[0])]
    else:
        with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as pool:
            found = list(pool.map(sums_of, parts))
    grams, totals, crosses, squares, sums = zip(*found, strict=True)
    back = levels.order
    gram, total, cross = sum(grams), sum(totals), sum(crosses)
    return JointTotals(gram[np.ix_(back, back)], total[back], cross[back], sum(squares), sum(sums))


def _totals_with_unsaid(
    values: AnyArray, targets: FloatArray, columns: Sequence[Feature]
) -> JointTotals:
    k, m = sum(len(column.columns) for column in columns), targets.shape[1]
    gram, total, cross = np.zeros((k, k)), np.zeros(k), np.zeros((k, m))
    at_once = max(LEAST_ROWS, NUMBERS_AT_ONCE // k)
    for start in range(0, len(values), at_once):
        rows = values[start : start + at_once]
        block = np.column_stack([encoded(rows[:, j], one) for j, one in enumerate(columns)])
        gram += np.dot(block.T, block)
        total += block.sum(axis=0)
        cross += np.dot(block.T, targets[start : start + at_once])
    return JointTotals(gram, total, cross, np.dot(targets.T, targets), targets.sum(axis=0))


def encoded(values: AnyArray, column: Feature) -> FloatArray:
    """A column of a table, as `read_rows` makes it, as columns v: of a categorical, levels."""
    if isinstance(column, Categorical):
        return np.eye(len(column.columns))[values.astype(np.intp)]
    return np.asarray(column.scale(values)).reshape(len(values), -1)


class _Levels(NamedTuple):
    """Numbers come first in a block, then levels: which columns are which, and the way back."""

    numbers: IntArray  # places of the columns of numbers
    words: IntArray  # and of categoricals
    starts: IntArray  # of each categorical's levels, within the block
    width: int  # how many levels there are in all
    order: IntArray  # from a block's columns to those of the schema

    @classmethod
    def of(cls, columns: Sequence[Feature]) -> "_Levels":
        is_word = np.array([isinstance(column, Categorical) for column in columns])
        numbers, words = np.flatnonzero(~is_word), np.flatnonzero(is_word)
        sizes = [len(one.columns) for one in columns if isinstance(one, Categorical)]
        starts = len(numbers) + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        order: list[int] = []
        number, word = iter(range(len(numbers))), iter(range(len(words)))
        for one in is_word:
            if one:
                place = next(word)
                order += range(starts[place], starts[place + 1])
            else:
                order.append(next(number))
        return cls(numbers, words, starts[:-1], int(sum(sizes)), np.array(order, dtype=np.int64))


def _sums(
    values: AnyArray,
    targets: FloatArray,
    centre: FloatArray,
    slope: FloatArray,
    levels: _Levels,
    order: Order,
) -> JointTotals:
    """Block by block, with `np.dot`: other threads run meanwhile, unlike `@`."""
    at_once, d = centre.shape
    k, m = d + levels.width, targets.shape[1]
    v, ones = np.empty((at_once, d), order=order), np.ones(at_once)
    wide = np.empty((at_once, k)) if levels.width else v
    gram, total, cross = np.zeros((k, k)), np.zeros(k), np.zeros((k, m))
    for start in range(0, len(values), at_once):
        rows = values[start : start + at_once]
        count = len(rows)
        block = v[:count]
        with np.errstate(over="ignore"):  # an infinity is cut to the bound like all that is outside
            numbers = rows[:, levels.numbers] if levels.width else rows
            np.subtract(numbers, centre[:count], out=block)
            np.multiply(block, slope[:count], out=block)
        np.clip(block, -1.0, 1.0, out=block)
        if levels.width:
            wide[:count, :d], wide[:count, d:] = block, 0.0
            places = rows[:, levels.words].astype(np.intp) + levels.starts
            wide[np.arange(count)[:, None], places] = 1.0
            block = wide[:count]
        gram += np.dot(block.T, block)
        total += np.dot(ones[:count], block)
        cross += np.dot(block.T, targets[start : start + at_once])
    return JointTotals(gram, total, cross, np.dot(targets.T, targets), targets.sum(axis=0))


def _centre(column: Feature) -> float:
    return 0.5 if isinstance(column, Binary) else column.centre  # type: ignore[union-attr]


def _slope(column: Feature) -> float:
    return 2.0 if isinstance(column, Binary) else 2 / column.width  # type: ignore[union-attr]


def _repeated(row: Sequence[float], rows: int, order: Order) -> FloatArray:
    return np.array(np.broadcast_to(row, (rows, len(row))), order=order)
