"""Sums of what contributors send: what is let in, how it is added up, and what the noise on it is.

**Sums in any order.** Every number that a contributor sends is a whole number of steps, each a
power of two, and the screen bounds how many. So a sum is exact in float64 while it stays below 2⁵³
steps: millions of rows add exactly, whatever the order. What is left are a few exact sums that
`math.fsum` puts together, and it rounds the true sum once. Nothing depends on who came when, on
which service, in which file or on which machine: only on who came. (Where ε is so large that the
screen looks at no norms, the last bits may show the order.)

**What is known about the noise of joint sums** (`JointSums`). S = Σzzᵀ + E for z = (c, ω₁v₁, …,
ω_kv_k). E is symmetric and Gaussian, of standard deviation s on the diagonal and s/√2 beside it
(`blurfit.theory.moments`). Some entries are known without any noise, and are written into S before
anything is computed from it:

* the constant's own entry is c²N;
* a column of signs has v² = 1, so its diagonal is ω²N;
* the levels of a categorical are one-hot: entries between two levels of one group are 0, and
  v² = v, so the diagonal ω²N_j and the constant's row cωN_j tell the same N_j. They are combined by
  precision, ω⁴/s² from the diagonal and 2c²ω²/s² from the row:

      N̂_j = (ω²·S_jj + 2cω·S_0j)/(ω²(ω² + 2c²)),   Var N̂_j = s²/(ω²(ω² + 2c²)).

  Both entries then carry the same noise, times ω² and cω: they are *tied*;
* hats are at least 0 and sum to 1, and only neighbours overlap. So Σv_i = Σv_i² + Σv_iv_{i−1} +
  Σv_iv_{i+1}, and all of these sum to N: K + K + (K − 1) noisy entries tell 2K − 1 numbers with a
  known total, which `solved` finds by least squares. All entries of one curve's hats are then tied.

`Noise` holds the variance of each entry and these ties; E[EBE] for any B, which is all that
shrinkage and inference need, follows from them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import NumberRun, radii
from blurfit.data import FloatArray, IntArray, fixed
from blurfit.errors import (
    InfeasibleError,
    InvalidValueError,
    finite,
    nonnegative,
    whole,
)
from blurfit.schema.columns import Numeric, Question
from blurfit.theory.forms import JointColumn, JointForm, public_zeros
from blurfit.wording import Message

EXACT = 2.0**53
# Rows that are turned into float64 and multiplied at once: 8 MB at d = 128, and enough for BLAS.
ROWS_AT_ONCE = 8192

# Two routes to the same sum differ by rounding, about √N·2⁻⁵³; what differs by more is a mistake.
ASYMMETRY_ALLOWED = 1e-10
_SEEN = 3.0  # deviations of noise, which a number of people must exceed before it is divided by
_HIDDEN = 2.0  # deviations of noise, up to which an answer is as if nobody had given it


def rows_that_add_exactly(largest_steps: tuple[float, ...]) -> int:
    """Return how many rows may be added so that their sums stay exact; at least 1."""
    most = max(largest_steps)
    return max(1, int(EXACT / most)) if math.isfinite(most) else 1


def merged(
    parts: Iterable[tuple[int, FloatArray]], exact_rows: int
) -> list[tuple[int, FloatArray]]:
    """Merge counts and sums into as few parts as stay exact.

    Merging what was merged is merging: so this is the step of a tree of any shape.
    """
    groups: list[tuple[int, FloatArray]] = []
    for rows, sums in parts:
        if groups and groups[-1][0] + rows <= exact_rows:
            held, so_far = groups[-1]
            groups[-1] = held + rows, so_far + sums
        else:
            groups.append((rows, sums))
    return groups


@dataclass(frozen=True, eq=False)
class Totals:
    """How many contributed, and the sums of what they sent: all that a release is made of.

    There is one sum for each number that is sent. `draws` says how many databases have added noise
    of their own: nothing is learned from sums that miss what the agreement promises
    (`blurfit.model.release`).
    """

    count: int
    sums: FloatArray
    fingerprint: str
    draws: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Totals):
            return NotImplemented
        mine = self.count, self.fingerprint, self.draws
        same = mine == (other.count, other.fingerprint, other.draws)
        return same and np.array_equal(self.sums, other.sums)


def total(agreement: Agreement, parts: Iterable[tuple[int, FloatArray]], exact_rows: int) -> Totals:
    """Return the totals of a collection from its blocks' counts and sums."""
    groups = merged(parts, exact_rows)
    if not groups:
        return Totals(0, np.zeros(agreement.width), agreement.fingerprint)
    columns = np.array([sums for _, sums in groups]).T
    sums = np.array([math.fsum(column) for column in columns])
    return Totals(sum(rows for rows, _ in groups), sums, agreement.fingerprint)


