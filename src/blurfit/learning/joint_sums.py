"""Blurred joint sums, and what is publicly known about their noise, entry by entry.

S = Σzzᵀ + E for z = (c, ω₁v₁, …, ω_kv_k). E is symmetric and Gaussian, of standard deviation s on
the diagonal and s/√2 beside it (`blurfit.theory.joint`). Some entries are known without any noise,
and are written into S before anything is computed from it:

* the constant's own entry is c²N;
* a column of signs has v² = 1, so its diagonal is ω²N;
* the levels of a categorical are one-hot: entries between two levels of one group are 0, and
  v² = v, so the diagonal ω²N_j and the constant's row cωN_j tell the same N_j. They are combined by
  precision, ω⁴/s² from the diagonal and 2c²ω²/s² from the row:

      N̂_j = (ω²·S_jj + 2cω·S_0j)/(ω²(ω² + 2c²)),   Var N̂_j = s²/(ω²(ω² + 2c²)).

  Both entries then carry the same noise, times ω² and cω: they are *tied*.

`Noise` holds the variance of each entry and these ties; E[EBE] for any B, which is all that
shrinkage and inference need, follows from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InvalidValueError
from blurfit.theory.joint_form import JointColumn
from blurfit.validate import finite, nonnegative, positive, whole


@dataclass(frozen=True, eq=False)
class Noise:
    """The law of E: the variance of each entry, and Cov(E_0j, E_jj), nonzero for levels only."""

    variance: FloatArray
    ties: FloatArray

    def sandwich(self, middle: FloatArray) -> FloatArray:
        """E[EBE] for a symmetric B, or for a stack of them.

        (EBE)_ij = Σ_kl E_ik B_kl E_lj, and entries of E are independent, so that for i ≠ j only
        k = j, l = i is left: V_ij B_ij; for i = j, k = l: Σ_k V_ik B_kk. A tie t_j between E_0j and
        E_jj adds t_j B_jj to (0, j), and 2t_j B_0j to (j, j).
        """
        diagonal = np.diagonal(middle, axis1=-2, axis2=-1)
        found: FloatArray = self.variance * middle
        each = np.arange(len(self.ties))
        found[..., each, each] = diagonal @ self.variance + 2 * self.ties * middle[..., 0, :]
        found[..., 0, :] += self.ties * diagonal
        found[..., :, 0] += self.ties * diagonal
        return found

    def take(self, chosen: Sequence[int]) -> "Noise":
        """The noise of some rows and columns, the constant's first."""
        rows = np.asarray(chosen)
        return Noise(self.variance[rows[:, None], rows], self.ties[rows])


@dataclass(frozen=True, eq=False)
class Submodel:
    """The blurred sums of one target and its features: all that fitting and inference read.

    In z-space, the constant first: `gram` is Σzzᵀ, `cross` Σz·(by), `square` Σ(by)²; `noise` has
    the features' rows and columns, and the target's as the last.
    """

    count: int
    constant: float
    features: tuple[JointColumn, ...]
    target: JointColumn
    gram: FloatArray
    cross: FloatArray
    square: float
    noise: Noise
    deviation: float

    @property
    def scale(self) -> FloatArray:
        """(c, ω₁, …): z = scale·(1, v)."""
        return np.array([self.constant, *(column.weight for column in self.features)])

    @property
    def extended(self) -> FloatArray:
        """The matrix of constant, features and target together."""
        return np.block(
            [[self.gram, self.cross[:, None]], [self.cross[None, :], np.array([[self.square]])]]
        )

    @cached_property
    def feature_noise(self) -> Noise:
        """The noise on `gram`."""
        return self.noise.take(range(len(self.gram)))

    def in_columns(self, theta: FloatArray) -> FloatArray:
        """Coefficients of (1, v) for a target in its own units, from those of z for by."""
        found: FloatArray = theta * self.scale / self.target.weight
        return found


