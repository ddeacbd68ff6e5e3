r"""Signatures of a service, by a key that the agreement names: Ed25519 (RFC 8032).

The agreement holds the 32-byte public key, so a signature can be checked without asking anybody. A
signed text begins with its subject, so that no signature passes for one of another kind:

    receipt     "blurfit receipt\n" ‖ fingerprint ‖ place ‖ how many ‖ SHA-256(identifiers)
    withdrawal  "blurfit withdrawal\n" ‖ … likewise
    release     "blurfit release\n" ‖ canonical JSON (RFC 8785) of the file without its signatures

The fingerprint has 32 bytes; place is one byte, 0 for the only database, 1 for the first of two and
2 for the second; how many are 8 bytes, big-endian; identifiers are 16 bytes each, in the order in
which they were sent.

A receipt says that submissions under these identifiers are stored here, and nothing about their
numbers: an answer that told equal numbers from others would betray what is stored
(`blurfit_server.store.arrivals`). Tested by `tests/messages/test_signing.py`.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from blurfit.data import canonical
from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import ROLES, Role

Deed = Literal["receipt", "withdrawal"]
SIGNATURES = "signatures"  # the field of a file that is not signed itself

# Keys under which anybody can sign anything: points of small order, without the sign of x.
_WEAK = frozenset(
    {
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    }
)


@dataclass(frozen=True)
class Signature:
    """A signature in 128 hexadecimal digits, and the public key that it is by, in 64."""

    key: str
    signature: str


class Signer:
    """Whoever has a private key.

    >>> signer = Signer("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    >>> signer.key[:16], signer.sign(b"").signature[:16]
    ('d75a980182b10ab7', 'e5564300c360ac72')
    """

    def __init__(self, private: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private))
        self.key = self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> Signature:
        """Sign some bytes; the same bytes always get the same signature."""
        return Signature(self.key, self._key.sign(message).hex())


def new_key() -> str:
    """Draw a private key, 64 hexadecimal digits."""
    return Ed25519PrivateKey.generate().private_bytes_raw().hex()


def is_signed(message: bytes, key: str, signature: object) -> bool:
    """Tell whether this is a signature of these bytes by whoever has the private key."""
    if not (isinstance(signature, str) and re.fullmatch("[0-9a-f]{128}", signature)):
        return False
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def about_submissions(deed: Deed, fingerprint: str, role: Role, identifiers: bytes) -> bytes:
    """Return what is signed when submissions under these identifiers were stored, or withdrawn."""
    return b"".join(
        (
            f"blurfit {deed}\n".encode(),
            bytes.fromhex(fingerprint),
            bytes([ROLES.index(role)]),
            (len(identifiers) // 16).to_bytes(8),
            hashlib.sha256(identifiers).digest(),
        )
    )


def about_release(document: Mapping[str, Any]) -> bytes:
    """Return what is signed of a published file: all of it, but for the signatures."""
    unsigned = {name: value for name, value in document.items() if name != SIGNATURES}
    return b"blurfit release\n" + canonical(unsigned)


def require_public_key(key: object) -> None:
    """Refuse what is no public key in hexadecimal digits, and keys under which anybody can sign."""
    if not (isinstance(key, str) and re.fullmatch("[0-9a-f]{64}", key)):
        raise InvalidValueError(
            "Expected a signing key of 64 hexadecimal digits in lower case, as `blurfit serve` "
            "prints it, and got {key!r}.",
            key=key,
        )
    last = int(key[62:], 16) & 0x7F
    if f"{key[:62]}{last:02x}" in _WEAK:
        raise InvalidValueError(
            "Expected a signing key of a service, and {key} is one under which anybody can sign "
            "anything. Take the one that `blurfit serve` prints.",
            key=key,
        )
