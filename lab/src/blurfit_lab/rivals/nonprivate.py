"""No privacy: the floor that rivals are measured against, and the ceiling of knowing nothing.

The floor is the exact minimiser of the same loss on the same encoded columns. The ceiling is the
constant model, which is what remains when the features tell nothing.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
)
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    check_is_fitted,
    validate_data,
)

from blurfit.arrays import AnyArray, FloatArray
from blurfit.estimators.base import FitGuarantee
from blurfit.validate import nonnegative
from blurfit_lab.rivals.rival import Risk, Rival, RivalClassifier, RivalRegressor, minimiser

PUBLIC = FitGuarantee(
    None, None, "replace", False, "NOT PRIVATE: no noise is added. For comparisons only."
)


@dataclass(kw_only=True, eq=False, repr=False)
class NonPrivate(Rival):
    """argmin Σℓ + ½·ridge·‖w‖², without noise.

    Args:
        ridge: for encoded columns, in all and not per record.
    """

    source = "nobody"
    published_neighbours = None

    ridge: float = 0.0

    def promise(self) -> FitGuarantee:
        """Nothing."""
        nonnegative(ridge=self.ridge)
        return PUBLIC

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:  # noqa: ARG002
        """The minimiser itself."""
        return minimiser(risk, self.ridge)


@dataclass(kw_only=True, eq=False, repr=False)
class NonPrivateRegressor(NonPrivate, RivalRegressor):
    """Least squares, not private.

    >>> model = NonPrivateRegressor(bounds=(0, 10), target_bounds=(0, 20))
    >>> model.fit([[1], [2], [4]], [2, 4, 8]).predict([[3]]).round(6).tolist()
    [6.0]
    """


@dataclass(kw_only=True, eq=False, repr=False)
class NonPrivateClassifier(NonPrivate, RivalClassifier):
    """Logistic regression, not private; separable classes need a ridge."""


@dataclass(kw_only=True, eq=False, repr=False)
class ConstantRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts the mean of what it was fitted to, whatever the features are; not private.

    >>> ConstantRegressor().fit([[1], [2]], [2, 4]).predict([[7]]).tolist()
    [3.0]
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Remember the mean."""
        _, target = validate_data(self, X, y, dtype="numeric", y_numeric=True)
        self.constant_, self.guarantee_ = float(np.mean(target)), PUBLIC
        return self

    def predict(self, X: Any) -> FloatArray:
        """The mean for each row."""
        check_is_fitted(self)
        return np.full(len(validate_data(self, X, reset=False, dtype="numeric")), self.constant_)


@dataclass(kw_only=True, eq=False, repr=False)
class ConstantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts the most frequent label, whatever the features are; not private."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Remember the most frequent label (the first of several)."""
        _, labels = validate_data(self, X, y, dtype="numeric")
        check_classification_targets(labels)
        self.classes_, counts = np.unique(labels, return_counts=True)
        self.constant_, self.guarantee_ = self.classes_[int(counts.argmax())], PUBLIC
        return self

    def predict(self, X: Any) -> AnyArray:
        """That label for each row."""
        check_is_fitted(self)
        rows = len(validate_data(self, X, reset=False, dtype="numeric"))
        return np.full(rows, self.constant_)
