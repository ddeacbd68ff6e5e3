"""The one vector that a record becomes, and which of its products are sent.

z = (c, ω₁v₁, …, ω_kv_k): a public constant, and each column times a public weight. The columns of a
number and of a sign have |v| ≤ 1; the levels of a categorical are one-hot, so that all of them
together have norm 1, however many there are. A number that need not be said is a group of two, of
which one is always 0: the number, and a level that is 1 for whoever does not say. In any group at
most one column differs from 0, by at most 1. With one weight for each question, therefore,

    ‖u‖² = ‖(ω₁v₁, …)‖² ≤ ρ² = Σ ω² over questions,

which is the bound that `blurfit.theory.joint` calibrates noise for.

What is sent of zzᵀ is its upper triangle, row by row, without what everybody knows: the constant's
own entry c², the diagonal ω² of a sign (v² = 1), and the zeros between two columns of one group.
Leaving entries out cannot raise the sensitivity.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InvalidValueError
from blurfit.theory.joint import sensitivity, submission_sensitivity
from blurfit.theory.moment_calibration import Reach
from blurfit.theory.setting import Neighbours
from blurfit.validate import one_of, positive

IndexArray = npt.NDArray[np.intp]
ColumnKind = Literal["numeric", "sign", "level"]
KINDS: tuple[ColumnKind, ...] = ("numeric", "sign", "level")


@dataclass(frozen=True)
class JointColumn:
    """One column of z: v in [−1, 1] ("numeric"), ±1 ("sign") or 0/1 ("level" of the group's K).

    `group` names the question that a level belongs to, and a number that need not be said: at most
    one column of a group differs from 0, and all have one weight.
    """

    name: str
    weight: float
    kind: ColumnKind = "numeric"
    group: str | None = None

    def __post_init__(self) -> None:
        positive(weight=self.weight)
        one_of(KINDS, kind=self.kind)
        if {"level": self.group is None, "sign": self.group is not None}.get(self.kind):
            raise InvalidValueError(
                f"Expected a group for a level, and none for a sign, got kind={self.kind!r}, "
                f"group={self.group!r} of column {self.name!r}."
            )


@dataclass(frozen=True)
class JointForm:
    """The columns of z after the constant, and what is sent of their products.

    >>> form = JointForm(0.5, (JointColumn("age", 0.8), JointColumn("married", 0.6, "sign")))
    >>> form.names
    ('1·age', '1·married', 'age·age', 'age·married')
    >>> form.products(np.array([[0.5, -1.0]])).round(3).tolist()
    [[0.2, -0.3, 0.16, -0.24]]
    """

    constant: float
    columns: tuple[JointColumn, ...]

    def __post_init__(self) -> None:
        positive(constant=self.constant)
        names = [column.name for column in self.columns]
        if not names or len(set(names)) != len(names):
            raise InvalidValueError(f"Expected columns of different names, got {names}.")
        for group, weights in self._weights_of_groups().items():
            if len(weights) > 1:
                raise InvalidValueError(
                    f"Expected one weight for all levels of {group!r}, got {sorted(weights)}."
                )

    @property
    def radius(self) -> float:
        """ρ, which no ‖u‖ exceeds: one ω² for each question, however many columns it has."""
        groups = self._weights_of_groups().values()
        alone = (column.weight for column in self.columns if column.group is None)
        return math.sqrt(
            math.fsum(weight**2 for weight in (*alone, *(max(group) for group in groups)))
        )

    def reach(self, neighbours: Neighbours) -> Reach:
        """How far one person moves the sums, and how far apart two submissions can be."""
        c, radius = self.constant, self.radius
        return Reach(sensitivity(c, radius, neighbours), submission_sensitivity(c, radius))

    @property
    def size(self) -> int:
        """How many rows the matrix Σzzᵀ has: the constant's, and one for each column."""
        return len(self.columns) + 1

    @property
    def scale(self) -> FloatArray:
        """(c, ω₁, …): z = scale·(1, v)."""
        return np.array([self.constant, *(column.weight for column in self.columns)])

    @property
    def width(self) -> int:
        """How many numbers are sent."""
        return len(self._sent[0])

    @property
    def counts(self) -> FloatArray:
        """How often each number that is sent counts in the squared norm: twice off the diagonal."""
        rows, columns = self._sent
        return np.where(rows == columns, 1.0, 2.0)

    @property
    def bound(self) -> float:
        """The largest norm of the numbers of one record: ‖zzᵀ‖ without the constant's own entry."""
        return self.reach("zero-out").sums

    @property
    def names(self) -> tuple[str, ...]:
        """What each number that is sent is the product of, 1 being the constant."""
        labels = ("1", *(column.name for column in self.columns))
        rows, columns = self._sent
        return tuple(f"{labels[i]}·{labels[j]}" for i, j in zip(rows, columns, strict=True))

    def products(self, values: FloatArray) -> FloatArray:
        """The numbers that are sent, before they are blurred: (…, width) from columns v (…, k)."""
        z = np.empty((*values.shape[:-1], self.size))
        z[..., 0] = self.constant
        np.multiply(values, [column.weight for column in self.columns], out=z[..., 1:])
        rows, columns = self._sent
        found: FloatArray = z[..., rows] * z[..., columns]
        return found

    def matrix(self, sums: Sequence[float] | FloatArray, count: int) -> FloatArray:
        """Σzzᵀ from the sums of what was sent by `count` people, and what everybody knows."""
        found = np.zeros((self.size, self.size))
        rows, columns = self._sent
        found[rows, columns] = found[columns, rows] = sums
        found[0, 0] = self.constant**2 * count
        for row, column in enumerate(self.columns, start=1):
            if column.kind == "sign":
                found[row, row] = column.weight**2 * count
        return found

    def take(self, matrix: FloatArray) -> FloatArray:
        """The numbers of a matrix that would be sent: `matrix` backwards."""
        rows, columns = self._sent
        found: FloatArray = matrix[..., rows, columns]
        return found

    @cached_property
    def _sent(self) -> tuple[IndexArray, IndexArray]:
        rows, columns = np.triu_indices(self.size)
        groups = np.array([None, *(column.group for column in self.columns)], dtype=object)
        signs = np.array([True, *(column.kind == "sign" for column in self.columns)])
        known = (rows == columns) & signs[rows]
        known |= (rows != columns) & (groups[rows] == groups[columns]) & (groups[rows] != None)  # noqa: E711
        return fixed(rows[~known]), fixed(columns[~known])

    def _weights_of_groups(self) -> dict[str, set[float]]:
        found: dict[str, set[float]] = {}
        for column in self.columns:
            if column.group is not None:
                found.setdefault(column.group, set()).add(column.weight)
        return found
