import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from blurfit.theory.input_calibration import InputCalibration
from msgspec import structs

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
from blurfit.agreement.numbers import ROUNDING, Grid, enlarged, weight_scale
from blurfit.learning.sums import Screen, Statistics
from blurfit.simulation import input_totals, sampler_for
from blurfit.theory.moments import MomentCalibration, Reach, calibrate_moment

LOCAL = {"local_epsilon": 3.0, "local_delta": 1e-6}


def moment(quorum: int = 3000, sums: float = 1.3, neighbours: str = "replace") -> MomentCalibration:
    reach = enlarged(Reach(sums, 1.7))
    return calibrate_moment(1, 1e-6, reach=reach, quorum=quorum, neighbours=neighbours)


def schema(dimension: int) -> Schema:
    features = [Numeric(f"v{j}", -1, 1) for j in range(dimension)]
    return Schema(features=features, target=Numeric("y", -1, 1), intercept=False)


def agreed(dimension: int = 3, quorum: int = 100, **terms) -> Agreement:
    choices = {"epsilon": 1, "delta": 1e-6, "weight_bound": 2.0} | terms
    return Agreement.propose(schema(dimension), mechanism="input", quorum=quorum, **choices)


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize(("size", "quorum"), [(2, 10), (6, 3000), (31, 10**9)])
def test_rounding_is_covered_by_the_larger_reach(neighbours, size, quorum) -> None:
    """What rounding two records adds to their distance is within what the reach was enlarged by."""
    found = moment(quorum, 1.3, neighbours)
    for shared in (False, True):
        grid = Grid.of(found, size=size, shared=shared)
        grid.verify(found, size=size, shared=shared)
        assert 1.3 + grid.quadratic * size <= found.reach.sums
        assert math.log2(grid.quadratic) % 1 == 0
        assert grid.quadratic <= found.noise / (2000 if shared else 1000)
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


def test_steps_and_the_last_scale_are_small_powers_of_two() -> None:
    agreement = agreed()
    grid, found = agreement.grid, agreement.calibration
    assert grid.quadratic <= found.q_noise / 8000
    assert grid.linear <= found.p_noise / 8000
    assert grid.dither <= grid.linear
    for bound in (0.3, 1.0, 7.0):
        agreement = agreed(weight_bound=bound)
        scale = weight_scale(agreement.calibration, agreement.grid, 100)
        assert math.log2(scale) % 1 == 0
        assert bound * 2.0**-21 <= scale <= bound * 2.0**-20


@pytest.mark.parametrize("local", [{}, LOCAL])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize(("dimension", "quorum"), [(1, 2), (3, 200), (14, 2**20), (14, 2**23)])
def test_errors_of_the_weights_are_paid_for(local, epsilon, dimension, quorum) -> None:
    """2√d·e/b within 2⁻¹⁰·ε, for the curvature and the sums of real draws and not for their bounds:
    lattice, sums as float64 rounds them and the solver's share, at the quorum and well beyond it.
    """
    agreement = agreed(dimension, quorum, epsilon=epsilon, **local)
    found, grid = agreement.calibration, agreement.grid
    assert isinstance(found, InputCalibration)
    generator = np.random.default_rng(0)
    for count in (quorum, 64 * quorum):
        corner = np.ones((dimension, dimension)) / dimension  # everybody has the same longest q
        p = np.full(dimension, 1 / math.sqrt(dimension))
        clean = Statistics(count, count * corner, count * p)
        draws = sampler_for(agreement, input_totals(agreement, clean))
        scale = weight_scale(found, grid, count)
        for _ in range(20):
            sums = draws.draw(generator).sums
            A, c = sums[:-dimension], sums[-dimension:]
            full = np.zeros((dimension, dimension))
            full[np.triu_indices(dimension)] = A
            smallest = np.linalg.eigvalsh(full, UPLO="U")[0] + found.ridge
            rounded = np.linalg.norm(np.spacing(np.abs(c))) / 2
            rounded += 2.0 * np.linalg.norm(np.spacing(np.abs(full))) / math.sqrt(2)
            error = (math.sqrt(dimension) * grid.dither / 2 + rounded) / smallest
            loss = 2 * math.sqrt(dimension) * (error / scale + 2.0**-40)
            assert loss <= found.model.epsilon * 2.0**-10
            assert math.expm1(loss / 2) <= 3e-4  # of δ


@pytest.mark.parametrize(("dimension", "quorum"), [(1, 2000), (14, 2**20)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("local", [{}, LOCAL])
def test_no_submission_that_passes_is_longer_than_accounted(
    local, dimension, quorum, epsilon
) -> None:
    """b where the sums' rounding decides: what the screen's radii need, at a curvature that is
    larger than κ.
    """
    agreement = agreed(dimension, quorum, epsilon=epsilon, **local)
    q, p = Screen.of(agreement).radii
    found, count = agreement.calibration, 2**60
    scale = weight_scale(found, agreement.grid, count)
    error = 2.0**-53 * count * (p + 2.0 * q**2) / found.loss.strong_convexity
    share = min(1.0, found.model.epsilon) * 2.0**-12
    assert 2 * math.sqrt(dimension) * error / scale <= share


def test_more_people_never_get_a_finer_scale() -> None:
    agreement = agreed(14, 2**15, epsilon=0.1)
    counts = [2**k for k in range(15, 41)]
    scales = [weight_scale(agreement.calibration, agreement.grid, count) for count in counts]
    assert all(a <= b for a, b in itertools.pairwise(scales))
    assert scales[0] < scales[-1]


def test_all_other_grids_are_refused() -> None:
    for found in (agreed().calibration, moment()):
        grid = Grid.of(found, size=3)
        grid.verify(found, size=3)
        for name in ("quadratic", "linear", "dither"):
            for factor in (0.25, 0.5, 2.0, 3.0, 0.0, -1.0):
                changed = structs.replace(grid, **{name: getattr(grid, name) * factor})
                with pytest.raises(NotCertifiedError, match="which follows from the noise"):
                    changed.verify(found, size=3)


def test_too_few_records_for_a_certain_curvature() -> None:
    found = calibrate(1, 1e-6, dimension=3, quorum=8, q_bound=1, p_bound=1, weight_bound=1)
    assert found.ridge > 0
    with pytest.raises(InfeasibleError, match="larger quorum than 8"):
        Grid.of(replace(found, ridge=0.0), size=3)
