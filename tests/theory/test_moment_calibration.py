"""An exact Gaussian mechanism: its noise, its promise, and who may change either."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from blurfit.errors import InvalidValueError, NotCertifiedError
from blurfit.theory import gaussian
from blurfit.theory.moments import MomentCalibration, Reach, calibrate_moment

REACH = Reach(2.0, 2.5)
FOUND = calibrate_moment(1, 1e-6, reach=REACH, quorum=500)


def delta_by_quadrature(mu: float, epsilon: float) -> float:
    """E[(1 − e^{ε − L})₊] of N(μ, 1) against N(0, 1), by the trapezoidal rule."""
    x = np.linspace(-12, 12 + mu, 400_001)
    gap = np.maximum(norm.pdf(x, mu) - np.exp(epsilon) * norm.pdf(x), 0)
    return float(np.trapezoid(gap, x))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.01), (1.0, 1e-6), (8.0, 1e-9)])
def test_the_noise_keeps_the_promise_and_hardly_more(epsilon, delta) -> None:
    found = calibrate_moment(epsilon, delta, reach=REACH, quorum=500)
    kept = delta_by_quadrature(REACH.sums / found.sigma, epsilon)
    assert kept == pytest.approx(delta, rel=1e-5)
    assert found.guarantee(epsilon=epsilon).delta <= delta
    assert found.model.releases == "any"


def test_the_sums_have_mu_more_records_keep_more_and_a_submission_less() -> None:
    assert FOUND.guarantee(count=2000).epsilon < FOUND.guarantee().epsilon < 1 + 1e-6
    assert FOUND.local.mu == pytest.approx(math.sqrt(500) * REACH.submission / FOUND.sigma)
    assert FOUND.noise == pytest.approx(FOUND.sigma / math.sqrt(500))
    assert FOUND.total_noise(2000) == pytest.approx(2 * FOUND.sigma)
    exact = gaussian.mu_of(1, 1e-6)
    assert exact * (1 - 2**-24) < FOUND.mu < exact


def test_a_local_target_is_kept_exactly() -> None:
    found = calibrate_moment(1, 1e-6, reach=REACH, quorum=500, local_epsilon=1.0, local_delta=1e-6)
    assert found.local.epsilon == pytest.approx(1.0, rel=1e-6)
    assert found.local.epsilon <= 1.0
    assert found.guarantee().epsilon < 0.1, "the model's promise becomes much stronger"


def test_it_is_written_and_read_to_the_last_bit() -> None:
    found = calibrate_moment(1, 1e-6, reach=REACH, quorum=500, neighbours="zero-out")
    assert MomentCalibration.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    "change",
    [
        {"sigma": 0.9999},
        {"mu": 0.5},
        {"reach": Reach(1.9, 2.5)},
        {"reach": Reach(2.0, 2.4)},
        {"quorum": 499},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whoever_changes_a_number_is_found_out(change) -> None:
    values = {
        name: value * getattr(FOUND, name) if name in ("sigma", "mu") else value
        for name, value in change.items()
    }
    with pytest.raises(NotCertifiedError):
        replace(FOUND, **values).verify(REACH)


def test_a_longer_reach_or_a_smaller_epsilon_is_found_out() -> None:
    with pytest.raises(NotCertifiedError, match="reach of the sums"):
        FOUND.verify(Reach(2.1, 2.5))
    better = replace(FOUND, model=replace(FOUND.model, epsilon=0.99))
    with pytest.raises(NotCertifiedError, match=r"sigma=.* is too small"):
        better.verify(REACH)


def test_questions_and_targets_are_whole() -> None:
    with pytest.raises(InvalidValueError, match="local_delta with local_epsilon=1"):
        calibrate_moment(1, 1e-6, reach=REACH, quorum=500, local_epsilon=1)
    with pytest.raises(InvalidValueError, match="one of epsilon=1 and delta"):
        FOUND.guarantee(epsilon=1, delta=1e-6)


def test_numbers_beyond_floating_point_are_refused_with_a_reason() -> None:
    with pytest.raises(NotCertifiedError, match="Floating point cannot hold"):
        calibrate_moment(1e300, 1e-50, reach=Reach(1e-200, 30.0), quorum=10**18)
    assert FOUND.guarantee(epsilon=1e4).delta == 1e-290
