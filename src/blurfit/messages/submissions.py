r"""What a contributor sends: a random identifier, the agreement's fingerprint, and blurred numbers.
Nothing else about a record ever leaves.

Two forms, both versioned, both exact to the last bit of every float64. What a reader accepts is a
valid submission; everything else is an `InvalidValueError`. As JSON, an object, or a list of them:

    {"format": "blurfit-submission", "version": 1, "identifier": "…", "fingerprint": "…",
     "numbers": [0.25, …]}

As bytes, numbers little-endian:

| bytes | one submission |
| --- | --- |
| 6 | 89 42 4C 55 52 0A, "\x89BLUR\n" |
| 1 | version, 1 |
| 1 | 1: a whole submission (shares have other codes, `blurfit.messages.shares`) |
| 16, 32 | identifier, fingerprint |
| 8 | k, how many numbers there are |
| 8k | the numbers, as float64 |

A batch is 89 42 4C 55 52 53 ("\x89BLURS"), the version in one byte, a zero byte, how many in eight
bytes, and then as many submissions of one agreement, one after the other.

All messages under one agreement have the same length and the same head, the identifier apart, so
that a database can check and take apart thousands at a time (`Layout`).
"""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import numpy as np

from blurfit.data import AnyArray, ByteArray, FloatArray, read_json
from blurfit.errors import InvalidValueError

FORMAT, VERSION = "blurfit-submission", 1
MAGIC, BATCH_MAGIC = b"\x89BLUR\n", b"\x89BLURS"
WHOLE = 1

_HEAD, _BATCH_HEAD = struct.Struct("<6sBB16s32sQ"), struct.Struct("<6sBBQ")
_IDENTIFIER = slice(8, 24)  # where it is in a head
_MOST_NUMBERS = 2**40


@dataclass(frozen=True)
class Layout:
    """The bytes of whole submissions of so many numbers; with another code, those of shares.

    >>> layout = Layout("a1" * 32, 2)
    >>> rows = layout.joined(np.zeros((1, 16), np.uint8), np.array([[0.75, -1.0]]))
    >>> rows.shape, layout.fits(rows.tobytes()), layout.numbers(rows).tolist()
    ((1, 80), True, [[0.75, -1.0]])
    """

    fingerprint: str
    width: int
    code: int = WHOLE

    @cached_property
    def head(self) -> bytes:
        """What every message begins with, but for the identifier."""
        return _HEAD.pack(
            MAGIC, VERSION, self.code, b"", bytes.fromhex(self.fingerprint), self.width
        )

    @cached_property
    def size(self) -> int:
        """How many bytes a message has."""
        return _HEAD.size + 8 * self.width

    @cached_property
    def _around_the_identifier(self) -> tuple[bytes, bytes]:
        return self.head[: _IDENTIFIER.start], self.head[_IDENTIFIER.stop :]

    def fits(self, data: bytes) -> bool:
        """Tell whether this is one message under the agreement, whoever sent it and whatever it
        says.
        """
        before, after = self._around_the_identifier
        return (
            len(data) == self.size
            and data[_IDENTIFIER.stop : _HEAD.size] == after
            and data[: _IDENTIFIER.start] == before
        )

    def rows(self, data: bytes) -> ByteArray | None:
        """One message or a batch of them as bytes, (n, size), or None if they do not fit."""
        if self.fits(data):
            return np.frombuffer(data, dtype=np.uint8).reshape(1, -1)
        if data[:6] != BATCH_MAGIC or len(data) < _BATCH_HEAD.size:
            return None
        _, version, zero, count = _BATCH_HEAD.unpack_from(data)
        expected = _BATCH_HEAD.size + count * self.size
        if (version, zero) != (VERSION, 0) or not count or len(data) != expected:
            return None
        rows = np.frombuffer(data, dtype=np.uint8)[_BATCH_HEAD.size :].reshape(count, self.size)
        if (_heads(rows) != np.frombuffer(self.head, dtype=np.uint8)).any():
            return None
        return rows

    def joined(self, identifiers: ByteArray, numbers: Any) -> ByteArray:
        """Identifiers (n, 16) and numbers (n, width) of 8 bytes each, as messages."""
        heads = np.tile(np.frombuffer(self.head, dtype=np.uint8), (len(identifiers), 1))
        heads[:, _IDENTIFIER] = identifiers
        body = np.ascontiguousarray(numbers)
        little = body.astype(body.dtype.newbyteorder("<"), copy=False)
        return np.hstack([heads, little.view(np.uint8).reshape(len(heads), -1)])

    def identifiers(self, rows: ByteArray) -> ByteArray:
        """Of some rows, (n, 16)."""
        return np.ascontiguousarray(rows[:, _IDENTIFIER])

    def numbers(self, rows: ByteArray) -> FloatArray:
        """Return the numbers of some rows."""
        found: FloatArray = np.ascontiguousarray(rows[:, _HEAD.size :]).view("<f8")
        return found

    @classmethod
    def read(cls, data: bytes | memoryview, count: int) -> "tuple[Layout, ByteArray]":
        """Return the layout of some messages, as their own head says, and the rows."""
        magic, version, code, _, fingerprint, width = _unpack(_HEAD, data)
        check_mark(magic, MAGIC, version)
        expected = count * (_HEAD.size + 8 * min(width, _MOST_NUMBERS))
        if len(data) != expected:
            raise InvalidValueError(
                f"Expected {expected} bytes for {count} x {width} numbers, but there are "
                f"{len(data)}: it was cut short, or something follows."
            )
        rows = np.frombuffer(data, dtype=np.uint8).reshape(count, -1)
        heads = _heads(rows)
        if (heads != heads[0]).any():
            raise InvalidValueError(
                f"Expected the {count} submissions of a batch to be of one agreement, but their "
                "heads differ in more than the identifier; make a batch for each."
            )
        return cls(fingerprint.hex(), width, code), rows


