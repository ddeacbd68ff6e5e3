"""Forms: the numbers that a record becomes, those that are submitted, and their sensitivity.

Every agreement has one `Form`, chosen in one place (`blurfit.agreement.mechanisms.form_of`); all
other code uses only what `Form` declares. Forms for groups and weights are in
`blurfit.theory.coded`, for times to an event in `blurfit.theory.hazards`.

*`JointForm`*: a record is z = (c, ω₁v₁, …, ω_kv_k), a public constant and each column times a
public weight, with one weight for each question. Columns of a number and of a sign have |v| ≤ 1,
levels of a categorical are one-hot, hats are at least 0 and sum to 1, and of a number that may be
left out and its level one is 0. Therefore

    ‖u‖² = ‖(ω₁v₁, …)‖² ≤ ρ² = Σ ω² over questions,

the bound that `blurfit.theory.moments` calibrates noise for. The upper triangle of zzᵀ is
submitted, row by row, without c², the diagonal of a sign (v² = 1), and the zeros between two
columns of one group, except for neighbouring hats. If the number of people behind a sum is not
public (`counted=False`), the first two are submitted. Leaving entries out cannot raise the
sensitivity.

*`WaveForm`*: the numbers that an announced transform makes of a record
(`blurfit.theory.maps`), and how often each counts in the squared norm. Whatever transform is
announced, a record stays within the sensitivity, which follows from the weights, or from the loss
and τ ≥ 1: numbers in the agreement that `verify` checks. As computed, Δ is exceeded by a factor
below 1 + (4p + 40)·2⁻⁵², where an agreement allows 1 + 2⁻¹².

Proofs: `docs/theory/records-as-vectors.md`, `docs/theory/transforms.md`. Tests:
`tests/theory/test_joint_form.py`, `tests/theory/test_wave_form.py`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from blurfit.data import FloatArray, fixed
from blurfit.errors import InvalidValueError, one_of, positive, whole
from blurfit.theory.maps import NewtonMap, PoissonNewton, ResidualMap, WaveMap
from blurfit.theory.moments import Neighbours, Reach, sensitivity

IndexArray = npt.NDArray[np.intp]
Places = tuple[IndexArray, IndexArray]  # rows and columns of a matrix
ColumnKind = Literal["numeric", "sign", "level", "hat"]
KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
LEAST_BALANCE, LARGEST_BALANCE = 1.0, 1e6  # τ of a Newton map


def size(dimension: int) -> int:
    """Return how many numbers the upper triangle of a (d, d) matrix has: d(d+1)/2."""
    return dimension * (dimension + 1) // 2


@lru_cache(maxsize=64)
def places(dimension: int) -> Places:
    """Return the row and the column of each number of a triangle, to index a matrix with."""
    rows, columns = np.triu_indices(dimension)
    return fixed(rows), fixed(columns)


def pair_counts(pairs: Places) -> FloatArray:
    """Return how often each pair's product counts in the squared norm: twice off a diagonal."""
    return np.where(pairs[0] == pairs[1], 1.0, 2.0)


def pair_names(labels: Sequence[str], pairs: Places) -> tuple[str, ...]:
    """Return what the product of each pair of labels is called."""
    places = zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)  # NumPy's own take their time
    return tuple([f"{labels[i]}·{labels[j]}" for i, j in places])


def symmetric(pairs: Places, upper: npt.ArrayLike, size: int) -> FloatArray:
    """Return the symmetric matrix, or the stack of them, with these numbers at these places and 0
    elsewhere.
    """
    (rows, columns), numbers = pairs, np.asarray(upper)
    found = np.zeros((*numbers.shape[:-1], size, size))
    found[..., rows, columns] = found[..., columns, rows] = numbers
    return found


def pack(matrix: npt.ArrayLike) -> FloatArray:
    """Write a symmetric matrix as its upper triangle, row by row: M₁₁, M₁₂, …, M₁d, M₂₂, …, Mdd.

    A symmetric matrix says everything twice; a message says it once. A stack (…, d, d) becomes a
    stack of triangles; `unpack` is the inverse.

    >>> pack([[1.0, 2.0], [2.0, 3.0]])
    array([1., 2., 3.])
    """
    M = np.asarray(matrix, dtype=np.float64)
    if M.ndim < 2 or M.shape[-1] != M.shape[-2] or not np.array_equal(M, np.swapaxes(M, -1, -2)):
        raise InvalidValueError(
            "Expected matrix.shape={shape} to be (…, d, d) and each matrix to equal its "
            "transpose; (M + M.T) / 2 does.",
            shape=M.shape,
        )
    rows, columns = places(M.shape[-1])
    return M[..., rows, columns]


