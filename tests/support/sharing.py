"""What the tests of shared trust share: an agreement, marked contributors, and two stores."""

import itertools

import numpy as np

from blurfit import Agreement, Numeric, Schema
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import SharedRecords, proved_with, shared_with
from blurfit.data import ByteArray, WordArray
from blurfit.messages.submissions import Submissions
from blurfit.service.peers import judge, verify
from blurfit.store import blocks
from blurfit.store.arrivals import Arrival
from blurfit.store.collections import Collection, Course
from blurfit.store.joint import News, Peer
from blurfit.store.store import Store
from support.published import moments_in

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))
WIDTH = 5  # the products of (c, age, income), without c²
MOST = 60  # marks that stay in the range of honest numbers, in five columns
KEY = b"a verification key of 32 bytes.."
_fresh = itertools.count()


def propose(databases=TWO, schema=None, **changes) -> Agreement:
    agreed = SCHEMA if schema is None else Schema(*schema)
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 3, "admission": "anyone", "proofs": False}
    return Agreement.propose(agreed, databases=databases, **promise | changes)


def new_agreement(**changes) -> Agreement:
    """One that no other test has used, so that all of them can use one store.

    With little noise, so that nothing has to be sampled to read the sums: the steps by which two
    databases publish are the same.
    """
    return propose(**{"epsilon": 190 + next(_fresh) * 1e-3} | changes)


def marked(agreement: Agreement, *senders: int, marks: tuple[int, ...] = ()) -> SharedRecords:
    """Submissions that say who sent them: each has one bit of its own in one of five numbers."""
    steps = np.zeros((len(senders), WIDTH))
    for row, mark in enumerate(marks or senders):
        steps[row, mark % WIDTH] = 2.0 ** (mark // WIDTH)
    names, seeds = zip(*(_fixed(sender) for sender in senders), strict=True)
    table = Submissions(np.array(names), agreement.fingerprint, steps * agreement.grid.quadratic)
    if agreement.proofs:
        return proved_with(agreement, table, [one.tobytes() * 4 for one in seeds])
    return shared_with(agreement, table, np.array(seeds))


def _fixed(sender: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1000 + sender)
    return (
        generator.integers(0, 256, 16, dtype=np.uint8),
        generator.integers(0, 2**64, 4, dtype=np.uint64),
    )


def identifier_of(sender: int) -> bytes:
    return _fixed(sender)[0].tobytes()


def arrival(shares) -> Arrival:
    """Shares as the holder of a store gives them to it."""
    return Arrival(shares.layout.joined(shares.identifiers, shares.words).data, vouched=True)


def counted(store: Store, agreement: Agreement) -> set[int]:
    """Who is in the published sums; somebody who were in them twice would show as another."""
    shown = moments_in(store.moments_text(agreement.fingerprint))
    steps = [round(one / agreement.grid.quadratic) for one in shown.sums.tolist()]
    found = {
        WIDTH * bit + place
        for place, number in enumerate(steps)
        for bit in range(number.bit_length())
        if number >> bit & 1
    }
    assert len(found) == shown.count, "each once"
    return found


class Direct(Peer):
    """The second database without a wire between: what its service does with its store."""

    def __init__(self, first: Store, second: Store) -> None:
        self.first, self.second = first, second
        self._held: dict[str, ByteArray] = {}

    def there(self, wave: Collection) -> Collection:
        return self.second.collection(wave.fingerprint)

    def identifiers(self, wave: Collection) -> ByteArray:
        found = self.second.show_identifiers(self.there(wave), b"", 2**18)
        self._held[wave.fingerprint] = blocks.as_identifiers(found)
        return self._held[wave.fingerprint]

    def close(self, wave: Collection) -> None:
        self.second.close_for_first(self.there(wave))

    def verify(self, wave: Collection, theirs: ByteArray) -> None:
        def ask(names: ByteArray, words: WordArray) -> WordArray:
            return judge(self.second, self.there(wave), names, words, KEY)

        verify(self.first, wave, ask, theirs, KEY)

    def masks(self, wave: Collection, digest: bytes, count: int, left_out: ByteArray) -> WordArray:
        held = self._held[wave.fingerprint]
        bits = blocks.members(held, left_out)
        return self.second.sum_of_masks(self.there(wave), digest, count, bits)[2]

    def tell(self, course: Course, news: News) -> None:
        self.second.take_news(course.fingerprint, news)

    def sign(self, wave: Collection) -> None:
        """Sign nothing: that is the services' part."""


def opened(agreement: Agreement | Plan, first: Store, second: Store) -> Direct:
    first.open(agreement, role="first")
    second.open(agreement, role="second")
    return Direct(first, second)


def drive(store: Store, peer: Peer | None = None) -> None:
    """Do everything that is to be done now, as a service's driver does; raise what goes wrong."""
    while tasks := store.due():
        for task in tasks:
            store.work(task, peer)


def send(agreement: Agreement, first: Store | None, second: Store | None, *senders: int) -> None:
    shared = marked(agreement, *senders)
    for store, shares in ((first, shared.first), (second, shared.second)):
        if store is not None:
            (outcome,) = store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
            assert outcome == len(senders)
