"""Intervals after a residual wave cover, and count what the cut leaves of the start."""

from dataclasses import replace

import numpy as np
import pytest

from blurfit.errors import InfeasibleError
from blurfit.learning.wave_inference import share_by_size, unseen, wave_estimates
from blurfit.learning.waves import cut_of
from blurfit.theory.maps import ResidualMap, Whitening
from blurfit.theory.planning import Stage, Stages, choose_plan, choose_shares
from support.waves_by_hand import Collected, collect_in_waves, draw_wave

BETA = np.array([-0.1, 0.3, -0.2, 0.1, 0.0])


def people(n: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two skewed columns and two Gaussian ones; errors of a gamma law."""
    skew = generator.exponential(0.2, size=(n, 2)) - 0.4
    v = np.clip(np.column_stack([skew, generator.normal(size=(n, 2)) * 0.3]), -1, 1)
    error = (generator.gamma(2.0, size=n) - 2) * 0.1
    return v, np.clip(BETA[0] + v @ BETA[1:] + error, -1, 1)


def collect(n: int, mu: float, seed: int, task: str = "number") -> Collected:
    generator = np.random.default_rng(seed)
    v, y = people(n, generator)
    y = np.where(y > 0, 1.0, -1.0) if task == "label" else y
    plan = Stages(task, (Stage("joint", 0.3), Stage("residual", 0.7)))
    return collect_in_waves(v, y, ["numeric"] * 4, plan=plan, mu=mu, generator=generator)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "mu"), [(4_000, 1.0), (10_000, 0.28)])
def test_coverage_of_95_percent(n: int, mu: float) -> None:
    hits = []
    for seed in range(40):
        got = collect(n, mu, seed)
        told = wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1]).estimates()
        hits.append([one.lower < truth < one.upper for one, truth in zip(told, BETA, strict=True)])
    assert 0.92 <= np.mean(hits) <= 0.99


def test_the_last_wave_knows_more_than_the_first_and_less_than_everything() -> None:
    got = collect(40_000, 1.0, 1)
    found = wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])
    errors = np.sqrt(np.diagonal(found.covariance))
    v, _ = people(40_000, np.random.default_rng(1))
    x = np.column_stack([np.ones(len(v)), v])
    ideal = np.sqrt(np.diagonal(np.linalg.inv(x.T @ x))) * 0.1 * np.sqrt(2)
    assert (errors > ideal).all()
    assert (errors[1:] < 4 * ideal[1:]).all()  # noise for r and R that cut hardly anybody
    assert found.residual_variance == pytest.approx(0.02, rel=0.1)  # 2·0.1², the gamma law's
    assert found.r_squared is None


def test_what_an_uncut_wave_starts_from_does_not_matter() -> None:
    generator = np.random.default_rng(2)
    v, y = people(5_000, generator)
    found = []
    for start in (np.zeros(4), np.array([0.5, 0.5, 0.5, 0.5])):
        white = Whitening(np.zeros(4), np.diag([4.0, 4.0, 3.0, 3.0]), start)
        chart = ResidualMap(white, radius=10.0, scale=1.0, bound=10.0)
        sums = draw_wave(chart, v, y, 1e9, generator)
        got = collect(5_000, 1.0, 3)
        found.append(wave_estimates(got.beliefs[0], chart, sums))
        assert cut_of(got.beliefs[0], chart, sums).out < 0.02
    x = np.column_stack([np.ones(len(v)), v])
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    for one in found:  # least squares of the uncut rows, with its textbook covariance
        np.testing.assert_allclose(one.coefficients, exact, atol=1e-5)
        left = float(np.sum((y - x @ exact) ** 2)) / (len(v) - 5)
        np.testing.assert_allclose(one.sampling, left * np.linalg.inv(x.T @ x), rtol=0.01)


def test_a_cut_wave_counts_its_start() -> None:
    """Far from the truth and cut hard, a step stops short, by less than what is counted."""
    generator = np.random.default_rng(4)
    v, y = people(200_000, generator)
    start = BETA[1:] + np.array([0.1, -0.1, 0.1, 0.1])
    white = Whitening([-0.2, -0.2, 0, 0], np.diag([5.0, 5.0, 3.3, 3.3]), start, BETA[0])
    got = collect(5_000, 1.0, 3)
    shares = []
    for radius, bound in ((0.7, 1.0), (9.0, 9.0)):
        chart = ResidualMap(white, radius, 0.14, bound)
        sums = draw_wave(chart, v, y, 1e9, generator)
        found = wave_estimates(got.beliefs[0], chart, sums)
        missed = np.abs(found.coefficients[1:] - BETA[1:]) / 0.1
        shares.append(cut_of(got.beliefs[0], chart, sums).out)
        assert missed.max() < max(shares[-1], 0.03)
    assert shares[0] > 0.2 > 10 * shares[1]


@pytest.mark.statistical
def test_coverage_of_95_percent_where_every_row_is_in_every_wave() -> None:
    hits = []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        v, y = people(10_000, generator)
        plan = choose_shares("number", coefficients=4, count=len(v), mu=0.5)
        got = collect_in_waves(
            v, y, ["numeric"] * 4, plan=plan, mu=0.5, generator=generator, held=True
        )
        told = wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1]).estimates()
        hits.append([one.lower < truth < one.upper for one, truth in zip(told, BETA, strict=True)])
    assert 0.92 <= np.mean(hits) <= 0.99


def test_refused_for_labels_and_where_noise_rules() -> None:
    got = collect(5_000, 1.0, 6, "label")
    with pytest.raises(InfeasibleError, match="line to labels"):
        wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])
    got = collect(1_000, 0.02, 7)
    with pytest.raises(InfeasibleError, match="noise is"):
        wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])


def test_errors_are_those_of_the_sandwich_where_people_spread_unevenly() -> None:
    """Quiet sums: squared errors tell the sampling error, and classical ones assume it is even."""
    generator = np.random.default_rng(8)
    v = np.clip(generator.normal(size=(40_000, 4)) * 0.3, -1, 1)
    y = np.clip(v @ [0.3, -0.2, 0.1, 0] + 0.6 * v[:, 0] * generator.normal(size=len(v)), -1, 1)
    x = np.column_stack([np.ones(len(v)), v])
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    white = Whitening(np.zeros(4), np.eye(4) / 0.3, exact[1:] + 0.01, exact[0])
    chart = ResidualMap(white, 20.0, 0.2, 20.0, robust=True)
    sums = draw_wave(chart, v, y, 1e9, generator)
    got = collect(5_000, 1.0, 3)
    found = wave_estimates(replace(got.beliefs[0], law=None), chart, sums)
    inverse, left = np.linalg.inv(x.T @ x), y - x @ exact
    robust = np.diagonal(inverse @ ((x * (left**2)[:, None]).T @ x) @ inverse)
    assert np.diagonal(found.sampling) == pytest.approx(robust, rel=0.02)
    plain = np.diagonal(inverse) * float(left @ left) / (len(v) - 5)
    assert np.diagonal(found.by("classical").sampling) == pytest.approx(plain, rel=0.02)
    assert robust[1] > 2 * plain[1]
    without = wave_estimates(got.beliefs[0], chart, replace(sums, squares=None))
    np.testing.assert_allclose(without.sampling, found.classical)


def crowd(n: int, strays: float, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian people who fill a tenth of their bounds, and some at the corners."""
    v = generator.normal(size=(n, 5)) * 0.1
    y = v @ [0.5, -0.5, 0.3, 0.0, 0.2] + 0.05 * generator.normal(size=n)
    stray = generator.random(n) < strays
    v[stray] = np.sign(generator.normal(size=(int(stray.sum()), 5)))
    y[stray] = np.sign(generator.normal(size=int(stray.sum())))
    return np.clip(v, -1, 1), np.clip(y, -1, 1)


@pytest.mark.parametrize(("n", "strays"), [(30_000, 0.0), (30_000, 0.01), (6_000, 0.0)])
def test_later_waves_tell_no_errors_if_a_few_people_are_far_out_or_could_be(n, strays) -> None:
    """One in a hundred is noticed among 30,000, or weighs enough; of 6,000 nobody would notice."""
    refused, weights = 0, []
    for seed in range(10):
        generator = np.random.default_rng(seed)
        v, y = crowd(n, strays, generator)
        plan = choose_shares("number", coefficients=5, count=n, mu=0.25)
        got = collect_in_waves(
            v, y, ["numeric"] * 5, plan=plan, mu=0.25, generator=generator, held=True
        )
        waves = zip(got.beliefs, got.maps, got.later, strict=False)
        chart = got.maps[-1]
        if unseen([one for one in waves if isinstance(one[1], ResidualMap)]):
            refused += 1
        elif strays:
            f = np.linalg.norm(chart.whitening.features(np.ones(5))) / np.sqrt(5)
            weights.append(min(1.0, chart.radius / f) ** 2)
    if strays:
        assert all(weight > 0.4 for weight in weights)
    else:
        assert refused == 10 if n < 10_000 else refused <= 3
    assert chart.robust


@pytest.mark.parametrize("strays", [0.0, 0.01])
def test_sizes_that_grow_with_the_radius_tell_who_is_far_out(strays) -> None:
    """Without noise the share itself, whatever each wave's centre and whitening are."""
    generator = np.random.default_rng(6)
    v, y = crowd(100_000, strays, generator)
    belief, waves = collect(2_000, 1.0, 3).beliefs[0], []
    for radius, wide in ((0.9, 2.5), (1.2, 2.0), (1.6, 2.2)):
        turn = np.tril(0.1 * generator.normal(size=(5, 5)), -1)
        white = Whitening(
            0.05 * generator.normal(size=5), (np.eye(5) + turn) / (0.1 * wide), np.zeros(5)
        )
        chart = ResidualMap(white, radius=radius, scale=1.0, bound=10.0)
        waves.append((belief, chart, draw_wave(chart, v, y, 1e6, generator)))
    ((share, _),) = share_by_size(waves)
    assert share == pytest.approx(strays, abs=0.001)
    assert share_by_size(waves[-1:]) == []


@pytest.mark.parametrize("task", ["number", "label"])
def test_long_tails_are_noticed_where_everybody_sends_once(task) -> None:
    """Lognormal columns, whose few largest people a wave weights down; labels have a curve."""
    refused = 0
    for seed in range(4):
        generator = np.random.default_rng(seed)
        v = np.clip(np.exp(0.8 * generator.normal(size=(60_000, 5))) / 10 - 1, -1, 1)
        y = np.clip(2 * (v + 0.9) @ [0.3, 0.2, 0.3, 0.1, 0.2], -1, 1)
        y = np.where(generator.random(len(y)) < (1 + y) / 2, 1.0, -1.0) if task == "label" else y
        plan = choose_plan(task, coefficients=5, count=len(v), mu=0.25)
        got = collect_in_waves(v, y, ["numeric"] * 5, plan=plan, mu=0.25, generator=generator)
        refused += unseen([*zip(got.beliefs, got.maps, got.later, strict=False)])
    assert refused == (4 if task == "number" else 0)


@pytest.mark.parametrize("strays", [0.0, 0.01])
def test_waves_of_different_people_notice_the_same_together(strays) -> None:
    """Of 60,000 the last wave's weights alone would show one in a hundred by 2.4 deviations."""
    refused = 0
    for seed in range(6):
        generator = np.random.default_rng(seed)
        v, y = crowd(60_000, strays, generator)
        plan = choose_plan("number", coefficients=5, count=len(v), mu=0.25)
        got = collect_in_waves(v, y, ["numeric"] * 5, plan=plan, mu=0.25, generator=generator)
        refused += unseen([*zip(got.beliefs, got.maps, got.later, strict=False)])
    assert refused == 6 if strays else refused <= 2


def test_the_last_wave_weights_nobody_down_whom_the_gauge_saw() -> None:
    """Long tails: earlier waves weight people down for less noise, the last one does not."""
    generator = np.random.default_rng(5)
    v = np.clip(generator.standard_t(4, size=(30_000, 4)) * 0.1, -1, 1)
    y = np.clip(v.sum(axis=1) * 0.3 + 0.1 * generator.normal(size=len(v)), -1, 1)
    plan = choose_shares("number", coefficients=4, count=len(v), mu=0.2)
    got = collect_in_waves(v, y, ["numeric"] * 4, plan=plan, mu=0.2, generator=generator, held=True)
    lost = []
    for chart in (got.maps[-3], got.maps[-1]):
        f = np.linalg.norm(chart.whitening.features(v), axis=1) / 2
        lost.append(float(np.mean(1 - np.minimum(1, chart.radius / f) ** 2)))
    assert lost[1] < 0.002 < lost[0]
