"""Sums over all rows of a table in one pass a wave, at the speed of BLAS.

An estimator needs of its rows only their sums. So each block of rows is centred by the public
bounds, cut to [−1, 1] and multiplied while it is in the processor's cache, and no encoded table is
ever held. These are the numbers that `blurfit.schema.vectors.values` gives, up to rounding, at a
fraction of the time.

    rows ─ encode ─► v ─ `joint` ─► Σ(1, v, t)(1, v, t)ᵀ
                     └── `sums` ──► (f | score) = Kv + k ─► weights ─► Σ of what a map sends

**A later wave** turns a block into columns of features, one product whitening it and giving its
scores. W is triangular, so where there are many columns it is multiplied by parts, and zeros are
left out. What was found in the first wave need not be found again:

* If no value lay outside its bounds, nothing is cut: x ↦ v is folded into K and k, and blocks are
  multiplied as they lie in memory (`Rows.folded`).
* If the map's radius reaches every record that the bounds allow, ‖ |W|(1 + |m|) ‖ ≤ r√p, then every
  weight s is 1, by public facts alone. The features' products of a residual map are then
  J·Σ(1, v)(1, v)ᵀ·Jᵀ, of z = J(1, v), and only the residuals are still to be read.

**The ball is kept.** Encoded rows are finite and so are maps, so norms need no scaling. Weights are
computed from the very numbers that they multiply, so the ball of `blurfit.theory.maps` is kept but
for the same few roundings. Where all weights are 1, ‖W‖_F ≤ r√p, so that J makes rounding errors of
Σvvᵀ no larger: z of every record is inside the ball up to 2⁻³⁰, and sums are rounded as elsewhere.

**Folding is private, and so is rounding.** One record outside its bounds, and all others are
rounded differently: with c the largest |centre|·2/width, Kx by up to (d + 2)·2⁻⁵³·(1 + 2c)·Σ|K| for
|v| ≤ 1. What a residual or logistic map sends moves by less than 16 times that, over r√p for
features, and over R·scale for residuals or 1 for log-odds: s is 1/(r√p)-Lipschitz in f, s·g moves
by R/(r√p) with f until it is cut, and |g|, h by ¼ and 0.1 with t. n times this is at most 2⁻¹⁶, or
nothing is folded. Gauges are never folded: a record at the end of a bin would go into another. Nor
are counts, as e^t is steep.

**No single precision.** In sums of m numbers it is wrong by up to m²·2⁻²⁴ (m·2⁻²⁴ of a sum of up to
m), and another record may change how all the others are rounded: for blocks of 256 rows already
2⁻⁸, where Δ keeps back 2⁻¹². In double precision that is 2⁻³⁷.

How the rows are parted depends on their number alone, and so does the rounding of the sums.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg.blas import dsyrk

from blurfit.data import AnyArray, FloatArray
from blurfit.estimators.blocks import Encoder
from blurfit.estimators.people import People
from blurfit.schema.columns import Feature
from blurfit.theory.announced import Announced
from blurfit.theory.forms import WaveForm
from blurfit.theory.maps import GaugeMap, NewtonMap, PoissonNewton, ResidualMap

Found = TypeVar("Found")

# Blocks that one thread takes at once. Rows of more columns are left to BLAS and its own threads.
BLOCKS_AT_ONCE = 16
MOST_COLUMNS = 64
COLUMNS_AT_ONCE = 104  # of a triangular matrix that is multiplied by parts
LEAST = 2.0**-16  # of what Δ keeps back, for rounding that is not public


class JointTotals(NamedTuple):
    """Sums over all rows: of vvᵀ (k, k), of v (k,), of v·t (k, m), of ttᵀ (m, m) and of t (m,)."""

    gram: FloatArray
    total: FloatArray
    cross: FloatArray
    squares: FloatArray
    targets: FloatArray

    def matrix(self, count: float) -> FloatArray:
        """Σ(1, v, t)(1, v, t)ᵀ."""
        return np.block(
            [
                [np.array([[float(count)]]), self.total[None], self.targets[None]],
                [self.total[:, None], self.gram, self.cross],
                [self.targets[:, None], self.cross.T, self.squares],
            ]
        )


@dataclass(eq=False)
class Rows:
    """The rows of a fit.

    Args:
        values: (n, d) finite numbers of any real type, best in rows or in columns without gaps; of
            a categorical, the place of its level.
        targets: (n, m), already encoded.
        columns: what each column of `values` is.
        people: whose row is whose, if each is to count as one of its person's.
        inside: whether no value is outside its bounds, as far as is known.
        features: what v are, where some are derived from the columns.
        scales: how much each row counts, from 0 to 1, if rows have weights of their own.

    >>> from blurfit import Numeric
    >>> rows = Rows(np.array([[25], [130]]), np.array([[1.0], [0.5]]), [Numeric("age", 0, 100)])
    >>> rows.joint.matrix(2).tolist()
    [[2.0, 0.5, 1.5], [0.5, 1.25, 0.0], [1.5, 0.0, 1.25]]
    """

    values: AnyArray
    targets: FloatArray
    columns: Sequence[Feature]
    people: People | None = None
    inside: bool = False
    features: Sequence[Feature] | None = None
    scales: FloatArray | None = None

    @property
    def weight(self) -> float:
        """How much weight there is in all: the count, if nobody has a weight of their own."""
        return float(self.count if self.scales is None else self.scales.sum())

    @property
    def count(self) -> int:
        """How many rows there are, or people whose rows count as one together."""
        return len(self.values) if self.people is None else self.people.count

    @cached_property
    def encoder(self) -> "Encoder":
        """What makes v of the values."""
        return Encoder.of(self.values, self.columns, self.people, self.features)

    def every(self, stride: int) -> "Rows":
        """Return every k-th row, or the rows of every k-th person; what is known of all, is known
        of them.
        """
        if stride == 1:
            return self
        some, whose = every(self.people, stride)
        return replace(self, values=self.values[some], targets=self.targets[some], people=whose)

    def weights(self, part: slice) -> FloatArray | None:
        """How much each row counts, if not 1."""
        if self.scales is not None:
            return self.scales[part]
        return None if self.people is None else self.people.weights[part]

    @cached_property
    def joint(self) -> JointTotals:
        """The sums over all rows of the products of their columns v and targets t."""
        encoder = self.encoder
        k, m = len(encoder.order), self.targets.shape[1]

        def sums_of(part: slice) -> tuple[JointTotals, bool]:
            t, w = self.targets[part], self.weights(part)
            ones = np.ones(encoder.at_once)
            gram, total, cross = np.zeros((k, k), order="F"), np.zeros(k), np.zeros((k, m))
            inside = True
            for rows, v, fits in encoder.blocks(self.values[part]):
                inside &= fits
                weighted = v if w is None else v * w[rows, None]
                # `np.dot` lets other threads run, unlike `@`
                if w is None:
                    gram = add_products(gram, v.T)
                else:
                    gram += np.dot(weighted.T, v)
                total += np.dot(ones[: len(v)], weighted)
                for place in range(m):
                    cross[:, place] += np.dot(t[rows, place], weighted)
            of_targets = t if w is None else t * w[:, None]
            squares, sums = np.dot(of_targets.T, t), of_targets.sum(axis=0)
            return JointTotals(symmetric(gram), total, cross, squares, sums), inside

        found, inside = zip(*self.in_parts(sums_of), strict=True)
        self.inside = all(inside)
        gram, total, cross, squares, sums = (sum(parts) for parts in zip(*found, strict=True))
        back = encoder.order
        return JointTotals(gram[np.ix_(back, back)], total[back], cross[back], squares, sums)

    def sums(self, form: WaveForm) -> FloatArray:
        """The sums of what the rows, or the people, of a later wave would send.

        Where a map cuts a person's rows together, a first pass finds how long they are.
        """
        chart, folded, sizes = form.chart, self.folded(form.chart), None
        known = isinstance(chart, ResidualMap) and "joint" in self.__dict__
        alike = self.people is None and self.scales is None  # every row counts 1
        kind = _Residuals if known and alike and reaches_all(chart) else _Whitened
        if self.people is not None and not form.is_newton:
            sizes = self._sizes(form, self.people, folded=folded)
            if isinstance(chart, GaugeMap):
                places = chart.bins(sizes[0] / math.sqrt(chart.whitening.dimension), sizes[1])
                return (
                    np.asarray(sum(np.bincount(one, minlength=form.width) for one in places)) * 1.0
                )
            sizes = sizes[:, self.people.codes]

        def sums_of(part: slice) -> list[FloatArray]:
            work, t, w = kind(form, self, folded), self.targets[part, 0], self.weights(part)
            for rows, block in self.blocks(part, folded=folded):
                each = None if sizes is None else sizes[:, part][:, rows]
                work.add(block, t[rows], None if w is None else w[rows], each)
            return work.totals()

        found = [np.asarray(sum(parts)) for parts in zip(*self.in_parts(sums_of), strict=True)]
        sent = kind(form, self, folded).found(*found)
        if form.is_newton or not form.chart.robust:
            return sent
        assert isinstance(form.chart, ResidualMap)
        return np.append(sent, self.every(form.chart.stride)._squared_errors(form))

    def _squared_errors(self, form: WaveForm) -> FloatArray:
        """Σppᵀ as it is sent, p = g·x of each row, or its mean over the rows of each person."""
        p, folded, sizes = len(form.kept), self.folded(form.chart), None
        if self.people is not None:
            sizes = self._sizes(form, self.people, folded=folded)[:, self.people.codes]

        def sums_of(part: slice) -> FloatArray:
            work, t = _Whitened(form, self, folded), self.targets[part, 0]
            total = np.zeros((p + 2, p + 2), order="F")
            each = np.empty((p + 2, 0 if sizes is None else len(t)))
            for rows, block in self.blocks(part, folded=folded):
                own = None if sizes is None else sizes[:, part][:, rows]
                x = work.residuals(block, t[rows], own)
                x *= x[p] / form.chart.target_weight  # type: ignore[union-attr]
                if sizes is None:
                    total = add_products(total, x)
                else:
                    each[:, rows] = x
            return symmetric(total) if sizes is None else each

        found = self.in_parts(sums_of)
        if self.people is None:
            total = np.asarray(sum(found))
        else:
            means = self.people.means(np.hstack(found).T)
            total = means.T @ means
        order = [p + 1, *range(p)]  # the constant comes first
        return form.take_squares(total[np.ix_(order, order)])

    def _sizes(self, form: WaveForm, people: People, *, folded: bool) -> FloatArray:
        """The root mean squares of ‖w·f‖ and g over the rows of each person: (2, count)."""

        def squares_of(part: slice) -> FloatArray:
            work, t = _Whitened(form, self, folded), self.targets[part, 0]
            found = np.empty((2, len(t)))
            for rows, block in self.blocks(part, folded=folded):
                _, size, error = work.measure(block, t[rows])
                found[:, rows] = size * size, error * error
            return found

        each = np.hstack(self.in_parts(squares_of))
        return np.sqrt(people.means(each.T).T)

    def folded(self, chart: Announced) -> bool:
        """Whether blocks are multiplied as they are, x ↦ v being folded into the map's matrix."""
        encoder = self.encoder
        if not (self.inside and encoder.folds and self.values.dtype == np.float64):
            return False
        if isinstance(chart, ResidualMap):
            unit = chart.scale * chart.bound
        elif isinstance(chart, NewtonMap) and not isinstance(chart.loss, PoissonNewton):
            unit = 1.0
        else:
            return False
        n, d = self.values.shape
        white, shift = chart.whitening, float(np.max(np.abs(encoder.centre * encoder.slope)))
        score = (float(np.abs(white.coefficients).sum()) + abs(white.intercept)) / unit
        moved = (d + 2) * 2.0**-53 * (1 + 2 * shift) * (far(chart, encoder.reach) + score)
        return bool(16 * n * moved <= LEAST)

    def blocks(self, part: slice, *, folded: bool) -> Iterator[tuple[slice, FloatArray]]:
        """Each block's rows, and its columns v, or the values as they are."""
        values = self.values[part]
        if folded:
            yield from ((rows, values[rows]) for rows in self.encoder.slices(len(values)))
        else:
            yield from ((rows, v) for rows, v, _ in self.encoder.blocks(values))

    def in_parts(self, function: Callable[[slice], Found]) -> list[Found]:
        """What a function finds of parts of the rows, on all cores; a few take no thread."""
        n, d = self.values.shape
        stride = BLOCKS_AT_ONCE * self.encoder.at_once if d <= MOST_COLUMNS else n
        parts = [slice(start, start + stride) for start in range(0, n, stride)]
        threads = min(len(parts), usable_cores())
        if threads == 1:
            return [function(part) for part in parts]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(function, parts))


