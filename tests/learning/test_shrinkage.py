"""The reading follows from public facts, and nothing else."""

import math

import numpy as np
import pytest
from joint_people import collected

from blurfit.learning.shrinkage import (
    information,
    linear_bayes,
    mean_posterior,
    mean_within,
    reading,
    shrink,
    variance_posterior,
)
from blurfit.learning.sums import JointColumn, JointSums
from support.joint_sums import clean_sums


def test_psi_is_read_off_the_noise() -> None:
    sums = collected(1000, 0.3, np.random.default_rng(1)).submodel("y")
    assert information(sums) == pytest.approx(1000 * 0.3 / 7**1.5, rel=1e-6)


@pytest.mark.parametrize(("count", "mu"), [(500, 0.3), (50_000, 1.0)])
def test_where_slopes_can_be_told_they_are_read_by_linear_bayes(count, mu) -> None:
    sums = collected(count, mu, np.random.default_rng(2)).submodel("y")
    assert reading(sums) == "linear-bayes"
    assert np.array_equal(shrink(sums).theta, linear_bayes(sums).theta)


def test_where_the_noise_leaves_nothing_else_the_model_is_the_mean() -> None:
    columns = tuple(JointColumn(f"x{j}", 0.3) for j in range(5))
    values = np.random.default_rng(4).uniform(-1, 1, (60, 5))
    sums = JointSums(columns, 0.5, 60, clean_sums(columns, 0.5, values), 20.0).submodel("x4")
    found = shrink(sums)
    assert reading(sums) == "mean"
    assert (found.coefficients[1:] == 0).all()
    assert found.coefficients[0] == pytest.approx(mean_posterior(sums)[0] / 0.3)


@pytest.mark.parametrize("deviation", [0.0, 1e-9, 1e-4, 1e-2])
@pytest.mark.parametrize("seen", [-1.0, 0.2, 1.1])
def test_a_mean_that_is_told_exactly_is_taken(deviation, seen) -> None:
    matrix = np.array([[15, 0, 15 * seen], [0, 1, 0], [15 * seen, 0, 15]])
    columns = (JointColumn("x", 0.3), JointColumn("y", 0.5))
    mean, variance = mean_posterior(JointSums(columns, 0.5, 60, matrix, deviation).submodel("y"))
    assert mean / 0.5 == pytest.approx(min(seen, 1.0), abs=0.003)
    assert 0 <= variance <= (0.01 * deviation) ** 2 + deviation**2


@pytest.mark.parametrize("deviation", [1.0, 3.0, 20.0])
@pytest.mark.parametrize("seen", [-0.8, 0.1, 0.6, 3.0])
def test_a_mean_alone_is_a_posterior_mean_within_the_bounds(deviation, seen) -> None:
    """By another route: in polar coordinates the prior is dρ dφ/√sin φ."""
    columns = (JointColumn("x", 0.3), JointColumn("y", 0.5))
    matrix = 60 * np.outer([0.5, 0.3, 0.5], [0.5, 0.3, 0.5]) * np.array([[1, 0, seen]] * 3)
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    matrix[2, 2] = 60 * 0.25 * 0.5
    sums = JointSums(columns, 0.5, 60, matrix, deviation).submodel("y")
    rho, phi = np.meshgrid((np.arange(800) + 0.5) / 800, np.pi * (np.arange(1600) + 0.5) / 1600)
    m, square = rho * np.cos(phi), rho**2
    noise = deviation / math.sqrt(2) / (60 * 0.25), deviation / (60 * 0.25)
    log = -((m - seen) ** 2) / (2 * noise[0] ** 2) - (square - 0.5) ** 2 / (2 * noise[1] ** 2)
    weight = np.exp(log - log.max()) / np.sqrt(np.sin(phi))
    mean, variance = mean_posterior(sums)
    expected = np.sum(weight * m) / np.sum(weight)
    assert mean / 0.5 == pytest.approx(expected, abs=0.02)
    assert variance / 0.25 == pytest.approx(
        np.sum(weight * (m - expected) ** 2) / np.sum(weight), rel=0.1, abs=0.003
    )


