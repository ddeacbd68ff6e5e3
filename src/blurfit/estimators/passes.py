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
* With many columns so are the products of all rows with ‖f‖ ≤ r√p, whose s is 1 too: Σ(1, v)(1, v)ᵀ
  of the others is taken off (`_Residuals`). Which rows these are is told in single precision.

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

**Known products are private, and so is their rounding.** A sum of up to N rows of a part, added up
over n/N parts, is wrong by at most (N + n/N)·2⁻⁵³ of Σ|u||u|ᵀ, in whatever order; J makes of it at
most n·L², L² = c² + (a·‖ |W|(1 + |m|) ‖/(r√p))², and adds 2p roundings. This is so for what is
known and for what is taken off, with another record in the place of one as without it: two
neighbours differ by 8(N + n/N + 2p)·2⁻⁵³·nL² besides what the record itself changes. If that is
more than 2⁻¹⁴, rows are whitened one and all.

**Single precision tells, and never adds.** Features that are computed with u = 2⁻²⁴ are off by at
most (p + 4)u·(1 + 2c)·‖ |W|(1 + |m|) ‖ in length (c as above; p + 1 products, and the rounding of
both factors), and their length by as much again at most. What is within this error of r√p, or of
the end of a gauge's bin, is computed in double precision. So weights and bins are what they are in
double precision, and depend on no other row. In *sums* of m numbers single precision is wrong by up
to m²·2⁻²⁴ (m·2⁻²⁴ of a sum of up to m), and another record may change how all the others are
rounded: for blocks of 256 rows already 2⁻⁸, where Δ keeps back 2⁻¹². In double precision that is
2⁻³⁷.

