"""Output perturbation: the minimiser's sensitivity by brute force, the noise, and the limit."""

import numpy as np
import pytest
from scipy.stats import gamma, kstest

from blurfit import InvalidValueError
from blurfit.learning.sums import Statistics
from blurfit_lab.rivals import OutputPerturbationClassifier, OutputPerturbationRegressor
from blurfit_lab.rivals.perturbation import forecast_ridge, sensitivity
from blurfit_lab.rivals.rival import LogisticRisk, SquaredRisk, into_ball, minimiser

RIDGE, ETA = 2.0, 1.5


def risk_of(kind: str, x, y):
    if kind == "squared":
        return SquaredRisk(Statistics(len(y), x.T @ x, x.T @ y), ETA)
    return LogisticRisk([(x, y)])


def unit(generator, rows):
    x = generator.standard_normal((rows, 2))
    return x / np.linalg.norm(x, axis=1)[:, None]


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_nobody_moves_the_minimiser_further_than_the_sensitivity(kind, neighbours) -> None:
    generator, worst = np.random.default_rng(0), 0.0
    for rows in (1, 2, 5):
        for _ in range(60):
            x, y = unit(generator, rows), generator.choice([-1.0, 1.0], rows)
            moved, label = x.copy(), y.copy()
            moved[0], label[0] = -x[0], y[0]
            before = minimiser(risk_of(kind, x, y), RIDGE)
            if neighbours == "zero-out":
                moved[0] = 0.0
            after = minimiser(risk_of(kind, moved, label), RIDGE)
            worst = max(worst, float(np.linalg.norm(before - after)))
    bound = sensitivity(risk_of(kind, x, y), RIDGE, neighbours)
    assert 0.2 * bound < worst <= bound


@pytest.mark.statistical
def test_the_noise_is_gamma_in_length() -> None:
    generator = np.random.default_rng(1)
    x, y = unit(generator, 30), generator.choice([-1.0, 1.0], 30)
    clean = minimiser(LogisticRisk([(x, y)]), RIDGE)
    risk = LogisticRisk([(x, y)], start=clean)  # each release looks for it anew
    model = OutputPerturbationClassifier(epsilon=0.5, ridge=RIDGE)
    lengths = [np.linalg.norm(model.release(risk, generator) - clean) for _ in range(3000)]
    assert kstest(lengths, gamma(2, scale=2 / RIDGE / 0.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_without_privacy_it_is_the_plain_fit(kind) -> None:
    generator = np.random.default_rng(2)
    x, y = unit(generator, 50), generator.choice([-1.0, 1.0], 50)
    risk = risk_of(kind, x, y)
    family = OutputPerturbationRegressor if kind == "squared" else OutputPerturbationClassifier
    found = family(epsilon=1e12).release(risk, generator)
    assert found == pytest.approx(minimiser(risk, 0.0), abs=1e-4)


def test_the_default_ridge_minimises_its_forecast() -> None:
    x, y = unit(np.random.default_rng(3), 100), np.ones(100)
    risk = risk_of("squared", x, y)

    def forecast(ridge: float) -> float:
        noise = risk.dimension * sensitivity(risk, ridge, "replace") / 0.3
        return 0.5 * ridge * ETA**2 + 0.5 * risk.count / risk.dimension * noise**2

    best = forecast_ridge(risk, 0.3, "replace")
    assert forecast(best) <= min(forecast(0.99 * best), forecast(1.01 * best))


def test_no_ridge_no_promise() -> None:
    with pytest.raises(InvalidValueError, match=r"ridge=0.0 > 0.*None takes"):
        OutputPerturbationRegressor(ridge=0.0).promise()


def test_into_ball() -> None:
    assert into_ball(np.array([3.0, 4.0]), 1.0).tolist() == pytest.approx([0.6, 0.8])
    assert into_ball(np.array([3.0, 4.0]), None).tolist() == [3.0, 4.0]