@pytest.mark.parametrize("deviation", [5.0, 20.0, 200.0, 2e4, 2e9, 2e14])
def test_where_the_noise_leaves_nothing_else_a_label_is_its_share(deviation) -> None:
    """By quadrature over all shares, which are as likely before; and no label is impossible."""
    columns = (JointColumn("x", 0.3), JointColumn("y", 0.9, "sign"))
    values = np.array([[0.1, -1.0]] * 60)
    sums = JointSums(columns, 1.0, 60, clean_sums(columns, 1.0, values), deviation).submodel("y")
    found = shrink(sums)
    assert reading(sums) == "mean"
    assert (found.coefficients[1:] == 0).all()
    shares = np.linspace(-1, 1, 200_001)
    noise = math.sqrt(sums.noise.variance[0, -1]) / (60 * 0.9)
    likely = np.exp(-(((shares - sums.cross[0] / (60 * 0.9)) / noise) ** 2) / 2)
    assert found.coefficients[0] == pytest.approx((shares * likely).sum() / likely.sum(), abs=1e-5)
    assert -1 < found.coefficients[0] < 1


@pytest.mark.parametrize("width", [1.0, 0.03, 0.001])
def test_a_variance_is_read_as_it_is_once_the_noise_is_small(width) -> None:
    for noise in (1e-3, 1e-6, 1e-9, 1e-12):
        found = variance_posterior(width**2 / 3, noise, 1.0)
        assert abs(found - width**2 / 3) <= 8 * math.sqrt(noise)


def test_without_noise_psi_is_infinite() -> None:
    columns = (JointColumn("a", 0.5), JointColumn("y", 0.5))
    values = np.random.default_rng(5).uniform(-1, 1, (60, 2))
    sums = JointSums(columns, 0.5, 60, clean_sums(columns, 0.5, values), 0.0).submodel("y")
    assert information(sums) == math.inf
    np.testing.assert_allclose(
        shrink(sums).theta, np.linalg.solve(sums.gram, sums.cross), rtol=0.3, atol=0.05
    )


@pytest.mark.parametrize("deviation", [1e-3, 0.3, 1.0, 999.0, 1001.0, 1e6, 1e10, 1e17])
def test_a_share_is_within_its_bounds_whatever_noise_says(deviation) -> None:
    """By quadrature; what is far out counts as five deviations beyond the end, on either side."""
    steps = np.linspace(-1, 1, 200_001)
    for seen in (-30 * deviation, -1.3 * deviation, 0.4 * deviation, 9 * deviation, 0.8):
        found = mean_within(seen, deviation, 1.0)
        near = math.copysign(min(abs(seen), 1 + 5 * deviation), seen)
        logs = (steps * near - steps**2 / 2) / deviation**2
        likely = np.exp(logs - logs.max())
        assert found == pytest.approx((steps * likely).sum() / likely.sum(), rel=1e-3, abs=1e-15)
        assert abs(found) < 1


@pytest.mark.parametrize("share", [0.5, 0.03])
def test_what_a_line_explains_of_a_label_falls_with_its_variance(share) -> None:
    """Where noise rules, so that the prior is what is left: log-odds of one spread S explain VS²/4
    of a label, and a rare one has as much less.
    """
    generator = np.random.default_rng(5)
    v, y = np.clip(0.4 * generator.normal(size=(4000, 6)), -1, 1), np.full(4000, -1.0)
    y[: round(4000 * share)] = 1.0
    columns = [JointColumn(f"v{place}", 0.35, "numeric") for place in range(6)]
    columns.append(JointColumn("y", 0.5, "sign"))
    clean = clean_sums(columns, 0.4, np.column_stack([v, y]))
    sums = JointSums(columns, 0.4, 4000, clean, 4000.0).submodel("y")
    plain = JointSums([*columns[:-1], JointColumn("y", 0.5, "numeric")], 0.4, 4000, clean, 4000.0)
    label, number = linear_bayes(sums).explained, linear_bayes(plain.submodel("y")).explained
    variance = 4 * share * (1 - share)
    assert label == pytest.approx(variance * number, rel=0.3)
