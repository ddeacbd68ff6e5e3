"""Accounting for noisy steps against the exact Gaussian profile and a second accountant."""

import math

import dp_accounting
import pytest
from dp_accounting import rdp

from blurfit.theory.gaussian import delta_of, mu_of
from blurfit_lab.rivals import gradient
from blurfit_lab.rivals.gradient import delta_of_steps, least_noise_multiplier


@pytest.mark.parametrize(("neighbours", "distance"), [("replace", 2.0), ("zero-out", 1.0)])
def test_without_sampling_it_is_one_gaussian(neighbours, distance) -> None:
    found = delta_of_steps(20.0, 0.5, steps=100, sampling_rate=1.0, neighbours=neighbours)
    exact = delta_of(distance * math.sqrt(100) / 20, 0.5)
    assert exact <= found <= exact * 1.01


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_least_noise_without_sampling(epsilon) -> None:
    found = least_noise_multiplier(
        epsilon, 0.01, steps=64, sampling_rate=1.0, neighbours="zero-out"
    )
    exact = math.sqrt(64) / mu_of(epsilon, 0.01)
    assert exact <= found <= exact * 1.001


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_sampling_needs_less_noise_and_rdp_agrees(neighbours) -> None:
    """Rényi accounting is a valid bound by another theory, and looser: its δ must be larger."""
    terms = {"steps": 20, "neighbours": neighbours}
    z = least_noise_multiplier(0.3, 1e-3, sampling_rate=0.05, **terms)
    assert z < 0.5 * least_noise_multiplier(0.3, 1e-3, sampling_rate=1.0, **terms)
    kept = delta_of_steps(z, 0.3, sampling_rate=0.05, **terms)
    assert 0.999e-3 < kept <= 1e-3
    if neighbours == "zero-out":  # the only relation for which RDP takes Poisson samples
        oracle = rdp.RdpAccountant()
        event = dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(z))
        assert oracle.compose(event, 20).get_delta(0.3) >= kept


@pytest.mark.parametrize("slope", [-30.0, -1e-6, 0.0, 1e-6, 0.3, 3.0, 30.0, 3e5, math.nan])
@pytest.mark.parametrize("start", [0.9, 0.999, 1.00001, 1.1])
def test_no_noise_is_returned_that_saves_less_than_nothing(slope, start) -> None:
    """However wrong the slope is, which a δ near the accountant's rounding makes so; nor is so
    little noise tried that a grid of its losses would fill the memory.
    """
    tried = []

    def saved(z: float) -> float:  # by slope 3, above 0 from z = 5 on
        tried.append(z)
        return 3 * math.log(z / 5)

    found = gradient._least_kept(saved, 5 * start, slope)
    assert found is None or saved(found) >= 0
    assert min(tried, default=5) > 2
    if slope == 3:
        assert found <= 5 * (1 + 1e-4)
        assert len(tried) <= 4
