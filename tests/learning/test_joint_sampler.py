"""Draws have the law that the sums claim, and the bootstrap agrees with the covariance."""

from dataclasses import replace

import numpy as np

from blurfit.learning.inference import debiased, infer
from blurfit.learning.sums import JointColumn, JointSums, Noise, Submodel
from blurfit.theory.moments import sensitivity
from support.joint_sums import clean_sums, draw_joint_sums

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


def draw_noise(noise: Noise, generator: np.random.Generator) -> np.ndarray:
    """One E of this law: entries that are public have no noise, and some are tied."""
    size = len(noise.variance)
    upper = np.triu(generator.normal(size=(size, size)) * np.sqrt(noise.variance))
    for _, row, _, _ in noise.pairs:  # one noise is behind both, times their deviations
        ratio = noise.variance[row, row] / noise.variance[0, row]
        upper[row, row] = upper[0, row] * np.sqrt(ratio)
    return upper + np.triu(upper, 1).T


def bootstrap(sums: Submodel, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Coefficients of so many simulated collections, one per row, around those of `infer`.

    The features stay as they are (Â); Σze ~ N(0, σ̂²Â) and Σe² follow a Gaussian residual, and E is
    drawn from its exact law. Draws that are no longer positive definite are kept: they are what
    would happen.
    """
    model = infer(sums)
    theta = model.coefficients * sums.target.weight / sums.scale
    variance = model.residual_variance * sums.target.weight**2
    size = len(theta)
    root = np.linalg.cholesky(sums.gram)
    found = np.empty((draws, size))
    for draw in range(draws):
        standard = generator.normal(size=size)
        residual = np.sqrt(variance) * root @ standard
        squares = variance * (standard @ standard + generator.chisquare(sums.count - size))
        cross = sums.gram @ theta + residual
        square = theta @ sums.gram @ theta + 2 * theta @ residual + squares
        noise = draw_noise(sums.noise, generator)
        again = replace(
            sums,
            gram=sums.gram + noise[:-1, :-1],
            cross=cross + noise[:-1, -1],
            square=float(square + noise[-1, -1]),
        )
        found[draw] = sums.in_columns(debiased(again))
    return found


def test_the_bootstrap_agrees_with_the_covariance() -> None:
    sums = sums_of(5000, 1.0, seed=3).submodel("y")
    found = infer(sums)
    drawn = bootstrap(sums, 600, np.random.default_rng(4))
    errors = np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(drawn.std(axis=0), errors, rtol=0.15)
    assert np.all(np.abs(drawn.mean(axis=0) - found.coefficients) < 0.25 * errors)
