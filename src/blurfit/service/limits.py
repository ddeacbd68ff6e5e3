"""How much one address may ask for, and how much may come to one collection: a bucket that fills at
a steady rate and holds a burst.

What is counted is work and not requests: a batch costs as much as the requests that it stands for
(`ROWS_OF_A_REQUEST`), and so do a long body and a long answer (`BYTES_OF_A_REQUEST`,
`JSON_OF_A_REQUEST`). All that is known of a bucket is when it will be full again:

    left(now) = burst − rate · (full − now)

and what costs c moves it to max(now, full) + c/rate. These times stand in two rows of a table, at
places given by a keyed hash of the address, as `blurfit.service.networks` counts addresses.
Somebody whose places are taken in both rows by others who ask for much would have to wait with
them; two rows of 2¹⁹ places make that rare, and since the hash has a key nobody can bring it
about. So no address is kept anywhere, nothing has to be forgotten, and however many there are, each
takes the same time.

The table is in memory that all processes forked from this one share: the workers of a service
(`blurfit.service.workers`) keep to one limit. Two that look at the same moment may let one request
too many pass.
"""

import hashlib
import mmap
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from blurfit.protocol.tokens import hashed, new_token
from blurfit.service.networks import network_of
from blurfit.validate import nonnegative

ROWS_OF_A_REQUEST = 50  # submissions that cost no more than a request
BYTES_OF_A_REQUEST = 2**15  # of a body or an answer, and
JSON_OF_A_REQUEST = 2**14  # of a body in JSON, which has to be read
_PLACES = 2**19  # of a row
_TOLERANCE = 1e-6  # of a request, for rounding


def _table() -> "memoryview[float]":
    return memoryview(mmap.mmap(-1, 2 * 8 * _PLACES)).cast("d")


@dataclass
class Limiter:
    """`rate` requests a second and `burst` at once for each address; a rate of 0 means no limit.

    >>> limiter = Limiter(rate=1, burst=2, clock=lambda: 0.0)
    >>> [limiter.allows("a"), limiter.allows("a"), limiter.allows("a"), limiter.allows("b")]
    [True, True, False, True]
    """

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _full: "memoryview[float]" = field(default_factory=_table, repr=False)
    _key: bytes = field(default_factory=lambda: hashed(new_token())[:16], repr=False)
    counted_as: Callable[[str], str] = network_of  # what is limited by anything but address: `str`

    def __post_init__(self) -> None:
        nonnegative(rate=self.rate, burst=self.burst)

    def allows(self, address: str, cost: float = 1.0) -> bool:
        """Whether one more request is fine now, or something that costs as much as several."""
        if not self.rate:
            return True
        now, places = self.clock(), self._places(address)
        if self._left(places, now) + _TOLERANCE < min(cost, self._enough):
            return False
        self._charge(places, now, cost)
        return True

    def has_left(self, address: str) -> bool:
        """Whether a request would be fine now; nothing is charged."""
        left = self._left(self._places(address), self.clock())
        return not self.rate or left + _TOLERANCE >= min(1.0, self._enough)

    @property
    def _enough(self) -> float:
        """What must be left, at most: as much as a full bucket holds, less the request itself.

        Whatever is allowed at all is allowed to somebody who waited. It is charged as a whole, so
        that the next one waits the longer, and the rate is kept however large a batch is.
        """
        return max(self.burst - 1.0, min(self.burst, 1.0))

    def charge(self, address: str, cost: float) -> None:
        """Charge what is known too late to refuse it: the next requests wait for it."""
        if self.rate:
            self._charge(self._places(address), self.clock(), cost)

    def _left(self, places: tuple[int, int], now: float) -> float:
        return self.burst - self.rate * (self._full_at(places, now) - now)

    def _full_at(self, places: tuple[int, int], now: float) -> float:
        return max(now, min(self._full[place] for place in places))

    def _charge(self, places: tuple[int, int], now: float, cost: float) -> None:
        full = self._full_at(places, now) + cost / self.rate
        for place in places:
            self._full[place] = max(self._full[place], full)

    def _places(self, address: str) -> tuple[int, int]:
        name = self.counted_as(address).encode()
        found = int.from_bytes(hashlib.blake2b(name, digest_size=8, key=self._key).digest())
        return found % _PLACES, _PLACES + (found >> 32) % _PLACES


def cost_of(size: int, rows: float = 0.0, *, json: bool) -> float:
    """How many requests a body stands for, or an answer."""
    free = JSON_OF_A_REQUEST if json else BYTES_OF_A_REQUEST
    return max(rows / ROWS_OF_A_REQUEST, size / free)
