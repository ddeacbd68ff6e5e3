"""Where things are in the bytes of the messages under one agreement.

All of them have the same length and the same head, the identifier apart, so that a database can
check and take apart thousands at a time. `blurfit.messages.submissions` has the table of bytes.
"""

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from blurfit.arrays import ByteArray, FloatArray
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
        """Whether this is one message under the agreement, whoever sent it and whatever it says."""
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
        """The numbers of some rows."""
        found: FloatArray = np.ascontiguousarray(rows[:, _HEAD.size :]).view("<f8")
        return found

    @classmethod
    def read(cls, data: bytes | memoryview, count: int) -> "tuple[Layout, ByteArray]":
        """The layout of some messages, as their own head says, and the rows; else an error."""
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
    """What a batch holds, and how many its head says there are."""
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
