import math

import numpy as np
import pytest

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    NotCertifiedError,
    Numeric,
    Schema,
)
from blurfit.agreement.numbers import ROUNDING, coarsest_step, enlarged, require_step
from blurfit.theory.moments import MomentCalibration, Reach, calibrate_moment

LOCAL = {"local_epsilon": 3.0, "local_delta": 1e-6}


def moment(quorum: int = 3000, sums: float = 1.3, neighbours: str = "replace") -> MomentCalibration:
    reach = enlarged(Reach(sums, 1.7))
    return calibrate_moment(1, 1e-6, reach=reach, quorum=quorum, neighbours=neighbours)


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize(("size", "quorum"), [(2, 10), (6, 3000), (31, 10**9)])
def test_rounding_is_covered_by_the_larger_reach(neighbours, size, quorum) -> None:
    """What rounding two records adds to their distance is within what the reach was enlarged by."""
    found = moment(quorum, 1.3, neighbours)
    for shared in (False, True):
        step = coarsest_step(found, size=size, shared=shared)
        require_step(step, found, size=size, shared=shared)
        assert 1.3 + step * size <= found.reach.sums
        assert math.log2(step) % 1 == 0
        assert step <= found.noise / (2000 if shared else 1000)
    assert found.reach.sums == pytest.approx(1.3 * (1 + ROUNDING))


def test_records_move_by_no_more_than_half_a_step_each() -> None:
    """The rounding that is paid for is the one that happens: real records of a real agreement."""
    people = Schema(
        [Numeric("age", 0, 100), Binary("m"), Categorical("r", ["a", "b", "c"])], Numeric("y", 0, 1)
    )
    agreement = Agreement.propose(people, epsilon=1, delta=1e-6, quorum=1000)
    generator = np.random.default_rng(0)
    age, y = generator.uniform(0, 100, 500), generator.uniform(0, 1, 500)
    married, region = generator.integers(0, 2, 500), generator.choice(["a", "b", "c"], 500)
    exact = agreement.exact({"age": age, "m": married, "r": region, "y": y})
    (part,) = agreement.parts
    moved = np.rint(exact / part.step) * part.step - exact
    norms = np.sqrt((moved**2 * part.counts).sum(axis=1))
    assert norms.max() <= part.step * agreement.form.size / 2
    assert norms.max() > 0


def test_all_other_grids_are_refused() -> None:
    for found in (moment(), moment(100)):
        step = coarsest_step(found, size=3)
        require_step(step, found, size=3)
        for factor in (0.25, 0.5, 0.75, 2.0, 3.0, 0.0, -1.0, math.inf, math.nan):
            with pytest.raises(NotCertifiedError, match="which follows from the noise"):
                require_step(step * factor, found, size=3)
