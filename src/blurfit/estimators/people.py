"""Whose row is whose: many rows of one person, promised to the person.

    fit(X, y, groups=person)      rows ─► what each would send ─► mean over each person's ─► Σ ─► …

A person's rows are averaged *inside* the form, so that a person moves the sums by no more than one
row would (`blurfit.theory.moments`, the hull lemma): the noise is that of as many rows as there are
people, and all of what is promised is promised to the person, however many rows they have. Each
person has one vote: a row counts 1/m where its person has m.

**What is public.** The labels in `groups` say who is who; neighbours have the same labels, and one
person's rows, their number included, are replaced by any others. So the number of people is public
and the number of rows is not. A wave that reads every k-th person takes them in the order of their
labels, which does not depend on what is in the rows.

**Errors.** With s_i = (1/m)Σz_te_t the score of person i and Z_i = (1/m)Σz_tz_tᵀ, for every a

    (a·s_i)² ≤ (aᵀZ_ia)·(1/m)Σe_t²      (Cauchy and Schwarz).

So the sampling part of an estimate, however the rows of one person depend on each other, is at most
what the same formula gives where each person has one row with the mean of their squared errors,
which is what it is given. Intervals are then no shorter than they should be, and up to √m times
wider for rows that are independent. (As always there: if the spread is unrelated to z.)

**Without `groups`** a row is taken for a person. Where that is visibly wrong, a warning says what
is not promised: an index that repeats, or a column with a name like "patient" whose values repeat.
"""

import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from blurfit.arrays import AnyArray, FloatArray, IntArray
from blurfit.errors import InvalidValueError, NotPrivateWarning

# id, customer_id, "Customer ID"; person, userID, "patient no"; not customer: that may be yes or no
_PERSON = re.compile(
    r"(.*[_ .-])?(p|u)?id|(person|user|patient|subject|participant|respondent)"
    r"([_ .-]?(id|no|nr|number|key))?"
)
ROWS_OF_ONE_PERSON = (
    "{what}, as where one person has several rows. Nothing is promised to a person then, but only "
    "to each row: somebody who is in eight rows has √8 times the μ. Name whose row is whose, "
    "fit(X, y, groups=...), and the promise is to the person; or reset the index if each row is "
    "another person's."
)


@dataclass(frozen=True, eq=False)
class People:
    """Which person each row is of: `codes` from 0 to `count` − 1, in the order of their labels."""

    codes: IntArray
    count: int

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
        order = np.argsort(self.codes, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.rows_of_each)[:-1]])
        found = np.add.reduceat(numbers[order], starts, axis=0)
        return np.asarray(found / self.rows_of_each[:, None])

    def every(self, stride: int) -> tuple[slice | AnyArray, "People"]:
        """Return the rows of every k-th person, and who they are of."""
        if stride == 1:
            return slice(None), self
        kept = self.codes % stride == 0
        return kept, People(self.codes[kept] // stride, -(-self.count // stride))


def warn_if_repeated(X: Any, y: Any) -> None:
    """Warn where rows are visibly of people who have several."""
    for where in (X, y):
        index = getattr(where, "index", None)
        if getattr(index, "is_unique", True) is False:
            return _warn("The index repeats")
    for name in getattr(X, "columns", ()):
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
        if _PERSON.fullmatch(words):
            different = len(np.unique(np.asarray(X[name]).astype(str)))
            if 2 < different < len(X):  # yes and no are nobody's names
                return _warn("A column that seems to name people has values that repeat")
    return None


def _warn(what: str) -> None:
    warnings.warn(ROWS_OF_ONE_PERSON.format(what=what), NotPrivateWarning, stacklevel=4)
