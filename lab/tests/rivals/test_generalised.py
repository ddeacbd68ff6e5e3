"""Generalised objective perturbation: its profile by drawing and by quadrature, and the fit."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi

from blurfit import InvalidValueError
from blurfit.theory.gaussian import mu_of
from blurfit_lab.rivals import (
    GeneralisedObjectivePerturbationClassifier,
    GeneralisedObjectivePerturbationRegressor,
    ObjectivePerturbationClassifier,
)
from blurfit_lab.rivals.perturbation import MOST_NOISE, calibrate, delta_kept
from blurfit_lab.rivals.rival import LogisticRisk


@pytest.mark.parametrize(("neighbours", "freedom"), [("zero-out", 1), ("replace", 2)])
@pytest.mark.parametrize("m", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("headroom", [0.05, 1.0, 6.0])
def test_the_profile_is_the_mean_over_a_length(neighbours, freedom, m, headroom) -> None:
    """E[(1 − exp(headroom − m²/2 − mX))₊] with X ~ χ, by quadrature of the definition."""
    start = max(0.0, (headroom - m * m / 2) / m)

    def integrand(x):
        return -math.expm1(headroom - m * m / 2 - m * x) * chi.pdf(x, freedom)

    expected, _ = quad(integrand, start, start + 40, epsabs=1e-14, limit=200)
    assert delta_kept(m, headroom, neighbours) == pytest.approx(expected, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("neighbours", ["zero-out", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (1.0, 1e-6), (10.0, 1e-4)])
def test_the_calibration_spends_delta_and_no_more(epsilon, delta, neighbours) -> None:
    change = 2.0 if neighbours == "replace" else 1.0
    found = calibrate(epsilon, delta, 0.25, change, neighbours)
    headroom = epsilon - math.log1p(0.25 / found.ridge)
    assert delta_kept(change / found.scale, headroom, neighbours) == pytest.approx(delta, rel=1e-5)
    plain = change / mu_of(epsilon, delta)
    assert plain < found.scale
    assert found.scale <= MOST_NOISE * plain or headroom > 0.98 * epsilon


def test_the_release_itself_on_the_worst_neighbours() -> None:
    """d = 1, one record against none: the log-ratio of w's densities, drawn, keeps δ."""
    epsilon, delta, trials = 1.0, 0.02, 200_000
    found = calibrate(epsilon, delta, 0.25, 1.0, "zero-out")
    b = found.scale * np.random.default_rng(0).standard_normal(trials)
    w = -b / found.ridge  # no record: ridge·w + b = 0

    def slope(w):  # of the record x = 1, y = 1
        return -1 / (1 + np.exp(w))

    other = -slope(w) - found.ridge * w  # the b that gives this w with the record
    curvature = np.exp(w) / (1 + np.exp(w)) ** 2
    loss = (other**2 - b**2) / (2 * found.scale**2) - np.log1p(curvature / found.ridge)
    drawn = np.maximum(0, -np.expm1(epsilon - loss)).mean()
    backwards = np.maximum(0, np.exp(-loss) - math.exp(epsilon)).mean()
    for found_delta in (drawn, backwards):
        assert found_delta <= delta * 1.05
    assert max(drawn, backwards) > 0.1 * delta


def test_less_noise_than_the_published_rule_of_2012() -> None:
    rule = ObjectivePerturbationClassifier(epsilon=1.0, delta=1e-6, neighbours="zero-out")
    published = rule.perturbation(LogisticRisk([(np.ones((1, 1)), np.ones(1))]))
    assert calibrate(1.0, 1e-6, 0.25, 1.0, "zero-out").scale < 0.6 * published.scale


def test_without_privacy_they_are_the_plain_fits() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, (500, 2))
    y = x @ [0.5, -0.3] + 0.1
    model = GeneralisedObjectivePerturbationRegressor(
        epsilon=1e6, bounds=(-1, 1), target_bounds=(-1, 1)
    ).fit(x, y)
    assert model.coef_ == pytest.approx([0.5, -0.3], abs=1e-3)
    labels = y + 0.2 * generator.standard_normal(500) > 0.1
    fitted = GeneralisedObjectivePerturbationClassifier(epsilon=50.0, bounds=(-1, 1)).fit(x, labels)
    assert fitted.score(x, labels) > 0.8


def test_a_clip_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="clip"):
        GeneralisedObjectivePerturbationRegressor(
            clip=0.0, bounds=(-1, 1), target_bounds=(-1, 1)
        ).fit([[0.0], [1.0]], [0.0, 1.0])
