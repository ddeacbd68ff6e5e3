r"""What a contributor sends: a random name, the agreement's fingerprint, and the blurred q̃ or M̃
and p̃. Nothing else about a record ever leaves.

Two forms, both versioned, both exact to the last bit of every float64. What a reader accepts is a
valid submission; everything else is an `InvalidValueError`. As JSON, an object, or a list of them:

    {"format": "blurfit-submission", "version": 1, "identifier": "…", "fingerprint": "…",
     "mechanism": "moment", "quadratic": [0.25, …], "linear": [-1.5, …]}

As bytes, numbers little-endian:

| bytes | one submission |
| --- | --- |
| 6 | 89 42 4C 55 52 0A, "\x89BLUR\n" |
| 1 | version, 1 |
| 1 | mechanism: 1 for "input", 2 for "moment" |
| 16, 32 | identifier, fingerprint |
| 4, 4 | k and d, the lengths of `quadratic` and `linear` |
| 8k, 8d | `quadratic`, `linear`, as float64 |

A batch is 89 42 4C 55 52 53 ("\x89BLURS"), the version in one byte, a zero byte, how many in eight
bytes, and then as many submissions of one agreement, one behind the other.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from blurfit import validate
from blurfit.arrays import ByteArray, FloatArray
from blurfit.errors import InvalidValueError
from blurfit.theory.calibration import MECHANISMS, Mechanism

FORMAT, VERSION = "blurfit-submission", 1
MAGIC, BATCH_MAGIC = b"\x89BLUR\n", b"\x89BLURS"
CODES: dict[int, Mechanism] = {1: "input", 2: "moment"}

_HEAD, _BATCH_HEAD = struct.Struct("<6sBB16s32sII"), struct.Struct("<6sBBQ")
_NAME = slice(8, 24)  # where the identifier is in a submission's head
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, eq=False)
class Submission:
    """One blurred record, (q̃, p̃) or (M̃, p̃); equal when all of its parts are.

    The arrays cannot be written to. They are copied on the way in, unless they are read-only
    already.

    Attributes:
        identifier: 128 random bits as 32 hexadecimal digits, so that it is counted once.
        fingerprint: the agreement's, as 64 hexadecimal digits.
        mechanism: which of the two it was blurred by.
        quadratic: q̃ (d numbers) for "input"; the upper triangle of M̃, row by row (d(d+1)/2
            numbers), for "moment".
        linear: p̃ (d numbers).

    >>> sent = Submission("0f" * 16, "a1" * 32, "moment", [1.0, 0.5, -0.25], [0.75, -1.0])
    >>> sent.dimension, len(sent.to_bytes())
    (2, 104)
    >>> Submission.from_bytes(sent.to_bytes()) == sent == Submission.from_json(sent.to_json())
    True
    """

    identifier: str
    fingerprint: str
    mechanism: Mechanism
    quadratic: FloatArray
    linear: FloatArray

    def __post_init__(self) -> None:
        _hexadecimal(32, identifier=self.identifier)
        _check_and_freeze(self, axes=1)

    @property
    def dimension(self) -> int:
        """d, the length of p̃ and of the weights."""
        return len(self.linear)

    def to_json(self) -> str:
        """One JSON object."""
        return msgspec.json.encode(_messages(Submissions.gather([self]))[0]).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Submission":
        """What `to_json` wrote; anything else is refused."""
        _decoded(text, _Header).check()
        return next(iter(Submissions.gather([_decoded(text, _Message)])))

    def to_bytes(self) -> bytes:
        """The compact form: 64 bytes, and 8 for each number."""
        return Submissions.gather([self]).to_bytes()[_BATCH_HEAD.size :]

    @classmethod
    def from_bytes(cls, data: bytes) -> "Submission":
        """What `to_bytes` wrote; anything else is refused."""
        return next(iter(_unpacked(data, 1)))

    def __eq__(self, other: object) -> bool:
        return _equal(self, other) if isinstance(other, Submission) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled arrays come back writable; building the object anew keeps the promise.
        return type(self), tuple(vars(self).values())


@dataclass(frozen=True, eq=False)
class Submissions:
    """Many submissions under one agreement, as a table: one row each, in every array.

    `identifiers` are bytes, (n, 16); the rest is as in `Submission`, and iterating gives these.

    >>> table = Submissions(np.zeros((3, 16), np.uint8), "a1" * 32, "input", np.eye(3), np.eye(3))
    >>> len(table), [one.linear.tolist() for one in table][1]
    (3, [0.0, 1.0, 0.0])
    >>> Submissions.from_bytes(table.to_bytes()) == table == Submissions.from_json(table.to_json())
    True
    """

    identifiers: ByteArray
    fingerprint: str
    mechanism: Mechanism
    quadratic: FloatArray
    linear: FloatArray

    def __post_init__(self) -> None:
        names = np.asarray(self.identifiers)
        if names.dtype != np.uint8 or names.ndim != 2 or names.shape[1] != 16:
            raise InvalidValueError(
                f"Expected identifiers to be bytes (uint8) of shape (n, 16), but they are "
                f"{names.dtype} of shape {names.shape}."
            )
        object.__setattr__(self, "identifiers", _read_only(names))
        _check_and_freeze(self, axes=2)
        if not len(names) == len(self.quadratic) == len(self.linear) > 0:
            raise InvalidValueError(
                f"Expected as many identifiers as rows, and at least one, but there are "
                f"{len(names)}, beside {len(self.quadratic)} rows in quadratic and "
                f"{len(self.linear)} in linear."
            )

    @classmethod
    def gather(cls, submissions: "Sequence[Submission] | Sequence[_Message]") -> "Submissions":
        """The table of some submissions, which must share an agreement."""
        kinds = {(s.fingerprint, s.mechanism, len(s.linear), len(s.quadratic)) for s in submissions}
        if len(kinds) != 1:
            raise InvalidValueError(
                f"Expected the submissions of a batch to be of one agreement, but there are "
                f"{len(kinds)} kinds among {len(submissions)}; make a batch for each."
            )
        for one in submissions:
            _hexadecimal(32, identifier=one.identifier)
        names = bytes.fromhex("".join(one.identifier for one in submissions))
        return cls(
            np.frombuffer(names, dtype=np.uint8).reshape(-1, 16),
            submissions[0].fingerprint,
            submissions[0].mechanism,
            np.array([one.quadratic for one in submissions], dtype=np.float64),
            np.array([one.linear for one in submissions], dtype=np.float64),
        )

    @property
    def dimension(self) -> int:
        """d, the length of each p̃ and of the weights."""
        return int(self.linear.shape[1])

    def __len__(self) -> int:
        return len(self.identifiers)

    def __iter__(self) -> Iterator[Submission]:
        shared = self.fingerprint, self.mechanism
        for name, *numbers in zip(self.identifiers, self.quadratic, self.linear, strict=True):
            yield Submission(name.tobytes().hex(), *shared, *numbers)

    def to_json(self) -> str:
        """A JSON list, each item what `Submission.to_json` writes."""
        return msgspec.json.encode(_messages(self)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Submissions":
        """What `to_json` wrote; anything else is refused."""
        for header in _decoded(text, list[_Header]):
            header.check()
        return cls.gather(_decoded(text, list[_Message]))

    def to_bytes(self) -> bytes:
        """The compact form: 16 bytes, then what `Submission.to_bytes` writes, again and again."""
        layout = Layout(self.fingerprint, self.mechanism, self.dimension)
        heads = np.tile(np.frombuffer(layout.head, dtype=np.uint8), (len(self), 1))
        heads[:, _NAME] = self.identifiers
        numbers = np.hstack([self.quadratic, self.linear], dtype="<f8").view(np.uint8)
        batch_head = _BATCH_HEAD.pack(BATCH_MAGIC, VERSION, 0, len(self))
        return b"".join((batch_head, np.hstack([heads, numbers]).data))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Submissions":
        """What `to_bytes` wrote; anything else is refused."""
        magic, version, zero, count = _head(_BATCH_HEAD, data)
        _check_mark(magic, BATCH_MAGIC, version)
        if zero or not count:
            raise InvalidValueError(
                f"Expected a batch of at least one submission, but its head says count={count} "
                f"and has {zero} for a zero byte: it was damaged on its way."
            )
        return _unpacked(memoryview(data)[_BATCH_HEAD.size :], count)

    def __eq__(self, other: object) -> bool:
        return _equal(self, other) if isinstance(other, Submissions) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(vars(self).values())


@dataclass(frozen=True)
class Layout:
    """Where things are in the bytes of the submissions under one agreement.

    All of them have the same length and the same head, the name apart, so that a database can check
    and take apart thousands at a time. What does not fit is refused, as `from_bytes` would.

    >>> sent = Submission("0f" * 16, "a1" * 32, "input", [1.0, 0.5], [0.75, -1.0])
    >>> layout = Layout("a1" * 32, "input", 2)
    >>> rows = layout.rows(sent.to_bytes())
    >>> rows.shape, layout.numbers(rows).tolist()
    ((1, 96), [[1.0, 0.5, 0.75, -1.0]])
    """

    fingerprint: str
    mechanism: Mechanism
    dimension: int

    @property
    def widths(self) -> tuple[int, int]:
        """How many numbers `quadratic` and `linear` have."""
        d = self.dimension
        return (d if self.mechanism == "input" else d * (d + 1) // 2), d

    @cached_property
    def head(self) -> bytes:
        """What every submission begins with, but for the name."""
        code = next(code for code, name in CODES.items() if name == self.mechanism)
        return _HEAD.pack(MAGIC, VERSION, code, b"", bytes.fromhex(self.fingerprint), *self.widths)

    @cached_property
    def size(self) -> int:
        """How many bytes a submission has."""
        return _HEAD.size + 8 * sum(self.widths)

    @cached_property
    def _around_the_name(self) -> tuple[bytes, bytes]:
        return self.head[: _NAME.start], self.head[_NAME.stop :]

    def fits(self, data: bytes) -> bool:
        """Whether this is one submission under the agreement, whatever its name and numbers."""
        before, after = self._around_the_name
        return (
            len(data) == self.size
            and data[_NAME.stop : _HEAD.size] == after
            and data[: _NAME.start] == before
        )

    def rows(self, data: bytes) -> ByteArray:
        """One submission or a batch of them as bytes, (n, size)."""
        if self.fits(data):
            return np.frombuffer(data, dtype=np.uint8).reshape(1, -1)
        if data[:6] != BATCH_MAGIC:
            return self.rows_of(Submissions.gather([Submission.from_bytes(data)]))
        rows = _batch_rows(data, self.size)
        if rows is None or (_nameless(rows) != np.frombuffer(self.head, dtype=np.uint8)).any():
            return self.rows_of(Submissions.from_bytes(data))
        return rows

    def rows_of(self, table: Submissions) -> ByteArray:
        """The same for submissions that came in another form, such as JSON."""
        if table.fingerprint != self.fingerprint:
            raise InvalidValueError(
                f"Expected fingerprint={table.fingerprint} to be {self.fingerprint}: the "
                "submission was made for another agreement."
            )
        if (table.mechanism, table.dimension) != (self.mechanism, self.dimension):
            raise InvalidValueError(
                f"Expected {self.mechanism} submissions of dimension {self.dimension}, and got "
                f"{table.mechanism} of dimension {table.dimension}."
            )
        data = np.frombuffer(table.to_bytes(), dtype=np.uint8)
        return data[_BATCH_HEAD.size :].reshape(len(table), self.size)

    def names(self, rows: ByteArray) -> ByteArray:
        """The identifiers of some rows, (n, 16)."""
        return np.ascontiguousarray(rows[:, _NAME])

    def numbers(self, rows: ByteArray) -> FloatArray:
        """The numbers of some rows, `quadratic` and then `linear`."""
        found: FloatArray = np.ascontiguousarray(rows[:, _HEAD.size :]).view("<f8")
        return found

    def table(self, names: ByteArray, numbers: FloatArray) -> Submissions:
        """Names and numbers as submissions again."""
        k, _ = self.widths
        return Submissions(names, self.fingerprint, self.mechanism, numbers[:, :k], numbers[:, k:])


class _Header(msgspec.Struct):
    """The two fields that every version has; the others are read once these are understood."""

    format: str
    version: int

    def check(self) -> None:
        _check_mark(self.format, FORMAT, self.version)


class _Message(_Header, forbid_unknown_fields=True):
    identifier: str
    fingerprint: str
    mechanism: Mechanism
    quadratic: list[float]
    linear: list[float]


def _messages(table: Submissions) -> list[_Message]:
    fingerprint, mechanism = table.fingerprint, table.mechanism
    rows = zip(table.identifiers, table.quadratic.tolist(), table.linear.tolist(), strict=True)
    return [
        _Message(FORMAT, VERSION, name.tobytes().hex(), fingerprint, mechanism, *numbers)
        for name, *numbers in rows
    ]


def _decoded(text: str | bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidValueError(
            f"Expected {FORMAT} version {VERSION} as JSON, but it cannot be read: {error}."
        ) from error


def _unpacked(data: bytes | memoryview, count: int) -> Submissions:
    magic, version, code, _, fingerprint, k, d = _head(_HEAD, data)
    _check_mark(magic, MAGIC, version)
    if code not in CODES:
        raise InvalidValueError(f"Expected mechanism={code} to be one of {CODES}.")
    expected = count * (_HEAD.size + 8 * (k + d))
    if len(data) != expected:
        raise InvalidValueError(
            f"Expected {expected} bytes for {count} x ({k} + {d}) numbers, but there are "
            f"{len(data)}: it was cut short, or something follows."
        )
    rows = np.frombuffer(data, dtype=np.uint8).reshape(count, -1)
    names, numbers = rows[:, _NAME].copy(), rows[:, _HEAD.size :].copy().view("<f8")
    heads = _nameless(rows)
    if (heads != heads[0]).any():
        raise InvalidValueError(
            f"Expected the {count} submissions of a batch to be of one agreement, but their heads "
            "differ in more than the identifier; make a batch for each."
        )
    return Submissions(names, fingerprint.hex(), CODES[code], numbers[:, :k], numbers[:, k:])


def _batch_rows(data: bytes, size: int) -> ByteArray | None:
    """The rows of a batch, if its length is that of as many submissions as its head says."""
    if len(data) < _BATCH_HEAD.size:
        return None
    _, version, zero, count = _BATCH_HEAD.unpack_from(data)
    if (version, zero) != (VERSION, 0) or not count or len(data) != _BATCH_HEAD.size + count * size:
        return None
    return np.frombuffer(data, dtype=np.uint8)[_BATCH_HEAD.size :].reshape(count, size)


def _nameless(rows: ByteArray) -> ByteArray:
    heads = rows[:, : _HEAD.size].copy()
    heads[:, _NAME] = 0
    return heads


def _head(layout: struct.Struct, data: bytes | memoryview) -> tuple[Any, ...]:
    if len(data) < layout.size:
        raise InvalidValueError(
            f"Expected at least {layout.size} bytes, but there are {len(data)}: it was cut short."
        )
    return layout.unpack_from(data)


def _check_mark(mark: str | bytes, expected: str | bytes, version: int) -> None:
    if mark != expected:
        raise InvalidValueError(
            f"Expected a message that is marked {expected!r}, but this one is marked {mark!r}; is "
            "it one submission where a batch is read, or the reverse?"
        )
    if version != VERSION:
        raise InvalidValueError(
            f"Expected version={version} of {FORMAT} to be {VERSION}, the only one that is "
            "understood here; let both sides use the same release of blurfit."
        )


def _check_and_freeze(holder: Submission | Submissions, *, axes: int) -> None:
    _hexadecimal(64, fingerprint=holder.fingerprint)
    validate.one_of(MECHANISMS, mechanism=holder.mechanism)
    for name in ("quadratic", "linear"):
        try:
            array = np.asarray(getattr(holder, name), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidValueError(f"Expected {name} to be numbers: {error}.") from error
        if array.ndim != axes or not array.shape[-1]:
            shape = "(k,)" if axes == 1 else "(n, k)"
            raise InvalidValueError(f"Expected {name}.shape={array.shape} to be {shape}, k >= 1.")
        if not np.isfinite(array).all():
            raise InvalidValueError(
                f"Expected {name} to be finite, but it contains "
                f"{array[~np.isfinite(array)][0]}: blurring never makes such a number."
            )
        object.__setattr__(holder, name, _read_only(array))
    d, k = holder.linear.shape[-1], holder.quadratic.shape[-1]
    needed = d if holder.mechanism == "input" else d * (d + 1) // 2
    if k != needed:
        raise InvalidValueError(
            f"Expected {k} numbers in quadratic to be {needed}, because mechanism="
            f"{holder.mechanism!r} and linear has d={d}."
        )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.flags.writeable:
        array = array.copy()
        array.setflags(write=False)
    return array


def _equal(one: Any, other: Any) -> bool:
    return all(np.array_equal(vars(one)[name], vars(other)[name]) for name in vars(one))


def _hexadecimal(digits: int, **values: object) -> None:
    ((name, value),) = values.items()
    if not isinstance(value, str) or not re.fullmatch(f"[0-9a-f]{{{digits}}}", value):
        raise InvalidValueError(
            f"Expected {name}={value!r} to be {digits} hexadecimal digits, 0-9 and a-f."
        )
