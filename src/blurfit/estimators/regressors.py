"""Linear regression, and counts, learned from blurred sums."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin  # type: ignore[import-untyped]

from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InvalidValueError, one_of
from blurfit.estimators.base import PerturbationEstimator, Signal, free_name
from blurfit.estimators.mechanisms import MomentPerturbation
from blurfit.estimators.people import EFFECTS, Effects, People, demean_by_person
from blurfit.estimators.rows import (
    bounded_columns,
    by_formula,
    read_rows,
    refuse_unless_binary,
    without_answers,
)
from blurfit.model.model import PublishedModel, predicted
from blurfit.schema.columns import Feature, Numeric
from blurfit.schema.schema import Schema


@dataclass(kw_only=True, eq=False, repr=False)
class PerturbationRegressor(RegressorMixin, PerturbationEstimator):  # type: ignore[misc]
    """What both regressors do."""

    target_bounds: Any = None

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn from rows X and their targets y; what lies outside the bounds is clipped.

        `groups` names the person of each row, where a person may have several: the promise is then
        to the person (`blurfit.estimators.people`).
        """
        return self._fit_rows(X, y, groups)

    def _fit_rows(self, X: Any, y: Any, groups: Any, sample_weight: Any = None) -> Self:
        X, y = by_formula(self, X, y)
        values, target, columns = read_rows(
            self, X, y, reset=True, y_numeric=True, ensure_min_samples=self.least_rows
        )
        assert target is not None
        refuse_unless_binary(values, columns)
        column = self._target_column(y, [column.name for column in columns])
        values, columns = self._weighed(values, columns, sample_weight, groups)
        people = self._people(X, y, groups, len(values))
        (model,) = self._fit(values, columns, Signal(column, target), people)
        self.coef_ = np.array(list(model.coefficients.effects.values()))
        self.intercept_ = model.coefficients.intercept
        return self

    def _fit(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signal: Signal,
        people: People | None,
    ) -> list[PublishedModel]:
        return self._publish(values, columns, [signal], people=people)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, as scikit-learn computes it."""
        self.predict(X)  # is refused in words of its own
        with without_answers():
            return float(super().score(X, y, sample_weight))

    def predict(self, X: Any) -> FloatArray:
        """Return `X·coef_ + intercept_`, in the target's units, for counts e to that power; within
        the target's bounds.
        """
        found, model = self._linear(X), self.model_
        if model.link == "log":
            return np.asarray(predicted(model.aim, "log", found))
        assert isinstance(model.aim, Numeric)
        return np.clip(found, model.aim.lower, model.aim.upper)

    def _target_column(self, y: Any, taken: list[str]) -> Numeric:
        if not isinstance(self.bounds, Schema):
            name = free_name(self._target_name(y), taken)
            (column,) = bounded_columns("target_bounds", self.target_bounds, [name])
            return column
        target = self.bounds.target
        if not isinstance(target, Numeric) or self.target_bounds is not None:
            raise InvalidValueError(
                f"Expected the schema's target {target.name!r} to be a Numeric column, and no "
                "target_bounds: a regressor predicts a number, and the schema states its bounds."
            )
        return target

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # where rows are few, the noise dominates
        return tags


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