def every(people: People | None, stride: int) -> tuple[slice | AnyArray, People | None]:
    """Every k-th row, or the rows of every k-th person; and whose they are."""
    return (slice(None, None, stride), None) if people is None else people.every(stride)


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover


def add_products(total: FloatArray, x: FloatArray) -> FloatArray:
    """total + xxᵀ, in place; of more columns than a thread takes only the upper triangle."""
    if len(x) <= MOST_COLUMNS:
        total += np.dot(x, x.T)
        return total
    across = x.flags.f_contiguous
    found = dsyrk(
        1.0, x if across else x.T, beta=1.0, c=total, trans=int(not across), overwrite_c=True
    )
    return np.asarray(found)


def symmetric(total: FloatArray) -> FloatArray:
    """The whole of a sum of products."""
    if len(total) <= MOST_COLUMNS:
        return (total + total.T) / 2
    return np.asarray(np.triu(total) + np.triu(total, 1).T)


def far(chart: Announced, largest: float = 1.0) -> float:
    """The largest ‖f‖/(r√p) of records with |v| ≤ 1, or less than this: ‖ |W|(1 + |m|) ‖/(r√p)."""
    white = chart.whitening
    length = np.linalg.norm(np.abs(white.matrix) @ (largest + np.abs(white.mean)))
    radius = getattr(chart, "radius", 0.0) * math.sqrt(white.dimension)
    return float(length / radius) if radius else math.inf


