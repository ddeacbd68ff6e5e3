"""Contributors who lie together: submissions as long as may be, along a coefficient's slope."""

import math

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import radii
from blurfit.learning.sums import Screen


def climbing(agreement: Agreement, sums, value, liars: int, sign: int, steps: int = 6):
    """What each of some liars sends who all push the same way: the others' `sums` are theirs, and
    `value` says what sums come to. They go up (or down) the slope at where they get to.
    """
    (radius,), (part,) = radii(agreement), agreement.parts
    bump, row = 1e-4 * math.sqrt(agreement.quorum) * np.eye(len(sums)), np.zeros(len(sums))
    for _ in range(steps):
        at = sums + liars * row
        slope = np.array([value(at + one) - value(at - one) for one in bump])
        if not np.isfinite(slope).all():
            break
        way = sign * (slope / part.counts) / math.sqrt((slope**2 / part.counts).sum())
        row = np.trunc(way * radius / part.step) * part.step
    assert Screen.of(agreement).passes(row[None]).all(), "or the screen would refuse it"
    assert (part.counts * row**2).sum() > 0.98 * radius**2
    return row
