"""Iterative Hessian Mixing: what its two calibrations keep, and the fit."""

import math
from dataclasses import replace

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit.theory.gaussian import delta_of
from blurfit_lab.rivals import IterativeHessianMixingRegressor
from blurfit_lab.rivals.mixing import Mixtures, noise_for


@pytest.mark.parametrize("neighbours", ["zero-out", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (1.0, 1e-6), (10.0, 1e-4)])
def test_both_calibrations_keep_the_promise_and_exact_wastes_nothing(
    epsilon, delta, neighbours
) -> None:
    mixtures = Mixtures.of_features(8, delta, 3)
    published, exact = (
        noise_for(epsilon, delta, 8, 3, neighbours, how) for how in ("published", "exact")
    )
    assert mixtures.kept(epsilon, published.gamma, neighbours, published.sigma) <= delta
    told = mixtures.kept(epsilon, exact.gamma, neighbours, exact.sigma)
    assert 0.99 * delta <= told <= delta
    assert exact.gamma < published.gamma
    assert exact.sigma < published.sigma


def test_the_gradients_alone_are_gaussian() -> None:
    """With no information in the mixtures, the integral is the Gaussian profile."""
    noise = noise_for(1.0, 1e-4, 8, 3, "zero-out", "published")
    mixtures = replace(Mixtures.of_features(8, 1e-4, 3), count=100)
    alone = mixtures.kept(1.0, 1e12, "zero-out", noise.sigma)
    mu = math.sqrt(3) / noise.sigma
    assert alone == pytest.approx(delta_of(mu, 1.0), abs=1e-6)


def test_published_noise_is_the_papers() -> None:
    """k = 6·max(d, ln(4T/ϱ)) with ϱ = δ/10."""
    assert Mixtures.of_features(40, 1e-6, 3).count == 240
    assert Mixtures.of_features(5, 1e-6, 3).count == int(6 * math.log(12 / 1e-7))


def test_without_privacy_it_is_least_squares() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (500, 2))
    y = x @ [0.5, -0.3] + 0.1
    terms = {"epsilon": 1e7, "bounds": (-1, 1), "target_bounds": (-1, 1), "random_state": 0}
    for accounting in ("published", "exact"):
        model = IterativeHessianMixingRegressor(accounting=accounting, steps=9, **terms).fit(x, y)
        assert model.coef_ == pytest.approx([0.5, -0.3], abs=0.01)
        assert model.intercept_ == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("parameters", [{"steps": 0}, {"accounting": "modern"}])
def test_what_cannot_be_is_refused_by_name(parameters) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(parameters))):
        IterativeHessianMixingRegressor(**parameters).promise()
