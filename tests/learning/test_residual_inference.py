"""Intervals after a residual wave cover, and count what the cut leaves of the start."""

import numpy as np
import pytest

from blurfit.errors import InfeasibleError
from blurfit.learning.wave_inference import _laplace, _stretch, cut_of, wave_estimates
from blurfit.learning.waves import WaveSums
from blurfit.simulation.waves import Collected, collect_in_waves, draw_wave
from blurfit.theory.maps import ResidualMap, Whitening
from blurfit.theory.planning import Stage, Stages

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
    assert (errors[1:] < 3 * ideal[1:]).all()
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
        assert cut_of(chart, sums).plug_in < 1e-3
    x = np.column_stack([np.ones(len(v)), v])
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    for one in found:  # least squares of the uncut rows, with its textbook covariance
        np.testing.assert_allclose(one.coefficients, exact, atol=1e-5)
        left = float(np.sum((y - x @ exact) ** 2)) / (len(v) - 5)
        np.testing.assert_allclose(one.sampling, left * np.linalg.inv(x.T @ x), rtol=0.01)


def test_a_cut_wave_counts_its_start() -> None:
    """Far from the truth and cut hard, a step stops short, and by about what is counted."""
    generator = np.random.default_rng(4)
    v, y = people(200_000, generator)
    start = BETA[1:] + np.array([0.1, -0.1, 0.1, 0.1])
    scale = np.diag([5.0, 5.0, 3.3, 3.3])
    chart = ResidualMap(Whitening([-0.2, -0.2, 0, 0], scale, start, BETA[0]), 0.7, 0.14, 1.5)
    sums = draw_wave(chart, v, y, 1e9, generator)
    known = cut_of(chart, sums)
    got = collect(5_000, 1.0, 3)
    found = wave_estimates(got.beliefs[0], chart, sums)
    missed = np.abs(found.coefficients[1:] - BETA[1:]) / 0.1
    assert missed.max() > 0.03  # of the start's error
    assert missed.mean() < 2 * known.plug_in
    uncut = WaveSums(sums.count, sums.matrix, None, 1e-9)
    assert cut_of(ResidualMap(chart.whitening, 9.0, 0.14, 9.0), uncut).plug_in < known.plug_in


def test_the_laws_of_the_cut() -> None:
    generator = np.random.default_rng(5)
    t = generator.exponential(0.7, size=400_000)
    u = _laplace(float(np.mean(np.minimum(t, 2.0) ** 2)) / 4)
    assert np.exp(-u) == pytest.approx(np.mean(t > 2.0), rel=0.03)
    squares = generator.gamma(3.0, 1.1 / 3, size=400_000)
    seen = np.mean(np.minimum(squares, 0.9**2))
    crossed = np.mean(np.minimum(squares, 0.9 * np.sqrt(squares)))
    assert _stretch(float(seen), 0.9, 3.0) == pytest.approx(crossed / seen, rel=0.005)
    assert _laplace(2.0) > 0  # more than a cut can let through: noise
    assert np.isfinite(_stretch(-1.0, 0.7, 3.0))


def test_refused_for_labels_and_where_noise_rules() -> None:
    got = collect(5_000, 1.0, 6, "label")
    with pytest.raises(InfeasibleError, match="line to labels"):
        wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])
    got = collect(1_000, 0.02, 7)
    with pytest.raises(InfeasibleError, match="noise is"):
        wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])
