r"""What a contributor sends: a random identifier, the agreement's fingerprint, and blurred numbers.
Nothing else about a record ever leaves.

Submissions have two forms, both versioned and exact to the last bit of every float64. A reader
raises `InvalidValueError` on anything else. As JSON, an object, or a list of them:

    {"format": "blurfit-submission", "version": 1, "identifier": "…", "fingerprint": "…",
     "numbers": [0.25, …]}

As bytes, numbers little-endian:

| bytes | one submission |
| --- | --- |
| 6 | 89 42 4C 55 52 0A, "\x89BLUR\n" |
| 1 | version, 1 |
| 1 | code: 1 a whole submission, 3 a masked share, 4 a seed |
| 16, 32 | identifier, fingerprint |
| 8 | k, the count of numbers |
| 8k | the numbers, as float64; of a share as integers below 2⁶⁴ |

A batch is 89 42 4C 55 52 53 ("\x89BLURS"), the version in one byte, a zero byte, the count in eight
bytes, and then as many submissions of one agreement, one after the other. All messages under one
agreement have the same length and head, the identifier apart (`Layout`).

Shares have no form in JSON, whose numbers are too short:

| share | to | words of 64 bits |
| --- | --- | --- |
| "masked" | the first database | v + mask mod 2⁶⁴, v the numbers in whole grid steps |
| "seed" | the second database | the mask's 32-byte seed, 4 words |

With validity proofs (`blurfit.agreement.numbers`) both are longer (`blurfit.proofs.prio3`).

`docs/theory/shares.md` has masks, seals and withdrawal secrets: the formulas, why a masked share is
uniform if AES-256 is a pseudo-random permutation, and what a seal does not protect. Nothing here is
random: `blurfit.contributor.blur` draws seeds, each for one record. Tested by `tests/messages`.
"""

import hashlib
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from blurfit.data import AnyArray, ByteArray, FloatArray, WordArray, read_json
from blurfit.errors import InvalidValueError, one_of

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

    def fits(self, data: bytes) -> bool:
        """Tell whether this is one message under the agreement, whatever it says."""
        around = self.head[: _IDENTIFIER.start], self.head[_IDENTIFIER.stop :]
        found = data[: _IDENTIFIER.start], data[_IDENTIFIER.stop : _HEAD.size]
        return len(data) == self.size and found == around

    def rows(self, data: bytes) -> ByteArray:
        """Read one message or a batch of them as bytes, (n, size); refuse what does not fit."""
        if self.fits(data):
            return np.frombuffer(data, dtype=np.uint8).reshape(1, -1)
        found, rows = Layout.read(*(rows_in(data) if data[:6] == BATCH_MAGIC else (data, 1)))
        self.require(found)
        return rows

    def require(self, found: "Layout") -> None:
        """Refuse the layout of something else."""
        if found.code != self.code:
            raise InvalidValueError(
                "Expected code={code} to be {code_2}, a whole submission: this is a share of one.",
                code=found.code,
                code_2=self.code,
            )
        if found.fingerprint != self.fingerprint:
            raise InvalidValueError(
                "Expected fingerprint={found_fingerprint} to be {fingerprint}: the "
                "submission was made for another agreement.",
                found_fingerprint=found.fingerprint,
                fingerprint=self.fingerprint,
            )
        if found.width != self.width:
            raise InvalidValueError(
                "Expected submissions of {width} numbers, and got {width_2}.",
                width=self.width,
                width_2=found.width,
            )

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
                "Expected {expected} bytes for {count} x {width} numbers, but there are "
                "{data_count}: it was cut short, or something follows.",
                expected=expected,
                count=count,
                width=width,
                data_count=len(data),
            )
        rows = np.frombuffer(data, dtype=np.uint8).reshape(count, -1)
        heads = rows[:, : _HEAD.size].copy()
        heads[:, _IDENTIFIER] = 0
        if (heads != heads[0]).any():
            raise InvalidValueError(
                "Expected the {count} submissions of a batch to be of one agreement, but their "
                "heads differ in more than the identifier; make a batch for each.",
                count=count,
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
            "Expected a batch of at least one submission, but its head says count={count} and "
            "has {zero} for a zero byte: it was damaged on its way.",
            count=count,
            zero=zero,
        )
    return memoryview(data)[_BATCH_HEAD.size :], count


