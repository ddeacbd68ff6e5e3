r"""Shares encrypted to the database that they are for: HPKE (RFC 9180), base mode.

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

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from blurfit.errors import InvalidValueError
from blurfit.messages.shares import Role

OVERHEAD = 48  # bytes that a sealed message is longer
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_PLACES: dict[Role, bytes] = {"first": b"\x01", "second": b"\x02"}


def new_key() -> str:
    """A private key, 64 hexadecimal digits."""
    return X25519PrivateKey.generate().private_bytes_raw().hex()


def public_key(private: str) -> str:
    """The public key that goes into an agreement, 64 hexadecimal digits."""
    return _private(private).public_key().public_bytes_raw().hex()


def seal(message: bytes, key: str, fingerprint: str, role: Role) -> bytes:
    """A message that only the database with this public key can read."""
    to = X25519PublicKey.from_public_bytes(bytes.fromhex(key))
    return _SUITE.encrypt(message, to, info=_info(fingerprint, role))


def unseal(sealed: bytes, private: str, fingerprint: str, role: Role) -> bytes:
    """The inverse of `seal`; refuses what was sealed for others, or changed on its way."""
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
