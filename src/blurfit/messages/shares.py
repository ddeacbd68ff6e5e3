"""What a contributor sends where trust is shared: one share to each of two databases.

| share | to | words of 64 bits |
| --- | --- | --- |
| "masked" | the first database | v + mask mod 2⁶⁴, as many as a submission has numbers |
| "seed" | the second database | the mask's 32-byte seed, 4 words |

v are the blurred numbers in whole steps of the grid. With proofs (`blurfit.agreement.proving`) the
shares are longer: those of a leader and a helper (`blurfit.proofs.prio3`). Either share alone is
noise (`blurfit.messages.masks`). Both have the same random identifier, by which the databases find
what belongs together.

The bytes are those of `blurfit.messages.submissions`, with the codes 3 for "masked" and 4 for
"seed", and the numbers as little-endian whole numbers below 2⁶⁴. There is no form in JSON, whose
numbers are too short.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from blurfit import validate
from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import InvalidValueError
from blurfit.messages.layout import Layout, batch_of
from blurfit.messages.masks import SEED_WORDS

SharePart = Literal["masked", "seed"]
Role = Literal["whole", "first", "second"]
ROLES: tuple[Role, ...] = ("whole", "first", "second")
CODES: dict[SharePart, int] = {"masked": 3, "seed": 4}
PART_OF: dict[Role, SharePart] = {"first": "masked", "second": "seed"}


@dataclass(frozen=True, eq=False)
class Shares:
    """Some contributors' shares for one of the two databases, one row each.

    `identifiers` are bytes, (n, 16), and `words` whole numbers below 2⁶⁴, (n, width).
    """

    identifiers: ByteArray
    words: WordArray
    layout: "ShareLayout"

    def __post_init__(self) -> None:
        shapes = (len(self.words), 16), (len(self.identifiers), self.layout.width)
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
        rows = self.layout.joined(self.identifiers, self.words)
        return rows.tobytes() if len(rows) == 1 else batch_of(rows)


class ShareLayout(Layout):
    """Where things are in the bytes of one database's shares of submissions of so many numbers."""

    def __init__(self, fingerprint: str, numbers: int, part: SharePart, *proved: int) -> None:
        validate.one_of(tuple(CODES), part=part)
        widths = proved or (numbers, SEED_WORDS)
        width = widths[0] if part == "masked" else widths[1]
        super().__init__(fingerprint, width, CODES[part])
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "mask_width", numbers)

    part: SharePart
    mask_width: int  # how many words a mask has, whichever share this is

    def rows(self, data: bytes) -> ByteArray:
        """One share or a batch of them as bytes, (n, size); an error if they do not fit."""
        rows = super().rows(data)
        if rows is None:
            raise InvalidValueError(
                f"Expected shares of kind {self.part!r} under {self.fingerprint}, {self.size} "
                f"bytes each, and got {len(data)} bytes of something else. This database gets one "
                "of two shares, as bytes: send them with `blurfit contribute`."
            )
        return rows

    def words(self, rows: ByteArray) -> WordArray:
        """The words of some rows."""
        words: WordArray = self.numbers(rows).view("<u8")
        return words
