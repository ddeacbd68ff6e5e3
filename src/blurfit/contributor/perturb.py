"""Blur a record before it leaves: the paper's Algorithm 1, and its twin for moments.

    record ─ schema ─► x, y ─ loss ─► q, p ─ grid, noise ─► Submission

Raw values stop here. A submission is a random name, the agreement's fingerprint and blurred
numbers; nothing else about the record leaves. There is no seed: reproducible noise is no
protection, and lives in `blurfit.simulation` alone.
"""

import math
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.contributor import noise
from blurfit.errors import InfeasibleError
from blurfit.messages.submissions import Submission, Submissions
from blurfit.theory.calibration import InputCalibration

_NUMBERS_AT_ONCE = 2**16  # half a megabyte: a chunk's triangles stay in the cache


def perturb(agreement: Agreement, records: Any) -> Submission | Submissions:
    """One record, blurred exactly on the agreement's grid with the operating system's randomness.

    A table goes to `perturb_table`, and comes back as `Submissions`.

    The agreement is verified first, so a contract that promises more than its noise keeps is
    refused before anything is computed from the record.

    input:  q̃ = ⌊q⌋ + N(0, σ_u²/n), p̃ = ⌊p⌋ + N(0, σ_b²/n) + dither, rounded towards zero
    moment: M̃ = [qqᵀ] + E, p̃ = [p] + N(0, τ²σ²/n), E_jj ~ N(0, σ²/n), E_jk ~ N(0, σ²/(2n))
    """
    _refuse_if_split(agreement)
    return blurred(agreement, records)


def blurred(agreement: Agreement, records: Any) -> Submission | Submissions:
    """The same whatever the trust. Where it is split, nobody else may see the result as it is."""
    agreement.verify()
    x, y = agreement.schema.encode(records)
    if x.ndim > 1:
        return blurred_table(agreement, records)
    q, p, _ = agreement.loss.terms(x, y)
    quadratic, linear = _on_grid(agreement, q, p)
    (quadratic_scale, linear_scale), grid = _scales(agreement), agreement.grid
    return Submission(
        identifier=noise.new_identifier(),
        fingerprint=agreement.fingerprint,
        mechanism=agreement.mechanism,
        quadratic=noise.exact(quadratic, quadratic_scale, grid.quadratic),
        linear=noise.dither(
            noise.exact(linear, linear_scale, grid.linear), grid.linear, grid.dither
        ),
    )


def perturb_table(agreement: Agreement, table: Any, *, exact: bool = False) -> Submissions:
    """Many records at once, in the hands of one party that may see them all.

    The noise is drawn by a vectorised cryptographic generator and rounded to the same grid; what
    that costs in δ against `perturb` is told by `blurfit.contributor.noise.bulk`. With `exact` it
    is as `perturb` draws it, which takes some milliseconds a record.
    """
    _refuse_if_split(agreement)
    return blurred_table(agreement, table, exact=exact)


def blurred_table(agreement: Agreement, table: Any, *, exact: bool = False) -> Submissions:
    """The same whatever the trust; see `blurred`."""
    agreement.verify()
    x, y = (np.atleast_1d(part) for part in agreement.schema.encode(table))
    x = np.atleast_2d(x)
    q, p, _ = agreement.loss.terms(x, y)
    return blur(agreement, q, p, exact=exact)


def blur(agreement: Agreement, q: FloatArray, p: FloatArray, *, exact: bool = False) -> Submissions:
    """The second half of `perturb_table`: blur q and p (n, d), within the agreement's bounds.

    For audits, which need records at the very edge of what was promised: nothing is verified here.
    """
    d = agreement.dimension
    width = d if agreement.mechanism == "input" else d * (d + 1) // 2
    quadratic, linear = np.empty((len(q), width)), np.empty((len(q), d))
    at_once = max(1, _NUMBERS_AT_ONCE // width)
    (quadratic_scale, linear_scale), grid = _scales(agreement), agreement.grid

    def blur_part(start: int) -> None:
        rows = slice(start, start + at_once)
        squares, lines = _on_grid(agreement, q[rows], p[rows])
        if exact:
            quadratic[rows] = noise.exact(squares, quadratic_scale, grid.quadratic)
            blurred = noise.exact(lines, linear_scale, grid.linear)
        else:
            noise.bulk(squares, quadratic_scale, grid.quadratic, out=quadratic[rows])
            blurred = noise.bulk(lines, linear_scale, grid.linear)
        linear[rows] = noise.dither(blurred, grid.linear, grid.dither)

    # NumPy lets go of the interpreter while it draws, and every chunk keys a generator of its own.
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


def _refuse_if_split(agreement: Agreement) -> None:
    """A blurred record in one piece is what nobody gets where trust is split."""
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


def _scales(agreement: Agreement) -> tuple[npt.ArrayLike, float]:
    """The noise's deviation for each number of the one part, and for the other."""
    calibration = agreement.calibration
    if isinstance(calibration, InputCalibration):
        return calibration.q_noise, calibration.p_noise
    rows, columns = np.triu_indices(agreement.dimension)
    beside = calibration.m_noise / math.sqrt(2)
    return np.where(rows == columns, calibration.m_noise, beside), calibration.p_noise
