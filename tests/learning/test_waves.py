"""Identities that start Newton, maps that follow from releases, steps that reach the optimum."""

import math

import numpy as np
import pytest
from scipy.special import expit

from blurfit.errors import InvalidValueError
from blurfit.learning.joint_sums import JointSums, clean_sums
from blurfit.learning.linear_bayes import linear_bayes
from blurfit.learning.waves import (
    Belief,
    WaveSums,
    coordinates,
    first_belief,
    learn_wave,
    next_map,
    on_curve,
    step_sums,
)
from blurfit.theory.joint_form import JointColumn
from blurfit.theory.maps import NewtonMap, ResidualMap, map_from_dict
from blurfit.theory.newton import LogisticNewton

QUIET = 1e-6


def belief_of(v: np.ndarray, y: np.ndarray, task, count_bound=None, noise: float = QUIET) -> Belief:
    """What wave 1 says, nearly without noise."""
    columns = [JointColumn(f"v{j}", 0.4) for j in range(v.shape[1])]
    columns.append(JointColumn("y", 0.5, "sign" if task == "label" else "numeric"))
    sums = JointSums(
        tuple(columns), 0.4, len(v), clean_sums(columns, 0.4, np.column_stack([v, y])), noise
    )
    chosen = sums.submodel("y")
    return first_belief(chosen, linear_bayes(chosen), task, count_bound)


def quiet_sums(chart, v: np.ndarray, y: np.ndarray) -> WaveSums:
    if isinstance(chart, ResidualMap):
        z = chart.vectors(v, y)
        return WaveSums(len(v), z.T @ z, None, QUIET)
    matrix, linear = chart.sums(v, y)
    return WaveSums(len(v), matrix, linear, QUIET)


def features(generator: np.random.Generator, n: int, p: int = 3) -> np.ndarray:
    mixing = np.tril(np.full((p, p), 0.05), -1) + np.diag(np.linspace(0.1, 0.3, p))
    return np.clip(generator.normal(size=(n, p)) @ mixing.T + 0.1, -1, 1)


def labels(generator: np.random.Generator, v: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return np.where(generator.random(len(v)) < expit(beta[0] + v @ beta[1:]), 1.0, -1.0)


def optimum(v: np.ndarray, y: np.ndarray) -> np.ndarray:
    rows, w = np.column_stack([np.ones(len(v)), v]), np.zeros(v.shape[1] + 1)
    for _ in range(30):
        g, h = LogisticNewton().slopes(rows @ w, y)
        w = w - np.linalg.solve((rows * h[:, None]).T @ rows, rows.T @ g)
    return w


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
    assert np.allclose(curve.predict(v[:5]), np.exp(0.5 + v[:5] @ beta), rtol=0.05)


def test_newton_waves_reach_the_optimum_of_the_exact_loss() -> None:
    generator = np.random.default_rng(3)
    v = features(generator, 20_000)
    y = labels(generator, v, np.array([0.3, 4.0, -3.0, 1.0]))
    belief = belief_of(v, y, "label")
    for _ in range(3):
        chart = next_map(belief, "newton", len(v), 1.0)
        belief = learn_wave(belief, chart, quiet_sums(chart, v, y))
    # far-out records count less than in maximum likelihood: both estimate the same curve
    assert np.allclose(belief.coefficients, optimum(v, y), atol=0.15)
    expected = expit(0.3 + v @ [4.0, -3.0, 1.0])
    assert np.abs(belief.predict_proba(v) - expected).max() < 0.05
    assert ((belief.predict(v) > 0) == (belief.score(v) > 0)).all()


def test_residual_waves_reach_least_squares_of_white_people() -> None:
    """With noise that is negligible and hardly any record cut, the step ends at least squares."""
    generator = np.random.default_rng(4)
    v = features(generator, 20_000)
    y = np.clip(0.1 + v @ [0.5, -0.4, 0.3] + generator.normal(size=len(v)) * 0.1, -1, 1)
    belief = belief_of(v, y, "number", noise=200.0)
    chart = next_map(belief, "residual", 10**7, 1.0)
    after = learn_wave(belief, chart, quiet_sums(chart, v, y))
    rows = np.column_stack([np.ones(len(v)), v])
    best = np.linalg.lstsq(rows, y)[0]
    assert np.abs(belief.coefficients - best).max() > 0.02
    assert np.allclose(after.coefficients, best, atol=0.01)
    assert after.scale == pytest.approx(0.1, rel=0.1)
    again = next_map(after, "residual", 10**7, 1.0)
    whitened = np.cov(again.whitening.features(v).T)
    assert np.allclose(whitened / whitened.trace() * 3, np.eye(3), atol=0.1)


@pytest.mark.parametrize("task", ["number", "label", "count"])
def test_coordinates_agree_with_the_map(task) -> None:
    generator = np.random.default_rng(5)
    v = features(generator, 500)
    y = {"number": v[:, 0], "label": np.sign(v[:, 0]), "count": v[:, 0]}[task]
    belief = belief_of(v, y, task, 9.0 if task == "count" else None, noise=5.0)
    for kind in ("residual",) if task == "number" else ("residual", "newton"):
        chart = next_map(belief, kind, 500, 1.0)
        at = belief if kind == "residual" else on_curve(belief)
        change = generator.normal(size=4)
        step = coordinates(chart) @ change
        order = step if isinstance(chart, ResidualMap) else np.array([*step[1:], step[0]])
        beta, intercept = chart.model(order)
        assert np.allclose([intercept, *beta], at.coefficients + change)


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
    assert curve.score(v).std() < 2.7


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
    with pytest.raises(InvalidValueError, match="probabilities"):
        number.predict_proba(v)
    with pytest.raises(InvalidValueError, match="count_bound"):
        belief_of(v, v[:, 0], "count")
    chart = next_map(label, "newton", 300, 1.0)
    assert isinstance(chart, NewtonMap)
    with pytest.raises(InvalidValueError, match="another wave"):
        step_sums(chart, WaveSums(300, np.eye(5), None, 1.0))
    with pytest.raises(InvalidValueError, match="linear"):
        step_sums(chart, WaveSums(300, np.eye(4), np.ones(3), 1.0))