def unpack(packed: npt.ArrayLike, dimension: int) -> FloatArray:
    """Return the symmetric matrix (or the stack of them) whose triangle `pack` wrote."""
    whole(dimension=dimension)
    triangle = np.asarray(packed, dtype=np.float64)
    if triangle.shape[-1:] != (size(dimension),):
        raise InvalidValueError(
            "Expected packed.shape={shape} to end in {size}, "
            "which is d(d+1)/2 for dimension={dimension}.",
            shape=triangle.shape,
            size=size(dimension),
            dimension=dimension,
        )
    return symmetric(places(dimension), triangle, dimension)


@dataclass(frozen=True)
class JointColumn:
    """One column of z: v in [−1, 1] ("numeric"), ±1 ("sign"), 0/1 ("level" of the group's K), or a
    share of 1 that two neighbours of the group have together ("hat").

    `group` names the question that a level or a hat belongs to, and a number that need not be said:
    all its columns have one weight, and at most one of them differs from 0, or two hats.
    """

    name: str
    weight: float
    kind: ColumnKind = "numeric"
    group: str | None = None

    def __post_init__(self) -> None:
        positive(weight=self.weight)
        one_of(KINDS, kind=self.kind)
        needs_group = self.is_share and self.group is None
        if needs_group or (self.kind == "sign" and self.group is not None):
            raise InvalidValueError(
                "Expected a group for a level or a hat, and none for a sign, got kind="
                "{kind!r}, group={group!r} of column {name!r}.",
                kind=self.kind,
                group=self.group,
                name=self.name,
            )

    @property
    def is_share(self) -> bool:
        """Whether v is from 0 to 1: a level's, or a hat's."""
        return self.kind in ("level", "hat")


def public_zeros(columns: Sequence[JointColumn]) -> npt.NDArray[np.bool_]:
    """Tell which products of the constant and the columns are 0 for everybody: of two of one group,
    but for hats that are neighbours: (size, size).
    """
    groups = np.array([None, *(column.group for column in columns)], dtype=object)
    hats = np.array([False, *(column.kind == "hat" for column in columns)])
    found = (groups[:, None] == groups) & (groups != None)  # noqa: E711 - element by element
    places = np.arange(len(groups))
    beside = np.abs(places[:, None] - places) == 1
    return np.asarray(found & (places[:, None] != places) & ~(beside & hats[:, None] & hats))


class Form(ABC):
    """How a record becomes numbers that add, and what their sums say.

    The norm is the one in which noise is alike in all directions: each number counts `counts` times
    in its square.
    """

    @abstractmethod
    def sensitivity(self, neighbours: Neighbours) -> float:
        """Δ: how far one person moves the sums."""

    def reach(self, neighbours: Neighbours) -> Reach:
        """Return how far one person moves the sums, and how far apart two submissions can be."""
        return Reach(self.sensitivity(neighbours), self.sensitivity("replace"))

    @property
    @abstractmethod
    def counts(self) -> FloatArray:
        """How often each number that is sent counts in the squared norm: twice off a diagonal."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What each number that is sent is about."""

    @abstractmethod
    def products(self, values: FloatArray) -> FloatArray:
        """Return the numbers that are sent, not blurred yet: (…, width) from columns v (…, k)."""

    @abstractmethod
    def matrix(self, sums: Sequence[float] | FloatArray, count: int) -> FloatArray:
        """Return what the sums of `count` people say of all of them together, as a matrix."""

    def pooled(self, values: FloatArray) -> FloatArray:
        """Return what one person sends who has several rows, (m, k): the mean of their products."""
        return np.asarray(self.products(values).mean(axis=0))

    @property
    def bound(self) -> float:
        """The largest norm of the numbers of one record."""
        return self.sensitivity("zero-out")

    @property
    def width(self) -> int:
        """How many numbers are sent."""
        return len(self.counts)

    @property
    def size(self) -> int:
        """√Σ counts, rounded up: numbers that are off by a step each are off by so many steps."""
        return math.ceil(math.sqrt(math.fsum(self.counts)))

    @property
    def joint(self) -> "JointForm | None":
        """The form of Σzzᵀ that `matrix` gives, where it gives one: any model can be read there."""
        return None

    @property
    def gain(self) -> float:
        """By how much larger the noise in `matrix` is than in the numbers that are sent."""
        return 1.0


