"""Bounds from counts: against SciPy's binomial intervals, and as often right as they say."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from blurfit import InvalidValueError
from blurfit.audit.examination import (
    Event,
    choose_event,
    counted_epsilon,
    epsilon_floor,
    gaussian_mu,
    proportion_ceiling,
    proportion_floor,
)
from blurfit.theory.gaussian import epsilon_of


@pytest.mark.parametrize(("count", "trials"), [(0, 10), (1, 10), (5, 10), (10, 10), (37, 4000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_proportions_are_clopper_and_pearsons(count: int, trials: int, alpha: float) -> None:
    least = binomtest(count, trials, alternative="greater").proportion_ci(1 - alpha, "exact").low
    most = binomtest(count, trials, alternative="less").proportion_ci(1 - alpha, "exact").high
    assert proportion_floor(count, trials, alpha) == pytest.approx(least, rel=1e-9)
    assert proportion_ceiling(count, trials, alpha) == pytest.approx(most, rel=1e-9)


def test_epsilon_by_hand() -> None:
    p = binomtest(900, 1000, alternative="greater").proportion_ci(0.975, "exact").low
    q = binomtest(100, 1000, alternative="less").proportion_ci(0.975, "exact").high
    assert epsilon_floor(900, 100, 1000, 0.01, 0.05) == pytest.approx(math.log((p - 0.01) / q))
    assert epsilon_floor(100, 900, 1000, 0.01, 0.05) == 0
    assert epsilon_floor(5, 0, 1000, 0.9, 0.05) == 0  # δ covers it


def test_the_best_event_is_found_on_either_side() -> None:
    generator = np.random.default_rng(0)
    low, high = generator.normal(size=(2, 4000)) + np.array([[0], [2]])
    for first, second in ((high, low), (low, high)):
        event = choose_event(first, second, 1e-5, 0.01)
        shown = counted_epsilon(event, first, second, 1e-5, 0.01)
        assert shown > 3
    seldom = np.where(generator.random(4000) < 0.5, 7.0, low)  # an atom that only one side has
    event = choose_event(seldom, low, 1e-5, 0.01)
    assert counted_epsilon(event, seldom, low, 1e-5, 0.01) > 4


def test_lower_bounds_hold_as_often_as_they_say() -> None:
    """Laplace noise with ε = 1: randomised over runs, too large a bound must stay rarer than α.

    Bounds that are wrong twice as often would be caught in 99 of 100 such tests.
    """
    generator = np.random.default_rng(1)
    alpha, wrong, runs = 0.05, 0, 200
    for _ in range(runs):
        first, second, third, fourth = generator.laplace(size=(4, 500))
        event = choose_event(first + 1, second, 0.0, alpha)
        wrong += counted_epsilon(event, third + 1, fourth, 0.0, alpha) > 1
    assert wrong <= runs * alpha


@pytest.mark.parametrize("mu", [0.0, 0.3, 2.0, 6.0, 45.0])
def test_gaussian_mu_is_a_lower_bound_and_near(mu: float) -> None:
    generator = np.random.default_rng(int(10 * mu))
    trials, wrong = 20_000, 0
    for _ in range(20):
        scores = generator.normal(size=(4, trials)) + np.array([[mu], [0], [mu], [0]])
        found = gaussian_mu((scores[0], scores[1]), (scores[2], scores[3]), 0.01, bridge=True)
        wrong += found > mu
        if mu >= 2:
            assert epsilon_of(found, 1e-6) > 0.9 * epsilon_of(mu, 1e-6)
    assert wrong <= 1
    swapped = gaussian_mu((scores[1], scores[0]), (scores[3], scores[2]), 0.01, bridge=True)
    assert swapped == pytest.approx(found)


def test_without_the_bridge_nothing_is_assumed() -> None:
    """Far apart: counting alone ends near Φ⁻¹ of one in the number of trials, on either side."""
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(4, 10_000)) + np.array([[45], [0], [45], [0]])
    pairs = (scores[0], scores[1]), (scores[2], scores[3])
    assert 5 < gaussian_mu(*pairs, 0.01, bridge=False) < 8 < gaussian_mu(*pairs, 0.01, bridge=True)


def test_no_noise_at_all_is_not_read_as_gaussian() -> None:
    constant = np.ones(100)
    assert gaussian_mu((constant, constant), (constant, constant), 0.01, bridge=True) == 0


def test_unequal_trials_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="3 and 2"):
        counted_epsilon(Event(0.0, True, False), np.ones(3), np.ones(2), 0.0, 0.05)
