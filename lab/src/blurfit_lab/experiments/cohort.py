"""A table of people from which each trial takes a window, with the sums of any window at hand.

Rows are put into a random order once. A trial's n training rows are then a window of them that
starts at a random place (and goes on at the beginning when it reaches the end), its test rows are
the n/4 that follow, or all that remain if these are fewer. Least squares needs only the sums over
such windows, and these are differences of running sums over blocks of 32 rows: one pass over the
table serves all trials, all methods and all n.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.learning.sums import Statistics
from blurfit.schema.schema import Schema
from blurfit.simulation import Census, make_census
from blurfit.simulation.sampler import generator_for
from blurfit.theory import forms
from blurfit_lab.datasets import load_acs, load_ipums
from blurfit_lab.datasets.census import FILENAME
from blurfit_lab.rivals.rival import LogisticRisk, minimiser

BLOCK = 32  # rows; a quarter of the least n, 128
GENERATED_ROWS = 2**21 + 2**16
BLOCKS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class WindowSums:
    """Σxxᵀ, Σyx, Σy² and Σlx over some rows, where y is the number and l = ±1 the label."""

    count: int
    gram: FloatArray
    moment: FloatArray
    square: float
    label_moment: FloatArray

    def statistics(self, *, label: bool) -> Statistics:
        """What least squares of y, or of l, needs."""
        return Statistics(self.count, self.gram, self.label_moment if label else self.moment)

    def products(self, *, label: bool) -> FloatArray:
        """Σ(1, v)(1, v)ᵀ over the features' columns and y, or l, as joint moments take them: x is
        s·(v, 1), and Σs² tells s.
        """
        target = self.label_moment if label else self.moment
        square = float(self.count) if label else self.square
        scaled = np.append(target, square) / self.scale
        scaled[-1] = square
        gram = np.block([[self.gram / self.scale**2, scaled[:-1, None]], [scaled[None, :]]])
        order = [len(target) - 1, *range(len(target) - 1), len(target)]
        return np.asarray(gram[np.ix_(order, order)])

    @property
    def scale(self) -> float:
        """s, the value of the intercept's column."""
        return math.sqrt(self.gram[-1, -1] / self.count)

    def mean_squared_error(self, weights: FloatArray) -> float:
        """Mean of (y − w·x)² over these rows: (wᵀGw − 2c·w + Σy²)/n."""
        error = weights @ self.gram @ weights - 2 * self.moment @ weights + self.square
        return max(0.0, float(error) / self.count)

    def rmse(self, weights: FloatArray) -> float:
        """Root mean squared error for a target scaled to [0, 1]; here it is in [−1, 1]."""
        return math.sqrt(self.mean_squared_error(weights)) / 2


@dataclass(frozen=True)
class Window:
    """Where a trial trains and where it tests: places in the random order."""

    start: int
    count: int
    tested: int