def check_mark(mark: str | bytes, expected: str | bytes, version: int) -> None:
    """Refuse what is no message of this kind, or of another version."""
    if mark != expected:
        raise InvalidValueError(
            "Expected a message that is marked {expected!r}, but this one is marked {mark!r}; is "
            "it one submission where a batch is read, or the reverse?",
            expected=expected,
            mark=mark,
        )
    if version != VERSION:
        raise InvalidValueError(
            "Expected version={version} of {format} to be {version_2}, the only one that is "
            "understood here; let both sides use the same release of blurfit.",
            version=version,
            format=FORMAT,
            version_2=VERSION,
        )


def _unpack(layout: struct.Struct, data: bytes | memoryview) -> tuple[Any, ...]:
    if len(data) < layout.size:
        raise InvalidValueError(
            "Expected at least {size} bytes, but there are {data_count}: it was cut short.",
            size=layout.size,
            data_count=len(data),
        )
    return layout.unpack_from(data)


_Kind = TypeVar("_Kind")


@dataclass(frozen=True, eq=False)
class Submission:
    """One blurred record: an identifier of 128 random bits as 32 hexadecimal digits, so that it is
    counted once, the agreement's fingerprint, and numbers, which cannot be written to: they are
    copied on the way in, unless they are read-only already.

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
                "Expected identifiers to be bytes (uint8) of shape (n, 16), but they are "
                "{dtype} of shape {shape}.",
                dtype=identifiers.dtype,
                shape=identifiers.shape,
            )
        _hexadecimal(64, fingerprint=self.fingerprint)
        object.__setattr__(self, "identifiers", _read_only(identifiers))
        object.__setattr__(self, "numbers", _numbers(self.numbers, axes=2))
        if not len(identifiers) == len(self.numbers) > 0:
            raise InvalidValueError(
                "Expected as many identifiers as rows, and at least one, but there are "
                "{identifiers_count}, beside {numbers_count} rows of numbers.",
                identifiers_count=len(identifiers),
                numbers_count=len(self.numbers),
            )

    @classmethod
    def gather(cls, submissions: "Sequence[Submission] | Sequence[_Message]") -> "Submissions":
        """Return the table of some submissions, which must share an agreement."""
        kinds = {(one.fingerprint, len(one.numbers)) for one in submissions}
        if len(kinds) != 1:
            raise InvalidValueError(
                "Expected the submissions of a batch to be of one agreement, but there are "
                "{kinds_count} kinds among {submissions_count}; make a batch for each.",
                kinds_count=len(kinds),
                submissions_count=len(submissions),
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
        layout.require(self.layout)
        return layout.joined(self.identifiers, self.numbers)

    def to_bytes(self) -> bytes:
        """Return the compact form: a batch."""
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
    """Return what a text says: a header before the whole, for better words about its version."""
    try:
        if not whole:
            return msgspec.json.decode(text, type=kind)
        found: _Kind = read_json(text, kind, colons_in_values=False)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise InvalidValueError(
            "Expected {format} version {version} as JSON, but it cannot be read: {error}.",
            format=FORMAT,
            version=VERSION,
            error=error,
        ) from error
    return found


def _unpacked(data: bytes | memoryview, count: int) -> Submissions:
    layout, rows = Layout.read(data, count)
    Layout(layout.fingerprint, layout.width).require(layout)
    return Submissions(layout.identifiers(rows), layout.fingerprint, layout.numbers(rows))


def _numbers(values: Any, *, axes: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError("Expected numbers, and something else is among them.") from None
    if array.ndim != axes or not array.shape[-1]:
        shape = "(k,)" if axes == 1 else "(n, k)"
        raise InvalidValueError(
            "Expected numbers.shape={shape} to be {shape_2}, k >= 1.",
            shape=array.shape,
            shape_2=shape,
        )
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
            "Expected {name}={value!r} to be {digits} hexadecimal digits, 0-9 and a-f.",
            name=name,
            value=value,
            digits=digits,
        )


SEED_BYTES = 32
SEED_WORDS = SEED_BYTES // 8
_ROWS_AT_ONCE = 512  # some hundred kilobytes of mask, which stay in the cache


def expand(seeds: WordArray, width: int) -> WordArray:
    """Return the masks of some seeds: (n, 4) words in, (n, width) words out.

    >>> expand(np.zeros((1, 4), np.uint64), 2).tolist()
    [[9910523521560253916, 9736928157321283757]]
    """
    keys, nothing, mode = _checked(seeds).astype("<u8").tobytes(), bytes(8 * width), modes.CTR
    starts, first = range(0, len(keys), SEED_BYTES), bytes(16)
    ciphers = (Cipher(algorithms.AES256(keys[at : at + SEED_BYTES]), mode(first)) for at in starts)
    stream = b"".join([one.encryptor().update(nothing) for one in ciphers])
    return np.frombuffer(stream, dtype="<u8").reshape(-1, width).astype(np.uint64, copy=False)


def sum_of_masks(seeds: WordArray, width: int) -> WordArray:
    """Return Σ mask mod 2⁶⁴ over some seeds, without holding all of the masks at once."""
    total = np.zeros(width, dtype=np.uint64)
    for start in range(0, len(_checked(seeds)), _ROWS_AT_ONCE):
        part = expand(seeds[start : start + _ROWS_AT_ONCE], width)
        total += part.sum(axis=0, dtype=np.uint64)
    return total


def _checked(seeds: WordArray) -> WordArray:
    if seeds.dtype != np.uint64 or seeds.ndim != 2 or seeds.shape[1] != SEED_WORDS:
        raise InvalidValueError(
            "Expected seeds to be whole numbers (uint64) of shape (n, {seed_words}), but they are "
            "{dtype} of shape {shape}.",
            seed_words=SEED_WORDS,
            dtype=seeds.dtype,
            shape=seeds.shape,
        )
    return seeds


ShareKind = Literal["masked", "seed"]
Role = Literal["whole", "first", "second"]
ROLES: tuple[Role, ...] = ("whole", "first", "second")
CODES: dict[ShareKind, int] = {"masked": 3, "seed": 4}
KIND_OF: dict[Role, ShareKind] = {"first": "masked", "second": "seed"}


@dataclass(frozen=True, eq=False)
class Shares:
    """Some contributors' shares for one of the two databases, one row each.

    `identifiers` are bytes, (n, 16), and `words` whole numbers below 2⁶⁴, (n, width).
    """

    identifiers: ByteArray
    words: WordArray
    layout: "ShareLayout"

    def __post_init__(self) -> None:
        shapes = (len(self.words), 16), (len(self.identifiers), self.layout.width)
        if (self.identifiers.shape, self.words.shape) != shapes or not len(self.words):
            raise InvalidValueError(
                "Expected at least one row in identifiers and words, of shapes {shapes}, and got "
                "{shape} and {shape_2}.",
                shapes=shapes,
                shape=self.identifiers.shape,
                shape_2=self.words.shape,
            )
        if self.identifiers.dtype != np.uint8 or self.words.dtype != np.uint64:
            raise InvalidValueError(
                "Expected identifiers as uint8 and words as uint64, and got {dtype} and {dtype_2}.",
                dtype=self.identifiers.dtype,
                dtype_2=self.words.dtype,
            )

    def __len__(self) -> int:
        return len(self.identifiers)

    def to_bytes(self) -> bytes:
        """Write one share, or a batch of them."""
        rows = self.layout.joined(self.identifiers, self.words)
        return rows.tobytes() if len(rows) == 1 else batch_of(rows)


class ShareLayout(Layout):
    """Where things are in the bytes of one database's shares of submissions of so many numbers."""

    def __init__(self, fingerprint: str, numbers: int, kind: ShareKind, *proved: int) -> None:
        one_of(tuple(CODES), kind=kind)
        widths = proved or (numbers, SEED_WORDS)
        width = widths[0] if kind == "masked" else widths[1]
        super().__init__(fingerprint, width, CODES[kind])
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "mask_width", numbers)

    kind: ShareKind
    mask_width: int  # how many words a mask has, whichever share this is

    def rows(self, data: bytes) -> ByteArray:
        """Read one share or a batch of them as bytes, (n, size); refuse what does not fit."""
        try:
            return super().rows(data)
        except InvalidValueError:
            raise InvalidValueError(
                "Expected shares of kind {kind!r} under {fingerprint}, {size} "
                "bytes each, and got {data_count} bytes of something else. This database gets one "
                "of two shares, as bytes: send them with `blurfit contribute`.",
                kind=self.kind,
                fingerprint=self.fingerprint,
                size=self.size,
                data_count=len(data),
            ) from None

    def words(self, rows: ByteArray) -> WordArray:
        """Return the words of some rows."""
        words: WordArray = self.numbers(rows).view("<u8")
        return words


