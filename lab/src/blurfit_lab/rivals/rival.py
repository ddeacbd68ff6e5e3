"""What all rivals share: columns → the unit ball → a risk → weights in the user's own units.

    X, y ─ public bounds ─► x, y ─ sums or rows ─► Risk ─ the rival ─► w ─► coef_, intercept_

The encoding is the one of `blurfit.estimators`, so that a comparison is about the methods and about
nothing else. Each rival takes its `neighbours` as a parameter: its authors' relation is
`published_neighbours`, and to be compared, all are run under the same one.

Rivals are for comparing. They draw their noise in floating point, whose last bits may tell more
than the formula (Mironov 2012); the estimators of this package do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

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
from blurfit.errors import InvalidValueError
from blurfit.estimators.base import free_name
from blurfit.estimators.bounds import bounded_columns
from blurfit.estimators.guarantee import FitGuarantee
from blurfit.learning.sums import Statistics
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.schema.vectors import coefficients
from blurfit.simulation.entropy import generator_for
from blurfit.theory.guarantees import NEIGHBOURS, Neighbours
from blurfit.validate import inside_unit_interval, one_of, positive, whole
from blurfit_lab.rivals.risk import LogisticRisk, Risk, SquaredRisk


@dataclass(kw_only=True, eq=False, repr=False)
class Rival(BaseEstimator):  # type: ignore[misc]
    """Parameters and steps that all rivals have in common.

    Args:
        bounds: (lower, upper) of the features, each one number or one for each column. Needed, and
            public. Values outside are clipped.
        fit_intercept: whether to add a column of ones.
        random_state: None for noise from the operating system; a seed is for experiments.

    Attributes:
        coef_, intercept_: the model in your own units.
        weights_: the same for encoded columns, which is what was released.
        guarantee_: a `FitGuarantee`, in numbers and in words.
    """

    source: ClassVar[str]  # who published it
    published_neighbours: ClassVar[Neighbours | None]  # the relation of their proof
    choices: ClassVar[Sequence[tuple[str, Sequence[str]]]] = ()  # what is one of some words
    wholes: ClassVar[Sequence[str]] = ()  # what is a whole number

    bounds: Any = None
    fit_intercept: bool = True
    random_state: Any = None

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The weights that the method publishes of this risk."""
        raise NotImplementedError  # pragma: no cover

    def promise(self) -> FitGuarantee:
        """What it promises of one fit."""
        raise NotImplementedError  # pragma: no cover

    def _risk(self, x: FloatArray, y: FloatArray) -> Risk:
        raise NotImplementedError  # pragma: no cover

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        """From encoded rows; most rivals need only what a risk tells."""
        return self.release(self._risk(x, y), generator)

    def _columns(self) -> tuple[Numeric, ...]:
        unnamed = [f"x{place}" for place in range(self.n_features_in_)]
        names = [str(name) for name in getattr(self, "feature_names_in_", unnamed)]
        return bounded_columns("bounds", self.bounds, names)

    def _fit(self, schema: Schema, values: AnyArray, target: AnyArray) -> tuple[FloatArray, float]:
        """Effects and intercept in the user's units."""
        promise = self.promise()  # refuses what cannot be promised before any record is read
        columns = {column.name: values[:, k] for k, column in enumerate(schema.features)}
        x, y = schema.encode({**columns, schema.target.name: target})
        generator = generator_for(self.random_state)
        self.weights_ = self._weights(x, y, generator)
        self.guarantee_ = promise
        found = coefficients(schema, self.weights_)
        return np.array(list(found.effects.values())), found.intercept


@dataclass(kw_only=True, eq=False, repr=False)
class RivalRegressor(RegressorMixin, Rival):  # type: ignore[misc]
    """Linear regression.

    Args:
        target_bounds: (lower, upper) of the target. Needed, and public, as `bounds` are.
    """

    target_bounds: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise, on the few rows of scikit-learn's checks
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X and their targets y; what lies outside the bounds is clipped."""
        values, target = validate_data(self, X, y, dtype="numeric", y_numeric=True)
        columns = self._columns()
        name = free_name(getattr(y, "name", None), [column.name for column in columns])
        (column,) = bounded_columns("target_bounds", self.target_bounds, [name])
        schema = Schema(columns, column, self.fit_intercept)
        self.coef_, self.intercept_ = self._fit(schema, values, target)
        return self

    def predict(self, X: Any) -> FloatArray:
        """X·coef_ + intercept_, in the target's units."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype="numeric")
        return np.asarray(values @ self.coef_ + self.intercept_)

    def _risk(self, x: FloatArray, y: FloatArray) -> Risk:
        statistics = Statistics(len(y), x.T @ x, x.T @ y)
        return SquaredRisk(statistics, self._ball(x.shape[1]))

    def _ball(self, dimension: int, /) -> float | None:  # noqa: ARG002 (others need it)
        """η, for the rivals that need one."""
        return None


