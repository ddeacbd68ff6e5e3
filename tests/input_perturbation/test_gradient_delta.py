"""δ_b of the certified theorem: its bounds by other routes, and each step of their proof."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import logsumexp

from blurfit.input_perturbation import gradient_delta
from blurfit.input_perturbation.gradient_delta import (
    least_epsilon,
    least_sigma_b,
    log_gradient_delta,
    over_angles,
)

POINTS = [(0.08, 0.02, 0.01), (0.08, 0.055, 0.0275), (1.0, 0.2, 0.1), (1.0, 0.01, 0.29)]
POINTS += [(1.0, 0.29, 0.01), (2.0, 0.1, 0.1), (100.0, 8.0, 2.0), (0.01, 3e-5, 7e-5)]
POINTS += [(3e4, 100.0, 100.0)]


@cache
def drawn(count: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, 3))


def drawn_gains(headroom, a, b, cosine, count=400_000) -> np.ndarray:
    """(1 − e^{ε' − L_α})₊ for drawn ξ in three dimensions, straight from the definition."""
    xi = drawn(count)
    along = cosine * xi[:, 0] + math.sqrt(1 - cosine**2) * xi[:, 2]
    loss = (a * a + b * b + 2 * a * b * cosine) / 2 + a * along + b * np.hypot(xi[:, 0], xi[:, 1])
    return np.maximum(0.0, -np.expm1(headroom - loss))


NODES, WEIGHTS = np.polynomial.legendre.leggauss(300)


def log_tail(room: float, slopes: np.ndarray, k: int) -> np.ndarray:
    """ln E[(1 − e^{t − vr})₊] for r ~ χ_k and each v, by adding up the density itself."""
    found = np.full(len(slopes), -np.inf)
    for index, v in enumerate(slopes):
        start = room / v if v > 0 else math.inf
        if start > 1e3:  # nothing is gained that could be seen
            continue
        start = max(0.0, start)
        width = 40 / (1 + start)
        r = start + width * ((NODES + 1) / 2) ** 2  # denser where the gain begins
        weights = width * (NODES + 1) / 2 * WEIGHTS
        gain = r ** (k - 1) * np.exp(-(r - start) * (r + start) / 2) * -np.expm1(room - v * r)
        constant = 0.0 if k == 2 else math.log(2 / math.pi) / 2
        found[index] = constant - start**2 / 2 + math.log(weights @ gain)
    return found


def log_mean(logarithms: np.ndarray, weights: np.ndarray) -> float:
    return float(logsumexp(logarithms, b=weights))


# -- the integrals --------------------------------------------------------------------------------
@pytest.mark.parametrize(("headroom", "a", "b"), POINTS)
def test_line_plane_and_space_by_adding_up_densities(headroom: float, a: float, b: float) -> None:
    """No closed form of the radius, no substitution: sums over radius and direction."""
    room = headroom - (a + b) ** 2 / 2
    line = log_tail(room, np.array([a + b, b - a]), 1)
    assert gradient_delta._line(room, a, b) == pytest.approx(
        log_mean(line, np.full(2, 0.5)), abs=1e-8
    )
    near = ((NODES + 1) / 2) ** 3  # denser towards the peak
    weights = 1.5 * ((NODES + 1) / 2) ** 2 * WEIGHTS
    plane = log_tail(room, b + a * np.cos(math.pi * near), 2)
    assert gradient_delta._plane(room, a, b) == pytest.approx(log_mean(plane, weights), abs=1e-8)
    space = log_tail(room, b + a * (1 - 2 * near), 3)
    assert gradient_delta._space(room, a, b) == pytest.approx(log_mean(space, weights), abs=1e-8)


FINER = {"": gradient_delta.unit_rule(64), "_ANGLE": gradient_delta.unit_rule(96)}


def forget_panels() -> None:
    gradient_delta._panels.cache_clear()
    gradient_delta._panels_from_both_ends.cache_clear()


@pytest.mark.parametrize("seed", range(40))
def test_the_quadrature_errs_less_than_is_added(seed: int, monkeypatch) -> None:
    """Four times the nodes move nothing that the safety does not cover, for any a, b and t₀."""
    generator = np.random.default_rng(seed)
    m, nearest = 10 ** generator.uniform(-4, 2), 10 ** generator.uniform(-2, 1.5)
    share = [generator.uniform(), 10 ** generator.uniform(-5, 0)][seed % 2]
    a, b = (share * m, (1 - share) * m)[:: 1 if seed % 4 < 2 else -1]
    room = nearest * m
    coarse = gradient_delta._plane(room, a, b), gradient_delta._space(room, a, b)
    between = max(nearest, gradient_delta._ANGLES_FROM) * m + m * m / 2
    angles = over_angles(between, a, b, gradient_delta._COSINES)
    for name, (nodes, weights) in FINER.items():
        monkeypatch.setattr(gradient_delta, f"{name}_NODES", nodes)
        monkeypatch.setattr(gradient_delta, f"{name}_WEIGHTS", weights)
    forget_panels()
    fine = gradient_delta._plane(room, a, b), gradient_delta._space(room, a, b)
    more = over_angles(between, a, b, gradient_delta._COSINES)
    assert gradient_delta._panels_from_both_ends(1, 1)[2] == 2 * 64  # finer ones were used
    forget_panels()
    assert coarse == pytest.approx(fine, abs=2e-11)
    if nearest < 1.8:  # beyond, the plane is proved and angles are not looked at
        assert angles == pytest.approx(more, rel=3e-4)


@pytest.mark.statistical
@pytest.mark.parametrize("cosine", [1.0, 0.9, 0.5, 0.0])
@pytest.mark.parametrize(("headroom", "a", "b"), [(0.08, 0.055, 0.0275), (2.8, 1.0, 1.0)])
def test_angles_against_drawn_noise(headroom, a, b, cosine: float) -> None:
    gains = drawn_gains(headroom, a, b, cosine)
    found = float(over_angles(headroom, a, b, np.array([cosine]))[0])
    assert abs(gains.mean() - found) < 5 * gains.std() / math.sqrt(len(gains))


@pytest.mark.parametrize(("room", "m"), [(-1.0, 3.0), (-0.01, 0.02), (-5.0, 50.0), (0.0, 1e-4)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_without_room(room: float, m: float, k: int) -> None:
    exact = float(log_tail(room, np.array([m]), k)[0])
    assert gradient_delta._without_room(room, m, k) == pytest.approx(exact, abs=1e-7)
    assert log_gradient_delta(room + m * m / 2, m / 3, 2 * m / 3, k) >= exact - 1e-12


@given(st.floats(1e-5, 50), st.floats(-200, -0.7), st.integers(1, 5), st.floats(0, 1))
@example(1.0, -1.0, 3, 2.5e-308)
def test_inverses(headroom: float, log_delta: float, dimension: int, share: float) -> None:
    delta = math.exp(log_delta)
    parts = share, 1 - share
    sigma = least_sigma_b(headroom, delta, *parts, dimension)
    a, b = share / sigma, (1 - share) / sigma
    assert log_gradient_delta(headroom, a, b, dimension) <= log_delta
    more = 1 + 1e-6
    assert log_gradient_delta(headroom, a * more, b * more, dimension) > log_delta
    epsilon = least_epsilon(0.3 * headroom, delta, a, b, dimension)
    assert epsilon - 0.3 * headroom <= headroom * (1 + 1e-6) + 1e-8
    assert log_gradient_delta(epsilon - 0.3 * headroom, a, b, dimension) <= log_delta + 1e-9


# -- the steps of the proof -----------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(30))
def test_h_grows_with_a_and_b(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = 10 ** generator.uniform(-2, 0.5, 2)
    headroom = (a + b) ** 2 / 2 + generator.uniform(0.4, 3) * (a + b)
    cosines = np.linspace(0, 1, 7)
    here = over_angles(headroom, a, b, cosines)
    assert (over_angles(headroom, 1.05 * a, b, cosines) > here).all()
    assert (over_angles(headroom, a, 1.05 * b, cosines) > here).all()


@pytest.mark.statistical
@pytest.mark.parametrize("cosine", [0.2, 0.8])
def test_the_slope_in_a_by_parts(cosine: float) -> None:
    """∂H/∂a = E[ξ·e; A] + b·cos α·E[(1 − cos φ)e^{ε'−L}; A], against a difference of H."""
    headroom, a, b, h = 0.9, 0.5, 0.4, 1e-3
    cosines = np.array([cosine])
    slope = over_angles(headroom, a + h, b, cosines) - over_angles(headroom, a - h, b, cosines)
    xi = np.random.default_rng(1).standard_normal((400_000, 3))
    along = cosine * xi[:, 0] + math.sqrt(1 - cosine**2) * xi[:, 2]
    Y = np.hypot(xi[:, 0], xi[:, 1])
    loss = (a * a + b * b + 2 * a * b * cosine) / 2 + a * along + b * Y
    inside = loss > headroom
    parts = along + b * cosine * (1 - xi[:, 0] / Y) * np.exp(headroom - loss)
    terms = np.where(inside, parts, 0.0)
    assert terms.mean() == pytest.approx(
        float(slope[0]) / (2 * h), abs=5 * terms.std() / math.sqrt(len(terms))
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_slope_in_the_angle_is_bounded(seed: int) -> None:
    """dH/d cos α ≥ −0.2945·ab/t₀ everywhere, and ≥ 0 where t₀ ≥ √3·m."""
    generator = np.random.default_rng(seed)
    a, b = 10 ** generator.uniform(-2, 0.7, 2)
    m = a + b
    room = m * generator.uniform(0.3, 2.5)
    cosines = np.linspace(0, 1, 41)
    H = over_angles(room + m * m / 2, a, b, cosines)
    slope = np.diff(H) / np.diff(cosines)
    allowance = 2e-4 * H.max() / 0.025  # of the quadrature
    assert slope.min() >= -gradient_delta._SLOPE * a * b / room - allowance
    if room >= math.sqrt(3) * m:
        assert slope.min() >= -allowance


def test_the_constant_of_the_slope() -> None:
    exact = math.sqrt(2 / math.pi) * 3**1.5 * math.exp(-1.5) / math.pi
    assert exact <= gradient_delta._SLOPE <= exact * 1.001


def test_the_plane_is_not_always_the_worst() -> None:
    """Two counterexamples: with m²/2 for every angle (0.3188 and 0.3744 at t₀ = 0.8), and in L_α
    itself.
    """
    across = 0.8 + (1 + 1) / 2  # so that t₀ = ε' − c is 0.8 at a right angle
    assert over_angles(0.8 + 2, 1, 1, np.array([1.0]))[0] == pytest.approx(0.3188, abs=5e-5)
    assert over_angles(across, 1, 1, np.array([0.0]))[0] == pytest.approx(0.3744, abs=5e-5)
    inside, beside = over_angles(0.05, 0.03, 0.06, np.array([1.0, math.cos(1)]))
    assert inside == pytest.approx(0.03342, abs=1e-5)
    assert beside == pytest.approx(0.03458, abs=1e-5)
    assert math.exp(log_gradient_delta(0.05, 0.03, 0.06, 3)) >= beside
    assert math.exp(log_gradient_delta(0.05, 0.03, 0.06, 2)) == pytest.approx(inside, rel=1e-4)


@given(
    st.floats(0.01, 3), st.floats(0.05, 0.95), st.floats(-0.5, 6), st.floats(0, 1), st.booleans()
)
def test_no_angle_exceeds_the_bound(m, share, nearest, cosine, sharp: bool) -> None:
    a, b = share * m, (1 - share) * m
    headroom = m * m / 2 + nearest * m
    bound = log_gradient_delta(headroom, a, b, 3, sharp=sharp)
    if nearest > 0.2:
        reached = float(over_angles(headroom, a, b, np.array([cosine]))[0])
        assert math.log(reached) <= bound + 3e-4
    gains = drawn_gains(headroom, a, b, cosine, count=4000)
    assert gains.mean() - 6 * gains.std() / math.sqrt(4000) - 1e-2 <= math.exp(bound)


@given(st.floats(0.01, 3), st.floats(0, 1), st.floats(-1, 6), st.integers(1, 4))
def test_never_looser_than_one_gradient_of_full_length(m, share, nearest, dimension) -> None:
    """Section 4's bound takes all of the gradient to move: a = 0 in three dimensions, X ~ χ₃."""
    headroom = m * m / 2 + nearest * m
    bound = log_gradient_delta(headroom, share * m, (1 - share) * m, dimension)
    assert bound <= log_tail(headroom - m * m / 2, np.array([m]), min(3, dimension))[0] + 1e-6


@given(st.floats(1e-3, 10), st.floats(0, 1), st.floats(-1, 5), st.integers(1, 4))
def test_more_headroom_or_noise_never_spends_more(m, share, nearest, dimension) -> None:
    headroom = m * m / 2 + nearest * m
    a, b = share * m, (1 - share) * m
    here = log_gradient_delta(headroom, a, b, dimension)
    assert log_gradient_delta(headroom + 0.1 * m, a, b, dimension) <= here + 1e-9
    assert log_gradient_delta(headroom, a / 1.1, b / 1.1, dimension) <= here + 1e-9
