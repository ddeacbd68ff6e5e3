"""XofTurboShake128 of the VDAF draft (section 6.2.1): from a seed, a purpose and a context to
bytes, seeds and field elements.

    message = |tag| (2 bytes) ‖ tag ‖ |seed| (1 byte) ‖ seed ‖ binder,   TurboSHAKE128, domain 1
    tag     = version (1) ‖ class (1) ‖ algorithm (4) ‖ usage (2), big-endian ‖ context

Field elements are eight bytes each, little-endian; those that are not below the modulus, one in
2³², are passed over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from Crypto.Hash import TurboSHAKE128

from blurfit.arrays import WordArray
from blurfit.proofs.field import MODULUS, is_canonical

SEED_BYTES = 32
_VERSION, _CLASS = 12, 0  # as the draft's tags have it, and VDAFs among its algorithms
_DOMAIN = 1


@dataclass(frozen=True)
class Xof:
    """The streams of one algorithm in one context, each for another usage."""

    algorithm: int
    context: bytes

    def seed(self, usage: int, seed: bytes, binder: bytes) -> bytes:
        """A new seed."""
        found: bytes = self._stream(usage, seed, binder).read(SEED_BYTES)
        return found

    def elements(self, usage: int, seed: bytes, binder: bytes, count: int) -> WordArray:
        """So many field elements."""
        return _elements(self._stream(usage, seed, binder), count)

    def rows(
        self, usage: int, seeds: Sequence[bytes], binders: Sequence[bytes], count: int
    ) -> WordArray:
        """So many field elements for each of some seeds, one row each."""
        found = np.empty((len(seeds), count), dtype=np.uint64)
        for row, seed, binder in zip(found, seeds, binders, strict=True):
            row[:] = self.elements(usage, seed, binder, count)
        return found

    def _stream(self, usage: int, seed: bytes, binder: bytes) -> Any:
        tag = b"".join(
            (
                bytes((_VERSION, _CLASS)),
                self.algorithm.to_bytes(4, "big"),
                usage.to_bytes(2, "big"),
                self.context,
            )
        )
        head = len(tag).to_bytes(2, "little") + tag + bytes((len(seed),)) + seed
        return TurboSHAKE128.new(domain=_DOMAIN, data=head + binder)


def _elements(stream: Any, count: int) -> WordArray:
    words: WordArray = np.frombuffer(stream.read(8 * count), dtype="<u8").astype(np.uint64)
    while not is_canonical(words):  # hardly ever
        words = words[words < MODULUS]
        more = np.frombuffer(stream.read(8 * (count - len(words))), dtype="<u8")
        words = np.concatenate([words, more.astype(np.uint64)])
    return words
