"""Attackers, bounds from counts, and examinations of releases."""

import math

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import binomtest

from blurfit import InvalidValueError
from blurfit.theory.gaussian import epsilon_of
from blurfit_lab.audit.examination import (
    Event,
    Finding,
    Findings,
    along,
    candidates,
    choose_event,
    counted_epsilon,
    epsilon_floor,
    examine,
    gaussian_mu,
    linear,
    lowest_bit,
    proportion_ceiling,
    proportion_floor,
    quadratic,
)

mpl.use("Agg")

KEPT = Finding("sums", "opposite records", "linear", 1000, 1.0, 1e-6, 0.4, 0.9, 0.95)
BROKEN = Finding("model", "zero and extreme", "quadratic", 1000, 1.0, 1e-6, 2.5)


def gaussians(shift: float, seed: int = 0):
    generator = np.random.default_rng(seed)
    return lambda which, count: generator.normal(size=(count, 3)) + (0 if which else shift)


def found(draw, **how) -> Finding:
    given = {"trials": 2000, "confidence": 0.99, "promise": (1.0, 1e-5), "labels": ("a", "b")}
    return examine(draw, **(given | how))


def test_no_more_trials_than_asked_for_and_none_counted_twice() -> None:
    drawn = []

    def draw(which: bool, count: int) -> np.ndarray:
        drawn.append((which, count))
        return np.random.default_rng(len(drawn)).normal(size=(count, 1))

    found(draw)
    assert [sum(n for side, n in drawn if side is which) for which in (False, True)] == [2000] * 2
    assert len(drawn) == 6


def test_choosing_on_other_trials_keeps_the_confidence() -> None:
    """Equal laws, many attackers: almost never is anything found."""
    wrong = sum(found(gaussians(0.0, seed), confidence=0.95).audited > 0 for seed in range(60))
    assert wrong <= 8


def test_what_is_found_is_told_beside_the_promise() -> None:
    one = found(gaussians(3.0), gaussian=1e-5, exact=20.0)
    assert one.counted > 3
    assert one.gaussian is not None
    assert one.audited == max(one.counted, one.gaussian)
    assert one.broken
    assert one.ratio == one.audited / 1.0
    assert one.to_dict()["exact"] == 20.0


def test_own_attacks_are_tried_too() -> None:
    def draw(which: bool, count: int) -> np.ndarray:
        numbers = np.random.default_rng(count + which).integers(0, 1000, (count, 1)) * 1.0
        return numbers - numbers % 2 + (0 if which else 1)  # odd or even

    attack = {"parity": lambda seen: seen[:, 0] % 2}
    one = found(draw, attacks=attack)
    assert one.counted > 5


def test_bars_are_as_long_as_what_was_found() -> None:
    axes = Findings([KEPT, BROKEN]).plot()
    kept, broken = axes.patches
    assert (kept.get_width(), broken.get_width()) == pytest.approx((0.9, 2.5))
    assert kept.get_facecolor() != broken.get_facecolor()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "sums: opposite records",
        "model: zero and extreme",
    ]
    mpl.pyplot.close(axes.figure)


# ---- attacks
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


def test_linear_finds_a_shift_and_shared_noise_and_quadratic_a_spread() -> None:
    training, fresh = releases(np.array([2.0, 0, -2]), 1.0)
    assert shown(linear(*training), training, fresh) > 4
    assert shown(along([1.0, 0, -1]), training, fresh) > 4
    training, fresh = releases(0.0, np.array([1.0, 4.0, 1.0]))
    assert shown(quadratic(*training), training, fresh) > 2
    assert shown(linear(*training), training, fresh) < 1
    generator = np.random.default_rng(2)

    def side(value: float) -> np.ndarray:
        noise = generator.normal(size=(TRIALS, 2))
        return np.hstack([value + noise, noise]) * [1.0, 1e6, 1.0, 1e6]

    training, fresh = (side(1.0), side(0.0)), (side(1.0), side(0.0))
    assert shown(linear(*training), training, fresh) > 6


def test_the_lowest_bit_of_float_noise_betrays_what_it_was_added_to() -> None:
    """1 + noise is a multiple of 2⁻⁵³ where noise alone is not."""
    generator = np.random.default_rng(3)
    training, fresh = (
        (generator.normal(size=(TRIALS, 1)), 1.0 + generator.normal(size=(TRIALS, 1)))
        for _ in range(2)
    )
    score = candidates(*training)["lowest bit"]
    assert shown(score, training, fresh) > 5
    numbers = np.array([[1.0], [0.75], [-0.375], [2.0**-1074], [0.0], [3 * 2.0**40]])
    assert lowest_bit(0)(numbers).tolist() == [0, -2, -3, -1074, 1100, 40]


