"""Intervals after a residual wave cover, and count what the cut leaves of the start."""

from dataclasses import replace

import numpy as np
import pytest

from blurfit.errors import InfeasibleError
from blurfit.learning.wave_inference import estimand, wave_estimates
from blurfit.theory.maps import ResidualMap, Whitening
from blurfit.theory.planning import Stage, Stages, choose_shares
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
    x = np.column_stack([np.ones(len(v)), v])
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    for one in found:  # least squares of the uncut rows, with its textbook covariance
        np.testing.assert_allclose(one.coefficients, exact, atol=1e-5)
        left = float(np.sum((y - x @ exact) ** 2)) / (len(v) - 5)
        np.testing.assert_allclose(one.sampling, left * np.linalg.inv(x.T @ x), rtol=0.01)


@pytest.mark.parametrize("bound", [1.0, 2.0, 9.0])
def test_a_clipped_update_is_short_of_its_estimand_by_what_is_counted(bound: float) -> None:
    """Without noise, from a start that is as wrong as the belief says."""
    generator = np.random.default_rng(4)
    v, y = people(200_000, generator)
    wrong = np.array([0.0, 0.1, -0.1, 0.1, 0.1])
    start = BETA + wrong
    white = Whitening([-0.2, -0.2, 0, 0], np.diag([5.0, 5.0, 3.3, 3.3]), start[1:], start[0])
    belief = replace(collect(5_000, 1.0, 3).beliefs[0], covariance=np.diag(wrong**2))
    chart = ResidualMap(white, 1.5, 0.14, bound, robust=True)
    sums = draw_wave(chart, v, y, 1e9, generator)
    if bound < 2:  # most residuals of this start are clipped
        with pytest.raises(InfeasibleError, match="noise dominates"):
            wave_estimates(belief, chart, sums)
        return
    found = wave_estimates(belief, chart, sums)
    missed = np.abs(found.coefficients - estimand(chart, v, y))
    assert (missed < 3 * np.sqrt(np.diagonal(found.covariance))).all()


def test_the_estimand_is_least_squares_where_nothing_is_clipped() -> None:
    """And from any start; a few strays decide least squares, and are clipped by narrow bounds."""
    generator = np.random.default_rng(5)
    v, y = people(20_000, generator)
    v[:40], y[:40] = 1.0, -1.0
    exact = np.linalg.lstsq(np.column_stack([np.ones(len(v)), v]), y, rcond=None)[0]
    white = Whitening([-0.2, -0.2, 0, 0], np.diag([5.0, 5.0, 3.3, 3.3]), BETA[1:], BETA[0])
    wide, narrow = (ResidualMap(white, r, 0.14, r) for r in (40.0, 2.5))
    np.testing.assert_allclose(estimand(wide, v, y), exact, atol=1e-9)
    root = estimand(narrow, v, y)
    assert np.abs(exact[1:] - BETA[1:]).max() > 3 * np.abs(root[1:] - BETA[1:]).max()
    f = white.features(v)  # the equation that it solves
    s = np.minimum(1, 2.5 * 2 / np.linalg.norm(f, axis=1))
    score = s * np.clip(s * (y - root[0] - v @ root[1:]) / 0.14, -2.5, 2.5)
    assert np.abs(score @ np.column_stack([np.ones(len(v)), f])).max() < 1e-5 * len(v)
    held = estimand(narrow, v, y, hidden=[2])
    assert held[2] == pytest.approx(BETA[2])


@pytest.mark.statistical
def test_a_column_that_noise_hides_loses_its_interval_alone() -> None:
    """One of five hardly spreads at all; intervals of the others cover."""
    hits, hidden = [], 0
    for seed in range(25):
        generator = np.random.default_rng(seed)
        v, y = people(6_000, generator)
        v = np.column_stack([v, 0.0004 * generator.normal(size=len(v))])
        plan = Stages("number", (Stage("joint", 0.3), Stage("residual", 0.7)))
        got = collect_in_waves(v, y, ["numeric"] * 5, plan=plan, mu=0.5, generator=generator)
        found = wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])
        told = found.estimates()
        hidden += told[5].is_unlimited and told[5].to_dict()["upper"] is None
        truth = estimand(got.maps[-1], *more_people(seed), found.unlimited)
        hits.append([e.lower < t < e.upper for e, t in zip(told[:5], truth[:5], strict=True)])
    assert hidden >= 23
    assert 0.9 <= np.mean(hits) <= 0.99


def more_people(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Many of the same population."""
    generator = np.random.default_rng(1000 + seed)
    v, y = people(100_000, generator)
    return np.column_stack([v, 0.0004 * generator.normal(size=len(v))]), y


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
    with pytest.raises(InfeasibleError, match="noise dominates"):
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
    found = wave_estimates(got.beliefs[0], chart, sums)
    inverse, left = np.linalg.inv(x.T @ x), y - x @ exact
    robust = np.diagonal(inverse @ ((x * (left**2)[:, None]).T @ x) @ inverse)
    assert np.diagonal(found.sampling) == pytest.approx(robust, rel=0.02)
    plain = np.diagonal(inverse) * float(left @ left) / (len(v) - 5)
    assert np.diagonal(found.by("classical").sampling) == pytest.approx(plain, rel=0.02)
    assert robust[1] > 2 * plain[1]
    without = wave_estimates(got.beliefs[0], chart, replace(sums, squares=None))
    np.testing.assert_allclose(without.sampling, found.classical, rtol=1e-5)
