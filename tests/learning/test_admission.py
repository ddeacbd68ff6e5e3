"""What passes is what honest contributors send; what they hardly ever send does not."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ncx2

from blurfit import Agreement, Binary, InvalidValueError, Numeric, Schema, perturb_table
from blurfit.agreement.numbers import LARGEST_PROBABILITY, SHARE, refusal_probability
from blurfit.learning.sums import Screen

SCHEMA = Schema(
    features=[Numeric("a", 0, 1), Numeric("b", 0, 1), Binary("c")], target=Numeric("y", 0, 1)
)


def propose(**changes) -> Agreement:
    return Agreement.propose(SCHEMA, **{"epsilon": 1, "delta": 1e-6, "quorum": 1000} | changes)


def blurred(agreement: Agreement, count: int, value: float = 1.0) -> np.ndarray:
    extreme = {name: np.full(count, value) for name in ("a", "b", "c", "y")}
    return perturb_table(agreement, extreme).numbers.copy()


@pytest.mark.parametrize("changes", [{}, {"local_epsilon": 2, "local_delta": 1e-6}])
def test_honest_submissions_pass(changes) -> None:
    agreement = propose(**changes)
    assert Screen.of(agreement).passes(blurred(agreement, 20_000)).all()


def test_the_radius_is_a_quantile_of_the_norm() -> None:
    """By Monte Carlo at a probability that can be seen: the same formula at 1/100."""
    agreement = propose(local_epsilon=2, local_delta=1e-6)
    screen, numbers = Screen.of(agreement), blurred(agreement, 40_000)
    gamma = refusal_probability(agreement) / len(agreement.parts)
    for part, radius in zip(agreement.parts, screen.radii, strict=True):
        size, noise = len(part.counts), part.deviations.max()  # of numbers that count once
        energy = np.square(numbers[:, part.numbers]) @ part.counts
        ceiling = noise**2 * ncx2.isf(0.01, size, (part.bound / noise) ** 2)
        assert np.mean(energy > ceiling) < 0.012  # records are at most as long as their bound
        exact = noise**2 * ncx2.isf(gamma, size, (part.bound / noise) ** 2)
        assert math.sqrt(exact) <= radius < 1.01 * math.sqrt(exact)


def test_no_record_is_longer_than_its_parts_bound() -> None:
    agreement = propose()
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    exact = agreement.exact(dict(zip(("a", "b", "c", "y"), corners.T, strict=True)))
    for part in agreement.parts:
        norms = np.sqrt(np.square(exact[:, part.numbers]) @ part.counts)
        assert norms.max() <= part.bound * (1 + 1e-12)
        assert norms.max() > 0.5 * part.bound


def test_the_cost_is_within_the_share_of_delta_or_norms_are_not_looked_at() -> None:
    for epsilon, delta, quorum in [(1, 1e-6, 1000), (0.1, 1e-9, 10**9), (20, 1e-3, 10)]:
        agreement = propose(epsilon=epsilon, delta=delta, quorum=quorum)
        gamma = refusal_probability(agreement)
        assert 0 < gamma <= LARGEST_PROBABILITY
        assert (1 + math.exp(epsilon)) * quorum * gamma <= SHARE * delta * (1 + 1e-9)
    agreement = propose(epsilon=800)
    assert refusal_probability(agreement) == 0
    screen = Screen.of(agreement)
    assert screen.radii == (math.inf,)
    assert screen.passes(blurred(agreement, 10) + 2.0**40).all()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda row, step: row.__setitem__(0, np.nan), "a number that is not finite"),
        (lambda row, step: row.__setitem__(-1, np.inf), "a number that is not finite"),
        (lambda row, step: row.__setitem__(-1, -np.inf), "a number that is not finite"),
        (lambda row, step: row.__setitem__(2, 2.0**30), "a norm above .* which noise"),
        (lambda row, step: row.__setitem__(-1, 2.0**30), "a norm above .* which noise"),
        (lambda row, step: row.__setitem__(0, 1e300), "a norm above .* which noise"),
        (lambda row, step: row.__setitem__(0, row[0] + step / 2), "no multiple of"),
        (lambda row, step: row.__setitem__(-1, row[-1] + step / 2), "no multiple of"),
    ],
)
def test_what_no_honest_contributor_sends_is_refused_with_its_place(spoil, message) -> None:
    agreement = propose()
    screen, numbers = Screen.of(agreement), blurred(agreement, 5)
    spoil(numbers[3], agreement.step)
    assert screen.passes(numbers).tolist() == [True, True, True, False, True]
    with pytest.raises(InvalidValueError, match=f"Submission 3 has .*{message}"):
        screen.require(numbers)


def test_beside_the_diagonal_counts_twice() -> None:
    agreement = propose()
    (part,) = Screen.of(agreement).parts
    pairs = [name.split("·") for name in agreement.form.names]
    assert part.counts.tolist() == [1.0 if one == other else 2.0 for one, other in pairs]
    np.testing.assert_allclose(part.deviations**2 * part.counts, agreement.calibration.noise**2)


HONEST = propose()
SENT = blurred(HONEST, 1)[0]


@given(data=st.data())
def test_off_the_grid_or_too_long_never_passes(data) -> None:
    """Any number of any part: half a fine step off, or pushed beyond the radius."""
    agreement, screen, row = HONEST, Screen.of(HONEST), SENT
    assert screen.passes(row[None]).all()
    number = data.draw(st.integers(0, agreement.width - 1))
    at, radius = next(
        (part, radius)
        for part, radius in zip(screen.parts, screen.radii, strict=True)
        if part.numbers.start <= number < part.numbers.stop
    )
    off = row.copy()
    off[number] += at.step * data.draw(st.sampled_from([0.5, 0.25, -0.5, 2.0**-12]))
    assert not screen.passes(off[None]).any()
    count = at.counts[number - at.numbers.start]
    beyond = radius / math.sqrt(count) * data.draw(st.floats(1.001, 1e6))
    long = row.copy()
    long[number] = math.copysign(math.ceil(beyond / at.step) * at.step, row[number])
    assert not screen.passes(long[None]).any()
    with pytest.raises(InvalidValueError, match="Submission 1 has a norm above"):
        screen.require(np.array([row, long]))
