"""Sums of shares that come with proofs: in the field, over a set of people whose proofs are valid.

A share of a vector with a proof is a share of its digits. The share of a number is a fixed sum of
those (`blurfit.proofs.flp`), so digits are added up over a set first, and numbers made of them
once. The two databases' sums add up to that of the numbers in the field; a number is within its
digits, so that its sum over up to 2³² people is known with its sign.
"""

import numpy as np
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import WordArray
from blurfit.errors import NotCertifiedError
from blurfit.proofs import field
from blurfit.store import blocks
from blurfit.store.collections import Collection
from blurfit.store.commitment import Commitment

_AT_ONCE = 256  # rows whose digits are added together: some megabytes


def over(
    connection: Connection, collection: Collection, chosen: Commitment
) -> tuple[int, WordArray]:
    """How many of the set are here, and the sum of their shares of numbers."""
    proving = collection.agreement.proving
    circuit, prio3 = proving.circuit, proving.prio3
    count, digits = 0, np.zeros(circuit.inputs, dtype=np.uint64)
    for names, words in blocks.rows(connection, collection):
        counted = words[chosen.has(names)]
        count += len(counted)
        for start in range(0, len(counted), _AT_ONCE):
            some = counted[start : start + _AT_ONCE].astype(np.uint64, copy=False)
            if collection.role == "first":
                inputs = some[:, : circuit.inputs]
            else:
                inputs = prio3.helper_inputs(some)
            digits = field.add(digits, field.total(inputs, axis=0))
    return count, circuit.truncate(digits[None])[0]


def plus(total: WordArray, noise: WordArray) -> WordArray:
    """A sum in the field with noise, which is in words mod 2⁶⁴, of whole numbers with a sign."""
    signed = noise.view(np.int64)
    below = np.uint64(field.MODULUS) - np.abs(signed).astype(np.uint64)
    return field.add(total, np.where(signed < 0, below, noise))


def together(agreement: Agreement, count: int, shares: WordArray, others: WordArray) -> WordArray:
    """Σv over so many people, as words, from the two databases' sums."""
    if not (field.is_canonical(shares) and field.is_canonical(others)):
        raise NotCertifiedError(
            f"Expected sums below {field.MODULUS} from the other database: it does not add in the "
            "field that the proofs are about. Let both use the same release of blurfit."
        )
    return agreement.proving.circuit.decode(field.add(shares, others), count).view(np.uint64)