How the rows are parted depends on their number alone, and so does the rounding of the sums.
"""

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg.blas import dsyrk, strmm

from blurfit.data import AnyArray, FloatArray, IntArray
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
LEAST = 2.0**-16  # of what Δ keeps back, for rounding that is not public,
MOST_KNOWN = 2.0**-14  # and for that of known products
MOST_FAR = 0.25  # of the rows, which may be beyond the radius if known products are to help
FEW_LEFT_OUT = 2  # every how many-th row a gauge reads, if lengths of all rows are found for it


class Lengths(NamedTuple):
    """‖f‖ of each row up to an error, and the whitening W, m of which f is."""

    sizes: FloatArray
    error: float
    matrix: FloatArray
    mean: FloatArray


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
        source: the rows of which these are every k-th, and k, if most of them will be read anyway.
        known_lengths: what was found last of the rows' features.

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
    source: "tuple[Rows, int] | None" = None
    known_lengths: Lengths | None = None

    @property
    def weight(self) -> float:
        """How much weight there is in all: the count, if nobody has a weight of their own."""
        return float(self.count if self.scales is None else self.scales.sum())

    @property
    def alike(self) -> bool:
        """Whether every row counts 1, and by itself."""
        return self.people is None and self.scales is None

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
        source = (self, stride) if stride <= FEW_LEFT_OUT else None
        rows = replace(self, values=self.values[some], targets=self.targets[some], people=whose)
        rows.source, rows.known_lengths = source, None
        return rows

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

        def sums_of(part: slice) -> list[FloatArray]:
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
            return [gram, total, cross, squares, sums, np.array(float(not inside))]

        gram, total, cross, squares, sums, outside = added(self.in_parts(sums_of))
        self.inside = not outside
        back = encoder.order
        gram = symmetric(gram)[np.ix_(back, back)]
        return JointTotals(gram, total[back], cross[back], squares, sums)

    def sums(self, form: WaveForm) -> FloatArray:
        """The sums of what the rows, or the people, of a later wave would send.

        Where a map cuts a person's rows together, a first pass finds how long they are.
        """
        chart, folded, sizes = form.chart, self.folded(form.chart), None
        linear, about = _Linear(form, self, folded), self.lengths(form)
        kind = _Residuals if self._knows_products(form, about) else _Whitened
        error = math.nan if about is None else about.error
        if self.people is not None and not form.is_newton:
            sizes = self._sizes(form, self.people, folded=folded)
            if isinstance(chart, GaugeMap):
                places = chart.bins(sizes[0] / math.sqrt(chart.whitening.dimension), sizes[1])
                return (
                    np.asarray(sum(np.bincount(one, minlength=form.width) for one in places)) * 1.0
                )
            sizes = sizes[:, self.people.codes]

        def sums_of(part: slice) -> list[FloatArray]:
            work = kind(form, self, linear, error)
            t, w = self.targets[part, 0], self.weights(part)
            for rows, block in self.blocks(part, folded=folded):
                each = None if sizes is None else sizes[:, part][:, rows]
                own = None if about is None else about.sizes[part][rows]
                work.add(block, t[rows], None if w is None else w[rows], each, about=own)
            return work.totals()

        sent = kind(form, self, linear, error).found(*added(self.in_parts(sums_of)))
        if not chart.robust or squares_beside(chart, self):
            return sent
        return np.append(sent, self.every(getattr(chart, "stride", 1))._squares(form))

    def _squares(self, form: WaveForm) -> FloatArray:
        """Σppᵀ as it is sent, p = g·x of each row, or its mean over the rows of each person."""
        p, folded, sizes = len(form.kept), self.folded(form.chart), None
        linear, height = _Linear(form, self, folded), p + (1 if form.is_newton else 2)
        if self.people is not None and not form.is_newton:
            sizes = self._sizes(form, self.people, folded=folded)[:, self.people.codes]

        def sums_of(part: slice) -> FloatArray:
            work, t = _Whitened(form, self, linear), self.targets[part, 0]
            total = np.zeros((height, height), order="F")
            each = np.empty((height, 0 if self.people is None else len(t)))
            for rows, block in self.blocks(part, folded=folded):
                own = None if sizes is None else sizes[:, part][:, rows]
                slopes = work.slopes_of(block, t[rows], own)
                if self.people is None:
                    total = add_products(total, slopes)
                else:
                    each[:, rows] = slopes
            return total if self.people is None else each

        if self.people is None:
            (total,) = added([part] for part in self.in_parts(sums_of))
            total = symmetric(total)
        else:
            means = self.people.means(np.hstack(list(self.in_parts(sums_of))).T)
            total = means.T @ means
        order = [*range(p + 1)] if form.is_newton else [p + 1, *range(p)]  # where the constant is
        return form.take_squares(total[np.ix_(order, order)])

    def _sizes(self, form: WaveForm, people: People, *, folded: bool) -> FloatArray:
        """The root mean squares of ‖w·f‖ and g over the rows of each person: (2, count)."""
        linear = _Linear(form, self, folded)

        def squares_of(part: slice) -> FloatArray:
            work, t = _Whitened(form, self, linear), self.targets[part, 0]
            found = np.empty((2, len(t)))
            for rows, block in self.blocks(part, folded=folded):
                _, size, error = work.measure(block, t[rows])
                found[:, rows] = size * size, error * error
            return found

        each = np.hstack(list(self.in_parts(squares_of)))
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

    def lengths(self, form: WaveForm) -> "Lengths | None":
        """How long the features of each row are, where single precision tells what is of use.

        A gauge and the wave after it whiten alike: what was found is remembered.
        """
        chart, source = form.chart, self.source
        known = "joint" in self.__dict__ and self.alike  # without which a length is of no use
        if isinstance(chart, ResidualMap) and (reaches_all(chart) or not known):
            return None
        if source is not None:
            found = source[0].lengths(form)
            return None if found is None else found._replace(sizes=found.sizes[:: source[1]])
        few = self.values.shape[1] <= MOST_COLUMNS
        if few or self.people is not None or not isinstance(chart, ResidualMap | GaugeMap):
            return None
        exact = self.values.dtype == np.float64 and self.encoder.folds and self.inside
        screen, typical = _Screen(form, self, folded=exact), math.sqrt(len(form.kept))
        radius = 1 + 2.0**-9 if isinstance(chart, GaugeMap) else chart.radius
        if not screen.error < (radius - 1) * typical:
            return None
        white, last = chart.whitening, self.known_lengths
        same = last is not None and np.array_equal(last.matrix, white.matrix)
        if last is None or not same or not np.array_equal(last.mean, white.mean):
            blocks = self.blocks(slice(None), folded=exact)
            sizes = np.concatenate([screen(block) for _, block in blocks])
            last = self.known_lengths = Lengths(sizes, screen.error, white.matrix, white.mean)
        return last

    def _knows_products(self, form: WaveForm, about: "Lengths | None") -> bool:
        """Whether the products of all rows that are not cut follow from what is known."""
        chart = form.chart
        if not (isinstance(chart, ResidualMap) and "joint" in self.__dict__ and self.alike):
            return False
        if about is None:
            return reaches_all(chart)
        n, p, most = len(self.values), len(form.kept), BLOCKS_AT_ONCE * self.encoder.at_once
        longest = chart.constant**2 + (chart.feature_weight * far(chart)) ** 2
        if 8 * (most + n / most + 2 * p) * n * 2.0**-53 * longest > MOST_KNOWN:
            return False
        reach = chart.radius * math.sqrt(p) - about.error
        return bool(np.mean(about.sizes > reach) <= MOST_FAR)

    def in_parts(self, function: Callable[[slice], Found]) -> Iterator[Found]:
        """What a function finds of parts of the rows, on all cores; a few take no thread."""
        n, d = self.values.shape
        stride = BLOCKS_AT_ONCE * self.encoder.at_once
        parts = [slice(start, start + stride) for start in range(0, n, stride)]
        threads = min(len(parts), usable_cores()) if d <= MOST_COLUMNS else 1
        if threads == 1:
            yield from map(function, parts)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(function, parts)


def added(parts: Iterable[Sequence[FloatArray]]) -> list[FloatArray]:
    """Add what was found of each part, in their order, and hold no more than one of them."""
    total: list[FloatArray] = []
    for part in parts:
        total = [one + other for one, other in zip(total, part, strict=True)] if total else [*part]
    return total


def every(people: People | None, stride: int) -> tuple[slice | AnyArray, People | None]:
    """Every k-th row, or the rows of every k-th person; and whose they are."""
    return (slice(None, None, stride), None) if people is None else people.every(stride)


def squares_beside(chart: Announced, rows: Rows) -> bool:
    """Whether squares are added in the same pass: all rows send them, each for itself."""
    all_rows = getattr(chart, "stride", 1) == 1 and rows.people is None
    return chart.robust and all_rows and (isinstance(chart, NewtonMap) or rows.alike)


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


def farthest(chart: Announced, largest: float = 1.0) -> float:
    """‖ |W|(1 + |m|) ‖, which is at least the largest ‖f‖ of records with |v| ≤ 1, or `largest`."""
    white = chart.whitening
    return float(np.linalg.norm(np.abs(white.matrix) @ (largest + np.abs(white.mean))))


def far(chart: Announced, largest: float = 1.0) -> float:
    """How far that is in r√p."""
    radius = getattr(chart, "radius", 0.0) * math.sqrt(chart.whitening.dimension)
    return farthest(chart, largest) / radius if radius else math.inf


def reaches_all(chart: Announced, largest: float = 1.0) -> bool:
    """Whether every record has the weight 1, by public facts alone."""
    return far(chart, largest) <= 1 + 2.0**-30


class _Linear:
    """Kx + k of blocks: features of weight w, W being triangular, and the score last."""

    def __init__(self, form: WaveForm, rows: Rows, folded: bool) -> None:
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

    def scores(self, block: FloatArray) -> FloatArray:
        """The score alone of a block's rows."""
        return np.asarray(np.dot(block, self.matrix[-1]) + self.shift[-1])