def batch_of(rows: ByteArray) -> bytes:
    """Messages, (n, size), as one batch."""
    return b"".join((_BATCH_HEAD.pack(BATCH_MAGIC, VERSION, 0, len(rows)), rows.tobytes()))


def rows_in(data: bytes) -> tuple[memoryview, int]:
    """Return what a batch holds, and how many its head says there are."""
    magic, version, zero, count = _unpack(_BATCH_HEAD, data)
    check_mark(magic, BATCH_MAGIC, version)
    if zero or not count:
        raise InvalidValueError(
            f"Expected a batch of at least one submission, but its head says count={count} and "
            f"has {zero} for a zero byte: it was damaged on its way."
        )
    return memoryview(data)[_BATCH_HEAD.size :], count


def check_mark(mark: str | bytes, expected: str | bytes, version: int) -> None:
    """Refuse what is no message of this kind, or of another version."""
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


def _heads(rows: ByteArray) -> ByteArray:
    heads = rows[:, : _HEAD.size].copy()
    heads[:, _IDENTIFIER] = 0
    return heads


def _unpack(layout: struct.Struct, data: bytes | memoryview) -> tuple[Any, ...]:
    if len(data) < layout.size:
        raise InvalidValueError(
            f"Expected at least {layout.size} bytes, but there are {len(data)}: it was cut short."
        )
    return layout.unpack_from(data)


_Kind = TypeVar("_Kind")


