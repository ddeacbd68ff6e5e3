"""Denoised moments are nearer to the truth, possible, and exact where nothing was blurred."""

import numpy as np
from joint_people import collected, people

from blurfit.learning.shrinkage import denoise, shrink, soft_floor


def test_denoised_moments_are_nearer_to_the_truth_than_the_blurred_ones() -> None:
    generator = np.random.default_rng(6)
    clean = np.cov(people(100_000, generator)[:, :7].T)
    blurred_error, denoised_error = 0.0, 0.0
    for _ in range(10):
        sums = collected(150, 0.5, generator).submodel("y")
        weights = sums.scale[1:]
        found = denoise(sums)
        gram, mean = sums.gram / sums.count, sums.gram[0, 1:] / (sums.count * sums.constant)
        blurred = gram[1:, 1:] - np.outer(mean, mean)
        units = np.outer(weights, weights)
        blurred_error += float(np.linalg.norm(blurred / units - clean))
        denoised_error += float(np.linalg.norm(found.covariance / units - clean))
        assert np.linalg.eigvalsh(found.covariance).min() > 0
    assert denoised_error < blurred_error * 0.7


def test_the_soft_floor_solves_its_problem() -> None:
    """(λ + √(λ² + 4α))/2 maximises α·log x − (x − λ)²/2, by its derivative."""
    matrix = np.diag([-2.0, 0.0, 0.1, 5.0])
    found = np.diag(soft_floor(matrix, 0.7))
    np.testing.assert_allclose(0.7 / found - (found - np.diag(matrix)), 0, atol=1e-12)


def test_without_noise_to_speak_of_nothing_changes() -> None:
    sums = collected(100_000, 1000.0, np.random.default_rng(8)).submodel("y")
    found = denoise(sums)
    np.testing.assert_allclose(found.gram(sums.constant), sums.gram / sums.count, atol=2e-4)
    assert found.kept > 0.999


def test_levels_of_one_question_exclude_each_other_and_may_be_all_features() -> None:
    """Their covariance is minus the product of their means, whatever the noise says of others."""
    sums = collected(2000, 2.0, np.random.default_rng(9)).submodel("y")
    found = denoise(sums)
    assert abs(found.covariance[5, 6] + found.mean[5] * found.mean[6]) < 1e-3
    assert np.all(found.mean[5:] >= 0)
    # No covariance is blurred then, and the matrix is singular but for the floor.
    sums = collected(2000, 2.0, np.random.default_rng(10)).submodel("y", ["region=n", "region=s"])
    found = denoise(sums)
    assert np.linalg.eigvalsh(found.covariance).min() > 0
    np.testing.assert_allclose(found.mean / sums.scale[1:], [0.5, 0.3], atol=0.1)
    assert np.isfinite(shrink(sums).coefficients).all()
