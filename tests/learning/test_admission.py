"""What passes is what honest contributors send; what they hardly ever send does not."""

import math

import numpy as np
import pytest
from scipy.stats import ncx2

from blurfit import Agreement, Binary, InvalidValueError, Numeric, Schema, perturb_table
from blurfit.learning.admission import LARGEST_PROBABILITY, SHARE, Screen, refusal_probability

SCHEMA = Schema(
    features=[Numeric("a", 0, 1), Numeric("b", 0, 1), Binary("c")], target=Numeric("y", 0, 1)
)


def propose(mechanism: str = "moment", **changes) -> Agreement:
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 1000, "weight_bound": 2.0}
    return Agreement.propose(SCHEMA, mechanism=mechanism, **promise | changes)


def blurred(agreement: Agreement, count: int, value: float = 1.0) -> np.ndarray:
    extreme = {name: np.full(count, value) for name in ("a", "b", "c", "y")}
    table = perturb_table(agreement, extreme)
    return np.hstack([table.quadratic, table.linear])


@pytest.mark.parametrize("mechanism", ["moment", "input"])
@pytest.mark.parametrize("changes", [{}, {"local_epsilon": 2, "local_delta": 1e-6}])
def test_honest_submissions_pass(mechanism, changes) -> None:
    agreement = propose(mechanism, **changes)
    assert Screen.of(agreement).passes(blurred(agreement, 20_000)).all()


@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_the_radius_is_a_quantile_of_the_norm(mechanism) -> None:
    """By Monte Carlo at a probability that can be seen: the same formula at 1/100."""
    agreement = propose(mechanism, local_epsilon=2, local_delta=1e-6)
    screen, calibration = Screen.of(agreement), agreement.calibration
    numbers = blurred(agreement, 40_000)
    k = len(screen.squares)
    if mechanism == "moment":
        noise, shift = calibration.m_noise, calibration.setting.q_bound**2
    else:
        noise, shift = calibration.q_noise, calibration.setting.q_bound
    energy = np.square(numbers[:, :k]) @ screen.squares
    size = k if mechanism == "input" else 4 * 5 // 2
    ceiling = noise**2 * ncx2.isf(0.01, size, (shift / noise) ** 2)
    assert np.mean(energy > ceiling) < 0.012  # records are at most as long as their bound
    exact = noise**2 * ncx2.isf(refusal_probability(agreement) / 2, size, (shift / noise) ** 2)
    assert screen.quadratic_radius >= math.sqrt(exact)
    assert screen.quadratic_radius < 1.01 * math.sqrt(exact)


def test_the_cost_is_within_the_share_of_delta() -> None:
    for epsilon, delta, quorum in [(1, 1e-6, 1000), (0.1, 1e-9, 10**9), (20, 1e-3, 10)]:
        agreement = propose(epsilon=epsilon, delta=delta, quorum=quorum)
        gamma = refusal_probability(agreement)
        assert 0 < gamma <= LARGEST_PROBABILITY
        assert (1 + math.exp(epsilon)) * quorum * gamma <= SHARE * delta * (1 + 1e-9)


def test_where_epsilon_leaves_floating_point_norms_are_not_looked_at() -> None:
    agreement = propose(epsilon=800)
    assert refusal_probability(agreement) == 0
    screen = Screen.of(agreement)
    assert screen.quadratic_radius == math.inf
    assert screen.passes(blurred(agreement, 10) + 2.0**40).all()


@pytest.mark.parametrize("mechanism", ["moment", "input"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda row, grid: row.__setitem__(0, np.nan), "the number nan"),
        (lambda row, grid: row.__setitem__(-1, np.inf), "the number inf"),
        (lambda row, grid: row.__setitem__(-1, -np.inf), "the number -inf"),
        (lambda row, grid: row.__setitem__(0, 2.0**30), "a norm of 1.07374e.09 in quadratic"),
        (lambda row, grid: row.__setitem__(-1, 2.0**30), "a norm of 1.07374e.09 in linear"),
        (lambda row, grid: row.__setitem__(0, 1e300), "a norm of 1e.300 in quadratic"),
        (lambda row, grid: row.__setitem__(0, row[0] + grid.quadratic / 2), "in quadratic that is"),
        (lambda row, grid: row.__setitem__(-1, row[-1] + grid.dither / 2), "in linear that is no"),
    ],
)
def test_what_no_honest_contributor_sends_is_refused_with_its_place(
    mechanism, spoil, message
) -> None:
    agreement = propose(mechanism)
    screen, numbers = Screen.of(agreement), blurred(agreement, 5)
    spoil(numbers[3], agreement.grid)
    assert screen.passes(numbers).tolist() == [True, True, True, False, True]
    with pytest.raises(InvalidValueError, match=f"Submission 3 has {message}|{message}"):
        screen.require(numbers)


def test_beside_the_diagonal_counts_twice() -> None:
    agreement = propose()
    screen = Screen.of(agreement)
    assert screen.squares.tolist() == [1, 2, 2, 2, 1, 2, 2, 1, 2, 1]
