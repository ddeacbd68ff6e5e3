"""Where all randomness of a contributor comes from: the operating system, and AES-256 keyed by it.

Noise is drawn from these two functions and nothing else. Neither takes a seed, on purpose; tests
that replay bits put their own functions in place of these.
"""

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from blurfit.arrays import WordArray


def words(count: int) -> WordArray:
    """Words of 64 uniform bits: a key stream of AES-256, each call with a key of its own.

    Counter mode with 256 bits of the operating system as the key, so threads and forked processes
    never share a stream. The b = count/2 blocks of 128 bits are at a distance of at most b²/2¹²⁹
    from chance, because blocks of a permutation do not repeat, as long as AES-256 is what it is
    believed to be (`blurfit.messages.shares` assumes the same).

    >>> words(3).shape
    (3,)
    """
    stream = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


def whole(bits: int) -> int:
    """A whole number of so many uniform bits, straight from the operating system.

    >>> 0 <= whole(5) < 32
    True
    """
    return int.from_bytes(os.urandom((bits + 7) // 8)) >> (-bits % 8)
