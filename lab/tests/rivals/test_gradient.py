"""Gradient perturbation: its noise, its limits, and what it refuses."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, norm

from blurfit import InvalidValueError
from blurfit.audit.examination import examine
from blurfit.learning.sums import Statistics
from blurfit.theory.gaussian import mu_of
from blurfit_lab.rivals import GradientPerturbationClassifier, GradientPerturbationRegressor
from blurfit_lab.rivals.perturbation import descend
from blurfit_lab.rivals.rival import LogisticRisk, SquaredRisk, into_ball, minimiser


def records(rows: int = 200, columns: int = 2):
    generator = np.random.default_rng(rows)
    x = generator.standard_normal((rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, None]
    return x, np.clip(x @ [0.5, -0.3] + 0.1 * generator.standard_normal(rows), -1, 1)


def risk_of(x, y, eta=2.0) -> SquaredRisk:
    return SquaredRisk(Statistics(len(y), x.T @ x, x.T @ y), eta)


def test_into_ball() -> None:
    weights = into_ball(np.array([[3.0, 4.0], [0.1, 0.0]]), 1.0)
    assert weights == pytest.approx(np.array([[0.6, 0.8], [0.1, 0.0]]))


def test_the_noise_is_one_gaussian_over_all_steps(delta_of_steps) -> None:
    """σ = Δ·√T/μ, where Δ is η + 2 to replace one record and η + 1 to zero it out."""
    risk = risk_of(*records())
    for neighbours, change in (("replace", 4.0), ("zero-out", 3.0)):
        model = GradientPerturbationRegressor(delta=0.01, steps=64, neighbours=neighbours)
        exact = change * 8 / mu_of(1.0, 0.01)
        assert exact <= model.deviation(risk) <= 1.001 * exact
        multiplier = model.deviation(risk) / change
        assert delta_of_steps(multiplier, 1.0, 64) == pytest.approx(0.01, rel=0.01)


@pytest.mark.statistical
def test_a_step_carries_the_stated_noise() -> None:
    """One step from 0 in a huge ball: w = −(Σ∇ℓ(0) + b)/(nλ)."""
    x, y = records()
    found = descend(
        risk_of(x, y),
        radius=1e9,
        deviation=50.0,
        steps=1,
        runs=5000,
        generator=np.random.default_rng(0),
    )
    noise = -(found * 200) + x.T @ y
    assert kstest(noise[:, 0], norm(scale=50).cdf).pvalue > 1e-3


@pytest.mark.statistical
def test_all_steps_together_keep_the_promise_and_noise_for_one_does_not() -> None:
    """Thousands of descents from two tables that differ in one person, beside one another."""
    x, y = records(10)
    other = y.copy()
    y[0], other[0] = 1, -1
    risks, generator = (risk_of(x, y), risk_of(x, other)), np.random.default_rng(5)
    model = GradientPerturbationRegressor(delta=1e-3)
    for share, broken in ((1.0, False), (1 / math.sqrt(model.steps), True)):

        def draw(which: bool, count: int, share: float = share) -> np.ndarray:
            risk = risks[which]
            return descend(
                risk,
                radius=2.0,
                deviation=share * model.deviation(risk),
                steps=model.steps,
                runs=count,
                generator=generator,
            )

        promise = (model.epsilon, model.delta)
        found = examine(
            draw, trials=4000, confidence=0.9999, promise=promise, labels=("model", "one person")
        )
        assert found.broken is broken, found


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_without_noise_the_descent_approaches_the_minimum(kind) -> None:
    x, y = records()
    risk = LogisticRisk([(x, np.sign(y))]) if kind == "logistic" else risk_of(x, y, None)
    plain = minimiser(risk, 0.0)
    radius = 1.5 * float(np.linalg.norm(plain))
    found = descend(
        risk,
        radius=radius,
        deviation=1e-9,
        steps=4000 if kind == "logistic" else 400,
        runs=2,
        generator=np.random.default_rng(1),
    )
    assert found == pytest.approx(np.array([plain, plain]), abs=2e-2)


def test_fits_are_in_the_ball() -> None:
    x, y = records()
    terms = {"bounds": (-1, 1), "delta": 0.01, "steps": 5, "weight_bound": 0.7, "random_state": 0}
    for family, target in (
        (GradientPerturbationRegressor, {"target_bounds": (-1, 1)}),
        (GradientPerturbationClassifier, {}),
    ):
        model = family(**terms, **target).fit(x, y if target else np.sign(y))
        assert 0 < np.linalg.norm(model.weights_) <= 0.7 * (1 + 1e-9)


def test_what_is_refused() -> None:
    x, y = records()
    with pytest.raises(InvalidValueError, match="weight_bound=-1"):
        GradientPerturbationClassifier(bounds=(-1, 1), weight_bound=-1).fit(x, np.sign(y))
