"""Secrets that let somebody in: the administrator's token, and invitations.

A token is 256 random bits. Whoever checks one keeps its SHA-256 alone, from which it cannot be
recovered: there are no short or human tokens to guess, so no slow hash is needed.
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

from blurfit import private_files
from blurfit.agreement.waves import Lot
from blurfit.errors import InvalidValueError
from blurfit.randomness import bits

LEAST_LENGTH = 32


def new_token() -> str:
    """Return a fresh secret that can be put into a link: 43 letters, digits, - and _."""
    return urlsafe_b64encode(bits.octets(32)).rstrip(b"=").decode()


def new_shares(lot: Lot, count: int, first: int = 1) -> list[int]:
    """Draw how many of so many invitations are for each wave of a plan, from wave `first` on."""
    return lot.shares(count, bits.below(lot.in_all(first)), first)


def new_in_groups(lot: Lot, shares: Sequence[int]) -> list[str]:
    """Return fresh invitations to a plan, so many for each of its waves, in a random order.

    A token's lot is a hash of it, so tokens that are sorted by their letters are in an order that
    has nothing to do with their groups.
    """
    found: list[list[str]] = [[] for _ in shares]
    while any(len(some) < wanted for some, wanted in zip(found, shares, strict=True)):
        token = new_token()
        place = lot.group_of(hashed(token)) - 1
        if len(found[place]) < shares[place]:
            found[place].append(token)
    return sorted(token for some in found for token in some)


def joined(made: Sequence[Sequence[str]], lot: Lot | None = None) -> list[tuple[str, ...]]:
    """Pair the invitations of both databases, one of each for every person: for a plan within a
    group, so that both databases find the same one, and in a random order again.
    """
    if lot is None:
        return list(zip(*made, strict=True))
    by_group = [sorted(some, key=lambda one: lot.group_of(hashed(one))) for some in made]
    return sorted(zip(*by_group, strict=True))


def hashed(token: str) -> bytes:
    """Return what a store keeps of a token."""
    return hashlib.sha256(token.encode()).digest()


def matches(token: str, expected: bytes) -> bool:
    """Tell whether a token's hash was kept; it takes the same time whatever differs."""
    return hmac.compare_digest(hashed(token), expected)


def for_agreement(secret: str, fingerprint: str) -> str:
    """Return what two databases that share a secret know each other by under one agreement.

    HMAC-SHA256 of the fingerprint, which covers both addresses: whoever is named by an agreement
    learns what is good under that agreement alone, and neither the secret nor anything for another.
    """
    message = b"blurfit peer " + fingerprint.encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def verification_key(secret: str, fingerprint: str) -> bytes:
    """Return the key with which two databases that share a secret verify proofs."""
    message = b"blurfit proofs " + fingerprint.encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).digest()


def read_token(path: Path) -> str:
    """Read the token in a file; refuse one that could be guessed."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise InvalidValueError(
            f"Expected {str(path)!r} to be a file with the administrator's token, which "
            f"`blurfit serve` prints and writes at its first start: {error}."
        ) from error
    if len(token) < LEAST_LENGTH or not token.isascii() or not token.isprintable():
        raise InvalidValueError(
            f"Expected a token of at least {LEAST_LENGTH} printable characters in {str(path)!r}; "
            "remove the file, and `blurfit serve` writes a good one."
        )
    return token


def write_token(path: Path, token: str) -> None:
    """Put a token into a new file that nobody else can read."""
    private_files.write(path, token + "\n", only_new=True)
