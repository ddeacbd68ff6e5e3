"""Linear regression by either mechanism: ½(y − w·x)², learned from blurred sums."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    check_is_fitted,
    validate_data,
)

from blurfit.estimators.base import (
    InputPerturbation,
    MomentPerturbation,
    PerturbationEstimator,
    free_name,
)
from blurfit.estimators.bounds import bounded_columns

FloatArray = npt.NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class PerturbationRegressor(RegressorMixin, PerturbationEstimator):  # type: ignore[misc]
    """What both regressors do.

    Args:
        target_bounds: (lower, upper) of the target. Needed, and public, as `bounds` are.
    """

    target_bounds: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X and their targets y; what lies outside of the bounds is clipped."""
        values, target = validate_data(
            self, X, y, dtype="numeric", y_numeric=True, ensure_min_samples=self.least_rows
        )
        columns = self._feature_columns()
        name = free_name(getattr(y, "name", None), [column.name for column in columns])
        (column,) = bounded_columns("target_bounds", self.target_bounds, [name])
        (model,) = self._publish(values, columns, [(column, target)])
        self.coef_ = np.array(list(model.coefficients.effects.values()))
        self.intercept_ = model.coefficients.intercept
        return self

    def predict(self, X: Any) -> FloatArray:
        """X·coef_ + intercept_, in the target's units."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype="numeric")
        return np.asarray(values @ self.coef_ + self.intercept_)


@dataclass(kw_only=True, eq=False, repr=False)
class MomentPerturbationRegressor(MomentPerturbation, PerturbationRegressor):
    """Linear regression whose sums Σxxᵀ and Σyx carry Gaussian noise. Start here.

    Parameters and attributes are told by `PerturbationEstimator`, `MomentPerturbation` (`balance`)
    and `PerturbationRegressor` (`target_bounds`). `published_model_.estimates()` has standard
    errors and intervals that include the noise.

    >>> generator = np.random.default_rng(0)
    >>> age, hours = generator.uniform(18, 80, 50_000), generator.uniform(0, 60, 50_000)
    >>> income = 100 * age + 500 * hours + generator.normal(0, 2000, 50_000)
    >>> model = MomentPerturbationRegressor(
    ...     epsilon=1.0, bounds=([18, 0], [80, 60]), target_bounds=(0, 100_000)
    ... ).fit(np.column_stack([age, hours]), income)
    >>> bool(abs(model.predict([[40, 40]])[0] - 24_000) < 2_000), model.guarantee_.private
    (True, True)
    """


@dataclass(kw_only=True, eq=False, repr=False)
class InputPerturbationRegressor(InputPerturbation, PerturbationRegressor):
    """Linear regression from records x and yx that are blurred themselves: the paper's way.

    Parameters and attributes are told by `PerturbationEstimator`, `InputPerturbation`
    (`weight_bound`, `rule`, `split`) and `PerturbationRegressor` (`target_bounds`). Needs more rows
    than columns.

    >>> generator = np.random.default_rng(0)
    >>> rooms = generator.uniform(1, 9, 50_000)
    >>> model = InputPerturbationRegressor(
    ...     epsilon=1.0, bounds=(1, 9), target_bounds=(0, 20)
    ... ).fit(rooms[:, None], 2 * rooms)
    >>> bool(abs(model.predict([[5]])[0] - 10) < 1)
    True
    """
