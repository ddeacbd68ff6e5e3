"""A step without noise is exact, with all noise it is none, in between it beats the plain one."""

import numpy as np

from blurfit.learning.shrinkage import StepSums, bayes_step
from blurfit.learning.sums import Noise

COUNT = 1000


def sums_of(
    gram: np.ndarray, theta: np.ndarray, noise: float, generator: np.random.Generator
) -> StepSums:
    """Sums of COUNT records whose quadratic has its least value at theta, blurred."""
    d = len(theta)
    upper = np.triu(generator.normal(size=(d, d)), 1) * noise / np.sqrt(2)
    blur = upper + upper.T + np.diag(generator.normal(size=d) * noise)
    variance = np.full((d, d), noise**2 / 2)
    np.fill_diagonal(variance, noise**2)
    return StepSums(
        COUNT,
        COUNT * gram + blur,
        COUNT * gram @ theta + generator.normal(size=d) * noise,
        Noise(variance),
        noise**2,
        float(gram[1, 1]),
        dispersion=1e-9,
    )


def white(d: int) -> np.ndarray:
    return np.diag([0.05, *[0.1] * (d - 1)])


def test_without_noise_the_step_is_exact() -> None:
    generator = np.random.default_rng(1)
    theta = generator.normal(size=6)
    gram = white(6)
    gram[2, 3] = gram[3, 2] = 0.01
    step = bayes_step(sums_of(gram, theta, 1e-6, generator), np.eye(6))
    assert np.allclose(step.theta, theta, rtol=1e-3, atol=1e-4)
    assert np.abs(step.covariance).max() < 1e-4


def test_noise_without_signal_gives_no_step() -> None:
    generator = np.random.default_rng(2)
    step = bayes_step(sums_of(white(6), np.zeros(6), 1e4, generator), 1e-2 * np.eye(6))
    assert np.linalg.norm(step.theta) < 0.1
    assert np.isfinite(step.covariance).all()
    assert np.linalg.eigvalsh(step.gram)[0] > 0


def test_it_beats_the_plain_step_and_knows_its_error() -> None:
    generator = np.random.default_rng(3)
    prior, ours, plain, told = 0.04 * np.eye(8), [], [], []
    for _ in range(60):
        theta = generator.normal(size=8) * 0.2
        sums = sums_of(white(8), theta, 15.0, generator)
        step = bayes_step(sums, prior)
        ours.append(((step.theta - theta) ** 2).sum())
        plain.append(((np.linalg.lstsq(sums.gram, sums.linear)[0] - theta) ** 2).sum())
        told.append(np.trace(step.covariance))
    assert np.mean(ours) < 0.8 * np.median(plain)
    assert 0.6 < np.mean(told) / np.mean(ours) < 1.7


def test_a_last_model_that_was_more_wrong_than_it_seemed_is_found_out() -> None:
    generator = np.random.default_rng(4)
    theta = np.full(8, 2.0)
    step = bayes_step(sums_of(white(8), theta, 1.0, generator), 0.25 * np.eye(8))
    assert step.factor > 4
    assert np.allclose(step.theta, theta, atol=0.2)
