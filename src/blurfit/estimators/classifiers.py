"""Classification by either mechanism: logistic loss by a parabola, learned from blurred sums."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    check_is_fitted,
    validate_data,
)

from blurfit.errors import InvalidValueError
from blurfit.estimators.base import (
    InputPerturbation,
    MomentPerturbation,
    PerturbationEstimator,
    Signal,
    free_name,
)
from blurfit.estimators.guarantee import CLASSES_READ
from blurfit.schema.schema import Binary, Numeric

AnyArray = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class PerturbationClassifier(ClassifierMixin, PerturbationEstimator):  # type: ignore[misc]
    """What both classifiers do.

    Two classes take one model. More take one for each, against the rest, and share the promise:
    see `blurfit.estimators.guarantee.share`, and `guarantee_`, which says so.

    Args:
        classes: all labels that there could be, which are public; not every one need occur in y,
            and any other is refused. None reads them from y, which is not private: whoever alone
            has a label gives herself away by `classes_`. A `NotPrivateWarning`, `guarantee_` and
            the model say so.

    Attributes:
        classes_: the labels, in order.
        coef_, intercept_: of the log-odds of `classes_[1]`, (1, d) and (1,), or of each class
            against the rest, (k, d) and (k,).
    """

    classes: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X and their labels y; features outside of the bounds are clipped."""
        values, labels = validate_data(
            self, X, y, dtype="numeric", ensure_min_samples=self.least_rows
        )
        check_classification_targets(labels)
        classes = public_classes(labels if self.classes is None else self.classes)
        caveats = [CLASSES_READ] if self.classes is None else []
        columns = self._feature_columns()
        signals = self._signals(y, columns, classes, codes_of(labels, classes))
        models = self._publish(values, columns, signals, caveats)
        self.classes_ = classes
        self._curvature = models[0].agreement.loss.q_bound ** 2  # R_q = √c
        self.coef_ = np.array([list(model.coefficients.effects.values()) for model in models])
        self.intercept_ = np.array([model.coefficients.intercept for model in models])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """X·coef_ᵀ + intercept_: the log-odds of `classes_[1]`, or of each class against the
        rest.
        """
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype="numeric")
        scores = np.asarray(values @ self.coef_.T + self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> AnyArray:
        """The label of the largest score."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: Any) -> FloatArray:
        """½ + c·score for each class, moved to the nearest probabilities that sum to 1.

        c is the parabola's curvature, ¼: the score is least squares in disguise, so its
        probability is linear (see `PublishedModel.predict_proba`). Of two classes the two sum to 1
        already, and the nearest is cutting to [0, 1]. Of more they need not. True probabilities
        lie in the simplex, which is convex, so the nearest point of it is never further from them
        than the estimates were; and the order of the classes is kept.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        return onto_simplex(0.5 + self._curvature * scores)

    def _signals(
        self, y: Any, columns: tuple[Numeric, ...], classes: AnyArray, codes: AnyArray
    ) -> list[Signal]:
        taken = [column.name for column in columns]
        name = free_name(getattr(y, "name", None), taken)
        wanted = [1] if len(classes) == 2 else range(len(classes))
        return [
            (Binary(free_name(f"{name}={classes[code]}", taken)), codes == code) for code in wanted
        ]


def public_classes(labels: Any) -> AnyArray:
    """Different labels in order, at least two of them."""
    try:
        classes = np.unique(np.asarray(labels))
    except TypeError as error:
        raise InvalidValueError(
            f"Expected classes={labels!r} to be labels of one kind, such as ['no', 'yes']."
        ) from error
    if len(classes) < 2:
        raise InvalidValueError(
            f"Expected at least two classes, and got one class only, {classes.tolist()!r}: there "
            "is nothing to tell apart. Labels that nobody has may be among classes=[...]."
        )
    return classes


def codes_of(labels: AnyArray, classes: AnyArray) -> AnyArray:
    """The place of each label among the classes; the message about another does not tell it.

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
            "not. Add them to classes if they could have been known beforehand, or leave their "
            "rows out."
        )
    return places


def onto_simplex(points: FloatArray) -> FloatArray:
    """The nearest p to each row v with p ≥ 0 and Σp = 1: (v − θ)₊, one θ that makes the sum 1.

    If the k largest stay above zero, θ = (their sum − 1)/k; the right k is the largest for which
    the k-th still does.

    >>> onto_simplex(np.array([[0.7, 0.3], [1.2, -0.2], [0.5, 0.5]])).tolist()
    [[0.7, 0.3], [1.0, 0.0], [0.5, 0.5]]
    """
    falling = -np.sort(-points, axis=1)
    thresholds = (np.cumsum(falling, axis=1) - 1) / np.arange(1, points.shape[1] + 1)
    kept = (falling > thresholds).sum(axis=1)
    theta = np.take_along_axis(thresholds, kept[:, None] - 1, axis=1)
    return np.asarray(np.maximum(points - theta, 0.0))


@dataclass(kw_only=True, eq=False, repr=False)
class MomentPerturbationClassifier(MomentPerturbation, PerturbationClassifier):
    """Logistic regression whose sums Σxxᵀ and Σyx carry Gaussian noise. Start here.

    Parameters and attributes are told by `PerturbationEstimator`, `MomentPerturbation` (`balance`)
    and `PerturbationClassifier`.

    >>> generator = np.random.default_rng(0)
    >>> age = generator.uniform(18, 80, (50_000, 1))
    >>> retired = np.where(age[:, 0] + generator.normal(0, 5, 50_000) > 64, "yes", "no")
    >>> model = MomentPerturbationClassifier(
    ...     epsilon=1.0, bounds=(18, 80), classes=["no", "yes"]
    ... ).fit(age, retired)
    >>> model.predict([[20], [80]]).tolist()
    ['no', 'yes']
    """


@dataclass(kw_only=True, eq=False, repr=False)
class InputPerturbationClassifier(InputPerturbation, PerturbationClassifier):
    """Logistic regression from records √c·x and ½yx that are blurred themselves: the paper's way.

    Parameters and attributes are told by `PerturbationEstimator`, `InputPerturbation`
    (`rule`, `split`) and `PerturbationClassifier`. Needs more rows than columns. `weight_bound` is
    three times the regressor's unless it is given: log-odds reach further than a number's range.

    >>> generator = np.random.default_rng(0)
    >>> height = generator.uniform(100, 200, (50_000, 1))
    >>> tall = height[:, 0] + generator.normal(0, 5, 50_000) > 150
    >>> model = InputPerturbationClassifier(
    ...     epsilon=1.0, bounds=(100, 200), classes=[False, True]
    ... ).fit(height, tall)
    >>> model.predict([[110], [190]]).tolist()
    [False, True]
    """
