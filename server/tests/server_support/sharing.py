"""What the tests of two databases share: two stores with no wire between them."""

from blurfit import Agreement
from blurfit.agreement.plan import Plan
from blurfit.data import ByteArray, WordArray
from blurfit_server.service.peers import judge, verify
from blurfit_server.store import blocks
from blurfit_server.store.arrivals import Arrival
from blurfit_server.store.collections import Collection, Course
from blurfit_server.store.joint import News, Peer
from blurfit_server.store.store import Store
from support.published import moments_in
from support.sharing import WIDTH, marked

KEY = b"a verification key of 32 bytes.."


def arrival(shares) -> Arrival:
    """Shares as the holder of a store gives them to it."""
    return Arrival(shares.layout.joined(shares.identifiers, shares.words).data, vouched=True)


def counted(store: Store, agreement: Agreement) -> set[int]:
    """Who is in the published sums; somebody who were in them twice would show as another."""
    shown = moments_in(store.moments_text(agreement.fingerprint))
    steps = [round(one / agreement.step) for one in shown.sums.tolist()]
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
