"""The theorem about a database's own noise, by other routes."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from blurfit.theory.gaussian import delta_of
from blurfit.theory.moments import total_deviation, variance_factor


def test_the_deviation_is_that_of_independent_parts() -> None:
    """By simulation: N contributors of variance σ²/n, and k databases of σ²."""
    generator, sigma, quorum, count, draws = np.random.default_rng(1), 3.0, 20, 30, 2
    parts = generator.normal(0, sigma / math.sqrt(quorum), (40_000, count)).sum(axis=1)
    parts += generator.normal(0, sigma, (40_000, draws)).sum(axis=1)
    assert total_deviation(sigma, quorum, count, draws) == pytest.approx(parts.std(), rel=0.02)


@pytest.mark.parametrize("honest", [1, 7, 20])
@pytest.mark.parametrize("draws", [0, 1, 2])
def test_delta_by_integrating_the_likelihood_ratio(honest, draws) -> None:
    """δ(ε) = ∫(p − e^ε·q)₊ of what an attacker sees who knows all other noise."""
    sigma, quorum, reach, epsilon = 4.0, 20, 1.5, 0.3
    deviation = math.sqrt(honest * sigma**2 / quorum + draws * sigma**2)
    x = np.linspace(-12, 12, 400_001) * deviation
    first, second = norm.pdf(x, 0, deviation), norm.pdf(x, reach, deviation)
    numeric = np.trapezoid(np.maximum(first - math.exp(epsilon) * second, 0), x)
    mu = reach / total_deviation(sigma, quorum, honest, draws)
    assert delta_of(mu, epsilon) == pytest.approx(numeric, rel=1e-5, abs=1e-12)


def test_one_premise_suffices_and_costs_twice_or_three_times_the_variance() -> None:
    """μ ≤ Δ/σ if a quorum is honest, or one database is; and far beyond it if neither is."""
    promised = 2.0 / 10.0
    for honest, draws in ((100, 0), (1, 1), (1, 2), (250, 2)):
        assert 2.0 / total_deviation(10.0, 100, honest, draws) <= promised
    assert 2.0 / total_deviation(10.0, 100, 1, 0) == pytest.approx(10 * promised)
    assert variance_factor(50, 50, 1) == pytest.approx(2)
    assert variance_factor(50, 50, 2) == pytest.approx(3)
    assert variance_factor(50, 5000, 2) == pytest.approx(1.02)
    assert variance_factor(50, 70, 0) == 1
