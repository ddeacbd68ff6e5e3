"""Persons with several rows, and a guarantee to the person.

    fit(X, y, groups=person)      rows ─► what each would send ─► mean over each person's ─► Σ ─► …

A person's rows are averaged *inside* the form, so that a person moves the sums by no more than one
row would (Lemma H of `blurfit.theory.coded`): noise is that of as many rows as there are people. A
row counts 1/m where its person has m.

**Public**: the labels in `groups`, and the number of people. Not public: the number of rows;
neighbours differ in all rows of one person, their number included. A wave that reads one of each k
people counts them in the order of their labels.

**Errors.** With s_i = (1/m)Σz_te_t, Σs_is_iᵀ is what sampling adds, however rows of a person depend
on each other; the last wave of numbers sends it. Elsewhere (a·s_i)² ≤ (aᵀZ_ia)·(1/m)Σe_t², Z_i the
mean of z_tz_tᵀ (Cauchy and Schwarz): intervals are at most √m times too wide, and not too short if
the spread is unrelated to z.

**Effects.** "pooled" compares all rows. "within" replaces rows by differences from their person's
mean, in units of half the bounds: one person moves the sums by less than the Δ of one row, whatever
differences are (`docs/theory/rows.md`). `spread` tightens these bounds: people who vary more are
scaled down. Nobody looks up whether a person has two rows, as that would reveal something of that
person; if nobody has, noise alone is released and errors are refused. No constant is learned.

**Without `groups`** a row is taken for a person; `rows.warn_if_repeated` warns where that is
visibly wrong.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from blurfit.data import AnyArray, FloatArray, IntArray
from blurfit.errors import InvalidValueError
from blurfit.estimators.rows import design
from blurfit.schema.columns import Categorical, Feature, Numeric

Effects = Literal["pooled", "within"]
GOLDEN = (math.sqrt(5) - 1) / 2  # φ
RUN = 8  # rows that lie together, which are read faster
EFFECTS: tuple[Effects, ...] = ("pooled", "within")


@dataclass(frozen=True, eq=False)
class People:
    """Which person each row is of: `codes` from 0 to `count` − 1, in the order of their labels.

    `reach` is how far single rows may be outside of their bounds, in units of these: 2 for
    differences, whose mean square is inside.
    """

    codes: IntArray
    count: int
    reach: float = 1.0

    @classmethod
    def of(cls, groups: Any, rows: int) -> "People":
        """Read labels, one for each row; messages tell none of them."""
        labels = np.asarray(groups)
        if labels.ndim != 1 or len(labels) != rows:
            raise InvalidValueError(
                f"Expected groups to name one person for each of the {rows} rows, and got shape "
                f"{labels.shape}."
            )
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise InvalidValueError("Expected groups to name a person in every row: some are NaN.")
        if labels.dtype == object and any(one is None or one != one for one in labels):
            raise InvalidValueError("Expected groups to name a person in every row: some are not.")
        try:
            found, codes = np.unique(labels, return_inverse=True)
        except TypeError:
            raise InvalidValueError(
                "Expected groups to be labels of one kind, all numbers or all words."
            ) from None
        return cls(codes.astype(np.int64), len(found))

    @cached_property
    def rows_of_each(self) -> IntArray:
        """How many rows each person has."""
        return np.bincount(self.codes, minlength=self.count)

    @cached_property
    def weights(self) -> FloatArray:
        """1/m of each row."""
        return (1.0 / self.rows_of_each)[self.codes]

    def means(self, numbers: FloatArray) -> FloatArray:
        """Return the mean over each person's rows: (count, k) from (rows, k)."""
        sums = [np.bincount(self.codes, one * self.weights, self.count) for one in numbers.T]
        return np.column_stack(sums)

    def root_mean_squares(self, numbers: FloatArray) -> FloatArray:
        """Return √(mean of squares) over each person's rows: (count, k) from (rows, k)."""
        return np.sqrt(self.means(numbers**2))

    def some(self, chosen: IntArray) -> tuple[IntArray, "People"]:
        """Return the rows of some people, and who they are of."""
        place = np.full(self.count, -1)
        place[chosen] = np.arange(len(chosen))
        codes = place[self.codes]
        rows = np.flatnonzero(codes >= 0)
        return rows, People(codes[rows], len(chosen), self.reach)


