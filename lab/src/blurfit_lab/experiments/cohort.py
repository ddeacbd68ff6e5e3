"""A table of people from which each trial takes a window, with the sums of any window at hand.

Rows are put into a random order once. A trial's n training rows are then a window of them that
starts at a random place (and goes on at the beginning when it reaches the end), its test rows are
the n/4 that follow, or all that remain if these are fewer. Least squares needs only the sums over
such windows, and these are differences of running sums over blocks of 32 rows: one pass over the
table serves all trials, all methods and all n.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.input_perturbation.algorithms import Sums
from blurfit.schema.schema import Schema
from blurfit.simulation import Census, generator_for, make_census
from blurfit.theory import forms
from blurfit_lab.datasets import FILENAME, load_acs, load_ipums
from blurfit_lab.rivals.rival import LogisticRisk

BLOCK = 32  # rows; a quarter of the least n, 128
GENERATED_ROWS = 2**21 + 2**16
BLOCKS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class WindowSums(Sums):
    """Σxxᵀ, Σyx and Σy² over some rows, where y is the number, or the label ±1."""

    square: float = 0.0

    @property
    def scale(self) -> float:
        """s, the value of the intercept's column."""
        return math.sqrt(self.gram[-1, -1] / self.count)

    def products(self) -> FloatArray:
        """Σ(1, v)(1, v)ᵀ over the features' columns and y, as joint moments take them: x is
        s·(v, 1), and Σs² tells s.
        """
        target = self.moment[:, None] / self.scale
        whole = np.block([[self.gram / self.scale**2, target], [target.T, self.square]])
        order = [len(target) - 1, *range(len(target) - 1), len(target)]
        return np.asarray(whole[np.ix_(order, order)])

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
    trial: int = 0


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
        rows = np.ascontiguousarray(x[order]), y[order], label[order]
        return cls(*rows, census.schema, census.label_schema, census.name, census.synthetic, seed)

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
        return Window(start, n, min(max(n // 4, BLOCK), len(self) - n), trial)

    def training_sums(self, window: Window, *, label: bool = False) -> WindowSums:
        """Of the window's n rows."""
        packed = self._between(window.start, window.count)
        return self._unpack(packed, window.count, label=label)

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
        stop = window.start + window.count
        spans = [slice(window.start, min(stop, self._blocked))]
        if stop > self._blocked:
            spans.append(slice(0, stop - self._blocked))
        return LogisticRisk([(self.x[one], self.label[one]) for one in spans], start=self.optimum)

    def training_values(self, window: Window, *, label: bool) -> FloatArray:
        """The columns v of the window's rows, in [−1, 1], and y, or the label, last."""
        places = self._places(window.start, window.count)
        found: FloatArray = self.x[places] / self.intercept
        found[:, -1] = (self.label if label else self.y)[places]
        return found

    def scores(self, window: Window, weights: FloatArray, *, label: bool) -> list[float]:
        """RMSE, or the accuracy for labels, of each row of weights on the window's test rows."""
        if not label:
            tested = self.test_sums(window)
            return [tested.rmse(one) for one in weights]
        left = min(window.tested, self._blocked - window.count)
        places = self._places(window.start + window.count, left)
        if window.tested == len(self) - window.count:  # those after the last whole block, too
            places = np.append(places, np.arange(self._blocked, len(self)))
        right = (self.x[places] @ weights.T > 0) == (self.label[places] > 0)[:, None]
        return [float(one) for one in right.mean(axis=0)]

    @cached_property
    def optimum(self) -> FloatArray:
        """The logistic fit to a part of the rows: where to start looking for others."""
        part = slice(0, min(len(self), 2**17))
        return LogisticRisk([(self.x[part], self.label[part])]).minimiser(1.0)

    def prepare(self) -> None:
        """Compute what all trials share, before there are several workers."""
        _ = self._running, self._whole, self.optimum

    @property
    def _blocked(self) -> int:
        return len(self) // BLOCK * BLOCK

    def _places(self, start: int, count: int) -> Any:
        return (start + np.arange(count)) % self._blocked

    def _stacked(self, rows: slice) -> FloatArray:
        return np.column_stack([self.x[rows], self.y[rows], self.label[rows]])

    @cached_property
    def _running(self) -> FloatArray:
        """Row k: the packed sums of zzᵀ over the first k blocks, z = (x, y, l)."""
        d = self.x.shape[1] + 2
        upper, at_once = forms.places(d), BLOCKS_AT_ONCE * BLOCK
        sums = np.zeros((self._blocked // BLOCK + 1, len(upper[0])))
        for first in range(0, self._blocked, at_once):
            rows = slice(first, min(first + at_once, self._blocked))
            blocks = self._stacked(rows).reshape(-1, BLOCK, d)
            products = np.matmul(blocks.transpose(0, 2, 1), blocks)
            begin = first // BLOCK + 1
            sums[begin : begin + len(blocks)] = products[:, upper[0], upper[1]]
        return np.cumsum(sums, axis=0, out=sums)

    @cached_property
    def _whole(self) -> FloatArray:
        """Sums of products over all rows, those after the last whole block included."""
        z = self._stacked(slice(self._blocked, None))
        return np.asarray(self._running[-1] + (z.T @ z)[forms.places(z.shape[1])])

    def _between(self, start: int, count: int) -> FloatArray:
        first, last = start // BLOCK, (start + count) // BLOCK
        around, rest = divmod(last, len(self._running) - 1)
        return np.asarray(around * self._running[-1] + self._running[rest] - self._running[first])

    def _unpack(self, packed: FloatArray, count: int, *, label: bool = False) -> WindowSums:
        full, target = forms.unpack(packed, self.x.shape[1] + 2), -1 if label else -2
        gram, moment = full[:-2, :-2], full[:-2, target]
        return WindowSums(count, gram, moment, square=float(full[target, target]))
