"""Blur a record before it leaves, and share it between two databases.

    record ─ schema ─► columns ─ agreement ─► exact numbers ─ grid, noise ─► message(s)

Raw values stop here: a submission is a random identifier, the agreement's fingerprint and blurred
numbers. There is no seed: reproducible noise is no protection, and lives in `blurfit.simulation`.

Two databases get a share each, v being the blurred numbers in whole grid steps:

    first database:  v + mask(seed) mod 2⁶⁴        second database:  seed

The sums are those of one database, to the last bit. The guarantee to readers holds against each
database alone, as far as it cannot break AES-256, if both follow the protocol (one set of at least
n contributors for each wave) and do not combine their shares. Together they have v, which its own
noise alone protects: `calibration.local`. Proofs and further conditions: `docs/theory/shares.md`.
Tests: `tests/contributor/test_share.py`.

A seed is drawn for each record and used once: `blurfit.contributor.journal` keeps what was drawn
until both databases have it.
"""

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit import randomness
from blurfit.agreement.agreement import Agreement
from blurfit.data import ByteArray, FloatArray, IntArray, WordArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.messages.submissions import (
    SEED_BYTES,
    SEED_WORDS,
    Role,
    Shares,
    Submission,
    Submissions,
    expand,
    identifiers_of,
    secrets_of,
)

Messages = tuple[bytes, ...]  # one for each database that gets something
_NUMBERS_AT_ONCE = 2**16  # half a megabyte: a chunk's triangles stay in the cache
PROOF_BYTES = 4 * SEED_BYTES  # of randomness for one record: two blinds, and two seeds
_PROVED_AT_ONCE = 64


def perturb(
    agreement: Agreement,
    records: Any,
    *,
    people: Any = None,
    secret: str | None = None,
) -> Submission | Submissions:
    """Blur one record, or a table of them, exactly on the agreement's grid.

    Under an agreement with diaries a table is all rows of *one* person, and becomes one submission,
    unless `people` names the person of each row.

    The agreement is verified first, so a contract that promises more than its noise keeps is
    refused before anything is computed from the record. The products of z = (c, ωv) are sent, each
    + N(0, σ²/n) on the diagonal and N(0, σ²/(2n)) off it.

    A record gives a `Submission`, a table `Submissions`. Their identifiers are random, or follow
    from a `secret` with which they can be withdrawn later (`blurfit.messages.submissions`).
    """
    _require_whole(agreement)
    exact = exact_of(agreement, records, people)
    found = blur(agreement, exact, _named(secret, exact))
    return found if exact.ndim > 1 else next(iter(found))


def perturb_table(agreement: Agreement, table: Any, *, people: Any = None) -> Submissions:
    """Blur many records that one party may see, as `perturb` does: each row is a person's, or
    `people` names whose it is. What is returned is always a table.
    """
    _require_whole(agreement)
    if people is None:
        require_whose(agreement)
    return blur(agreement, exact_of(agreement, table, people))


def _require_whole(agreement: Agreement) -> None:
    """Verify an agreement; of two databases nobody gets a blurred record in one piece."""
    agreement.verify()
    if agreement.databases:
        raise InfeasibleError(
            "Expected an agreement with trust='one': under this one a record is shared between "
            "two databases, with blurfit.Client or `blurfit contribute`."
        )


def exact_of(agreement: Agreement, records: Any, people: Any = None) -> FloatArray:
    """Return what a record, a diary or a table would send without any noise."""
    if people is not None:
        return agreement.exact(records, codes_of_people(people))
    if agreement.diaries:
        (found,) = agreement.exact(records, np.zeros((), dtype=np.int64))
        return np.asarray(found)
    return agreement.exact(records)


def require_whose(agreement: Agreement) -> None:
    """Refuse a table that does not say whose row it is, where people may have several: each of a
    person's rows would be sent as if it were another person's, and the promise is to the person.
    """
    if agreement.diaries:
        raise InvalidValueError(
            "Expected to be told whose row it is, in people=... or person='COLUMN' (--person "
            "COLUMN): the agreement has diaries, in which all rows of a person are sent as one. If "
            "each row is another person's, name each of them differently."
        )


def codes_of_people(labels: Any) -> IntArray:
    """Return which person each row is of, from 0 on in the order in which they first come."""
    given = np.asarray(labels)
    if given.ndim != 1 or any(one is None or one != one or one == "" for one in given.tolist()):
        raise InvalidValueError("Expected the name of a person for each row, and none missing.")
    places = {one: place for place, one in enumerate(dict.fromkeys(given.tolist()))}
    return np.array([places[one] for one in given.tolist()], dtype=np.int64)


