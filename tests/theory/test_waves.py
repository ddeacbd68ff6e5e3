"""The theorem by enumeration and by quadrature, twins that break it, plans from public facts."""

import itertools
import math

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.theory.gaussian import delta_of
from blurfit.theory.moments import sensitivity
from blurfit.theory.planning import (
    FEW,
    Stage,
    Stages,
    choose_plan,
    choose_shares,
    information,
    mean_alone,
    promise_of_share,
    public_weights,
    reach_of,
    shared_mu,
    strides_of,
)

KEEP = math.e / (1 + math.e)  # randomised response with ε = 1


def answer(truth: int, said: int) -> float:
    """P(said | truth): each bit is kept with probability e/(1 + e)."""
    return KEEP if said == truth else 1 - KEEP


def law(first: tuple[int, ...], second: tuple[int, int], rule) -> dict[tuple[int, ...], float]:
    """The law of all that is published: wave 1's bit, then one bit of wave 2's record, which the
    rule chooses from what it is shown.
    """
    outcomes = {}
    for r1, r2 in itertools.product((0, 1), repeat=2):
        chosen = rule(r1, second)
        outcomes[r1, chosen, r2] = outcomes.get((r1, chosen, r2), 0.0) + answer(
            first[0], r1
        ) * answer(second[chosen], r2)
    return outcomes


def loss(one: dict, other: dict) -> float:
    """The largest |ln P/P'| over outcomes: infinite where only one of them can happen."""
    keys = set(one) | set(other)
    return max(
        abs(math.log(one[key] / other[key])) if key in one and key in other else math.inf
        for key in keys
    )


def test_the_theorem_by_enumeration() -> None:
    """Whichever wave the neighbour is in, all releases together keep the ε of one."""
    adaptive = lambda r1, _second: r1  # noqa: E731 (the next map follows from the release)
    bits = (0, 1)
    worst = 0.0
    for second in itertools.product(bits, repeat=2):
        worst = max(worst, loss(law((0,), second, adaptive), law((1,), second, adaptive)))
    for first, second, other in itertools.product(
        bits, *[list(itertools.product(bits, repeat=2))] * 2
    ):
        worst = max(worst, loss(law((first,), second, adaptive), law((first,), other, adaptive)))
    assert worst == pytest.approx(1.0)


def test_a_map_that_looks_at_its_own_wave_breaks_it() -> None:
    peeking = lambda _r1, second: second[0]  # noqa: E731
    assert loss(law((0,), (0, 1), peeking), law((0,), (1, 1), peeking)) == math.inf


def test_one_person_in_two_waves_composes() -> None:
    adaptive = lambda r1, _second: r1  # noqa: E731
    both = loss(law((0,), (0, 0), adaptive), law((1,), (1, 1), adaptive))
    assert both == pytest.approx(2.0)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.5])
def test_the_theorem_for_gaussian_waves_by_quadrature(epsilon: float) -> None:
    """R₁ ~ N(x, 1), R₂ ~ N(s(R₁)·y, 1) with |s| ≤ 1: for a person of either wave the hockey-stick
    divergence of (R₁, R₂) is that of one Gaussian mechanism with μ = 1."""
    grid = np.linspace(-9, 10, 1201)
    step = grid[1] - grid[0]
    r1, r2 = np.meshgrid(grid, grid, indexing="ij")
    density = lambda z: np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    sign = np.sign(r1)

    def joint(x: float, y: float) -> np.ndarray:
        return density(r1 - x) * density(r2 - sign * y)

    def divergence(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.maximum(one - math.exp(epsilon) * other, 0).sum() * step**2)

    promised = delta_of(1.0, epsilon)
    assert divergence(joint(1, 0.5), joint(0, 0.5)) == pytest.approx(promised, rel=2e-3)
    assert divergence(joint(0.2, 1), joint(0.2, 0)) == pytest.approx(promised, rel=2e-3)


