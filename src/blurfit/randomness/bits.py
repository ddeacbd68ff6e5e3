"""Draw random bits: those of the operating system, and AES-256 keyed by them.

All of blurfit's noise, masks, identifiers, secrets and tokens are made of `octets`, and nothing
else reads the operating system's bits (`tests/test_architecture.py`). None of these functions takes
a seed, on purpose; tests that replay bits put a function of their own in place of `octets`.
"""

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from blurfit.data import WordArray


def octets(count: int) -> bytes:
    """Return so many bytes, straight from the operating system."""
    return os.urandom(count)


def words(count: int) -> WordArray:
    """Return words of 64 uniform bits: a key stream of AES-256, each call with a key of its own.

    Counter mode with 256 bits of the operating system as the key, so threads and forked processes
    never share a stream. The b = count/2 blocks of 128 bits are at a distance of at most b²/2¹²⁹
    from chance, because blocks of a permutation do not repeat, as long as AES-256 is what it is
    believed to be (`blurfit.messages.submissions` assumes the same).
    """
    stream = Cipher(algorithms.AES256(octets(32)), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


def whole(bits: int) -> int:
    """Return a whole number of so many uniform bits."""
    return int.from_bytes(octets((bits + 7) // 8)) >> (-bits % 8)


def below(limit: int) -> int:
    """Return a uniform whole number from 0 to limit − 1; those that are larger are drawn again."""
    bits = (limit - 1).bit_length()
    while (found := whole(bits)) >= limit:
        pass
    return found