def blur(
    agreement: Agreement, exact: FloatArray, identifiers: ByteArray | None = None
) -> Submissions:
    """Blur what `Agreement.exact` gave, (width,) or (n, width), under an agreement that was
    verified; identifiers that are not given are random. Where trust is shared nobody but
    `share_exact` may see the result.
    """
    rows = np.atleast_2d(exact)
    numbers = np.empty((len(rows), agreement.width))
    at_once = max(1, _NUMBERS_AT_ONCE // agreement.width)

    def blur_some(start: int) -> None:
        some = slice(start, start + at_once)
        for part in agreement.parts:
            given = rows[some, part.numbers]
            if part.at_random:
                rounded = randomness.to_grid_at_random(given, part.step)
            else:
                rounded = randomness.to_grid(given, part.step, toward_zero=False)
            numbers[some, part.numbers] = randomness.add(rounded, part.deviations, part.step)

    if len(rows) <= at_once:  # nobody waits for threads that one record does not need
        blur_some(0)
    else:  # NumPy lets go of the interpreter while it draws, and every part keys its own bits
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            deque(threads.map(blur_some, range(0, len(rows), at_once)), maxlen=0)
    numbers.setflags(write=False)  # so that the message need not copy them
    return Submissions(
        identifiers=randomness.new_identifiers(len(rows)) if identifiers is None else identifiers,
        fingerprint=agreement.fingerprint,
        numbers=numbers,
    )


def named(secret: str, start: int, rows: int) -> ByteArray:
    """Return the identifiers of some rows, for the keeper of the secret that they follow from."""
    return identifiers_of(secrets_of(secret, start, start + rows))


def _named(secret: str | None, exact: FloatArray) -> ByteArray | None:
    return None if secret is None else named(secret, 0, len(np.atleast_2d(exact)))


def message_of_one(agreement: Agreement, record: Any, secret: str) -> Messages:
    """Blur one record, under an agreement that is verified first: a message for each database."""
    agreement.verify()
    exact = exact_of(agreement, record)
    if exact.ndim > 1:
        raise InvalidValueError("Expected one record; send a table with contribute_table.")
    if agreement.databases:
        return share_exact(agreement, exact, named(secret, 0, 1)).to_bytes()
    (found,) = blur(agreement, exact, named(secret, 0, 1))
    return (found.to_bytes(),)


def roles(agreement: Agreement) -> tuple[Role, ...]:
    """Return the roles of the databases that get something, in their order."""
    return ("first", "second") if agreement.databases else ("whole",)


def messages_of(
    agreement: Agreement, exact: FloatArray, identifiers: ByteArray | None = None
) -> Messages:
    """Blur what `Agreement.exact` gave, under a verified agreement: a message for each database."""
    if agreement.databases:
        return share_exact(agreement, exact, identifiers).to_bytes()
    return (blur(agreement, exact, identifiers).to_bytes(),)


@dataclass(frozen=True)
class Portion:
    """Some consecutive rows of a table, blurred: as bytes for each database that gets something.

    `under` is the fingerprint of the agreement that they were blurred under.
    """

    start: int
    rows: int
    messages: Messages
    under: str = ""

    @property
    def stop(self) -> int:
        """The row after the last one."""
        return self.start + self.rows


@dataclass(frozen=True)
class SharedRecords:
    """The two shares of some records, in the order of the agreement's databases."""

    first: Shares
    second: Shares

    def __len__(self) -> int:
        return len(self.first)

    def to_bytes(self) -> tuple[bytes, bytes]:
        """Return the message to each database."""
        return self.first.to_bytes(), self.second.to_bytes()

    @property
    def identifier(self) -> str:
        """What identifies the first record."""
        return bytes(self.first.identifiers[0]).hex()


def share(agreement: Agreement, records: Any, *, secret: str | None = None) -> SharedRecords:
    """Blur one record or a table of them, as `perturb` does, and share each of them."""
    agreement.verify()
    agreement.share_layout("seed")  # refuses an agreement that shares nothing
    exact = exact_of(agreement, records)
    return share_exact(agreement, exact, _named(secret, exact))


def share_exact(
    agreement: Agreement, exact: FloatArray, identifiers: ByteArray | None = None
) -> SharedRecords:
    """Blur and share what `Agreement.exact` gave, under an agreement that was verified."""
    table = blur(agreement, exact, identifiers)
    if agreement.proofs:
        return proved_with(
            agreement, table, [randomness.octets(PROOF_BYTES) for _ in range(len(table))]
        )
    seeds = randomness.octets(SEED_BYTES * len(table))
    words = np.frombuffer(seeds, dtype="<u8").reshape(-1, SEED_WORDS).astype(np.uint64)
    return shared_with(agreement, table, words)


def shared_with(agreement: Agreement, table: Submissions, seeds: WordArray) -> SharedRecords:
    """Share what is blurred already, with given seeds: for tests that fix the noise."""
    first, second = agreement.share_layout("masked"), agreement.share_layout("seed")
    masked = in_steps(agreement, table) + expand(seeds, first.mask_width)
    return SharedRecords(
        Shares(table.identifiers, masked, first), Shares(table.identifiers, seeds, second)
    )


def proved_with(agreement: Agreement, table: Submissions, random: Sequence[bytes]) -> SharedRecords:
    """Share what is blurred already, with proofs and given randomness."""
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
    """Return v mod 2⁶⁴: the numbers in whole steps of the grid, negative ones as 2⁶⁴ − |v|."""
    (part,) = agreement.parts
    steps = table.numbers / part.step
    whole = np.rint(steps)
    if not (np.array_equal(whole, steps) and (np.abs(whole) < 2.0**63).all()):
        raise InvalidValueError(
            "Expected blurred numbers on the agreement's grid, below 2**63 steps: blur the record "
            "under this very agreement."
        )
    return whole.astype(np.int64).view(np.uint64)
