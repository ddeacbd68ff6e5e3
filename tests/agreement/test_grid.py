import math
from dataclasses import replace

import numpy as np
import pytest

from blurfit import InfeasibleError, NotCertifiedError, Statistics, calibrate
from blurfit.agreement.grid import ROUNDING, Grid, weight_step
from blurfit.simulation.sampler import sampler_for
from blurfit.theory import moment
from blurfit.theory.setting import Setting


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize(("dimension", "quorum"), [(1, 10), (5, 3000), (30, 10**9)])
def test_rounding_is_covered_by_the_larger_bounds(neighbours, parallel, dimension, quorum) -> None:
    """Δ for the true bounds, plus what rounding two records adds, is at most the calibrated Δ."""
    factor = 1 + ROUNDING
    found = calibrate(
        1,
        1e-6,
        dimension=dimension,
        quorum=quorum,
        q_bound=0.7 * factor,
        p_bound=1.3 * factor,
        parallel=parallel,
        neighbours=neighbours,
    )
    grid = Grid.of(found)
    grid.verify(found)
    true = moment.sensitivity(
        Setting(dimension, quorum, 0.7, 1.3, None, neighbours), found.balance, parallel=parallel
    )
    added = math.hypot(
        grid.quadratic * dimension, grid.linear * math.sqrt(dimension) / found.balance
    )
    assert true + added <= found.sensitivity
    for step in (grid.quadratic, grid.linear):
        assert math.log2(step) == round(math.log2(step))


def test_steps_are_small_against_the_noise() -> None:
    for mechanism in ("input", "moment"):
        found = calibrate(
            1,
            1e-6,
            dimension=3,
            quorum=100,
            q_bound=1,
            p_bound=1,
            weight_bound=1,
            mechanism=mechanism,
        )
        grid = Grid.of(found)
        noise = found.q_noise if mechanism == "input" else found.m_noise
        assert grid.quadratic <= noise / 1000
        assert grid.linear <= found.p_noise / 1000


def test_weight_step_is_a_power_of_two() -> None:
    for bound in (0.3, 1.0, 7.0):
        step = weight_step(bound)
        assert np.log2(step) % 1 == 0
        assert bound * 2.0**-21 <= step <= bound * 2.0**-20


@pytest.mark.parametrize("local", [{}, {"local_epsilon": 3.0, "local_delta": 1e-6}])
@pytest.mark.parametrize(("dimension", "quorum"), [(1, 2), (3, 200), (14, 2**20)])
def test_a_cell_of_weights_holds_many_points_of_the_lattice(local, dimension, quorum) -> None:
    """For real Gram matrices of the mechanism, not for its floor: ω·λ_min(A + Δ_in)/g is large."""
    found = calibrate(
        1,
        1e-6,
        dimension=dimension,
        quorum=quorum,
        q_bound=1,
        p_bound=1,
        weight_bound=2,
        mechanism="input",
        **local,
    )
    grid = Grid.of(found)
    draws = sampler_for(found, Statistics(quorum, np.zeros((dimension,) * 2), np.zeros(dimension)))
    generator = np.random.default_rng(0)
    for _ in range(100):
        smallest = np.linalg.eigvalsh(draws.draw(generator).gram)[0] + found.ridge
        assert weight_step(2.0) * smallest / grid.dither >= 2.0**12 * dimension


def test_all_other_grids_are_refused() -> None:
    for mechanism in ("input", "moment"):
        found = calibrate(
            1,
            1e-6,
            dimension=3,
            quorum=100,
            q_bound=1,
            p_bound=1,
            weight_bound=1,
            mechanism=mechanism,
        )
        grid = Grid.of(found)
        grid.verify(found)
        for name in ("quadratic", "linear", "dither"):
            for factor in (0.25, 0.5, 2.0, 3.0, 0.0, -1.0):
                with pytest.raises(NotCertifiedError, match="which follows from the noise"):
                    replace(grid, **{name: getattr(grid, name) * factor}).verify(found)


def test_too_few_records_for_a_certain_curvature() -> None:
    found = calibrate(
        1,
        1e-6,
        dimension=3,
        quorum=8,
        q_bound=1,
        p_bound=1,
        weight_bound=1,
        mechanism="input",
        local_epsilon=0.5,
        local_delta=1e-6,
        debias=False,
    )
    if found.ridge <= 0:
        with pytest.raises(InfeasibleError, match="larger quorum than 8"):
            Grid.of(found)
