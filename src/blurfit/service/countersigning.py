"""Until both databases have signed what both have published, the first asks for it again.

They exchange their signatures when something is published (`blurfit.service.signatory`); the second
may not answer then, and either may be killed in between. No promise depends on it, but a file with
one signature has only half of what was agreed. So the first looks in its store for what is at both
and not signed by both, and exchanges signatures again, soon and then less often. What is missing is
read from the store each time, so a crash forgets nothing; and exchanging twice changes nothing,
since a key gives the same bytes the same signature and what is kept stays
(`blurfit.store.signatures`).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from blurfit.service.signatory import Signatory
from blurfit.store import signatures
from blurfit.store.store import Store

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 3600.0  # seconds before it is tried again


@dataclass(eq=False)
class Countersigning:
    """Completes signatures for a first database; `secret` is what both share."""

    store: Store
    signing: Signatory
    secret: str | None = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._pauses: dict[str, float] = {}  # by collection, in seconds
        self._not_before: dict[str, float] = {}

    def due(self) -> list[str]:
        """The collections of which something is to be signed now."""
        if self.secret is None or self.signing.signer is None:
            return []
        now = self.clock()
        return [
            one
            for one in self.store.read(signatures.missing)
            if self.store.collection(one).agreement.signing_keys
            and self._not_before.get(one, now) <= now
        ]

    def ask(self, fingerprint: str) -> None:
        """Exchange signatures once more; whatever is still missing is asked for later."""
        pause = self._pauses.get(fingerprint, FIRST_PAUSE)
        self._pauses[fingerprint] = min(2 * pause, LONGEST_PAUSE)
        self._not_before[fingerprint] = self.clock() + pause
        self.signing.exchange(fingerprint, self.secret, **self.options)
