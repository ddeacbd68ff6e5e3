"""Intervals of the last Newton step cover, and are refused where they would not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from blurfit.errors import InfeasibleError
from blurfit.learning.inference import Inference
from blurfit.learning.wave_inference import estimand, newton_estimates, wave_estimates
from blurfit.learning.waves import WaveSums, learn_wave, next_map
from blurfit.theory.maps import LogisticNewton, NewtonMap, PoissonNewton, ResidualMap, Whitening
from blurfit.theory.planning import Stage, Stages
from support.beliefs import belief_of, features, labels
from support.waves_by_hand import Collected, collect_in_waves, draw_wave

BETA = np.array([0.2, 1.0, -0.8, 0.5, 0.0])
STAGES = (("joint", 0.2), ("residual", 0.2), ("newton", 0.2), ("newton", 0.4))


def collect(
    n: int, mu: float, generator: np.random.Generator, stages=STAGES, steepness: float = 1.0
) -> Collected:
    v = np.clip(generator.normal(size=(n, 4)) * 0.4 + generator.normal(size=(n, 1)) * 0.2, -1, 1)
    y = np.where(generator.random(n) < expit(steepness * (BETA[0] + v @ BETA[1:])), 1.0, -1.0)
    plan = Stages("label", tuple(Stage(kind, fraction) for kind, fraction in stages))
    return collect_in_waves(v, y, ["numeric"] * 4, plan=plan, mu=mu, generator=generator)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "mu"), [(10_000, 0.7), (5_000, 5.0)])
def test_coverage_of_95_percent(n: int, mu: float) -> None:
    generator = np.random.default_rng(n)
    hits = []
    for _ in range(40):
        got = collect(n, mu, generator)
        found = wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])
        told = found.estimates()
        hits.append([one.lower < truth < one.upper for one, truth in zip(told, BETA, strict=True)])
    assert 0.915 <= np.mean(hits) <= 0.99


def test_refused_where_noise_rules() -> None:
    got = collect(2_000, 0.05, np.random.default_rng(2))
    with pytest.raises(InfeasibleError, match="noise dominates"):
        wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])


def test_refused_where_one_step_is_not_enough() -> None:
    stages = (("joint", 0.001), ("newton", 0.999))
    got = collect(20_000, 2.0, np.random.default_rng(3), stages, steepness=4.0)
    with pytest.raises(InfeasibleError, match="another Newton wave"):
        wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])


@pytest.mark.parametrize("task", ["label", "count"])
def test_errors_are_those_of_the_sandwich_where_the_curve_is_wrong(task) -> None:
    """Quiet sums: squared slopes tell the sampling error, whatever the law of the answers is."""
    generator = np.random.default_rng(4)
    v = features(generator, 30_000)
    if task == "label":  # a step, and noise of its own
        y = np.where(generator.random(len(v)) < 0.2 + 0.6 * (v[:, 0] > 0.15), 1.0, -1.0)
        belief = belief_of(v, y, task)
    else:  # three times as widely dispersed as Poisson's
        rate = np.exp(1 + v @ [1.0, -1.0, 0.5])
        y = np.minimum(generator.negative_binomial(rate / 2, 1 / 3), 60).astype(float)
        belief = belief_of(v, 2 * y / 60 - 1, task, 60.0)
    for _ in range(3):
        chart = next_map(belief, "newton", 10**9, 1.0)
        sums = WaveSums(len(v), *chart.sums(v, y)[:2], 1e-6, chart.sums(v, y)[2])
        last, belief = belief, learn_wave(belief, chart, sums)
    found = wave_estimates(last, chart, sums)
    rows = np.column_stack([np.ones(len(v)), v])
    g, h = chart.loss.slopes(rows @ found.coefficients, y)
    inverse = np.linalg.inv((rows * h[:, None]).T @ rows)
    sandwich = inverse @ (rows * (g**2)[:, None]).T @ rows @ inverse
    expected = np.sqrt(np.diagonal(sandwich))
    assert np.sqrt(np.diagonal(found.sampling)) == pytest.approx(expected, rel=0.02)
    plain = np.sqrt(np.diagonal(inverse)) / expected
    assert np.abs(np.log(plain)).max() > 0.03  # so that the plain errors would be seen
    without = newton_estimates(chart, replace(sums, squares=None))
    assert np.sqrt(np.diagonal(without.sampling)) == pytest.approx(plain * expected, rel=0.02)


@pytest.mark.parametrize("task", ["number", "label", "count"])
@pytest.mark.parametrize(("count", "mu"), [(60_000, 4.0), (10**6, 0.3), (10**7, 0.3), (10**9, 1.0)])
def test_as_few_rows_send_squares_as_tell_their_spread(task, count, mu) -> None:
    generator = np.random.default_rng(3)
    v = features(generator, 40_000)
    score = v @ [1.0, -1.0, 0.5]
    if task == "number":
        y = score / 4 + generator.normal(size=len(v)) * 0.1
        belief, kind, sent = belief_of(v, y, task), "residual", y
    elif task == "label":
        y = sent = labels(generator, v, np.array([0.1, 1.0, -1.0, 0.5]))
        belief, kind = belief_of(v, y, task), "newton"
    else:
        sent = np.minimum(generator.poisson(np.exp(1 + score)), 40).astype(float)
        belief, kind = belief_of(v, sent / 20 - 1, task, 40.0), "newton"
    chart = next_map(belief, kind, count, mu, held=True)
    assert next_map(belief, kind, count, mu).stride == 1
    squares = np.diagonal(chart.sums(v, sent)[-1]) / len(v)
    of_features = squares[1:] if task == "number" else squares[:-1]
    assert (np.abs(np.log2(of_features / chart.typical_square)) < 1).all()
    noise = chart.sensitivity() / (mu * chart.robust_weight)
    most = count / chart.stride * chart.typical_square / 4
    assert noise <= most or chart.stride == 1
    assert count / chart.stride >= 2**15
    assert chart.stride == 32 or count / (chart.stride + 1) < max(
        2**15, 4 * noise / chart.typical_square
    )


@pytest.mark.parametrize(("kind", "limit"), [("residual", 0.35), ("newton", 0.15)])
def test_squares_of_some_rows_tell_the_errors_of_all(kind, limit) -> None:
    """Of people who spread unevenly; and noise that hides it is not taken for what it hides."""
    generator = np.random.default_rng(9)
    v, slopes = generator.normal(size=(200_000, 3)) * 0.3, np.array([0.5, -0.3, 0.0])
    y = v @ slopes + (0.2 + np.abs(v[:, 0])) * generator.normal(size=len(v))
    white = Whitening(np.zeros(3), np.eye(3) / 0.3, slopes, 0.0)
    chart: ResidualMap | NewtonMap = ResidualMap(white, 3.0, 0.5, 3.0, robust=True)
    if kind == "newton":
        y = np.where(y > 0, 1.0, -1.0)
        chart = NewtonMap(white, LogisticNewton(), radius=3.0, robust=True)
    belief = belief_of(v, y, "number" if kind == "residual" else "label")

    def told(stride: int, mu: float) -> Inference:
        one = replace(chart, stride=stride)
        return wave_estimates(belief, one, draw_wave(one, v, y, mu, generator))

    exact = np.diagonal(told(1, 1e7).sampling)
    np.testing.assert_allclose(np.diagonal(told(8, 1e7).sampling), exact, rtol=0.04)
    one = replace(chart, stride=8)
    sums = draw_wave(one, v, y, 1e7, generator)
    size = len(v) / 8 * chart.typical_square
    loud, away = size * chart.robust_weight, []
    for _ in range(20):  # noise as large as what there is to see
        noise = np.triu(generator.normal(size=(4, 4))) * size
        blurred = sums.squares + (noise + noise.T) / 2
        hidden = wave_estimates(belief, one, replace(sums, squares=blurred, deviation=loud))
        away.append(np.diagonal(hidden.sampling) / np.diagonal(hidden.classical))
    assert np.abs(np.log(away)).mean() < limit  # twice as much if it were taken for that of all


@pytest.mark.parametrize("task", ["label", "count"])
def test_one_step_from_afar_is_put_right_by_its_second_order(task) -> None:
    """Quiet sums around a model whose constant and slopes are off: against maximum likelihood."""
    generator = np.random.default_rng(5)
    v = generator.normal(size=(60_000, 3)) * 0.3
    rows, truth = np.column_stack([np.ones(len(v)), v]), np.array([-3.0, 1.0, -0.8, 0.0])
    if task == "label":  # one in twenty
        y = np.where(generator.random(len(v)) < expit(rows @ truth), 1.0, -1.0)
        loss = LogisticNewton()
    else:
        truth[0] = 1.0
        y = generator.poisson(np.exp(rows @ truth)).astype(float)
        loss = PoissonNewton.of(60.0, 60.0, 60.0)
    off = np.array([0.4, 0.3, 0.3, 0.0])
    best = truth.copy()
    for _ in range(8):
        g, h = loss.slopes(rows @ best, y)
        best -= np.linalg.solve((rows * h[:, None]).T @ rows, rows.T @ g)
    white = Whitening(np.zeros(3), np.eye(3) / 0.3, (best + off)[1:], float((best + off)[0]))
    chart = NewtonMap(white, loss, radius=10.0, robust=True)
    matrix, linear, squares = chart.sums(v, y)
    found = newton_estimates(chart, WaveSums(len(v), matrix, linear, 1e-6, squares))
    g, h = loss.slopes(rows @ (best + off), y)
    plain = best + off - np.linalg.solve((rows * h[:, None]).T @ rows, rows.T @ g)
    missed, before = (np.linalg.norm(one - best) for one in (found.coefficients, plain))
    assert missed < 0.25 * before
    short = np.sqrt(np.diagonal(found.sampling))
    assert (np.abs(found.coefficients - best) < 2 * short).all()
    g, h = loss.slopes(rows @ best, y)
    exact = np.sqrt(np.diagonal(np.linalg.inv((rows * h[:, None]).T @ rows)))
    assert (short > 0.95 * exact).all()


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_a_long_step_of_a_rare_label_is_solved_for(columns) -> None:
    """One in thirty, from a constant that is 0.7 too high: Newton's step falls a third short."""
    generator = np.random.default_rng(11)
    v = generator.normal(size=(200_000, columns))
    truth = np.array([-3.8, *np.linspace(0.6, -0.3, columns)])
    y = np.where(generator.random(len(v)) < expit(truth[0] + v @ truth[1:]), 1.0, -1.0)
    white = Whitening(np.zeros(columns), np.eye(columns), truth[1:] * 0.9, truth[0] + 0.7)
    chart = NewtonMap(white, LogisticNewton(), radius=10.0, robust=True)
    matrix, linear, squares = chart.sums(v, y)
    found = newton_estimates(chart, WaveSums(len(v), matrix, linear, 1e-6, squares))
    assert np.abs(found.coefficients - truth).max() < 0.05


