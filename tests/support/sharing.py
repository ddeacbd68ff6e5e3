"""What the tests of shared trust share: an agreement, marked contributors, and two stores."""

import itertools

import numpy as np

from blurfit import Agreement, Numeric, Schema
from blurfit.arrays import ByteArray, WordArray
from blurfit.contributor.blur import SharedRecords, proved_with, shared_with
from blurfit.messages.submissions import Submissions
from blurfit.service.peer import Peer
from blurfit.service.verifying import judge
from blurfit.store import commitment, identifier_sets, joint_publication, shared_sums
from blurfit.store.arrivals import Arrival
from blurfit.store.store import Store
from support.published import moments_in

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))
WIDTH = 5  # the products of (c, age, income), without c²
MOST = 60  # marks that stay in the range of honest numbers, in five columns
KEY = b"a verification key of 32 bytes.."
_fresh = itertools.count()


def propose(databases=TWO, **changes) -> Agreement:
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 3, "admission": "anyone", "proofs": False}
    return Agreement.propose(SCHEMA, databases=databases, **promise | changes)


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
    identifiers, seeds = zip(*(_fixed(sender) for sender in senders), strict=True)
    table = Submissions(
        np.array(identifiers), agreement.fingerprint, steps * agreement.grid.quadratic
    )
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

    def __init__(self, store: Store, fingerprint: str) -> None:
        self.store, self.fingerprint = store, fingerprint

    def identifiers(self) -> ByteArray:
        found = self.store.read(
            joint_publication.shown_identifiers, self.store.collection(self.fingerprint), b"", 2**18
        )
        return identifier_sets.as_identifiers(found)

    def verify(self, names: ByteArray, words: WordArray) -> WordArray:
        return judge(self.store, self.store.collection(self.fingerprint), names, words, KEY)

    def masks(self, digest: bytes, count: int, left_out: ByteArray) -> WordArray:
        self.store.write(
            joint_publication.accept,
            self.store.collection(self.fingerprint),
            digest,
            count,
            left_out,
        )
        return self.store.read(shared_sums.sums_over, self.store.collection(self.fingerprint))[1]

    def deliver(self, model: str | None, moments: str) -> None:
        collection = self.store.collection(self.fingerprint)
        chosen = self.store.read(commitment.recorded, self.store.collection(self.fingerprint))
        joint_publication.check_result(collection, chosen, model, moments)
        self.store.write(
            joint_publication.take_result,
            self.store.collection(self.fingerprint),
            model,
            moments,
        )


def opened(agreement: Agreement, first: Store, second: Store) -> Direct:
    first.open(agreement, role="first")
    second.open(agreement, role="second")
    return Direct(second, agreement.fingerprint)


def send(agreement: Agreement, first: Store | None, second: Store | None, *senders: int) -> None:
    shared = marked(agreement, *senders)
    for store, shares in ((first, shared.first), (second, shared.second)):
        if store is not None:
            (outcome,) = store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
            assert outcome == len(senders)
