"""Blocks of rows as columns v in [−1, 1], and the sums that a map makes of them.

`Encoder` makes v = (x − centre)·2/width of each value x, clipped last, so that |v| ≤ 1 holds to the
last bit; x − centre comes first, so that narrow bounds far from zero lose no digits. A categorical
has a column for each level. Optional and derived columns are encoded by `blurfit.schema.columns`.

`Whitened` turns v into features and adds up what they send; `Residuals` adds up residuals alone,
beside known products; `Screen` computes lengths in single precision, which decide and are never
added: what is within their error of a radius, or of the end of a bin, is computed in double
precision, each row by itself. Weights are computed from the very numbers that they multiply, so the
unit ball of `blurfit.theory.maps` is kept up to the same roundings. Proofs: `docs/theory/rows.md`.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.linalg.blas import dsyrk, dtrmm, strmm

from blurfit.data import AnyArray, FloatArray, IntArray
from blurfit.estimators.people import People
from blurfit.estimators.rows import records
from blurfit.schema.columns import Binary, Categorical, Feature
from blurfit.theory.forms import WaveForm
from blurfit.theory.maps import NewtonMap, PoissonNewton, ResidualMap, WaveMap

if TYPE_CHECKING:
    from blurfit.estimators.passes import Rows

MOST_COLUMNS = 64  # which a thread takes; rows of more are left to BLAS and its own threads
SMALL = 10**6  # multiplications of a small product


Order = Literal["C", "F"]

NUMBERS_AT_ONCE = 2**16  # in a block: 512 kB
# Enough for BLAS where rows are long; what stays in the cache, and of 16 is a small product.
LEAST_ROWS, MOST_ROWS = 256, 3840
ROUNDING = 2.0**-40  # values are taken to be inside bounds that they exceed by so little
FARTHEST = 2.0**8  # |centre|·2/width up to which x ↦ v is folded: it costs 8 of 53 bits


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
        reach: where numbers are cut, 1 but for differences within people.
        features: what v are: the columns, or what is derived from them.
    """

    columns: tuple[Feature, ...]
    order: IntArray
    at_once: int
    numbers: IntArray
    words: IntArray
    starts: IntArray
    layout: Order
    reach: float
    features: tuple[Feature, ...]

    @classmethod
    def of(
        cls,
        values: AnyArray,
        columns: Sequence[Feature],
        people: People | None = None,
        features: Sequence[Feature] | None = None,
    ) -> "Encoder":
        """Find where each column goes, and how many rows fit into a block."""
        is_word = np.array([isinstance(column, Categorical) for column in columns])
        numbers, words = np.flatnonzero(~is_word), np.flatnonzero(is_word)
        sizes = [len(one.columns) for one in columns if isinstance(one, Categorical)]
        starts = len(numbers) + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        order: list[int] = []
        chosen = tuple(columns if features is None else features)
        if chosen != tuple(columns) or any(column.optional for column in columns):
            order = list(range(sum(len(one.columns) for one in chosen)))  # as the schema has them
        else:
            number, word = iter(range(len(numbers))), iter(range(len(words)))
            for one in is_word:
                place = next(word) if one else next(number)
                order += range(starts[place], starts[place + 1]) if one else [place]
        fitting = min(MOST_ROWS, NUMBERS_AT_ONCE // len(order))
        at_once = min(len(values), max(LEAST_ROWS, fitting))
        in_columns = values.flags.f_contiguous and not values.flags.c_contiguous
        back = np.array(order, dtype=np.int64)
        layout: Order = "F" if in_columns else "C"
        reach = 1.0 if people is None else people.reach
        places = numbers, words, starts[:-1]
        return cls(tuple(columns), back, at_once, *places, layout, reach, chosen)

    @cached_property
    def by_columns(self) -> bool:
        """Whether each feature is encoded by itself: some are derived, or need not be said."""
        return self.features != self.columns or any(one.optional for one in self.columns)

    @cached_property
    def folds(self) -> bool:
        """Whether v is so simple a function of x that a product can have it inside."""
        if len(self.words) or self.by_columns:
            return False
        return bool(np.all(np.abs(self.centre * self.slope) <= FARTHEST))

    @cached_property
    def centre(self) -> FloatArray:
        """The middle of each number's bounds."""
        numbers = [self.columns[place] for place in self.numbers]
        return np.array([0.5 if isinstance(one, Binary) else one.centre for one in numbers])

    @cached_property
    def slope(self) -> FloatArray:
        """2/width of each number's bounds."""
        numbers = [self.columns[place] for place in self.numbers]
        return np.array([2.0 if isinstance(one, Binary) else 2 / one.width for one in numbers])

    def slices(self, count: int) -> Iterator[slice]:
        """Return the rows of each block."""
        return (slice(start, start + self.at_once) for start in range(0, count, self.at_once))

    def blocks(self, values: AnyArray) -> Iterator[tuple[slice, FloatArray, bool]]:
        """Yield each block's rows and its columns v, which the next block overwrites; and whether
        no value was outside.
        """
        if self.by_columns:
            for rows in self.slices(len(values)):
                yield rows, derived(values[rows], self.columns, self.features), False
            return
        # As large as a block each: NumPy is fast where one loop runs through all three.
        centre, slope = self._repeated(self.centre), self._repeated(self.slope)
        d, width = len(self.numbers), len(self.order)
        v = np.empty((self.at_once, d), order=self.layout)
        wide = np.empty((self.at_once, width)) if width > d else v
        for rows in self.slices(len(values)):
            given = values[rows]
            count = len(given)
            block = v[:count]
            with np.errstate(over="ignore"):  # an infinity is cut like all that is outside
                np.subtract(given[:, self.numbers] if width > d else given, centre[:count], block)
                np.multiply(block, slope[:count], out=block)
            largest = max(block.max(initial=0.0), -block.min(initial=0.0))
            if largest > self.reach:
                np.clip(block, -self.reach, self.reach, out=block)
            if width > d:
                wide[:count, :d], wide[:count, d:] = block, 0.0
                places = given[:, self.words].astype(np.intp) + self.starts
                wide[np.arange(count)[:, None], places] = 1.0
                block = wide[:count]
            yield rows, block, largest <= self.reach * (1 + ROUNDING)

    def _repeated(self, row: FloatArray) -> FloatArray:
        return np.array(np.broadcast_to(row, (self.at_once, len(row))), order=self.layout)


def derived(
    values: AnyArray, columns: Sequence[Feature], features: Sequence[Feature]
) -> FloatArray:
    """Return the columns v of all features: those of a table's columns, and what is derived from
    these.
    """
    at = {column.name: place for place, column in enumerate(columns)}
    table = records(values, columns)
    parts = []
    for one in features:
        if one.of:
            sources = [columns[at[name]] for name in one.of]
            answers = one.derive(sources, [table[name] for name in one.of])
            parts.append(one.scale(answers).reshape(len(values), -1))
        else:
            parts.append(encoded(values[:, at[one.name]], one))
    return np.column_stack(parts)


def encoded(values: AnyArray, column: Feature) -> FloatArray:
    """Return a column of a table, as `read_rows` makes it, as columns v; levels one by one."""
    if isinstance(column, Categorical):
        return np.eye(len(column.columns))[values.astype(np.intp)]
    return np.asarray(column.scale(values)).reshape(len(values), -1)


def squares_beside(chart: WaveMap, rows: "Rows") -> bool:
    """Tell whether squares are added in the same pass: all rows send them, each for itself."""
    all_rows = getattr(chart, "stride", 1) == 1 and rows.people is None
    return chart.robust and all_rows and (isinstance(chart, NewtonMap) or rows.alike)


def add_products(
    total: FloatArray, x: FloatArray, weight: FloatArray | None, room: FloatArray
) -> FloatArray:
    """total + Σ weight·xxᵀ, in place; of more columns than a thread takes only the upper triangle.

    What is weighted is written to `room`, which is ordered as x is. Of small products OpenBLAS has
    a kernel for two different factors, which on some processors is faster than a root and the one
    for symmetric products.
    """
    if weight is not None:
        different = len(x) * x.size <= SMALL
        weighted = np.multiply(x, weight if different else np.sqrt(weight), out=room)
        if different:
            total += np.dot(x, weighted.T)
            return total
        x = weighted
    if len(x) <= MOST_COLUMNS:
        total += np.dot(x, x.T)
        return total
    across = x.flags.f_contiguous
    found = dsyrk(
        1.0, x if across else x.T, beta=1.0, c=total, trans=int(not across), overwrite_c=True
    )
    return np.asarray(found)


def symmetric(total: FloatArray) -> FloatArray:
    """Return the whole of a sum of products."""
    if len(total) <= MOST_COLUMNS:
        return (total + total.T) / 2
    return np.asarray(np.triu(total) + np.triu(total, 1).T)


def farthest(chart: WaveMap, largest: float = 1.0) -> float:
    """‖ |W|(1 + |m|) ‖, which is at least the largest ‖f‖ of records with |v| ≤ 1, or `largest`."""
    white = chart.whitening
    return float(np.linalg.norm(np.abs(white.matrix) @ (largest + np.abs(white.mean))))


def far(chart: WaveMap, largest: float = 1.0) -> float:
    """Return how far that is in r√p."""
    radius = getattr(chart, "radius", 0.0) * math.sqrt(chart.whitening.dimension)
    return farthest(chart, largest) / radius if radius else math.inf


def reaches_all(chart: WaveMap, largest: float = 1.0) -> bool:
    """Tell whether every record has the weight 1, by public facts alone."""
    return far(chart, largest) <= 1 + 2.0**-30


class Linear:
    """Kx + k of blocks: features of weight w, W being triangular, and the score last."""

    def __init__(self, form: WaveForm, rows: "Rows", folded: bool) -> None:
        encoder, white, weight = rows.encoder, form.chart.whitening, 1.0
        self.constant, self.folded, p = 0.0, folded, white.dimension
        if isinstance(form.chart, ResidualMap):
            weight, self.constant = form.chart.feature_scale, form.chart.constant
        elif isinstance(form.chart, NewtonMap):
            weight, self.constant = form.chart.scale
        self.p = p
        kept = encoder.order[list(form.kept)]  # where in a block the map's columns are
        self.matrix = np.zeros((p + 1, len(encoder.order)))
        self.matrix[:p, kept], self.matrix[p, kept] = weight * white.matrix, white.coefficients
        shift = np.append(-weight * (white.matrix @ white.mean), white.intercept)
        if folded:
            self.matrix *= encoder.slope
            shift -= self.matrix @ encoder.centre
        self.shift = shift
        # W without its zeros, where that is faster: columns of many features, in their order
        self.triangle: FloatArray | None = None
        if p > MOST_COLUMNS and np.array_equal(kept, np.arange(p)):
            self.triangle = np.asfortranarray(self.matrix[:p, :p].T)

    def __call__(self, block: FloatArray, out: FloatArray) -> None:
        """Write the features, and the score, of a block's rows into columns."""
        p = self.p
        if self.triangle is None:
            np.dot(self.matrix, block.T, out=out[: p + 1])
            return
        out[:p] = block[:, :p].T
        dtrmm(1.0, self.triangle, out[:p].T, side=1, overwrite_b=1)  # in place: out has no gaps
        np.dot(block, self.matrix[p], out=out[p])

    def scores(self, block: FloatArray) -> FloatArray:
        """Return the score alone of a block's rows."""
        return np.asarray(np.dot(block, self.matrix[-1]) + self.shift[-1])


class Screen:
    """‖f‖ of a block's rows in single precision, twice as fast, and by how much it can be wrong.

    (1, x) ↦ (1, Kx + k) is triangular, so one product in place has all of it.
    """

    def __init__(self, form: WaveForm, rows: "Rows", *, folded: bool) -> None:
        chart, encoder = form.chart, rows.encoder
        white, p = chart.whitening, chart.whitening.dimension
        matrix, shift, moved = white.matrix, white.matrix @ white.mean, 0.0
        self.error, self.kept = math.inf, encoder.order[list(form.kept)]
        if folded:
            slope = encoder.slope[self.kept]
            if not ((slope >= 2.0**-60) & (slope <= 2.0**60)).all():
                return
            matrix = matrix * slope
            shift = shift + matrix @ encoder.centre[self.kept]
            moved = float(np.max(np.abs(encoder.centre * encoder.slope)))
        length = (1 + 2 * moved) * farthest(chart, encoder.reach)
        if length > 2.0**60 or np.abs(matrix).max() > 2.0**120:
            return
        self.error = 2 * (p + 4) * 2.0**-24 * length + p * 2.0**-60
        self.matrix = np.zeros((p + 1, p + 1), dtype=np.float32, order="F")
        self.matrix[0, 0], self.matrix[1:, 0], self.matrix[1:, 1:] = 1.0, -shift, matrix
        self.rows = np.empty((encoder.at_once, p + 1), dtype=np.float32)
        self.whole = np.array_equal(self.kept, np.arange(len(encoder.order)))

    def __call__(self, block: FloatArray) -> FloatArray:
        """Return the lengths, each within `error` of what it is."""
        rows = self.rows[: len(block)]
        rows[:, 0], rows[:, 1:] = 1.0, block if self.whole else block[:, self.kept]
        f = strmm(1.0, self.matrix, rows.T, lower=1, overwrite_b=1).T[:, 1:]
        squares = np.einsum("ij,ij->i", f, f)
        return np.asarray(np.sqrt(squares, dtype=np.float64))


class Whitened:
    """Adds up what a map makes of one thread's blocks.

    x has a column for each row of a block: p features w·f; then the score, in whose place the
    residual comes, or Newton's constant; and, beside a residual, the constant last.
    """

    def __init__(
        self, form: WaveForm, rows: "Rows", linear: Linear, error: float = math.nan
    ) -> None:
        chart = self.chart = form.chart
        self.form, self.everybody = form, reaches_all(chart, rows.encoder.reach)
        self.linear, self.constant, self.error = linear, linear.constant, error
        self.beside = squares_beside(chart, rows)
        p, at_once = self.linear.p, rows.encoder.at_once
        self.height = p + 1 if isinstance(chart, NewtonMap) else p + 2
        self.shift = np.array(np.broadcast_to(self.linear.shift[:, None], (p + 1, at_once)))
        self.x, self.weighted = np.empty((2, self.height * at_once))
        square = (self.height, self.height)
        self.gram, self.squares = np.zeros(square, order="F"), np.zeros(square, order="F")
        self.slopes = np.zeros(self.height)

    def measure(self, block: FloatArray, target: FloatArray) -> tuple[FloatArray, ...]:
        """Return x, and unless it is Newton's, ‖w·f‖ and g of each row."""
        p, count = self.linear.p, len(block)
        x = self.x[: self.height * count].reshape(self.height, count)
        self.linear(block, x)
        x[: p + 1] += self.shift[:, :count]
        if isinstance(self.chart, NewtonMap):
            return (x,)
        size = np.sqrt(np.einsum("ij,ij->j", x[:p], x[:p]))
        return x, size, (target - x[p]) / self.chart.scale

    def add(
        self,
        block: FloatArray,
        target: FloatArray,
        counted: FloatArray | None,
        sizes: FloatArray | None,
        about: FloatArray | None = None,  # noqa: ARG002 - as where products are known
    ) -> None:
        """Add what the rows of a block would send; `counted` says how much each of them counts, and
        `sizes` has the root mean squares of the features and errors of the person of each; `about`
        is how long the features of each are, up to an error.
        """
        chart, p = self.chart, self.linear.p
        if isinstance(chart, NewtonMap):
            x, g, h = self.newton(block, target)
            self.slopes -= np.dot(x, g if counted is None else g * counted)
            self._add(self.gram, x, h, counted)
            if self.beside:
                self._add(self.squares, x, g * g, counted)
            return
        x, size, error = self.measure(block, target)
        self._add(self.gram, self._cut(x, size, error, sizes), None, counted)
        if self.beside:
            self._add(self.squares, x, (x[p] / chart.target_weight) ** 2, counted)

    def newton(self, block: FloatArray, target: FloatArray) -> tuple[FloatArray, ...]:
        """Return x, g and h of a block's rows, weighted."""
        chart, p = self.chart, self.linear.p
        assert isinstance(chart, NewtonMap)
        (x,) = self.measure(block, target)
        if isinstance(chart.loss, PoissonNewton):
            target = (target + 1) * (chart.loss.count_bound / 2)
        g, h = chart.loss.slopes(x[p], target)
        if not self.everybody:
            f = x[:p]
            weight = 1 / np.maximum(1.0, np.einsum("ij,ij->j", f, f) + self.constant**2)
            g, h = g * weight, h * weight
        x[p] = self.constant
        return x, g, h

    def slopes_of(
        self, block: FloatArray, target: FloatArray, sizes: FloatArray | None
    ) -> FloatArray:
        """Return g·x of a block's rows: features, then Newton's constant, or a residual's own."""
        if isinstance(self.chart, NewtonMap):
            x, g, _ = self.newton(block, target)
            x *= g
            return x
        x, size, error = self.measure(block, target)
        x = self._cut(x, size, error, sizes)
        x *= x[self.linear.p] / self.chart.target_weight
        return x

    def _cut(
        self, x: FloatArray, size: FloatArray, error: FloatArray, sizes: FloatArray | None
    ) -> FloatArray:
        chart, p = self.chart, self.linear.p
        assert isinstance(chart, ResidualMap)
        of_all = size if sizes is None else sizes[0]
        s = chart.feature_weight / np.maximum(of_all, chart.feature_weight)
        error *= s
        if sizes is None:
            np.clip(error, -chart.bound, chart.bound, out=error)
        else:  # a person's rows are cut together
            error *= chart.bound / np.maximum(chart.bound, s * sizes[1])
        np.multiply(error, chart.target_scale, out=x[p])
        x[:p] *= s
        np.multiply(s, self.constant, out=x[p + 1])
        return x

    def _add(
        self,
        total: FloatArray,
        x: FloatArray,
        weight: FloatArray | None,
        counted: FloatArray | None,
    ) -> None:
        """Add Σ counted·weight·xxᵀ."""
        if counted is not None:
            weight = counted if weight is None else counted * weight
        add_products(total, x, weight, self.weighted[: x.size].reshape(x.shape))

    def totals(self) -> list[FloatArray]:
        """Return what this thread has found."""
        return [self.gram, self.squares, self.slopes]

    def found(self, gram: FloatArray, squares: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return the sums of all threads, as they are sent."""
        gram = symmetric(gram)
        if isinstance(self.chart, NewtonMap):
            return self.form.take(gram, slopes, symmetric(squares) if self.beside else None)
        squared = self.ordered(symmetric(squares))[:-1, :-1] if self.beside else None
        return self.form.take(self.ordered(gram), squares=squared)

    def ordered(self, gram: FloatArray) -> FloatArray:
        """Return a residual map's sums as they are sent: the constant first, the error last."""
        p = self.linear.p
        order = [p + 1, *range(p), p]
        return gram[np.ix_(order, order)]


class _Products:
    """Adds up Σw(1, v)(1, v)ᵀ of blocks of encoded rows."""

    def __init__(self, width: int) -> None:
        self.gram, self.total, self.count = (np.zeros((width,) * k, order="F") for k in (2, 1, 0))

    def add(self, v: FloatArray, weight: FloatArray) -> None:
        """Add a block's rows."""
        self.gram = add_products(self.gram, v.T, weight, np.empty_like(v).T)
        self.total += np.dot(weight, v)
        self.count += weight.sum()

    def totals(self) -> list[FloatArray]:
        """Return what this thread has found."""
        return [self.gram, self.total, self.count]


class Residuals:
    """Adds up the residuals of rows that a map does not cut, beside products that are known.

    Of rows that it cuts, or may cut by what is known of their lengths, the products are taken off
    what is known, and what they send is added by itself.
    """

    def __init__(self, form: WaveForm, rows: "Rows", linear: Linear, error: float) -> None:
        assert isinstance(form.chart, ResidualMap)
        self.form, self.chart, self.rows, self.linear = form, form.chart, rows, linear
        self.reach = math.inf  # the length up to which no row is cut
        if not reaches_all(form.chart):
            self.reach = form.chart.radius * math.sqrt(linear.p) - error
        self.cut = Whitened(form, rows, linear)  # what those rows send
        width = linear.matrix.shape[1]
        self.errors, self.total = np.zeros(2), np.zeros(width)
        self.known, self.squares = _Products(width), _Products(width)
        self.far: list[tuple[FloatArray, FloatArray]] = []  # rows that may be cut

    def add(
        self,
        block: FloatArray,
        target: FloatArray,
        *_: FloatArray | None,
        about: FloatArray | None = None,
    ) -> None:
        """Add the residuals of a block's rows, and their products with its columns."""
        chart, error = self.chart, self.linear.scores(block)
        np.subtract(target, error, out=error)
        error *= 1 / chart.scale
        np.clip(error, -chart.bound, chart.bound, out=error)
        if about is not None and (far := about > self.reach).any():
            error[far] = 0.0
            self.far.append((block[far], target[far]))
        if self.cut.beside:
            self.squares.add(self._encoded(block), (error / chart.bound) ** 2)
        error *= chart.target_scale
        self.errors += error.sum(), np.dot(error, error)
        self.total += np.dot(error, block)

    def _encoded(self, block: FloatArray) -> FloatArray:
        encoder = self.rows.encoder
        if not self.linear.folded:
            return block
        found = block - encoder.centre
        found *= encoder.slope
        return found

    def totals(self) -> list[FloatArray]:
        """Return what this thread has found."""
        if self.far:
            block, target = (np.concatenate(parts) for parts in zip(*self.far, strict=True))
            for rows in self.rows.encoder.slices(len(block)):
                self.cut.add(block[rows], target[rows], None, None)
                self.known.add(self._encoded(block[rows]), np.ones(len(block[rows])))
        apart = self.known.totals(), self.squares.totals(), self.cut.totals()
        return [self.errors, self.total, *itertools.chain(*apart)]

    def found(self, errors: FloatArray, total: FloatArray, *apart: FloatArray) -> FloatArray:
        """Return the sums of all threads, as they are sent."""
        chart, white, rows = self.chart, self.chart.whitening, self.rows
        p, kept = white.dimension, list(self.form.kept)
        back = rows.encoder.order[kept]
        if self.linear.folded:  # Σe·v from Σe·x
            total = (total - rows.encoder.centre * errors[0]) * rows.encoder.slope
        into = np.zeros((p + 1, p + 1))  # J
        into[0, 0], into[1:, 1:] = chart.constant, chart.feature_scale * white.matrix
        into[1:, 0] = -into[1:, 1:] @ white.mean

        def whole(gram: FloatArray, means: FloatArray, count: FloatArray) -> FloatArray:
            inner, ends = symmetric(gram)[np.ix_(back, back)], means[back]
            return np.block([[count.reshape(1, 1), ends[None]], [ends[:, None], inner]])

        places = [0, *(1 + place for place in kept)]
        known = rows.joint.matrix(rows.count)[np.ix_(places, places)] - whole(*apart[:3])
        slopes = into @ np.append(errors[0], total[back])
        ends = np.append(slopes, errors[1])
        cut, squares = (self.cut.ordered(symmetric(one)) for one in apart[6:8])
        matrix = cut + np.block([[into @ known @ into.T, slopes[:, None]], [ends[None]]])
        if not self.cut.beside:
            return self.form.take(matrix)
        squares = squares[:-1, :-1] + into @ whole(*apart[3:6]) @ into.T
        return self.form.take(matrix, squares=squares)