@pytest.mark.parametrize("task", ["number", "label", "count"])
@pytest.mark.parametrize("coefficients", [1, 2, 5, 13, 60])
def test_plans_are_whole_and_grow_with_people(task, coefficients: int) -> None:
    waves = []
    for k in range(5, 24):
        plan = choose_plan(task, coefficients=coefficients, count=2**k, mu=0.1)
        assert sum(plan.quorums(2**k)) == 2**k
        waves.append(len(plan.stages))
    assert waves[0] == 1
    assert waves == sorted(waves)
    most = 4 + math.floor(math.log(2**23 * 0.1 / coefficients**1.5 / 150, 8))
    assert waves[-1] == {"number": 3, "label": 4, "count": most}[task]
    if task != "number" and coefficients <= FEW:  # one is enough until the curve can be told
        assert not {2, 3}.intersection(waves)


@pytest.mark.parametrize("task", ["number", "label", "count"])
@pytest.mark.parametrize("coefficients", [1, 5, 13, 60])
def test_shares_sum_to_one_and_waves_grow_with_people(task, coefficients: int) -> None:
    for asked in (None, 1, 2, 3, 4, 7):
        for k in range(5, 24, 2):
            found = choose_shares(task, coefficients=coefficients, count=2**k, mu=0.1, waves=asked)
            assert math.fsum(found.fractions) == pytest.approx(1)
            assert asked in (None, len(found.kinds))
    assert len(found.kinds) == 7


def test_rows_of_a_data_holder_are_in_waves_from_where_slopes_can_be_learned() -> None:
    """By public facts: one wave, five, and from where few starts are enough four larger ones."""

    def kinds(psi: float) -> tuple[str, ...]:
        count = round(psi * 13**1.5 / 0.1)
        return choose_shares("number", coefficients=13, count=count, mu=0.1).kinds

    assert kinds(0.9) == kinds(1.02) == ("joint",)  # at 1.02 nμ is below 48
    assert kinds(2) == kinds(199) == ("joint", *["residual"] * 4)
    assert kinds(201) == ("joint", *["residual"] * 3)


def test_shares_of_a_budget_keep_it_together() -> None:
    """Each release's own promise, and all of them by their μ and what they keep back."""
    for epsilon, delta in ((1.0, 1e-6), (0.05, 1e-3), (9.0, 1e-12)):
        mu = shared_mu(epsilon, delta, 5, 1e-3)
        assert delta_of(mu, epsilon) == pytest.approx(0.995 * delta)
        for fraction in (0.001, 0.2, 0.9):
            own, its_delta = promise_of_share(mu, delta, fraction, 1e-3)
            assert own > 0
            assert delta_of(math.sqrt(fraction) * mu, own) == pytest.approx(0.999 * its_delta)


def test_the_reach_grows_beyond_every_bound() -> None:
    reaches = [reach_of(10**k, 1.0, 5) for k in range(1, 12)]
    assert reaches == sorted(reaches)
    assert reaches[0] == (1.2, 2.2)
    assert reaches[-1][0] > 500
    noise = [r * bound / 10**k for k, (r, bound) in zip(range(1, 12), reaches, strict=True)]
    assert noise == sorted(noise, reverse=True)


def test_where_only_a_mean_can_be_learned() -> None:
    assert mean_alone("number", 1.4, 100)
    assert mean_alone("number", 50.0, 1)
    assert not mean_alone("number", 1.6, 20)
    few, many = (public_weights(["numeric"] * 9, n, 0.1, task="number") for n in (200, 10**5))
    assert (few.constant, few.target) == (1.0, 0.98)
    noise = sensitivity(few.constant, 1.0) / (math.sqrt(2) * few.constant * few.target)
    assert (noise / 2) ** 2 < 1.05  # that of the mean of a number in [−1, 1] that may be replaced
    assert many == public_weights(["numeric"] * 9, 10**5, 0.1)


