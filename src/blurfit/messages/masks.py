"""The mask of a share: 64-bit words from a 32-byte seed, the same for everyone who has the seed.

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
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from blurfit.arrays import WordArray
from blurfit.errors import InvalidValueError

SEED_BYTES = 32
SEED_WORDS = SEED_BYTES // 8
_ROWS_AT_ONCE = 512  # some hundred kilobytes of mask, which stay in the cache


def expand(seeds: WordArray, width: int) -> WordArray:
    """The masks of some seeds: (n, 4) words in, (n, width) words out.

    >>> expand(np.zeros((1, 4), np.uint64), 2).tolist()
    [[9910523521560253916, 9736928157321283757]]
    """
    return _from_bytes(_streams(_checked(seeds), 8 * width), width)


def sum_of_masks(seeds: WordArray, width: int) -> WordArray:
    """Σ mask mod 2⁶⁴ over some seeds, without holding all of the masks at once."""
    checked, total = _checked(seeds), np.zeros(width, dtype=np.uint64)
    for start in range(0, len(checked), _ROWS_AT_ONCE):
        part = _from_bytes(_streams(checked[start : start + _ROWS_AT_ONCE], 8 * width), width)
        total += part.sum(axis=0, dtype=np.uint64)
    return total


def _streams(seeds: WordArray, size: int) -> bytes:
    """The first bytes of each key stream, one after the other."""
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
