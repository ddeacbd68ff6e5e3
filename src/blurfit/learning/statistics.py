"""The sufficient statistics N, A = Σ q̃q̃ᵀ (or Σ M̃) and c = Σ p̃ of a collection, which add.

A record matters to the model ½wᵀAw − cᵀw only through these sums, so the database keeps nothing
else, and any engine that can map and reduce can learn: `sum(map(statistics_of, parts))`.
"""

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from blurfit import validate
from blurfit.errors import InvalidValueError

FloatArray = npt.NDArray[np.float64]

# Rows that are turned into float64 and multiplied at once: 8 MB at d = 128, and enough for BLAS.
ROWS_AT_ONCE = 8192

# Two routes to the same sum differ by rounding, about √N·2⁻⁵³; what differs by more is a mistake.
ASYMMETRY_ALLOWED = 1e-10


FORMAT, VERSION = "blurfit-statistics", 1


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    fingerprint: str | None
    count: int
    gram: list[float]
    moment: list[float]


@dataclass(frozen=True, eq=False)
class Statistics:
    """(N, A, c) + (N', A', c') = (N + N', A + A', c + c'), with `Statistics.empty(d)` as zero.

    A commutative monoid and on purpose not a group: there is no subtraction, because the
    difference of two sums is one person's submission. Equal when all three parts are. The arrays
    are copied on the way in and cannot be written to; A is symmetric to the last bit.

    >>> one = Statistics.of_records([1.0, 2.0], [0.5, 0.0])
    >>> many = Statistics.of_records([[1.0, 2.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 0.5]])
    >>> sum([one, many, Statistics.empty(2)]).count
    3
    """

    count: int
    gram: FloatArray
    moment: FloatArray
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        count = _count(self.count)
        gram = symmetrised(gram=self.gram)
        moment = conforming(gram, moment=self.moment)
        gram.setflags(write=False)
        moment.setflags(write=False)
        for name, value in (("count", count), ("gram", gram), ("moment", moment)):
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """The number of weights, d."""
        return len(self.moment)

    @classmethod
    def empty(cls, dimension: int) -> Self:
        """No records yet: (0, 0, 0), the zero of the addition."""
        validate.whole(dimension=dimension)
        return cls(0, np.zeros((dimension, dimension)), np.zeros(dimension))

    def under(self, fingerprint: str) -> Self:
        """The same sums, said to be of submissions under the agreement with this fingerprint."""
        return type(self)(self.count, self.gram, self.moment, fingerprint)

    @classmethod
    def of_records(cls, q: npt.ArrayLike, p: npt.ArrayLike, *, chunk: int = ROWS_AT_ONCE) -> Self:
        """A = Σ q̃q̃ᵀ and c = Σ p̃, of one record (d,) or of many (n, d).

        The rows are taken `chunk` at a time, so that arrays which are memory-mapped or hold
        smaller numbers than float64 are never converted as a whole.
        """
        validate.whole(chunk=chunk)
        q, p = np.atleast_2d(np.asarray(q)), np.atleast_2d(np.asarray(p))
        if q.ndim != 2 or q.shape != p.shape or q.shape[1] == 0:
            raise InvalidValueError(
                f"Expected q.shape={q.shape} and p.shape={p.shape} to be the same, "
                "(d,) for one record or (n, d) for many."
            )
        count, dimension = q.shape
        A, c = np.zeros((dimension, dimension)), np.zeros(dimension)
        for start in range(0, count, chunk):
            part = slice(start, start + chunk)
            rows = _rows(q=q[part])
            with np.errstate(over="ignore", invalid="ignore"):  # the sums are checked at the end
                A += rows.T @ rows
                c += _rows(p=p[part]).sum(axis=0)
        return cls(count, A, c)

    @classmethod
    def of_moments(cls, packed: npt.ArrayLike, p: npt.ArrayLike) -> Self:
        """A = Σ M̃ and c = Σ p̃, where each record sends the upper triangle of its own matrix M̃.

        `packed` is (d(d+1)/2,) for one record or (n, d(d+1)/2) for many, as `pack` writes it.
        """
        rows, p = np.atleast_2d(np.asarray(packed)), np.atleast_2d(np.asarray(p))
        if p.ndim != 2 or p.shape[1] == 0 or rows.shape != (len(p), _triangle(p.shape[1])):
            raise InvalidValueError(
                f"Expected packed.shape={rows.shape} to be (n, d(d+1)/2) where p.shape={p.shape} "
                "is (n, d); pack() writes a symmetric matrix so."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            total, c = _rows(packed=rows).sum(axis=0), _rows(p=p).sum(axis=0)
        return cls(len(p), unpack(total, p.shape[1]), c)

    @classmethod
    def of_chunks(cls, chunks: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]]) -> Self:
        """The statistics of a stream of (q, p), which is read once and never held as a whole."""
        total: Self | None = None
        for q, p in chunks:
            part = cls.of_records(q, p)
            total = part if total is None else total + part
        if total is None:
            raise InvalidValueError(
                "Expected at least one chunk; for no records use Statistics.empty(dimension)."
            )
        return total

    def to_json(self) -> str:
        """As a text: count, fingerprint, the triangle of A row by row, and c, to the last bit."""
        return msgspec.json.encode(
            _Message(
                FORMAT,
                VERSION,
                self.fingerprint,
                self.count,
                pack(self.gram).tolist(),
                self.moment.tolist(),
            )
        ).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote."""
        try:
            message = msgspec.json.decode(text, type=_Message)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise InvalidValueError(f"Expected {FORMAT} as JSON: {error}.") from error
        if (message.format, message.version) != (FORMAT, VERSION):
            raise InvalidValueError(
                f"Expected format={message.format!r}, version={message.version} to be {FORMAT!r}, "
                f"{VERSION}; are these statistics, and of this version of blurfit?"
            )
        gram = unpack(message.gram, len(message.moment))
        return cls(message.count, gram, np.array(message.moment), message.fingerprint)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Statistics):
            return NotImplemented
        if other.dimension != self.dimension:
            raise InvalidValueError(
                f"Expected dimension={other.dimension} to be {self.dimension}: "
                "only statistics of the same agreement add."
            )
        with np.errstate(over="ignore"):
            A, c = self.gram + other.gram, self.moment + other.moment
        return type(self)(self.count + other.count, A, c, self._shared(other))

    def _shared(self, other: "Statistics") -> str | None:
        """The agreement of a sum: nothing belongs to any, other sums must belong to the same."""
        prints = {part.fingerprint for part in (self, other) if part.count or part.fingerprint}
        if len(prints) > 1:
            raise InvalidValueError(
                f"Expected fingerprint={other.fingerprint} to be {self.fingerprint}: only "
                "statistics of the same agreement add."
            )
        return prints.pop() if prints else None

    def __radd__(self, other: object) -> Self:
        # sum() starts from the integer 0, which says "nothing" in every dimension.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Statistics):
            return NotImplemented
        return (
            (self.count, self.fingerprint) == (other.count, other.fingerprint)
            and np.array_equal(self.gram, other.gram)
            and np.array_equal(self.moment, other.moment)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled arrays come back writable; building the object anew keeps the promise.
        return type(self), (self.count, self.gram, self.moment, self.fingerprint)


def pack(symmetric: npt.ArrayLike) -> FloatArray:
    """The upper triangle M₁₁, M₁₂, …, M₁d, M₂₂, …, Mdd of one (d, d) matrix or a stack (…, d, d).

    A symmetric matrix says everything twice; a message says it once. `unpack` is the inverse.
    """
    M = np.asarray(symmetric, dtype=np.float64)
    if M.ndim < 2 or M.shape[-1] != M.shape[-2] or not np.array_equal(M, np.swapaxes(M, -1, -2)):
        raise InvalidValueError(
            f"Expected symmetric.shape={M.shape} to be (…, d, d) and each matrix to equal its "
            "transpose; (M + M.T) / 2 does."
        )
    rows, columns = np.triu_indices(M.shape[-1])
    return M[..., rows, columns]


def unpack(packed: npt.ArrayLike, dimension: int) -> FloatArray:
    """The symmetric matrix (or the stack of them) whose upper triangle `pack` wrote."""
    validate.whole(dimension=dimension)
    triangle = np.asarray(packed, dtype=np.float64)
    if triangle.shape[-1:] != (_triangle(dimension),):
        raise InvalidValueError(
            f"Expected packed.shape={triangle.shape} to end in {_triangle(dimension)}, "
            f"which is d(d+1)/2 for dimension={dimension}."
        )
    rows, columns = np.triu_indices(dimension)
    M = np.empty((*triangle.shape[:-1], dimension, dimension))
    M[..., rows, columns] = triangle
    M[..., columns, rows] = triangle
    return M


def symmetrised(**matrices: npt.ArrayLike) -> FloatArray:
    """½(M + Mᵀ) as a new array, for a matrix that equals its transpose up to rounding.

    The value comes by keyword, as in `blurfit.validate`, so that the message can name it.
    """
    ((name, value),) = matrices.items()
    M = np.asarray(value, dtype=np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or M.size == 0:
        raise InvalidValueError(f"Expected {name}.shape={M.shape} to be (d, d).")
    _refuse_unless_finite(**{name: M})
    half = 0.5 * M
    asymmetry, size = float(np.abs(half - half.T).max()), float(np.abs(half).max())
    if asymmetry > ASYMMETRY_ALLOWED * size:
        raise InvalidValueError(
            f"Expected {name} to be symmetric, but it differs from its transpose by up to "
            f"{2 * asymmetry:.3g}; pass ({name} + {name}.T) / 2 if that is what you mean."
        )
    return half + half.T


def conforming(gram: FloatArray, **vectors: npt.ArrayLike) -> FloatArray:
    """A vector as a new array, checked to be finite and as long as the matrix is wide."""
    ((name, value),) = vectors.items()
    vector = np.array(value, dtype=np.float64)
    if vector.shape != gram.shape[:1]:
        raise InvalidValueError(
            f"Expected {name}.shape={vector.shape} to be {gram.shape[:1]}, "
            f"because gram.shape={gram.shape}."
        )
    _refuse_unless_finite(**{name: vector})
    return vector


def _rows(**rows: npt.NDArray[Any]) -> FloatArray:
    ((name, value),) = rows.items()
    numbers = np.ascontiguousarray(value, dtype=np.float64)
    _refuse_unless_finite(**{name: numbers})
    return numbers


def _refuse_unless_finite(**arrays: FloatArray) -> None:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            culprit = array[~np.isfinite(array)][0]
            raise InvalidValueError(
                f"Expected {name} to be finite, but it contains {culprit}: blurring never makes "
                "such a number, so look for it where the records are read."
            )


def _count(value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if isinstance(value, bool | np.bool_) or number < 0:
        raise InvalidValueError(f"Expected count={value!r} to be a whole number >= 0.")
    return number


def _triangle(dimension: int) -> int:
    return dimension * (dimension + 1) // 2
