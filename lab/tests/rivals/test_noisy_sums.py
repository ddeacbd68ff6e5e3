"""Noisy sums: the sensitivities by brute force, exact guarantees by another library, the noise."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, norm

from blurfit import InfeasibleError, InvalidValueError
from blurfit.input_perturbation.algorithms import Sums
from blurfit_lab.rivals import AdaSSPRegressor, BoostedAdaSSPRegressor
from blurfit_lab.rivals.noisy_sums import SENSITIVITIES
from blurfit_lab.rivals.rival import LogisticRisk


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_nobody_moves_the_sums_further_than_the_sensitivities(neighbours) -> None:
    generator = np.random.default_rng(0)
    worst = {"eigenvalue": 0.0, "gram": 0.0, "moment": 0.0}
    for trial in range(2000):
        rest = generator.standard_normal((3, 2)) * (trial % 3)
        x, other = generator.standard_normal((2, 2))
        x, other = x / np.linalg.norm(x), other / np.linalg.norm(other)
        if trial % 2:
            other = np.array([-x[1], x[0]]) if trial % 4 == 1 else x
        other = other if neighbours == "replace" else 0 * other
        before, after = rest.T @ rest + np.outer(x, x), rest.T @ rest + np.outer(other, other)
        moved = np.triu(before - after)
        low = np.linalg.eigvalsh(before)[0] - np.linalg.eigvalsh(after)[0]
        worst["eigenvalue"] = max(worst["eigenvalue"], abs(low))
        worst["gram"] = max(worst["gram"], np.linalg.norm(before - after), np.linalg.norm(moved))
        worst["moment"] = max(worst["moment"], np.linalg.norm(x + other))
    bound = SENSITIVITIES[neighbours]
    for name, value in worst.items():
        assert value <= getattr(bound, name) * (1 + 1e-12), name
        assert value > (0.5 if name == "eigenvalue" else 0.99) * getattr(bound, name), name


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_the_constants_keep_their_promise(epsilon, delta) -> None:
    """By the profile written out: Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) for three composed Gaussians."""
    model = AdaSSPRegressor(epsilon=epsilon, delta=delta)
    mu = math.sqrt(3) / model.multiplier
    kept = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert kept <= delta
    assert model.promise().epsilon == epsilon


def test_where_the_constants_do_not_hold_it_refuses() -> None:
    with pytest.raises(InfeasibleError, match=r"epsilon=500.*Lower epsilon"):
        AdaSSPRegressor(epsilon=500.0, delta=1e-6).promise()


@pytest.mark.statistical
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_the_noise_on_the_moment(neighbours) -> None:
    """With a huge G there is no ridge, and w·G is the noisy moment."""
    generator, big = np.random.default_rng(1), 1e9
    sums = Sums(10, big * np.eye(2), np.zeros(2))
    model = AdaSSPRegressor(epsilon=1.0, delta=0.01, neighbours=neighbours)
    drawn = [model.from_sums(sums, generator)[0] * big for _ in range(4000)]
    scale = math.sqrt(math.log(600)) * 3 * (2 if neighbours == "replace" else 1)
    assert kstest(drawn, norm(scale=scale).cdf).pvalue > 1e-3


@pytest.mark.statistical
def test_the_noise_on_the_gram_matrix_and_the_ridge() -> None:
    """In one dimension with c far above its noise, c/w is G plus noise plus ridge."""
    generator = np.random.default_rng(2)
    sums = Sums(10, [[1e4]], [1e9])
    model = AdaSSPRegressor(epsilon=1.0, delta=0.01, neighbours="zero-out")
    k, d = model.multiplier, 1
    drawn = [1e9 / model.from_sums(sums, generator)[0] for _ in range(4000)]
    assert kstest(drawn, norm(1e4, k).cdf).pvalue > 1e-3
    # G = 0: the noisy eigenvalue is cut to zero, and the ridge is the forecast, most of the time
    ridge = k * math.sqrt(d * math.log(2 * d * d / 0.05))
    empty = Sums(10, [[0.0]], [1e9])
    drawn = [1e9 / model.from_sums(empty, generator)[0] for _ in range(4000)]
    assert np.median(drawn) == pytest.approx(ridge, abs=0.2 * k)


def test_adassp_without_privacy_is_least_squares() -> None:
    generator = np.random.default_rng(3)
    x, y = generator.standard_normal((50, 3)), generator.standard_normal(50)
    found = AdaSSPRegressor(epsilon=1e12).from_sums(Sums(50, x.T @ x, x.T @ y), generator)
    assert found == pytest.approx(np.linalg.solve(x.T @ x, x.T @ y), abs=1e-6)


def test_other_losses_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="squared loss"):
        AdaSSPRegressor().release(
            LogisticRisk([(np.ones((1, 1)), np.ones(1))]), np.random.default_rng(0)
        )


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-2), (1.0, 1e-6), (10.0, 1e-4), (500, 1e-6)]
)
def test_exact_accounting_spends_all_of_the_promise_and_no_more(
    epsilon, delta, delta_of_steps
) -> None:
    """By another library's privacy loss distribution of three Gaussians, rounded upwards."""
    model = AdaSSPRegressor(epsilon=epsilon, delta=delta, accounting="exact")
    k = model.multiplier
    if epsilon < 100:  # its grid does not reach further
        assert delta_of_steps(k, epsilon, 3) == pytest.approx(delta, rel=0.01)
        assert delta_of_steps(k / 1.01, epsilon, 3) > delta
        assert k < AdaSSPRegressor(epsilon=epsilon, delta=delta).multiplier
    mu = math.sqrt(3) / k
    log_kept = norm.logcdf(mu / 2 - epsilon / mu)
    log_kept += np.log1p(-np.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu) - log_kept))
    assert log_kept == pytest.approx(math.log(delta), abs=1e-6)
    assert model.promise().epsilon == epsilon


