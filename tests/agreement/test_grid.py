import math
from dataclasses import replace

import numpy as np
import pytest

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    InfeasibleError,
    NotCertifiedError,
    Numeric,
    Schema,
    calibrate,
)
from blurfit.agreement.grid import ROUNDING, Grid, enlarged, weight_step
from blurfit.learning.statistics import Statistics
from blurfit.model.learner import statistics_of
from blurfit.simulation.sampler import input_totals, sampler_for
from blurfit.theory.joint_form import JointColumn, JointForm
from blurfit.theory.moment_calibration import calibrate_moment


def form_of(size: int) -> JointForm:
    kinds = ("numeric", "sign")
    columns = [JointColumn(f"x{n}", 0.3 + 0.1 * (n % 5), kinds[n % 2]) for n in range(size)]
    return JointForm(0.7, tuple(columns))


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("columns", "quorum"), [(1, 10), (5, 3000), (30, 10**9)])
def test_rounding_is_covered_by_the_larger_reach(neighbours, shared, columns, quorum) -> None:
    """Δ of the form, plus what rounding two records adds, is at most the calibrated Δ."""
    form = form_of(columns)
    true = form.reach(neighbours)
    found = calibrate_moment(1, 1e-6, reach=enlarged(true), quorum=quorum, neighbours=neighbours)
    grid = Grid.of(found, size=form.size, shared=shared)
    grid.verify(found, size=form.size, shared=shared)
    for exact, paid in zip(true, found.reach, strict=True):
        assert exact + grid.quadratic * form.size <= paid
        assert paid <= exact * (1 + ROUNDING) * (1 + 1e-12)
    assert math.log2(grid.quadratic) == round(math.log2(grid.quadratic))
    assert grid.quadratic == grid.linear == grid.dither


def test_records_move_by_no_more_than_half_a_step_each() -> None:
    """The rounding that is paid for is the one that happens: real records of a real agreement."""
    schema = Schema(
        [Numeric("age", 0, 100), Binary("m"), Categorical("r", ["a", "b", "c"])],
        Numeric("y", 0, 1),
    )
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=1000)
    generator = np.random.default_rng(0)
    exact = agreement.exact(
        {
            "age": generator.uniform(0, 100, 500),
            "m": generator.integers(0, 2, 500),
            "r": generator.choice(["a", "b", "c"], 500),
            "y": generator.uniform(0, 1, 500),
        }
    )
    (part,) = agreement.parts
    moved = np.rint(exact / part.step) * part.step - exact
    norms = np.sqrt((moved**2 * part.counts).sum(axis=1))
    assert norms.max() <= part.step * agreement.form.size / 2
    assert norms.max() > 0


def test_steps_are_small_against_the_noise() -> None:
    found = calibrate_moment(1, 1e-6, reach=form_of(3).reach("replace"), quorum=100)
    assert Grid.of(found, size=4).quadratic <= found.noise / 1000
    found = calibrate(1, 1e-6, dimension=3, quorum=100, q_bound=1, p_bound=1, weight_bound=1)
    grid = Grid.of(found, size=3)
    assert grid.quadratic <= found.q_noise / 1000
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
    features = [Numeric(f"x{place}", -1, 1) for place in range(dimension)]
    agreement = Agreement.propose(
        Schema(features, Numeric("y", -1, 1), intercept=False),
        epsilon=1,
        delta=1e-6,
        quorum=quorum,
        mechanism="input",
        weight_bound=2.0,
        **local,
    )
    nobody = Statistics(quorum, np.zeros((dimension,) * 2), np.zeros(dimension))
    draws = sampler_for(agreement, input_totals(agreement, nobody))
    generator = np.random.default_rng(0)
    for _ in range(100):
        gram = statistics_of(agreement, draws.draw(generator)).gram
        smallest = np.linalg.eigvalsh(gram)[0] + agreement.calibration.ridge
        assert weight_step(2.0) * smallest / agreement.grid.dither >= 2.0**12 * dimension


def test_all_other_grids_are_refused() -> None:
    for found, size in (
        (calibrate(1, 1e-6, dimension=3, quorum=100, q_bound=1, p_bound=1, weight_bound=1), 3),
        (calibrate_moment(1, 1e-6, reach=form_of(3).reach("replace"), quorum=100), 4),
    ):
        grid = Grid.of(found, size=size)
        grid.verify(found, size=size)
        for name in ("quadratic", "linear", "dither"):
            for factor in (0.25, 0.5, 2.0, 3.0, 0.0, -1.0):
                with pytest.raises(NotCertifiedError, match="which follows from the noise"):
                    replace(grid, **{name: getattr(grid, name) * factor}).verify(found, size=size)


def test_too_few_records_for_a_certain_curvature() -> None:
    found = calibrate(
        1,
        1e-6,
        dimension=3,
        quorum=8,
        q_bound=1,
        p_bound=1,
        weight_bound=1,
        local_epsilon=0.5,
        local_delta=1e-6,
        debias=False,
    )
    if found.ridge <= 0:
        with pytest.raises(InfeasibleError, match="larger quorum than 8"):
            Grid.of(found, size=3)
