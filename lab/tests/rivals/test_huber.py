"""Huber's minimiser, by a general solver and by the two limits."""

import numpy as np
import pytest
from scipy.optimize import minimize

from blurfit_lab.rivals.perturbation import huber_minimiser


def problem(seed: int):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (60, 3)) / np.sqrt(3)
    y = np.clip(x @ [1.0, -2.0, 0.5] + generator.standard_t(2, 60) / 5, -1, 1)
    return x, y, generator.standard_normal(3)


@pytest.mark.parametrize("clip", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("size", [0.1, 10.0, 300.0])
def test_it_is_the_minimum(clip, size) -> None:
    x, y, linear = problem(0)
    linear = size * linear

    def objective(w):
        r = np.abs(y - x @ w)
        losses = np.where(r <= clip, r * r / 2, clip * r - clip * clip / 2)
        return losses.sum() + w @ w + linear @ w

    found = huber_minimiser(x, y, clip=clip, ridge=2.0, linear=linear)
    other = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert objective(found) <= other.fun + 1e-9 * abs(other.fun)
    residuals = np.clip(y - x @ found, -clip, clip)
    assert 2 * found + linear == pytest.approx(residuals @ x, abs=1e-7)


def test_without_clipping_it_is_ridge_regression() -> None:
    x, y, linear = problem(1)
    found = huber_minimiser(x, y, clip=100.0, ridge=0.5, linear=linear)
    assert found == pytest.approx(np.linalg.solve(x.T @ x + 0.5 * np.eye(3), x.T @ y - linear))