@dataclass(kw_only=True, eq=False, repr=False)
class RivalClassifier(ClassifierMixin, Rival):  # type: ignore[misc]
    """Logistic regression with two classes.

    Attributes:
        classes_: the labels, in order; the score is the log-odds of the second.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # noise, on the few rows of scikit-learn's checks
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X and their labels y; features outside the bounds are clipped."""
        values, labels = validate_data(self, X, y, dtype="numeric")
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            raise InvalidValueError(
                f"Only binary classification is supported. Expected two classes, and y has "
                f"{len(classes)} {'class' if len(classes) == 1 else 'classes'}: "
                "MomentPerturbationClassifier takes several."
            )
        columns = self._columns()
        name = free_name(getattr(y, "name", None), [column.name for column in columns])
        schema = Schema(columns, Binary(name), self.fit_intercept)
        effects, intercept = self._fit(schema, values, codes == 1)
        self.classes_ = classes
        self.coef_, self.intercept_ = effects[None, :], np.array([intercept])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """X·coef_ᵀ + intercept_: the log-odds of `classes_[1]`."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype="numeric")
        return np.asarray(values @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> AnyArray:
        """The likelier label."""
        positive_scores = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive_scores.astype(np.intp)])

    def _risk(self, x: FloatArray, y: FloatArray) -> Risk:
        return LogisticRisk([(x, y)])


@dataclass(kw_only=True, eq=False, repr=False)
class PureRival(Rival):
    """A rival whose promise is ε-differential privacy, with δ = 0.

    Args:
        epsilon: ε of one fit.
        neighbours: what one person may change: "replace" her row by any other, or "zero-out".
    """

    epsilon: float = 1.0
    neighbours: Neighbours = "replace"

    @property
    def objection(self) -> str | None:
        """What stands against the published proof, if anything."""
        return None

    def promise(self) -> FitGuarantee:
        """ε-DP under `neighbours`, as its authors claim it."""
        return self._promise(0.0)

    def _promise(self, delta: float) -> FitGuarantee:
        positive(epsilon=self.epsilon)
        for name, words in (("neighbours", NEIGHBOURS), *self.choices):
            one_of(words, **{name: getattr(self, name)})
        whole(**{name: getattr(self, name) for name in self.wholes})
        source = (
            f"By {self.source}; published for {self.published_neighbours}. Noise is drawn in "
            "floating point: for comparisons, not for people."
        )
        caveats = [] if self.objection is None else [f"NOT PROVED: {self.objection}"]
        if self.random_state is not None:
            caveats.append("NOT PRIVATE: the noise can be repeated from its seed.")
        if caveats:
            told = " ".join([source, *caveats])
            return FitGuarantee(None, None, self.neighbours, False, told)
        told = (
            f"(epsilon={self.epsilon:g}, delta={delta:g})-differential privacy of the weights for "
            f"neighbours that {self.neighbours} one row. {source}"
        )
        return FitGuarantee(self.epsilon, delta, self.neighbours, True, told)


@dataclass(kw_only=True, eq=False, repr=False)
class ApproximateRival(PureRival):
    """A rival whose promise is (ε, δ)-differential privacy.

    Args:
        delta: δ of one fit.
    """

    delta: float = 1e-6

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP under `neighbours`, as its authors claim it."""
        inside_unit_interval(delta=self.delta)
        return self._promise(self.delta)


@dataclass(kw_only=True, eq=False, repr=False)
class InBall(RivalRegressor):
    """Squared loss, whose gradient is bounded only in a ball.

    Args:
        weight_bound: η; None takes √m, where m counts the columns and the intercept: enough for
            any one of them to carry the whole range.
    """

    weight_bound: float | None = None

    def _ball(self, dimension: int, /) -> float | None:
        if self.weight_bound is None:
            return float(np.sqrt(dimension))
        positive(weight_bound=self.weight_bound)
        return self.weight_bound
