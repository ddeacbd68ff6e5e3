"""Newton's sensitivities against a search over pairs of records that knows no formula of them."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.theory import maps
from blurfit.theory.maps import LogisticNewton, PoissonNewton


def records(loss, x: np.ndarray, score: np.ndarray, target: np.ndarray) -> tuple[Any, Any]:
    """(M, p) with the weight 1/max(1, ‖x‖²), written down from its definition, for each row."""
    g, h = loss.slopes(score, target)
    weight = 1 / np.maximum(1.0, (x**2).sum(axis=1))
    return (weight * h)[:, None, None] * x[:, :, None] * x[:, None, :], -(weight * g)[:, None] * x


def farthest(loss, targets, *, zero_out: bool, reach: float, seed: int, d: int = 2) -> float:
    """The largest distance that a search finds, over x (long ones too) and scores.

    Many climbers at once, each of which takes a random step wherever it gains by it; steps of all
    sizes throughout, down to a thousandth.
    """
    generator = np.random.default_rng(seed)
    ours, hers = np.repeat(targets, 60, axis=0).T

    def gaps(points: np.ndarray) -> np.ndarray:
        M, p = records(loss, points[:, :d], points[:, d], ours)
        M_other, p_other = records(loss, points[:, d + 1 : -1], points[:, -1], hers)
        if zero_out:
            M_other, p_other = 0 * M, 0 * p
        curvature, gradient = (
            ((M - M_other) ** 2).sum(axis=(1, 2)),
            ((p - p_other) ** 2).sum(axis=1),
        )
        return curvature + gradient / loss.balance**2

    scale = np.tile([1.0] * d + [reach], 2)
    points = scale * generator.normal(size=(len(ours), len(scale)))
    reached = gaps(points)
    for _ in range(400):
        size = 10 ** generator.uniform(-3, 0, (len(points), 1))
        moved = points + size * scale * generator.normal(size=points.shape)
        there = gaps(moved)
        better = there > reached
        points[better], reached[better] = moved[better], there[better]
    return math.sqrt(reached.max())


@pytest.mark.parametrize("balance", [1.0, 4.0, 4.96, 5.2, 6.0, 8.0, 20.0])
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_logistic_sensitivity_is_attained_and_never_exceeded(balance: float, neighbours) -> None:
    loss = LogisticNewton(balance)
    claimed = loss.sensitivity(neighbours)
    zero_out = neighbours == "zero-out"
    found = farthest(loss, [(1.0, -1.0), (1.0, 1.0)], zero_out=zero_out, reach=3.0, seed=4)
    assert 0.97 * claimed <= found <= claimed


@pytest.mark.parametrize("balance", np.geomspace(0.5, 30, 16))
def test_logistic_sensitivity_covers_a_grid_of_sizes(balance: float) -> None:
    """Over (a, b, c) on a grid, both norms 1: a lower bound of its own, close to the claim."""
    a, b, c = np.meshgrid(*[np.linspace(0, 1, 41)] * 3, indexing="ij")
    m, n = a * (1 - a), b * (1 - b)
    square = m**2 + n**2 - 2 * m * n * c**2 + (a**2 + b**2 + 2 * a * b * c) / balance**2
    claimed = maps.logistic_sensitivity(balance)
    assert math.sqrt(square.max()) <= claimed
    assert math.sqrt(square.max()) >= 0.998 * claimed


def test_weighted_records_reach_no_farther() -> None:
    """(m, A) of records of any length s, on a grid around 1, weighted by 1/max(1, s²)."""
    a, s = np.meshgrid(np.linspace(0, 1, 31), np.geomspace(0.05, 20, 13), indexing="ij")
    m = (a * (1 - a) * np.minimum(1, s**2)).ravel()[:, None]
    A = (a * np.minimum(s, 1 / s)).ravel()[:, None]
    for balance in (2.0, 4.0, 4.96, 7.0, 15.0):
        worst = max(
            float(
                (
                    m**2
                    + m.T**2
                    - 2 * m @ m.T * c**2
                    + (A**2 + A.T**2 + 2 * A @ A.T * c) / balance**2
                ).max()
            )
            for c in np.linspace(0, 1, 21)
        )
        assert math.sqrt(worst) <= maps.logistic_sensitivity(balance)
        alone = math.sqrt(float((m**2 + A**2 / balance**2).max()))
        assert alone <= maps.logistic_sensitivity(balance, "zero-out")


def test_curvature_is_free_exactly_until_tau_star() -> None:
    assert math.isclose(maps.FREE_CURVATURE, 4.9679, abs_tol=5e-5)
    just_before, beyond = maps.FREE_CURVATURE * (1 - 1e-9), maps.FREE_CURVATURE * 1.001
    assert math.isclose(maps.logistic_sensitivity(just_before), 2 / just_before, rel_tol=1e-9)
    assert maps.logistic_sensitivity(beyond) > 2 / beyond * (1 + 1e-6)
    assert math.isclose(maps.logistic_sensitivity(6.0), 0.3744, abs_tol=5e-5)
    assert math.isclose(maps.logistic_sensitivity(8.0), 0.3650, abs_tol=5e-5)


@pytest.mark.parametrize(
    ("count", "score", "balance"),
    [(1.0, 1.0, None), (10.0, None, None), (20.0, 1.5, 0.7), (5.0, 0.5, 12.0)],
)
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_poisson_sensitivity_is_never_exceeded(count, score, balance, neighbours) -> None:
    loss = PoissonNewton(count, score, balance)
    ends = list(itertools.product((0.0, count), repeat=2))
    found = farthest(loss, ends, zero_out=neighbours == "zero-out", reach=loss.reach, seed=1)
    assert 0.5 * loss.sensitivity(neighbours) <= found <= loss.sensitivity(neighbours)


@pytest.mark.parametrize("balance", [0.2, 0.6, 0.8, 1.0, 1.4, 3.0])
def test_bounded_sensitivity_is_attained_over_the_rectangle(balance: float) -> None:
    m, n, A, B = (
        np.array(side)
        for side in zip(*itertools.product((0, 2.0), (0, 2.0), (0, 1.5), (0, 1.5)), strict=True)
    )
    c = np.linspace(0, 1, 2001)[:, None]
    square = m**2 + n**2 - 2 * m * n * c**2 + (A**2 + B**2 + 2 * A * B * c) / balance**2
    claimed = maps.bounded_sensitivity(2.0, 1.5, balance)
    assert 0.9999 * claimed <= math.sqrt(square.max()) <= claimed


def test_slopes_are_the_derivatives() -> None:
    t, step = np.linspace(-3, 3, 13), 1e-5
    for loss, value in (
        (LogisticNewton(), lambda t, y: np.log1p(np.exp(-y * t))),
        (PoissonNewton(30.0), lambda t, y: np.exp(t) - y * t),
    ):
        for y in (1.0, -1.0) if isinstance(loss, LogisticNewton) else (0.0, 7.0):
            g, h = loss.slopes(t, np.full_like(t, y))
            assert np.allclose(g, (value(t + step, y) - value(t - step, y)) / (2 * step), atol=1e-7)
            second = (value(t + step, y) - 2 * value(t, y) + value(t - step, y)) / step**2
            assert np.allclose(h, second, atol=1e-4)


def test_slopes_are_bounded_for_every_input() -> None:
    wild = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324])
    for t, y in itertools.product(wild, wild):
        g, h = LogisticNewton().slopes(t, y)
        assert abs(g) <= 1
        assert 0 <= h <= 0.25
        loss = PoissonNewton(8.0, 1.2)
        g, h = loss.slopes(t, y)
        assert abs(g) <= loss.gradient_bound
        assert 0 < h <= loss.curvature_bound


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_refuses_what_is_not_positive(wrong: float) -> None:
    with pytest.raises(InvalidValueError):
        LogisticNewton(wrong)
    with pytest.raises(InvalidValueError):
        PoissonNewton(wrong)
    with pytest.raises(InvalidValueError, match="score_bound"):
        PoissonNewton(1e20)