@dataclass(frozen=True)
class JointForm(Form):
    """The columns of z after the constant, and what is sent of their products.

    `counted` says whether everybody knows how many people there are in a sum.

    >>> form = JointForm(0.5, (JointColumn("age", 0.8), JointColumn("married", 0.6, "sign")))
    >>> form.names
    ('1·age', '1·married', 'age·age', 'age·married')
    >>> form.products(np.array([[0.5, -1.0]])).round(3).tolist()
    [[0.2, -0.3, 0.16, -0.24]]
    """

    constant: float
    columns: tuple[JointColumn, ...]
    counted: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        positive(constant=self.constant)
        names = [column.name for column in self.columns]
        if not names or len(set(names)) != len(names):
            raise InvalidValueError(
                "Expected columns of different names, got {names}.", names=names
            )
        for group, weights in self._weights_of_groups().items():
            if len(weights) > 1:
                raise InvalidValueError(
                    "Expected one weight for all levels of {group!r}, got {weights}.",
                    group=group,
                    weights=sorted(weights),
                )

    @property
    def radius(self) -> float:
        """ρ, which no ‖u‖ exceeds: one ω² for each question, however many columns it has."""
        alone = [column.weight for column in self.columns if column.group is None]
        groups = [max(weights) for weights in self._weights_of_groups().values()]
        return math.sqrt(math.fsum(weight**2 for weight in alone + groups))

    def sensitivity(self, neighbours: Neighbours) -> float:
        """Δ of Σzzᵀ (`blurfit.theory.moments`)."""
        return sensitivity(self.constant, self.radius, neighbours)

    @property
    def size(self) -> int:
        """How many rows the matrix Σzzᵀ has: the constant's, and one for each column."""
        return len(self.columns) + 1

    @property
    def scale(self) -> FloatArray:
        """(c, ω₁, …): z = scale·(1, v)."""
        return np.array([self.constant, *(column.weight for column in self.columns)])

    @property
    def joint(self) -> "JointForm | None":
        """Itself."""
        return self

    @property
    def counts(self) -> FloatArray:
        """How often each number that is sent counts in the squared norm: twice off the diagonal."""
        return pair_counts(self._sent)

    @property
    def names(self) -> tuple[str, ...]:
        """What each number that is sent is the product of, 1 being the constant."""
        return pair_names(("1", *(column.name for column in self.columns)), self._sent)

    def products(self, values: FloatArray) -> FloatArray:
        """Return the numbers that are sent, not blurred yet: (…, width) from columns v (…, k)."""
        z = np.empty((*values.shape[:-1], self.size))
        z[..., 0] = self.constant
        np.multiply(values, self.scale[1:], out=z[..., 1:])
        rows, columns = self._sent
        return np.asarray(z[..., rows] * z[..., columns])

    def matrix(self, sums: Sequence[float] | FloatArray, count: int) -> FloatArray:
        """Σzzᵀ from the sums of what was sent by `count` people, and what everybody knows."""
        found = symmetric(self._sent, sums, self.size)
        if not self.counted:
            return found
        found[0, 0] = self.constant**2 * count
        for row, column in enumerate(self.columns, start=1):
            if column.kind == "sign":
                found[row, row] = column.weight**2 * count
        return found

    def take(self, matrix: FloatArray) -> FloatArray:
        """Return the numbers of a matrix that would be sent: `matrix` backwards."""
        rows, columns = self._sent
        return np.asarray(matrix[..., rows, columns])

    @cached_property
    def _sent(self) -> Places:
        rows, columns = np.triu_indices(self.size)
        signs = np.array([True, *(column.kind == "sign" for column in self.columns)])
        known = (rows == columns) & signs[rows] & self.counted
        known |= public_zeros(self.columns)[rows, columns]
        return fixed(rows[~known]), fixed(columns[~known])

    def _weights_of_groups(self) -> dict[str, set[float]]:
        found: dict[str, set[float]] = {}
        for column in self.columns:
            if column.group is not None:
                found.setdefault(column.group, set()).add(column.weight)
        return found


