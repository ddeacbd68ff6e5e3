"""Sketches: the integral by drawing, by Rényi, by real tables; the sketch, and calibrations."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import kstest, norm

from blurfit.theory.gaussian import delta_of
from blurfit_lab.rivals.mixing import (
    Mixtures,
    delta_kept,
    least,
    noise_for,
    profile,
    renyi_epsilon,
    renyi_gamma,
    sketch,
)


def log_ratio(square: np.ndarray, draws: int, ratio: float) -> np.ndarray:
    """ln of N(0, 1) over N(0, ratio), summed over draws whose squares sum to `square`."""
    return (draws * math.log(ratio) - (1 - 1 / ratio) * square) / 2


def test_the_log_ratio_of_draws_depends_on_their_squares_alone() -> None:
    z = np.random.default_rng(4).standard_normal((5, 30))
    drawn = (norm.logpdf(z) - norm.logpdf(z, scale=math.sqrt(0.8))).sum(axis=1)
    assert log_ratio((z**2).sum(axis=1), 30, 0.8) == pytest.approx(drawn)


@pytest.mark.parametrize("neighbours", ["zero-out", "replace"])
@pytest.mark.parametrize("mu", [0.0, 0.7])
def test_delta_by_drawing_from_the_worst_pair(neighbours, mu) -> None:
    generator, draws, share, epsilon, trials = np.random.default_rng(0), 30, 0.2, 0.8, 100_000
    gauss = mu * mu / 2 + mu * generator.standard_normal(trials)
    losses = [
        log_ratio(generator.chisquare(draws, trials), draws, ratio)
        for ratio in (1 - share, 1 + share)
    ]
    sums = losses if neighbours == "zero-out" else [losses[0] + losses[1]]
    drawn = max(
        float(np.maximum(0, -np.expm1(epsilon - np.minimum(loss + gauss, 50))).mean())
        for loss in sums
    )
    found = delta_kept(epsilon, share=share, draws=draws, mu=mu, neighbours=neighbours)
    assert found == pytest.approx(drawn, abs=4 * 0.5 / math.sqrt(trials))
    assert found > 0.01


@pytest.mark.parametrize("neighbours", ["zero-out", "replace"])
def test_no_pair_of_tables_is_worse_than_the_worst_pair(neighbours) -> None:
    """Covariances of real tables: their exact log-ratio, drawn, keeps the bound's δ."""
    generator, d, rows, trials, epsilon = np.random.default_rng(1), 3, 12, 20_000, 0.5
    worst = 0.0
    for case in range(6):
        common = generator.standard_normal((d, d))
        common = common @ common.T + 4 * np.eye(d)
        x, other = generator.standard_normal((2, d))
        x, other = x / np.linalg.norm(x), other / np.linalg.norm(other)
        if case < 2:  # along the least eigenvalue
            x = np.linalg.eigh(common)[1][:, 0]
        A = common + np.outer(x, x)
        B = common if neighbours == "zero-out" else common + np.outer(other, other)
        A, B = (A, B) if case % 2 else (B, A)
        gamma = float(np.linalg.eigvalsh(A)[0])
        z = generator.standard_normal((trials, rows, d)) @ np.linalg.cholesky(A).T
        forms = [np.einsum("tki,ij,tkj->t", z, np.linalg.inv(M), z) for M in (A, B)]
        determinants = [np.linalg.slogdet(M)[1] for M in (A, B)]
        loss = (forms[1] - forms[0] + rows * (determinants[1] - determinants[0])) / 2
        drawn = float(np.maximum(0, -np.expm1(epsilon - loss)).mean())
        bound = delta_kept(epsilon, share=1 / gamma, draws=rows, mu=0.0, neighbours=neighbours)
        assert drawn <= bound + 4 * 0.5 / math.sqrt(trials)
        worst = max(worst, drawn / bound)
    assert worst > 0.4


def test_renyi_bounds_the_integral() -> None:
    for share in (0.01, 0.05, 0.3):
        for neighbours in ("zero-out", "replace"):
            epsilon = renyi_epsilon(
                share, mixtures=40, sketches=3, delta=1e-5, neighbours=neighbours
            )
            exact = delta_kept(epsilon, share=share, draws=120, mu=0.0, neighbours=neighbours)
            assert 1e-8 < exact <= 1e-5


def test_renyis_divergence_by_integration() -> None:
    """D_α of N(0, 1) and N(0, b), as an integral over one draw."""
    z = np.linspace(-40, 40, 400_001)
    for ratio, alpha in ((0.8, 2.0), (1.3, 3.5)):
        p, q = norm.logpdf(z), norm.logpdf(z, scale=math.sqrt(ratio))
        integral = np.log(np.trapezoid(np.exp(alpha * p + (1 - alpha) * q), z)) / (alpha - 1)
        formula = (alpha * math.log(ratio) - math.log1p(alpha * (ratio - 1))) / (2 * (alpha - 1))
        assert formula == pytest.approx(integral, rel=1e-6)