@dataclass(frozen=True, eq=False)
class JointSums:
    """Count, blurred Σzzᵀ and its noise: any column can be the target of a model of any others.

    Args:
        columns: The columns of z after the constant.
        constant: c, the first entry of z.
        count: N, how many records were summed.
        matrix: Σzzᵀ + E. What is publicly known is written into it here.
        deviation: s, the standard deviation of the noise on a diagonal entry of the whole sum.
    """

    columns: tuple[JointColumn, ...]
    constant: float
    count: int
    matrix: FloatArray
    deviation: float
    noise: Noise = field(init=False, repr=False)

    def __post_init__(self) -> None:
        positive(constant=self.constant)
        whole(count=self.count)
        nonnegative(deviation=self.deviation)
        names = [column.name for column in self.columns]
        size = len(names) + 1
        if len(set(names)) != len(names):
            raise InvalidValueError(f"Expected columns of different names, got {names}.")
        if self.matrix.shape != (size, size) or not np.array_equal(self.matrix, self.matrix.T):
            raise InvalidValueError(
                f"Expected matrix to be symmetric with {size} rows (the constant and "
                f"{size - 1} columns), got shape {self.matrix.shape}."
            )
        finite(largest_entry=float(np.abs(self.matrix).max()))
        for group in {column.group for column in self.columns} - {None}:
            weights = {column.weight for column in self.columns if column.group == group}
            if len(weights) > 1:
                raise InvalidValueError(
                    f"Expected one weight for all levels of {group!r}, got {sorted(weights)}."
                )
        matrix, noise = _with_what_is_known(self)
        object.__setattr__(self, "matrix", fixed(matrix))
        object.__setattr__(self, "noise", noise)

    def index(self, name: str) -> int:
        """The row of a column in `matrix`, where 0 is the constant's."""
        for row, column in enumerate(self.columns, start=1):
            if column.name == name:
                return row
        raise InvalidValueError(
            f"Expected a column of the release, got {name!r}; there are "
            f"{[column.name for column in self.columns]}."
        )

    def submodel(self, target: str, features: Sequence[str] | None = None) -> Submodel:
        """The sums for a linear model of one column by others (by default: all other questions).

        The levels of a categorical sum to one, as the constant does: leave a reference level out
        where coefficients are to be told apart (`blurfit.learning.inference` refuses otherwise).
        """
        goal = self.columns[self.index(target) - 1]
        if features is None:
            features = [
                column.name
                for column in self.columns
                if column.name != target and (column.group is None or column.group != goal.group)
            ]
        rows = [0, *(self.index(name) for name in features)]
        chosen = tuple(self.columns[row - 1] for row in rows[1:])
        for column in chosen:
            if column == goal or (goal.group is not None and column.group == goal.group):
                raise InvalidValueError(
                    f"Expected features other than the target {target!r} and its levels, got "
                    f"{column.name!r}."
                )
        if len(set(rows)) != len(rows) or not chosen:
            raise InvalidValueError(
                f"Expected at least one feature, each named once, got {list(features)}."
            )
        last = self.index(target)
        return Submodel(
            count=self.count,
            constant=self.constant,
            features=chosen,
            target=goal,
            gram=self.matrix[np.ix_(rows, rows)],
            cross=self.matrix[rows, last],
            square=float(self.matrix[last, last]),
            noise=self.noise.take([*rows, last]),
            deviation=self.deviation,
        )


def _with_what_is_known(sums: JointSums) -> tuple[FloatArray, Noise]:
    """S with its public entries, and the variances that are left; doing it twice changes
    nothing.
    """
    matrix = np.array(sums.matrix, dtype=np.float64)
    size, c, s2 = len(matrix), sums.constant, sums.deviation**2
    variance = np.full((size, size), s2 / 2)
    np.fill_diagonal(variance, s2)
    ties = np.zeros(size)
    matrix[0, 0], variance[0, 0] = c**2 * sums.count, 0.0
    groups = np.array([None, *(column.group for column in sums.columns)], dtype=object)
    for row, column in enumerate(sums.columns, start=1):
        w = column.weight
        if column.kind == "sign":
            matrix[row, row], variance[row, row] = w**2 * sums.count, 0.0
        if column.kind == "level":
            number = (w**2 * matrix[row, row] + 2 * c * w * matrix[0, row]) / (
                w**2 * (w**2 + 2 * c**2)
            )
            spread = s2 / (w**2 * (w**2 + 2 * c**2))
            siblings = np.flatnonzero(groups == column.group)
            matrix[row, siblings] = matrix[siblings, row] = 0.0
            variance[row, siblings] = variance[siblings, row] = 0.0
            matrix[row, row], variance[row, row] = w**2 * number, w**4 * spread
            matrix[0, row] = matrix[row, 0] = c * w * number
            variance[0, row] = variance[row, 0] = (c * w) ** 2 * spread
            ties[row] = c * w**3 * spread
    return matrix, Noise(variance, ties)