def test_the_table_of_the_docstring() -> None:
    def kinds(task: str, psi: float) -> tuple[str, ...]:
        count = round(psi * 13**1.5 / 0.1)
        return choose_plan(task, coefficients=13, count=count, mu=0.1).kinds

    assert kinds("number", 1.4) == kinds("label", 2.5) == kinds("count", 2.5) == ("joint",)
    assert kinds("number", 2) == kinds("number", 5) == kinds("count", 5) == ("joint", "residual")
    assert kinds("label", 5) == ("joint",)
    for task in ("label", "count"):
        assert kinds(task, 10) == ("joint", "residual")
    assert kinds("number", 10) == ("joint", *["residual"] * 2)
    assert kinds("number", 10) == kinds("number", 200)
    assert kinds("label", 50) == kinds("count", 50) == ("joint", "residual", "newton")
    four = ("joint", "residual", "newton", "newton")
    assert kinds("label", 200) == kinds("count", 200) == four
    for columns, planned in ((5, four[:3]), (13, four)):  # nμ is 1,342 and 5,625
        count = round(120 * columns**1.5 / 0.1)
        for task in ("label", "count"):
            assert choose_plan(task, coefficients=columns, count=count, mu=0.1).kinds == planned
    for task, more in (("label", ()), ("count", ("newton",))):
        assert kinds(task, 1199) == four
        assert kinds(task, 1201) == (*four, *more)
        assert kinds(task, 9601) == (*four, *more, *more)
        expected = (5, four[:2]), (20, four[:3]), (60, four), (401, (*four, *more))
        for psi, held in expected:
            count = round(psi * 13**1.5 / 0.1)
            assert choose_shares(task, coefficients=13, count=count, mu=0.1).kinds == held


@pytest.mark.parametrize("waves", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("task", ["number", "label", "count"])
def test_as_many_waves_as_are_asked_for(task, waves: int) -> None:
    for count in (200, 10**6):
        plan = choose_plan(task, coefficients=5, count=count, mu=0.5, waves=waves)
        assert len(plan.stages) == waves
        assert plan.kinds[0] == "joint"


@pytest.mark.parametrize(
    ("task", "stages"),
    [
        ("number", ()),
        ("number", (("joint", 0.5), ("residual", 0.6))),
        ("number", (("residual", 1.0),)),
        ("number", (("joint", 0.5), ("joint", 0.5))),
        ("number", (("joint", 0.5), ("newton", 0.5))),
        ("label", (("joint", 0.4), ("newton", 0.3), ("residual", 0.3))),
    ],
)
def test_refuses_plans_that_cannot_be(task, stages) -> None:
    with pytest.raises(InvalidValueError):
        Stages(task, tuple(Stage(kind, fraction) for kind, fraction in stages))


def test_refuses_waves_of_nobody() -> None:
    with pytest.raises(InvalidValueError, match="2 people"):
        choose_plan("number", coefficients=1, count=4, mu=1.0, waves=3).quorums(4)


def test_nothing_but_a_share_is_read_of_labels_where_noise_rules() -> None:
    """Seen before: 128 people with three columns, whose model was far worse than their share."""
    facts = {"coefficients": 14, "mu": 0.2}
    assert mean_alone("label", information(240, 0.2, 14), 14)
    assert not mean_alone("label", information(250, 0.2, 14), 14)
    assert mean_alone("label", information(190, 0.2, 1), 1)
    assert len(choose_shares("label", count=240, **facts).stages) == 1
    assert len(choose_shares("label", count=250, **facts).stages) == 2
    few, many = (public_weights(["numeric"] * 14, n, 0.2, task="label") for n in (240, 10**4))
    assert few.constant == 1 > many.constant
    assert few.target > many.target


@pytest.mark.parametrize("count", [1000, 60_000, 10**6, 10**8, 10**11])
@pytest.mark.parametrize("mu", [0.02, 0.3, 3.0])
def test_waves_read_as_few_rows_as_tell_enough(count, mu) -> None:
    kinds = ("joint", "residual", "residual", "newton", "newton")
    mus, p = [mu * share for share in (0.3, 0.1, 0.4, 0.2, 0.5)], 12
    strides = strides_of(kinds, mus, count, p)
    assert strides[0] == strides[-1] == 1
    assert max(strides) <= 32
    for place, stride in enumerate(strides):
        if stride > 1:
            assert information(count // stride, mus[place], p) >= 199
    assert strides_of(("joint", "residual"), [mu, mu], count, p) == (1, 1)
