"""How much one address may ask for: a bucket that fills at a steady rate and holds a burst.

Addresses are held in memory alone, and forgotten when their bucket is full again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from blurfit.validate import nonnegative

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
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        nonnegative(rate=self.rate, burst=self.burst)

    def allows(self, address: str) -> bool:
        """Whether one more request is fine now."""
        if not self.rate:
            return True
        now = self.clock()
        left, since = self._buckets.get(address, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        if left < 1:
            return False
        if len(self._buckets) >= _MOST_ADDRESSES:
            self._forget(now)
        self._buckets[address] = (left - 1, now)
        return True

    def _forget(self, now: float) -> None:
        full = self.burst / self.rate  # after so long any bucket is full
        self._buckets = {a: (n, t) for a, (n, t) in self._buckets.items() if now - t < full}
        while len(self._buckets) >= _MOST_ADDRESSES:  # as many attackers: the oldest are let go
            del self._buckets[next(iter(self._buckets))]
