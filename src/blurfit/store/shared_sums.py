"""Sums over the set that two databases have fixed: each side's own, and what both make together.

Shares and masks are words mod 2⁶⁴, or elements of a field where there are proofs
(`blurfit.store.proved_sums`). The sum of a set's shares minus that of its masks is Σv, exactly, and
neither of the two says anything about v alone (`blurfit.contributor.blur` has the proof).
"""

import numpy as np
from sqlalchemy.engine import Connection

from blurfit.agreement.databases import DEVIATIONS, largest_steps
from blurfit.agreement.mechanisms import largest_scale
from blurfit.arrays import WordArray
from blurfit.errors import InfeasibleError, NotCertifiedError
from blurfit.learning.sums import Totals
from blurfit.store import blocks, commitment, proved_sums
from blurfit.store.collections import Collection
from blurfit.store.commitment import Commitment
from blurfit.theory.moments import MomentCalibration


def sums_over(connection: Connection, collection: Collection) -> tuple[Commitment, WordArray]:
    """The set that was fixed, and Σ over exactly this set, of shares or of masks, mod 2⁶⁴, or in
    the field where there are proofs; with the noise of this database where that was agreed.

    The sums of the blocks, minus those of the rows that are left out. Where nobody is left out no
    row is read: so it is at the first database, whose shares are the long ones, as long as
    contributors send the seed before the share (`blurfit.contributor.client`).
    """
    chosen = commitment.recorded(connection, collection)
    if chosen is None:
        raise InfeasibleError("Expected a set to be fixed before anything is summed over it.")
    if collection.agreement.proofs:
        count, total = proved_sums.over(connection, collection, chosen)
    else:
        count, total = _sums_of_blocks(connection, collection, chosen)
    if count != chosen.count:
        raise NotCertifiedError(
            f"Expected {chosen.count} shares in the set that was fixed, and found {count}: the "
            "storage is damaged. Restore it from a backup."
        )
    if collection.agreement.proofs:
        return chosen, proved_sums.plus(total, chosen.noise)
    return chosen, total + chosen.noise


def together(
    connection: Connection, collection: Collection, masks: WordArray
) -> tuple[int, WordArray]:
    """How many are in the set that was fixed, and Σv mod 2⁶⁴ from both databases' sums over it."""
    chosen, shares = sums_over(connection, collection)
    if masks.shape != shares.shape:
        raise NotCertifiedError(
            f"Expected {shares.size} sums from the other database, and got {masks.size}."
        )
    if collection.agreement.proofs:
        words = proved_sums.together(collection.agreement, chosen.count, shares, masks)
    else:
        words = shares - masks
    return chosen.count, words


def totals_of(collection: Collection, count: int, words: WordArray) -> Totals:
    """The totals from Σv mod 2⁶⁴, exactly: the sums that one database would have found.

    Signed, since |Σv| < 2⁶³. An honest sum is at most N·B steps (`blurfit.agreement.databases`),
    so a larger one is refused: then somebody has sent what is no share of a blurred record.
    """
    agreement = collection.agreement
    assert isinstance(agreement.calibration, MomentCalibration)
    # One rounding each, as in `blurfit.learning.sums`; to multiply by a power of two is exact.
    steps = words.view(np.int64).astype(np.float64)
    scale = largest_scale(agreement.form)
    largest = count * largest_steps(agreement.calibration, agreement.grid, scale)
    if agreement.database_noise:
        most = DEVIATIONS * float(agreement.database_ratios.max())
        largest += agreement.database_draws * most
    if (np.abs(steps) > largest).any():
        raise InfeasibleError(
            f"The sums are larger than {count:,} blurred records can add up to: somebody sent "
            "shares that are no shares of a blurred record. Shares cannot be screened; collect "
            "again, by invitation."
        )
    sums, draws = steps * agreement.grid.quadratic, agreement.database_draws
    return Totals(count, sums, agreement.fingerprint, draws)


def _sums_of_blocks(
    connection: Connection, collection: Collection, chosen: Commitment
) -> tuple[int, WordArray]:
    if chosen.inside:  # a mask costs more than a look at its name
        return _sums_of_rows(connection, collection, chosen, inside=True)
    count, total = 0, np.zeros(1, dtype=np.uint64)
    for rows, sums in blocks.parts(connection, collection):
        count += rows
        total = total + np.frombuffer(sums, dtype="<u8")
    if len(chosen.listed):
        fewer, excluded = _sums_of_rows(connection, collection, chosen, inside=False)
        return count - fewer, total - excluded
    return count, total


def _sums_of_rows(
    connection: Connection, collection: Collection, chosen: Commitment, *, inside: bool
) -> tuple[int, WordArray]:
    """How many rows are in the set, or left out of it, and their sums."""
    count, total = 0, np.zeros(1, dtype=np.uint64)
    for identifiers, words in blocks.rows(connection, collection):
        wanted = chosen.has(identifiers) == inside
        if wanted.any():
            count += int(wanted.sum())
            total = total + collection.sums(words[wanted])
    return count, total
