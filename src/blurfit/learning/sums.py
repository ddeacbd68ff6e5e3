"""Sums that come out the same in whatever order and grouping they are added.

Every number that a contributor sends is a whole number of steps, each a power of two, and the
screen bounds how many. So a sum is exact in float64 while it stays below 2⁵³ steps:

| | sums | in steps |
| --- | --- | --- |
| moment | Σ of each product | g |
| input | Σ hhᵀ, Σ (hlᵀ + lhᵀ), Σ llᵀ, where q̃ = h + l | S², S·g_q, g_q² |
| | Σ p̃ in two parts: a multiple of g_p, and what dither put between | g_p; g |

For `input` q̃ is cut in the middle: h is q̃ rounded to multiples of S, and l the rest, |l| ≤ S/2. A
q̃ of L steps has products of L² steps, which a million contributors' grid brings near 2⁵³; with S of
T ≈ √L steps, none of the three has products of more than about L + T of its own steps. The three
add up to Σ q̃q̃ᵀ because q̃ = h + l is exact.

So millions of rows add exactly, in BLAS too, whatever its order. What is left are a few exact sums
that `math.fsum` puts together, and it rounds the true sum once. Nothing depends on who came when,
on which service, in which file or on which machine: only on who came. (Where ε is so large that the
screen looks at no norms, there is no L; then the last bits may show the order.)
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.theory.input_calibration import InputCalibration

EXACT = 2.0**53


def block_sums(agreement: Agreement, numbers: FloatArray) -> FloatArray:
    """The sums of a block's rows: of each number for `moment`, for `input` those of the table."""
    if agreement.mechanism == "moment":
        return np.asarray(numbers.sum(axis=0))
    d = agreement.schema.dimension
    q, p, step = numbers[:, :d], numbers[:, d:], agreement.grid.linear
    cut = agreement.grid.quadratic * _cut(agreement)
    high = q * (1 / cut)
    np.rint(high, out=high)
    high *= cut
    low = q - high
    mixed = high.T @ low
    upper = np.triu_indices(d)
    coarse = p * (1 / step)
    np.rint(coarse, out=coarse)
    coarse *= step
    fine = p - coarse
    ones = np.ones(len(p))  # BLAS adds columns faster than NumPy
    return np.concatenate(
        [
            (high.T @ high)[upper],
            (mixed + mixed.T)[upper],
            (low.T @ low)[upper],
            ones @ coarse,
            ones @ fine,
        ]
    )


def _cut(agreement: Agreement) -> float:
    """T, how many steps of q̃ make one of h: about the root of how many a q̃ has.

    Any power of two gives the right sums; this one lets the most rows add exactly.
    """
    calibration = agreement.calibration
    assert isinstance(calibration, InputCalibration)
    noise = 2 * math.sqrt(agreement.schema.dimension) * calibration.q_noise
    steps = (calibration.setting.q_bound + noise) / agreement.grid.quadratic
    return 2.0 ** math.ceil(math.log2(steps) / 2)


def rows_that_add_exactly(agreement: Agreement, largest_steps: tuple[float, ...]) -> int:
    """How many rows may be added so that their sums stay exact; at least 1."""
    most = max(largest_steps)
    if agreement.mechanism == "input":
        quadratic, linear = largest_steps
        cut = _cut(agreement)
        high = quadratic / cut + 0.5  # |h| in its own steps; |l| is at most cut/2
        quadratic = max(high**2, high * cut, cut**2 / 4)
        linear = linear * agreement.grid.dither / agreement.grid.linear
        linear = max(linear + 0.5, agreement.grid.linear / agreement.grid.dither)
        most = max(quadratic, linear)
    return max(1, int(EXACT / most)) if math.isfinite(most) else 1


def merged(
    parts: Iterable[tuple[int, FloatArray]], exact_rows: int
) -> list[tuple[int, FloatArray]]:
    """Counts and sums in as few parts as stay exact.

    Merging what was merged is merging: so this is the step of a tree of any shape.
    """
    groups: list[tuple[int, FloatArray]] = []
    for rows, sums in parts:
        if groups and groups[-1][0] + rows <= exact_rows:
            held, so_far = groups[-1]
            groups[-1] = held + rows, so_far + sums
        else:
            groups.append((rows, sums))
    return groups


@dataclass(frozen=True, eq=False)
class Totals:
    """How many contributed, and the sums of what they sent: all that a release is made of.

    For `moment` there is one sum for each number that is sent; for `input` the triangle of A = Σ
    q̃q̃ᵀ, row by row, and then c = Σ p̃. `draws` says how many databases have added noise of their
    own: nothing is learned from sums that miss what the agreement promises
    (`blurfit.model.learner`).
    """

    count: int
    sums: FloatArray
    fingerprint: str
    draws: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Totals):
            return NotImplemented
        mine = self.count, self.fingerprint, self.draws
        same = mine == (other.count, other.fingerprint, other.draws)
        return same and np.array_equal(self.sums, other.sums)


def total(agreement: Agreement, parts: Iterable[tuple[int, FloatArray]], exact_rows: int) -> Totals:
    """The totals of a collection from its blocks' counts and sums."""
    groups = merged(parts, exact_rows)
    count = sum(rows for rows, _ in groups)
    is_input = agreement.mechanism == "input"
    d = agreement.schema.dimension
    triangle = d * (d + 1) // 2
    if not groups:
        width = triangle + d if is_input else agreement.width
        return Totals(0, np.zeros(width), agreement.fingerprint)
    lines = np.array([sums for _, sums in groups])
    if not is_input:
        sums = [math.fsum(column) for column in lines.T]
        return Totals(count, np.array(sums), agreement.fingerprint)
    # the three parts of A, and the two of c, are several lines of one sum
    gram = [math.fsum(column) for column in lines[:, : 3 * triangle].reshape(-1, triangle).T]
    moment = [math.fsum(column) for column in lines[:, 3 * triangle :].reshape(-1, d).T]
    return Totals(count, np.array(gram + moment), agreement.fingerprint)
