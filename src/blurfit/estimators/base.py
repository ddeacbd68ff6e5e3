"""What all estimators share: the guarantee of a fit, regression and classification.

    X, y ─ bounds ─► v ─ one pass ─► Σ ─ exact noise ─► Σ̃ ─ learn ─► model_, coef_, intercept_

Only sums leave, so the noise of all records is drawn at once, exactly (`passes.blurred`).
`per_record=True` blurs each row as its own contributor would; what is released has the same
distribution. Estimators of joint moments: `blurfit.estimators.moments`.
"""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
)
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]

from blurfit.agreement.statement import weak_terms
from blurfit.budget import Expense, open_in, refuse_elsewhere, spend
from blurfit.data import AnyArray, FloatArray
from blurfit.errors import (
    AdviceWarning,
    InvalidValueError,
    NotPrivateWarning,
    inside_unit_interval,
    positive,
)
from blurfit.estimators.people import People
from blurfit.estimators.rows import (
    bounded_columns,
    by_formula,
    read_rows,
    real_numbers,
    refuse_outside,
    refuse_unless_binary,
    warn_if_repeated,
    without_answers,
    without_values,
    words,
)
from blurfit.model.model import PublishedModel, predicted
from blurfit.model.release import PublishedMoments
from blurfit.model.summary import crowded_in_words
from blurfit.schema.columns import Binary, Categorical, Feature, Numeric, Question
from blurfit.schema.formulas import target_of
from blurfit.schema.schema import Schema
from blurfit.simulation import generator_for
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

SEARCHED = (
    "cross_val_score, GridSearchCV and the like fit the same rows many times, and every fit is a "
    "release of its own, so that what they cost adds up: count it with blurfit.Budget, and "
    "error_score='raise'."
)

_ONE_PERSON: dict[Neighbours, str] = {
    "replace": "replacing {what} by any other{s}",
    "zero-out": "leaving {what} out of the sums",
}


SAMPLE_WEIGHT = "(sample weight)"  # the column of an agreement with weights

_SENT_FROM = "_sent_from"  # the process whose open budget an estimator has left


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
    def of(cls, model: PublishedModel | PublishedMoments) -> "FitGuarantee":
        """Return the promise of what a fit published: its model, or one of its releases."""
        promise = model.guarantee
        told = " ".join(promise.caveats or _sentences(model))
        numbers = promise.epsilon, promise.delta
        return cls(*numbers, promise.neighbours, promise.private, told)