OVERHEAD = 48  # bytes that a sealed message is longer
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_PLACES: dict[Role, bytes] = {"first": b"\x01", "second": b"\x02"}


def new_key() -> str:
    """Draw a private key, 64 hexadecimal digits."""
    return X25519PrivateKey.generate().private_bytes_raw().hex()


def public_key(private: str) -> str:
    """Return the public key that goes into an agreement, 64 hexadecimal digits."""
    return _private(private).public_key().public_bytes_raw().hex()


def seal(message: bytes, key: str, fingerprint: str, role: Role) -> bytes:
    """Seal a message: only the database with this public key can read it."""
    to = X25519PublicKey.from_public_bytes(bytes.fromhex(key))
    return _SUITE.encrypt(message, to, info=_info(fingerprint, role))


def unseal(sealed: bytes, private: str, fingerprint: str, role: Role) -> bytes:
    """Invert `seal`; refuse what was sealed for others, or changed on its way."""
    try:
        return _SUITE.decrypt(sealed, _private(private), info=_info(fingerprint, role))
    except (InvalidTag, ValueError) as error:
        raise InvalidValueError(
            "Expected a message that is sealed to this database under this agreement: it is for "
            "another one, was changed on its way, or was not sealed at all. Send it with "
            "`blurfit contribute`, or the page that the service offers."
        ) from error


