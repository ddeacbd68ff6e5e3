"""The base of the four estimators, and what a fit promises.

**The promise.** What a fit promises, and when it is void.

**The fit.** What the four estimators share: rows → agreement → blurred sums → published models.

    X, y ─ bounds ─► v ─ one pass ─► Σ ─ exact noise ─► Σ̃ ─ learn ─► model_, coef_, intercept_

Only sums leave, so nobody needs the blurred records themselves: the noise of all of them is drawn
at once, exactly (`blurred`). `per_record=True` goes the long way round and blurs each row as its
own contributor would; what is released has the same distribution.
"""

import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from blurfit import randomness as noise
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import DISCRETE_SHARE
from blurfit.agreement.plan import HeldWaves
from blurfit.budget import Expense, open_in, refuse_elsewhere, spend
from blurfit.contributor.blur import blur
from blurfit.data import AnyArray, FloatArray
from blurfit.errors import (
    InfeasibleError,
    InvalidValueError,
    NotPrivateWarning,
    positive,
)
from blurfit.estimators.people import People, one_of_each
from blurfit.estimators.rows import (
    by_formula,
    design,
    read_rows,
    real_numbers,
    records,
    refuse_outside,
    warn_if_repeated,
    words,
)
from blurfit.learning.inference import Errors, Estimate
from blurfit.learning.sums import Totals
from blurfit.messages.submissions import Submissions
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.model.summary import Results, Summary
from blurfit.schema.columns import Categorical, Feature, Numeric, Question
from blurfit.schema.formulas import target_of
from blurfit.schema.schema import Schema
from blurfit.schema.schema import values as encoded_values
from blurfit.simulation import generator_for, sampler_for
from blurfit.theory.moments import Neighbours, at_most

# Why a fit is not private: said in a warning, in the guarantee and in the model.
SEEDED = (
    "NOT PRIVATE: the noise was drawn from random_state, and anyone who knows the seed can take it "
    "away again. For experiments only; use random_state=None for real people."
)
CLASSES_READ = (
    "NOT PRIVATE: the classes were read from y, so that a single row can add one or take one away. "
    "Give all labels that there could be as classes=[...]."
)

_ONE_PERSON: dict[Neighbours, str] = {
    "replace": "replacing {what} by any other{s}",
    "zero-out": "leaving {what} out of the sums",
}


@dataclass(frozen=True)
class FitGuarantee:
    """(ε, δ)-differential privacy of all that `fit` learned; `statement` says it in words.

    `private` is False where nothing is promised, and then `epsilon` and `delta` are None: the fit
    can be repeated from a seed, the classes were read from the data, or the rule that the noise
    follows is not proved.
    """

    epsilon: float | None
    delta: float | None
    neighbours: Neighbours
    private: bool
    statement: str

    @classmethod
    def of(cls, model: PublishedModel | PublishedMoments, releases: int = 1) -> "FitGuarantee":
        """Return the promise of one fit: `model` is what it published, or one of several models,
        after so many releases.
        """
        promise = model.guarantee
        told = " ".join(promise.caveats or _sentences(model, releases))
        numbers = promise.epsilon, promise.delta
        return cls(*numbers, promise.neighbours, promise.private, told)


def _sentences(model: PublishedModel | PublishedMoments, releases: int) -> list[str]:
    """Say what is promised of a fit, and what is assumed."""
    promise, diaries = model.guarantee, model.agreement.diaries
    assert promise.epsilon is not None and promise.delta is not None  # noqa: PT018 - it is private
    sentences = promise_in_words(
        "The blurred sums and the coefficients",
        promise.epsilon,
        promise.delta,
        promise.neighbours,
        model.count,
        promise.seen,
        diaries=diaries,
    )
    if releases > 1:
        sentences.append(
            f"A {'person' if diaries else 'row'} can be in each of the {releases} releases, which "
            "share what is spent: the promise holds for all of `releases_` together, and each of "
            "them by itself keeps more."
        )
    sentences.append("Further models of `moments_` are free.")
    return sentences


def promise_in_words(
    what: str,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    count: int,
    seen: str,
    *,
    diaries: bool = False,
) -> list[str]:
    """Say what is promised of what a fit to so many rows published, and what is assumed."""
    changed = _ONE_PERSON[neighbours].format(
        what="all rows of one person" if diaries else "one row", s="s" if diaries else ""
    )
    who = "people, each with any number of rows" if diaries else "rows, each another person's"
    return [
        f"{what} are (epsilon={at_most(epsilon, 6)}, delta={at_most(delta, 6)})-differentially "
        f"private: {changed} changes the probability of anything that is "
        "made of them by a factor of at most e^epsilon, up to delta.",
        f"This is for one fit to {count} {who}; fitting again reveals more. Bounds, column "
        f"names, levels, classes and the number of {'people' if diaries else 'rows'} are taken "
        "to be public. The promise is for rows that fit accepts; that it refused some (a "
        "missing value, an unknown label) is not covered.",
        seen,
    ]


