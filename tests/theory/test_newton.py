"""Newton's sensitivities against a search over pairs of records that knows no formula of them."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.theory import maps
from blurfit.theory.maps import LogisticNewton, PoissonNewton


def records(loss, x: np.ndarray, score: np.ndarray, target: np.ndarray) -> tuple[Any, Any, Any]:
    """(M, p, w²g²xxᵀ) with w = 1/max(1, ‖x‖²), written down from its definition, for each row."""
    g, h = loss.slopes(score, target)
    weight = 1 / np.maximum(1.0, (x**2).sum(axis=1))
    outer = x[:, :, None] * x[:, None, :]
    slopes = -(weight * g)[:, None] * x
    return (weight * h)[:, None, None] * outer, slopes, (weight * g)[:, None, None] ** 2 * outer


def farthest(
    loss, targets, *, zero_out: bool, reach: float, seed: int, d: int = 2, robust: bool = False
) -> float:
    """The largest distance that a search finds, over x (long ones too) and scores.

    Many climbers at once, each of which takes a random step wherever it gains by it; steps of all
    sizes throughout, down to a thousandth.
    """
    generator = np.random.default_rng(seed)
    ours, hers = np.repeat(targets, 60, axis=0).T

    def gaps(points: np.ndarray) -> np.ndarray:
        one = records(loss, points[:, :d], points[:, d], ours)
        other = records(loss, points[:, d + 1 : -1], points[:, -1], hers)
        gap = [a - (0 if zero_out else b) for a, b in zip(one, other, strict=True)]
        curvature, gradient, squares = ((part**2).sum(axis=(*range(1, part.ndim),)) for part in gap)
        weight = loss.robust_weight if robust else 0.0
        return curvature + gradient / loss.balance**2 + weight**2 * squares

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
        worst = 0.0
        for c in np.linspace(0, 1, 21):
            apart = m**2 + m.T**2 - 2 * m @ m.T * c**2
            slopes = (A**2 + A.T**2 + 2 * A @ A.T * c) / balance**2
            worst = max(worst, float((apart + slopes).max()))
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
    ("count", "curvature", "gradient", "balance"),
    [(1.0, 2.7, 2.7, 1.0), (10.0, 4.0, 7.0, 1.75), (20.0, 4.5, 9.0, 0.7), (5.0, 1.6, 3.0, 12.0)],
)
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("robust", [False, True])
def test_sensitivity_of_counts_is_never_exceeded(
    count, curvature, gradient, balance, neighbours, robust
) -> None:
    loss = PoissonNewton(count, curvature, gradient, balance)
    ends = list(itertools.product((0.0, count), repeat=2))
    zero_out = neighbours == "zero-out"
    found = farthest(loss, ends, zero_out=zero_out, reach=3.0, seed=1, robust=robust)
    claimed = loss.sensitivity(neighbours, robust=robust)
    assert 0.5 * claimed <= found <= claimed


def squared_distances(m, n, a, b, c, balance: float, weight: float) -> np.ndarray:
    """F of two records of curvatures m, n and slopes a, b at cosine c, squared slopes included."""
    curvature = m**2 + n**2 - 2 * m * n * c**2
    slopes = a**2 + b**2 + 2 * a * b * c
    squares = a**4 + b**4 - 2 * (a * b * c) ** 2
    return np.asarray(curvature + slopes / balance**2 + weight**2 * squares)


@pytest.mark.parametrize("balance", [1.0, 3.0, 4.5])
def test_squared_slopes_are_free_for_labels_to_five_digits(balance: float) -> None:
    """Over all sizes a, lengths s up to 6 and cosines, finely around the worst pair."""
    loss = LogisticNewton(balance)
    for least in (0.0, 0.9):
        a = np.linspace(least, 1, 41)[:, None]
        s = np.concatenate([np.linspace(max(least, 0.05), 1, 11), np.geomspace(1, 6, 8)[1:]])
        m = (a * (1 - a) * np.minimum(1, s**2)).ravel()[:, None]
        size = (a * np.minimum(s, 1 / s)).ravel()[:, None]
        worst = max(
            squared_distances(m, m.T, size, size.T, c, balance, loss.robust_weight).max()
            for c in np.linspace(least, 1, 21)
        )
        assert math.sqrt(worst) <= loss.sensitivity(robust=True) == 2 / balance * maps.NUDGE
        alone = np.sqrt(m**2 + size**2 / balance**2 + loss.robust_weight**2 * size**4).max()
        assert alone <= loss.sensitivity("zero-out", robust=True)
        if least == 0:
            assert alone >= 0.999 * loss.sensitivity("zero-out", robust=True)
    assert math.isclose(math.sqrt(worst) * balance, 2.0, rel_tol=1e-5)


def test_what_the_proof_for_squared_slopes_claims() -> None:
    """The polynomials of the docstring, on fine grids, and that a little more would not be free."""
    square = maps.FREE_SQUARES**2
    a = np.linspace(0.5, 1, 5001)
    phi = square * (a * (1 - a)) ** 2 + a**4 / 2 + a**2
    assert phi.max() < 1.6
    assert phi[a >= 0.8].max() <= 1.5
    b = np.linspace(0, 1, 5001)
    left = (3 + b) - (1 - b) * (square * b**2 + (1 + b) ** 2 / 2)
    assert 0.16 < left.min() < 0.18
    loss, more = LogisticNewton(), math.sqrt(1.02) * LogisticNewton().robust_weight
    near = np.linspace(0.9, 1, 1001)
    beyond = squared_distances(0.0, 0.0, 1.0, 1.0, near, loss.balance, more).max()
    assert math.sqrt(beyond) > loss.sensitivity(robust=True)


@pytest.mark.parametrize("bounds", [(8.0, 3.0, 7.0), (100.0, 100.0, 100.0), (1.0, 0.2, 0.3)])
def test_squared_slopes_are_free_for_counts(bounds) -> None:
    loss = PoissonNewton.of(*bounds)
    assert loss.sensitivity(robust=True) == loss.sensitivity()
    _, H, G = bounds
    grid = np.linspace(0, 1, 9)
    m, n, a, b, c = np.meshgrid(H * grid, H * grid, G * grid, G * grid, np.linspace(0, 1, 41))
    found = squared_distances(m, n, a, b, c, loss.balance, loss.robust_weight).max()
    assert 0.999 * loss.sensitivity(robust=True) <= math.sqrt(found) <= loss.sensitivity()


def test_squared_slopes_that_would_cost_noise_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"balance=4\.96 <= 4\.5"):
        LogisticNewton(4.96).sensitivity(robust=True)
    with pytest.raises(InvalidValueError, match="robust_weight"):
        maps.bounded_sensitivity(1.0, 1.0, 1.0, robust_weight=0.8)


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
        (PoissonNewton.of(30.0, 30.0, 30.0), lambda t, y: np.exp(t) - y * t),
    ):
        for y in (1.0, -1.0) if isinstance(loss, LogisticNewton) else (0.0, 7.0):
            g, h = loss.slopes(t, np.full_like(t, y))
            assert np.allclose(g, (value(t + step, y) - value(t - step, y)) / (2 * step), atol=1e-7)
            second = (value(t + step, y) - 2 * value(t, y) + value(t - step, y)) / step**2
            assert np.allclose(h, second, atol=1e-4)


def test_slopes_are_bounded_for_every_input_and_cut_nowhere_else() -> None:
    wild = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324])
    for t, y in itertools.product(wild, wild):
        g, h = LogisticNewton().slopes(t, y)
        assert abs(g) <= 1
        assert 0 <= h <= 0.25
        loss = PoissonNewton.of(8.0, 3.0, 4.0)
        g, h = loss.slopes(t, y)
        assert abs(g) <= loss.gradient_bound
        assert 0 < h <= loss.curvature_bound
    loss = PoissonNewton.of(50.0, 3.0, 5.0)
    g, h = loss.slopes(np.log([2.0, 4.0, 20.0, 2.0]), np.array([1.0, 30.0, 0.0, 6.0]))
    assert g.tolist() == pytest.approx([1.0, -5.0, 5.0, -4.0])
    assert h.tolist() == pytest.approx([2.0, 3.0, 3.0, 2.0])


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_refuses_what_is_not_positive(wrong: float) -> None:
    with pytest.raises(InvalidValueError):
        LogisticNewton(wrong)
    for place in range(4):
        with pytest.raises(InvalidValueError):
            PoissonNewton(*[wrong if place == at else 1.0 for at in range(4)])
    with pytest.raises(InvalidValueError, match="count_bound"):
        PoissonNewton.of(1e20, 1.0, 1.0)


@pytest.mark.parametrize(
    ("loss", "most"),
    [(LogisticNewton(), 8.0), (LogisticNewton(2.0), 8.0), (PoissonNewton.of(9, 2.0, 3.0), 4.0)],
)
@pytest.mark.parametrize("zero_out", [False, True])
def test_people_with_several_rows_move_mean_slopes_and_their_squares_no_farther(
    loss, most, zero_out
) -> None:
    """A search over people of three rows each, who send the mean of (M, p), and ppᵀ of that p."""
    generator = np.random.default_rng(3)
    climbers, rows, d = 600, 3, 2
    high = getattr(loss, "count_bound", 1.0)
    low = 0.0 if high > 1 else -1.0
    targets = generator.choice([low, high], (2, climbers * rows))

    def sent(points, target):
        x, score = points[..., :d].reshape(-1, d), points[..., d].reshape(-1)
        M, p, _ = records(loss, x, score, target)
        M, p = (one.reshape(climbers, rows, *one.shape[1:]).mean(axis=1) for one in (M, p))
        return M, p / loss.balance, loss.robust_weight * p[:, :, None] * p[:, None, :]

    def gaps(points):
        one, other = (sent(points[:, who], targets[who]) for who in range(2))
        gap = [a - (0 if zero_out else b) for a, b in zip(one, other, strict=True)]
        return sum((part**2).reshape(climbers, -1).sum(axis=1) for part in gap)

    scale = np.array([1.0] * d + [most])
    points = scale * generator.normal(size=(climbers, 2, rows, d + 1))
    points[::2] = points[::2, :, :1]  # half begin where all rows of a person are alike
    targets.reshape(2, climbers, rows)[:, ::2] = targets.reshape(2, climbers, rows)[:, ::2, :1]
    reached = gaps(points)
    for _ in range(400):
        size = 10 ** generator.uniform(-3, 0, (climbers, 1, 1, 1))
        step = generator.normal(size=points.shape)
        step[::2] = step[::2, :, :1]
        moved = points + size * scale * step
        there = gaps(moved)
        better = there > reached
        points[better], reached[better] = moved[better], there[better]
    claimed = loss.sensitivity("zero-out" if zero_out else "replace", robust=True)
    alike, different = (math.sqrt(part.max()) for part in (reached[::2], reached[1::2]))
    assert max(alike, different) <= claimed
    assert different <= alike * (1 + 1e-9) + 0.02 * claimed
    if isinstance(loss, LogisticNewton):
        assert alike == pytest.approx(claimed, rel=1e-3)
