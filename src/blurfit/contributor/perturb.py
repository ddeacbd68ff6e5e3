"""Blur a record before it leaves: the paper's Algorithm 1, and its twin for moments.

    record ─ schema ─► x, y ─ loss ─► q, p ─ grid, noise ─► Submission

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
from blurfit.arrays import FloatArray
from blurfit.contributor import noise
from blurfit.errors import InfeasibleError
from blurfit.messages.submissions import Submission, Submissions

_NUMBERS_AT_ONCE = 2**16  # half a megabyte: a chunk's triangles stay in the cache


def perturb(
    agreement: Agreement, records: Any, *, allow_unproved: bool = False
) -> Submission | Submissions:
    """One record, or a table of them, blurred exactly on the agreement's grid.

    The agreement is verified first, so a contract that promises more than its noise keeps is
    refused before anything is computed from the record, and so is one whose promise nobody has
    proved (rule="published"), unless `allow_unproved` says that no real people are concerned.

    input:  q̃ = ⌊q⌋ + N(0, σ_u²/n), p̃ = ⌊p⌋ + N(0, σ_b²/n) + dither, rounded towards zero
    moment: M̃ = [qqᵀ] + E, p̃ = [p] + N(0, τ²σ²/n), E_jj ~ N(0, σ²/n), E_jk ~ N(0, σ²/(2n))

    A record gives a `Submission`, a table `Submissions`.
    """
    agreement.verify(allow_unproved=allow_unproved)
    _refuse_if_shared(agreement)
    x, y = agreement.schema.encode(records)
    found = blur_encoded(agreement, x, y)
    return found if x.ndim > 1 else next(iter(found))


def perturb_table(agreement: Agreement, table: Any, *, allow_unproved: bool = False) -> Submissions:
    """Many records at once, in the hands of one party that may see them all: see `perturb`.

    The noise of each number is the one that `perturb` draws, and always comes as a table.
    """
    agreement.verify(allow_unproved=allow_unproved)
    _refuse_if_shared(agreement)
    return blur_encoded(agreement, *agreement.schema.encode(table))


def blur_encoded(agreement: Agreement, x: FloatArray, y: FloatArray) -> Submissions:
    """Blur encoded records under an agreement that was verified, whatever the trust.

    Where trust is shared nobody but `blurfit.contributor.share` may see the result as it is.
    """
    q, p, _ = agreement.loss.terms(np.atleast_2d(x), np.atleast_1d(y))
    return blur(agreement, q, p)


def blur(agreement: Agreement, q: FloatArray, p: FloatArray) -> Submissions:
    """Blur q and p (n, d), within the agreement's bounds: the last step of `perturb`.

    For audits, which need records at the very edge of what was promised: nothing is verified here.
    """
    d = agreement.dimension
    width = d if agreement.mechanism == "input" else d * (d + 1) // 2
    quadratic, linear = np.empty((len(q), width)), np.empty((len(q), d))
    at_once = max(1, _NUMBERS_AT_ONCE // width)
    noisy, grid = agreement.calibration.deviations, agreement.grid

    def blur_part(start: int) -> None:
        rows = slice(start, start + at_once)
        squares, lines = _on_grid(agreement, q[rows], p[rows])
        noise.add(squares, noisy.quadratic, grid.quadratic, out=quadratic[rows])
        blurred = noise.add(lines, noisy.linear, grid.linear)
        linear[rows] = noise.dither(blurred, grid.linear, grid.dither)

    if len(q) <= at_once:  # nobody waits for threads that one record does not need
        blur_part(0)
    else:  # NumPy lets go of the interpreter while it draws, and every part keys its own bits
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            deque(threads.map(blur_part, range(0, len(q), at_once)), maxlen=0)
    quadratic.setflags(write=False)  # so that the message need not copy them
    linear.setflags(write=False)
    return Submissions(
        identifiers=noise.new_identifiers(len(q)),
        fingerprint=agreement.fingerprint,
        mechanism=agreement.mechanism,
        quadratic=quadratic,
        linear=linear,
    )


def _refuse_if_shared(agreement: Agreement) -> None:
    """A blurred record in one piece is what nobody gets where trust is shared."""
    if agreement.databases:
        raise InfeasibleError(
            "Expected an agreement with trust='one': under this one a record is shared between "
            "two databases, with blurfit.contributor.share or `blurfit contribute`."
        )


def _on_grid(agreement: Agreement, q: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What will be blurred, in multiples of the steps: q or the triangle of qqᵀ, and p."""
    grid, moment = agreement.grid, agreement.mechanism == "moment"
    if moment:
        rows = range(agreement.dimension)
        q = np.concatenate([q[..., row, None] * q[..., row:] for row in rows], axis=-1)
    return (
        noise.to_grid(q, grid.quadratic, toward_zero=not moment),
        noise.to_grid(p, grid.linear, toward_zero=not moment),
    )
