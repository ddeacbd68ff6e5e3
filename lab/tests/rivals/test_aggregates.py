"""BinAgg and TukeyEM: budgets from the noise alone, trees, boxes and draws by their laws."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import expit, ndtri
from scipy.stats import chisquare

from blurfit.theory.gaussian import mu_of
from blurfit_lab.rivals import BinAggRegressor, TukeyRegressor
from blurfit_lab.rivals.aggregates import Spending, draw, log_widths, private_tree, safety


def mu_kept(budget: Spending, dimension: int, neighbours: str) -> float:
    """What all four parts are together, from their noise alone."""
    replace = neighbours == "replace"
    tree = -2 * ndtri(expit(-budget.tree * (2 if replace else 1)))
    count = (math.sqrt(2) if replace else 1.0) / budget.counts
    features = (2.0 if replace else 1.0) * math.sqrt(dimension) / budget.features
    target = (2.0 if replace else 1.0) / budget.target
    return math.sqrt(tree**2 + count**2 + features**2 + target**2)


@pytest.mark.parametrize("neighbours", ["zero-out", "replace"])
@pytest.mark.parametrize("dimension", [1, 9])
def test_the_parts_compose_to_the_promise(neighbours, dimension) -> None:
    budget = Spending.of(1.0, 1e-6, dimension, neighbours)
    assert mu_kept(budget, dimension, neighbours) == pytest.approx(mu_of(1.0, 1e-6), rel=1e-6)
    assert mu_kept(budget, dimension, neighbours) <= mu_of(1.0, 1e-6)


def test_nobody_moves_a_boxs_sums_further_than_the_budget_says() -> None:
    """μ² of Σx over all pairs of records and boxes, from the noise of each coordinate."""
    generator, d = np.random.default_rng(0), 3
    reach = np.full(d, 1 / math.sqrt(d))
    x = generator.uniform(-1, 1, (300, d)) * reach
    boxes = private_tree(x, reach, 5.0, generator)
    scales = [np.maximum(np.abs(box.lower), np.abs(box.upper)) for box in boxes]
    sides = [
        np.array([getattr(box, side) for box in boxes]) / scales for side in ("lower", "upper")
    ]
    alone = [(side**2).sum(axis=1) for side in sides]
    removed = float(np.max(alone))
    within = ((sides[0] - sides[1]) ** 2).sum(axis=1)  # from one corner of a box to another
    first, second = np.sort(np.max(alone, axis=0))[-2:]  # from one box to another
    replaced = max(float(within.max()), float(first + second))
    assert removed <= d * (1 + 1e-12)  # √d coordinates, each one deviation: what the code forgets
    assert removed > 0.9 * d
    assert replaced <= 4 * d * (1 + 1e-12)


def test_the_boxes_are_a_partition() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, (400, 2))
    boxes = private_tree(x, np.ones(2), 2.0, generator)
    assert sorted(np.concatenate([box.rows for box in boxes]).tolist()) == list(range(400))
    assert sum(float(np.prod(box.upper - box.lower)) for box in boxes) == pytest.approx(4.0)
    for box in boxes:
        assert (x[box.rows] >= box.lower).all()
        assert (x[box.rows] <= box.upper).all()
    assert len(private_tree(x[:0], np.ones(2), 0.01, generator)) >= 3


@pytest.mark.statistical
def test_privtree_keeps_its_epsilon() -> None:
    """The trees' shapes with one record more, counted: no shape is likelier by more than e^ε."""
    epsilon, trials = 1.0, 6000
    x = np.array([[0.3], [0.31]])
    generator = np.random.default_rng(2)
    shapes = [
        Counter(
            tuple(
                sorted(
                    float(box.lower[0])
                    for box in private_tree(rows, np.ones(1), epsilon, generator)
                )
            )
            for _ in range(trials)
        )
        for rows in (x, x[:1])
    ]
    for one, other in (shapes, shapes[::-1]):
        for shape, count in one.items():
            if count > 100:
                error = 4 * math.sqrt(1 / count + 1 / max(other[shape], 1))
                assert math.log(count / max(other[shape], 1)) <= epsilon + error


def test_no_box_left_tells_nothing() -> None:
    model = BinAggRegressor(epsilon=1e-3, bounds=(-1, 1), target_bounds=(-1, 1), random_state=4)
    found = [
        BinAggRegressor(**model.get_params() | {"random_state": seed})
        .fit([[0.0], [1.0]], [0.0, 1.0])
        .weights_
        for seed in range(40)
    ]
    assert any(not weights.any() for weights in found)