def require_key(key: str) -> None:
    """Refuse what is no public key in hexadecimal digits, and keys that agree with everybody's."""
    if not (isinstance(key, str) and re.fullmatch("[0-9a-f]{64}", key)):
        raise InvalidValueError(
            "Expected key={key!r} to be 64 hexadecimal digits in lower case, as `blurfit serve "
            "--share-key-file` prints them.",
            key=key,
        )
    try:
        seal(b"", key, "00" * 32, "first")  # of low order: the secret would be zero
    except ValueError as error:
        raise InvalidValueError(
            "Expected key={key!r} to be a key of X25519: {error}.", key=key, error=error
        ) from error


def _private(key: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(key))


def _info(fingerprint: str, role: Role) -> bytes:
    return b"blurfit share\n" + bytes.fromhex(fingerprint) + _PLACES[role]


def secrets_of(secret: str, start: int, stop: int) -> list[bytes]:
    """Return the secrets of some rows.

    >>> [one.hex()[:8] for one in secrets_of("00" * 32, 0, 2)]
    ['88b64d29', 'c3afa94e']
    """
    if not re.fullmatch("[0-9a-f]{64}", secret):
        raise InvalidValueError("Expected a secret of 64 hexadecimal digits, as a receipt has it.")
    begun = hashlib.sha256(b"blurfit secret\n" + bytes.fromhex(secret))
    found = []
    for row in range(start, stop):
        one = begun.copy()
        one.update(row.to_bytes(8))
        found.append(one.digest())
    return found


def identifiers_of(some: Sequence[bytes]) -> ByteArray:
    """Return the identifiers of secrets, (n, 16).

    >>> identifiers_of(secrets_of("00" * 32, 0, 1)).tobytes().hex()
    '7226b5fd886f1865a4d0cdcc13edf6da'
    """
    hashes = (hashlib.sha256(b"blurfit identifier\n" + one).digest()[:16] for one in some)
    return np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, 16)