@dataclass(frozen=True, eq=False)
class Submission:
    """One blurred record; equal when all of its parts are.

    The numbers cannot be written to. They are copied on the way in, unless they are read-only
    already.

    Attributes:
        identifier: 128 random bits as 32 hexadecimal digits, so that it is counted once.
        fingerprint: the agreement's, as 64 hexadecimal digits.
        numbers: what was blurred, in the order of the agreement's `parts`.

    >>> sent = Submission("0f" * 16, "a1" * 32, [1.0, 0.5, -0.25])
    >>> len(sent.to_bytes())
    88
    >>> Submission.from_bytes(sent.to_bytes()) == sent == Submission.from_json(sent.to_json())
    True
    """

    identifier: str
    fingerprint: str
    numbers: FloatArray

    def __post_init__(self) -> None:
        _hexadecimal(32, identifier=self.identifier)
        _hexadecimal(64, fingerprint=self.fingerprint)
        object.__setattr__(self, "numbers", _numbers(self.numbers, axes=1))

    def to_json(self) -> str:
        """One JSON object."""
        return msgspec.json.encode(_messages(Submissions.gather([self]))[0]).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Submission":
        """Read what `to_json` wrote; refuse anything else."""
        _decoded(text, _Header, whole=False).check()
        return next(iter(Submissions.gather([_decoded(text, _Message)])))

    def to_bytes(self) -> bytes:
        """Return the compact form: 64 bytes, and 8 for each number."""
        layout = Layout(self.fingerprint, len(self.numbers))
        return layout.joined(Submissions.gather([self]).identifiers, self.numbers[None]).tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Submission":
        """Read what `to_bytes` wrote; refuse anything else."""
        return next(iter(_unpacked(data, 1)))

    def __eq__(self, other: object) -> bool:
        return _equal(self, other) if isinstance(other, Submission) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled arrays come back writable; building the object anew keeps the promise.
        return type(self), tuple(vars(self).values())


