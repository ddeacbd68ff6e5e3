"""Regression and classification from joint moments: blurred sums, and the model of their target.

The rows are summed in one pass, the sums are blurred exactly, and `PublishedMoments` is what leaves
(`releases_`: one, or one for each wave, `blurfit.agreement.plan`). Everything after that is
post-processing. All classes of a label are columns of one release, so that no budget is divided
among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import kept_columns, task_of
from blurfit.agreement.numbers import DISCRETE_SHARE
from blurfit.agreement.plan import HeldWaves
from blurfit.budget import tally
from blurfit.contributor.blur import blur
from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError, one_of, whole
from blurfit.estimators.base import (
    SAMPLE_WEIGHT,
    FitGuarantee,
    PerturbationClassifier,
    PerturbationEstimator,
    PerturbationRegressor,
    Signal,
    codes_of,
    counted,
)
from blurfit.estimators.passes import Rows, blurred, clean_moment_totals, require_room
from blurfit.estimators.people import (
    EFFECTS,
    Effects,
    People,
    demean_by_person,
    every,
    one_of_each,
)
from blurfit.estimators.rows import by_formula, design, read_rows, real_numbers, records, words
from blurfit.learning.inference import Errors, Estimate
from blurfit.learning.sums import Totals
from blurfit.messages.submissions import Submissions
from blurfit.model.course import Course
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, moments_of
from blurfit.model.summary import Results, Summary
from blurfit.schema.columns import Categorical, Feature, Numeric, Question
from blurfit.schema.formulas import declared, parsed
from blurfit.schema.schema import Schema
from blurfit.schema.schema import values as encoded_values
from blurfit.theory.gaussian import mu_of
from blurfit.theory.planning import Stage, StageKind, Stages, choose_shares

_agree = lru_cache(maxsize=32, typed=True)(Agreement.propose)

# Differences have no mean to find, and a person's vary little together: one map is enough before
# the last. (Chosen on generated diaries.)
SHARES_OF_DIFFERENCES: tuple[tuple[StageKind, float], ...] = (
    ("joint", 0.06),
    ("residual", 0.14),
    ("residual", 0.8),
)

Table = tuple[AnyArray, tuple[Feature, ...]]  # values, and what each column of them is


@dataclass(kw_only=True, eq=False, repr=False)
class MomentEstimator(PerturbationEstimator):
    """Publishes moments under an agreement, and a model with standard errors."""

    def summary(self, confidence: float = 0.95, *, errors: Errors = "robust") -> Summary:
        """Return one table for people, as text, Markdown or HTML: coefficients in your units,
        errors, n, R² and the promise, and how it was spent.
        """
        found = self._one_model().summary(confidence, errors=errors)
        fits = tally.in_words(self.delta)
        notes = *found.notes, *self._spent_in_words(), *([fits] if fits else [])
        return replace(found, notes=notes)

    def _spent_in_words(self) -> tuple[str, ...]:
        """Say what was spent on what, where there was a choice, and what the other would give."""
        return ()

    def results(self, output: str | None = None, *, errors: Errors = "robust") -> Results:
        """Return what statsmodels gives: `params`, `bse`, `pvalues`, `conf_int()`, `t_test`."""
        return self._one_model().results(output, errors=errors)

    def plot(self, ax: Any = None, *, output: str | None = None, confidence: float = 0.95) -> Any:
        """Draw the coefficients with their intervals, by matplotlib; return the axes."""
        return self._one_model().plot(ax, output=output, confidence=confidence)

    def estimates(
        self, confidence: float = 0.95, output: str | None = None, *, errors: Errors = "robust"
    ) -> list[Estimate]:
        """Return each coefficient: name, value, standard_error (and of it sampling_error and
        privacy_error), lower, upper, p_value. Of several classes, `output` names one.

        They are unbiased; predictions use `coef_`, which is shrunk by what noise leaves uncertain.
        """
        return self._one_model().estimates(confidence, output, errors=errors)

    def estimand(self, X: Any, y: Any, output: str | None = None) -> FloatArray:
        """Compute what `estimates` are of, in rows without noise: for tests and simulations.

        **Not private**: what is returned follows from the rows as they are, without noise, and no
        guarantee or budget covers publishing it. Nothing keeps it.

        It is what the last update would find in any rows, as `PublishedModel.estimand` says.

        Args:
            X: Rows as for `fit`, (n, d).
            y: Their targets or labels, (n,).
            output: A class, of several.

        Returns:
            Coefficients in your units, in the order of `estimates`.
        """
        model, (X, y) = self._one_model(), by_formula(self, X, y)
        values, _, columns = read_rows(self, X, reset=False)
        return model.estimand(records(values, columns), self._answers(y), output)

    def _answers(self, y: Any) -> AnyArray:
        """Return targets as records have them."""
        raise NotImplementedError  # pragma: no cover

    def _one_model(self) -> PublishedModel:
        check_is_fitted(self)
        model: PublishedModel = self.model_
        return model

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and below it what was found."""
        fitted = getattr(self, "model_", None)
        below = "" if fitted is None else fitted.summary().to_html()
        return str(super()._html_repr()) + below

    def _promise(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "neighbours", "local_epsilon", "local_delta")
        return {name: getattr(self, name) for name in names}

    def _spend(self, agreement: Agreement, rows: int, waves: HeldWaves | None = None) -> None:
        """Spend μ, once for all waves, which share it (`blurfit.agreement.plan`)."""
        found = agreement.calibration
        if not self.per_record:
            require_room(agreement, rows)
        mu, releases = (found.mu, 1) if waves is None else (waves.mu, len(waves))
        # Of the thousandth of δ that a release keeps back for discrete noise less than a tenth is
        # used (`blurfit.agreement.numbers`); half of it is counted, once for each.
        kept_back = releases * DISCRETE_SHARE / 2 * self.delta
        what = f"{type(self).__name__} of {rows:,} {'people' if agreement.diaries else 'rows'}"
        self._pay(what, found.model.neighbours, mu=mu, delta=kept_back)

    def _linear(self, X: Any) -> FloatArray:
        """intercept_ + Σ coef_·value, in the user's units, also beyond the bounds."""
        check_is_fitted(self)
        values, _, columns = read_rows(self, by_formula(self, X)[0], reset=False)
        model, schema = self.model_, self.model_.agreement.schema
        if len(model.features) < len(columns) or any(one.of for one in schema.features):
            v = encoded_values(schema, records(values, columns), model.features)
            rows = model.units.rows(v)[:, 1:]
        else:
            rows = design(values, columns)
        return np.asarray(rows @ self.coef_.T + self.intercept_)