def reaches_all(chart: Announced, largest: float = 1.0) -> bool:
    """Whether every record has the weight 1, by public facts alone."""
    return far(chart, largest) <= 1 + 2.0**-30


class _Linear:
    """Kx + k of blocks: features of weight w, W being triangular, and the score last."""

    def __init__(self, form: WaveForm, rows: Rows, folded: bool, weight: float) -> None:
        encoder, white = rows.encoder, form.chart.whitening
        p = self.p = white.dimension
        kept = encoder.order[list(form.kept)]  # where in a block the map's columns are
        self.matrix = np.zeros((p + 1, len(encoder.order)))
        self.matrix[:p, kept], self.matrix[p, kept] = weight * white.matrix, white.coefficients
        shift = np.append(-weight * (white.matrix @ white.mean), white.intercept)
        if folded:
            self.matrix *= encoder.slope
            shift -= self.matrix @ encoder.centre
        self.shift = shift
        self.parts = [(0, p + 1, self.matrix.shape[1])]  # rows of K, and where their columns end
        if p > MOST_COLUMNS and np.array_equal(kept, np.arange(p)):
            starts = range(0, p, COLUMNS_AT_ONCE)
            ends = [min(start + COLUMNS_AT_ONCE, p) for start in starts]
            self.parts = [(*one, one[1]) for one in zip(starts, ends, strict=True)]
            self.parts.append((p, p + 1, p))

    def __call__(self, block: FloatArray, out: FloatArray) -> None:
        """Write the features, and the score, of a block's rows into columns."""
        for start, stop, end in self.parts:
            np.dot(self.matrix[start:stop, :end], block[:, :end].T, out=out[start:stop])