def depths_of(points: np.ndarray, models: np.ndarray) -> np.ndarray:
    """By the definition: the fewest models on either side of each point, in any coordinate."""
    sides = [models[:, None] <= points, models[:, None] >= points]
    return np.minimum(*(side.sum(axis=0).min(axis=1) for side in sides))


def test_boxes_of_a_depth() -> None:
    generator = np.random.default_rng(0)
    models = generator.standard_normal((21, 2))
    widths, ordered = log_widths(models), np.sort(models, axis=0)
    assert widths.shape == (10, 2)
    for depth in (1, 4, 10):
        low, high = ordered[depth - 1], ordered[-depth]
        assert np.exp(widths[depth - 1]) == pytest.approx(high - low)
        points = generator.uniform(low - 0.2, high + 0.2, (50, 2))
        inside = ((points > low) & (points < high)).all(axis=1)
        assert inside.tolist() == (depths_of(points, models) >= depth).tolist()


@pytest.mark.statistical
def test_the_draw_has_the_density_that_it_claims() -> None:
    """Weights e^{ε·depth/2}·volume of each depth, from a fine grid of points, against draws."""
    generator = np.random.default_rng(1)
    models, t, epsilon = generator.standard_normal((16, 2)), 3, 1.5
    drawn = np.array([draw(models, t, epsilon, generator) for _ in range(4000)])
    depths = depths_of(drawn, models)
    assert depths.min() >= t
    ordered = np.sort(models, axis=0)
    grid = generator.uniform(ordered[t - 1], ordered[-t], (60_000, 2))
    shares = depths_of(grid, models)
    weights = np.array([math.exp(epsilon * k / 2) * (shares == k).sum() for k in range(t, 9)])
    counts = np.array([(depths == k).sum() for k in range(t, 9)])
    assert chisquare(counts, weights / weights.sum() * counts.sum()).pvalue > 1e-3
    # within one depth it is uniform: the share on the left of the middle model
    middle = float(np.median(models[:, 0]))
    at_t = depths == t
    expected = (grid[shares == t][:, 0] < middle).mean()
    assert (drawn[at_t][:, 0] < middle).mean() == pytest.approx(
        expected, abs=4 * 0.5 / math.sqrt(at_t.sum())
    )


def test_one_changed_model_moves_volumes_by_one_depth_and_safety_by_one() -> None:
    generator = np.random.default_rng(2)
    moved = set()
    for _ in range(300):
        models = generator.standard_normal((80, 2))
        other = models.copy()
        other[0] = generator.choice([1e3, -1e3, 0.0, 0.2]) * np.ones(2)
        before, after = (log_widths(table).sum(axis=1) for table in (models, other))
        assert (before[1:] <= after[:-1] + 1e-12).all()
        assert (after[1:] <= before[:-1] + 1e-12).all()
        one, two = (safety(volumes, 20, 4.0, 0.05) for volumes in (before, after))
        moved.add(abs(one - two))
        assert abs(one - two) <= 1
    assert moved == {0, 1}


def test_what_is_safe_is_private() -> None:
    """In one dimension the two densities are step functions: the hockey-stick exactly."""
    generator, t, epsilon, delta = np.random.default_rng(3), 6, 3.0, 0.05
    checked = 0
    for _ in range(200):
        models = generator.standard_normal((24, 1)) * generator.uniform(0.5, 2)
        other = models.copy()
        other[0] = generator.choice([models.min() - 5, models.max() + 5, 0.0])
        if safety(log_widths(models).sum(axis=1), t, epsilon, delta) < 1:
            continue
        checked += 1
        edges = np.sort(np.concatenate([models[:, 0], other[:, 0]]))
        middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        masses = []
        for table in (models, other):
            depths = depths_of(np.array(middles)[:, None], table)
            weights = np.where(depths >= t, np.exp(epsilon * depths / 2), 0.0) * widths
            masses.append(weights / weights.sum())
        assert np.maximum(0, masses[0] - math.exp(epsilon) * masses[1]).sum() <= delta
    assert checked > 20


def test_many_rows_give_least_squares_and_few_give_nothing() -> None:
    generator = np.random.default_rng(4)
    x = generator.uniform(-1, 1, (6000, 1))
    y = np.clip(0.5 * x[:, 0] + 0.1 + 0.05 * generator.standard_normal(6000), -1, 1)
    terms = {"bounds": (-1, 1), "target_bounds": (-1, 1), "random_state": 0, "epsilon": 5.0}
    model = TukeyRegressor(models=600, **terms).fit(x, y)
    assert model.coef_ == pytest.approx([0.5], abs=0.05)
    assert not TukeyRegressor(**terms).fit(x[:12], y[:12]).weights_.any()
    assert not TukeyRegressor(**terms | {"epsilon": 0.01}).fit(x, y).weights_.any()
