"""Fit by either mechanism in one process: input perturbation, or joint moments in waves.

**Defaults.** Defaults of input perturbation that read public facts alone: how long weights may be.

Encoded columns are divided by √m, where m counts them and the intercept: a weight of √m lets one
column move the prediction over its whole range. Nothing here touches privacy: whatever η is, the
noise is calibrated for it. It decides what the noise costs, and was chosen on public census
microdata (docs/experiments.md), from n = 2⁹ to 2¹⁷ at ε = 0.1 and 1.

**Input perturbation.** Input perturbation in one process: records are blurred themselves, and one
model is published.

**Joint moments.** Joint moments in one process: releases of blurred sums, and the model of their
target.

The rows are summed in one pass, the sums are blurred exactly, and `PublishedMoments` is what leaves
(`releases_`: one, or one for each wave, `blurfit.agreement.plan`). Everything after that is
post-processing. All classes of a label are columns of one release, so that no budget is divided
among them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import kept_columns, task_of
from blurfit.agreement.plan import HeldWaves
from blurfit.data import AnyArray
from blurfit.errors import InfeasibleError, InvalidValueError, whole
from blurfit.estimators.base import (
    SAMPLE_WEIGHT,
    PerturbationEstimator,
    Signal,
    agree,
    blur_each,
    blurred,
    gaussian_share,
    require_room,
    share,
)
from blurfit.estimators.passes import JointTotals, Rows
from blurfit.estimators.people import People, every
from blurfit.learning.sums import Statistics, Totals
from blurfit.model.course import Course
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, learn, moments_of
from blurfit.schema.columns import Categorical, Feature, Question
from blurfit.schema.formulas import declared, parsed
from blurfit.schema.schema import Schema
from blurfit.simulation import input_totals
from blurfit.theory.coded import CodedForm
from blurfit.theory.forms import JointForm, WaveForm
from blurfit.theory.gaussian import mu_of
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.moments import MomentCalibration, Rule
from blurfit.theory.planning import Stage, StageKind, Stages, choose_shares

# How far a score reaches, in units of √m: a number's from one end of its range to the other; a
# label's log-odds are twice the least-squares fit of ±1, which is itself longer than a number's.
REACH_OF_NUMBER, REACH_OF_LABEL = 1.0, 3.0
# η is as long as that from n·μ/m^{3/2} = 256 on, and falls with its fourth root below.
WHOLE_BALL = 256.0
DEFAULT_SPLIT = 0.2  # J's share of ε
# Differences have no mean to find, and a person's vary little together: one map is enough before
# the last. (Chosen on generated diaries.)
SHARES_OF_DIFFERENCES: tuple[tuple[StageKind, float], ...] = (
    ("joint", 0.06),
    ("gauge", 0.02),
    ("residual", 0.12),
    ("gauge", 0.05),
    ("residual", 0.75),
)
Table = tuple[AnyArray, tuple[Feature, ...]]  # values, and what each column of them is


def public_ball(dimension: int, rows: int, epsilon: float, delta: float, *, label: bool) -> float:
    """η = reach·√m·min(1, (n·μ(ε, δ)/(256·m^{3/2}))^{1/4}), for one model.

    The noise on Σp grows with η, and the error with noise over n. So where n·μ is small, a smaller
    ball loses less to noise than it cuts off. μ(ε, δ) is the Gaussian privacy that the promise pays
    for; m^{3/2} is the noise's length √m times the m over which columns share the unit ball.

    >>> public_ball(14, 2**21, 1.0, 1e-6, label=False) == math.sqrt(14)
    True
    """
    reach = REACH_OF_LABEL if label else REACH_OF_NUMBER
    signal = rows * mu_of(epsilon, delta) / dimension**1.5
    affordable = math.sqrt(math.sqrt(signal / WHOLE_BALL))
    return reach * math.sqrt(dimension) * min(1.0, affordable)


@dataclass(kw_only=True, eq=False, repr=False)
class InputPerturbation(PerturbationEstimator):
    """Blurs q and p, as in the paper: short messages, one release, more rows than columns."""

    mechanism = "input"
    least_rows = 2

    weight_bound: float | None = None
    fit_intercept: bool = True
    rule: Rule = "certified"
    split: float | None = None

    def agreement_for(self, schema: Schema, rows: int, models: int = 1) -> Agreement:
        """Return the contract under which a fit to this many rows of this schema blurs them.

        `models` is how many share the promise: one, or one for each of several classes.
        """
        epsilon, delta = share(self.epsilon, self.delta, models)
        local_epsilon, local_delta = self.local_epsilon, self.local_delta
        if models > 1 and local_epsilon is not None and local_delta is not None:
            local_epsilon, local_delta = gaussian_share(local_epsilon, local_delta, models)
        ball = self.weight_bound
        if ball is None:
            ball = public_ball(schema.dimension, rows, epsilon, delta, label=schema.is_label)
        by_default = self.split is None and self.rule == "certified"
        return agree(
            schema,
            epsilon=epsilon,
            delta=delta,
            quorum=rows,
            mechanism=self.mechanism,
            neighbours=self.neighbours,
            local_epsilon=local_epsilon,
            local_delta=local_delta,
            rule=self.rule,
            split=DEFAULT_SPLIT if by_default else self.split,
            weight_bound=ball,
        )

    def _learn(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signals: Sequence[Signal],
        caveats: tuple[str, ...],
        people: People | None,
    ) -> list[PublishedModel]:
        if people is not None:
            raise InvalidValueError(
                "Expected no groups with input perturbation, which blurs each row by itself: a "
                "mean of rows is no row. Take MomentPerturbationRegressor or -Classifier."
            )
        schemas = [Schema(columns, signal.target, self.fit_intercept) for signal in signals]
        first = self.agreement_for(schemas[0], len(values), len(signals))
        agreements = [replace(first, schema=schema) for schema in schemas]
        found = first.calibration
        assert isinstance(found, InputCalibration)
        # What is proved of one model's noise; the whole promise, where that is what is proved.
        each = found.kept.epsilon * len(signals)
        if not self.per_record:
            require_room(first, len(values))
        what = f"{type(self).__name__} of {len(values):,} rows"
        proved = self.epsilon if found.model.proved else max(each, self.epsilon)
        self._pay(what, found.model.neighbours, epsilon=proved, delta=self.delta)
        if self.per_record:
            collected = [
                sum_of_each(agreement, values, columns, signal)
                for agreement, signal in zip(agreements, signals, strict=True)
            ]
        else:  # the noise of all rows in one draw for each target
            targets = np.hstack([signal.encoded for signal in signals])
            sums, seeded = Rows(values, targets, columns).joint, self._seeded()
            collected = [
                blurred(agreement, clean_input_totals(agreement, sums, len(values), place), seeded)
                for place, agreement in enumerate(agreements)
            ]
        return [
            replace(
                learn(agreement, totals, allow_unproved=True, held=True),
                caveats=caveats,
                models=len(signals),
            )
            for agreement, totals in zip(agreements, collected, strict=True)
        ]


def sum_of_each(
    agreement: Agreement, values: AnyArray, columns: tuple[Feature, ...], signal: Signal
) -> Totals:
    """Return the sums of rows that are blurred one by one."""
    sent = blur_each(agreement, values, columns, signal).numbers
    d = agreement.schema.dimension
    return input_totals(agreement, Statistics.of_records(sent[:, :d], sent[:, d:]))


def clean_input_totals(agreement: Agreement, sums: JointTotals, count: int, target: int) -> Totals:
    """Return A and c of one target before any noise: the schema's x is s·(v, 1), s = 1/√m.

    q = R_q·x and p = κy·x with what the loss says: ∑qqᵀ = R_q²·Σxxᵀ, Σp = R_p·Σyx.
    """
    schema, loss = agreement.schema, agreement.loss
    gram, moment = sums.gram, sums.cross[:, target]
    if schema.intercept:
        gram = np.block([[gram, sums.total[:, None]], [sums.total[None], np.array([[count]])]])
        moment = np.append(moment, sums.targets[target])
    s = schema.scale
    clean = Statistics(count, loss.q_bound**2 * s**2 * gram, loss.p_bound * s * moment)
    return input_totals(agreement, clean)


def stages_for(
    schema: Schema, rows: int, waves: Any, *, counts: bool, mu: float, differences: bool = False
) -> Stages | None:
    """Return the waves of a fit to this many rows, from public facts alone; None where there is
    only one.

    Args:
        schema: what a row is. More than two classes are learned in one wave.
        rows: how many there are; it is public.
        waves: "auto", or how many.
        counts: whether the target counts something; then only waves that end with Newton's will
            do, as nothing else gives the logarithm of a rate.
        mu: of all waves together.
        differences: whether rows are differences within people (`blurfit.estimators.people`).
    """
    if not isinstance(waves, str):
        whole(waves=waves)
    elif waves != "auto":
        raise InvalidValueError(f"Expected waves={waves!r} to be 'auto' or a whole number >= 1.")
    if isinstance(schema.target, Categorical):
        refuse_waves(waves, f"{len(schema.target.levels)} classes")
        return None
    task, asked = task_of(schema, counts=counts), None if waves == "auto" else int(waves)
    facts: dict[str, Any] = {"coefficients": len(kept_columns(schema)), "count": rows, "mu": mu}
    found = choose_shares(task, waves=asked, **facts)
    if differences and asked is None and len(found.stages) > 1:
        return Stages(task, tuple(Stage(*one) for one in SHARES_OF_DIFFERENCES))
    if counts and waves == "auto" and "newton" not in found.kinds:  # the curve is what is asked for
        found = choose_shares(task, waves=3, **facts)
    if counts and "newton" not in found.kinds:
        raise InfeasibleError(
            f"Expected waves for counts that end with Newton's, and waves={waves!r} has only "
            f"{found.kinds}: a line. Take waves='auto', or family='linear'."
        )
    return found if len(found.stages) > 1 else None


def refuse_waves(waves: Any, why: str) -> None:
    """Refuse more waves than one, where there is a reason."""
    if waves not in ("auto", 1):
        raise InvalidValueError(
            f"Expected waves={waves!r} to be 'auto' or 1 with {why}, which takes one wave."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class MomentPerturbation(PerturbationEstimator):
    """Blurs the products of all columns, the target's among them; publishes `moments_`."""

    mechanism = "moment"

    formula: str | None = None
    waves: int | Literal["auto"] = "auto"
    sample_weight_bound: float | None = None

    def agreement_for(self, schema: Schema, rows: int, *, diaries: bool = False) -> Agreement:
        """Return the contract under which a fit in one wave to this many rows blurs them; to so
        many people, where each may have several.
        """
        weights = {"weighting": SAMPLE_WEIGHT} if _is_weighted(schema) else {}
        return agree(schema, quorum=rows, diaries=diaries, **self._promise(), **weights)

    def waves_for(self, schema: Schema, rows: int, *, diaries: bool = False) -> HeldWaves | None:
        """Return the waves of a fit to this many rows of this schema, or people; None for one."""
        if _is_weighted(schema):
            refuse_waves(self.waves, "sample_weight")
            return None
        in_all = self.agreement_for(schema, rows, diaries=diaries)
        calibration = in_all.calibration
        assert isinstance(calibration, MomentCalibration)
        counts, mu = self._counts(), mu_of(self.epsilon, calibration.model.delta)
        apart = getattr(self, "effects", "pooled") == "within"
        stages = stages_for(schema, rows, self.waves, counts=counts, mu=mu, differences=apart)
        if stages is None:
            return None
        local = self.local_epsilon, self.local_delta
        given: Any = None if None in local else local
        return HeldWaves(in_all, stages, given, apart)

    def _spent_in_words(self) -> tuple[str, ...]:
        if isinstance(self._one_model().aim, Categorical):
            return ()
        if _is_weighted(self._one_model().agreement.schema):
            return ("Rows were weighted: the whole budget was spent on one release, `moments_`.",)
        if self.plan_ is None:
            return (
                "The whole budget was spent on one release, `moments_`, which answers further "
                "questions at no cost. waves='auto' spends it on this model if that improves it.",
            )
        first = self.plan_.fractions[0]
        return (
            f"The budget was spent on this model: `moments_` has {first:.0%} of μ², so answers to "
            f"other questions have {first**-0.5:.2g} times as much noise as with waves=1, which "
            "spends it all on one release.",
        )

    def _counts(self) -> bool:
        """Tell whether the target is a count, the logarithm of whose mean is linear."""
        return False

    def _learn(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signals: Sequence[Signal],
        caveats: tuple[str, ...],
        people: People | None,
    ) -> list[PublishedModel]:
        (signal,) = signals
        schema = self._schema(columns, signal.target)
        count, diaries = _counted(values, people)
        waves = self.waves_for(schema, count, diaries=diaries)
        start = Course(waves or self.agreement_for(schema, count, diaries=diaries))
        first = start.next_agreement()
        self._spend(first, count, waves)
        table, random = (values, columns), self._seeded()
        course = self._course(start, first, table, signal, caveats, people, random)
        self.plan_ = course.agreed if isinstance(course.agreed, HeldWaves) else None
        self.releases_ = course.releases
        self.moments_ = course.releases[0]
        return [course.model()]

    def _course(
        self,
        course: Course,
        first: Agreement,
        table: Table,
        signal: Signal,
        caveats: tuple[str, ...],
        people: People | None,
        random: Any,
    ) -> Course:
        """Return all that leaves, blurred. It has been spent for."""
        (values, columns), schema = table, course.agreed.schema
        rows = Rows(values, signal.encoded, columns, people, features=schema.features)
        if _is_weighted(schema):
            rows = replace(rows, scales=np.clip(values[:, -1] / columns[-1].upper, 0.0, 1.0))  # type: ignore[union-attr]

        def release(agreement: Agreement, stride: int = 1) -> PublishedMoments:
            if not self.per_record:
                return released(agreement, rows.every(stride), random, caveats)
            some, whose = every(len(values), people, stride)
            part = Signal(signal.target, signal.answers[some])
            sent = blur_each(agreement, values[some], columns, part, whose)
            totals = Totals(len(sent), sent.numbers.sum(axis=0), agreement.fingerprint)
            return replace(moments_of(agreement, totals, held=True), caveats=caveats)

        waves, course = course.agreed, course.then(release(first))
        for stride in waves.strides[1:] if isinstance(waves, HeldWaves) else ():
            course = course.then(release(course.next_agreement(), stride))
        return course

    def _schema(self, columns: tuple[Feature, ...], target: Question) -> Schema:
        """Return what a row is, with what the formula or the schema derives; and what may be
        predicted from the release: as the schema says, if there is one, else all.
        """
        features: Sequence[Feature] = columns
        rest: dict[str, Any] = {}
        if isinstance(self.bounds, Schema):
            derived = tuple(one for one in self.bounds.features if one.of)
            alone = {one.name for one in self.bounds.sources}
            features = (*(one for one in columns if one.name not in alone), *derived)
            names = {target.name, *(one.name for one in features)}
            rest = {
                "targets": tuple(name for name in self.bounds.targets if name in names),
                "sources": self.bounds.sources,
                "predictors": self.bounds.predictors,
            }
            if self.formula is not None and derived:
                whole = Schema(features, target, **rest)
                return replace(whole, predictors=parsed(self.formula, whole).features)
        if self.formula is None:
            return Schema(features, target, **rest)
        named = {one.name: one for one in columns}
        weight = [named.pop(SAMPLE_WEIGHT)] if SAMPLE_WEIGHT in named else []
        formula, features, sources = declared(self.formula, named)
        if formula.references:
            raise InvalidValueError(
                f"Expected no reference levels in formula={self.formula!r}: a level is compared "
                "with the first that bounds name, so name that one first."
            )
        told = formula.features
        return Schema((*features, *weight), target, sources=sources, predictors=told)