@dataclass(frozen=True)
class Screen:
    """What no honest contributor sends, and is refused on arrival.

    A submission is a record of bounded length and noise of known size, on a known grid, so three
    things never happen: a number that is not finite, a number off the grid, and (almost never) a
    norm beyond the radius of `blurfit.agreement.numbers`, which says what it costs to refuse that.
    """

    parts: tuple[NumberRun, ...]  # of a submission, with the step of each number
    radii: tuple[float, ...]  # for each part, the norm beyond which a submission is refused

    @classmethod
    def of(cls, agreement: Agreement) -> "Screen":
        """Return the screen of an agreement, which follows from its calibration and its grid."""
        return cls(agreement.parts, radii(agreement))

    def largest_steps(self) -> tuple[float, ...]:
        """Return how many steps a number that passes can have, in each part."""
        each = zip(self.parts, self.radii, strict=True)
        return tuple(radius / part.step for part, radius in each)

    def passes(self, numbers: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell which rows an honest contributor could have sent."""
        good = np.ones(len(numbers), dtype=bool)
        with np.errstate(over="ignore", invalid="ignore"):  # a NaN passes no comparison
            for part, radius in zip(self.parts, self.radii, strict=True):
                some = numbers[:, part.numbers]
                good &= np.einsum("ij,ij,j->i", some, some, part.counts) <= radius**2
                steps = some * (1 / part.step)  # a power of two, so these are the quotients
                whole = np.rint(steps)
                whole -= steps  # NaN where a number is not finite
                if whole.any():  # hardly ever; row by row is slow
                    good &= (whole == 0).all(axis=1)
        return good

    def require(self, numbers: FloatArray) -> None:
        """Refuse all rows for the first that does not pass."""
        good = self.passes(numbers)
        if not good.all():
            place = int(good.argmin())
            raise self.refuse(numbers[place], place)

    @np.errstate(over="ignore")
    def refuse(self, row: FloatArray, place: int) -> InvalidValueError:
        """Say why a row did not pass, in words for whoever sent it, without any of its numbers."""
        wrong = Message("numbers that no honest contributor sends")
        if not np.isfinite(row).all():
            wrong = Message("a number that is not finite, which blurring never makes")
        else:
            for part, radius in zip(self.parts, self.radii, strict=True):
                some = row[part.numbers]
                size = math.hypot(*(some * np.sqrt(part.counts)))
                if not (np.rint(some / part.step) == some / part.step).all():
                    wrong = Message("a number that is no multiple of {step}", step=part.step)
                elif size > radius:
                    wrong = Message(
                        "a norm above {radius:.6g}, which noise hardly ever exceeds", radius=radius
                    )
                else:
                    continue
                break
        return InvalidValueError(
            "Submission {place} has {wrong}. Blur the record under this very agreement, with "
            "blurfit.perturb or the page that the service offers.",
            place=place,
            wrong=wrong,
        )


def symmetrised(**matrices: npt.ArrayLike) -> FloatArray:
    """Return ½(M + Mᵀ) as a new array, for a matrix that equals its transpose up to rounding.

    The value comes by keyword, as in `blurfit.errors`, so that the message can name it.
    """
    ((name, value),) = matrices.items()
    M = np.asarray(value, dtype=np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or M.size == 0:
        raise InvalidValueError(
            "Expected {name}.shape={shape} to be (d, d).", name=name, shape=M.shape
        )
    _refuse_unless_finite(**{name: M})
    half = 0.5 * M
    asymmetry, size = float(np.abs(half - half.T).max()), float(np.abs(half).max())
    if asymmetry > ASYMMETRY_ALLOWED * size:
        raise InvalidValueError(
            "Expected {name} to be symmetric, but it differs from its transpose by up to "
            "{asymmetry:.3g}; pass ({name} + {name}.T) / 2 if that is what you mean.",
            name=name,
            asymmetry=2 * asymmetry,
        )
    return half + half.T


def conforming(gram: FloatArray, **vectors: npt.ArrayLike) -> FloatArray:
    """Return a vector as a new array, checked to be finite and as long as the matrix is wide."""
    ((name, value),) = vectors.items()
    vector = np.array(value, dtype=np.float64)
    if vector.shape != gram.shape[:1]:
        raise InvalidValueError(
            "Expected {name}.shape={shape} to be {shape_2}, because gram.shape={shape_3}.",
            name=name,
            shape=vector.shape,
            shape_2=gram.shape[:1],
            shape_3=gram.shape,
        )
    _refuse_unless_finite(**{name: vector})
    return vector


def _refuse_unless_finite(**arrays: FloatArray) -> None:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            culprit = array[~np.isfinite(array)][0]
            raise InvalidValueError(
                "Expected {name} to be finite, but it contains {culprit}: blurring never makes "
                "such a number, so look for it where the records are read.",
                name=name,
                culprit=culprit,
            )


@dataclass(frozen=True, eq=False)
class Noise:
    """The law of E: the variance of each entry, and the covariances of those that go together.

    `pairs` are two such entries (i, j) and (k, l) a row, i ≤ j and k ≤ l.
    """

    variance: FloatArray
    pairs: IntArray = field(default_factory=lambda: np.zeros((0, 4), dtype=np.int64))
    covariances: FloatArray = field(default_factory=lambda: np.zeros(0))

    def sandwich(self, middle: FloatArray) -> FloatArray:
        """Return E[EBE] for a matrix B, or for a stack of them.

        (EBE)_ij = Σ_kl E_ik B_kl E_lj. Of independent entries only k = j, l = i is left for i ≠ j,
        V_ij B_ji, and k = l for i = j, Σ_k V_ik B_kk. Two entries that are tied by t add t·B_kl to
        (i, j) wherever one of them is E_ik and the other E_lj.
        """
        diagonal = np.diagonal(middle, axis1=-2, axis2=-1)
        found: FloatArray = self.variance * np.swapaxes(middle, -1, -2)
        each = np.arange(len(self.variance))
        found[..., each, each] = diagonal @ self.variance
        if len(self.pairs):
            flat = middle.reshape(-1, self.variance.size)
            found += (self._tied @ flat.T).T.reshape(found.shape)
        return found

    @cached_property
    def _tied(self) -> Any:
        """What ties add to E[EBE], as a sparse matrix of B's entries."""
        i, j, k, l = self.pairs.T  # noqa: E741
        turned = [(i, j, k, l), (j, i, k, l), (i, j, l, k), (j, i, l, k)]
        own, other = i != j, k != l  # an entry on the diagonal has one orientation
        kept = [np.ones_like(own), own, other, own & other]
        size, parts = len(self.variance), []
        for (a, b, c, d), some in zip(turned, kept, strict=True):
            for out, seen in ((a * size + d, b * size + c), (d * size + a, c * size + b)):
                parts.append((self.covariances[some], out[some], seen[some]))
        value, row, column = (np.concatenate(part) for part in zip(*parts, strict=True))
        return csr_array((value, (row, column)), shape=(size**2, size**2))

    def take(self, chosen: Sequence[int]) -> "Noise":
        """Return the noise of some rows and columns, the constant's first."""
        rows = np.asarray(chosen)
        place = np.full(len(self.variance), -1)
        place[rows] = np.arange(len(rows))
        pairs = place[self.pairs]
        kept = (pairs >= 0).all(axis=1)
        return Noise(self.variance[rows[:, None], rows], pairs[kept], self.covariances[kept])


@dataclass(frozen=True, eq=False)
class Blurred:
    """Numbers read out of the sums, and the covariance that the noise left in them."""

    values: FloatArray
    noise: FloatArray


def solved(
    design: FloatArray, seen: FloatArray, variance: FloatArray, total: float | None = None
) -> Blurred:
    """Return the best linear estimate of x where design·x is seen with these noise variances.

    Entries without noise (a variance of 0) hold exactly, as far as rounding goes; with `total`,
    so does Σx = total.
    """
    size = design.shape[1]
    # An exact entry counts as one of a millionth of the smallest noise there is.
    noisy = variance[variance > 0]
    least = float(noisy.min()) * 1e-12 if len(noisy) else 1.0
    weights = 1 / np.sqrt(np.maximum(variance, least))
    basis, start = np.eye(size), np.zeros(size)
    if total is not None:
        start = np.full(size, total / size)
        basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    if not basis.shape[1]:
        return Blurred(start, np.zeros((size, size)))
    reduced = weights[:, None] * (design @ basis)
    linear = basis @ np.linalg.pinv(reduced) * weights
    found = start + linear @ (seen - design @ start)
    return Blurred(found, (linear * variance) @ linear.T)


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
        """Turn coefficients of z for by into those of (1, v) for the target in its own units."""
        return np.asarray(theta * self.scale / self.target.weight)


@dataclass(frozen=True, eq=False)
class JointSums:
    """Count, blurred Σzzᵀ and its noise: any column can be the target of a model of any others.

    If N is not `counted`, it is read from the constant's own entry, which has noise as well.
    """

    columns: tuple[JointColumn, ...]  # of z after the constant
    constant: float  # c, the first entry of z
    count: int  # N
    matrix: FloatArray  # Σzzᵀ + E; what is publicly known is written into it here
    deviation: float  # s, of the noise on a diagonal entry of the whole sum
    counted: bool = True  # whether N is public
    noise: Noise = field(init=False, repr=False)

    @classmethod
    def uncounted(
        cls,
        columns: tuple[JointColumn, ...],
        constant: float,
        matrix: FloatArray,
        deviation: float,
        most: int | None = None,
    ) -> "JointSums":
        """Return the sums of as many people as they say, to the nearest whole number.

        Refuse those of which the noise hides it, unless it is known how many they are at `most`:
        then they are taken to be at least a hundredth of that. (Where the noise hides this number,
        `blurfit.learning.inference` and tables refuse to tell errors.)
        """
        if most is not None:
            seen = float(np.clip(matrix[0, 0] / constant**2, max(1, most / 100), most))
            return cls(columns, constant, round(seen), matrix, deviation, counted=False)
        if not matrix[0, 0] > max(_SEEN * deviation, constant**2):
            raise InfeasibleError(
                "The noise hides how many people there are in these sums: collect more records, "
                "join groups, or allow a larger epsilon."
            )
        count = round(float(matrix[0, 0]) / constant**2)
        return cls(columns, constant, count, matrix, deviation, counted=False)

    def __post_init__(self) -> None:
        whole(count=self.count)
        nonnegative(deviation=self.deviation)
        size = JointForm(self.constant, self.columns).size  # refuses a name or a weight too many
        if self.matrix.shape != (size, size) or not np.array_equal(self.matrix, self.matrix.T):
            raise InvalidValueError(
                "Expected matrix to be symmetric with {size} rows (the constant and "
                "{size_2} columns), got shape {shape}.",
                size=size,
                size_2=size - 1,
                shape=self.matrix.shape,
            )
        finite(largest_entry=float(np.abs(self.matrix).max()))
        matrix, noise = _with_what_is_known(self)
        object.__setattr__(self, "matrix", fixed(matrix))
        object.__setattr__(self, "noise", noise)

    def index(self, name: str) -> int:
        """Return the row of a column in `matrix`, where 0 is the constant's."""
        names = [column.name for column in self.columns]
        if name not in names:
            raise InvalidValueError(
                "Expected a column of the release, got {name!r}; there are {names}.",
                name=name,
                names=names,
            )
        return 1 + names.index(name)

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The levels that so few people gave, if any, that the noise hides how many; and the
        questions to which all said yes, or no, as far as the noise tells.
        """
        found = set()
        for row, column in enumerate(self.columns, start=1):
            number = float(self.matrix[0, row]) / (self.constant * column.weight)
            deviation = math.sqrt(self.noise.variance[0, row]) / (self.constant * column.weight)
            if column.kind == "sign":  # of yes or of no, whichever is rarer
                number, deviation = (self.count - abs(number)) / 2, deviation / 2
            elif column.kind != "level":
                continue
            if number <= _HIDDEN * deviation:
                found.add(column.name)
        return frozenset(found)

    def submodel(self, target: str, features: Sequence[str] | None = None) -> Submodel:
        """Return the sums for a linear model of one column by others, or by all other questions.

        The levels of a categorical sum to one, as the constant does: leave a reference level out
        where coefficients are to be told apart (`blurfit.learning.inference` refuses otherwise).
        """
        last = self.index(target)
        goal = self.columns[last - 1]

        def belongs(column: JointColumn) -> bool:
            return column == goal or (goal.group is not None and column.group == goal.group)

        if features is None:
            features = [column.name for column in self.columns if not belongs(column)]
        rows = [0, *(self.index(name) for name in features)]
        chosen = tuple(self.columns[row - 1] for row in rows[1:])
        for column in chosen:
            if belongs(column):
                raise InvalidValueError(
                    "Expected features other than the target {target!r} and its levels, got "
                    "{column_name!r}.",
                    target=target,
                    column_name=column.name,
                )
        if len(set(rows)) != len(rows):
            raise InvalidValueError(
                "Expected each feature once, and got {features}.", features=list(features)
            )
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
    """Return S with its public entries, and the variances that are left; doing it twice changes
    nothing.
    """
    matrix = np.array(sums.matrix, dtype=np.float64)
    size, c, s2 = len(matrix), sums.constant, sums.deviation**2
    variance = np.full((size, size), s2 / 2)
    np.fill_diagonal(variance, s2)
    matrix[0, 0] = c**2 * sums.count
    if sums.counted:
        variance[0, 0] = 0.0
    zeros = public_zeros(sums.columns)
    matrix[zeros], variance[zeros] = 0.0, 0.0
    pairs: list[IntArray] = []
    covariances: list[FloatArray] = []
    hats: dict[str | None, list[int]] = {}
    for row, column in enumerate(sums.columns, start=1):
        w = column.weight
        if column.kind == "sign" and sums.counted:
            matrix[row, row], variance[row, row] = w**2 * sums.count, 0.0
        elif column.kind == "hat":
            hats.setdefault(column.group, []).append(row)
        elif column.kind == "level":
            precision = w**2 * (w**2 + 2 * c**2)
            number = (w**2 * matrix[row, row] + 2 * c * w * matrix[0, row]) / precision
            spread = s2 / precision
            matrix[row, row], variance[row, row] = w**2 * number, w**4 * spread
            matrix[0, row] = matrix[row, 0] = c * w * number
            variance[0, row] = variance[row, 0] = (c * w) ** 2 * spread
            pairs.append(np.array([[0, row, row, row]]))
            covariances.append(np.array([c * w**3 * spread]))
    for rows in hats.values():
        places, found = _of_hats(matrix, variance, rows, c, sums)
        i, j = places.T
        matrix[i, j] = matrix[j, i] = found.values
        variance[i, j] = variance[j, i] = np.diag(found.noise)
        one, other = np.triu_indices(len(places), 1)
        pairs.append(np.column_stack([places[one], places[other]]))
        covariances.append(found.noise[one, other])
    if not pairs:
        return matrix, Noise(variance)
    return matrix, Noise(variance, np.concatenate(pairs), np.concatenate(covariances))


def _of_hats(
    matrix: FloatArray, variance: FloatArray, rows: Sequence[int], c: float, sums: JointSums
) -> tuple[IntArray, Blurred]:
    """Return the entries of one question's hats, (i, j) a row, with the least noise.

    Unknown are Σv_i² of each hat and 2Σv_iv_{i+1} of each pair of neighbours, which sum to N.
    """
    k, w, first = len(rows), sums.columns[rows[0] - 1].weight, rows[0]
    own, beside = np.eye(k, 2 * k - 1), np.eye(k - 1, 2 * k - 1, k) / 2
    means = own + np.vstack([beside, np.zeros((1, 2 * k - 1))])
    means[1:] += beside
    hats, none = np.arange(first, first + k), np.zeros(k, dtype=np.int64)
    pairs = (hats, hats), (hats[:-1], hats[1:]), (none, hats)
    places = np.concatenate([np.column_stack(pair) for pair in pairs])
    design = np.vstack([w**2 * own, w**2 * beside, c * w * means])
    i, j = places.T
    total = sums.count if sums.counted else None
    found = solved(design, matrix[i, j], variance[i, j], total)
    return places, Blurred(design @ found.values, design @ found.noise @ design.T)


Bound = Literal["lower", "upper"]
_CROWD = 0.25  # of the people at one bound of the target, from which it seems to be too narrow


def crowded_bound(sums: JointSums, aim: Question) -> Bound | None:
    """Return the bound of a number that many people seem to be at, as where it clips them.

    The released mean and second moment show it. Let d be the distance from the bound, as a part of
    half the range. If a fraction q of the people are at the bound, and the distances of the others
    fall off as an exponential distribution does, then q = 1 − 2E[d]²/E[d²]; for a uniform or normal
    distribution inside of its bounds that is below 0. E[d] and E[d²] are taken two deviations of
    their noise to the safe side. At a lower bound of 0 nothing is said: many numbers end there.
    """
    if not isinstance(aim, Numeric) or aim.of or aim.optional:
        return None
    row, count = sums.index(aim.name), sums.matrix[0, 0] / sums.constant**2
    weight = sums.columns[row - 1].weight
    scales = count * sums.constant * weight, count * weight**2
    mean, square = sums.matrix[0, row] / scales[0], sums.matrix[row, row] / scales[1]
    noises = np.sqrt([sums.noise.variance[0, row], sums.noise.variance[row, row]]) / scales
    ends: list[tuple[Bound, float]] = [("upper", mean)]
    if aim.lower != 0:
        ends.append(("lower", -mean))
    for bound, near in ends:
        first = max(1 - near, 0.0) + 2 * noises[0]
        second = 1 - 2 * near + square - 2 * float(np.hypot(2 * noises[0], noises[1]))
        if 2 * first**2 < (1 - _CROWD) * second:
            return bound
    return None
