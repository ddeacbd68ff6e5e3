"""How often a guess is right: against the best test of known pairs, and by simulation."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from blurfit.theory.gaussian import delta_of, epsilon_of
from blurfit.theory.moments import in_hundred, right_by_approximate, right_by_gaussian


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (0.5, 0.01), (1, 1e-6), (3, 0.2), (0, 0.3)])
def test_no_pair_of_laws_allows_more_and_one_allows_as_much(epsilon, delta) -> None:
    """The largest P(S) over all P(S), Q(S) that (ε, δ) allows, as a linear programme."""
    steep = np.exp(epsilon)
    limits = [[1, -steep], [-steep, 1], [-1, steep], [steep, -1]]
    bounds = [delta, delta, delta - 1 + steep, delta - 1 + steep]
    found = linprog([-0.5, 0.5], A_ub=limits, b_ub=bounds, bounds=[(0, 1)] * 2)
    assert right_by_approximate(epsilon, delta) == pytest.approx(0.5 - found.fun, abs=1e-9)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_the_gaussian_pair(mu) -> None:
    """Half the total variation, by the profile at ε = 0; and the (ε, δ) bound is never below."""
    exact = 0.5 + delta_of(mu, 0.0) / 2
    assert exact <= right_by_gaussian(mu) <= min(1, exact + 1.1e-3)
    for delta in (1e-9, 1e-3):
        assert right_by_approximate(epsilon_of(mu, delta), delta) >= exact - 1e-12


def test_simulated_guesses_and_rounding_to_the_safe_side() -> None:
    generator = np.random.default_rng(0)
    which = generator.integers(0, 2, 100_000)
    guesses = generator.normal(which * 0.8, 1) > 0.4
    assert np.mean(guesses == which) <= right_by_gaussian(0.8) + 0.005
    assert right_by_gaussian(0.8) == pytest.approx(norm.cdf(0.4), abs=2e-3)
    assert [in_hundred(share) for share in (0.5, 0.501, 0.55, 0.999, 1.0)] == [51, 51, 56, 100, 100]


def test_blank_records_are_two_steps_away() -> None:
    assert right_by_gaussian(0.5, "zero-out") == right_by_gaussian(1.0)
    two = right_by_approximate(2.0, (1 + np.e) * 1e-3)
    assert right_by_approximate(1.0, 1e-3, "zero-out") == pytest.approx(two)
    assert right_by_approximate(800.0, 0.5, "zero-out") == 1.0
