r"""Shares: what a contributor sends where trust is shared between two databases.

**Masks.** The mask of a share: 64-bit words from a 32-byte seed, the same for everyone who has the
seed.

    mask(seed)ⱼ = bytes 8j … 8j+7 of AES-256 in counter mode, key = seed, the first counter block
                  zero, as a little-endian whole number below 2⁶⁴

**Why v + mask says nothing about v.** Were the mask uniform on (ℤ/2⁶⁴)ᵏ, so would v + mask mod 2⁶⁴
be, whatever v is: adding v permutes the words. AES-256 in counter mode is a pseudo-random generator
as long as AES-256 is a pseudo-random permutation and the blocks are few: with b = k/2 blocks of 128
bits its output differs from uniform by at most b²/2¹²⁹, because blocks of a permutation do not
repeat. For N contributors of d = 128 (k = 8,384, b = 4,192) and N = 2³² that is less than 2⁻⁷².
Every contributor draws a seed of her own from the operating system, and uses it once, so that no
counter block is ever used twice under one key.

Nothing here is random: seeds are drawn in `blurfit.contributor.blur`. Test vectors that Python
and JavaScript share are in `tests/vectors/shares.json`.

**Shares.** What a contributor sends where trust is shared: one share to each of two databases.

| share | to | words of 64 bits |
| --- | --- | --- |
| "masked" | the first database | v + mask mod 2⁶⁴, as many as a submission has numbers |
| "seed" | the second database | the mask's 32-byte seed, 4 words |

v are the blurred numbers in whole steps of the grid. With proofs (`blurfit.agreement.proving`) the
shares are longer: those of a leader and a helper (`blurfit.proofs.prio3`). Both have the same
random identifier, by which the databases find what belongs together.

The bytes are those of `blurfit.messages.submissions`, with the codes 3 for "masked" and 4 for
"seed", and the numbers as little-endian whole numbers below 2⁶⁴. There is no form in JSON, whose
numbers are too short.

**Sealing.** Shares encrypted to the database that they are for: HPKE (RFC 9180), base mode.

    DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM
    info = "blurfit share\n" ‖ fingerprint, 32 bytes ‖ 1 for the first database, 2 for the second
    sealed = enc, 32 bytes ‖ ciphertext with its tag, 16 bytes

The keys are in the agreement, under its fingerprint. So whoever ends TLS before a database, or
before both of them, sees how long a message is and when it came, and neither the share nor the
identifier, by which it could be found at the other side. `info` binds the agreement and the
database, and the identifier is inside with its share: what is sealed for one database opens at no
other, under no other agreement, and no part of it can be exchanged for another's.

It authenticates nobody: anyone can seal a message of her own, as anyone could send one before; who
may is what invitations are for, which travel beside it. And it is no secret for ever: whoever comes
by a database's private key later reads what was recorded before.
"""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from blurfit.data import ByteArray, WordArray
from blurfit.errors import InvalidValueError, one_of
from blurfit.messages.submissions import Layout, batch_of

SEED_BYTES = 32
SEED_WORDS = SEED_BYTES // 8
_ROWS_AT_ONCE = 512  # some hundred kilobytes of mask, which stay in the cache


def expand(seeds: WordArray, width: int) -> WordArray:
    """Return the masks of some seeds: (n, 4) words in, (n, width) words out.

    >>> expand(np.zeros((1, 4), np.uint64), 2).tolist()
    [[9910523521560253916, 9736928157321283757]]
    """
    return _from_bytes(_streams(_checked(seeds), 8 * width), width)


def sum_of_masks(seeds: WordArray, width: int) -> WordArray:
    """Return Σ mask mod 2⁶⁴ over some seeds, without holding all of the masks at once."""
    checked, total = _checked(seeds), np.zeros(width, dtype=np.uint64)
    for start in range(0, len(checked), _ROWS_AT_ONCE):
        part = _from_bytes(_streams(checked[start : start + _ROWS_AT_ONCE], 8 * width), width)
        total += part.sum(axis=0, dtype=np.uint64)
    return total


def _streams(seeds: WordArray, size: int) -> bytes:
    """Return the first bytes of each key stream, one after the other."""
    keys, nothing, mode = seeds.astype("<u8").tobytes(), bytes(size), modes.CTR(bytes(16))
    return b"".join(
        [
            Cipher(algorithms.AES256(keys[start : start + SEED_BYTES]), mode)
            .encryptor()
            .update(nothing)
            for start in range(0, len(keys), SEED_BYTES)
        ]
    )


def _from_bytes(stream: bytes, width: int) -> WordArray:
    return np.frombuffer(stream, dtype="<u8").reshape(-1, width).astype(np.uint64, copy=False)


def _checked(seeds: WordArray) -> WordArray:
    if seeds.dtype != np.uint64 or seeds.ndim != 2 or seeds.shape[1] != SEED_WORDS:
        raise InvalidValueError(
            f"Expected seeds to be whole numbers (uint64) of shape (n, {SEED_WORDS}), but they are "
            f"{seeds.dtype} of shape {seeds.shape}."
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
                f"Expected at least one row in identifiers and words, of shapes {shapes}, and got "
                f"{self.identifiers.shape} and {self.words.shape}."
            )
        if self.identifiers.dtype != np.uint8 or self.words.dtype != np.uint64:
            raise InvalidValueError(
                f"Expected identifiers as uint8 and words as uint64, and got "
                f"{self.identifiers.dtype} and {self.words.dtype}."
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
        rows = super().rows(data)
        if rows is None:
            raise InvalidValueError(
                f"Expected shares of kind {self.kind!r} under {self.fingerprint}, {self.size} "
                f"bytes each, and got {len(data)} bytes of something else. This database gets one "
                "of two shares, as bytes: send them with `blurfit contribute`."
            )
        return rows

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
            f"Expected key={key!r} to be 64 hexadecimal digits in lower case, as `blurfit serve "
            "--share-key-file` prints them."
        )
    try:
        seal(b"", key, "00" * 32, "first")  # of low order: the secret would be zero
    except ValueError as error:
        raise InvalidValueError(f"Expected key={key!r} to be a key of X25519: {error}.") from error


def _private(key: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(key))


def _info(fingerprint: str, role: Role) -> bytes:
    return b"blurfit share\n" + bytes.fromhex(fingerprint) + _PLACES[role]
