"""The database's own noise: drawn once, exactly, and kept with what is released.

`blurfit.theory.moments` has the theorem. Here is its D: on the agreement's grid, a discrete
Gaussian of deviation σ/√counts for each number, √quorum times what one contributor adds.

**Exactly.** A sum of N screened submissions stays below 2⁵³ steps if N times the largest number of
steps that the screen lets in does, so no sum was rounded before D is added; whether that is so
follows from public facts, and not from what anybody sent. Between two databases sums are words mod
2⁶⁴, and nothing is rounded at all.

**Once.** A store draws D in the transaction that fixes whose sums it is added to, and keeps it: a
retry adds the same D (`blurfit.store.release`, `blurfit.store.joint`). Whoever learns from
files keeps what was released. What was drawn and lost before that was seen by nobody.
"""

from dataclasses import replace

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.data import IntArray, WordArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning.sums import Screen, Totals, rows_that_add_exactly
from blurfit.randomness.discrete_gaussian import draw


def steps(agreement: Agreement, draws: int = 1) -> IntArray:
    """Draw D in steps of the grid, fresh at each call: (draws, width)."""
    found = np.empty((draws, agreement.width), dtype=np.int64)
    ratios = agreement.database_ratios
    for ratio in np.unique(ratios).tolist():
        places = np.flatnonzero(ratios == ratio)
        found[:, places] = draw(ratio, draws * len(places)).reshape(draws, -1)
    return found


def words(agreement: Agreement) -> WordArray:
    """Draw D mod 2⁶⁴, as sums of shares are; zeros where the agreement has no such noise."""
    if not agreement.database_noise:
        return np.zeros(agreement.width, dtype=np.uint64)
    return np.asarray(steps(agreement)[0].view(np.uint64))


def blurred(agreement: Agreement, totals: Totals, drawn: WordArray | None = None) -> Totals:
    """Return the totals of whole submissions with D in them; as they are where the agreement has
    none.

    `drawn` is a D that `words` drew before; without it a fresh one is drawn.
    """
    if not agreement.database_noise:
        return totals
    if totals.draws:
        raise InvalidValueError("Expected totals without the database's noise: it is added once.")
    most = rows_that_add_exactly(agreement, Screen.of(agreement).largest_steps())
    if totals.count > most:
        raise InfeasibleError(
            f"Expected count={totals.count} to be at most {most}, so that sums are exact before "
            "the database's noise is added: collect the rest under another agreement."
        )
    given = words(agreement) if drawn is None else drawn
    noise = given.view(np.int64) * agreement.grid.quadratic  # exact: the step is a power of two
    return replace(totals, sums=totals.sums + noise, draws=1)
