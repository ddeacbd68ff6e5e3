"""Simulate a whole plan of waves in one process, for data that is in one place anyway.

The noise is drawn once for each wave's sums (`blurfit.simulation.sampler`), with the law that the
contributors' own shares of it have in total.
"""

from typing import NamedTuple

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.data import FloatArray, IntArray
from blurfit.errors import BelowQuorumError
from blurfit.learning.sums import Totals
from blurfit.model.course import Course
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, moments_of
from blurfit.simulation.sampler import sampler_for
from blurfit.theory.forms import WaveForm

ROWS_AT_ONCE = 8192  # few enough for the cache


class Fitted(NamedTuple):
    """The model, and the release of each wave: all of it may be published."""

    model: PublishedModel
    releases: tuple[PublishedMoments, ...]


def fit_in_waves(plan: Plan, values: FloatArray, generator: np.random.Generator) -> Fitted:
    """Go through all waves of a plan, from encoded rows to the model: see `course_in_waves`."""
    course = course_in_waves(plan, values, generator)
    return Fitted(course.model(), course.releases)


def course_in_waves(plan: Plan, values: FloatArray, generator: np.random.Generator) -> Course:
    """Go through all waves of a plan, from encoded rows to the last release.

    Rows are divided by a random order that is drawn before any of them is looked at, so no answer
    decides anybody's wave; more rows than the plan's quorum are shared out in proportion. Everybody
    keeps the plan's (ε, δ) in all, if nobody can repeat the draw (`blurfit.simulation.sampler`).

    `values` are all columns of each row, the target's last (`blurfit.schema.schema.values`); the
    generator draws assignment and noise.
    """
    count = len(values)
    if count < plan.terms.quorum:
        raise BelowQuorumError(
            f"Expected at least {plan.terms.quorum} rows, which the plan's waves wait for, and got "
            f"{count}."
        )
    shares = np.cumsum(plan.quorums[:-1]) / plan.terms.quorum
    ends = np.ceil(shares * count).astype(int)  # the last wave's share is rounded down, and
    ends = np.minimum(ends, count - np.cumsum(plan.quorums[:0:-1])[::-1])  # has its quorum still
    course = Course.of(plan, ())
    for rows in np.split(generator.permutation(count), ends):
        agreement = course.next_agreement()
        clean = Totals(len(rows), _sums(agreement, values, rows), agreement.fingerprint)
        totals = sampler_for(agreement, clean).draw(generator)
        course = course.then(moments_of(agreement, totals))
    return course


def _sums(agreement: Agreement, values: FloatArray, rows: IntArray) -> FloatArray:
    form = agreement.form
    parts = np.array_split(rows, max(1, len(rows) // ROWS_AT_ONCE))
    if isinstance(form, WaveForm):
        return np.asarray(np.sum([form.sums(values[part]) for part in parts], axis=0))
    return np.asarray(np.sum([form.products(values[part]).sum(axis=0) for part in parts], axis=0))
