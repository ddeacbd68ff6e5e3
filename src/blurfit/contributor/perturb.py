"""Blur a record before it leaves: the paper's Algorithm 1, and its twin for moments.

    record ─ schema ─► columns ─ agreement ─► exact numbers ─ grid, noise ─► Submission

Raw values stop here. A submission is a random identifier, the agreement's fingerprint and blurred
numbers; nothing else about the record leaves. There is no seed: reproducible noise is no
protection, and lives in `blurfit.simulation` alone.
"""

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import ByteArray, FloatArray
from blurfit.contributor import noise
from blurfit.errors import InfeasibleError
from blurfit.messages.receipts import identifiers_of, secrets_of
from blurfit.messages.submissions import Submission, Submissions

_NUMBERS_AT_ONCE = 2**16  # half a megabyte: a chunk's triangles stay in the cache


def perturb(
    agreement: Agreement,
    records: Any,
    *,
    allow_unproved: bool = False,
    secret: str | None = None,
) -> Submission | Submissions:
    """One record, or a table of them, blurred exactly on the agreement's grid.

    The agreement is verified first, so a contract that promises more than its noise keeps is
    refused before anything is computed from the record, and so is one whose promise nobody has
    proved (rule="published"), unless `allow_unproved` says that no real people are concerned.

    input:  q̃ = ⌊q⌋ + N(0, σ_u²/n), p̃ = ⌊p⌋ + N(0, σ_b²/n) + dither, rounded towards zero
    moment: the products of z = (c, ωv), each + N(0, σ²/n) on the diagonal and N(0, σ²/(2n)) off it

    A record gives a `Submission`, a table `Submissions`. Their identifiers are random, or follow
    from a `secret` with which they can be withdrawn later (`blurfit.messages.receipts`).
    """
    agreement.verify(allow_unproved=allow_unproved)
    _refuse_if_shared(agreement)
    exact = agreement.exact(records)
    names = None if secret is None else named(secret, 0, len(np.atleast_2d(exact)))
    found = blur(agreement, exact, names)
    return found if exact.ndim > 1 else next(iter(found))


def perturb_table(agreement: Agreement, table: Any, *, allow_unproved: bool = False) -> Submissions:
    """Many records at once, in the hands of one party that may see them all: see `perturb`.

    Each number gets the noise that `perturb` would draw; what is returned is always a table.
    """
    agreement.verify(allow_unproved=allow_unproved)
    _refuse_if_shared(agreement)
    return blur(agreement, agreement.exact(table))


def blur(
    agreement: Agreement, exact: FloatArray, identifiers: ByteArray | None = None
) -> Submissions:
    """Blur what `Agreement.exact` gave, (width,) or (n, width), under an agreement that was
    verified: the last step of `perturb`. Identifiers that are not given are random.

    Where trust is shared nobody but `blurfit.contributor.share` may see the result as it is.
    """
    rows = np.atleast_2d(exact)
    numbers = np.empty((len(rows), agreement.width))
    at_once = max(1, _NUMBERS_AT_ONCE // agreement.width)

    def blur_some(start: int) -> None:
        some = slice(start, start + at_once)
        for part in agreement.parts:
            given = rows[some, part.numbers]
            if part.at_random:
                rounded = noise.to_grid_at_random(given, part.step)
            else:
                rounded = noise.to_grid(given, part.step, toward_zero=part.toward_zero)
            blurred = noise.add(rounded, part.deviations, part.step)
            numbers[some, part.numbers] = noise.dither(blurred, part.step, part.fine)

    if len(rows) <= at_once:  # nobody waits for threads that one record does not need
        blur_some(0)
    else:  # NumPy lets go of the interpreter while it draws, and every part keys its own bits
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            deque(threads.map(blur_some, range(0, len(rows), at_once)), maxlen=0)
    numbers.setflags(write=False)  # so that the message need not copy them
    return Submissions(
        identifiers=noise.new_identifiers(len(rows)) if identifiers is None else identifiers,
        fingerprint=agreement.fingerprint,
        numbers=numbers,
    )


def named(secret: str, start: int, rows: int) -> ByteArray:
    """The identifiers of some rows, for whoever keeps the secret that they follow from."""
    return identifiers_of(secrets_of(secret, start, start + rows))


def _refuse_if_shared(agreement: Agreement) -> None:
    """A blurred record in one piece is what nobody gets where trust is shared."""
    if agreement.databases:
        raise InfeasibleError(
            "Expected an agreement with trust='one': under this one a record is shared between "
            "two databases, with blurfit.contributor.share or `blurfit contribute`."
        )
