"""The enclosure of the minimiser, against sixty digits."""

import math

import mpmath
import numpy as np
import pytest

from blurfit import NotCertifiedError
from blurfit.input_perturbation.algorithms import Sums, enclose
from blurfit.learning.solver import minimise


def sums(count: int, d: int, seed: int, *, smallest: float = 40.0) -> tuple:
    """A and c as large collections have them: eigenvalues from the noise's to the count's."""
    generator = np.random.default_rng(seed)
    basis = np.linalg.qr(generator.standard_normal((d, d)))[0]
    spectrum = np.exp(np.linspace(math.log(smallest), math.log(count), d))
    gram = (basis * spectrum) @ basis.T
    gram = (gram + gram.T) / 2
    return gram, gram @ generator.uniform(-0.5, 0.5, d) + generator.standard_normal(d)


def by_mpmath(gram, moment, radius, *, ridge=0.0) -> list:
    """(H + ν)w = c with ν by regula falsi on the norm, in sixty digits."""
    H = mpmath.matrix(gram.tolist()) + mpmath.mpf(ridge) * mpmath.eye(len(moment))
    c = mpmath.matrix(moment.tolist())
    values, basis = mpmath.eigsy(H)
    turned = basis.T * c

    def at(nu):
        return [one / (value + nu) for one, value in zip(turned, values, strict=True)]

    def beyond(nu):
        return mpmath.norm(at(nu)) - radius

    nu = mpmath.mpf(0)
    if beyond(nu) > 0:
        high = mpmath.norm(c) / radius
        nu = mpmath.findroot(beyond, (nu, high), solver="anderson", tol=1e-100)
    w = basis * mpmath.matrix(at(nu))
    return list(w)


def enclosed(gram, moment, radius, *, allowed=2.0**-60, ridge=0.0):
    start = minimise(gram, moment, ridge=ridge, weight_bound=radius)
    collected = Sums(1, gram, moment)
    return enclose(collected, start, ridge=ridge, radius=radius, allowed=allowed), start


def distance(found, exact) -> mpmath.mpf:
    scale = mpmath.mpf(2) ** -found.bits
    return mpmath.norm([int(a) * scale - b for a, b in zip(found.multiples, exact, strict=True)])


@pytest.mark.parametrize("radius", [0.01, 50.0])
@pytest.mark.parametrize("count", [2**10, 2**20, 2**23, 2**30])
@pytest.mark.parametrize("d", [1, 2, 6])
def test_weights_are_within_the_bound_of_sixty_digits(d: int, count: int, radius: float) -> None:
    with mpmath.workdps(60):
        for seed in range(3):
            gram, moment = sums(count, d, seed)
            found, start = enclosed(gram, moment, radius, ridge=0.3)
            exact = by_mpmath(gram, moment, radius, ridge=0.3)
            assert (start.multiplier > 0) == (radius < 1)
            assert distance(found, exact) <= found.error <= 2.0**-60


def test_floating_point_alone_would_cost_more_than_is_kept_back() -> None:
    """Weights that are off by e, rounded to cells of side ω = 2⁻²⁰, change the odds of a cell by up
    to (1 ± 2e/ω)^d on either side, 4d·e/ω in all. At 2²³ people and ε = 0.1, what floating point
    leaves open is more than half of the 2⁻¹⁰·ε that is kept back (the other half pays for the
    lattice of the sums); the enclosure is far below.
    """
    d, epsilon, errors = 14, 0.1, []
    for seed in range(12):
        gram, moment = sums(2**23, d, seed)
        found, start = enclosed(gram, moment, 50.0)
        w = np.array([int(one) / (1 << found.bits) for one in found.multiples])
        errors.append(float(np.linalg.norm(start.weights - w)))
        assert 4 * d * found.error / 2.0**-20 < 1e-9 * epsilon
    assert 4 * d * max(errors) / 2.0**-20 > epsilon / 2**11


def test_on_the_sphere_or_just_inside() -> None:
    """‖H⁻¹c‖ is the radius to the last bit, and one bit less and more."""
    gram = np.diag([2.0**21, 2.0**3])
    for radius in (5.0, np.nextafter(5.0, 0), np.nextafter(5.0, 9)):
        found, _ = enclosed(gram, np.array([3 * 2.0**21, 4 * 2.0**3]), radius)
        w = np.array([int(one) / (1 << found.bits) for one in found.multiples])
        np.testing.assert_allclose(w, [3.0, 4.0], rtol=1e-14)
        assert found.error <= 2.0**-60


def test_rounding_to_a_step_is_exact() -> None:
    found, _ = enclosed(np.eye(3), np.array([0.25, 0.25 + 2.0**-50, -0.7]), 5.0)
    step = 0.5
    np.testing.assert_array_equal(found.plus(np.zeros(3), step), [0.5, 0.5, -0.5])
    np.testing.assert_array_equal(found.plus(np.array([-0.01, 0.3, 0.0]), step), [0.0, 0.5, -0.5])


def test_no_weights_where_there_is_no_curvature() -> None:
    gram = np.diag([2.0**40, 2.0**-20])
    start = minimise(gram, np.ones(2), weight_bound=1.0)
    with pytest.raises(NotCertifiedError, match="without curvature"):
        enclose(Sums(1, gram, np.ones(2)), start, ridge=0.0, radius=1.0, allowed=2.0**-60)
