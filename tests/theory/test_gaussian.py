"""The exact profile against 50-digit arithmetic, against another library, and against itself."""

import math

import mpmath
import pytest
from dp_accounting import pld
from hypothesis import given
from hypothesis import strategies as st

from blurfit.errors import InvalidValueError
from blurfit.theory.gaussian import delta_of, epsilon_of, log_delta_of, mu_of

EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e5, 1e7]
DELTAS = [1e-300, 1e-100, 1e-30, 1e-9, 1e-3, 0.1, 0.3, 0.5]


def profile(mu: float, epsilon: float) -> mpmath.mpf:
    """The textbook formula, with enough digits that its cancellation does not matter (e^1e7 is
    exact to 50)."""
    with mpmath.workdps(400):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )


def relative(found: float, true: mpmath.mpf) -> float:
    return float(abs(mpmath.mpf(found) / true - 1))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_each_direction_agrees_with_50_digits(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    true_delta = profile(mu, epsilon)
    assert relative(delta_of(mu, epsilon), true_delta) < 1e-9

    with mpmath.workdps(60):
        slope_in_mu = mpmath.npdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
        true_mu = mpmath.mpf(mu) + (mpmath.mpf(delta) - true_delta) / slope_in_mu  # one Newton step
        assert relative(mu, true_mu) < 1e-9

        # At a δ that a float can hold, so that rounding the argument is not held against it.
        held = float(true_delta)
        slope = -mpmath.exp(epsilon) * mpmath.ncdf(-mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
        true_epsilon = mpmath.mpf(epsilon) + (mpmath.mpf(held) - true_delta) / slope
        assert relative(epsilon_of(mu, held), true_epsilon) < 1e-9


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_agrees_with_dp_accounting(sigma: float, epsilon: float) -> None:
    oracle = pld.privacy_loss_mechanism.GaussianPrivacyLoss(sigma)
    assert delta_of(1 / sigma, epsilon) == pytest.approx(
        oracle.get_delta_for_epsilon(epsilon), rel=1e-9
    )


@given(
    st.floats(1e-6, 1e7).map(lambda value: float(value)),
    st.floats(math.log(1e-300), math.log(0.5)).map(math.exp),
)
def test_inverse_pairs(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert log_delta_of(mu, epsilon) == pytest.approx(math.log(delta), rel=1e-9, abs=1e-9)
    again = epsilon_of(mu, delta)
    # Where δ hardly depends on ε, the rounding of μ alone moves ε by about 2e-16·δ.
    assert again == pytest.approx(epsilon, rel=1e-9, abs=1e-15)


@given(st.floats(1e-4, 1e3), st.floats(1e-4, 1e3), st.floats(1.001, 10))
def test_more_privacy_loss_means_more_delta(mu: float, epsilon: float, factor: float) -> None:
    assert log_delta_of(mu * factor, epsilon) >= log_delta_of(mu, epsilon)
    assert log_delta_of(mu, epsilon * factor) <= log_delta_of(mu, epsilon)


def test_limits() -> None:
    assert delta_of(0.0, 1.0) == 0.0
    assert delta_of(1.0, 0.0) == pytest.approx(math.erf(1 / math.sqrt(8)), rel=1e-14)
    assert delta_of(1000.0, 1.0) == 1.0
    assert epsilon_of(1e-3, 0.01) == 0.0
    assert epsilon_of(0.0, 0.01) == 0.0
    assert log_delta_of(0.01, 1.0) == pytest.approx(-5000, rel=0.01)  # e^-5000 is no float
    assert log_delta_of(1e-200, 1e-60) == pytest.approx(-5e279)  # where Mills' ratios underflow
    assert log_delta_of(1.0, 1e300) == -math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: delta_of(-1, 1), "mu=-1 >= 0"),
        (lambda: delta_of(1, math.nan), "epsilon=nan to be finite"),
        (lambda: mu_of(1, 0), "delta=0 strictly between 0 and 1"),
        (lambda: mu_of(1, 1.5), "delta=1.5 strictly"),
        (lambda: epsilon_of("1", 0.1), "mu='1' to be a real number"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        call()