@dataclass(frozen=True, eq=False)
class Submissions:
    """Many submissions under one agreement, as a table: one row each, in every array.

    `identifiers` are bytes, (n, 16); `numbers` are (n, k), and iterating gives each `Submission`.

    >>> table = Submissions(np.zeros((3, 16), np.uint8), "a1" * 32, np.eye(3))
    >>> len(table), [one.numbers.tolist() for one in table][1]
    (3, [0.0, 1.0, 0.0])
    >>> Submissions.from_bytes(table.to_bytes()) == table == Submissions.from_json(table.to_json())
    True
    """

    identifiers: ByteArray
    fingerprint: str
    numbers: FloatArray

    def __post_init__(self) -> None:
        identifiers = np.asarray(self.identifiers)
        if identifiers.dtype != np.uint8 or identifiers.ndim != 2 or identifiers.shape[1] != 16:
            raise InvalidValueError(
                f"Expected identifiers to be bytes (uint8) of shape (n, 16), but they are "
                f"{identifiers.dtype} of shape {identifiers.shape}."
            )
        _hexadecimal(64, fingerprint=self.fingerprint)
        object.__setattr__(self, "identifiers", _read_only(identifiers))
        object.__setattr__(self, "numbers", _numbers(self.numbers, axes=2))
        if not len(identifiers) == len(self.numbers) > 0:
            raise InvalidValueError(
                f"Expected as many identifiers as rows, and at least one, but there are "
                f"{len(identifiers)}, beside {len(self.numbers)} rows of numbers."
            )

    @classmethod
    def gather(cls, submissions: "Sequence[Submission] | Sequence[_Message]") -> "Submissions":
        """Return the table of some submissions, which must share an agreement."""
        kinds = {(one.fingerprint, len(one.numbers)) for one in submissions}
        if len(kinds) != 1:
            raise InvalidValueError(
                f"Expected the submissions of a batch to be of one agreement, but there are "
                f"{len(kinds)} kinds among {len(submissions)}; make a batch for each."
            )
        for one in submissions:
            _hexadecimal(32, identifier=one.identifier)
        identifiers = bytes.fromhex("".join(one.identifier for one in submissions))
        return cls(
            np.frombuffer(identifiers, dtype=np.uint8).reshape(-1, 16),
            submissions[0].fingerprint,
            np.array([one.numbers for one in submissions], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.identifiers)

    def __iter__(self) -> Iterator[Submission]:
        for identifier, numbers in zip(self.identifiers, self.numbers, strict=True):
            yield Submission(identifier.tobytes().hex(), self.fingerprint, numbers)

    @property
    def layout(self) -> Layout:
        """The bytes of these submissions."""
        return Layout(self.fingerprint, self.numbers.shape[1])

    def to_json(self) -> str:
        """Return a JSON list, each item what `Submission.to_json` writes."""
        return msgspec.json.encode(_messages(self)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Submissions":
        """Read what `to_json` wrote; refuse anything else."""
        for header in _decoded(text, list[_Header], whole=False):
            header.check()
        return cls.gather(_decoded(text, list[_Message]))

    def rows(self, layout: Layout) -> ByteArray:
        """Return the bytes, (n, size), if they are submissions of this layout."""
        if self.fingerprint != layout.fingerprint:
            raise InvalidValueError(
                f"Expected fingerprint={self.fingerprint} to be {layout.fingerprint}: the "
                "submission was made for another agreement."
            )
        if self.numbers.shape[1] != layout.width:
            raise InvalidValueError(
                f"Expected submissions of {layout.width} numbers, and got {self.numbers.shape[1]}."
            )
        return layout.joined(self.identifiers, self.numbers)

    def to_bytes(self) -> bytes:
        """Return the compact form: 16 bytes, then what `Submission.to_bytes` writes, again and
        again.
        """
        return batch_of(self.rows(self.layout))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Submissions":
        """Read what `to_bytes` wrote; refuse anything else."""
        body, count = rows_in(data)
        return _unpacked(body, count)

    def __eq__(self, other: object) -> bool:
        return _equal(self, other) if isinstance(other, Submissions) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(vars(self).values())


def rows_of(layout: Layout, data: bytes) -> ByteArray:
    """One submission or a batch of them as bytes, (n, size); what does not fit is refused in the
    words of `from_bytes`.
    """
    rows = layout.rows(data)
    if rows is not None:
        return rows
    if data[:6] == b"\x89BLURS":
        return Submissions.from_bytes(data).rows(layout)
    return Submissions.gather([Submission.from_bytes(data)]).rows(layout)


class _Header(msgspec.Struct):
    """The two fields that every version has; the others are read once these are understood."""

    format: str
    version: int

    def check(self) -> None:
        check_mark(self.format, FORMAT, self.version)


class _Message(_Header, forbid_unknown_fields=True):
    identifier: str
    fingerprint: str
    numbers: list[float]


def _messages(table: Submissions) -> list[_Message]:
    return [
        _Message(FORMAT, VERSION, identifier.tobytes().hex(), table.fingerprint, numbers)
        for identifier, numbers in zip(table.identifiers, table.numbers.tolist(), strict=True)
    ]


def _decoded(text: str | bytes, kind: type[_Kind], *, whole: bool = True) -> _Kind:
    """Return what a text says; a header is read before the whole, for better words about its
    version.
    """
    try:
        if not whole:
            return msgspec.json.decode(text, type=kind)
        found: _Kind = read_json(text, kind, colons_in_values=False)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise InvalidValueError(
            f"Expected {FORMAT} version {VERSION} as JSON, but it cannot be read: {error}."
        ) from error
    return found


def _unpacked(data: bytes | memoryview, count: int) -> Submissions:
    layout, rows = Layout.read(data, count)
    if layout.code != WHOLE:
        raise InvalidValueError(
            f"Expected code={layout.code} to be {WHOLE}, a whole submission: this is a share of "
            "one."
        )
    return Submissions(layout.identifiers(rows), layout.fingerprint, layout.numbers(rows))


def _numbers(values: Any, *, axes: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError("Expected numbers, and something else is among them.") from None
    if array.ndim != axes or not array.shape[-1]:
        shape = "(k,)" if axes == 1 else "(n, k)"
        raise InvalidValueError(f"Expected numbers.shape={array.shape} to be {shape}, k >= 1.")
    if not np.isfinite(array).all():
        raise InvalidValueError(
            "Expected numbers to be finite, and some are not: blurring never makes such a number."
        )
    return _read_only(array)


def _read_only(array: AnyArray) -> AnyArray:
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
