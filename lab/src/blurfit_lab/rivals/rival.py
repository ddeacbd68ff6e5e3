"""What all rivals share: what they minimise, what they draw from, and how they fit.

**The risk.** Σℓ(w; x, y) over records in the unit ball, with the bounds that a rival needs.

    argmin over ‖w‖ ≤ η of  Σℓ(w; x, y) + ½·ridge·‖w‖² + linear·w,      ‖x‖ ≤ 1, |y| ≤ 1

exactly: the proofs of output and objective perturbation are about the minimiser itself. Squared
loss sees the records only through their sums; logistic loss has to pass over them.

| bound | squared, ½(y − w·x)² | logistic, ln(1 + e^{−y w·x}) |
| --- | --- | --- |
| `curvature` λ ≥ ‖∇²ℓ‖ | 1 | ¼ |
| `gradient_change("zero-out")` ≥ ‖∇ℓ(w; z)‖ | η + 1 | 1 |
| `gradient_change("replace")` ≥ ‖∇ℓ(w; z) − ∇ℓ(w; z')‖ | η + 2 | 2 |

η + 2 and not 2η + 2, because ‖xxᵀ − x'x'ᵀ‖ ≤ 1. Both losses have a Hessian of rank one.

**The estimators.** Columns → the unit ball → a risk → weights in the user's own units.

    X, y ─ public bounds ─► x, y ─ sums or rows ─► Risk ─ the rival ─► w ─► coef_, intercept_

The encoding is the one of `blurfit.estimators`, so that a comparison is about the methods and about
nothing else. Each rival takes its `neighbours` as a parameter: its authors' relation is
`published_neighbours`, and to be compared, all are run under the same one.

Rivals are for comparing. They draw their noise in floating point, whose last bits may tell more
than the formula (Mironov 2012); the estimators of this package do not.
"""

import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from scipy.special import expit
from sklearn import base  # type: ignore[import-untyped]
from sklearn.utils import validation  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]

from blurfit import errors
from blurfit.data import AnyArray, FloatArray
from blurfit.estimators.base import FitGuarantee, free_name
from blurfit.estimators.rows import bounded_columns
from blurfit.input_perturbation.algorithms import Sums
from blurfit.learning.solver import minimise
from blurfit.schema.schema import Binary, Coefficients, Numeric, Schema
from blurfit.simulation import generator_for
from blurfit.theory.moments import Neighbours

ROWS_AT_ONCE = 8192  # stay in the processor's cache
RESIDUAL_ALLOWED = 1e-10  # of ‖gradient‖, relative to the size of what it adds up
LEAST_CURVATURE = 1e-12  # a ridge per record, where a rival has none: only to make w unique


@dataclass(frozen=True, eq=False)
class SquaredRisk:
    """Σ½(y − w·x)² = ½wᵀGw − cᵀw + constant, from the sums G = Σxxᵀ and c = Σyx alone."""

    statistics: Sums
    weight_bound: float | None

    curvature: float = field(default=1.0, init=False)

    @property
    def count(self) -> int:
        """n."""
        return self.statistics.count

    @property
    def dimension(self) -> int:
        """d."""
        return self.statistics.dimension

    def gradient_change(self, neighbours: Neighbours) -> float:
        """‖(xxᵀ − x'x'ᵀ)w − (yx − y'x')‖ ≤ η + 2, and ‖xxᵀw − yx‖ ≤ η + 1."""
        if self.weight_bound is None:
            raise errors.InfeasibleError(
                "Squared loss needs a weight_bound here: its gradient is bounded only where the "
                "weights are. Give weight_bound=4.0, say."
            )
        return self.weight_bound + (2.0 if neighbours == "replace" else 1.0)

    def gradients(self, weights: FloatArray) -> FloatArray:
        """Gw − c."""
        return np.asarray(weights @ self.statistics.gram - self.statistics.moment)

    def minimiser(self, ridge: float, linear: FloatArray | float = 0.0) -> FloatArray:
        """By the certified solver."""
        sums, ridge = self.statistics, max(ridge, LEAST_CURVATURE * self.count)
        terms: Any = {"ridge": ridge, "weight_bound": self.weight_bound}
        return minimise(sums.gram, sums.moment - linear, **terms).weights


