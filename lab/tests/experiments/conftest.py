"""A small generated population that the tests of this folder share: nobody needs a data file."""

import pytest

from blurfit.simulation import make_census
from blurfit_lab.experiments.cohort import Cohort

__all__ = ["people"]


@pytest.fixture(scope="session")
def people() -> Cohort:
    """5,013 made-up people: more than whole blocks of 32 hold."""
    return Cohort.of(make_census(5013, seed=1), seed=3)