def _counted(values: AnyArray, people: People | None) -> tuple[int, bool]:
    """Return how many the promise is to, and whether they may have several rows each."""
    return (len(values), False) if people is None else (people.count, True)


def clean_moment_totals(agreement: Agreement, rows: Rows) -> Totals:
    """Return the sums of what the rows, or the people, would send, in one pass and before any
    noise.
    """
    form, count = agreement.form, rows.count
    if isinstance(form, WaveForm):
        return Totals(count, rows.sums(form), agreement.fingerprint)
    joint = form.inner if isinstance(form, CodedForm) else form
    assert isinstance(joint, JointForm)
    matrix = rows.joint.matrix(rows.weight) * np.outer(joint.scale, joint.scale)
    return Totals(count, joint.take(matrix), agreement.fingerprint)


def released(
    agreement: Agreement, rows: Rows, random: Any, caveats: tuple[str, ...]
) -> PublishedMoments:
    """Return the blurred sums of what the rows, or the people, would send."""
    require_room(agreement, agreement.quorum)  # before rows are looked at
    totals = blurred(agreement, clean_moment_totals(agreement, rows), random)
    return replace(moments_of(agreement, totals, held=True), caveats=caveats)


def _is_weighted(schema: Schema) -> bool:
    """Tell whether rows have weights of their own."""
    return any(one.name == SAMPLE_WEIGHT for one in schema.features)
