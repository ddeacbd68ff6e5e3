"""Sums over all rows of a table in one pass, at the speed of BLAS.

An estimator needs of its rows only their sums. So each block of rows is centred by the public
bounds, cut to [−1, 1] and multiplied while it is in the processor's cache, and no encoded table is
ever held. These are the numbers that `blurfit.schema.vectors.values` gives, up to rounding, at a
fraction of the time.

    rows ─ encode ─► v ─ joint_totals ─► Σ(1, v, t)(1, v, t)ᵀ
                     └── wave_totals ──► (f | score) = vK + k ─► weights ─► Σ of what a map sends

In a later wave one product whitens a block and gives its scores. What is weighted is a copy in a
buffer of its own, for which NumPy calls the general product: of a matrix with itself it calls
another one, which is slower for few columns. Encoded rows are finite and so are maps, so norms need
no scaling; weights are computed from the very numbers that they multiply, so the ball of
`blurfit.theory.maps` is kept but for the same few roundings.

How the rows are parted depends on their number alone, and so does the rounding of the sums.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from blurfit.arrays import AnyArray, FloatArray, IntArray
from blurfit.schema.columns import Binary, Categorical, Feature
from blurfit.theory.forms import WaveForm
from blurfit.theory.maps import GaugeMap, NewtonMap, PoissonNewton, ResidualMap

Order = Literal["C", "F"]
Found = TypeVar("Found")

# Numbers in a block: 512 kB, of which two more are kept to centre and to scale by.
NUMBERS_AT_ONCE = 2**16
LEAST_ROWS = 256  # enough for BLAS where rows are long
MOST_ROWS = 2048  # of a later wave, which keeps several buffers
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


def joint_totals(
    values: AnyArray,
    targets: FloatArray,
    columns: Sequence[Feature],
    weights: FloatArray | None = None,
) -> JointTotals:
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
        weights: how much each row counts, (n,); all count 1 if nothing is said.

    >>> from blurfit import Numeric
    >>> found = joint_totals(np.array([[25], [130]]), np.array([[1.0], [0.5]]),
    ...                      [Numeric("age", 0, 100)])
    >>> found.matrix(2).tolist()
    [[2.0, 0.5, 1.5], [0.5, 1.25, 0.0], [1.5, 0.0, 1.25]]
    """
    encoder = Encoder.of(values, columns, NUMBERS_AT_ONCE)
    k, m = len(encoder.order), targets.shape[1]

    def sums_of(part: slice) -> JointTotals:
        t, ones = targets[part], np.ones(encoder.at_once)
        w = None if weights is None else weights[part]
        gram, total, cross = np.zeros((k, k)), np.zeros(k), np.zeros((k, m))
        for rows, v in encoder.blocks(values[part]):  # `np.dot` lets other threads run, unlike `@`
            weighted = v if w is None else v * w[rows, None]
            gram += np.dot(weighted.T, v)
            total += np.dot(ones[: len(v)], weighted)
            cross += np.dot(weighted.T, t[rows])
        of_targets = t if w is None else t * w[:, None]
        return JointTotals(gram, total, cross, np.dot(of_targets.T, t), of_targets.sum(axis=0))

    found = in_parts(sums_of, values, encoder)
    gram, total, cross, squares, sums = (sum(parts) for parts in zip(*found, strict=True))
    back = encoder.order
    return JointTotals(gram[np.ix_(back, back)], total[back], cross[back], squares, sums)


def wave_totals(
    form: WaveForm,
    values: AnyArray,
    target: FloatArray,
    columns: Sequence[Feature],
    weights: FloatArray | None = None,
) -> FloatArray:
    """The sums of what the rows of a later wave would send; `target` is encoded, (n,), and so much
    does each row count.
    """
    encoder = Encoder.of(values, columns, min(NUMBERS_AT_ONCE, MOST_ROWS * values.shape[1]))

    def sums_of(part: slice) -> FloatArray:
        work, t = _Whitener(form, encoder), target[part]
        w = None if weights is None else weights[part]
        for rows, v in encoder.blocks(values[part]):
            work.add(v, t[rows], 1.0 if w is None else w[rows])
        return work.found()

    return np.asarray(sum(in_parts(sums_of, values, encoder)))