class _Whitened:
    """Adds up what a map makes of one thread's blocks.

    x has a column for each row of a block: p features w·f; then the score, in whose place the
    residual comes, or Newton's constant; and, beside a residual, the constant last.
    """

    def __init__(self, form: WaveForm, rows: Rows, folded: bool) -> None:
        chart = self.chart = form.chart
        self.form, self.everybody = form, reaches_all(chart, rows.encoder.reach)
        weight, self.constant = 1.0, 0.0
        if isinstance(chart, ResidualMap):
            weight, self.constant = chart.feature_scale, chart.constant
        elif isinstance(chart, NewtonMap):
            weight, self.constant = chart.scale
        self.linear = _Linear(form, rows, folded, weight)
        p, at_once = self.linear.p, rows.encoder.at_once
        self.height = p + 1 if isinstance(chart, NewtonMap) else p + 2
        self.shift = np.array(np.broadcast_to(self.linear.shift[:, None], (p + 1, at_once)))
        self.x, self.weighted = np.empty((2, self.height * at_once))
        square = (self.height, self.height)
        self.gram, self.squares = np.zeros(square, order="F"), np.zeros(square, order="F")
        self.slopes = np.zeros(self.height)
        self.counts = np.zeros(form.width if isinstance(chart, GaugeMap) else 0)

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
    ) -> None:
        """Add what the rows of a block would send; `counted` says how much each of them counts, and
        `sizes` has the root mean squares of the features and errors of the person of each.
        """
        chart, p = self.chart, self.linear.p
        x, *measured = self.measure(block, target)
        f, score = x[:p], x[p]
        if isinstance(chart, NewtonMap):
            if isinstance(chart.loss, PoissonNewton):
                target = (target + 1) * (chart.loss.count_bound / 2)
            g, h = chart.loss.slopes(score, target)
            if not self.everybody:
                weight = 1 / np.maximum(1.0, np.einsum("ij,ij->j", f, f) + self.constant**2)
                g, h = g * weight, h * weight
            x[p] = self.constant
            self.slopes -= np.dot(x, g if counted is None else g * counted)
            self._add(self.gram, x, np.sqrt(h), counted)
            if chart.robust:
                self._add(self.squares, x, g, counted)
            return
        size, error = measured
        if isinstance(chart, GaugeMap):
            for places in chart.bins(size / math.sqrt(p), np.abs(error)):
                self.counts += np.bincount(places, minlength=chart.width)
            return
        self._add(self.gram, self._cut(x, size, error, sizes), None, counted)

    def residuals(
        self, block: FloatArray, target: FloatArray, sizes: FloatArray | None
    ) -> FloatArray:
        """Return z of a block's rows: features, error and constant."""
        x, size, error = self.measure(block, target)
        return self._cut(x, size, error, sizes)

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
        """Add Σ counted·weight²·xxᵀ."""
        if counted is not None:
            weight = np.sqrt(counted) * (1.0 if weight is None else weight)
        if weight is not None:
            weighted = self.weighted[: x.size].reshape(x.shape)
            x = np.multiply(x, weight, out=weighted)
        add_products(total, x)

    def totals(self) -> list[FloatArray]:
        """What this thread has found."""
        return [symmetric(self.gram), symmetric(self.squares), self.slopes, self.counts]

    def found(
        self, gram: FloatArray, squares: FloatArray, slopes: FloatArray, counts: FloatArray
    ) -> FloatArray:
        """Return the sums of all threads, as they are sent."""
        if isinstance(self.chart, GaugeMap):
            return counts
        if isinstance(self.chart, NewtonMap):
            return self.form.take(gram, slopes, squares if self.chart.robust else None)
        p = self.linear.p
        order = [p + 1, *range(p), p]  # the constant comes first, the error last
        return self.form.take(gram[np.ix_(order, order)])


