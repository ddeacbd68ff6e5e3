"""Classification, learned from blurred sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]

from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InvalidValueError
from blurfit.estimators.base import CLASSES_READ, PerturbationEstimator, Signal, free_name
from blurfit.estimators.mechanisms import MomentPerturbation
from blurfit.estimators.rows import (
    by_formula,
    read_rows,
    refuse_unless_binary,
    without_answers,
    without_values,
)
from blurfit.schema.columns import Binary, Categorical
from blurfit.schema.schema import Schema


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

    def _of_many(self, name: str, classes: AnyArray, codes: AnyArray) -> list[Signal]:
        levels = [str(label) or "(empty)" for label in classes]
        return [Signal(Categorical(name, levels), codes)]