def in_parts(
    function: Callable[[slice], Found], values: AnyArray, encoder: "Encoder"
) -> list[Found]:
    """What a function finds of parts of the rows, on all cores; no thread is started for a few."""
    n, d = values.shape
    stride = BLOCKS_AT_ONCE * encoder.at_once if d <= MOST_COLUMNS else n
    parts = [slice(start, start + stride) for start in range(0, n, stride)]
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as pool:
        return list(pool.map(function, parts))


@dataclass(frozen=True, eq=False)
class Encoder:
    """Encodes blocks of rows: numbers come first, then levels.

    Attributes:
        columns: what each column of the rows is.
        order: from a block's columns to those of the schema.
        at_once: how many rows a block has at most.
        numbers, words: places of the columns of numbers, and of categoricals.
        starts: where in a block each categorical's levels begin.
        layout: whether rows lie in rows or in columns.
    """

    columns: tuple[Feature, ...]
    order: IntArray
    at_once: int
    numbers: IntArray
    words: IntArray
    starts: IntArray
    layout: Order

    @classmethod
    def of(cls, values: AnyArray, columns: Sequence[Feature], numbers_at_once: int) -> "Encoder":
        """Find where each column goes, and how many rows fit into a block."""
        is_word = np.array([isinstance(column, Categorical) for column in columns])
        numbers, words = np.flatnonzero(~is_word), np.flatnonzero(is_word)
        sizes = [len(one.columns) for one in columns if isinstance(one, Categorical)]
        starts = len(numbers) + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        order: list[int] = []
        if any(column.optional for column in columns):  # encoded in the schema's order
            order = list(range(sum(len(column.columns) for column in columns)))
        else:
            number, word = iter(range(len(numbers))), iter(range(len(words)))
            for one in is_word:
                place = next(word) if one else next(number)
                order += range(starts[place], starts[place + 1]) if one else [place]
        at_once = min(len(values), max(LEAST_ROWS, numbers_at_once // len(order)))
        in_columns = values.flags.f_contiguous and not values.flags.c_contiguous
        back = np.array(order, dtype=np.int64)
        layout: Order = "F" if in_columns else "C"
        return cls(tuple(columns), back, at_once, numbers, words, starts[:-1], layout)

    def blocks(self, values: AnyArray) -> Iterator[tuple[slice, FloatArray]]:
        """Each block's rows and its columns v, which the next block overwrites."""
        parts = [
            slice(start, start + self.at_once) for start in range(0, len(values), self.at_once)
        ]
        if any(column.optional for column in self.columns):
            for rows in parts:
                each = enumerate(self.columns)
                yield rows, np.column_stack([encoded(values[rows, at], one) for at, one in each])
            return
        # As large as a block each: NumPy is fast where one loop runs through all three.
        numbers = [self.columns[place] for place in self.numbers]
        centre = self._repeated([_centre(column) for column in numbers])
        slope = self._repeated([_slope(column) for column in numbers])
        d, width = len(numbers), len(self.order)
        v = np.empty((self.at_once, d), order=self.layout)
        wide = np.empty((self.at_once, width)) if width > d else v
        for rows in parts:
            given = values[rows]
            count = len(given)
            block = v[:count]
            with np.errstate(over="ignore"):  # an infinity is cut like all that is outside
                np.subtract(given[:, self.numbers] if width > d else given, centre[:count], block)
                np.multiply(block, slope[:count], out=block)
            np.clip(block, -1.0, 1.0, out=block)
            if width > d:
                wide[:count, :d], wide[:count, d:] = block, 0.0
                places = given[:, self.words].astype(np.intp) + self.starts
                wide[np.arange(count)[:, None], places] = 1.0
                block = wide[:count]
            yield rows, block

    def _repeated(self, row: Sequence[float]) -> FloatArray:
        return np.array(np.broadcast_to(row, (self.at_once, len(row))), order=self.layout)


def encoded(values: AnyArray, column: Feature) -> FloatArray:
    """A column of a table, as `read_rows` makes it, as columns v: of a categorical, levels."""
    if isinstance(column, Categorical):
        return np.eye(len(column.columns))[values.astype(np.intp)]
    return np.asarray(column.scale(values)).reshape(len(values), -1)


def _centre(column: Feature) -> float:
    return 0.5 if isinstance(column, Binary) else column.centre  # type: ignore[union-attr]


def _slope(column: Feature) -> float:
    return 2.0 if isinstance(column, Binary) else 2 / column.width  # type: ignore[union-attr]


class _Whitener:
    """Adds up what a map makes of one thread's blocks.

    One product gives x: its first p columns are w·f, the next is the score, in whose place the
    constant comes, and the rest are zeros, up to a multiple of 8.
    """

    def __init__(self, form: WaveForm, encoder: Encoder) -> None:
        chart, white = form.chart, form.chart.whitening
        weight, self.constant = 1.0, 0.0
        if isinstance(chart, ResidualMap):
            weight, self.constant = chart.feature_scale, chart.constant
        elif isinstance(chart, NewtonMap):
            weight, self.constant = chart.scale
        p = self.p = white.dimension
        size = -(-(p + 1) // 8) * 8
        self.form, self.matrix, shift = form, np.zeros((len(encoder.order), size)), np.zeros(size)
        kept = encoder.order[list(form.kept)]  # where in a block the map's columns are
        self.matrix[kept, :p], self.matrix[kept, p] = weight * white.matrix.T, white.coefficients
        shift[:p], shift[p] = -weight * (white.matrix @ white.mean), white.intercept
        whole = (encoder.at_once, size)
        self.shift = np.array(np.broadcast_to(shift, whole))
        self.x, self.weighted = np.empty(whole), np.empty(whole)
        self.gram, self.squares = np.zeros((size, size)), np.zeros((size, size))
        self.linear, self.errors = np.zeros(size), 0.0
        self.counts = np.zeros(form.width if isinstance(chart, GaugeMap) else 0)

    def add(self, v: FloatArray, target: FloatArray, counted: FloatArray | float = 1.0) -> None:
        """Add what the rows of a block would send; `counted` says how much each of them counts."""
        chart, p, x = self.form.chart, self.p, self.x[: len(v)]
        np.dot(v, self.matrix, out=x)
        x += self.shift[: len(v)]
        score = x[:, p].copy()
        x[:, p] = 0.0
        squares = np.einsum("ij,ij->i", x, x)  # of the features alone
        x[:, p] = self.constant
        if isinstance(chart, NewtonMap):
            weight = 1 / np.maximum(1.0, squares + self.constant**2)
            if isinstance(chart.loss, PoissonNewton):
                target = (target + 1) * (chart.loss.count_bound / 2)
            g, h = chart.loss.slopes(score, target)
            g *= weight
            self.linear -= np.dot(g * counted, x)
            self.gram += self._gram(x, h * weight * counted)
            if chart.robust:
                self.squares += self._gram(x, g * g * counted)
            return
        error = (target - score) / chart.scale
        if isinstance(chart, GaugeMap):
            for places in chart.bins(np.sqrt(squares / p), np.abs(error)):
                each = None if isinstance(counted, float) else counted
                self.counts += np.bincount(places, each, minlength=chart.width)
            return
        a, b = chart.feature_weight, chart.target_weight
        s = a / np.maximum(np.sqrt(squares), a)
        e = (b / chart.bound) * np.clip(s * error, -chart.bound, chart.bound)
        self.gram += self._gram(x, s * s * counted)
        if chart.robust:
            self.squares += self._gram(x, (s * e / b) ** 2 * counted)
        self.linear += np.dot(s * e * counted, x)
        self.errors += float(np.dot(e * counted, e))

    def found(self) -> FloatArray:
        """Return the sums, as they are sent."""
        if isinstance(self.form.chart, GaugeMap):
            return self.counts
        p = self.p
        order = [*range(p + 1)] if isinstance(self.form.chart, NewtonMap) else [p, *range(p)]
        at = np.ix_(order, order)
        gram, linear, squares = ((self.gram + self.gram.T) / 2)[at], self.linear[order], None
        if self.form.chart.robust:
            squares = ((self.squares + self.squares.T) / 2)[at]
        if isinstance(self.form.chart, NewtonMap):
            return self.form.take(gram, linear, squares)
        ends = np.append(linear, self.errors)  # the constant comes first, the error last
        whole = np.block([[gram, linear[:, None]], [ends[None]]])
        return self.form.take(whole, squares=squares)

    def _gram(self, x: FloatArray, weight: FloatArray) -> FloatArray:
        """Σ weight·xxᵀ."""
        weighted = self.weighted[: len(x)]
        np.multiply(x, weight[:, None], out=weighted)
        return np.asarray(np.dot(weighted.T, x))