@dataclass(frozen=True, eq=False)
class RowsRisk:
    """A sum of losses over the rows of `parts`, pairs of x (n_i, d) and y (n_i,).

    Parts are views into one table, so that windows of it cost no memory. The gradient is bounded
    everywhere, so there is no ball.
    """

    parts: Sequence[tuple[FloatArray, FloatArray]]
    start: FloatArray | None = None  # where to look first: it changes the time, not the answer
    clip: float = 1.0  # the largest slope of a record, of Huber's loss

    curvature: ClassVar[float] = 1.0
    weight_bound: ClassVar[None] = None
    typical: ClassVar[float] = 1.0  # slope of a record, over the largest
    remedy: ClassVar[str]  # where no minimum is found

    @property
    def count(self) -> int:
        """n."""
        return sum(len(y) for _, y in self.parts)

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.parts[0][0].shape[1])

    def gradient_change(self, neighbours: Neighbours) -> float:
        """∇ℓ = f'(w·x)·x is at most `clip` long, and two of them at most twice that apart."""
        return self.clip * (2.0 if neighbours == "replace" else 1.0)

    def gradients(self, weights: FloatArray) -> FloatArray:
        """Σf'(w·x)·x at k weights, in one pass."""
        total = np.zeros((self.dimension, len(weights)))
        for x, y in self._blocks():
            total += x.T @ self._slopes(x @ weights.T, y[:, None])
        return np.asarray(total.T)

    def hessian(self, weights: FloatArray) -> FloatArray:
        """Σf''(w·x)·xxᵀ at one w."""
        total = np.zeros((self.dimension, self.dimension))
        for x, y in self._blocks():
            total += x.T @ (x * self._bends(x @ weights, y)[:, None])
        return total

    def _slopes(self, z: FloatArray, y: FloatArray) -> FloatArray:
        raise NotImplementedError  # pragma: no cover

    def _bends(self, z: FloatArray, y: FloatArray) -> FloatArray:
        raise NotImplementedError  # pragma: no cover

    @cached_property
    def _first(self) -> tuple[FloatArray, FloatArray]:
        """Where all problems start, and the Hessian there."""
        begin = np.zeros(self.dimension) if self.start is None else self.start
        return begin, self.hessian(begin)

    def minimiser(self, ridge: float, linear: FloatArray | float = 0.0) -> FloatArray:
        """By Newton's steps: with the first Hessian as long as that halves the gradient, then with
        that of each step, which is halved until the gradient shrinks, as it does near the minimum
        at once: along −H⁻¹g the derivative of ‖g‖² is −2‖g‖².
        """
        ridge = max(ridge, LEAST_CURVATURE * self.count)

        def slope(weights: FloatArray) -> FloatArray:
            return np.asarray(self.gradients(weights[None])[0] + ridge * weights + linear)

        (weights, first), shared = self._first, True
        gradient = slope(weights)
        for _ in range(200):
            size = float(np.linalg.norm(gradient))
            addends = ridge * np.linalg.norm(weights) + np.linalg.norm(linear)
            if size <= RESIDUAL_ALLOWED * (self.typical * self.clip * self.count + addends):
                return weights
            H = first if shared else self.hessian(weights)
            step = np.linalg.solve(H + ridge * np.eye(self.dimension), gradient)
            for share in [1.0] if shared else 0.5 ** np.arange(30):
                further = slope(weights - share * step)
                if np.linalg.norm(further) < (size / 2 if shared else size):
                    weights, gradient = weights - share * step, further
                    break
            else:
                if not shared:
                    break
                shared = False
        raise errors.NotCertifiedError(
            f"The minimiser of {self.count} losses with ridge={ridge:.3g} was not found to "
            f"{RESIDUAL_ALLOWED}{self.remedy}."
        )

    def _blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        for x, y in self.parts:
            for begin in range(0, len(y), ROWS_AT_ONCE):
                rows = slice(begin, begin + ROWS_AT_ONCE)
                yield x[rows], y[rows]


