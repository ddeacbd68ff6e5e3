"""The simplex finds a minimum that is known, keeps to its evaluations, and repeats itself."""

import numpy as np
import pytest

from blurfit.theory.gaussian import descend

MINIMUM = np.array([0.3, -1.2])


def bowl(point: np.ndarray) -> float:
    """Twelve times as steep along one diagonal as along the other."""
    x, y = point - MINIMUM
    return float((x + y) ** 2 + 12 * (x - y) ** 2)


def test_a_minimum_is_found_from_a_simplex_of_the_stated_reach() -> None:
    found = descend(bowl, np.zeros(2), steps=500, tolerance=1e-4)
    assert found == pytest.approx(MINIMUM, abs=2e-3)
    assert bowl(found) <= 1e-5
    asked = []

    def counted(point: np.ndarray) -> float:
        asked.append(point.tolist())
        return bowl(np.asarray(point))

    descend(counted, np.array([1.0, 2.0]), steps=5, reach=0.25)
    assert asked[:3] == [[1.0, 2.0], [1.25, 2.0], [1.0, 2.25]]


@pytest.mark.parametrize("steps", [3, 10, 40])
def test_no_more_evaluations_than_allowed_and_none_is_wasted(steps: int) -> None:
    asked = []

    def counted(point: np.ndarray) -> float:
        asked.append(point.copy())
        return bowl(point)

    found = descend(counted, np.zeros(2), steps=steps, tolerance=1e-12)
    assert 3 <= len(asked) <= steps
    assert bowl(found) == min(map(bowl, asked))  # the best point that was seen