@pytest.mark.parametrize("radius", [1.6, 2.4, 40.0])
def test_a_wrong_curve_is_weighted_maximum_likelihood(radius: float) -> None:
    """Skewed features, and labels that get rarer again, from a start that is off."""
    generator = np.random.default_rng(5)
    v = (np.exp(0.8 * generator.normal(size=(60_000, 6))) - 1.4) / 1.3
    rows, slope = np.column_stack([np.ones(len(v)), v]), np.array([0.5, 0.4, 0.3, 0.4, 0.1, 0.2])
    share = 0.1 + 0.7 * np.exp(-((v @ slope - 0.8) ** 2))
    y = np.where(generator.random(len(v)) < share, 1.0, -1.0)
    best, loss = np.zeros(7), LogisticNewton()
    for _ in range(8):
        g, h = loss.slopes(rows @ best, y)
        best -= np.linalg.solve((rows * h[:, None]).T @ rows, rows.T @ g)
    white = Whitening(np.zeros(6), np.eye(6), best[1:], float(best[0]))
    chart = NewtonMap(white, loss, radius=radius, robust=True)
    truth = estimand(chart, v, y)
    u, g, _ = replace(
        chart, whitening=Whitening(np.zeros(6), np.eye(6), truth[1:], truth[0])
    ).records(v, y)
    assert np.abs(g @ u).max() < 1e-6 * len(v)
    if radius > 10:
        np.testing.assert_allclose(truth, best, atol=0.02)
    near = truth + 0.03 * generator.normal(size=7)
    start = replace(chart, whitening=Whitening(np.zeros(6), np.eye(6), near[1:], near[0]))
    found = newton_estimates(
        start, WaveSums(len(v), *start.sums(v, y)[:2], 1e-3, start.sums(v, y)[2])
    )
    errors = np.sqrt(np.diagonal(found.covariance))
    assert (np.abs(found.coefficients - truth) < errors).all()


def test_clipped_counts_are_of_the_clipped_score() -> None:
    """Counts of variance m + 0.7m², clipped at G = 15, which few of Poisson's would reach."""
    generator = np.random.default_rng(5)
    v, beta = generator.normal(size=(60_000, 3)), np.array([0.5, 0.0, -0.2])
    rate = np.exp(1.4 + v @ beta)
    y = np.minimum(generator.poisson(rate * generator.gamma(1 / 0.7, 0.7, len(v))), 200.0)
    white = Whitening(np.zeros(3), np.eye(3), beta, 1.4)
    chart = NewtonMap(white, PoissonNewton.of(200.0, 15.0, 15.0), radius=4.0, robust=True)
    matrix, linear, squares = chart.sums(v, y)
    found = newton_estimates(chart, WaveSums(len(v), matrix, linear, 1e-6, squares))
    truth, errors = estimand(chart, v, y), np.sqrt(np.diagonal(found.covariance))
    assert (np.abs(found.coefficients - truth) < 2 * errors).all()
    assert (np.abs(truth - [1.4, *beta]) > 4 * errors).any()
