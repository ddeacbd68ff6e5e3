"""Random intercepts: fitted to rows from which a part of each person's mean is taken.

    X, y, groups ─┬─ means, and 1/m ─► B ─┬─► how much of means is kept, √f
                  ├─ differences ────► W ─┘            │
                  └─ rows less the rest of their mean ◄┘ ─► waves ─► model ─► σ_a², σ_e² by B and W

Weighted least squares of W + f·B is least squares of the rows u_t − (1 − √f)·ū, because the
mean over a person's rows of (u_t − (1 − √f)·ū)(…)ᵀ is W + f·ūūᵀ. So once f is announced everything
is learned as from any rows: in waves, with errors that are clustered by person, whatever the true
variances are. f and the components are read from two releases beside (`blurfit.learning`,
`components`), by the composition of `blurfit.agreement.plan.HeldWaves`: B and W in turn are form 2
(between ⊕ within) in two releases.

**Sensitivity.** With u_t relative to the middle of the bounds, ρ² the bound of ‖u_t‖², and c the
constant, what a person adds is M = [[c², cq], [cq, S]] with q = √f·ū and S = W + f·ūūᵀ. S − qqᵀ = W
is positive semidefinite, and tr S ≤ tr W + ‖ū‖², the mean of ‖u_t‖², is at most ρ². By Sturm and
Zhang (2003, *On cones of nonnegative quadratic functions*) a positive semidefinite M
with ⟨A, M⟩ ≤ 0, A = diag(−ρ²/c², 1, …, 1), is a sum of x_ix_iᵀ with x_iᵀAx_i ≤ 0 each: of
multiples of (c, u)(c, u)ᵀ with ‖u‖ ≤ ρ, whose factors sum to 1 by the first entry. So M is in the
hull of what single rows add, and **Δ is that of one row** (Lemma H of `blurfit.theory.coded`), for
every f, attained for f = 1, the mean of rows; of differences, f = 0, it is √2·ρ². `zero-out`
likewise. Later waves cut a
person's rows together, whatever they are. ∎ Single rows may be up to twice outside of their bounds.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from blurfit.agreement.plan import HeldWaves
from blurfit.data import AnyArray
from blurfit.estimators.base import Signal, free_name
from blurfit.estimators.mechanisms import released
from blurfit.estimators.passes import Rows
from blurfit.estimators.people import Effects, People, arranged
from blurfit.learning.components import VarianceComponents, components, one_over_rows
from blurfit.learning.sums import Submodel
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.model.summary import number
from blurfit.schema.columns import Feature, Numeric
from blurfit.schema.schema import Schema
from blurfit.theory.maps import ResidualMap

ONE_OVER_ROWS = "1/rows"


def between_and_within(
    waves: HeldWaves,
    people: People,
    values: AnyArray,
    columns: Sequence[Feature],
    signal: Signal,
    random: Any,
    caveats: tuple[str, ...],
) -> tuple[PublishedMoments, PublishedMoments]:
    """Release the products of people's means, with 1/m, and those of their differences."""
    target, found = signal.target, []
    assert isinstance(target, Numeric)
    kinds: tuple[Effects, Effects] = "between", "within"
    for place, effects in enumerate(kinds):
        rows, own, aim, answers, whose = arranged(
            effects, people, values, columns, target, signal.answers
        )
        if effects == "between":
            name = free_name(ONE_OVER_ROWS, [one.name for one in (*own, aim)])
            rows = np.column_stack([rows, 1.0 / people.rows_of_each])
            own = (*own, Numeric(name, 0, 1))
        encoded = Signal(aim, answers, whose.reach).encoded
        agreement = waves.another(Schema(own, aim), place)
        found.append(released(agreement, Rows(rows, encoded, own, whose), random, caveats))
    return found[0], found[1]


def told_by(
    between: PublishedMoments, within: PublishedMoments
) -> tuple[Submodel, Submodel, float]:
    """Return what the two releases say of differences and of means, and E[1/m]."""
    target = within.agreement.schema.target.name
    *names, one_over = between.agreement.schema.columns[:-1]
    parts = (one.joint.submodel(target, names) for one in (within, between))
    return *parts, one_over_rows(between.joint.submodel(target, [one_over]))  # type: ignore[return-value]


def with_components(
    model: PublishedModel, releases: Sequence[PublishedMoments], kept: float
) -> tuple[PublishedModel, VarianceComponents]:
    """Return the components at the model's slopes, and the model with the spread that they give to
    one more row of one more person.
    """
    target, features = model.aim, model.agreement.schema.features
    assert isinstance(target, Numeric)
    widths = np.array([one.width for one in features if isinstance(one, Numeric)])
    slopes, left = np.array(list(model.coefficients.effects.values())), None
    *_, last, between, within = releases
    unit = target.width / 2
    if model.inference:
        slopes = model.inference[0].coefficients[1:]
        left = _left(model, last, unit)
    encoded = slopes * widths / target.width
    found = components(*told_by(between, within), encoded, kept, unit, left)
    whole = found.between + found.within
    told = tuple(replace(one, residual_variance=whole, r_squared=None) for one in model.inference)
    return replace(model, inference=told), found


def _left(model: PublishedModel, last: PublishedMoments, unit: float) -> tuple[float, float] | None:
    """Return the variance of the last wave's errors, encoded, and its standard error."""
    wave, variance = last.agreement.wave, model.inference[0].residual_variance
    chart = None if wave is None else wave.chart
    if not isinstance(chart, ResidualMap) or variance is None:
        return None
    noise = last.deviation / last.count * (chart.scale / chart.target_scale) ** 2
    square = variance / unit**2
    return square, math.hypot(noise, square * math.sqrt(2 / last.count))


def in_words(found: VarianceComponents) -> str:
    """Say what people differ by, and rows of one person."""
    a, e = (
        f"{number(value)} (standard error {number(error)})"
        for value, error in (
            (found.between, found.between_error),
            (found.within, found.within_error),
        )
    )
    return (
        f"Random intercepts: the variance between people is {a}, that of rows of one person {e}, "
        f"noise taken out, and told as 0 if below; by these {found.share:.0%} of what slopes leave "
        f"is people's own. A person's mean weighs {found.kept**2:.2g} times what differences from "
        "it do (1: pooled rows)."
    )
