"""Sums that come out the same in whatever order and grouping they are added.

Every number that a contributor sends is a whole number of steps, each a power of two, and the screen
bounds how many. So the sum of a block is exact in float64 while it stays below 2⁵³ steps:

    moment   Σ M̃ in steps g_m, Σ p̃ in steps g_p
    input    Σ q̃q̃ᵀ in steps g_q²; p̃ = coarse + fine, a multiple of g_p and what dither put between

and the blocks' sums are put together by `math.fsum`, which rounds the true sum once. Nothing depends
on who came when, on which service, or in which file: only on who came.

`input` alone can leave that range, at a quorum of about a million and more: one q̃q̃ᵀ then has more than
2⁵³ steps. Sums are then right to the last few of 53 bits, and the order may show there; the weights
are rounded to 2⁻²⁰ of their bound, far above that.
"""

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.database.statistics import Statistics, unpack

FloatArray = npt.NDArray[np.float64]

EXACT = 2.0**53


def width(agreement: Agreement) -> int:
    """How many numbers a block's sums have."""
    d = agreement.dimension
    return d * (d + 1) // 2 + (2 * d if agreement.mechanism == "input" else d)


def block_sums(agreement: Agreement, numbers: FloatArray) -> FloatArray:
    """The sums of a block's rows: the triangle of A, and c (for `input` its coarse and fine part)."""
    d = agreement.dimension
    if agreement.mechanism == "moment":
        return np.asarray(numbers.sum(axis=0))
    q, p, step = numbers[:, :d], numbers[:, d:], agreement.grid.linear
    coarse = np.rint(p / step) * step
    gram = (q.T @ q)[np.triu_indices(d)]
    return np.concatenate([gram, coarse.sum(axis=0), (p - coarse).sum(axis=0)])


def rows_that_add_exactly(agreement: Agreement, largest_steps: tuple[float, float]) -> int:
    """How many rows a block may have such that its sums are exact; at least 1."""
    quadratic, linear = largest_steps
    if agreement.mechanism == "input":
        quadratic, linear = quadratic**2, linear * agreement.grid.dither / agreement.grid.linear
        linear = max(linear, agreement.grid.linear / agreement.grid.dither)
    most = max(quadratic, linear)
    return max(1, int(EXACT / most)) if math.isfinite(most) else 1


def total(agreement: Agreement, parts: Iterable[tuple[int, FloatArray]], exact_rows: int) -> Statistics:
    """The statistics of a collection from its blocks' counts and sums."""
    d, count, held = agreement.dimension, 0, 0
    groups: list[FloatArray] = []
    for rows, sums in parts:
        if groups and held + rows <= exact_rows:
            groups[-1] = groups[-1] + sums  # still exact, and much faster than one by one
            held += rows
        else:
            groups.append(sums)
            held = rows
        count += rows
    if not groups:
        return Statistics.empty(d).under(agreement.fingerprint)
    k = d * (d + 1) // 2
    # coarse and fine parts of c are two lines of one sum
    lines = np.array(groups)
    gram = np.array([math.fsum(column) for column in lines[:, :k].T])
    linear = lines[:, k:].reshape(-1, d)
    moment = np.array([math.fsum(column) for column in linear.T])
    return Statistics(count, unpack(gram, d), moment, agreement.fingerprint)
