"""The floor is scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from blurfit import InvalidValueError
from blurfit_lab.rivals import (
    NonPrivateClassifier,
    NonPrivateRegressor,
)

GENERATOR = np.random.default_rng(5)
X = GENERATOR.uniform(0, 4, (300, 3))
Y = X @ [1.0, -0.5, 0.2] + GENERATOR.normal(0, 0.3, 300)
LABELS = np.where(Y + GENERATOR.normal(0, 1, 300) > 1, "yes", "no")


def test_least_squares() -> None:
    model = NonPrivateRegressor(bounds=(0, 4), target_bounds=(-9, 9)).fit(X, Y)
    oracle = LinearRegression().fit(X, Y)
    assert model.coef_ == pytest.approx(oracle.coef_, abs=1e-6)
    assert model.intercept_ == pytest.approx(oracle.intercept_, abs=1e-6)
    assert not model.guarantee_.private


def test_logistic_regression() -> None:
    model = NonPrivateClassifier(bounds=(0, 4)).fit(X, LABELS)
    oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, LABELS)
    assert model.coef_ == pytest.approx(oracle.coef_, abs=1e-4)
    assert model.predict(X).tolist() == oracle.predict(X).tolist()


def test_separable_classes_have_a_minimum_with_a_ridge() -> None:
    labels = X[:, 0] > 2
    model = NonPrivateClassifier(bounds=(0, 4), ridge=1.0).fit(X, labels)
    assert np.mean(model.predict(X) == labels) > 0.9


def test_a_negative_ridge_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="ridge=-1"):
        NonPrivateRegressor(bounds=(0, 4), target_bounds=(-9, 9), ridge=-1).fit(X, Y)
