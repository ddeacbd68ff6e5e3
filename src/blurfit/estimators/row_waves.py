"""Waves in one process: a lot divides the rows, and each wave's map follows from the releases.

    plan ─► wave 1: Σ ─ noise ─► release ─► the map of wave 2: Σ ─ noise ─► release ─► … ─► model

Contributors, the database and the model's user do this under a plan (`blurfit.model.course`); here
each wave's sums are made in one pass and blurred at once.

**A fit spends μ once, however many waves there are.** A row is in one wave alone, and which one is
decided by a random order of their numbers, drawn before any row is looked at: never by answers.
Each wave's noise keeps μ-GDP for its own rows whatever map is announced, and the maps are functions
of earlier releases. So by the parallel adaptive theorem (`blurfit.theory.planning`) all releases
together are μ-GDP for every row: what other waves publish has the same law whatever her row is, or
is post-processing of what her own wave published. μ's would add in squares only for somebody who is
in two waves, and nobody is.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.random import Generator

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.grid import DISCRETE_SHARE
from blurfit.agreement.plan import Plan
from blurfit.agreement.wave import kept_columns
from blurfit.arrays import AnyArray, FloatArray, IntArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.estimators.base import Signal
from blurfit.estimators.one_pass import encoded
from blurfit.learning.sums import Totals
from blurfit.model.course import Course
from blurfit.model.moments import PublishedMoments
from blurfit.schema.columns import Categorical, Numeric
from blurfit.schema.schema import Schema
from blurfit.theory.forms import WaveForm
from blurfit.theory.gaussian import mu_of
from blurfit.theory.planning import Task, choose_plan
from blurfit.validate import inside_unit_interval, positive, whole

ROWS_AT_ONCE = 8192  # few enough for the cache

# What a fit does with the rows of one wave: sums, noise, release.
Release = Callable[[Agreement, AnyArray, Signal], PublishedMoments]


def plan_for(schema: Schema, rows: int, waves: Any, *, counts: bool, **terms: Any) -> Plan | None:
    """The plan of a fit to this many rows, from public facts alone; None where one wave is enough.

    Args:
        schema: what a row is. More than two classes are learned in one wave.
        rows: how many there are; it is public, and the quorum of all waves together.
        waves: "auto", or how many.
        counts: whether the target counts something; then only a plan that ends with Newton's wave
            will do, as nothing else gives the logarithm of a rate.
        terms: ε, δ and the rest of the promise.
    """
    if not isinstance(waves, str):
        whole(waves=waves)
    elif waves != "auto":
        raise InvalidValueError(f"Expected waves={waves!r} to be 'auto' or a whole number >= 1.")
    if isinstance(schema.target, Categorical):
        refuse_waves(waves, f"{len(schema.target.levels)} classes")
        return None
    positive(epsilon=terms["epsilon"])
    inside_unit_interval(delta=terms["delta"])
    target = schema.target
    task: Task = "count" if counts else "number" if isinstance(target, Numeric) else "label"
    asked = None if waves == "auto" else int(waves)
    mu = mu_of(terms["epsilon"], terms["delta"] * (1 - DISCRETE_SHARE))
    p = len(kept_columns(schema))
    found = choose_plan(task, coefficients=p, count=rows, mu=mu, waves=asked)
    if counts and waves == "auto" and "newton" not in found.kinds:  # the curve is what is asked for
        found = choose_plan(task, coefficients=p, count=rows, mu=mu, waves=3)
    if counts and "newton" not in found.kinds:
        raise InfeasibleError(
            f"Expected a plan for counts that ends with Newton's wave, and {rows} rows with "
            f"epsilon={terms['epsilon']:g} and waves={waves!r} have only {found.kinds}: a line. "
            "Take more rows, a larger epsilon, waves='auto', public_X, or family='linear'."
        )
    if len(found.stages) == 1:
        return None
    # One party holds all rows, and draws all of the noise: nobody can collude.
    stated = {"quorum": rows, "colluders": 0.0} | terms
    return Plan.propose(schema, waves=len(found.stages), counts=counts, **stated)


def refuse_waves(waves: Any, why: str) -> None:
    """Refuse more waves than one, where there is a reason."""
    if waves not in ("auto", 1):
        raise InvalidValueError(
            f"Expected waves={waves!r} to be 'auto' or 1 with {why}, which takes one wave."
        )


def divide(plan: Plan, generator: Generator) -> list[IntArray]:
    """The rows of each wave, by their numbers: a random order, cut where each quorum is full."""
    ends = np.cumsum(plan.quorums)[:-1]
    return [np.sort(part) for part in np.split(generator.permutation(plan.terms.quorum), ends)]


def collect(
    plan: Plan, values: AnyArray, signal: Signal, generator: Generator, release: Release
) -> tuple[PublishedMoments, ...]:
    """Every wave's release: each agreement follows from the plan and the releases before it."""
    course = Course.of(plan, ())
    for rows in divide(plan, generator):
        part = Signal(signal.target, signal.answers[rows])
        course = course.then(release(course.next_agreement(), values[rows], part))
    return course.releases


def later_totals(agreement: Agreement, values: AnyArray, signal: Signal) -> Totals:
    """The sums of what the rows of a later wave would send, before any noise."""
    form, schema = agreement.form, agreement.schema
    assert isinstance(form, WaveForm)

    def sums_of(start: int) -> FloatArray:
        rows = slice(start, start + ROWS_AT_ONCE)
        part = Signal(signal.target, signal.answers[rows])
        columns = [encoded(values[rows, at], one) for at, one in enumerate(schema.features)]
        return form.sums(np.column_stack([*columns, part.encoded[:, 0]]))

    # How the rows are parted depends on their number alone: so does the rounding of the sums.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        sums = sum(pool.map(sums_of, range(0, len(values), ROWS_AT_ONCE)), np.zeros(form.width))
    return Totals(len(values), sums, agreement.fingerprint)