@dataclass(frozen=True, eq=False)
class Cohort:
    """Encoded rows in random order, and what they are called."""

    x: FloatArray
    y: FloatArray
    label: FloatArray
    schema: Schema
    label_schema: Schema
    name: str
    synthetic: bool
    seed: int

    @classmethod
    def of(cls, census: Census, seed: int = 0) -> "Cohort":
        """Encode by the census's public bounds, in an order that the seed decides."""
        order = generator_for([seed, 2017]).permutation(len(census))
        x, y = census.schema.encode(census.table)
        wanted = census.label_schema.target
        label = wanted.scale(np.asarray(census.table[wanted.name]))
        return cls(
            np.ascontiguousarray(x[order]),
            y[order],
            label[order],
            census.schema,
            census.label_schema,
            census.name,
            census.synthetic,
            seed,
        )

    @classmethod
    def load(cls, data: Path | None, *, rows: int | None = None, seed: int = 0) -> "Cohort":
        """ACS where its file is (in `data`, or in BLURFIT_DATA), an IPUMS extract if `data` is
        that file, and the generated population where there is none.
        """
        if data is not None and data.is_file() and data.name != FILENAME:
            return cls.of(load_ipums(data), seed)
        if data is not None and not data.exists():
            raise InvalidValueError(
                f"Expected data={str(data)!r} to be a file or a folder; leave it out for the "
                "generated population."
            )
        try:
            return cls.of(load_acs(data), seed)
        except BlurfitError:
            if data is not None:
                raise
            return cls.of(make_census(rows or GENERATED_ROWS, seed), seed)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def intercept(self) -> float:
        """The value of the last column, which is the same in every row."""
        return float(self.x[0, -1])

    def window(self, n: int, trial: int) -> Window:
        """The window of one trial, at a place that depends on seed, n and trial alone."""
        if n % BLOCK or n > 0.97 * len(self):
            raise InvalidValueError(
                f"Expected n={n} to be a multiple of {BLOCK}, and at most 97% of the {len(self)} "
                "rows, so that some are left to test on."
            )
        start = BLOCK * int(generator_for([self.seed, n, trial]).integers(len(self._running) - 1))
        return Window(start, n, min(max(n // 4, BLOCK), len(self) - n))

    def training_sums(self, window: Window) -> WindowSums:
        """Of the window's n rows."""
        return self._unpack(self._between(window.start, window.count), window.count)

    def test_sums(self, window: Window) -> WindowSums:
        """Of the rows that follow; where they are all the others, of the whole less the window."""
        if window.tested == len(self) - window.count:
            rest = self._whole - self._between(window.start, window.count)
            return self._unpack(rest, window.tested)
        start = (window.start + window.count) % self._blocked
        rows = window.tested // BLOCK * BLOCK
        return self._unpack(self._between(start, rows), rows)

    def training_risk(self, window: Window) -> LogisticRisk:
        """The logistic losses of the window's rows, to be minimised from the optimum of all."""
        return LogisticRisk(self._rows(window.start, window.count), start=self.optimum)

    def training_values(self, window: Window, *, label: bool) -> FloatArray:
        """The columns v of the window's rows, in [−1, 1], and y, or the label, last."""
        places = (window.start + np.arange(window.count)) % self._blocked
        found = self.x[places] / self.intercept
        found[:, -1] = (self.label if label else self.y)[places]
        return found

    def accuracies(self, window: Window, weights: FloatArray) -> FloatArray:
        """The share of test labels that each row of weights gets right."""
        right, tested = np.zeros(len(weights)), 0
        for x, label in self.test_rows(window):
            right += ((x @ weights.T > 0) == (label > 0)[:, None]).sum(axis=0)
            tested += len(label)
        return right / tested

    def scores(self, window: Window, weights: FloatArray, *, label: bool) -> list[float]:
        """RMSE, or the accuracy for labels, of each row of weights on the window's test rows."""
        if label:
            return [float(value) for value in self.accuracies(window, weights)]
        tested = self.test_sums(window)
        return [tested.rmse(one) for one in weights]

    def test_rows(self, window: Window) -> list[tuple[FloatArray, FloatArray]]:
        """x and label of the window's test rows, in parts."""
        parts = self._rows((window.start + window.count) % self._blocked, window.tested)
        if window.tested == len(self) - window.count:
            return [*parts[:-1], *self._tail(parts[-1], window)]
        return parts

    @cached_property
    def optimum(self) -> FloatArray:
        """The logistic fit to a part of the rows: where to start looking for others."""
        part = slice(0, min(len(self), 2**17))
        return minimiser(LogisticRisk([(self.x[part], self.label[part])]), 1.0)

    def prepare(self) -> None:
        """Compute what all trials share, before there are several workers."""
        _ = self._running, self._whole, self.optimum

    @cached_property
    def _blocked(self) -> int:
        return len(self) // BLOCK * BLOCK

    @cached_property
    def _running(self) -> FloatArray:
        """Row k: the packed sums of zzᵀ over the first k blocks, z = (x, y, l)."""
        d = self.x.shape[1] + 2
        upper = forms.places(d)
        sums = np.zeros((self._blocked // BLOCK + 1, len(upper[0])))
        z = np.empty((BLOCKS_AT_ONCE * BLOCK, d))
        for first in range(0, self._blocked, len(z)):
            rows = slice(first, min(first + len(z), self._blocked))
            part = z[: rows.stop - rows.start]
            part[:, :-2], part[:, -2], part[:, -1] = self.x[rows], self.y[rows], self.label[rows]
            blocks = part.reshape(-1, BLOCK, d)
            products = np.matmul(blocks.transpose(0, 2, 1), blocks)
            begin = first // BLOCK + 1
            sums[begin : begin + len(blocks)] = products[:, upper[0], upper[1]]
        return np.cumsum(sums, axis=0, out=sums)

    @cached_property
    def _whole(self) -> FloatArray:
        """Sums of products over all rows, those after the last whole block included."""
        z = np.column_stack(
            [self.x[self._blocked :], self.y[self._blocked :], self.label[self._blocked :]]
        )
        upper = forms.places(z.shape[1])
        return np.asarray(self._running[-1] + (z.T @ z)[upper])

    def _between(self, start: int, count: int) -> FloatArray:
        first, last = start // BLOCK, (start + count) // BLOCK
        blocks = len(self._running) - 1
        if last <= blocks:
            return np.asarray(self._running[last] - self._running[first])
        around = self._running[-1] - self._running[first] + self._running[last - blocks]
        return np.asarray(around)

    def _unpack(self, packed: FloatArray, count: int) -> WindowSums:
        d = self.x.shape[1] + 2
        full = forms.unpack(packed, d)
        return WindowSums(count, full[:-2, :-2], full[:-2, -2], float(full[-2, -2]), full[:-2, -1])

    def _rows(self, start: int, count: int) -> list[tuple[FloatArray, FloatArray]]:
        """Views of the rows of a window, in one part or two."""
        stop = start + count
        spans = [slice(start, min(stop, self._blocked))]
        if stop > self._blocked:
            spans.append(slice(0, stop - self._blocked))
        return [(self.x[span], self.label[span]) for span in spans]

    def _tail(
        self, last: tuple[FloatArray, FloatArray], window: Window
    ) -> Sequence[tuple[FloatArray, FloatArray]]:
        """The last part without what is trained on, and the rows after the last whole block."""
        extra = len(self) - self._blocked
        kept = len(last[1]) - extra
        after = slice(self._blocked, None)
        assert window.tested >= extra
        return [(last[0][:kept], last[1][:kept]), (self.x[after], self.label[after])]