def _sentences(model: PublishedModel | PublishedMoments) -> list[str]:
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
    (fit, releases), wave = model.origin, model.agreement.wave
    if wave is not None:
        sentences.append(
            f"This is release {wave.number} of {releases} of the fit {fit}: a "
            f"{'person' if diaries else 'row'} can be in each of them, and together they keep what "
            "that fit promises, which is weaker."
        )
    elif releases > 1:
        sentences.append(
            f"A {'person' if diaries else 'row'} can be in each of the {releases} releases of this "
            f"fit, {fit}, which share what is spent: the promise holds for all of `releases_` "
            "together, and each of them by itself keeps more."
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
        self._admit(values, columns, people)
        for signal in signals:
            refuse_outside(signal.answers, signal.target)
        if self.random_state is not None:
            caveats = [SEEDED, *caveats]
        models = self._learn(values, columns, signals, tuple(caveats), people)
        self.model_: Any = models if len(models) > 1 else models[0]
        for caveat in caveats:
            warn_caller(caveat)
        for model in models:
            if getattr(model, "crowded", None):
                warn_caller(crowded_in_words(model), AdviceWarning)
        return models

    def _admit(self, values: AnyArray, columns: tuple[Feature, ...], people: People | None) -> None:
        """Refuse, before anything is spent, a fit where no budget hears of it, values that the
        schema refuses, and a seed for contributors.
        """
        refuse_elsewhere(getattr(self, _SENT_FROM, None))
        positive(epsilon=self.epsilon)
        inside_unit_interval(delta=self.delta)
        count, diaries = counted(values, people)
        called = f"the number of {'people' if diaries else 'rows'}"
        for weakness in weak_terms(self.epsilon, self.delta, count, called):
            warn_caller(weakness, AdviceWarning)
        warn_of_searches()
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


def free_name(given: object, taken: Sequence[str]) -> str:
    """Return the given name, or else "target", with underscores until no feature has that name."""
    name = given if isinstance(given, str) and given else "target"
    while name in taken:
        name += "_"
    return name


def warn_caller(caveat: str, kind: type[Warning] = NotPrivateWarning) -> None:
    """Warn where `fit` was called, however many functions of this room lie in between."""
    frame, level, room = sys._getframe(1), 2, __name__.rpartition(".")[0]
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(room):
        frame, level = frame.f_back, level + 1
    warnings.warn(caveat, kind, stacklevel=level)


def warn_of_searches() -> None:
    """Warn, once for each line that calls it, of what fits the same rows again and again: functions
    and classes of scikit-learn's `model_selection`. Not within a `Budget`, which counts.
    """
    frame, search = sys._getframe(1).f_back, False
    while frame is not None and frame.f_back is not None:
        module = str(frame.f_globals.get("__name__"))
        search |= module.startswith("sklearn.model_selection.")
        if search and module.partition(".")[0] not in ("blurfit", "sklearn", "joblib"):
            break
        frame = frame.f_back
    if not search or frame is None or open_in() is not None:
        return
    line = frame.f_code.co_filename, frame.f_lineno
    if line not in _searches:
        _searches.add(line)
        warnings.warn_explicit(SEARCHED, AdviceWarning, *line)


_searches: set[tuple[str, int]] = set()  # the lines that were warned of


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
        with np.errstate(all="ignore"):  # whatever the caller chose: no value raises or warns
            return self._fit_table(X, y, groups, sample_weight)

    def _fit_table(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Self:
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
class PerturbationClassifier(ClassifierMixin, PerturbationEstimator):  # type: ignore[misc]
    """What both classifiers do."""

    classes: Any = None

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn from rows X and their labels y; features outside the bounds are clipped.

        `groups` names the person of each row, where a person may have several: the promise is then
        to the person (`blurfit.estimators.people`).
        """
        return self._fit_rows(X, y, groups)

    def _fit_rows(self, X: Any, y: Any, groups: Any, sample_weight: Any = None) -> Self:
        with np.errstate(all="ignore"):  # whatever the caller chose: no value raises or warns
            return self._fit_table(X, y, groups, sample_weight)

    def _fit_table(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Self:
        X, y = by_formula(self, X, y)
        values, labels, columns = read_rows(
            self, X, y, reset=True, ensure_min_samples=self.least_rows
        )
        assert labels is not None
        refuse_unless_binary(values, columns)
        if labels.dtype != np.bool_:  # of which there are two at most
            with without_values(X, self.bounds):
                check_classification_targets(labels)
        public = self._public_classes()
        classes = public_classes(labels if public is None else public)
        caveats = [CLASSES_READ] if public is None else []
        name = self._label_name(y, [column.name for column in columns])
        codes = codes_of(labels, classes)
        if len(classes) == 2:
            signals = [Signal(label_of(name, classes[1]), codes == 1)]
        else:
            signals = self._of_many(name, classes, codes)
        values, columns = self._weighed(values, columns, sample_weight, groups)
        people = self._people(X, y, groups, len(values))
        models = self._publish(values, columns, signals, caveats, people)
        self.classes_ = classes
        found = [
            (model, model.coefficients_of(output)) for model in models for output in model.outputs
        ]
        self.coef_ = np.array([list(one.effects.values()) for _, one in found])
        self.intercept_ = np.array([one.intercept for _, one in found])
        if models[0].is_label and models[0].link == "linear":  # from a probability to E[±1]
            self.coef_, self.intercept_ = 2 * self.coef_, 2 * self.intercept_ - 1
        if models[0].curve is not None:
            shift, factor = models[0].curve
            self.coef_, self.intercept_ = factor * self.coef_, shift + factor * self.intercept_
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """X·coef_ᵀ + intercept_: its sign decides between two classes, the largest between more."""
        scores = self._linear(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of labels that are predicted right, as scikit-learn computes it."""
        self.predict(X)  # is refused in words of its own
        with without_answers():
            return float(super().score(X, y, sample_weight))

    def predict(self, X: Any) -> AnyArray:
        """Return the label of the largest score."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: Any) -> FloatArray:
        """P(class) for each class, as `PublishedModel.predict_proba` tells it.

        In waves, and of two classes by moments, it is the logistic curve of the
        score. Otherwise the score of one class against the rest is the least-squares reading of
        E[±1], so it is (score + 1)/2; and where one model has several classes, it is the score
        itself. Two classes are cut to [0, 1], more are cut at 0 and divided by their sum.
        """
        scores = self.decision_function(X)
        first = self.model_[0] if isinstance(self.model_, list) else self.model_
        if first.link == "logistic" or first.curve is not None:
            shares = 0.5 * (1 + np.tanh(scores / 2))
        else:
            shares = (scores + 1) / 2 if first.is_label else scores
        if shares.ndim == 1:
            likely = np.clip(shares, 0.0, 1.0)
            return np.column_stack([1 - likely, likely])
        positive = np.maximum(shares, 1e-12)
        return np.asarray(positive / positive.sum(axis=1, keepdims=True))

    def _public_classes(self) -> Any:
        """Return the classes that the user or the schema states; None if neither does."""
        if not isinstance(self.bounds, Schema):
            return self.classes
        target = self.bounds.target
        if not isinstance(target, Binary | Categorical) or self.classes is not None:
            raise InvalidValueError(
                f"Expected the schema's target {target.name!r} to be a Binary or Categorical "
                "column, and no classes=[...]: a classifier predicts a label, and the schema "
                "states its classes."
            )
        return [False, True] if isinstance(target, Binary) else list(target.levels)

    def _label_name(self, y: Any, taken: Sequence[str]) -> str:
        if isinstance(self.bounds, Schema):
            return self.bounds.target.name
        return free_name(self._target_name(y), taken)

    def _of_many(self, name: str, classes: AnyArray, codes: AnyArray) -> list[Signal]:
        """Return what is learned where there are more than two classes."""
        raise NotImplementedError  # pragma: no cover

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # where rows are few, the noise dominates
        return tags


def label_of(name: str, wanted: Any) -> Binary:
    """Return a yes or no: the target's own name for True and 1, else "name=class"."""
    return Binary(name if wanted in (True, 1) else f"{name}={wanted}")


def public_classes(labels: Any) -> AnyArray:
    """Return different labels in order, at least two; messages tell none: they may be of y."""
    try:
        classes = np.unique(np.asarray(labels))
    except (TypeError, ValueError):
        raise InvalidValueError(
            "Expected classes to be labels of one kind, such as ['no', 'yes']."
        ) from None
    if len(classes) < 2:
        raise InvalidValueError(
            "Expected at least two classes, and got one class only: there is nothing to tell "
            "apart. classes=[...] may include labels that do not occur in y."
        )
    return classes


def codes_of(labels: AnyArray, classes: AnyArray) -> AnyArray:
    """Return the place of each label among the classes; the message about another does not tell it.

    >>> codes_of(np.array(["b", "a", "b"]), np.array(["a", "b", "c"])).tolist()
    [1, 0, 1]
    """
    try:
        places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        known = bool(np.all(classes[places] == labels))
    except TypeError:  # words and numbers are not ordered
        known = False
    if not known:
        raise InvalidValueError(
            f"Expected every label in y to be one of classes={classes.tolist()!r}, and some are "
            "not. Add them to classes if they could have been known beforehand, or map them to a "
            "class that could. To leave rows out would let their number depend on answers."
        )
    return places


def counted(values: AnyArray, people: People | None) -> tuple[int, bool]:
    """Return how many the promise is to, and whether they may have several rows each."""
    return (len(values), False) if people is None else (people.count, True)
