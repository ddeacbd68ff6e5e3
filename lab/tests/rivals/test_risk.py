"""The sums of losses: their bounds by brute force, their minimisers by other solvers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from blurfit import InfeasibleError
from blurfit.learning.sums import Statistics
from blurfit_lab.rivals.rival import LogisticRisk, SquaredRisk, minimiser


def records(rows: int, columns: int = 3, seed: int = 0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, columns))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    y = np.sign(x[:, 0] + 0.5 * generator.standard_normal(rows))
    return x, y


def squared(x, y, eta: float | None = 2.0) -> SquaredRisk:
    return SquaredRisk(Statistics(len(y), x.T @ x, x.T @ y), eta)


def loss(x, y, w) -> float:
    return float(np.logaddexp(0, -y * (x @ w)).sum())


def test_squared_minimisers_are_ridge_regression() -> None:
    x, y = records(50)
    linear = np.array([1.0, -2.0, 0.5])
    found = squared(x, y, None).minimisers(np.array([3.0]), linear[None])[0]
    assert found == pytest.approx(np.linalg.solve(x.T @ x + 3 * np.eye(3), x.T @ y - linear))


def test_squared_minimisers_stay_in_the_ball() -> None:
    x, y = records(50)
    free = minimiser(squared(x, y, None), 0.0)
    held = minimiser(squared(x, y, np.linalg.norm(free) / 2), 0.0)
    assert np.linalg.norm(held) == pytest.approx(np.linalg.norm(free) / 2)


def test_logistic_minimisers_are_scikit_learns() -> None:
    x, y = records(400)
    oracle = LogisticRegression(C=1 / 2.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    assert minimiser(LogisticRisk([(x, y)]), 2.5) == pytest.approx(
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
    found = minimiser(risk, 5.0, linear)
    assert found == pytest.approx(oracle.x, rel=1e-4, abs=1e-5)
    gradient = risk.gradients(found[None])[0] + 5 * found + linear
    assert np.linalg.norm(gradient) < 1e-9 * (200 + size)


def test_many_logistic_problems_at_once_are_each_by_itself_wherever_one_starts() -> None:
    x, y = records(300)
    ridges, linears = np.array([0.5, 8.0, 1.0]), np.array([[0.0] * 3, [1.0, 2, 3], [-40.0, 0, 9]])
    together = LogisticRisk([(x[:100], y[:100]), (x[100:], y[100:])], start=np.ones(3))
    alone = LogisticRisk([(x, y)])
    found = together.minimisers(ridges, linears)
    for k in range(3):
        assert found[k] == pytest.approx(minimiser(alone, ridges[k], linears[k]), abs=1e-8)


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