class _Residuals:
    """Adds up the residuals of a map that reaches everybody, beside products that are known."""

    def __init__(self, form: WaveForm, rows: Rows, folded: bool) -> None:
        assert isinstance(form.chart, ResidualMap)
        self.form, self.chart, self.rows = form, form.chart, rows
        self.linear, self.folded = _Linear(form, rows, folded, 1.0), folded
        self.errors, self.total = np.zeros(2), np.zeros(self.linear.matrix.shape[1])

    def add(self, block: FloatArray, target: FloatArray, *_: FloatArray | None) -> None:
        """Add the residuals of a block's rows, and their products with its columns."""
        chart = self.chart
        error = np.dot(block, self.linear.matrix[-1])
        error += self.linear.shift[-1]
        np.subtract(target, error, out=error)
        error *= 1 / chart.scale
        np.clip(error, -chart.bound, chart.bound, out=error)
        error *= chart.target_scale
        self.errors += error.sum(), np.dot(error, error)
        self.total += np.dot(error, block)

    def totals(self) -> list[FloatArray]:
        """What this thread has found."""
        return [self.errors, self.total]

    def found(self, errors: FloatArray, total: FloatArray) -> FloatArray:
        """Return the sums of all threads, as they are sent."""
        chart, white, rows = self.chart, self.chart.whitening, self.rows
        p, joint = white.dimension, rows.joint
        if self.folded:  # Σe·v from Σe·x
            total = (total - rows.encoder.centre * errors[0]) * rows.encoder.slope
        kept = list(self.form.kept)
        count = float(rows.count)
        known = np.block(
            [
                [np.array([[count]]), joint.total[None, kept]],
                [joint.total[kept, None], joint.gram[np.ix_(kept, kept)]],
            ]
        )
        into = np.zeros((p + 1, p + 1))  # J
        into[0, 0], into[1:, 1:] = chart.constant, chart.feature_scale * white.matrix
        into[1:, 0] = -into[1:, 1:] @ white.mean
        products = into @ known @ into.T
        slopes = into @ np.append(errors[0], total[rows.encoder.order][kept])
        ends = np.append(slopes, errors[1])
        return self.form.take(np.block([[products, slopes[:, None]], [ends[None]]]))