def blur_each(
    agreement: Agreement,
    values: AnyArray,
    columns: Sequence[Feature],
    signal: Signal,
    people: People | None = None,
) -> Submissions:
    """Return every row, or every person's mean, as its own contributor would send it; for squares
    that a map takes of some only, the others send noise.
    """
    table = {**records(values, columns), signal.target.name: signal.recorded}
    agreement.verify()
    exact = agreement.exact(table, None if people is None else people.codes)
    wave = agreement.wave
    stride = 1 if wave is None else getattr(wave.chart, "stride", 1)
    if wave is not None and stride > 1:
        others = np.delete(np.arange(len(exact)), one_of_each(len(exact), stride))
        exact[others, wave.form(agreement.schema).of_squares] = 0.0
    return blur(agreement, exact)


def agree(schema: Schema, **terms: Any) -> Agreement:
    """`Agreement.propose`, remembered: it depends on public terms alone, and fits repeat them."""
    try:
        hash(tuple(terms.values()))
    except TypeError:  # weights by name; or a list, say, which is refused by its name
        return Agreement.propose(schema, **terms)
    return _agree(schema, **terms)


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
        return HeldWaves(in_all, stages, given)

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
        count, diaries = counted(values, people)
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
        self.guarantee_ = FitGuarantee.of(model)
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