class _Screen:
    """‖f‖ of a block's rows in single precision, twice as fast, and by how much it can be wrong.

    (1, x) ↦ (1, Kx + k) is triangular, so one product in place has all of it.
    """

    def __init__(self, form: WaveForm, rows: Rows, *, folded: bool) -> None:
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
        """The lengths, each within `error` of what it is."""
        rows = self.rows[: len(block)]
        rows[:, 0], rows[:, 1:] = 1.0, block if self.whole else block[:, self.kept]
        f = strmm(1.0, self.matrix, rows.T, lower=1, overwrite_b=1).T[:, 1:]
        squares = np.einsum("ij,ij->i", f, f)
        return np.asarray(np.sqrt(squares, dtype=np.float64))


class _Whitened:
    """Adds up what a map makes of one thread's blocks.

    x has a column for each row of a block: p features w·f; then the score, in whose place the
    residual comes, or Newton's constant; and, beside a residual, the constant last.
    """

    def __init__(
        self, form: WaveForm, rows: Rows, linear: _Linear, error: float = math.nan
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
        about: FloatArray | None = None,
    ) -> None:
        """Add what the rows of a block would send; `counted` says how much each of them counts, and
        `sizes` has the root mean squares of the features and errors of the person of each; `about`
        is how long the features of each are, up to an error.
        """
        chart, p = self.chart, self.linear.p
        if isinstance(chart, GaugeMap):
            for places in self._places(chart, block, target, about):
                self.counts += np.bincount(places, minlength=chart.width)
            return
        if isinstance(chart, NewtonMap):
            x, g, h = self.newton(block, target)
            self.slopes -= np.dot(x, g if counted is None else g * counted)
            self._add(self.gram, x, np.sqrt(h), counted)
            if self.beside:
                self._add(self.squares, x, g, counted)
            return
        x, size, error = self.measure(block, target)
        self._add(self.gram, self._cut(x, size, error, sizes), None, counted)
        if self.beside:
            self._add(self.squares, x, x[p] / chart.target_weight, counted)

    def _places(
        self, chart: GaugeMap, block: FloatArray, target: FloatArray, about: FloatArray | None
    ) -> tuple[IntArray, ...]:
        """The bins of a block's rows; those at the end of one are measured, each by itself, so that
        no row's bin depends on another row.
        """
        root = math.sqrt(self.linear.p)
        if about is None:
            _, size, error = self.measure(block, target)
            return chart.bins(size / root, np.abs(error))
        ends = chart.features[:-1] * root
        low, high = (ends.searchsorted(about + sign * self.error) for sign in (-1, 1))
        sizes = about.copy()
        for row in np.flatnonzero(low != high):
            sizes[row] = self.measure(block[row : row + 1], target[row : row + 1])[1][0]
        error = np.abs(target - self.linear.scores(block)) / chart.scale
        return chart.bins(sizes / root, error)

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
        """Add Σ counted·weight²·xxᵀ."""
        if counted is not None:
            weight = np.sqrt(counted) * (1.0 if weight is None else weight)
        if weight is not None:
            weighted = self.weighted[: x.size].reshape(x.shape)
            x = np.multiply(x, weight, out=weighted)
        add_products(total, x)

    def totals(self) -> list[FloatArray]:
        """What this thread has found."""
        return [self.gram, self.squares, self.slopes, self.counts]

    def found(
        self, gram: FloatArray, squares: FloatArray, slopes: FloatArray, counts: FloatArray
    ) -> FloatArray:
        """Return the sums of all threads, as they are sent."""
        if isinstance(self.chart, GaugeMap):
            return counts
        gram = symmetric(gram)
        if isinstance(self.chart, NewtonMap):
            return self.form.take(gram, slopes, symmetric(squares) if self.beside else None)
        squared = self.ordered(symmetric(squares))[:-1, :-1] if self.beside else None
        return self.form.take(self.ordered(gram), squares=squared)

    def ordered(self, gram: FloatArray) -> FloatArray:
        """A residual map's sums as they are sent: the constant comes first, the error last."""
        p = self.linear.p
        order = [p + 1, *range(p), p]
        return gram[np.ix_(order, order)]


