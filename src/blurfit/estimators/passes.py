"""Sums over all rows of a table, a block at a time.

Each block of rows is centred by the public bounds, clipped to [−1, 1] and summed while it is in the
processor's cache; no encoded table is held.

    rows ─ encode ─► v ─ `joint` ─► Σ(1, v, t)(1, v, t)ᵀ
                     └── `sums` ──► Σ of what a later wave's form makes of each row, or person

There is one path. It depends on the number of rows and columns, and on no value.

**Rounding is private.** Δ keeps back 2⁻¹² for rounding that one record may change in all others.
Encoding works element by element, and so do features of persons' rows, so no bit of a row's numbers
depends on other rows. What is left is the order of additions: sums of blocks are compensated, so up
to `LARGEST_COUNT` rows, or persons with any number of rows, move by less than 2⁻¹³ of Δ; more are
refused before anything is spent. Proofs: `docs/theory/rows.md`.
Tests: `tests/estimators/test_one_pass.py`, `test_people.py`.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from blurfit import randomness as noise
from blurfit.agreement.agreement import Agreement
from blurfit.data import AnyArray, FloatArray, IntArray
from blurfit.errors import InfeasibleError
from blurfit.estimators.blocks import Encoder
from blurfit.estimators.people import People, every
from blurfit.learning.sums import Totals
from blurfit.schema.columns import Feature
from blurfit.simulation import generator_for, sampler_for
from blurfit.theory.coded import CodedForm
from blurfit.theory.forms import JointForm, WaveForm

Sums = TypeVar("Sums")

BLOCKS_AT_ONCE = 16  # that one thread takes
MAX_COLUMNS = 64  # that one thread takes; rows of more are left to BLAS and its own threads
# Rows or people. (3,840 + 20)·2⁻⁵²·10⁸ is below 2⁻¹³: docs/theory/rows.md.
LARGEST_COUNT = 10**8


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
        features: what v are, where some are derived from the columns.
        scales: how much each row counts in `joint`, from 0 to 1, if rows have weights of their own.

    Attributes:
        places: of the values that are read, where some are left out.

    >>> from blurfit import Numeric
    >>> rows = Rows(np.array([[25], [130]]), np.array([[1.0], [0.5]]), [Numeric("age", 0, 100)])
    >>> rows.joint.matrix(2).tolist()
    [[2.0, 0.5, 1.5], [0.5, 1.25, 0.0], [1.5, 0.0, 1.25]]
    """

    values: AnyArray
    targets: FloatArray
    columns: Sequence[Feature]
    people: People | None = None
    features: Sequence[Feature] | None = None
    scales: FloatArray | None = None
    places: IntArray | None = None

    @property
    def weight(self) -> float:
        """How much weight there is in all: the count, if nobody has a weight of their own."""
        return float(self.count if self.scales is None else self.scales.sum())

    @property
    def count(self) -> int:
        """How many rows there are, or people whose rows count as one together."""
        return len(self.targets) if self.people is None else self.people.count

    @cached_property
    def encoder(self) -> Encoder:
        """What makes v of the values."""
        return Encoder.of(self.values, self.columns, self.people, self.features)

    def every(self, stride: int) -> "Rows":
        """Return one of each k rows, or the rows of one of each k people."""
        if stride == 1:
            return self
        places, people = every(len(self.targets), self.people, stride)
        own = places if self.places is None else self.places[places]
        scales = None if self.scales is None else self.scales[places]
        targets = self.targets[places]
        return replace(self, targets=targets, people=people, scales=scales, places=own)

    @cached_property
    def joint(self) -> JointTotals:
        """The sums over all rows of the products of their columns v and targets t."""
        weights = self.scales if self.people is None else self.people.weights
        k = 1 + self.encoder.width

        def products(rows: slice, v: FloatArray) -> FloatArray:
            z = np.empty((len(v), k + self.targets.shape[1]))
            z[:, 0], z[:, 1:k], z[:, k:] = 1.0, v, self.targets[rows]
            if weights is not None:
                z *= np.sqrt(weights[rows])[:, None]
            return np.asarray(np.dot(z.T, z))  # lets other threads run, unlike `@`

        total = self._total(products)
        total = (total + total.T) / 2
        gram, cross = total[1:k, 1:k], total[1:k, k:]
        return JointTotals(gram, total[0, 1:k], cross, total[k:, k:], total[0, k:])

    def sums(self, form: WaveForm) -> FloatArray:
        """Return the sums of what the rows, or the people, of a later wave would send."""
        chart, sizes = form.chart, self._sizes(form)
        if not chart.robust or (self.people is None and chart.stride == 1):
            return self._sums(form, sizes)
        part, plain = self.every(chart.stride), replace(form, chart=replace(chart, robust=False))
        if self.people is None:
            squares = part._sums(form, None)[form.of_squares]
        else:
            squares = part._squares(form, sizes if part is self else part._sizes(form))
        return np.append(self._sums(plain, sizes), squares)

    def _sizes(self, form: WaveForm) -> FloatArray | None:
        """Return the root mean squares of ‖f‖/√p and g over the rows of the person of each row, if
        a map clips these together: (2, n).
        """
        people = self.people
        if people is None or form.is_newton:
            return None
        each = np.empty((2, len(self.targets)))

        def measure(part: slice) -> None:
            for rows, v in self._blocks(part):
                each[:, rows] = form.sizes(v, self.targets[rows, 0])

        for _ in self._in_parts(measure):
            pass
        return people.root_mean_squares(each.T).T[:, people.codes]

    def _sums(self, form: WaveForm, sizes: FloatArray | None) -> FloatArray:
        weights = None if self.people is None else self.people.weights

        def sums_of(rows: slice, v: FloatArray) -> FloatArray:
            own = None if weights is None else weights[rows]
            person = None if sizes is None else sizes[:, rows]
            return form.sums(v, self.targets[rows, 0], own, person)

        return self._total(sums_of)

    def _squares(self, form: WaveForm, sizes: FloatArray | None) -> FloatArray:
        """Return Σppᵀ as it is sent, p the mean of g·x over the rows of each person."""
        assert self.people is not None
        codes, weights = self.people.codes, self.people.weights
        means = np.zeros((len(form.kept) + 1, self.count))
        for part in self._parts():
            for rows, v in self._blocks(part):
                person = None if sizes is None else sizes[:, rows]
                slopes = form.slopes(v, self.targets[rows, 0], person) * weights[rows]
                for mean, slope in zip(means, slopes, strict=True):
                    np.add.at(mean, codes[rows], slope)
        at_once = self.encoder.at_once
        blocks = (means[:, at : at + at_once] for at in range(0, self.count, at_once))
        return form.take_squares(added(np.dot(one, one.T) for one in blocks))

    def _total(self, function: Callable[[slice, FloatArray], FloatArray]) -> FloatArray:
        """Add up what a function makes of the rows and the columns v of each block."""

        def total_of(part: slice) -> FloatArray:
            return added(function(rows, v) for rows, v in self._blocks(part))

        return added(self._in_parts(total_of))

    def _blocks(self, part: slice) -> Iterator[tuple[slice, FloatArray]]:
        """Yield each block's rows, and its columns v."""
        for rows, v in self.encoder.blocks(self._read(part)):
            start = part.start + rows.start
            yield slice(start, start + len(v)), v

    def _read(self, part: slice) -> AnyArray:
        """Return the values of some of the rows."""
        if self.places is None:
            return self.values[part]
        if self.values.flags.c_contiguous:  # of others `take` would copy all
            return self.values.take(self.places[part], axis=0)
        return self.values[self.places[part]]

    def _parts(self) -> list[slice]:
        n, stride = len(self.targets), BLOCKS_AT_ONCE * self.encoder.at_once
        return [slice(start, min(start + stride, n)) for start in range(0, n, stride)]

    def _in_parts(self, function: Callable[[slice], Sums]) -> Iterator[Sums]:
        """Return what a function finds of parts of the rows, on all cores; a few take no thread."""
        parts = self._parts()
        few = self.values.shape[1] <= MAX_COLUMNS
        threads = min(len(parts), usable_cores()) if few else 1
        if threads == 1:
            yield from map(function, parts)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(function, parts)


def added(parts: Iterable[FloatArray]) -> FloatArray:
    """Add arrays in their order, and what each addition rounded away (Ogita, Rump and Oishi 2005,
    algorithm 4.4): right to the last bits, however many there are.
    """
    total, lost = np.zeros(()), np.zeros(())
    for part in parts:
        new = total + part
        back = new - total
        lost = lost + ((total - (new - back)) + (part - back))
        total = new
    return np.asarray(total + lost)


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
    refuse_too_many(rows)


def refuse_too_many(rows: int) -> None:
    """Refuse more rows, or people, than rounding is paid for; their number is public."""
    if rows > LARGEST_COUNT:
        raise InfeasibleError(
            f"Expected at most {LARGEST_COUNT:,} rows, or people with any number of rows, and got "
            f"{rows:,}: rounding of more could exceed what the guarantee keeps back for it. Fit a "
            "random sample of them, whose size is public."
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
