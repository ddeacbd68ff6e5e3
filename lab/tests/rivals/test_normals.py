"""Noise against its stated distribution."""

import numpy as np
import pytest
from scipy.stats import gamma, kstest, uniform

from blurfit_lab.rivals.rival import exponential_in_norm


@pytest.mark.statistical
def test_length_is_gamma_and_direction_is_uniform() -> None:
    generator = np.random.default_rng(3)
    drawn = np.array([exponential_in_norm(3, 0.5, generator) for _ in range(20_000)])
    lengths = np.linalg.norm(drawn, axis=1)
    assert kstest(lengths, gamma(3, scale=2).cdf).pvalue > 1e-3
    # Archimedes: each coordinate of a uniform direction in three dimensions is uniform
    heights = (drawn / lengths[:, None])[:, 1]
    assert kstest(heights, uniform(-1, 2).cdf).pvalue > 1e-3


def test_in_one_dimension_it_is_laplace() -> None:
    generator = np.random.default_rng(4)
    drawn = np.array([exponential_in_norm(1, 2.0, generator)[0] for _ in range(20_000)])
    assert kstest(drawn, "laplace", args=(0, 0.5)).pvalue > 1e-3
