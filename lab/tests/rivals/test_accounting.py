"""Accounting for noisy steps against the exact Gaussian profile and a second accountant."""

import math

import dp_accounting
import pytest
from dp_accounting import rdp

from blurfit import NotCertifiedError
from blurfit.theory.gaussian import delta_of, mu_of
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


def test_so_small_a_delta_that_the_accountant_cannot_tell_it_is_refused() -> None:
    with pytest.raises(NotCertifiedError, match="delta=1e-300"):
        least_noise_multiplier(0.1, 1e-300, steps=3, sampling_rate=0.5, neighbours="zero-out")
