"""Searching only tightens: what it finds is what the theorem says at the shares it reports."""

import math

import pytest

from blurfit import InfeasibleError
from blurfit.input_perturbation.gradient_delta import least_epsilon
from blurfit.input_perturbation.theorem import (
    Scales,
    Setting,
    choose,
    curvature_loss,
    least_kept_epsilon,
    local_mu,
    standardised,
)

CASES = [
    (Setting(4, 300, 1.0, 1.0, 1.0), Scales(3.0, 20.0, 1.0)),
    (Setting(2, 5000, 0.5, 1.0, 2.0, "zero-out"), Scales(9.0, 30.0, -20.0)),
    (Setting(1, 10, 1.0, 1.0, 1.0), Scales(0.0, 10.0, 4.0)),
]


@pytest.mark.parametrize(("setting", "scales"), CASES)
def test_epsilon_is_the_theorems_at_the_reported_shares(setting, scales) -> None:
    epsilon, shares = least_kept_epsilon(setting, scales, 1e-5)
    assert shares.total == pytest.approx(1e-5, rel=1e-12)
    loss = curvature_loss(setting, scales.sigma_u, scales.ridge, shares)
    parts = standardised(setting, scales.sigma_b, loss)
    assert epsilon == least_epsilon(
        loss.determinant_loss, shares.gradient, *parts, setting.dimension
    )


def test_a_local_target_is_met_where_it_binds_and_infeasible_scales_say_why() -> None:
    setting = Setting(5, 2000, 1.0, 1.0, 1.0)
    for split in (None, 0.3):
        assert local_mu(setting, choose(setting, 1.0, 1e-6, split=split, local_mu=2.0).scales) == (
            pytest.approx(2.0, rel=1e-3)
        )
    assert local_mu(setting, Scales(0.0, 1.0, 1.0)) == math.inf
    with pytest.raises(InfeasibleError, match="more cannot be taken away"):
        least_kept_epsilon(Setting(4, 300, 1.0, 1.0, 1.0), Scales(1.0, 20.0, -2.0), 1e-5)
