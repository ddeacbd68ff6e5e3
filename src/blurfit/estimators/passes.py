"""Sums over all rows of a table, in one pass a wave, at the speed of BLAS.

Each block of rows is centred by the public bounds, clipped to [−1, 1] and multiplied while it is in
the processor's cache; no encoded table is held.

    rows ─ encode ─► v ─ `joint` ─► Σ(1, v, t)(1, v, t)ᵀ
                     └── `sums` ──► (f | score) = Kv + k ─► weights ─► Σ of what a map sends

Two shortcuts follow from the first wave. If no value lay outside its bounds, x ↦ v is a part of
the map's matrix (`Rows.folded`). Rows whose weight s is 1, by public facts or by their length, need
only their residuals, since their features' products are known (`Residuals`).

Δ keeps back 2⁻¹² for rounding that one record may change in all others. Folding may use 2⁻¹⁶ of it
and known products 2⁻¹⁴, or they are not used; how rows are parted depends on their number alone.
For persons with several rows, n people with k columns move sums by n(k + 8)·2⁻⁵⁰ times the reach of
the bounds in r√p: that this product is below 2³⁷ is a condition of the guarantee, and not checked.
Proofs: `docs/theory/rows.md`.
Tests: `tests/estimators/test_one_pass.py`, `test_people.py`.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from blurfit import randomness as noise
from blurfit.agreement.agreement import Agreement
from blurfit.data import AnyArray, FloatArray, IntArray
from blurfit.errors import InfeasibleError
from blurfit.estimators.blocks import (
    MOST_COLUMNS,
    Encoder,
    Linear,
    Residuals,
    Screen,
    Whitened,
    add_products,
    far,
    reaches_all,
    squares_beside,
    symmetric,
)
from blurfit.estimators.people import People, every
from blurfit.learning.sums import Totals
from blurfit.schema.columns import Feature
from blurfit.simulation import generator_for, sampler_for
from blurfit.theory.coded import CodedForm
from blurfit.theory.forms import JointForm, WaveForm
from blurfit.theory.maps import NewtonMap, PoissonNewton, ResidualMap, WaveMap

Found = TypeVar("Found")

BLOCKS_AT_ONCE = 16  # that one thread takes

LEAST = 2.0**-16  # of what Δ keeps back, for rounding that is not public,

MOST_KNOWN = 2.0**-14  # and for that of known products

FEW_LEFT_OUT = 2  # every how many-th row a wave reads, if lengths of all rows are found for it

MOST_FAR = 0.25  # of the rows, which may be beyond the radius if known products are to help


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

    Attributes:
        places: of the values that are read, where some are left out.
        source: the rows of which these are some, if most of them will be read anyway.
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
    places: IntArray | None = None
    # not handed on by `replace`: other values have other lengths
    source: "Rows | None" = field(default=None, init=False)
    known_lengths: Lengths | None = field(default=None, init=False)

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
        return len(self.targets) if self.people is None else self.people.count

    @cached_property
    def encoder(self) -> "Encoder":
        """What makes v of the values."""
        return Encoder.of(self.values, self.columns, self.people, self.features)

    def every(self, stride: int) -> "Rows":
        """Return one of each k rows, or the rows of one of each k people; what is known of all, is
        known of them.
        """
        if stride == 1:
            return self
        places, whose = every(len(self.targets), self.people, stride)
        own = places if self.places is None else self.places[places]
        scales = None if self.scales is None else self.scales[places]
        rows = replace(self, targets=self.targets[places], people=whose, scales=scales, places=own)
        rows.source = self if stride <= FEW_LEFT_OUT and self.places is None else None
        return rows

    def read(self, part: slice | AnyArray) -> AnyArray:
        """Return the values of some of the rows."""
        if self.places is None:
            return self.values[part]
        if self.values.flags.c_contiguous:  # of others `take` would copy all
            return self.values.take(self.places[part], axis=0)
        return self.values[self.places[part]]

    def weights(self, part: slice) -> FloatArray | None:
        """Return how much each row counts, if not 1."""
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
            beside = np.vstack([np.ones(len(t)), t.T])  # (1, t), in columns
            weighted = beside if w is None else beside * w
            gram, cross, inside = np.zeros((k, k), order="F"), np.zeros((m + 1, k)), True
            room = np.empty((encoder.at_once, k), order=encoder.layout)
            for rows, v, fits in encoder.blocks(self.read(part)):
                inside &= fits
                # `np.dot` lets other threads run, unlike `@`
                gram = add_products(gram, v.T, None if w is None else w[rows], room[: len(v)].T)
                cross += np.dot(weighted[:, rows], v)
            return [gram, cross, np.dot(weighted, beside.T), np.array(float(not inside))]

        gram, cross, squares, outside = added(self.in_parts(sums_of))
        self.inside = not outside
        back = encoder.order
        gram, cross = symmetric(gram)[np.ix_(back, back)], cross[:, back]
        return JointTotals(gram, cross[0], cross[1:].T, squares[1:, 1:], squares[0, 1:])

    def sums(self, form: WaveForm) -> FloatArray:
        """Return the sums of what the rows, or the people, of a later wave would send.

        Where a map cuts a person's rows together, a first pass finds how long they are.
        """
        chart, folded, sizes = form.chart, self.folded(form.chart), None
        linear, about = Linear(form, self, folded), self.lengths(form)
        kind = Residuals if self._knows_products(form, about) else Whitened
        error = math.nan if about is None else about.error
        if self.people is not None and not form.is_newton:
            sizes = self._sizes(form, self.people, folded=folded)[:, self.people.codes]

        def sums_of(part: slice) -> list[FloatArray]:
            work = kind(form, self, linear, error)
            t, w = self.targets[part, 0], self.weights(part)
            for rows, block in self.blocks(part, folded=folded):
                each = None if sizes is None else sizes[:, part][:, rows]
                own = None if about is None else about.sizes[part][rows]
                work.add(block, t[rows], None if w is None else w[rows], each, about=own)
            return work.totals()

        found = added(self.in_parts(sums_of))
        sent = kind(form, self, linear, error).found(*found)
        if not chart.robust or squares_beside(chart, self):
            return sent
        return np.append(sent, self.every(getattr(chart, "stride", 1))._squares(form))

    def _squares(self, form: WaveForm) -> FloatArray:
        """Σppᵀ as it is sent, p = g·x of each row, or its mean over the rows of each person."""
        p, folded, sizes = len(form.kept), self.folded(form.chart), None
        linear, height = Linear(form, self, folded), p + (1 if form.is_newton else 2)
        if self.people is not None and not form.is_newton:
            sizes = self._sizes(form, self.people, folded=folded)[:, self.people.codes]

        def sums_of(part: slice) -> FloatArray:
            work, t = Whitened(form, self, linear), self.targets[part, 0]
            total = np.zeros((height, height), order="F")
            each = np.empty((height, 0 if self.people is None else len(t)))
            for rows, block in self.blocks(part, folded=folded):
                own = None if sizes is None else sizes[:, part][:, rows]
                slopes = work.slopes_of(block, t[rows], own)
                if self.people is None:
                    total = add_products(total, slopes, None, np.empty_like(slopes))
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
        """Return the root mean squares of ‖w·f‖ and g over the rows of each person: (2, count)."""
        linear = Linear(form, self, folded)

        def squares_of(part: slice) -> FloatArray:
            work, t = Whitened(form, self, linear), self.targets[part, 0]
            found = np.empty((2, len(t)))
            for rows, block in self.blocks(part, folded=folded):
                _, size, error = work.measure(block, t[rows])
                found[:, rows] = size * size, error * error
            return found

        each = np.hstack(list(self.in_parts(squares_of)))
        return np.sqrt(people.means(each.T).T)

    def folded(self, chart: WaveMap) -> bool:
        """Tell whether blocks are multiplied as they are, x ↦ v being part of the map's matrix."""
        encoder = self.encoder
        if not (self.inside and encoder.folds and self.values.dtype == np.float64):
            return False
        if isinstance(chart, ResidualMap):
            unit = chart.scale * chart.bound
        elif isinstance(chart, NewtonMap) and not isinstance(chart.loss, PoissonNewton):
            unit = 1.0
        else:
            return False
        n, d = len(self.targets), self.values.shape[1]
        white, shift = chart.whitening, float(np.max(np.abs(encoder.centre * encoder.slope)))
        score = (float(np.abs(white.coefficients).sum()) + abs(white.intercept)) / unit
        moved = (d + 2) * 2.0**-53 * (1 + 2 * shift) * (far(chart, encoder.reach) + score)
        return bool(16 * n * moved <= LEAST)

    def blocks(self, part: slice, *, folded: bool) -> Iterator[tuple[slice, FloatArray]]:
        """Yield each block's rows, and its columns v, or the values as they are."""
        if not folded:
            yield from ((rows, v) for rows, v, _ in self.encoder.blocks(self.read(part)))
            return
        start, stop, _ = part.indices(len(self.targets))
        for rows in self.encoder.slices(stop - start):
            yield rows, self.read(slice(start + rows.start, min(start + rows.stop, stop)))

    def lengths(self, form: WaveForm) -> "Lengths | None":
        """Return how long the features of each row are, where single precision tells what is of
        use.

        Waves that whiten alike share it: what was found is remembered.
        """
        chart, source = form.chart, self.source
        known = "joint" in self.__dict__ and self.alike  # without which a length is of no use
        if isinstance(chart, ResidualMap) and (reaches_all(chart) or not known):
            return None
        if source is not None:
            found = source.lengths(form)
            return None if found is None else found._replace(sizes=found.sizes[self.places])
        few = self.values.shape[1] <= MOST_COLUMNS
        if few or self.people is not None or not isinstance(chart, ResidualMap):
            return None
        exact = self.values.dtype == np.float64 and self.encoder.folds and self.inside
        screen, typical = Screen(form, self, folded=exact), math.sqrt(len(form.kept))
        if not screen.error < (chart.radius - 1) * typical:
            return None
        white, last = chart.whitening, self.known_lengths
        same = last is not None and np.array_equal(last.matrix, white.matrix)
        if last is None or not same or not np.array_equal(last.mean, white.mean):
            blocks = self.blocks(slice(None), folded=exact)
            sizes = np.concatenate([screen(block) for _, block in blocks])
            last = self.known_lengths = Lengths(sizes, screen.error, white.matrix, white.mean)
        return last

    def _knows_products(self, form: WaveForm, about: "Lengths | None") -> bool:
        """Tell whether the products of all rows that are not cut follow from what is known."""
        chart = form.chart
        if not (isinstance(chart, ResidualMap) and "joint" in self.__dict__ and self.alike):
            return False
        if about is None:
            return reaches_all(chart)
        n, p, most = len(self.targets), len(form.kept), BLOCKS_AT_ONCE * self.encoder.at_once
        longest = chart.constant**2 + (chart.feature_weight * far(chart)) ** 2
        if 8 * (most + n / most + 2 * p) * n * 2.0**-53 * longest > MOST_KNOWN:
            return False
        reach = chart.radius * math.sqrt(p) - about.error
        return bool(np.mean(about.sizes > reach) <= MOST_FAR)

    def in_parts(self, function: Callable[[slice], Found]) -> Iterator[Found]:
        """Return what a function finds of parts of the rows, on all cores; a few take no thread."""
        n, d = len(self.targets), self.values.shape[1]
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
        if not total:
            total = [*part]
            continue
        for one, other in zip(total, part, strict=True):
            np.add(one, other, out=one)
    return total


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover


