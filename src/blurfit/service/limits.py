"""How much one address may ask for, and how much may come to one collection: a bucket that fills at
a steady rate and holds a burst.

What is counted is work and not requests: a batch costs as much as the requests that it stands for
(`ROWS_OF_A_REQUEST`). Addresses are held in memory alone, as `blurfit.service.networks` counts
them, and forgotten when their bucket is full again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from blurfit.service.networks import network_of
from blurfit.validate import nonnegative

ROWS_OF_A_REQUEST = 50  # submissions that cost no more than a request
_MOST_ADDRESSES = 100_000


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
    counted_as: Callable[[str], str] = network_of  # what is limited by anything but address: `str`
    # How much is left, and since when; whoever asked last is last.
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        nonnegative(rate=self.rate, burst=self.burst)

    def allows(self, address: str, cost: float = 1.0) -> bool:
        """Whether one more request is fine now, or something that costs as much as several."""
        if not self.rate:
            return True
        now, network = self.clock(), self.counted_as(address)
        left, since = self._buckets.get(network, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        cost = min(cost, self.burst)  # whatever is allowed at all is allowed to a full bucket
        if left < cost:
            return False
        self._buckets[network] = (left - cost, now)
        self._buckets.move_to_end(network)
        self._forget(now)
        return True

    def allows_rows(self, address: str, rows: int) -> bool:
        """Whether a request that was allowed may bring so many submissions."""
        return rows <= ROWS_OF_A_REQUEST or self.allows(address, rows / ROWS_OF_A_REQUEST - 1)

    def _forget(self, now: float) -> None:
        """Let go those whose bucket is full by now and, if there are too many, the oldest.

        Each is let go once, so this takes no longer however many there are.
        """
        full = self.burst / self.rate  # after so long any bucket is full
        while self._buckets:
            network, (left, since) = self._buckets.popitem(last=False)
            if now - since < full and len(self._buckets) < _MOST_ADDRESSES:
                self._buckets[network] = (left, since)
                self._buckets.move_to_end(network, last=False)
                return
