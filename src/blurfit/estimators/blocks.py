"""Blocks of rows, encoded as columns v in [−1, 1] by public bounds.

`Encoder` makes v = (x − centre)·2/width of each value x, clipped last, so that |v| ≤ 1 holds to the
last bit; x − centre comes first, so that narrow bounds far from zero lose no digits. A categorical
has a column for each level. Optional and derived columns are encoded by `blurfit.schema.columns`.
Every block is clipped, whether or not a value is outside: how long that takes depends on no value.
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
# Enough for BLAS where rows are long; what stays in the cache.
MIN_ROWS, MAX_ROWS = 256, 3840


@dataclass(frozen=True, eq=False)
class Encoder:
    """Encodes blocks of rows.

    Attributes:
        columns: what each column of the rows is.
        features: what v are: the columns, or what is derived from them.
        at_once: how many rows a block has at most.
        layout: whether rows lie in rows or in columns.
        reach: where numbers are clipped, 1 except for differences within people.
    """

    columns: tuple[Feature, ...]
    features: tuple[Feature, ...]
    at_once: int
    layout: Order
    reach: float

    @classmethod
    def of(
        cls,
        values: AnyArray,
        columns: Sequence[Feature],
        people: People | None = None,
        features: Sequence[Feature] | None = None,
    ) -> "Encoder":
        """Find how many rows fit into a block, and how they lie."""
        chosen = tuple(columns if features is None else features)
        width = sum(len(one.columns) for one in chosen)
        fitting = min(MAX_ROWS, NUMBERS_AT_ONCE // width)
        at_once = min(len(values), max(MIN_ROWS, fitting))
        in_columns = values.flags.f_contiguous and not values.flags.c_contiguous
        layout: Order = "F" if in_columns else "C"
        return cls(tuple(columns), chosen, at_once, layout, 1.0 if people is None else people.reach)

    @property
    def width(self) -> int:
        """How many columns v there are."""
        return sum(len(one.columns) for one in self.features)

    @cached_property
    def by_columns(self) -> bool:
        """Whether each feature is encoded by itself: some are derived, or need not be said."""
        return self.features != self.columns or any(one.optional for one in self.columns)

    @cached_property
    def centre(self) -> FloatArray:
        """The middle of each number's bounds."""
        numbers = [one for one in self.columns if not isinstance(one, Categorical)]
        return np.array([0.5 if isinstance(one, Binary) else one.centre for one in numbers])

    @cached_property
    def slope(self) -> FloatArray:
        """2/width of each number's bounds."""
        numbers = [one for one in self.columns if not isinstance(one, Categorical)]
        return np.array([2.0 if isinstance(one, Binary) else 2 / one.width for one in numbers])

    @cached_property
    def numbers(self) -> tuple[IntArray, IntArray]:
        """Where numbers are among the columns of the rows, and among v."""
        return self._indices(words=False)

    @cached_property
    def words(self) -> tuple[IntArray, IntArray]:
        """Where categoricals are among the columns of the rows, and their first levels among v."""
        return self._indices(words=True)

    def _indices(self, *, words: bool) -> tuple[IntArray, IntArray]:
        starts = np.cumsum([0, *(len(one.columns) for one in self.columns)])[:-1]
        chosen = np.array([isinstance(one, Categorical) == words for one in self.columns])
        return np.flatnonzero(chosen), starts[chosen]

    def blocks(self, values: AnyArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield each block's rows and its columns v, which the next block overwrites."""
        slices = (slice(at, at + self.at_once) for at in range(0, len(values), self.at_once))
        if self.by_columns:
            for rows in slices:
                yield rows, derived(values[rows], self.columns, self.features)
            return
        # As large as a block each: NumPy is fast where one loop runs through all three.
        centre, slope = self._repeated(self.centre), self._repeated(self.slope)
        (at, into), (words, levels) = self.numbers, self.words
        v = np.empty((self.at_once, len(at)), order=self.layout)
        for rows in slices:
            given = values[rows]
            count = len(given)
            block = v[:count]
            with np.errstate(over="ignore"):  # an infinity is clipped like all that is outside
                np.subtract(given[:, at] if len(words) else given, centre[:count], block)
                np.multiply(block, slope[:count], out=block)
            np.clip(block, -self.reach, self.reach, out=block)
            if len(words):
                numbers, block = block, np.zeros((count, self.width))
                block[:, into] = numbers
                places = given[:, words].astype(np.intp) + levels
                block[np.arange(count)[:, None], places] = 1.0
            yield rows, block

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
