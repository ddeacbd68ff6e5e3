"""Slopes are the derivatives of their losses, and weights stay in their ball."""

import numpy as np
import pytest

from blurfit_lab.rivals.gradient import into_balls, logistic_slope, squared_slope


@pytest.mark.parametrize(
    ("slope", "loss"),
    [
        (squared_slope, lambda z, y: (y - z) ** 2 / 2),
        (logistic_slope, lambda z, y: np.logaddexp(0, -y * z)),
    ],
)
def test_slopes(slope, loss) -> None:
    z, y, step = np.array([-3.0, -0.2, 0.0, 1.0]), np.array([1.0, -1, 1, -1]), 1e-6
    expected = (loss(z + step, y) - loss(z - step, y)) / (2 * step)
    assert slope(z, y) == pytest.approx(expected, abs=1e-8)


def test_into_balls() -> None:
    weights = np.array([[3.0, 4.0], [0.1, 0.0]])
    into_balls(weights, 1.0)
    assert weights == pytest.approx(np.array([[0.6, 0.8], [0.1, 0.0]]))
