"""What all rivals keep: scikit-learn's contract, a promise in words, one encoding; and risks."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import gamma, kstest, uniform
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from blurfit import Binary, Categorical, InfeasibleError, InvalidValueError, Numeric, Schema
from blurfit.input_perturbation.algorithms import Sums
from blurfit_lab import rivals
from blurfit_lab.rivals import (
    AdaSSPRegressor,
    NonPrivateRegressor,
    OutputPerturbationRegressor,
)
from blurfit_lab.rivals.rival import (
    LogisticRisk,
    SquaredRisk,
    coefficients,
    exponential_in_norm,
)

COMMON = {"epsilon": -1, "neighbours": "any", "bounds": None}  # which no rival takes
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


WRONG = [(model, {name: one}) for model in PRIVATE for name, one in COMMON.items()] + [
    (make(name), parameters)
    for name, parameters in (
        ("AdaSSPRegressor", {"accounting": "modern"}),
        ("GaussMixRegressor", {"accounting": "modern"}),
        ("IterativeHessianMixingRegressor", {"accounting": "modern"}),
        ("IterativeHessianMixingRegressor", {"steps": 0}),
        ("BoostedAdaSSPRegressor", {"rounds": 0}),
        ("BoostedAdaSSPRegressor", {"calibration": "both"}),
        ("BinAggRegressor", {"correction": "half"}),
        ("TukeyRegressor", {"models": 0}),
        ("GeneralisedObjectivePerturbationRegressor", {"clip": 0.0}),
        ("GradientPerturbationClassifier", {"weight_bound": -1}),
        ("NonPrivateRegressor", {"ridge": -1}),
        ("OutputPerturbationRegressor", {"ridge": 0.0}),
    )
]


@pytest.mark.parametrize(("model", "parameters"), WRONG)
def test_what_cannot_be_is_refused_by_name(model, parameters) -> None:
    X, y = data(model)
    (name,) = parameters
    with pytest.raises(InvalidValueError, match=name):
        type(model)(**model.get_params() | parameters).fit(X, y)


@pytest.mark.parametrize(
    ("name", "parameters", "rows", "off"),
    [
        ("BoostedAdaSSP", {"epsilon": 1e9}, 200, 1e-3),
        ("IterativeHessianMixing", {"epsilon": 1e7, "steps": 9}, 500, 0.01),
        ("IterativeHessianMixing", {"epsilon": 1e7, "steps": 9, "accounting": "exact"}, 500, 0.01),
        # k mixtures are k rows, and a box is not a point, however many records there are
        ("GaussMix", {"epsilon": 1e7, "accounting": "exact"}, 20_000, 0.02),
        ("BinAgg", {"epsilon": 20.0}, 20_000, 0.02),
        ("BinAgg", {"epsilon": 20.0, "correction": "theorem"}, 20_000, 0.02),
        ("GeneralisedObjectivePerturbation", {"epsilon": 1e6}, 500, 1e-3),
    ],
)
def test_without_privacy_it_is_least_squares(name, parameters, rows, off) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (rows, 2))
    terms = {"bounds": (-1, 1), "target_bounds": (-1, 1), "random_state": 0} | parameters
    model = getattr(rivals, f"{name}Regressor")(**terms).fit(x, x @ [0.5, -0.3] + 0.1)
    assert model.coef_ == pytest.approx([0.5, -0.3], abs=off)
    assert model.intercept_ == pytest.approx(0.1, abs=off)


def test_without_privacy_labels_are_found() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, (500, 2))
    labels = x @ [0.5, -0.3] + 0.2 * generator.standard_normal(500) > 0
    family = rivals.GeneralisedObjectivePerturbationClassifier
    assert family(epsilon=50.0, bounds=(-1, 1)).fit(x, labels).score(x, labels) > 0.8


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


def records(rows: int, columns: int = 3, seed: int = 0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, columns))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    y = np.sign(x[:, 0] + 0.5 * generator.standard_normal(rows))
    return x, y


def squared(x, y, eta: float | None = 2.0) -> SquaredRisk:
    return SquaredRisk(Sums(len(y), x.T @ x, x.T @ y), eta)


def loss(x, y, w) -> float:
    return float(np.logaddexp(0, -y * (x @ w)).sum())


def test_squared_minimisers_are_ridge_regression() -> None:
    x, y = records(50)
    linear = np.array([1.0, -2.0, 0.5])
    found = squared(x, y, None).minimiser(3.0, linear)
    assert found == pytest.approx(np.linalg.solve(x.T @ x + 3 * np.eye(3), x.T @ y - linear))


def test_squared_minimisers_stay_in_the_ball() -> None:
    x, y = records(50)
    free = squared(x, y, None).minimiser(0.0)
    held = squared(x, y, np.linalg.norm(free) / 2).minimiser(0.0)
    assert np.linalg.norm(held) == pytest.approx(np.linalg.norm(free) / 2)


def test_logistic_minimisers_are_scikit_learns() -> None:
    x, y = records(400)
    oracle = LogisticRegression(C=1 / 2.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    assert LogisticRisk([(x, y)]).minimiser(2.5) == pytest.approx(
        oracle.fit(x, y).coef_[0], abs=1e-6
    )


@pytest.mark.parametrize("size", [0.0, 1.0, 300.0])
def test_logistic_minimisers_with_a_linear_term_are_those_of_a_general_solver(size) -> None:
    """A large term carries w far from the start, where the shared Hessian is of no use."""
    x, y = records(200)
    linear = size * np.array([0.6, -0.8, 0.0])
    oracle = minimize(
        lambda w: loss(x, y, w) + 0.5 * 5 * w @ w + linear @ w, np.zeros(3), tol=1e-12
    )
    risk = LogisticRisk([(x, y)])
    found = risk.minimiser(5.0, linear)
    assert found == pytest.approx(oracle.x, rel=1e-4, abs=1e-5)
    gradient = risk.gradients(found[None])[0] + 5 * found + linear
    assert np.linalg.norm(gradient) < 1e-9 * (200 + size)


def test_many_logistic_problems_at_once_are_each_by_itself_wherever_one_starts() -> None:
    x, y = records(300)
    ridges, linears = np.array([0.5, 8.0, 1.0]), np.array([[0.0] * 3, [1.0, 2, 3], [-40.0, 0, 9]])
    together = LogisticRisk([(x[:100], y[:100]), (x[100:], y[100:])], start=np.ones(3))
    alone = LogisticRisk([(x, y)])
    found = [together.minimiser(*one) for one in zip(ridges, linears, strict=True)]
    for k in range(3):
        assert found[k] == pytest.approx(alone.minimiser(ridges[k], linears[k]), abs=1e-8)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_gradients_are_those_of_the_loss(kind) -> None:
    x, y = records(40)
    w, step = np.array([0.3, -0.2, 0.1]), 1e-6
    if kind == "squared":
        risk, value = squared(x, y), lambda w: 0.5 * float(((y - x @ w) ** 2).sum())
    else:
        risk, value = LogisticRisk([(x, y)]), lambda w: loss(x, y, w)
    slopes = [(value(w + step * e) - value(w - step * e)) / (2 * step) for e in np.eye(3)]
    assert risk.gradients(w[None])[0] == pytest.approx(np.array(slopes), abs=1e-6)


def test_the_hessian_is_the_gradients_slope() -> None:
    x, y = records(40)
    risk, w, step = LogisticRisk([(x, y)]), np.array([0.3, -0.2, 0.1]), 1e-6
    slopes = [
        (risk.gradients((w + step * e)[None])[0] - risk.gradients((w - step * e)[None])[0])
        / (2 * step)
        for e in np.eye(3)
    ]
    assert risk.hessian(w) == pytest.approx(np.array(slopes), abs=1e-5)


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_nobody_changes_the_gradient_by_more_than_the_bound(kind, neighbours) -> None:
    """Brute force over pairs of records at the edge of the ball; the bound is nearly reached."""
    generator, eta, worst = np.random.default_rng(1), 2.0, 0.0
    bound = (
        squared(*records(3), eta) if kind == "squared" else LogisticRisk([records(3)])
    ).gradient_change(neighbours)
    for _ in range(4000):
        x = generator.standard_normal((2, 2))
        x /= np.linalg.norm(x, axis=1)[:, None]
        if generator.integers(2):
            x[1] = x[0] * (-1) ** generator.integers(2)
        y = generator.choice([-1.0, 1.0], 2)
        w = generator.standard_normal(2)
        w *= (eta if kind == "squared" else 40.0) / np.linalg.norm(w)
        if generator.integers(2):
            w = np.linalg.norm(w) * x[0]
        if kind == "squared":
            one = (x @ w - y)[:, None] * x
        else:
            one = (-y / (1 + np.exp(y * (x @ w))))[:, None] * x
        moved = one[0] - one[1] if neighbours == "replace" else one[0]
        worst = max(worst, float(np.linalg.norm(moved)))
    assert 0.85 * bound < worst <= bound * (1 + 1e-12)


def test_squared_loss_has_no_bound_without_a_ball() -> None:
    with pytest.raises(InfeasibleError, match="needs a weight_bound"):
        squared(*records(5), None).gradient_change("replace")


@pytest.mark.statistical
def test_length_is_gamma_and_direction_is_uniform() -> None:
    generator = np.random.default_rng(3)
    drawn = np.array([exponential_in_norm(3, 0.5, generator) for _ in range(20_000)])
    lengths = np.linalg.norm(drawn, axis=1)
    assert kstest(lengths, gamma(3, scale=2).cdf).pvalue > 1e-3
    # Archimedes: each coordinate of a uniform direction in three dimensions is uniform
    heights = (drawn / lengths[:, None])[:, 1]
    assert kstest(heights, uniform(-1, 2).cdf).pvalue > 1e-3


def test_in_one_dimension_it_is_laplace() -> None:
    generator = np.random.default_rng(4)
    drawn = np.array([exponential_in_norm(1, 2.0, generator)[0] for _ in range(20_000)])
    assert kstest(drawn, "laplace", args=(0, 0.5)).pvalue > 1e-3
