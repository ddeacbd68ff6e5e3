r"""What a contributor keeps to withdraw later: secrets, of which identifiers are the hashes.

    secret of the receipt ─► of row i = SHA-256("blurfit secret\n" ‖ secret ‖ i, 8 bytes)
                                └─► identifier = 16 bytes of SHA-256("blurfit identifier\n" ‖ it)

The receipt's secret has 256 random bits and stays with the contributor. To whoever does not know it
the identifiers are as good as random, so nothing else changes: they have 128 bits, a database
cannot tell them from those of people who kept no secret, and nothing more is sent or stored.

**Who may withdraw.** Whoever can name a secret whose hash is the identifier: the contributor, for
each row by itself. Databases, proxies and thieves of a backup know identifiers; to find a secret
for one of them is to invert a hash of 128 bits. The identifier alone would not do: each of two
databases knows those at the other, and could then empty it of honest people until a victim is left
among people that it invented (`blurfit.store.commitment`). A secret that was shown to one of two
databases is good at the other one as well, as it should be: she wants to be in neither.
"""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from blurfit.arrays import ByteArray
from blurfit.errors import InvalidValueError


def secrets_of(secret: str, start: int, stop: int) -> list[bytes]:
    """The secrets of some rows.

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
    """The identifiers of secrets, (n, 16).

    >>> identifiers_of(secrets_of("00" * 32, 0, 1)).tobytes().hex()
    '7226b5fd886f1865a4d0cdcc13edf6da'
    """
    hashes = (hashlib.sha256(b"blurfit identifier\n" + one).digest()[:16] for one in some)
    return np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, 16)