def blurred(agreement: Agreement, clean: Totals, random_state: Any) -> Totals:
    """Return the sums with the noise of as many contributors as the quorum, drawn at once.

    For people: exact discrete Gaussian noise on the agreement's grid, as each of them would have
    drawn it, for all together. Rounding the sums to the grid moves two neighbours apart by no more
    than rounding the records would. For experiments (a seed): the sampler's own draw.
    """
    if random_state is not None:
        return sampler_for(agreement, clean).draw(generator_for(random_state))
    (part,) = agreement.parts
    deviations = part.deviations * math.sqrt(clean.count)
    sums = exactly(clean.sums, deviations, part.step)
    return Totals(clean.count, sums, clean.fingerprint)


def require_room(agreement: Agreement, rows: int) -> None:
    """Refuse a fit to so many rows that their sums could leave the range of exact noise.

    From public facts alone: whether that happens must not depend on the rows. A number that counts
    c times in the squared norm is at most bound/√c, and the sum of n at most n times that.
    """
    (part,) = agreement.parts
    if rows * part.bound / math.sqrt(part.counts.min()) >= noise.MOST_STEPS / 2 * part.step:
        raise InfeasibleError(
            f"Expected fewer than {rows:,} rows with epsilon={agreement.epsilon:g}: their sums "
            "could exceed 2**51 steps of the noise, beyond which it is not exact. Take a smaller "
            "epsilon, or per_record=True."
        )


def exactly(sums: FloatArray, scale: npt.ArrayLike, step: float) -> FloatArray:
    """Return sums to the grid, and exact noise on it."""
    return noise.add(noise.to_grid(sums, step, toward_zero=False), scale, step)


def clean_moment_totals(agreement: Agreement, rows: Rows) -> Totals:
    """Return the sums of what the rows, or the people, would send, in one pass and before any
    noise.
    """
    form, count = agreement.form, rows.count
    if isinstance(form, WaveForm):
        return Totals(count, rows.sums(form), agreement.fingerprint)
    joint = form.inner if isinstance(form, CodedForm) else form
    assert isinstance(joint, JointForm)
    matrix = rows.joint.matrix(rows.weight) * np.outer(joint.scale, joint.scale)
    return Totals(count, joint.take(matrix), agreement.fingerprint)
