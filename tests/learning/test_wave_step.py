"""Steps that reach the optimum, and coordinates that agree with the map."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import laplace

from blurfit.errors import InvalidValueError
from blurfit.learning import waves
from blurfit.learning.beliefs import coordinates, inside
from blurfit.learning.waves import WaveSums, learn_wave, next_map, on_curve, outward, step_sums
from blurfit.theory.maps import LogisticNewton, ResidualMap
from support.beliefs import QUIET, belief_of, features, labels
from support.waves_by_hand import score


def quiet_sums(chart, v: np.ndarray, y: np.ndarray) -> WaveSums:
    if isinstance(chart, ResidualMap):
        z = chart.vectors(v, y)
        return WaveSums(len(v), z.T @ z, None, QUIET)
    matrix, linear, squares = chart.sums(v, y)
    return WaveSums(len(v), matrix, linear, QUIET, squares)


def optimum(v: np.ndarray, y: np.ndarray) -> np.ndarray:
    rows, w = np.column_stack([np.ones(len(v)), v]), np.zeros(v.shape[1] + 1)
    for _ in range(30):
        g, h = LogisticNewton().slopes(rows @ w, y)
        w = w - np.linalg.solve((rows * h[:, None]).T @ rows, rows.T @ g)
    return w


@pytest.mark.parametrize("people", [2000, 10**5])
@pytest.mark.parametrize("factor", [1.0, 100.0])
def test_steps_of_counts_neither_overshoot_nor_stop_at_rare_answers(factor, people) -> None:
    """Yes is rare and multiplies the rate by 12. From 1 a full step would be 11; and from 100,
    beyond the largest count, a curvature that is cut would make it too long.
    """
    generator = np.random.default_rng(8)
    v = np.where(generator.random((100_000, 3)) < 0.02, 1.0, -1.0)
    y = np.minimum(generator.poisson(2 * np.exp((v[:, 0] + 1) * np.log(12) / 2)), 60).astype(float)
    line = replace(belief_of(v, 2 * y / 60 - 1, "count", 60.0), kinds=("sign",) * 3)
    slope = np.array([np.log(factor) / 2, 0.0, 0.0])
    wrong = np.array([np.log(2) + slope.sum(), *slope])
    belief = replace(on_curve(line), coefficients=wrong, covariance=np.eye(4))
    seen = []
    for _ in range(8):
        chart = next_map(belief, "newton", people, 1.0)
        belief = learn_wave(belief, chart, quiet_sums(chart, v, y))
        seen.append(2 * belief.coefficients[1])
    assert max(seen) < np.log(60 / 2) + 0.2
    assert seen[-1] == pytest.approx(np.log(12), abs=0.05)


def test_newton_waves_reach_the_optimum_of_the_exact_loss() -> None:
    generator = np.random.default_rng(3)
    v = features(generator, 20_000)
    y = labels(generator, v, np.array([0.3, 4.0, -3.0, 1.0]))
    belief = belief_of(v, y, "label")
    for _ in range(3):
        chart = next_map(belief, "newton", len(v), 1.0)
        belief = learn_wave(belief, chart, quiet_sums(chart, v, y))
    # the radius is 9, so no record counts less; what differs is shrunk by less than sampling error
    assert np.allclose(belief.coefficients, optimum(v, y), atol=0.06)
    expected = expit(0.3 + v @ [4.0, -3.0, 1.0])
    assert np.abs(expit(score(belief, v)) - expected).max() < 0.05


def test_residual_waves_reach_least_squares_of_white_people() -> None:
    """With noise that is negligible and hardly any record cut, the step ends at least squares."""
    generator = np.random.default_rng(4)
    v = features(generator, 20_000)
    y = np.clip(0.1 + v @ [0.5, -0.4, 0.3] + generator.normal(size=len(v)) * 0.1, -1, 1)
    belief = belief_of(v, y, "number", noise=200.0)
    chart = next_map(belief, "residual", 10**7, 1.0)
    after = learn_wave(belief, chart, quiet_sums(chart, v, y))
    rows = np.column_stack([np.ones(len(v)), v])
    best = np.linalg.lstsq(rows, y)[0]
    assert np.abs(belief.coefficients - best).max() > 0.02
    assert np.allclose(after.coefficients, best, atol=0.01)
    assert after.scale == pytest.approx(0.1, rel=0.1)
    again = next_map(after, "residual", 10**7, 1.0)
    whitened = np.cov(again.whitening.features(v).T)
    assert np.allclose(whitened / whitened.trace() * 3, np.eye(3), atol=0.1)


def test_no_model_is_believed_to_be_more_wrong_than_errors_that_were_seen() -> None:
    """A belief that is a hundred times too unsure, as loose bounds make it, is as sure as it can be
    by the errors of the wave: a larger one changes nothing, and a sure one is left as it is.
    """
    generator = np.random.default_rng(6)
    v = features(generator, 2000)
    y = 0.1 + 0.02 * generator.normal(size=len(v))
    belief = belief_of(v, y, "number")
    chart = next_map(belief, "residual", len(v), 1.0)
    quiet = quiet_sums(chart, v, y)
    noise = np.triu(60.0 * generator.normal(size=quiet.matrix.shape))
    sums = replace(quiet, matrix=quiet.matrix + noise + np.triu(noise, 1).T, deviation=60.0)
    sure, unsure, lost = (
        learn_wave(replace(belief, covariance=k * belief.covariance), chart, sums).coefficients
        for k in (1.0, 1e6, 1e8)
    )
    assert np.allclose(unsure, lost, atol=1e-9)
    assert np.abs(sure - belief.coefficients).max() < np.abs(unsure - belief.coefficients).max()
    assert np.std(v @ (unsure - belief.coefficients)[1:]) < 2 * y.std()


@pytest.mark.parametrize("task", ["number", "label", "count"])
def test_coordinates_agree_with_the_map(task) -> None:
    """A step moves the scores by its product with what the map makes of 1 and of the features."""
    generator = np.random.default_rng(5)
    v = features(generator, 500)
    y = {"number": v[:, 0], "label": np.sign(v[:, 0]), "count": v[:, 0]}[task]
    belief = belief_of(v, y, task, 9.0 if task == "count" else None, noise=5.0)
    for kind in ("residual",) if task == "number" else ("residual", "newton"):
        chart = next_map(belief, kind, 500, 1.0)
        change = generator.normal(size=4)
        step, f = coordinates(chart) @ change, chart.whitening.features(v)
        if isinstance(chart, ResidualMap):
            moved = chart.constant * step[0] + chart.feature_scale * f @ step[1:]
            moved *= chart.scale / chart.target_scale
        else:
            of_features, constant = chart.scale
            moved = constant * step[0] + of_features * f @ step[1:]
        assert np.allclose(moved, change[0] + v @ change[1:])


def test_refuses_the_sums_of_another_wave() -> None:
    v = features(np.random.default_rng(8), 300)
    label = belief_of(v, np.sign(v[:, 0]), "label")
    chart = next_map(label, "newton", 300, 1.0)
    with pytest.raises(InvalidValueError, match="another wave"):
        step_sums(chart, WaveSums(300, np.eye(5), None, 1.0))
    with pytest.raises(InvalidValueError, match="linear"):
        step_sums(chart, WaveSums(300, np.eye(4), np.ones(3), 1.0))


def test_the_radius_and_the_bounds_of_slopes_grow_without_end() -> None:
    generator = np.random.default_rng(6)
    v = features(generator, 3000)
    label = belief_of(v, labels(generator, v, np.array([0.3, 4.0, -3.0, 1.0])), "label")
    count = belief_of(v, np.clip(v[:, 0] - 0.5, -1, 1), "count", 20.0)
    for belief in (label, count):
        charts = [next_map(belief, "newton", 10**k, 1.0) for k in range(1, 13)]
        radii = [chart.radius for chart in charts]
        assert radii == sorted(radii)
        assert radii[0] == pytest.approx(1.2)  # of a last wave; others begin at 1
        assert radii[-1] > 2 * radii[-3]
        if belief is count:
            bounds = [chart.loss.gradient_bound for chart in charts]
            assert bounds == sorted(bounds)
            assert bounds[-1] > 100 * bounds[0]
            assert all(chart.loss.curvature_bound <= chart.loss.gradient_bound for chart in charts)
        assert charts[0].robust
        assert not next_map(belief, "newton", 100, 1.0, last=False).robust


def test_residual_waves_of_labels_cut_no_class() -> None:
    generator = np.random.default_rng(7)
    v = features(generator, 20_000)
    y = labels(generator, v, np.array([-4.0, 1.0, 0.0, 0.0]))
    belief = belief_of(v, y, "label")
    chart = next_map(belief, "residual", len(v), 0.01)
    assert np.mean(y > 0) < 0.03
    assert chart.bound * chart.scale >= 1 + np.abs(chart.whitening.score(chart.whitening.mean))


def test_the_start_of_newton_has_the_mean_of_the_labels_and_a_bounded_spread() -> None:
    generator = np.random.default_rng(8)
    v = features(generator, 40_000)
    for constant in (-4.0, 0.3, 3.0):
        y = labels(generator, v, np.array([constant, 6.0, -4.0, 1.0]))
        start = on_curve(belief_of(v, y, "label"))
        scores = score(start, v)
        assert expit(scores).mean() == pytest.approx((y > 0).mean(), rel=0.1)
        assert scores.std() <= 2.5 * y.std() * 1.05


def test_a_radius_is_never_rounded_down() -> None:
    """One that reaches the public bounds still does, so that nobody is looked at as cut."""
    for number in np.geomspace(1e-3, 1e6, 999) * np.pi:
        found = outward(float(number))
        assert number <= found <= number * (1 + 2.0**-23)
        assert found == outward(found) == np.float32(found)


@pytest.mark.parametrize("limited", [True, False])
def test_noise_does_not_pass_for_more_than_there_is_to_explain(monkeypatch, limited) -> None:
    """Waves of nothing but noise: slopes explain no more than the target's variance,
    and would if P were larger than the errors that were seen leave room for.
    """
    if not limited:
        monkeypatch.setattr(waves, "_believable", lambda *_: 1.0)
    generator = np.random.default_rng(12)
    v, y, mu = features(generator, 500), 0.02 * generator.normal(size=500), 0.005
    start = replace(belief_of(v, y, "number"), coefficients=np.zeros(4), scale=0.02)
    start = replace(start, covariance=np.eye(4))
    chart = next_map(start, "residual", len(v), mu, last=False)
    z, deviation = chart.vectors(v, y), chart.sensitivity() / mu
    explained = []
    for _ in range(20):
        noise = generator.normal(scale=deviation / 2, size=(5, 5))
        sums = WaveSums(len(v), z.T @ z + noise + noise.T, None, deviation)
        found = learn_wave(start, chart, sums)
        explained.append(found.coefficients[1:] @ found.spread @ found.coefficients[1:])
    assert (max(explained) > 1.001 * start.scale**2) != limited


def test_what_passes_a_clip_is_that_of_laplace_errors() -> None:
    for scale in (0.15, 0.3, 1.0):
        law = laplace(scale=scale)
        share = law.expect(lambda g: min(abs(g), 1.0) ** 2)
        assert inside(share) == pytest.approx(law.cdf(1) - law.cdf(-1), abs=1e-5)


def test_noise_that_makes_features_very_wide_leaves_a_map_that_can_be_made() -> None:
    """Seen before: at ε = 1e-6 the radius fell below a map's least, and a paid fit was refused."""
    v = features(np.random.default_rng(4), 1000)
    belief = belief_of(v, v[:, 0], "number")
    chart = next_map(replace(belief, spread=1e12 * belief.spread), "residual", 1000, 1e-6)
    assert isinstance(chart, ResidualMap)
    assert 1e-4 <= chart.radius < 1.001e-4
