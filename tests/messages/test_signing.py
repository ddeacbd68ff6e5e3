"""Ed25519: the RFC's vectors, its own algorithm written down plainly, and what ours signs."""

import hashlib

import pytest
import rfc8785

from blurfit import InvalidValueError
from blurfit.messages import signing
from blurfit.messages.signing import (
    Signer,
    about_release,
    about_submissions,
    is_signed,
    new_key,
    require_public_key,
)
from support import ed25519

# RFC 8032, section 7.1: private key, public key, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("private", "public", "message", "signature"), VECTORS)
def test_the_vectors_of_the_rfc(private, public, message, signature) -> None:
    found = Signer(private).sign(bytes.fromhex(message))
    assert (found.key, found.signature) == (public, signature)
    for check in (is_signed, ed25519.verifies):
        assert check(bytes.fromhex(message), public, signature)
        assert not check(bytes.fromhex(message) + b"\x00", public, signature)


def test_what_is_signed_has_a_kind_and_checks_by_the_book() -> None:
    signer, mark, names = Signer(new_key()), "ab" * 32, bytes(range(32))
    by_hand = (
        b"blurfit receipt\n"
        + bytes([0xAB] * 32 + [2, 0, 0, 0, 0, 0, 0, 0, 2])
        + hashlib.sha256(names).digest()
    )
    assert about_submissions("receipt", mark, "second", names) == by_hand
    document = {"b": 1.0, "a": [2, "é"], "signatures": [1]}
    assert about_release(document) == b'blurfit release\n{"a":[2,"\xc3\xa9"],"b":1}'
    assert about_release(document) == b"blurfit release\n" + rfc8785.dumps({"a": [2, "é"], "b": 1})
    signature = signer.sign(by_hand).signature
    assert ed25519.verifies(by_hand, signer.key, signature)
    others = (
        about_submissions("withdrawal", mark, "second", names),
        about_submissions("receipt", mark, "first", names),
        about_submissions("receipt", "ac" * 32, "second", names),
        about_submissions("receipt", mark, "second", names[:16]),
        about_submissions("receipt", mark, "second", names[16:] + names[:16]),
    )
    assert len({by_hand, *others}) == 6
    for other in others:
        assert not is_signed(other, signer.key, signature)
    assert not is_signed(by_hand, Signer(new_key()).key, signature)
    for wrong in (None, "", signature[:-2], signature.upper(), 7, "00" * 64):
        assert not is_signed(by_hand, signer.key, wrong)


def test_keys_under_which_anybody_can_sign_are_refused() -> None:
    """All encodings of the points whose order divides 8, found by computing and not by heart."""
    small = [
        key
        for key in (
            f"{first}{last:02x}"
            for first in {one[:62] for one in signing._WEAK}
            for last in range(256)
        )
        if (point := ed25519.decoded(bytes.fromhex(key)))
        and ed25519.same(ed25519.times(8, point), (0, 1, 1, 0))
    ]
    assert len(small) == 14, "seven with either sign"
    for key in small:
        with pytest.raises(InvalidValueError, match="anybody can sign"):
            require_public_key(key)
    for key in ("", "AB" * 32, "ab" * 31, 7, None):
        with pytest.raises(InvalidValueError, match="64 hexadecimal digits"):
            require_public_key(key)
    require_public_key(Signer(new_key()).key)
