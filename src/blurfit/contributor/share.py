"""Share a blurred record between two databases, so that neither learns anything from its share.

    v = blurred numbers in whole steps       (exactly what one database would have got)
    seed = 32 bytes of the operating system
    first database:  v + mask(seed) mod 2⁶⁴        second database:  seed

**What each database can learn.** *The second* gets seeds, which have nothing to do with records.
*The first* gets v + mask, which is uniform whatever v is, as long as AES-256 is what it is believed
to be (`blurfit.messages.masks`). Afterwards both learn Σv over one set C of at least n
contributors, and from it the model. All that the first has seen can be made up from Σv alone: draw
its shares uniformly, and let the sum of the masks be the sum of the shares minus Σv. So can all
that the second has seen. Hence whatever (ε, δ) holds for Σv, which is what the agreement promises
to the model's users, holds against each database alone, as far as it cannot break AES-256.
*Together* they have v, the blurred record, and then its own noise is all that protects it: μ and ε
of `calibration.local`.

**Nothing is lost.** Σ(v + mask) − Σmask = Σv mod 2⁶⁴, and |Σv| < 2⁶³, which the agreement
makes sure of (`blurfit.agreement.databases`). So the sums are those of one database, to the
last bit.

**With proofs** (`Agreement.proofs`) the numbers are shared bit by bit in a field instead, with a
proof that they are short (`blurfit.proofs.prio3`): the first database gets the bits less a mask and
its half of the proof, the second the seed of the mask and of its own half. What the two tell each
other when they verify can be made up from nothing as well (`blurfit.proofs.flp`), so all of this
stands, as far as nobody can tell TurboSHAKE128 from a random function.

A seed is drawn for each record and used once. If a record were shared twice under two identifiers,
it would be counted twice: `blurfit.contributor.shared_client` keeps what it has drawn until both
have it.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import ByteArray, FloatArray, WordArray
from blurfit.contributor.perturb import blur, named
from blurfit.errors import InvalidValueError
from blurfit.messages.masks import SEED_BYTES, SEED_WORDS, expand
from blurfit.messages.shares import Shares
from blurfit.messages.submissions import Submissions

PROOF_BYTES = 4 * SEED_BYTES  # of randomness for one record: two blinds, and two seeds
_PROVED_AT_ONCE = 64


@dataclass(frozen=True)
class SharedRecords:
    """The two shares of some records, in the order of the agreement's databases."""

    first: Shares
    second: Shares

    def __len__(self) -> int:
        return len(self.first)

    def to_bytes(self) -> tuple[bytes, bytes]:
        """The message to each database."""
        return self.first.to_bytes(), self.second.to_bytes()

    @property
    def identifier(self) -> str:
        """What identifies the first record."""
        return bytes(self.first.identifiers[0]).hex()


def share(agreement: Agreement, records: Any, *, secret: str | None = None) -> SharedRecords:
    """Blur one record or a table of them, as `perturb` does, and share each of them."""
    agreement.verify()
    agreement.share_layout("seed")  # refuses an agreement that shares nothing
    exact = agreement.exact(records)
    names = None if secret is None else named(secret, 0, len(np.atleast_2d(exact)))
    return share_exact(agreement, exact, names)


def share_exact(
    agreement: Agreement, exact: FloatArray, identifiers: ByteArray | None = None
) -> SharedRecords:
    """Blur and share what `Agreement.exact` gave, under an agreement that was verified."""
    table = blur(agreement, exact, identifiers)
    if agreement.proofs:
        return proved_with(
            agreement, table, [secrets.token_bytes(PROOF_BYTES) for _ in range(len(table))]
        )
    seeds = secrets.token_bytes(SEED_BYTES * len(table))
    words = np.frombuffer(seeds, dtype="<u8").reshape(-1, SEED_WORDS).astype(np.uint64)
    return shared_with(agreement, table, words)


def shared_with(agreement: Agreement, table: Submissions, seeds: WordArray) -> SharedRecords:
    """The shares of what is blurred already, with given seeds: for tests that fix the noise."""
    first, second = agreement.share_layout("masked"), agreement.share_layout("seed")
    masked = in_steps(agreement, table) + expand(seeds, first.mask_width)
    return SharedRecords(
        Shares(table.identifiers, masked, first), Shares(table.identifiers, seeds, second)
    )


def proved_with(agreement: Agreement, table: Submissions, random: Sequence[bytes]) -> SharedRecords:
    """Shares with proofs of what is blurred already, with given randomness."""
    proving, steps = agreement.proving, in_steps(agreement, table).view(np.int64)
    firsts, seconds = [], []
    for start in range(0, len(table), _PROVED_AT_ONCE):
        some = slice(start, start + _PROVED_AT_ONCE)
        inputs = proving.circuit.encode(steps[some])
        first, second = proving.prio3.shard(inputs, table.identifiers[some], random[some])
        firsts.append(first.words())
        seconds.append(second)
    return SharedRecords(
        Shares(table.identifiers, np.vstack(firsts), agreement.share_layout("masked")),
        Shares(table.identifiers, np.vstack(seconds), agreement.share_layout("seed")),
    )


def in_steps(agreement: Agreement, table: Submissions) -> WordArray:
    """v mod 2⁶⁴: the blurred numbers as whole steps of the grid, negative ones as 2⁶⁴ − |v|."""
    (part,) = agreement.parts
    steps = table.numbers / part.step
    whole = np.rint(steps)
    if not (np.array_equal(whole, steps) and (np.abs(whole) < 2.0**63).all()):
        raise InvalidValueError(
            "Expected blurred numbers on the agreement's grid, below 2**63 steps: blur the record "
            "under this very agreement."
        )
    return whole.astype(np.int64).view(np.uint64)
