"""What all rivals keep: scikit-learn's contract, a promise in words, and the same encoding."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_estimator

from blurfit import Binary, Categorical, InvalidValueError, Numeric, Schema
from blurfit_lab import rivals
from blurfit_lab.rivals import (
    AdaSSPRegressor,
    NonPrivateRegressor,
    OutputPerturbationRegressor,
)
from blurfit_lab.rivals.rival import coefficients

QUICK = {"steps": 20, "epsilon": 1e3}
PARAMETERS = {
    "AdaSSP": {"epsilon": 4.0},
    "BinAgg": {"epsilon": 20.0},
    "Gradient": QUICK,
}


def make(name: str):
    family = getattr(rivals, name)
    parameters = {"bounds": (-5, 5)}
    if name.endswith("Regressor"):
        parameters["target_bounds"] = (-5, 5)
    if "NonPrivate" not in name:
        chosen = (value for key, value in PARAMETERS.items() if name.startswith(key))
        parameters |= next(chosen, {"epsilon": 1e5})
    return family(**parameters)


RIVALS = [make(name) for name in rivals.__all__]
PRIVATE = [model for model in RIVALS if hasattr(model, "epsilon")]


def kinds(models):
    return pytest.mark.parametrize("model", models, ids=lambda model: type(model).__name__)


def data(model, rows: int = 60):
    generator = np.random.default_rng(rows)
    X = generator.uniform(-1, 1, (rows, 2))
    y = X[:, 0] + 0.3 * generator.standard_normal(rows)
    return X, y if type(model).__name__.endswith("Regressor") else y > 0


@kinds(RIVALS)
def test_scikit_learns_checks(model) -> None:
    """All of them in one test, which ends at the first that fails, and names it."""
    check_estimator(model, on_skip=None)


@kinds(PRIVATE)
def test_a_seed_repeats_and_is_not_private(model) -> None:
    X, y = data(model)
    first, second, other = (
        type(model)(**model.get_params() | {"random_state": seed}).fit(X, y) for seed in (1, 1, 2)
    )
    assert first.coef_.tolist() == second.coef_.tolist()
    assert first.coef_.tolist() != other.coef_.tolist()
    assert not first.guarantee_.private
    assert "NOT PRIVATE" in first.guarantee_.statement


@kinds(PRIVATE)
def test_the_promise_names_its_source_and_relation(model) -> None:
    promise = model.promise()
    stated = (model.epsilon, getattr(model, "delta", 0.0)) if promise.private else (None, None)
    assert (promise.epsilon, promise.delta) == stated
    assert model.source in promise.statement
    assert f"published for {model.published_neighbours}" in promise.statement
    assert any(character.isdigit() for character in model.source)  # the year


@kinds(PRIVATE)
@pytest.mark.parametrize("parameters", [{"epsilon": -1}, {"neighbours": "any"}, {"bounds": None}])
def test_what_cannot_be_is_refused_by_name(model, parameters) -> None:
    X, y = data(model)
    (name,) = parameters
    with pytest.raises(InvalidValueError, match=name):
        type(model)(**model.get_params() | parameters).fit(X, y)


def test_rivals_encode_as_the_estimators_do() -> None:
    """A model in user units, whatever the units are: clipped to bounds, centred, in the ball."""
    frame = pd.DataFrame({"age": [20.0, 40, 60, 80], "rooms": [1.0, 3, 2, 9]})
    target = 1000 * frame["age"] + 500 * frame["rooms"]
    model = NonPrivateRegressor(bounds=([0, 0], [100, 10]), target_bounds=(0, 200_000))
    model.fit(frame, target)
    assert model.coef_ == pytest.approx([1000, 500], rel=1e-4)
    assert list(model.feature_names_in_) == ["age", "rooms"]
    assert model.predict(frame) == pytest.approx(target.to_numpy(), rel=1e-4)


def test_more_classes_are_refused_with_the_remedy() -> None:
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match=r"3 classes: MomentPerturbationClassifier"):
        rivals.NonPrivateClassifier(bounds=(0, 6)).fit(X, [0, 1, 2, 0, 1, 2])


def test_defaults_are_conventional() -> None:
    for family in (OutputPerturbationRegressor, AdaSSPRegressor):
        parameters = family().get_params()
        assert parameters["epsilon"] == 1.0
        assert parameters["neighbours"] == "replace"
        assert parameters["bounds"] is None


@pytest.mark.parametrize(("label", "unit", "middle"), [(False, 1e5, 1e5), (True, 1.0, 0.0)])
def test_weights_in_the_users_units_by_hand(label, unit, middle) -> None:
    # m = 4, so x = z/2: age (v − 50)/100, married (2v − 1)/2, each level ½, intercept ½
    income = Numeric("income", 0, 200_000)
    features = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
    schema = Schema(features, income.above(37_000) if label else income)
    found = coefficients(schema, np.array([0.4, 0.1, -0.2, 0.3, 0.6]))
    effects = {"age": 0.004, "married": 0.1, "sex=f": -0.1, "sex=m": 0.15}
    assert found.effects == pytest.approx({name: unit * one for name, one in effects.items()})
    assert found.intercept == pytest.approx(middle + unit * (-0.2 - 0.05 + 0.3))
