"""What the tests of two databases share: an agreement, and marked contributors."""

import itertools

import numpy as np

from blurfit import Agreement, Numeric, Schema
from blurfit.contributor.blur import SharedRecords, proved_with, shared_with
from blurfit.messages.submissions import Submissions

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))
WIDTH = 5  # the products of (c, age, income), without c²
MOST = 60  # marks that stay in the range of honest numbers, in five columns
_fresh = itertools.count()


def propose(databases=TWO, schema=None, **changes) -> Agreement:
    agreed = SCHEMA if schema is None else Schema(*schema)
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 3, "admission": "anyone", "proofs": False}
    return Agreement.propose(agreed, databases=databases, **promise | changes)


def new_agreement(**changes) -> Agreement:
    """One that no other test has used, so that all of them can use one store.

    With little noise: the steps by which two databases publish are the same.
    """
    return propose(**{"epsilon": 190 + next(_fresh) * 1e-3} | changes)


def marked(agreement: Agreement, *senders: int, marks: tuple[int, ...] = ()) -> SharedRecords:
    """Submissions that say who sent them: each has one bit of its own in one of five numbers."""
    steps = np.zeros((len(senders), WIDTH))
    for row, mark in enumerate(marks or senders):
        steps[row, mark % WIDTH] = 2.0 ** (mark // WIDTH)
    names, seeds = zip(*(_fixed(sender) for sender in senders), strict=True)
    table = Submissions(np.array(names), agreement.fingerprint, steps * agreement.step)
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