@pytest.mark.parametrize("name", ["linear", "quadratic", "lowest bit"])
def test_nothing_is_found_where_there_is_nothing(name: str) -> None:
    training, fresh = releases(0.0, 1.0, seed=5)
    assert shown(candidates(*training)[name], training, fresh) == 0


def test_long_releases_have_no_quadratic_attacker() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(2, 200, 41))
    assert set(candidates(first, second)) == {"linear", "lowest bit"}


# ---- count bounds
@pytest.mark.parametrize(("count", "trials"), [(0, 10), (1, 10), (5, 10), (10, 10), (37, 4000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_proportions_are_clopper_and_pearsons(count: int, trials: int, alpha: float) -> None:
    least = binomtest(count, trials, alternative="greater").proportion_ci(1 - alpha, "exact").low
    most = binomtest(count, trials, alternative="less").proportion_ci(1 - alpha, "exact").high
    assert proportion_floor(count, trials, alpha) == pytest.approx(least, rel=1e-9)
    assert proportion_ceiling(count, trials, alpha) == pytest.approx(most, rel=1e-9)


def test_epsilon_by_hand_and_for_equal_trials_alone() -> None:
    p = binomtest(900, 1000, alternative="greater").proportion_ci(0.975, "exact").low
    q = binomtest(100, 1000, alternative="less").proportion_ci(0.975, "exact").high
    assert epsilon_floor(900, 100, 1000, 0.01, 0.05) == pytest.approx(math.log((p - 0.01) / q))
    assert epsilon_floor(100, 900, 1000, 0.01, 0.05) == 0
    assert epsilon_floor(5, 0, 1000, 0.9, 0.05) == 0  # δ covers it
    with pytest.raises(InvalidValueError, match="3 and 2"):
        counted_epsilon(Event(0.0, True, False), np.ones(3), np.ones(2), 0.0, 0.05)


def test_the_best_event_is_found_on_either_side() -> None:
    generator = np.random.default_rng(0)
    low, high = generator.normal(size=(2, 4000)) + np.array([[0], [2]])
    for first, second in ((high, low), (low, high)):
        event = choose_event(first, second, 1e-5, 0.01)
        shown = counted_epsilon(event, first, second, 1e-5, 0.01)
        assert shown > 3
    seldom = np.where(generator.random(4000) < 0.5, 7.0, low)  # an atom that only one side has
    event = choose_event(seldom, low, 1e-5, 0.01)
    assert counted_epsilon(event, seldom, low, 1e-5, 0.01) > 4


def test_lower_bounds_hold_as_often_as_they_say() -> None:
    """Laplace noise with ε = 1: randomised over runs, too large a bound must stay rarer than α.

    Bounds that are wrong twice as often would be caught in 99 of 100 such tests.
    """
    generator = np.random.default_rng(1)
    alpha, wrong, runs = 0.05, 0, 200
    for _ in range(runs):
        first, second, third, fourth = generator.laplace(size=(4, 500))
        event = choose_event(first + 1, second, 0.0, alpha)
        wrong += counted_epsilon(event, third + 1, fourth, 0.0, alpha) > 1
    assert wrong <= runs * alpha


@pytest.mark.parametrize("mu", [0.0, 0.3, 2.0, 6.0, 45.0])
def test_gaussian_mu_is_a_lower_bound_and_near(mu: float) -> None:
    generator = np.random.default_rng(int(10 * mu))
    trials, wrong = 20_000, 0
    for _ in range(20):
        scores = generator.normal(size=(4, trials)) + np.array([[mu], [0], [mu], [0]])
        found = gaussian_mu((scores[0], scores[1]), (scores[2], scores[3]), 0.01, bridge=True)
        wrong += found > mu
        if mu >= 2:
            assert epsilon_of(found, 1e-6) > 0.9 * epsilon_of(mu, 1e-6)
    assert wrong <= 1
    swapped = gaussian_mu((scores[1], scores[0]), (scores[3], scores[2]), 0.01, bridge=True)
    assert swapped == pytest.approx(found)


def test_gaussian_readings_assume_nothing_without_the_bridge_nor_without_noise() -> None:
    """Far apart: counting alone ends near Φ⁻¹ of one in the number of trials, on either side."""
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(4, 10_000)) + np.array([[45], [0], [45], [0]])
    pairs = (scores[0], scores[1]), (scores[2], scores[3])
    assert 5 < gaussian_mu(*pairs, 0.01, bridge=False) < 8 < gaussian_mu(*pairs, 0.01, bridge=True)
    constant = np.ones(100)
    assert gaussian_mu((constant, constant), (constant, constant), 0.01, bridge=True) == 0
