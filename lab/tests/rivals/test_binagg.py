"""BinAgg: the budget from the noise alone, PrivTree's privacy by drawing, the bins, and the fit."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import expit, ndtri

from blurfit import InvalidValueError
from blurfit.theory.gaussian import mu_of
from blurfit_lab.rivals import BinAggRegressor
from blurfit_lab.rivals.aggregates import Spending, private_tree


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


def test_with_little_privacy_and_many_rows_it_is_near_least_squares() -> None:
    generator = np.random.default_rng(3)
    x = generator.uniform(-1, 1, (20_000, 2))
    y = x @ [0.5, -0.3] + 0.1
    for correction in ("code", "theorem"):
        model = BinAggRegressor(
            epsilon=20.0,
            bounds=(-1, 1),
            target_bounds=(-1, 1),
            correction=correction,
            random_state=0,
        ).fit(x, y)
        assert model.coef_ == pytest.approx([0.5, -0.3], abs=0.02)


def test_no_box_left_tells_nothing() -> None:
    model = BinAggRegressor(epsilon=1e-3, bounds=(-1, 1), target_bounds=(-1, 1), random_state=4)
    found = [
        BinAggRegressor(**model.get_params() | {"random_state": seed})
        .fit([[0.0], [1.0]], [0.0, 1.0])
        .weights_
        for seed in range(40)
    ]
    assert any(not weights.any() for weights in found)


def test_an_unknown_correction_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="correction"):
        BinAggRegressor(correction="half").promise()
