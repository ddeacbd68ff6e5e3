"""Rows of a table as columns v in [−1, 1], a block at a time.

v = (x − centre)·2/width of each value x, cut to [−1, 1]. It is cut last, so that |v| ≤ 1 holds to
the last bit, and x − centre comes first, so that narrow bounds far from zero lose no digits. A
categorical has a column for each level, with one 1 in each row. Where a column need not be said, or
is derived from others, all are encoded as in `blurfit.schema.columns`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from blurfit.data import AnyArray, FloatArray, IntArray
from blurfit.estimators.people import People
from blurfit.estimators.rows import records
from blurfit.schema.columns import Binary, Categorical, Feature

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
