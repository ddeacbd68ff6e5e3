"""HPKE by the book: RFC 9180 written down plainly, its vector, and what ours seals."""

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from blurfit import InvalidValueError
from blurfit.messages.submissions import OVERHEAD, new_key, public_key, require_key, seal, unseal

MARK = "ab" * 32
SUITE = b"HPKE" + bytes.fromhex("002000010001")


def extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, "sha256")


def expand(suite: bytes, prk: bytes, label: bytes, info: bytes, length: int) -> bytes:
    labelled = length.to_bytes(2) + b"HPKE-v1" + suite + label + info
    return hmac.digest(prk, labelled + b"\x01", "sha256")[:length]


def schedule(private: str, enc: bytes, info: bytes) -> tuple[bytes, bytes, bytes]:
    """The shared secret, the key and the first nonce, for whoever has the private key."""
    key = X25519PrivateKey.from_private_bytes(bytes.fromhex(private))
    dh = key.exchange(X25519PublicKey.from_public_bytes(enc))
    context = enc + key.public_key().public_bytes_raw()
    kem = b"KEM" + bytes.fromhex("0020")
    shared = expand(kem, extract(kem, b"", b"eae_prk", dh), b"shared_secret", context, 32)
    hashes = extract(SUITE, b"", b"psk_id_hash", b"") + extract(SUITE, b"", b"info_hash", info)
    secret = extract(SUITE, shared, b"secret", b"")
    return (
        shared,
        expand(SUITE, secret, b"key", b"\x00" + hashes, 16),
        expand(SUITE, secret, b"base_nonce", b"\x00" + hashes, 12),
    )


def test_the_vector_of_the_rfc() -> None:
    """Appendix A.1.1: the plain version above is what others computed."""
    enc = "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431"
    shared, key, nonce = schedule(
        "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
        bytes.fromhex(enc),
        bytes.fromhex("4f6465206f6e2061204772656369616e2055726e"),
    )
    assert shared.hex() == "fe0e18c9f024ce43799ae393c7e8fe8fce9d218875e8227b0187c04e7d2ea1fc"
    assert key.hex() == "4531685d41d65f03dc48f6b8302c05b0"
    assert nonce.hex() == "56d890e5accaaf011cff4b7d"


def test_what_is_sealed_opens_by_the_book() -> None:
    private = new_key()
    for role, place in (("first", 1), ("second", 2)):
        sealed = seal(b"a share", public_key(private), MARK, role)
        assert len(sealed) == len(b"a share") + OVERHEAD
        info = b"blurfit share\n" + bytes.fromhex(MARK) + bytes([place])
        _, key, nonce = schedule(private, sealed[:32], info)
        assert AESGCM(key).decrypt(nonce, sealed[32:], None) == b"a share"
        assert unseal(sealed, private, MARK, role) == b"a share"


def test_it_opens_nowhere_else() -> None:
    private = new_key()
    sealed = seal(b"a share", public_key(private), MARK, "first")
    assert sealed != seal(b"a share", public_key(private), MARK, "first"), "a fresh key each time"
    changed = bytes([*sealed[:-1], sealed[-1] ^ 1])
    for given, key, mark, role in (
        (sealed, new_key(), MARK, "first"),
        (sealed, private, "cd" * 32, "first"),
        (sealed, private, MARK, "second"),
        (changed, private, MARK, "first"),
        (sealed[:40], private, MARK, "first"),
        (b"", private, MARK, "first"),
    ):
        with pytest.raises(InvalidValueError, match="sealed to this database"):
            unseal(given, key, mark, role)


@pytest.mark.parametrize("key", ["", "AB" * 32, "ab" * 31, 7, "00" * 32, "01" + "00" * 31])
def test_keys_that_are_none_are_refused(key) -> None:
    with pytest.raises(InvalidValueError, match="key="):
        require_key(key)
    assert hashlib.sha256(public_key(new_key()).encode()).digest_size == 32
