"""Joint moments in one process: releases of blurred sums, and the model of their target.

The rows are summed in one pass, the sums are blurred exactly, and `PublishedMoments` is what leaves
(`releases_`: one, or one for each wave, `blurfit.agreement.plan`). Everything after that is
post-processing. All classes of a label are columns of one release, so that no budget is divided
among them.
"""

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
    FitGuarantee,
    MomentEstimator,
    Signal,
    agree,
    blur_each,
    blurred,
    require_room,
)
from blurfit.estimators.passes import Rows
from blurfit.estimators.people import People, every
from blurfit.learning.sums import Totals
from blurfit.model.course import Course
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, moments_of
from blurfit.schema.columns import Categorical, Feature, Question
from blurfit.schema.formulas import declared, parsed
from blurfit.schema.schema import Schema
from blurfit.theory.coded import CodedForm
from blurfit.theory.forms import JointForm, WaveForm
from blurfit.theory.gaussian import mu_of
from blurfit.theory.planning import Stage, StageKind, Stages, choose_shares

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
class MomentPerturbation(MomentEstimator):
    """Blurs the products of all columns, the target's among them; publishes `moments_`."""

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
        model = course.model()
        self.agreement_ = model.agreement
        self.guarantee_ = FitGuarantee.of(model, len(self.releases_))
        return [model]

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