SAMPLE_WEIGHT = "(sample weight)"  # the column of an agreement with weights
_SENT_FROM = "_sent_from"  # the process whose open budget an estimator has left


class Signal(NamedTuple):
    """What is learned: a target, and its answer in each row; of classes, their places."""

    target: Question
    answers: AnyArray
    reach: float = 1.0

    @property
    def encoded(self) -> FloatArray:
        """A column in [−1, 1], of ±1, or one for each class: (n, m). Differences within a person
        may reach further (`blurfit.estimators.people`).
        """
        if isinstance(self.target, Categorical):
            return np.eye(len(self.target.levels))[self.answers]
        if self.answers.dtype == np.bool_:
            return np.where(self.answers, 1.0, -1.0)[:, None]
        if self.reach > 1 and isinstance(self.target, Numeric):
            v = (self.answers - self.target.centre) * (2 / self.target.width)
            return np.clip(v, -self.reach, self.reach)[:, None]
        return self.target.scale(self.answers)[:, None]

    @property
    def recorded(self) -> AnyArray:
        """As a record has it: a class by its word."""
        if isinstance(self.target, Categorical):
            return words(self.answers, self.target.levels)
        return self.answers


@dataclass(kw_only=True, eq=False, repr=False)
class PerturbationEstimator(BaseEstimator):  # type: ignore[misc]
    """Steps that all estimators have in common; each documents its own parameters."""

    least_rows: ClassVar[int] = 1

    epsilon: float = 1.0
    delta: float = 1e-6
    bounds: Any = None
    neighbours: Neighbours = "replace"
    local_epsilon: float | None = None
    local_delta: float | None = None
    per_record: bool = False
    random_state: Any = None

    def _learn(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signals: Sequence[Signal],
        caveats: tuple[str, ...],
        people: People | None,
    ) -> list[Any]:
        """Spend, blur, publish: one model, or one for each signal. Set `guarantee_`."""
        raise NotImplementedError  # pragma: no cover

    # ---- budgets: an estimator that leaves an open one for another process must not fit there

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if (process := open_in()) is not None:
            state[_SENT_FROM] = process
        return state

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        if (process := getattr(self, _SENT_FROM, None)) is not None:
            setattr(copy, _SENT_FROM, process)
        return copy

    # ---- steps

    def _publish(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signals: Sequence[Signal],
        caveats: Sequence[str] = (),
        people: People | None = None,
    ) -> list[Any]:
        """Return models of all signals, together within the promise.

        `caveats` are the reasons for which the promise does not hold, where there are any;
        `people` say whose row is whose, where each person may have several.
        """
        self._admit(values, columns)
        for signal in signals:
            refuse_outside(signal.answers, signal.target)
        if self.random_state is not None:
            caveats = [SEEDED, *caveats]
        models = self._learn(values, columns, signals, tuple(caveats), people)
        self.model_: Any = models if len(models) > 1 else models[0]
        for caveat in caveats:
            warn_caller(caveat)
        return models

    def _admit(self, values: AnyArray, columns: tuple[Feature, ...]) -> None:
        """Refuse, before anything is spent, a fit where no budget hears of it, values that the
        schema refuses, and a seed for contributors.
        """
        refuse_elsewhere(getattr(self, _SENT_FROM, None))
        for place, column in enumerate(columns):
            refuse_outside(values[:, place], column)
        if self.per_record and self.random_state is not None:
            raise InvalidValueError(
                f"Expected random_state={self.random_state!r} to be None with per_record=True: "
                "contributors take no seed. Leave per_record=False for experiments."
            )

    def _target_name(self, y: Any) -> Any:
        """Return what the target is called, if anybody says."""
        text = getattr(self, "formula", None)
        return getattr(y, "name", None) if text is None else target_of(text)

    def _people(self, X: Any, y: Any, groups: Any, rows: int) -> People | None:
        """Return whose row is whose; None, and perhaps a warning, where nothing is said."""
        if groups is not None:
            return People.of(groups, rows)
        warn_if_repeated(X, y)
        return None

    def _weighed(
        self, values: AnyArray, columns: tuple[Feature, ...], sample_weight: Any, groups: Any
    ) -> tuple[AnyArray, tuple[Feature, ...]]:
        """Return the rows with their weights as one more column, where there are weights."""
        if sample_weight is None:
            return values, columns
        bound = getattr(self, "sample_weight_bound", None)
        if bound is None or groups is not None:
            raise InvalidValueError(
                "Expected sample_weight_bound with sample_weight, and no groups: the bound is the "
                "largest weight that anybody could have, known beforehand, and never the largest "
                "one in the data."
            )
        positive(sample_weight_bound=bound)
        if SAMPLE_WEIGHT in {column.name for column in columns}:
            raise InvalidValueError(f"Expected no column that is called {SAMPLE_WEIGHT!r}.")
        try:
            weights = real_numbers(sample_weight).astype(np.float64)
        except (OverflowError, TypeError, ValueError):
            weights = np.empty(0)
        fits = weights.shape == (len(values),)
        if not fits or not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InvalidValueError(
                f"Expected a sample_weight for each of the {len(values)} rows, finite and at "
                "least 0."
            )
        column = Numeric(SAMPLE_WEIGHT, 0, float(bound))
        return np.column_stack([values, weights]), (*columns, column)

    def _pay(self, what: str, neighbours: Neighbours, **cost: float) -> None:
        """Spend, and forget what an earlier fit found: should this one fail from now on, an earlier
        promise must not stand beside what was spent since.
        """
        spend(Expense(what, **cost), neighbours)
        for name in [one for one in vars(self) if one.endswith("_") and not one.endswith("_in_")]:
            delattr(self, name)

    def _seeded(self) -> Any:
        """Return None for noise from the operating system, else one generator for all draws of a
        fit.
        """
        return None if self.random_state is None else generator_for(self.random_state)

    def _linear(self, X: Any) -> FloatArray:
        """Return intercept_ + Σ coef_·value, in the user's units, also beyond the bounds."""
        raise NotImplementedError  # pragma: no cover


