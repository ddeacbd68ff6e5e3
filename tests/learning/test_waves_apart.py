"""Two waves of honest people differ by chance alone."""

import itertools
import math

import numpy as np
import pytest

from blurfit.learning.inference import Inference, estimates_apart, limit


def spiky(count):
    """Nearly everybody sends 0, and a few send a lot."""
    found = np.zeros((count, 2))
    found[0], found[1, 0] = (1000.0, -1000.0), 1e6
    return found


@pytest.mark.parametrize("rows", [np.eye(14), spiky(14), np.arange(28.0).reshape(14, 2) ** 3])
def test_chance_passes_the_limit_as_rarely_as_is_said_whatever_is_sent(rows) -> None:
    """All 2¹⁴ signs of independent rows, each as likely as any other."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(rows))))
    squares = np.linalg.pinv(rows.T @ rows)
    sums = signs @ rows
    sizes = np.einsum("ij,jk,ik->i", sums, squares, sums)
    rank = np.linalg.matrix_rank(rows)
    for false_alarm in (0.5, 0.1, 0.01, 0.001):
        assert np.mean(sizes > limit(rank, false_alarm)) <= false_alarm


def test_the_limit_is_above_that_of_normal_numbers_and_not_far() -> None:
    rng = np.random.default_rng(1)
    for k in (1, 5, 40):
        point = np.quantile(rng.chisquare(k, 400_000), 0.999)
        assert point < limit(k, 0.001) < 2 * point


def told(coefficients) -> Inference:
    cov = np.diag([0.01, 0.04])
    names = ("(intercept)", "age")
    return Inference(names, 100, np.array(coefficients), cov, cov, None, None, 0.0, False)


def test_estimates_are_compared_with_their_errors() -> None:
    """T² = gap²/(2·(3 + 1)·0.04), for sampling parts are taken three times."""
    least = math.sqrt(limit(2) * 2 * (3 + 1) * 0.04)
    assert not estimates_apart(told([1.0, 2.0]), told([1.0, 2.0 + 0.99 * least]))
    assert estimates_apart(told([1.0, 2.0]), told([1.0, 2.0 + 1.01 * least]))