def test_published_noise_is_4_6_times_what_the_promise_needs() -> None:
    published, exact = (
        AdaSSPRegressor(epsilon=0.1, delta=0.01, accounting=one).multiplier
        for one in ("published", "exact")
    )
    assert (round(published, 1), round(exact, 1)) == (75.9, 16.5)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (1.0, 1e-6)])
@pytest.mark.parametrize("rounds", [1, 100])
def test_all_releases_together_keep_the_promise_and_no_more(
    epsilon, delta, rounds, delta_of_steps
) -> None:
    model = BoostedAdaSSPRegressor(epsilon=epsilon, delta=delta, rounds=rounds)
    sigma = model.multiplier
    assert delta_of_steps(sigma, epsilon, rounds + 2) == pytest.approx(delta, rel=0.02)
    assert delta_of_steps(sigma / 1.02, epsilon, rounds + 2) > delta
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


def test_rounds_repair_what_the_ridge_shrinks() -> None:
    """With a ridge that is not small, one round falls short, and many come close."""
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, (4000, 2))
    y = x @ [0.5, -0.3]
    terms = {"epsilon": 30.0, "bounds": (-1, 1), "target_bounds": (-1, 1), "random_state": 0}
    few, many = (BoostedAdaSSPRegressor(rounds=k, **terms).fit(x, y).coef_ for k in (1, 20))
    truth = np.array([0.5, -0.3])
    assert np.linalg.norm(many - truth) < np.linalg.norm(few - truth)


def test_the_moments_noise() -> None:
    """A huge G and one round: w·G is the noisy moment, of deviation σ·Δ₃."""
    x, y = np.full((4, 1), 1e6), np.zeros(4)
    for neighbours, reach in (("zero-out", 1.0), ("replace", 2.0)):
        model = BoostedAdaSSPRegressor(rounds=1, neighbours=neighbours, epsilon=1.0)
        generator = np.random.default_rng(2)
        drawn = [model._weights(x, y, generator)[0] * 4e12 for _ in range(3000)]
        of_many = BoostedAdaSSPRegressor(rounds=100, epsilon=1.0).multiplier
        expected = reach * math.sqrt(3) / (math.sqrt(102) / of_many)
        assert np.std(drawn) == pytest.approx(expected, rel=0.05)
