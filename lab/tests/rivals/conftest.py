"""What several tests of rivals hold noise against."""

from collections.abc import Callable

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant


@pytest.fixture
def delta_of_steps() -> Callable[[float, float, int], float]:
    """δ at ε of T Gaussian steps with noise z, by another library's privacy loss distribution."""

    def found(noise_multiplier: float, epsilon: float, steps: int) -> float:
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
        accountant.compose(dp_accounting.GaussianDpEvent(noise_multiplier), steps)
        return accountant.get_delta(epsilon)

    return found
