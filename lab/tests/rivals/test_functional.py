"""The functional mechanism: sensitivity by brute force, the noise, the limit, the trimming."""

import math

import numpy as np
import pytest
from scipy.stats import kstest

from blurfit import InvalidValueError
from blurfit.learning.sums import Statistics
from blurfit_lab.rivals import FunctionalMechanismClassifier, FunctionalMechanismRegressor
from blurfit_lab.rivals.noisy_sums import LOGISTIC, SQUARED, sums_of, trimmed_minimiser
from blurfit_lab.rivals.rival import LogisticRisk, SquaredRisk, minimiser


def records(rows: int, columns: int = 3):
    generator = np.random.default_rng(rows)
    x = generator.standard_normal((rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, None]
    return x, np.sign(x[:, 0] + generator.standard_normal(rows))


def coefficients(kind: str, x, y) -> np.ndarray:
    """Of w₁, …, w_d and of all products w_j·w_l, j ≤ l, written out by hand."""
    d = len(x)
    pairs = [(j, k) for j in range(d) for k in range(j, d)]
    if kind == "squared":  # (y − w·x)²
        return np.array([*(-2 * y * x), *(x[j] * x[k] * (1 if j == k else 2) for j, k in pairs)])
    return np.array([*(-y * x / 2), *(x[j] * x[k] / (8 if j == k else 4) for j, k in pairs)])


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize(("kind", "polynomial"), [("squared", SQUARED), ("logistic", LOGISTIC)])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_nobody_moves_the_coefficients_further_than_the_sensitivity(
    kind, polynomial, d, neighbours
) -> None:
    generator, worst = np.random.default_rng(0), 0.0
    corner = np.ones(d) / math.sqrt(d)
    for trial in range(400):
        x, other = generator.standard_normal((2, d))
        x, other = x / np.linalg.norm(x), other / np.linalg.norm(other)
        if trial == 0:
            x = corner
        if trial < 2 and d > 1:
            other = corner * np.where(np.arange(d) % 2, -1, 1)
        one = coefficients(kind, x, 1.0)
        moved = one - coefficients(kind, other, -1.0) if neighbours == "replace" else one
        worst = max(worst, float(np.abs(moved).sum()))
    bound = polynomial.sensitivity(d, neighbours)
    assert worst <= bound * (1 + 1e-12)
    assert neighbours == "replace" or worst == pytest.approx(bound)


def test_the_papers_sensitivity_is_larger() -> None:
    for d in (2, 14, 50):
        assert SQUARED.sensitivity(d, "replace") <= 2 * (d + 1) ** 2
        assert LOGISTIC.sensitivity(d, "replace") <= d * d / 4 + 3 * d


@pytest.mark.statistical
def test_the_noise_is_laplace_on_each_coefficient() -> None:
    """In one dimension w = b/(A + ridge): with a huge A, Δb and ΔA can be told apart."""
    generator = np.random.default_rng(3)
    model = FunctionalMechanismRegressor(epsilon=2.0)
    scale = SQUARED.sensitivity(1, "replace") / 2.0
    big = 1e9
    drawn = [
        model.from_sums(Statistics(1, [[big]], [0.0]), SQUARED, generator)[0] * 2 * big
        for _ in range(5000)
    ]
    assert kstest(drawn, "laplace", args=(0, scale)).pvalue > 1e-3


@pytest.mark.parametrize("family", [FunctionalMechanismRegressor, FunctionalMechanismClassifier])
def test_without_privacy_it_is_least_squares(family) -> None:
    """And for labels least squares of ±1, twice, which is Taylor's parabola."""
    x, y = records(80)
    squares = np.linalg.solve(x.T @ x, x.T @ y)
    if family is FunctionalMechanismRegressor:
        risk, expected = SquaredRisk(Statistics(80, x.T @ x, x.T @ y), None), squares
        assert minimiser(risk, 0.0) == pytest.approx(expected, abs=1e-6)
    else:
        risk, expected = LogisticRisk([(x, y)]), 2 * squares
    found = family(epsilon=1e10).release(risk, np.random.default_rng(0))
    assert found == pytest.approx(expected, abs=1e-5)


def test_sums_of_a_logistic_risk() -> None:
    x, y = records(30)
    sums = sums_of(LogisticRisk([(x, y)]))
    assert sums.gram == pytest.approx(x.T @ x)
    assert sums.moment == pytest.approx(x.T @ y)


def test_directions_without_curvature_are_left_out() -> None:
    A, b = np.diag([4.0, -7.0]), np.array([8.0, 5.0])
    assert trimmed_minimiser(A, b, 1.0).tolist() == pytest.approx([1.6, 0.0])


def test_other_losses_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="squared or a logistic"):
        FunctionalMechanismRegressor().release(object(), np.random.default_rng(0))
