"""Identities that start Newton, and maps that follow from releases."""

import math
from dataclasses import replace

import numpy as np
import pytest

from blurfit.agreement.mechanisms import map_from_dict
from blurfit.errors import InvalidValueError
from blurfit.learning.waves import next_map, on_curve
from support.beliefs import belief_of, features, labels
from support.waves_by_hand import score


def test_lines_of_gaussian_classes_become_their_log_odds() -> None:
    """Two Gaussian classes with one covariance, 3 to 7: the log-odds are linear, and known."""
    generator = np.random.default_rng(1)
    n = 200_000
    y = np.where(generator.random(n) < 0.3, 1.0, -1.0)
    delta = np.array([0.15, -0.1, 0.05])
    v = generator.normal(size=(n, 3)) * 0.15 + np.outer(y, delta / 2)
    curve = on_curve(belief_of(v, y, "label"))
    slope = delta / 0.15**2
    assert np.allclose(curve.coefficients[1:], slope, rtol=0.04, atol=0.08)
    assert curve.coefficients[0] == pytest.approx(math.log(0.3 / 0.7), abs=0.05)


def test_lines_of_counts_become_log_rates() -> None:
    generator = np.random.default_rng(2)
    v = generator.normal(size=(200_000, 3)) * 0.2
    beta = np.array([1.0, -0.6, 0.3])
    y = generator.poisson(np.exp(0.5 + v @ beta)).astype(float)
    curve = on_curve(belief_of(v, 2 * y / 20 - 1, "count", 20.0))
    assert np.allclose(curve.coefficients, [0.5, *beta], atol=0.04)
    assert np.allclose(np.exp(score(curve, v[:5])), np.exp(0.5 + v[:5] @ beta), rtol=0.05)


def rare_counts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers of yes that 2 % give, and multiply the rate by 9, by 1/3 and by 2."""
    generator = np.random.default_rng(5)
    v = np.where(generator.random((200_000, 3)) < 0.02, 1.0, -1.0)
    beta = np.log([9, 1 / 3, 2]) / 2
    y = np.minimum(generator.poisson(2 * np.exp((v + 1) @ beta)), 40).astype(float)
    return v, y, np.array([math.log(2) + beta.sum(), *beta])


def test_lines_of_counts_are_not_too_long_for_rare_answers() -> None:
    v, y, beta = rare_counts()
    line = replace(belief_of(v, 2 * y / 40 - 1, "count", 40.0), kinds=("sign",) * 3)
    curve = on_curve(line)
    assert np.allclose(curve.coefficients, beta, atol=0.08)
    assert on_curve(replace(line, kinds=())).coefficients[1] < 1.5  # at a bound: skewed as well
    levels = replace(belief_of((v + 1) / 2, 2 * y / 40 - 1, "count", 40.0), kinds=("level",) * 3)
    assert np.allclose(on_curve(levels).coefficients[1:], 2 * beta[1:], atol=0.15)


@pytest.mark.parametrize("task", ["number", "label", "count"])
def test_rare_answers_are_inside_of_the_radius(task) -> None:
    v, y, _ = rare_counts()
    y = np.where(y > 3, 1.0, -1.0) if task == "label" else 2 * y / 40 - 1
    belief = replace(belief_of(v, y, task, 40.0), kinds=("sign",) * 3)
    for kind in ("residual", "newton")[: 1 + (task != "number")]:
        chart = next_map(belief, kind, 2000, 0.1)
        yes = np.abs(chart.whitening.features(2 * np.eye(3) - 1))
        assert np.linalg.norm(yes, axis=1).max() < 1.1 * chart.radius * math.sqrt(3)


def test_the_next_map_is_a_function_of_the_release() -> None:
    generator = np.random.default_rng(6)
    v = features(generator, 3000)
    y = labels(generator, v, np.array([0.0, 2.0, -2.0, 1.0]))
    belief = belief_of(v, y, "label", noise=10.0)
    for kind in ("residual", "newton"):
        one, other = (next_map(belief, kind, 2000, 0.3).to_dict() for _ in range(2))
        assert one == other
        assert map_from_dict(one).to_dict() == one


def test_a_newton_start_is_never_beyond_where_curvature_is_left() -> None:
    generator = np.random.default_rng(7)
    v = features(generator, 5000)
    y = np.where(v[:, 0] + 0.01 * generator.normal(size=5000) > 0.1, 1.0, -1.0)
    curve = on_curve(belief_of(v, y, "label"))
    assert score(curve, v).std() < 2.7


def test_refuses_what_does_not_belong_together() -> None:
    generator = np.random.default_rng(8)
    v = features(generator, 300)
    number, label = belief_of(v, v[:, 0], "number"), belief_of(v, np.sign(v[:, 0]), "label")
    with pytest.raises(InvalidValueError, match="numbers"):
        next_map(number, "newton", 300, 1.0)
    with pytest.raises(InvalidValueError, match="before Newton"):
        next_map(on_curve(label), "residual", 300, 1.0)
    with pytest.raises(InvalidValueError, match="kind"):
        next_map(label, "joint", 300, 1.0)
    with pytest.raises(InvalidValueError, match="count_bound"):
        belief_of(v, v[:, 0], "count")
