"""The local method: unbiased and ε-locally private, by counting; and it learns."""

import math

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit_lab.rivals import LocalGradientClassifier, LocalGradientRegressor
from blurfit_lab.rivals.gradient import local_descent, sent_directions, sent_length, squared_slope


def test_in_one_dimension_it_is_randomised_response() -> None:
    assert sent_length(1.0, 1, 3.0) == pytest.approx(3 * (math.e + 1) / (math.e - 1))


def test_the_length_is_duchis() -> None:
    """As printed: B = r·(e^ε + 1)/(e^ε − 1)·√π·d·Γ((d−1)/2 + 1)/(2Γ(d/2 + 1))."""
    for d in (2, 5, 14):
        printed = math.sqrt(math.pi) * d * math.gamma((d - 1) / 2 + 1) / 2 / math.gamma(d / 2 + 1)
        expected = (math.exp(0.7) + 1) / (math.exp(0.7) - 1) * printed
        assert sent_length(0.7, d, 1.0) == pytest.approx(expected)


@pytest.mark.statistical
@pytest.mark.parametrize("steepness", [-0.9, 0.2])
def test_what_is_sent_is_unbiased(steepness) -> None:
    generator, runs, epsilon = np.random.default_rng(0), 400_000, 1.0
    x = np.array([0.6, -0.3, 0.2])
    directions = generator.standard_normal((runs, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    up = 0.5 + steepness * np.linalg.norm(x) / 2
    share = np.full(runs, truth * up + (1 - truth) * (1 - up))
    length = sent_length(epsilon, 3, 1.0)
    sent = length * sent_directions(
        directions, np.tile(x, (runs, 1)), share, generator.random(runs)
    )
    error = length / math.sqrt(runs)
    assert sent.mean(axis=0) == pytest.approx(steepness * x, abs=4 * error)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_two_records_are_told_apart_by_more_than_epsilon(epsilon) -> None:
    """The worst pair (full gradients, opposed): the two halves of the sphere, by counting."""
    generator, runs = np.random.default_rng(1), 400_000
    along = np.tile([0.8, 0.6], (runs, 1))
    shares = []
    for steepness in (1.0, -1.0):
        directions = generator.standard_normal((runs, 2))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        up = 0.5 + steepness / 2
        share = np.full(runs, truth * up + (1 - truth) * (1 - up))
        sent = sent_directions(directions, along, share, generator.random(runs))
        shares.append(float(np.mean(np.einsum("kd,kd->k", sent, along) > 0)))
    assert math.log(shares[0] / shares[1]) == pytest.approx(epsilon, abs=0.02)


@pytest.mark.statistical
def test_it_learns_from_many() -> None:
    generator = np.random.default_rng(2)
    x = generator.uniform(-1, 1, (20_000, 1))
    y = 0.8 * x[:, 0]
    few, many = (
        local_descent(
            x[:n],
            y[:n],
            squared_slope,
            epsilon=2.0,
            radius=1.0,
            lipschitz=2.0,
            runs=20,
            generator=generator,
        )
        for n in (200, 20_000)
    )
    assert np.abs(many - 0.8).mean() < 0.5 * np.abs(few - 0.8).mean()


def test_estimators_fit_and_say_what_they_need() -> None:
    generator = np.random.default_rng(3)
    X, y = generator.uniform(-1, 1, (300, 2)), generator.uniform(-1, 1, 300)
    model = LocalGradientRegressor(bounds=(-1, 1), target_bounds=(-1, 1), random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert LocalGradientClassifier(bounds=(-1, 1), weight_bound=2.0, random_state=0).fit(
        X, y > 0
    ).predict(X).shape == (300,)
    with pytest.raises(InvalidValueError, match="neighbours='zero-out'"):
        LocalGradientRegressor(neighbours="zero-out").promise()
    with pytest.raises(InvalidValueError, match="Expected rows"):
        LocalGradientRegressor().release(object(), generator)