@dataclass(kw_only=True, eq=False, repr=False)
class MomentPerturbationRegressor(MomentPerturbation, PerturbationRegressor):
    """Linear regression from blurred joint moments: honest errors, and any further model for free.

    A row is one person, unless `fit(X, y, groups=...)` says whose it is. Once fitted, `summary()`
    is the table that a statistician expects, and `moments_` the release, from which other columns,
    formulas and penalties are fitted at no further cost. The model is shrunk by what the noise
    leaves uncertain; where the noise dominates, that is done by sampling, which takes up to a
    second.

    Args:
        epsilon: ε of everything that a fit releases.
        delta: δ of everything that a fit releases.
        bounds: what is publicly known of the features: {"age": (18, 90), "region": ["north",
            "south"]} for a DataFrame, a `Schema`, or (lower, upper), each one number or one for
            each column. Needed: never take them from the data. Values outside are clipped.
        target_bounds: (lower, upper) of the target, public likewise; a `Schema` has its own.
        neighbours: what may change of one person: "replace" their row by any other, or "zero-out".
        local_epsilon: a target for each blurred record too; raises the noise until it is kept.
        local_delta: its δ, to be given with `local_epsilon`.
        family: "linear", or "poisson" for counts from 0 to the target's upper bound, the logarithm
            of whose mean is linear. It takes waves, of which the last is Newton's.
        effects: of the rows that `groups` names people of: "pooled" compares all; "within" each
            person's rows with each other, so that whatever stays the same in a person cancels
            (fixed effects), and predictions are differences from their mean
            (`blurfit.estimators.people`).
        spread: with "within", how much a person's own rows vary at most, as a share of what the
            bounds allow (from one end to the other in turn is 1). People who vary more count less.
            Public, never the data's: 0.5, say, for numbers that nobody moves across their range.
        formula: what predicts y, as in R: "income ~ curve(age) + C(region)*sex", for a DataFrame
            with bounds by name. Curves, polynomials, bands and interactions are derived before
            anything is blurred (`blurfit.schema.formulas`); `fit(people)` finds y in it.
        waves: how many releases, of all rows each, the promise is shared among: each is blurred in
            units that those before it taught. "auto" takes as many as help this model by public
            facts, which may be one. waves=1 spends everything on `moments_`: for many questions.
        sample_weight_bound: the largest `sample_weight` that anybody could have, public like
            bounds: weights are divided by it. Take one wave with weights.
        per_record: blur each row by itself, as its own contributor would. The same distribution,
            for more time.
        random_state: None for noise from the operating system. A seed, or a NumPy generator, is
            for experiments only: a `NotPrivateWarning`, `guarantee_` and the model say so.

    Attributes:
        coef_: what predictions multiply each feature by, in your own units; of a categorical, each
            level but the first.
        intercept_: what they start from.
        model_: the `PublishedModel`: predictions from records, standard errors, files.
        moments_: the first of `releases_`, of all rows with the share of the promise that it had:
            `moments_.fit("income ~ age")`, correlations, files.
        releases_: the `PublishedMoments` of each wave, in their order.
        plan_: the `HeldWaves`: what each wave sent, and its share of μ²; None for one.
        guarantee_: a `FitGuarantee`, in numbers and in words.
        agreement_: the contract that all releases together keep.
        n_features_in_: how many features there were.
        feature_names_in_: what they are called, where X has names.

    >>> generator = np.random.default_rng(0)
    >>> age, hours = generator.uniform(18, 80, 50_000), generator.uniform(0, 60, 50_000)
    >>> income = 100 * age + 500 * hours + generator.normal(0, 2000, 50_000)
    >>> model = MomentPerturbationRegressor(
    ...     epsilon=1.0, bounds=([18, 0], [80, 60]), target_bounds=(0, 100_000)
    ... ).fit(np.column_stack([age, hours]), income)
    >>> bool(abs(model.predict([[40, 40]])[0] - 24_000) < 2_000), model.guarantee_.private
    (True, True)
    """

    family: Literal["linear", "poisson"] = "linear"
    effects: Effects = "pooled"
    spread: float = 1.0

    def _counts(self) -> bool:
        return self.family == "poisson"

    def _answers(self, y: Any) -> AnyArray:
        return np.asarray(real_numbers(y))

    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X and their targets y, of the people that `groups` names, if it does, or
        with the weights in `sample_weight`.
        """
        one_of(("linear", "poisson"), family=self.family)
        one_of(EFFECTS, effects=self.effects)
        if self.effects != "pooled" and (
            groups is None or self.family != "linear" or self.per_record or self.formula is not None
        ):
            raise InvalidValueError(
                "Expected groups, family='linear', no formula and no per_record with "
                f"effects={self.effects!r}: it compares rows of the people whom groups name."
            )
        if not 0.01 <= self.spread <= 1 or (self.spread < 1 and self.effects != "within"):
            raise InvalidValueError(
                f"Expected spread={self.spread!r} from 0.01 to 1, and effects='within' with less."
            )
        if self.effects != "pooled" and sample_weight is not None:
            raise InvalidValueError("Expected effects='pooled' with sample_weight.")
        return self._fit_rows(X, y, groups, sample_weight)

    def predict(self, X: Any) -> FloatArray:
        """Return `X·coef_ + intercept_`, in the target's units, for counts e to that power; within
        the target's bounds, but for differences within people.
        """
        if self.effects == "within":  # bounds are of their root mean square, not of single ones
            return self._linear(X)
        return super().predict(X)

    def _fit(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signal: Signal,
        people: People | None,
    ) -> list[PublishedModel]:
        if people is None or self.effects == "pooled":
            return super()._fit(values, columns, signal, people)
        target = signal.target
        assert isinstance(target, Numeric)
        values, columns, target, answers, people = demean_by_person(
            people, values, columns, target, signal.answers, self.spread
        )
        signal = Signal(target, answers, people.reach)
        return super()._fit(values, columns, signal, people)


@dataclass(kw_only=True, eq=False, repr=False)
class MomentPerturbationClassifier(MomentPerturbation, PerturbationClassifier):
    """Classification from blurred joint moments: all classes from one release.

    A row is one person, unless `fit(X, y, groups=...)` says whose it is. Two classes are one column
    of ±1, more are one-hot: one release holds all of them, and no budget is divided. In waves two
    classes are learned by logistic regression; else by least squares, read on a logistic curve.
    Once fitted, `summary()` is the table that a statistician expects, and `moments_` the release,
    from which other columns and formulas are fitted at no further cost. The model is shrunk by what
    the noise leaves uncertain; where the noise dominates, that is done by sampling, which takes up
    to a second for each class.

    Args:
        epsilon: ε of everything that a fit releases.
        delta: δ of everything that a fit releases.
        bounds: what is publicly known of the features: {"age": (18, 90), "region": ["north",
            "south"]} for a DataFrame, a `Schema`, or (lower, upper), each one number or one for
            each column. Needed: never take them from the data. Values outside are clipped.
        classes: all labels that there could be, which are public; not every one need occur in y,
            and any other is refused. A `Schema` has its own. None reads them from y, which is not
            private: `classes_` gives away a person whose label nobody else has. A
            `NotPrivateWarning`, `guarantee_` and the model say so.
        neighbours: what may change of one person: "replace" their row by any other, or "zero-out".
        local_epsilon: a target for each blurred record too; raises the noise until it is kept.
        local_delta: its δ, to be given with `local_epsilon`.
        formula: what predicts y, as in R: "member ~ curve(age) + C(region)*sex", for a DataFrame
            with bounds by name: see `MomentPerturbationRegressor`.
        waves: how many releases, of all rows each, the promise is shared among: each is blurred in
            units that those before it taught. "auto" takes as many as help this model by public
            facts. waves=1 spends everything on `moments_`: for many questions. More than two
            classes take one.
        sample_weight_bound: the largest `sample_weight` that anybody could have, public like
            bounds: weights are divided by it. Take one wave with weights.
        per_record: blur each row by itself, as its own contributor would. The same distribution,
            for more time.
        random_state: None for noise from the operating system. A seed, or a NumPy generator, is
            for experiments only: a `NotPrivateWarning`, `guarantee_` and the model say so.

    Attributes:
        classes_: the labels, in order.
        coef_: (1, d) for two classes, of a score whose sign decides: the log-odds of `classes_[1]`,
            or E[±1] where its share alone is told. (k, d) for more, of the probability of each.
        intercept_: (1,) or (k,), likewise.
        model_: the `PublishedModel`: predictions from records, standard errors, files.
        moments_: the first of `releases_`, of all rows with the share of the promise that it had:
            further models, correlations, files.
        releases_: the `PublishedMoments` of each wave, in their order.
        plan_: the `HeldWaves`: what each wave sent, and its share of μ²; None for one.
        guarantee_: a `FitGuarantee`, in numbers and in words.
        agreement_: the contract that all releases together keep.
        n_features_in_: how many features there were.
        feature_names_in_: what they are called, where X has names.

    >>> generator = np.random.default_rng(0)
    >>> age = generator.uniform(18, 80, (50_000, 1))
    >>> retired = np.where(age[:, 0] + generator.normal(0, 5, 50_000) > 64, "yes", "no")
    >>> model = MomentPerturbationClassifier(
    ...     epsilon=1.0, bounds=(18, 80), classes=["no", "yes"]
    ... ).fit(age, retired)
    >>> model.predict([[20], [80]]).tolist()
    ['no', 'yes']
    """

    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, of the people that `groups` names, if it does, or
        with the weights in `sample_weight`.
        """
        return self._fit_rows(X, y, groups, sample_weight)

    def _answers(self, y: Any) -> AnyArray:
        codes, aim = codes_of(np.asarray(y), self.classes_), self._one_model().aim
        return words(codes, aim.levels) if isinstance(aim, Categorical) else codes == 1

    def _of_many(self, name: str, classes: AnyArray, codes: AnyArray) -> list[Signal]:
        levels = [str(label) or "(empty)" for label in classes]
        return [Signal(Categorical(name, levels), codes)]
