"""Linear Bayes is least squares without noise, better than a ridge with it, and never wild."""

import numpy as np
import pytest
from joint_people import NOISE, TRUTH, collected, people

from blurfit.learning import shrinkage
from blurfit.learning.shrinkage import linear_bayes, read_linearly
from support.waves_by_hand import score


def error(coefficients: np.ndarray, rows: np.ndarray) -> float:
    return float(np.mean((rows[:, 7] - coefficients[0] - rows[:, :7] @ coefficients[1:]) ** 2))


def test_it_is_least_squares_without_noise_and_little_with_nothing_else() -> None:
    sums = collected(200_000, 1000.0, np.random.default_rng(1)).submodel("y")
    found = linear_bayes(sums)
    solved = sums.in_columns(np.linalg.solve(sums.gram, sums.cross))
    np.testing.assert_allclose(found.coefficients, solved, atol=0.002)
    np.testing.assert_allclose(found.coefficients, TRUTH, atol=0.01)
    assert found.features.kept > 0.99
    generator = np.random.default_rng(3)
    test = people(2000, generator)
    for _ in range(10):
        found = linear_bayes(collected(60, 0.02, generator).submodel("y"))
        assert np.abs(score(found, test[:, :7])).max() < 1.5


@pytest.mark.parametrize("count", [300, 2000, 20_000])
def test_it_beats_the_best_ridge_and_the_mean(count: int) -> None:
    """Against ridges of a whole grid, the best of which is chosen by looking at the test rows."""
    generator = np.random.default_rng(2)
    test = people(4000, generator)
    shrunk, mean, ridges = [], [], []
    for _ in range(20):
        sums = collected(count, 0.5, generator).submodel("y")
        shrunk.append(error(linear_bayes(sums).coefficients, test))
        average = sums.cross[0] / (sums.count * sums.constant * sums.target.weight)
        mean.append(float(np.mean((test[:, 7] - np.clip(average, -1, 1)) ** 2)))
        values, vectors = np.linalg.eigh(sums.gram)
        rotated = vectors.T @ sums.cross
        ridges.append(
            [
                error(sums.in_columns(vectors @ (rotated / (np.maximum(values, 0) + r))), test)
                for r in sums.deviation * np.geomspace(0.3, 30, 8)
            ]
        )
    assert np.mean(shrunk) < np.mean(mean) * 1.02
    assert np.mean(shrunk) < np.mean(ridges, axis=0).min() * 1.02
    assert np.mean(shrunk) > NOISE**2 * 0.9


@pytest.mark.parametrize("indefinite", [False, True])
def test_readings_are_those_of_the_formula(indefinite) -> None:
    """θ̂ = PA·T⁻¹t and Θ by inverses, three passes, also where T is not positive definite."""
    generator = np.random.default_rng(0)
    root = generator.normal(size=(3, 5, 5))
    gram, first, second = (one @ one.T for one in root)
    seen, blur, left = generator.normal(size=5), np.full(5, 0.3), np.array([0.1, 0.2, 0.4])
    factors, log_prior = np.array([0.5, 1.0, 3.0]), np.array([0.0, 0.3, -0.2])
    variance = np.full((5, 5), 0.2)

    def noise(moment):
        return variance * moment - (50.0 * np.eye(5) if indefinite else 0.0)

    weights, theta, mean = read_linearly(
        (first, second), factors, gram, seen, blur, left, noise, log_prior, with_second=True
    )
    logs, moments = [], []
    for place, factor in enumerate(factors):
        prior = first + factor * second
        moment = prior
        for _ in range(3):
            total = gram @ prior @ gram + np.diag(blur) + left[place] * gram + noise(moment)
            gain = prior @ gram @ np.linalg.inv(total)
            moment = np.outer(gain @ seen, gain @ seen) + prior - gain @ gram @ prior
        assert (np.linalg.eigvalsh(total)[0] < 0) == indefinite
        np.testing.assert_allclose(theta[place], gain @ seen, rtol=1e-9)
        distance = seen @ np.linalg.solve(total, seen)
        logs.append(log_prior[place] - (np.linalg.slogdet(total)[1] + distance) / 2)
        moments.append(moment)
    expected = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-9)
    np.testing.assert_allclose(mean, np.tensordot(weights, moments, 1), rtol=1e-8, atol=1e-9)
    again = read_linearly((first, second), factors, gram, seen, blur, left, noise, log_prior)
    np.testing.assert_allclose(again[1], theta, rtol=1e-9)


@pytest.mark.parametrize("size", [0.02, 0.3, 3.0])
def test_factors_that_are_not_probable_are_not_looked_at(size, monkeypatch) -> None:
    """Of many entries few factors matter, and the result is that of all, by inverses."""
    generator = np.random.default_rng(1)
    p, factors = 120, np.geomspace(1e-3, 1e3, 13)
    root = generator.normal(size=(p, 2 * p)) / np.sqrt(2 * p)
    gram, first, second = root @ root.T, np.zeros((p, p)), np.eye(p)
    blur, left, variance = np.full(p, 0.01), np.full(13, 0.01), np.full((p, p), 1e-4)
    seen = gram @ (size * generator.normal(size=p)) + 0.1 * generator.normal(size=p)
    looked_at = []
    read_once = shrinkage.read_once

    def counted(*given):
        looked_at.append(given[2])
        return read_once(*given)

    monkeypatch.setattr(shrinkage, "read_once", counted)
    known = (first, second), factors, gram, seen, blur, left, lambda moment: variance * moment
    weights, theta, mean = read_linearly(*known, np.zeros(13), with_second=True)
    assert 3 <= sum(looked_at) < 3 * len(factors)  # passes in which Θ was needed
    logs, found, moments = [], [], []
    for factor in factors:
        prior = moment = factor * second
        for _ in range(3):
            total = gram @ prior @ gram + np.diag(blur) + 0.01 * gram + variance * moment
            gain = prior @ gram @ np.linalg.inv(total)
            moment = np.outer(gain @ seen, gain @ seen) + prior - gain @ gram @ prior
        logs.append(-(np.linalg.slogdet(total)[1] + seen @ np.linalg.solve(total, seen)) / 2)
        found.append(gain @ seen)
        moments.append(moment)
    expected = np.exp(np.array(logs) - max(logs))
    expected /= expected.sum()
    np.testing.assert_allclose(weights, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(weights @ theta, expected @ np.array(found), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(mean, np.tensordot(expected, moments, 1), rtol=1e-7, atol=1e-10)
