"""What a contributor sends where trust is split: one share to each of two databases.

| share | to | words of 64 bits |
| --- | --- | --- |
| "masked" | the first database | v + mask mod 2⁶⁴, as many as a "moment" submission has numbers |
| "seed" | the second database | the mask's 32-byte seed, 4 words |

v are the blurred numbers in whole steps of the grid, `quadratic` and then `linear`. Either share
alone is noise (`blurfit.messages.masks`). Both have the same random name, by which the databases
find what belongs together.

The bytes are those of `blurfit.messages.submissions`, with two more codes in the place of the
mechanism, 3 for "masked" and 4 for "seed" (for which k = 4 and d = 0), and the numbers as
little-endian whole numbers below 2⁶⁴. There is no form in JSON, whose numbers are too short.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from blurfit import validate
from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import InvalidValueError
from blurfit.messages.masks import SEED_WORDS
from blurfit.messages.submissions import (
    _BATCH_HEAD,
    _HEAD,
    _NAME,
    BATCH_MAGIC,
    MAGIC,
    VERSION,
    Layout,
    _batch_rows,
    _nameless,
)

Part = Literal["masked", "seed"]
Role = Literal["whole", "first", "second"]
ROLES: tuple[Role, ...] = ("whole", "first", "second")
CODES: dict[Part, int] = {"masked": 3, "seed": 4}
PART_OF: dict[Role, Part] = {"first": "masked", "second": "seed"}


@dataclass(frozen=True, eq=False)
class Shares:
    """Some contributors' shares for one of the two databases, one row each.

    `identifiers` are bytes, (n, 16), and `words` whole numbers below 2⁶⁴, (n, width).
    """

    identifiers: ByteArray
    words: WordArray
    layout: "ShareLayout"

    def __post_init__(self) -> None:
        shapes = (len(self.words), 16), (len(self.identifiers), sum(self.layout.widths))
        if (self.identifiers.shape, self.words.shape) != shapes or not len(self.words):
            raise InvalidValueError(
                f"Expected at least one row in identifiers and words, of shapes {shapes}, and got "
                f"{self.identifiers.shape} and {self.words.shape}."
            )
        if self.identifiers.dtype != np.uint8 or self.words.dtype != np.uint64:
            raise InvalidValueError(
                f"Expected identifiers as uint8 and words as uint64, and got "
                f"{self.identifiers.dtype} and {self.words.dtype}."
            )

    def __len__(self) -> int:
        return len(self.identifiers)

    def to_bytes(self) -> bytes:
        """One share, or a batch of them."""
        heads = np.tile(np.frombuffer(self.layout.head, dtype=np.uint8), (len(self), 1))
        heads[:, _NAME] = self.identifiers
        words = np.ascontiguousarray(self.words, dtype="<u8").view(np.uint8)
        rows = np.hstack([heads, words])
        if len(rows) == 1:
            return rows.tobytes()
        return _BATCH_HEAD.pack(BATCH_MAGIC, VERSION, 0, len(rows)) + rows.tobytes()


@dataclass(frozen=True)
class ShareLayout(Layout):
    """Where things are in the bytes of one database's shares; see `Layout`."""

    part: Part = "masked"

    def __post_init__(self) -> None:
        validate.one_of(tuple(CODES), part=self.part)

    @property
    def mask_width(self) -> int:
        """How many words a mask has, whichever share this is."""
        return sum(super().widths)

    @property
    def widths(self) -> tuple[int, int]:
        """How many words there are, in the two places where a submission says it."""
        return super().widths if self.part == "masked" else (SEED_WORDS, 0)

    @cached_property
    def head(self) -> bytes:
        """What every share begins with, but for the name."""
        fingerprint = bytes.fromhex(self.fingerprint)
        return _HEAD.pack(MAGIC, VERSION, CODES[self.part], b"", fingerprint, *self.widths)

    def rows(self, data: bytes) -> ByteArray:
        """One share or a batch of them as bytes, (n, size)."""
        if self.fits(data):
            return np.frombuffer(data, dtype=np.uint8).reshape(1, -1)
        rows = _batch_rows(data, self.size) if data[:6] == BATCH_MAGIC else None
        if rows is None or (_nameless(rows) != np.frombuffer(self.head, dtype=np.uint8)).any():
            raise InvalidValueError(
                f"Expected shares of kind {self.part!r} under {self.fingerprint}, {self.size} "
                f"bytes each, and got {len(data)} bytes of something else. This database gets one "
                "of two shares, as bytes: send them with blurfit.contributor.share_sending."
            )
        return rows

    def words(self, rows: ByteArray) -> WordArray:
        """The words of some rows."""
        words: WordArray = np.ascontiguousarray(rows[:, _HEAD.size :]).view("<u8")
        return words