@dataclass(kw_only=True, eq=False, repr=False)
class MomentEstimator(PerturbationEstimator):
    """Publishes moments under an agreement, and a model with standard errors."""

    def summary(self, confidence: float = 0.95, *, errors: Errors = "robust") -> Summary:
        """Return one table for people, as text, Markdown or HTML: coefficients in your units,
        errors, n, R² and the promise, and how it was spent.
        """
        found = self._one_model().summary(confidence, errors=errors)
        return replace(found, notes=(*found.notes, *self._spent_in_words()))

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


def blurred(agreement: Agreement, clean: Totals, random_state: Any) -> Totals:
    """Return the sums with the noise of as many contributors as the quorum, drawn at once.

    For people: exact discrete Gaussian noise on the agreement's grid, as each of them would have
    drawn it, for all together. Rounding the sums to the grid moves two neighbours apart by no more
    than rounding the records would. For experiments (a seed): the sampler's own draw.
    """
    if random_state is not None:
        return sampler_for(agreement, clean).draw(generator_for(random_state))
    (part,) = agreement.parts
    deviations = part.deviations * math.sqrt(clean.count)
    sums = exactly(clean.sums, deviations, part.step)
    return Totals(clean.count, sums, clean.fingerprint)


def require_room(agreement: Agreement, rows: int) -> None:
    """Refuse a fit to so many rows that their sums could leave the range of exact noise.

    From public facts alone: whether that happens must not depend on the rows. A number that counts
    c times in the squared norm is at most bound/√c, and the sum of n at most n times that.
    """
    (part,) = agreement.parts
    if rows * part.bound / math.sqrt(part.counts.min()) >= noise.MOST_STEPS / 2 * part.step:
        raise InfeasibleError(
            f"Expected fewer than {rows:,} rows with epsilon={agreement.epsilon:g}: their sums "
            "could exceed 2**51 steps of the noise, beyond which it is not exact. Take a smaller "
            "epsilon, or per_record=True."
        )


def exactly(sums: FloatArray, scale: npt.ArrayLike, step: float) -> FloatArray:
    """Return sums to the grid, and exact noise on it."""
    return noise.add(noise.to_grid(sums, step, toward_zero=False), scale, step)


def agree(schema: Schema, **terms: Any) -> Agreement:
    """`Agreement.propose`, remembered: it depends on public terms alone, and fits repeat them."""
    try:
        hash(tuple(terms.values()))
    except TypeError:  # weights by name; or a list, say, which is refused by its name
        return Agreement.propose(schema, **terms)
    return _agree(schema, **terms)


_agree = lru_cache(maxsize=32, typed=True)(Agreement.propose)


def free_name(given: object, taken: Sequence[str]) -> str:
    """Return the given name, or else "target", with underscores until no feature has that name."""
    name = given if isinstance(given, str) and given else "target"
    while name in taken:
        name += "_"
    return name


def warn_caller(caveat: str) -> None:
    """Warn where `fit` was called, however many functions of this room lie in between."""
    frame, level, room = sys._getframe(1), 2, __name__.rpartition(".")[0]
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(room):
        frame, level = frame.f_back, level + 1
    warnings.warn(caveat, NotPrivateWarning, stacklevel=level)
