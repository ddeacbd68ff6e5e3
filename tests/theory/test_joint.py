"""The sensitivities by a search over pairs of records, the noise by counting."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from blurfit.theory import moments
from blurfit.theory.forms import JointColumn, JointForm
from blurfit.theory.maps import bounded_sensitivity


def into_ball(vector: np.ndarray, radius: float) -> np.ndarray:
    """All vectors onto the ball: those outside are cut to its surface."""
    length = np.linalg.norm(vector)
    return vector * min(1.0, radius / length) if length else vector


def farthest(gap, size: int, seed: int, starts: int = 6) -> float:
    """The largest value of `gap` that a search from several points finds.

    That it is the largest there is, each test says by holding it against a claim from below.
    """
    points = np.random.default_rng(seed).normal(size=(starts, size)) * 1.5
    found = [minimize(lambda x: -gap(x), point, method="Powell").fun for point in points]
    return -min(found)


def farthest_records(constant: float, radius: float, dimension: int, neighbours: str) -> float:
    """max ‖zzᵀ − z'z'ᵀ‖_F, from the matrices themselves."""

    def gap(point: np.ndarray) -> float:
        u, other = (into_ball(point[i * dimension : (i + 1) * dimension], radius) for i in (0, 1))
        if neighbours == "zero-out":
            other = 0 * other
        z, z_other = np.r_[constant, u], np.r_[constant, other]
        return float(np.linalg.norm(np.outer(z, z) - np.outer(z_other, z_other)))

    return farthest(gap, 2 * dimension, seed=dimension)


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("constant", [0.3, 0.9, 1.2, 3.0])  # both sides of the radius, 1.1
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_sensitivity_is_attained_and_never_exceeded(dimension, constant, neighbours) -> None:
    claimed = moments.sensitivity(constant, 1.1, neighbours)
    found = farthest_records(constant, 1.1, dimension, neighbours)
    assert found <= claimed * (1 + 1e-9)
    if dimension > 1 or neighbours == "zero-out" or constant > 1.1:
        assert found >= claimed * (1 - 1e-3)


def test_a_single_submission_is_told_from_any_other_record() -> None:
    reach = JointForm(0.4, (JointColumn("x", 1.0),)).reach("zero-out")
    assert reach.submission == moments.sensitivity(0.4, 1.0, "replace") > reach.sums


@pytest.mark.parametrize("ratio", [0.1, 0.5, 2 - math.sqrt(2), 1.0, 2.0, 3.0, 20.0])
def test_multiples_of_q_are_searched_too(ratio: float) -> None:
    q_bound, balance = 1.2, 0.8
    p_bound = math.sqrt(ratio) * balance * q_bound**2

    def gap(point: np.ndarray) -> float:
        angle, length, length_other, size, size_other = point
        # A short q may have a long p, so the norms of q and p are searched independently.
        a, b = (q_bound * abs(math.sin(x)) for x in (length, length_other))
        g, h = (p_bound * math.sin(x) for x in (size, size_other))
        x, other = np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)])
        matrix = a**2 * np.outer(x, x) - b**2 * np.outer(other, other)
        return math.hypot(
            float(np.linalg.norm(matrix)), float(np.linalg.norm(g * x - h * other)) / balance
        )

    claimed = bounded_sensitivity(q_bound**2, p_bound, balance)
    found = farthest(gap, 5, seed=1)
    assert found <= claimed * (1 + 1e-9)
    assert found >= claimed * (1 - 1e-3)
    plain = math.sqrt(2 * q_bound**4 + 4 * (p_bound / balance) ** 2)
    assert claimed <= plain * (1 + 1e-9)
