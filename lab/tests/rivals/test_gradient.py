"""Gradient perturbation: its noise, its limits, and what it refuses."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, norm

from blurfit import InfeasibleError, InvalidValueError
from blurfit.audit.examination import examine
from blurfit.learning.sums import Statistics
from blurfit.theory.gaussian import mu_of
from blurfit_lab.rivals import GradientPerturbationClassifier, GradientPerturbationRegressor
from blurfit_lab.rivals.gradient import (
    logistic_slope,
    modern_descent,
    published_descent,
    published_deviation,
    squared_slope,
)
from blurfit_lab.rivals.rival import LogisticRisk, SquaredRisk, minimiser

# Accounted for once: a process remembers the noise that these terms need.
SAMPLED = {"epsilon": 8.0, "delta": 0.1, "steps": 100, "sampling_rate": 0.5}


def records(rows: int = 200, columns: int = 2):
    generator = np.random.default_rng(rows)
    x = generator.standard_normal((rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, None]
    return x, np.clip(x @ [0.5, -0.3] + 0.1 * generator.standard_normal(rows), -1, 1)


def risk_of(x, y, eta=2.0) -> SquaredRisk:
    return SquaredRisk(Statistics(len(y), x.T @ x, x.T @ y), eta)


def test_the_published_noise_is_as_printed() -> None:
    found = published_deviation(0.5, 1e-3, count=1000, lipschitz=3.0)
    expected = 32 * 9 * 1000**2 * math.log(1000 / 1e-3) * math.log(1000) / 0.25
    assert found**2 == pytest.approx(expected)


def test_the_modern_noise_is_one_gaussian_over_all_steps() -> None:
    """σ = Δ·√T/μ, where Δ is η + 2 to replace one record and η + 1 to zero it out."""
    risk = risk_of(*records())
    for neighbours, change in (("replace", 4.0), ("zero-out", 3.0)):
        model = GradientPerturbationRegressor(delta=0.01, steps=64, neighbours=neighbours)
        exact = change * 8 / mu_of(1.0, 0.01)
        assert exact <= model.deviation(risk) <= 1.001 * exact


@pytest.mark.statistical
def test_a_step_carries_the_stated_noise() -> None:
    """One step from 0 in a huge ball: w = −(Σ∇ℓ(0) + b)/(nλ)."""
    x, y = records()
    found = modern_descent(
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
            return modern_descent(
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
def test_without_noise_both_descents_approach_the_minimum(kind) -> None:
    x, y = records()
    slope = squared_slope
    risk = risk_of(x, y, None)
    if kind == "logistic":
        y, slope = np.sign(y), logistic_slope
        risk = LogisticRisk([(x, y)])
    plain = minimiser(risk, 0.0)
    generator = np.random.default_rng(1)
    radius = 1.5 * float(np.linalg.norm(plain))
    steps = 4000 if kind == "logistic" else 400
    modern = modern_descent(
        risk, radius=radius, deviation=1e-9, steps=steps, runs=2, generator=generator
    )
    assert modern == pytest.approx(np.array([plain, plain]), abs=2e-2)
    published = published_descent(
        x,
        y,
        slope,
        radius=radius,
        lipschitz=1.0,
        deviation=1e-9,
        steps=20_000,
        runs=20,
        generator=generator,
    )
    assert published.mean(axis=0) == pytest.approx(plain, abs=0.25 * radius)


def test_published_and_modern_and_sampled_fits_are_in_the_ball() -> None:
    x, y = records()
    for parameters in (
        {"delta": 0.01, "accounting": "published", "most_steps": 50},
        {"delta": 0.01, "steps": 5},
        SAMPLED,
    ):
        for family, target in (
            (GradientPerturbationRegressor, {"target_bounds": (-1, 1)}),
            (GradientPerturbationClassifier, {}),
        ):
            model = family(bounds=(-1, 1), random_state=0, weight_bound=0.7, **target, **parameters)
            model.fit(x, y if target else np.sign(y))
            assert 0 < np.linalg.norm(model.weights_) <= 0.7 * (1 + 1e-9)


def test_sampled_steps_have_the_mean_of_whole_ones() -> None:
    """With little noise, so that a sample's own spread is most of what there is."""
    x, y = records(2000)
    model = GradientPerturbationRegressor(
        bounds=(-1, 1),
        target_bounds=(-1, 1),
        random_state=0,
        weight_bound=5.0,
        fit_intercept=False,
        **SAMPLED,
    ).fit(x, y)
    plain = np.linalg.solve(x.T @ x, x.T @ y)
    assert model.coef_ == pytest.approx(plain, abs=0.1)


def test_what_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="accounting='modern' takes any"):
        GradientPerturbationRegressor(epsilon=50.0, accounting="published").promise()
    with pytest.raises(InvalidValueError, match=r"sampling_rate=1\.5 <= 1"):
        GradientPerturbationRegressor(sampling_rate=1.5).promise()
    x, y = records()
    with pytest.raises(InvalidValueError, match="weight_bound=-1"):
        GradientPerturbationClassifier(bounds=(-1, 1), weight_bound=-1).fit(x, np.sign(y))
