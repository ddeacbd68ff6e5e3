"""A small generated population that the tests of this folder share: nobody needs a data file."""

import pytest

from blurfit.datasets import make_census
from blurfit.experiments.cohort import Population


@pytest.fixture(scope="session")
def people() -> Population:
    """5,013 made-up people: more than whole blocks of 32 hold."""
    return Population.of(make_census(5013, seed=1), seed=3)