def test_gamma_spends_epsilon_and_no_more() -> None:
    terms = {"mixtures": 50, "sketches": 3, "neighbours": "zero-out"}
    gamma = renyi_gamma(1.0, 1e-5, Mixtures(1.0, 50, 3, tail=4.0), "zero-out")
    classical = math.sqrt(2 * math.log(3.75e5) * 50) / gamma
    assert renyi_epsilon(1 / gamma, delta=1e-5 / 3, **terms) + classical == pytest.approx(1.0)


def test_the_profile_continues_to_negative_epsilon() -> None:
    for mu in (0.3, 2.0):
        assert profile(mu, np.array([1.0]))[0] == pytest.approx(delta_of(mu, 1.0), rel=1e-9)
        loss = mu * mu / 2 + mu * np.random.default_rng(0).standard_normal(400_000)
        drawn = np.maximum(0, -np.expm1(-0.5 - loss)).mean()
        assert profile(mu, np.array([-0.5]))[0] == pytest.approx(drawn, abs=3e-3)
    assert profile(0.0, np.array([0.5, -0.5])).tolist() == pytest.approx([0, 1 - math.exp(-0.5)])


def test_least_is_never_too_small() -> None:
    found = least(lambda value: value >= math.pi, 100.0)
    assert math.pi <= found < math.pi * (1 + 1e-6)


@pytest.mark.statistical
def test_a_sketch_has_the_covariance_of_mixed_records() -> None:
    generator = np.random.default_rng(2)
    z = generator.standard_normal((20, 2))
    drawn = sketch(z.T @ z, 3.0, 20_000, generator)
    assert drawn.T @ drawn / 20_000 == pytest.approx(z.T @ z + 3 * np.eye(2), rel=0.05, abs=0.5)
    along = drawn @ [1.0, 0.0]
    assert kstest(along, norm(scale=math.sqrt(z[:, 0] @ z[:, 0] + 3)).cdf).pvalue > 1e-3


def test_the_lift_makes_up_for_what_the_eigenvalue_lacks() -> None:
    lift = partial(Mixtures(square=1.0, count=100, steps=1, tail=4.0).lift, gamma=10.0)
    generator = np.random.default_rng(3)
    failures = 0
    for lowest in (0.0, 3.0, 50.0):
        lifts = [lift(lowest * np.eye(2), generator=generator) for _ in range(2000)]
        failures += sum(lowest + one < 10.0 - 1e-12 for one in lifts)
    assert failures <= 2  # Φ(−4) is 3 in 100,000
    assert max(lift(1e3 * np.eye(2), generator=generator) for _ in range(9)) == 0


def test_the_gradients_alone_are_gaussian() -> None:
    """With no information in the mixtures, the integral is the Gaussian profile."""
    mixtures = replace(Mixtures.of_features(8, 1e-4, 3), count=100)
    noise = noise_for(1.0, 1e-4, mixtures, "zero-out", "published")
    for sigma in (1.0, noise.sigma):
        alone = mixtures.kept(1.0, noise._replace(gamma=1e12, sigma=sigma), "zero-out")
        assert alone == pytest.approx(delta_of(math.sqrt(3) / sigma, 1.0), abs=1e-6)


def test_published_noise_is_the_papers() -> None:
    """k = 6·max(d, ln(4T/ϱ)) with ϱ = δ/10."""
    assert Mixtures.of_features(40, 1e-6, 3).count == 240
    assert Mixtures.of_features(5, 1e-6, 3).count == int(6 * math.log(12 / 1e-7))


def test_replacing_needs_more_than_zeroing_out() -> None:
    mixtures = Mixtures.of_records(8, 1e-6)
    one, two = (
        noise_for(1.0, 1e-6, mixtures, how, "exact").gamma for how in ("zero-out", "replace")
    )
    assert one < two < 2 * one


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("neighbours", ["zero-out", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (1.0, 1e-6), (10.0, 1e-4)])
def test_both_calibrations_keep_the_promise_and_exact_wastes_nothing(
    gradients, epsilon, delta, neighbours
) -> None:
    records, features = Mixtures.of_records(8, delta), Mixtures.of_features(8, delta, 3)
    mixtures = features if gradients else records
    published, exact = (
        noise_for(epsilon, delta, mixtures, neighbours, how) for how in ("published", "exact")
    )
    assert mixtures.kept(epsilon, published, neighbours) <= delta
    assert 0.99 * delta <= mixtures.kept(epsilon, exact, neighbours) <= delta
    assert exact.gamma < published.gamma
    assert exact.sigma < published.sigma