class LogisticRisk(RowsRisk):
    """Σln(1 + e^{−y w·x}), y = ±1."""

    curvature, typical = 0.25, 0.5
    remedy = ": the classes may be separable. Give a larger ridge"

    def _slopes(self, z: FloatArray, y: FloatArray) -> FloatArray:
        """σ(w·x) − [y = 1], as 1/(1 + e^{−z}) in place: several times as fast as `expit`."""
        np.negative(z, out=z)
        with np.errstate(over="ignore"):  # where σ is 0 to all digits
            np.exp(z, out=z)
        return np.asarray(np.reciprocal(z + 1.0, out=z) - (y > 0))

    def _bends(self, z: FloatArray, y: FloatArray) -> FloatArray:  # noqa: ARG002
        return np.asarray(expit(z) * expit(-z))


class HuberRisk(RowsRisk):
    """Σh(y − w·x), h(r) = ½r² for |r| ≤ clip and clip·|r| − ½clip² beyond: clipped slopes."""

    remedy = ". Give a larger clip, so that fewer records are cut"

    def _slopes(self, z: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(z - y, -self.clip, self.clip)

    def _bends(self, z: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.abs(z - y) <= self.clip, dtype=float)


# A sum of losses over records, with the bounds that privacy rests upon.
Risk = SquaredRisk | RowsRisk


def exponential_in_norm(dimension: int, rate: float, generator: np.random.Generator) -> FloatArray:
    """b with density ∝ e^{−rate·‖b‖}: a uniform direction, and ‖b‖ ~ Gamma(d, 1/rate).

    The shell at radius r has area ∝ r^{d−1}, and r^{d−1}e^{−rate·r} is the Gamma density. For two
    outputs that one person moves by Δ the densities differ by a factor of at most e^{rate·Δ}.
    """
    direction = generator.standard_normal(dimension)
    length = generator.gamma(dimension, 1.0 / rate)
    return np.asarray(direction / np.linalg.norm(direction) * length)


def into_ball(weights: FloatArray, radius: float | None) -> FloatArray:
    """Each row's nearest point of the ball."""
    if radius is None:
        return weights
    norms = np.linalg.norm(weights, axis=-1, keepdims=True)
    return np.asarray(weights * (radius / np.maximum(norms, radius)))


@dataclass_transform(kw_only_default=True, eq_default=False)
@dataclass(kw_only=True, eq=False, repr=False)  # as every subclass becomes one
class Rival(base.BaseEstimator):  # type: ignore[misc]
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
    trust: ClassVar[str] = "central"  # who fits sees the rows; "local", or "none" of privacy
    proved: ClassVar[bool] = True  # whether the promise is proved, by defaults

    bounds: Any = None
    fit_intercept: bool = True
    random_state: Any = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(kw_only=True, eq=False, repr=False)(cls)

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

    def _target(self, name: str, /) -> Numeric | Binary:
        raise NotImplementedError  # pragma: no cover

    def _ball(self, dimension: int, /) -> float | None:  # noqa: ARG002 (others need it)
        """η, for the rivals that need one."""
        return None

    def _fit(self, named: Any, values: AnyArray, target: AnyArray) -> tuple[FloatArray, float]:
        """Effects and intercept in the user's units; `named` may have the target's name."""
        unnamed = [f"x{place}" for place in range(self.n_features_in_)]
        names = [str(name) for name in getattr(self, "feature_names_in_", unnamed)]
        features = bounded_columns("bounds", self.bounds, names)
        column = self._target(free_name(getattr(named, "name", None), names))
        schema = Schema(features, column, self.fit_intercept)
        promise = self.promise()  # refuses what cannot be promised before any record is read
        columns = {column.name: values[:, k] for k, column in enumerate(schema.features)}
        x, y = schema.encode({**columns, schema.target.name: target})
        generator = generator_for(self.random_state)
        self.weights_ = self._weights(x, y, generator)
        self.guarantee_ = promise
        found = coefficients(schema, self.weights_)
        return np.array(list(found.effects.values())), found.intercept


def coefficients(schema: Schema, weights: FloatArray) -> Coefficients:
    """Return the weights of an encoded record in the user's units.

    A column of x is s·(a·value + b), the intercept's is s, and a numeric target is centre + half·y.
    """
    affines = [pair for feature in schema.features for pair in feature.affines]
    slopes, constants = np.array(affines).T
    own, rest = np.split(weights, [len(slopes)])
    half, centre = 1.0, 0.0
    if isinstance(schema.target, Numeric):
        half, centre = schema.target.width / 2, schema.target.centre
    unit = schema.scale * half
    effects = dict(zip(schema.columns, (unit * slopes * own).tolist(), strict=False))
    return Coefficients(float(unit * (constants @ own + rest.sum()) + centre), effects)


class RivalRegressor(base.RegressorMixin, Rival):  # type: ignore[misc]
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
        values, target = validation.validate_data(self, X, y, dtype="numeric", y_numeric=True)
        self.coef_, self.intercept_ = self._fit(y, values, target)
        return self

    def predict(self, X: Any) -> FloatArray:
        """X·coef_ + intercept_, in the target's units."""
        validation.check_is_fitted(self)
        values = validation.validate_data(self, X, reset=False, dtype="numeric")
        return np.asarray(values @ self.coef_ + self.intercept_)

    def _target(self, name: str, /) -> Numeric | Binary:
        (column,) = bounded_columns("target_bounds", self.target_bounds, [name])
        return column

    def _risk(self, x: FloatArray, y: FloatArray) -> Risk:
        statistics = Sums(len(y), x.T @ x, x.T @ y)
        return SquaredRisk(statistics, self._ball(x.shape[1]))


class RivalClassifier(base.ClassifierMixin, Rival):  # type: ignore[misc]
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
        values, labels = validation.validate_data(self, X, y, dtype="numeric")
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            raise errors.InvalidValueError(
                f"Only binary classification is supported. Expected two classes, and y has "
                f"{len(classes)} {'class' if len(classes) == 1 else 'classes'}: "
                "MomentPerturbationClassifier takes several."
            )
        effects, intercept = self._fit(y, values, codes == 1)
        self.classes_ = classes
        self.coef_, self.intercept_ = effects[None, :], np.array([intercept])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """X·coef_ᵀ + intercept_: the log-odds of `classes_[1]`."""
        validation.check_is_fitted(self)
        values = validation.validate_data(self, X, reset=False, dtype="numeric")
        return np.asarray(values @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> AnyArray:
        """The likelier label."""
        positive_scores = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive_scores.astype(np.intp)])

    def _target(self, name: str, /) -> Numeric | Binary:
        return Binary(name)

    def _risk(self, x: FloatArray, y: FloatArray) -> Risk:
        return LogisticRisk([(x, y)])


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
        """(ε, δ)-DP under `neighbours`, as its authors claim it."""
        errors.positive(epsilon=self.epsilon)
        delta = getattr(self, "delta", 0.0)
        for name, hint in typing.get_type_hints(type(self)).items():
            parts, given = typing.get_args(hint), getattr(self, name, None)
            if typing.get_origin(hint) is typing.Literal:
                errors.one_of(parts, **{name: given})
            elif hint is int or (int in parts and given is not None):
                errors.whole(**{name: given})
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


class ApproximateRival(PureRival):
    """A rival whose promise is (ε, δ)-differential privacy.

    Args:
        delta: δ of one fit.
    """

    delta: float = 1e-6

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP under `neighbours`, as its authors claim it."""
        errors.inside_unit_interval(delta=self.delta)
        return super().promise()


class InBall(Rival):
    """A rival whose weights are in a ball: the gradient of squared loss is bounded only there.

    Args:
        weight_bound: η; None takes √m, where m counts the columns and the intercept: enough for
            any one of them to carry the whole range. Gradient descent for labels takes 4√m.
    """

    widths: ClassVar[float] = 1.0  # of √m

    weight_bound: float | None = None

    def _ball(self, dimension: int, /) -> float | None:
        if self.weight_bound is None:
            return float(self.widths * np.sqrt(dimension))
        errors.positive(weight_bound=self.weight_bound)
        return self.weight_bound
