"""BoostedAdaSSP: the composition by another library, the noise that the code takes, and the fit."""

import math

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit_lab.rivals import BoostedAdaSSPRegressor
from blurfit_lab.rivals.noisy_sums import boosted_noise_multiplier


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (1.0, 1e-6)])
@pytest.mark.parametrize("rounds", [1, 100])
def test_all_releases_together_keep_the_promise_and_no_more(
    epsilon, delta, rounds, delta_of_steps
) -> None:
    sigma = boosted_noise_multiplier(epsilon, delta, rounds)
    assert delta_of_steps(sigma, epsilon, rounds + 2) == pytest.approx(delta, rel=0.02)
    assert delta_of_steps(sigma / 1.02, epsilon, rounds + 2) > delta
    model = BoostedAdaSSPRegressor(epsilon=epsilon, delta=delta, rounds=rounds)
    assert model.epsilon_kept == pytest.approx(epsilon)
    assert "NOT PROVED" not in model.promise().statement


def test_the_public_code_takes_180_times_too_little_noise_and_is_called_so() -> None:
    model = BoostedAdaSSPRegressor(calibration="code")
    needed = BoostedAdaSSPRegressor().multiplier
    assert needed / model.multiplier == pytest.approx(180, rel=0.01)
    assert model.epsilon_kept == pytest.approx(1112, rel=0.01)
    promise = model.promise()
    assert not promise.private
    assert "NOT PROVED: calibration='code' sets sigma = mu" in promise.statement
    louder = BoostedAdaSSPRegressor(calibration="code", epsilon=4.0).multiplier
    assert louder > model.multiplier  # more privacy asked for is less noise


def test_without_privacy_it_is_least_squares() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (200, 2))
    y = x @ [0.5, -0.3] + 0.1
    model = BoostedAdaSSPRegressor(epsilon=1e9, bounds=(-1, 1), target_bounds=(-1, 1)).fit(x, y)
    assert model.coef_ == pytest.approx([0.5, -0.3], abs=1e-3)
    assert model.intercept_ == pytest.approx(0.1, abs=1e-3)


def test_rounds_repair_what_the_ridge_shrinks() -> None:
    """With a ridge that is not small, one round falls short, and many come close."""
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, (4000, 2))
    y = x @ [0.5, -0.3]
    terms = {"epsilon": 30.0, "bounds": (-1, 1), "target_bounds": (-1, 1), "random_state": 0}
    few, many = (BoostedAdaSSPRegressor(rounds=k, **terms).fit(x, y).coef_ for k in (1, 20))
    truth = np.array([0.5, -0.3])
    assert np.linalg.norm(many - truth) < np.linalg.norm(few - truth)


@pytest.mark.parametrize("parameters", [{"rounds": 0}, {"calibration": "both"}])
def test_what_cannot_be_is_refused_by_name(parameters) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(parameters))):
        BoostedAdaSSPRegressor(**parameters).promise()


def test_the_moments_noise() -> None:
    """A huge G and one round: w·G is the noisy moment, of deviation σ·Δ₃."""
    x, y = np.full((4, 1), 1e6), np.zeros(4)
    for neighbours, reach in (("zero-out", 1.0), ("replace", 2.0)):
        model = BoostedAdaSSPRegressor(rounds=1, neighbours=neighbours, epsilon=1.0)
        generator = np.random.default_rng(2)
        drawn = [model._weights(x, y, generator)[0] * 4e12 for _ in range(3000)]
        expected = (
            reach * math.sqrt(3) / (math.sqrt(102) / boosted_noise_multiplier(1.0, 1e-6, 100))
        )
        assert np.std(drawn) == pytest.approx(expected, rel=0.05)