@dataclass(frozen=True, eq=False)
class WaveForm(Form):
    """The numbers of a later wave.

    >>> from blurfit.theory.maps import Whitening
    >>> chart = ResidualMap(Whitening([0.5], [[2.0]], [1.0]), radius=1, scale=0.5, bound=2)
    >>> form = WaveForm(chart, ("age", "income"), (0,))
    >>> form.names
    ('1·1', '1·age', '1·error', 'age·age', 'age·error', 'error·error')
    >>> form.products(np.array([[0.75, 1.0]])).round(3).tolist()
    [[0.062, 0.1, 0.038, 0.16, 0.06, 0.022]]
    """

    chart: WaveMap  # that was announced
    columns: tuple[str, ...]  # the names of a record's encoded columns, the target's last
    kept: tuple[int, ...]  # which of them the map speaks of, in its order

    def __post_init__(self) -> None:
        dimension = self.chart.whitening.dimension
        if len(self.kept) != dimension:
            raise InvalidValueError(
                "Expected a map of {kept_count} columns, as the schema has them without the "
                "target and the last level of each categorical, and got one of {dimension}.",
                kept_count=len(self.kept),
                dimension=dimension,
            )
        balance = self.chart.loss.balance if isinstance(self.chart, NewtonMap) else 1.0
        if not LEAST_BALANCE <= balance <= LARGEST_BALANCE:
            raise InvalidValueError(
                "Expected balance={balance!r} between {least_balance:g} and {largest_balance:g}: "
                "the grid would be too coarse for the noise of another.",
                balance=balance,
                least_balance=LEAST_BALANCE,
                largest_balance=LARGEST_BALANCE,
            )

    @property
    def is_newton(self) -> bool:
        """Whether a Newton step is collected, and not residuals."""
        return isinstance(self.chart, NewtonMap)

    def sensitivity(self, neighbours: Neighbours) -> float:
        """Δ of the map's numbers, whatever it was made of."""
        return self.chart.sensitivity(neighbours)

    @cached_property
    def counts(self) -> FloatArray:
        """How often each number counts in the squared norm: 1, 2 beside the diagonal, 1/τ²."""
        found, squares = pair_counts(self._upper), pair_counts(self._squared)
        balance = self.chart.loss.balance if isinstance(self.chart, NewtonMap) else 1.0
        slopes = np.full(self._rows if self.is_newton else 0, balance**-2)
        return fixed(np.concatenate([found, slopes, squares]))

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is about: white features by the column that ends each of them."""
        features = [self.columns[place] for place in self.kept]
        labels = [*features, "1"] if self.is_newton else ["1", *features, "error"]
        slopes = [f"slope·{label}" for label in labels] if self.is_newton else []
        what = "slope" if self.is_newton else "error"
        squares = (f"{what}²·{one}" for one in pair_names(labels, self._squared))
        return (*pair_names(labels, self._upper), *slopes, *squares)

    def products(self, values: FloatArray) -> FloatArray:
        """Return the numbers that are sent, not blurred yet: (…, width) from columns (…, k).

        Nothing is raised for a value: what is not a number is mapped as well.
        """
        features, target = self._parts(values)
        (rows, columns), (first, second) = self._upper, self._squared
        if isinstance(self.chart, ResidualMap):
            x = self.chart.vectors(features, target)
            p = x * (x[..., -1:] / self.chart.target_weight)
            parts = [x[..., rows] * x[..., columns]]
        else:
            u, g, h = self.chart.records(features, target)
            p = -g[..., None] * u
            parts = [h[..., None] * (u[..., rows] * u[..., columns]), p]
        squares = self.chart.robust_weight * (p[..., first] * p[..., second])
        return np.concatenate([*parts, squares], axis=-1)

    def pooled(self, values: FloatArray) -> FloatArray:
        """Return what one person sends who has several rows, (m, k): residuals are cut together,
        and squares are those of mean slopes.
        """
        linear = None
        if isinstance(self.chart, NewtonMap):
            u, g, h = self.chart.records(*self._parts(values))
            matrix = (u * h[:, None]).T @ u / len(u)
            linear = p = -(g @ u) / len(u)
        else:
            z = self.chart.vectors(*self._parts(values), together=True)
            matrix = z.T @ z / len(z)
            p = z[:, -1] @ z[:, :-1] / (len(z) * self.chart.target_weight)
        return self.take(matrix, linear, np.outer(p, p) if self.chart.robust else None)

    def sums(
        self,
        v: FloatArray,
        target: FloatArray,
        weights: FloatArray | None = None,
        people: FloatArray | None = None,
    ) -> FloatArray:
        """Sum `products` over rows, as products of matrices: for whoever has all rows at hand.

        With weights each row is computed alone: its features depend on no other row, and not on
        its place.

        Args:
            v: (n, k) finite encoded columns, without the target.
            target: (n,) encoded targets.
            weights: (n,) what each row counts, if not 1: 1/m if its person has m rows. Then no
                squares are summed, which are of persons.
            people: (2, n), for each row the root mean squares of `sizes` over its person's rows; a
                residual map cuts these together.
        """
        rows = self._read(v, target)
        if isinstance(self.chart, ResidualMap):
            matrix, squares = self.chart.sums(*rows, weights, people)
            return self.take(matrix, squares=squares)
        return self.take(*self.chart.sums(*rows, weights))

    def sizes(self, v: FloatArray, target: FloatArray) -> FloatArray:
        """‖f‖/√p and g of each row of a residual wave, computed alone: (2, n) of (n, k), (n,)."""
        assert isinstance(self.chart, ResidualMap)
        return self.chart.sizes(*self._read(v, target))

    def slopes(
        self, v: FloatArray, target: FloatArray, people: FloatArray | None = None
    ) -> FloatArray:
        """g·x of each row, computed alone, whose means over a person's rows are squared; the
        arguments are those of `sums`.
        """
        rows = self._read(v, target)
        if isinstance(self.chart, ResidualMap):
            return self.chart.slopes(self.chart.columns(*rows, people))
        x, g, _ = self.chart.columns(*rows, alone=True)
        return x * g

    def take(
        self,
        matrix: FloatArray,
        linear: FloatArray | None = None,
        squares: FloatArray | None = None,
    ) -> FloatArray:
        """Return the sums that are sent of Σzzᵀ, or of ΣM, Σp, and of Σppᵀ or Σg²xxᵀ."""
        parts = [matrix[self._upper], *([] if linear is None else [linear])]
        if squares is not None:
            parts.append(self.take_squares(squares))
        return np.concatenate(parts)

    def take_squares(self, squares: FloatArray) -> FloatArray:
        """Return the sums that are sent of Σppᵀ or Σg²xxᵀ."""
        return np.asarray(self.chart.robust_weight * squares[self._squared])

    def matrix(self, sums: Sequence[float] | FloatArray, count: int) -> FloatArray:
        """Σzzᵀ, or ΣM, from the sums of what was sent by `count` people."""
        del count  # no entry is known beforehand
        return symmetric(self._upper, np.asarray(sums)[: len(self._upper[0])], self._rows)

    def linear(self, sums: Sequence[float] | FloatArray) -> FloatArray | None:
        """Σp, where a Newton step is collected."""
        start = len(self._upper[0])
        return np.asarray(sums)[start : start + self._rows] if self.is_newton else None

    def squares(self, sums: Sequence[float] | FloatArray) -> FloatArray | None:
        """Σppᵀ or Σg²xxᵀ, where squared slopes or errors are sent."""
        if not self.chart.robust:
            return None
        upper = np.asarray(sums)[self.of_squares]
        return symmetric(self._squared, upper / self.chart.robust_weight, len(self.kept) + 1)

    @property
    def of_squares(self) -> slice:
        """Which of the numbers are of squares, if they are sent."""
        return slice(self.width - len(self._squared[0]), None)

    def _parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split columns as `_read` reads them, the target's last."""
        return self._read(values[..., :-1], values[..., -1])

    def _read(self, v: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the features and the target as the map reads them: counts as they were given."""
        if isinstance(self.chart, NewtonMap) and isinstance(self.chart.loss, PoissonNewton):
            target = (target + 1) / 2 * self.chart.loss.count_bound
        if self.kept == tuple(range(v.shape[-1])):
            return v, target
        return v[..., list(self.kept)], target

    @property
    def _rows(self) -> int:
        """Of the matrix: the constant's, each feature's, and for residuals the target's."""
        return len(self.kept) + (1 if self.is_newton else 2)

    @property
    def _upper(self) -> Places:
        """The places of the upper triangle, which is sent."""
        return places(self._rows)

    @property
    def _squared(self) -> Places:
        """Those of the squares: of all rows, but the error's own; none unless they are sent."""
        return places(len(self.kept) + 1 if self.chart.robust else 0)
