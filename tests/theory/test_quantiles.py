"""Each quantile must not be exceeded more often than stated: by another distribution function, or
by counting."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, ncx2

from blurfit.theory.gaussian import (
    _chernoff_ceiling,
    _noncentral_chi_square,
    chi_square_ceiling,
    chi_square_floor,
    shifted_energy_ceiling,
)
from support.exact import noncentral_tail


@pytest.mark.parametrize("freedom", [1, 2, 7, 100, 10**4, 5 * 10**5])
@pytest.mark.parametrize("probability", [0.1, 1e-3, 1e-9, 1e-30])
def test_chi_square_against_mpmath(freedom: int, probability: float) -> None:
    with mpmath.workdps(30):
        below = mpmath.gammainc(
            mpmath.mpf(freedom) / 2, 0, chi_square_floor(probability, freedom) / 2, regularized=True
        )
        half, ceiling = mpmath.mpf(freedom) / 2, chi_square_ceiling(probability, freedom)
        above = mpmath.gammainc(half, ceiling / 2, mpmath.inf, regularized=True)
    assert probability * (1 - 1e-6) < below <= probability * (1 + 1e-9)
    assert probability * (1 - 1e-6) < above <= probability * (1 + 1e-9)


@pytest.mark.parametrize("freedom", [10**9, 10**12])
def test_chi_square_of_a_billion_contributors_is_safe(freedom: int) -> None:
    """Against the normal limit, from which χ²_m differs by less than a thousandth here."""
    for probability in (1e-3, 1e-9, 1e-15):
        floor = chi_square_floor(probability, freedom)
        deviations = (freedom - floor) / np.sqrt(2 * freedom)
        normal = -float(mpmath.erfinv(mpmath.mpf(2) * probability - 1)) * np.sqrt(2)
        assert normal * 0.999 <= deviations <= normal * 1.3


def test_shifted_energy_by_quadrature_and_without_noise() -> None:
    """P(‖v + su‖² > x) as an integral over the one normal along v: no noncentral law."""
    for dimension, shift, scale, probability in [
        (3, 1, 0.1, 1e-6),
        (14, 2, 1.0, 1e-3),
        (5, 1, 0.01, 1e-9),
    ]:
        x = shifted_energy_ceiling(probability, dimension, shift, scale)
        edge = np.sqrt(x)
        z = np.linspace((-edge - shift) / scale, (edge - shift) / scale, 400_001)
        z = z[np.abs(z) < 40]
        rest = (x - (shift + scale * z) ** 2) / scale**2
        density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        inside = np.trapezoid(density * chi2.cdf(np.maximum(rest, 0), dimension - 1), z)
        outside = np.trapezoid(density * chi2.sf(np.maximum(rest, 0), dimension - 1), z)
        outside += (
            1 - inside - outside if probability > 1e-5 else chi2.sf(max(z[-1], 0) ** 2, 1) / 2
        )
        assert outside == pytest.approx(probability, rel=2e-3)
    assert shifted_energy_ceiling(0.01, 5, 2.0, 0.0) == 4.0


@pytest.mark.parametrize("dimension", [1, 2, 14, 300])
@pytest.mark.parametrize("ratio", [1e3, 1.001e3, 3e3, 1e4])
def test_bound_for_small_noise_is_safe_and_nearly_exact(dimension: int, ratio: float) -> None:
    for probability in (0.05, 1e-4, 1e-9):
        x = shifted_energy_ceiling(probability, dimension, 1.0, 1 / ratio)
        exact = ncx2.isf(probability, dimension, ratio**2) / ratio**2
        assert exact * (1 - 1e-11) <= x <= exact * (1 + 1e-3)


@pytest.mark.parametrize("dimension", [1, 2, 3, 14, 101, 1000])
@pytest.mark.parametrize("ratio", [1e-3, 0.3, 10.0, 1e3, 1e5])
def test_no_probability_is_too_small(dimension: int, ratio: float) -> None:
    """Down to γ = 10⁻³⁰⁰, where a library's quantile and its tail may err together."""
    with mpmath.workdps(30):
        for exponent in (3, 99, 101, 165, 200, 300):
            gamma = 10.0**-exponent
            x = shifted_energy_ceiling(gamma, dimension, ratio, 1.0)
            assert noncentral_tail(x, dimension, ratio**2) <= mpmath.mpf(gamma) * (1 + 1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 14, 1000, 10**5, 6 * 10**5, 10**6])
def test_no_probability_of_plain_chi_square_is_too_small(freedom: int) -> None:
    """10⁶ and γ = 10^(−5.9) is where the library's floor is exceeded by more than it says."""
    with mpmath.workdps(40):
        half = mpmath.mpf(freedom) / 2
        for exponent in (0.5, 5.9, 101, 165, 300):
            gamma = 10.0**-exponent
            floor, ceiling = chi_square_floor(gamma, freedom), chi_square_ceiling(gamma, freedom)
            limit = mpmath.mpf(gamma) * (1 + 1e-9)
            assert mpmath.gammainc(half, 0, mpmath.mpf(floor) / 2, regularized=True) <= limit
            above = mpmath.gammainc(half, mpmath.mpf(ceiling) / 2, mpmath.inf, regularized=True)
            assert above <= limit


@given(st.floats(-300, -0.4), st.floats(0, 9), st.floats(-9, 12))
def test_the_bound_with_a_proof_is_never_above_birges(p: float, m: float, theta: float) -> None:
    freedom, noncentrality, t = 10**m, 10**theta, -p * math.log(10)
    birge = freedom + noncentrality + 2 * math.sqrt((freedom + 2 * noncentrality) * t) + 2 * t
    assert _chernoff_ceiling(10**p, freedom, noncentrality) <= birge * (1 + 1e-11)


@given(st.integers(1, 50), st.floats(1e-6, 3), st.floats(1.0001, 5), st.floats(1e-12, 0.4))
def test_more_noise_never_lowers_the_energy(
    dimension: int, scale: float, factor: float, probability: float
) -> None:
    less = shifted_energy_ceiling(probability, dimension, 1.0, scale)
    more = shifted_energy_ceiling(probability, dimension, 1.0, scale * factor)
    assert more >= less * (1 - 1e-11)


@given(st.floats(-300, -0.4), st.integers(1, 1000), st.floats(-6, 6))
def test_the_functions_beneath_scipys_are_those_it_calls(p: float, dimension, size: float) -> None:
    upper_quantile, upper_tail = _noncentral_chi_square()
    noncentrality, quantile = 10**size, ncx2.isf(10**p, dimension, 10**size)
    assert upper_quantile(10**p, dimension, noncentrality) == quantile
    assert upper_tail(quantile, dimension, noncentrality) == ncx2.sf(
        quantile, dimension, noncentrality
    )