def every(count: int, people: People | None, stride: int) -> tuple[IntArray, People | None]:
    """Return one of each k rows, or the rows of one of each k people; and whose they are."""
    if people is None:
        return one_of_each(count, stride), None
    return people.some(one_of_each(people.count, stride))


def one_of_each(count: int, stride: int) -> IntArray:
    """Return ⌈count/k⌉ of the places up to `count`, in runs of eight: of each k runs one, the j-th
    time the ⌊k·(jφ mod 1)⌋-th.

    The first of each k places would be all of one kind where kinds take turns, as cases and
    controls do. As φ, the golden ratio, is irrational, runs go through all residues of a period
    alike, unless it is one of thousands of rows, and in order through whatever is sorted.

    >>> one_of_each(66, 3).tolist()[::8]
    [0, 32, 48]
    """
    runs = count // RUN
    firsts = np.arange(0, runs, stride)
    turns = np.arange(len(firsts)) * GOLDEN % 1.0
    chosen = np.minimum(firsts + (stride * turns).astype(np.int64), runs - 1)
    places = (chosen[:, None] * RUN + np.arange(RUN)).ravel()
    return np.append(places, np.arange(runs * RUN, count))[: -(-count // stride)]


def demean_by_person(
    people: People,
    values: AnyArray,
    columns: Sequence[Feature],
    target: Numeric,
    answers: FloatArray,
    spread: float = 1.0,
) -> tuple[FloatArray, tuple[Numeric, ...], Numeric, FloatArray, People]:
    """Subtract each person's mean from their rows, and bound what is left.

    Everything is computed of v in [−1, 1], so that no bounds are too narrow or too wide for
    squares. The root mean square of a person's differences is at most `spread` in each column, as
    computed: rows of others are scaled down, by the features all alike, then by the target its own.

    Args:
        people: whose row is whose.
        values: (n, d) numbers; of a categorical, the place of its level.
        columns: what each column of `values` is.
        target: the bounds of the target.
        answers: (n,) targets.
        spread: the fraction of what the bounds allow that one person's rows vary by at most.

    Returns:
        Differences (n, k) in the units of the columns, their bounds, those of the target, its
        differences (n,), and the people, whose `reach` is that of single rows.
    """
    stated = _bounds([*columns, target])
    v = design(np.column_stack([values, answers]).astype(np.float64), [*columns, target])
    for place, column in enumerate(stated):
        with np.errstate(over="ignore"):  # an infinity is clipped like all that is outside
            scaled = (v[:, place] - column.centre) * (2 / column.width)
        np.clip(scaled, -1.0, 1.0, out=v[:, place])
    v -= people.means(v)[people.codes]
    v /= spread
    sizes = people.root_mean_squares(v)
    factors = np.maximum(1.0, sizes[:, :-1].max(axis=1))  # by features alone: that biases nothing
    v /= factors[people.codes, None]
    v[:, -1] /= np.maximum(1.0, sizes[:, -1] / factors)[people.codes]
    v /= np.maximum(1.0, people.root_mean_squares(v))[people.codes]  # where rounding exceeded 1
    reach = 2.0 / spread
    ends = np.array([spread * column.width / 2 for column in stated])
    rows = np.clip(v, -reach, reach) * ends
    bounds = [
        Numeric(column.name, -end, end) for column, end in zip(stated, ends.tolist(), strict=True)
    ]
    people = People(people.codes, people.count, reach)
    return rows[:, :-1], tuple(bounds[:-1]), bounds[-1], rows[:, -1], people


def _bounds(columns: Sequence[Feature]) -> list[Numeric]:
    """Return a number with bounds for each column of `design`: 0 to 1 for levels."""
    found = []
    for column in columns:
        names = column.columns[1:] if isinstance(column, Categorical) else column.columns
        ends = [(column.lower, column.upper)] if isinstance(column, Numeric) else []
        ends += [(0.0, 1.0)] * (len(names) - len(ends))
        found += [Numeric(name, *each) for name, each in zip(names, ends, strict=True)]
    return found
