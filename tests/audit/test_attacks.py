"""Each attacker finds what it is for, and nothing where there is nothing."""

import numpy as np
import pytest

from blurfit.audit.examination import (
    along,
    candidates,
    choose_event,
    counted_epsilon,
    linear,
    lowest_bit,
    quadratic,
)

TRIALS = 4000


def shown(score, training, fresh) -> float:
    event = choose_event(score(training[0]), score(training[1]), 1e-5, 0.01)
    return counted_epsilon(event, score(fresh[0]), score(fresh[1]), 1e-5, 0.01)


def releases(shift, spread, seed: int = 0):
    generator = np.random.default_rng(seed)
    sides = generator.normal(size=(4, TRIALS, 3))
    for side in (0, 2):
        sides[side] = sides[side] * spread + shift
    return (sides[0], sides[1]), (sides[2], sides[3])


def test_linear_finds_a_shift_and_quadratic_a_spread() -> None:
    training, fresh = releases(np.array([2.0, 0, -2]), 1.0)
    assert shown(linear(*training), training, fresh) > 4
    assert shown(along([1.0, 0, -1]), training, fresh) > 4
    training, fresh = releases(0.0, np.array([1.0, 4.0, 1.0]))
    assert shown(quadratic(*training), training, fresh) > 2
    assert shown(linear(*training), training, fresh) < 1


def test_linear_finds_noise_that_two_numbers_share() -> None:
    generator = np.random.default_rng(2)

    def side(value: float) -> np.ndarray:
        noise = generator.normal(size=(TRIALS, 2))
        return np.hstack([value + noise, noise]) * [1.0, 1e6, 1.0, 1e6]

    training, fresh = (side(1.0), side(0.0)), (side(1.0), side(0.0))
    assert shown(linear(*training), training, fresh) > 6


def test_lowest_bit_knows_the_last_bit() -> None:
    numbers = np.array([[1.0], [0.75], [-0.375], [2.0**-1074], [0.0], [3 * 2.0**40]])
    assert lowest_bit(0)(numbers).tolist() == [0, -2, -3, -1074, 1100, 40]


def test_float_noise_betrays_what_it_was_added_to() -> None:
    """1 + noise is a multiple of 2⁻⁵³ where noise alone is not."""
    generator = np.random.default_rng(3)
    training, fresh = (
        (generator.normal(size=(TRIALS, 1)), 1.0 + generator.normal(size=(TRIALS, 1)))
        for _ in range(2)
    )
    score = candidates(*training)["lowest bit"]
    assert shown(score, training, fresh) > 5


@pytest.mark.parametrize("name", ["linear", "quadratic", "lowest bit"])
def test_nothing_is_found_where_there_is_nothing(name: str) -> None:
    training, fresh = releases(0.0, 1.0, seed=5)
    assert shown(candidates(*training)[name], training, fresh) == 0


def test_long_releases_have_no_quadratic_attacker() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(2, 200, 41))
    assert set(candidates(first, second)) == {"linear", "lowest bit"}
