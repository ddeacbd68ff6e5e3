"""Searching only tightens: what it finds is what the theorem says at the shares it reports."""

import math
from fractions import Fraction

import mpmath
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


@pytest.mark.parametrize("debias", [True, False])
@pytest.mark.parametrize("local_mu", [None, 1.0])
def test_the_theorems_stated_numbers_bound_the_exact_ones(debias: bool, local_mu) -> None:
    """Each probability is evaluated at what is stated; each sum and quotient is exact."""
    for dimension, quorum, q_bound in ((1, 50, 1.0), (3, 2000, 0.7), (14, 30_000, 1.3)):
        setting = Setting(dimension, quorum, q_bound, 1.5, 0.8)
        found = choose(setting, 1.0, 1e-6, split=0.2, debias=debias, local_mu=local_mu)
        shares, loss = found.shares, found.loss
        parts = (shares.gram, shares.record, shares.record, shares.spectrum, shares.gradient)
        assert sum(map(Fraction, parts)) <= Fraction(1e-6)
        with mpmath.workdps(40):
            square = mpmath.mpf(found.scales.sigma_u) ** 2 / quorum
            floor = loss.gram_floor / square
            tail = mpmath.gammainc((quorum - dimension) / mpmath.mpf(2), 0, floor / 2)
            tail /= mpmath.gamma((quorum - dimension) / mpmath.mpf(2))
            assert tail <= shares.gram * (1 + mpmath.mpf(10) ** -9)
        floor, spectrum = Fraction(loss.gram_floor), Fraction(loss.spectrum_floor)
        ridge, convexity = Fraction(found.scales.ridge), Fraction(loss.strong_convexity)
        exact = floor + ridge if ridge >= 0 else floor * (1 + ridge / spectrum)
        assert exact * (1 - Fraction(1, 2**24)) <= convexity <= exact
        with mpmath.workdps(40):
            ratio = mpmath.mpf(loss.record_energy) / loss.strong_convexity
            assert mpmath.log1p(ratio) <= loss.determinant_loss