class _Products:
    """Adds up Σw²(1, v)(1, v)ᵀ of blocks of encoded rows."""

    def __init__(self, width: int) -> None:
        self.gram, self.total, self.count = (np.zeros((width,) * k, order="F") for k in (2, 1, 0))

    def add(self, v: FloatArray, weight: FloatArray) -> None:
        """Add a block's rows."""
        weighted = v * weight[:, None]
        self.gram = add_products(self.gram, weighted.T)
        self.total += np.dot(weight, weighted)
        self.count += np.dot(weight, weight)

    def totals(self) -> list[FloatArray]:
        """What this thread has found."""
        return [self.gram, self.total, self.count]


class _Residuals:
    """Adds up the residuals of rows that a map does not cut, beside products that are known.

    Of rows that it cuts, or may cut by what is known of their lengths, the products are taken off
    what is known, and what they send is added by itself.
    """

    def __init__(self, form: WaveForm, rows: Rows, linear: _Linear, error: float) -> None:
        assert isinstance(form.chart, ResidualMap)
        self.form, self.chart, self.rows, self.linear = form, form.chart, rows, linear
        self.reach = math.inf  # the length up to which no row is cut
        if not reaches_all(form.chart):
            self.reach = form.chart.radius * math.sqrt(linear.p) - error
        self.cut = _Whitened(form, rows, linear)  # what those rows send
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
            self.squares.add(self._encoded(block), error / chart.bound)
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
        """What this thread has found."""
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
