"""Draws have the law that the sums claim, and the bootstrap agrees with the covariance."""

import numpy as np
import pytest

from blurfit.errors import InfeasibleError
from blurfit.learning.inference import infer
from blurfit.learning.joint_sums import JointColumn, JointSums, clean_sums
from blurfit.simulation.joint_sampler import bootstrap, draw_joint_sums, draw_noise
from blurfit.theory.joint import sensitivity

COLUMNS = (
    JointColumn("age", 0.5),
    JointColumn("owner", 0.4, "sign"),
    JointColumn("region=n", 0.45, "level", "region"),
    JointColumn("y", 0.6),
)
CONSTANT = 0.4


def sums_of(count: int, mu: float, seed: int) -> JointSums:
    generator = np.random.default_rng(seed)
    age, owner = generator.uniform(-1, 1, count), generator.choice([-1.0, 1.0], count)
    north = (generator.uniform(size=count) < 0.4).astype(float)
    y = 0.3 * age - 0.1 * owner + 0.2 * north + 0.1 * generator.normal(size=count)
    clean = clean_sums(COLUMNS, CONSTANT, np.column_stack([age, owner, north, y]))
    deviation = sensitivity(CONSTANT, 1.0) / mu
    return draw_joint_sums(COLUMNS, CONSTANT, count, clean, deviation, generator)


def test_noise_has_the_variances_and_ties_that_it_was_given() -> None:
    noise = sums_of(100, 0.5, seed=1).noise
    generator = np.random.default_rng(2)
    drawn = np.array([draw_noise(noise, generator) for _ in range(4000)])
    np.testing.assert_allclose(drawn.var(axis=0), noise.variance, rtol=0.12, atol=1e-12)
    np.testing.assert_allclose(drawn, drawn.transpose(0, 2, 1))
    tied = np.mean(drawn[:, 0, 3] * drawn[:, 3, 3])
    assert tied == pytest.approx(noise.ties[3], rel=0.12)


def test_the_bootstrap_agrees_with_the_covariance() -> None:
    sums = sums_of(5000, 1.0, seed=3).submodel("y")
    found = infer(sums)
    drawn = bootstrap(sums, 600, np.random.default_rng(4))
    errors = np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(drawn.std(axis=0), errors, rtol=0.15)
    assert np.all(np.abs(drawn.mean(axis=0) - found.coefficients) < 0.25 * errors)


def test_the_bootstrap_is_refused_where_intervals_are() -> None:
    with pytest.raises(InfeasibleError, match="collect more records"):
        bootstrap(sums_of(50, 0.02, seed=5).submodel("y"), 10, np.random.default_rng(6))
