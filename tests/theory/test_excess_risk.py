"""The paper's bounds as its appendix writes them out, and the certified forecast by trying to break
it."""

import math

import numpy as np
import pytest

from blurfit import Agreement, Numeric, Schema
from blurfit.learning.solver import minimise
from blurfit.learning.sums import Statistics
from blurfit.model.learner import released_weights, statistics_of
from blurfit.simulation.sampler import input_totals, sampler_for
from blurfit.theory import excess_risk
from blurfit.theory.certified import Scales
from blurfit.theory.setting import Setting

SETTING = Setting(7, 5000, 0.9, 1.2, 1.5)


def test_lemma_1_as_printed() -> None:
    lam, n, d, sigma, gamma = 0.81, 5000, 7, 1.7, 0.03
    bounds = excess_risk.regularisation_bounds(SETTING, sigma, gamma)
    t = math.log(4 / gamma)
    middle = 2 * math.sqrt(2 * d) * lam * sigma * math.sqrt(math.log(2 / gamma) / n)
    assert bounds.upper == pytest.approx(sigma**2 * (1 + 2 * math.sqrt(t / n) + 2 * t / n) + middle)
    assert bounds.lower == pytest.approx(sigma**2 * (1 - 2 * math.sqrt(t / n)) - middle)


@pytest.mark.statistical
def test_lemma_1_holds_for_one_w_and_few_records_of_its_kind() -> None:
    """For one fixed w and Q with ‖Q‖_F ≤ √d·λ, as the paper assumes, Δ₀ lies between ϰ and κ as
    often as claimed."""
    generator = np.random.default_rng(11)
    setting = Setting(3, 200, 1.0, 1.0, 1.0)
    Q = np.zeros((200, 3))
    Q[:3] = np.eye(3)
    w = np.array([2.0, -1.0, 0.5])
    bounds = excess_risk.regularisation_bounds(setting, 1.5, gamma=0.1)
    U = 1.5 / math.sqrt(200) * generator.standard_normal((20_000, 200, 3))
    noise, clean = U @ w, Q @ w
    ridge = ((noise**2).sum(1) + 2 * noise @ clean) / (w @ w)
    assert ((ridge < bounds.lower) | (ridge > bounds.upper)).mean() <= 0.1


def test_lemma_2_written_out() -> None:
    n, d, lam, zeta = 5000, 7, 0.81, 0.81 * 1.5 + 1.2
    epsilon, delta, sigma, ridge, norm, gamma, beta = 0.4, 1e-4, 2.2, 9.0, 0.7, 0.02, 0.03
    t = math.log(4 / gamma)
    written = (
        4
        * d
        * zeta**2
        * (8 * math.log(4 / delta) + 4 * epsilon)
        * math.log(1 / beta)
        / (n * epsilon**2 * ridge)
        + ridge / (2 * n) * norm**2
        + (sigma**2 - 2 * lam / epsilon) / (2 * n) * norm**2
        + (
            sigma**2 * math.sqrt(t)
            + sigma**2 * t / math.sqrt(n)
            + sigma * lam * math.sqrt(2 * d * math.log(2 / gamma))
        )
        / (n * math.sqrt(n))
        * norm**2
    )
    found = excess_risk.excess_risk_with_probability(
        SETTING, sigma, epsilon, delta, total_ridge=ridge, weight_norm=norm, gamma=gamma, beta=beta
    )
    assert found == pytest.approx(written)


def test_theorem_2_is_2a_plus_b() -> None:
    n, d, lam, zeta = 5000, 7, 0.81, 0.81 * 1.5 + 1.2
    epsilon, delta, sigma, ridge, norm = 0.4, 1e-4, 2.2, 9.0, 0.7
    scale = norm**2 / (2 * n * math.sqrt(n))
    a = 4 * d * zeta**2 * (8 * math.log(4 / delta) + 4 * epsilon) / (n * epsilon**2 * ridge)
    a += (sigma**2 + 2 * sigma**2 / math.sqrt(n) + math.sqrt(2 * d) * lam * sigma) * scale
    b = (ridge + sigma**2 - 2 * lam / epsilon) / (2 * n) * norm**2
    b += (
        sigma**2 * (math.log(4) + 1)
        + 2 * sigma**2 / math.sqrt(n) * math.log(4)
        + math.sqrt(2 * d) * lam * sigma * (math.log(2) + 1)
    ) * scale
    found = excess_risk.expected_excess_risk(
        SETTING, sigma, epsilon, delta, total_ridge=ridge, weight_norm=norm
    )
    assert found == pytest.approx(2 * a + b)
    rate = excess_risk.expected_excess_rate(SETTING, epsilon, delta, weight_norm=norm)
    assert rate == pytest.approx(zeta * norm * math.sqrt(d * math.log(1 / delta)) / (epsilon * n))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["random", "equal", "flat"])
def test_certified_forecast_holds(kind: str) -> None:
    generator = np.random.default_rng(21)
    d, n = 4, 500
    q = generator.standard_normal((n, d))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    if kind == "equal":
        q[:] = q[0]
    p = q * generator.uniform(-1, 1, (n, 1))
    if kind == "flat":  # no curvature, and a slope as small as the noise: the hardest to learn
        q[:], p[:] = 0.0, 0.01
    clean = Statistics.of_records(q, p)
    schema = Schema(
        [Numeric(f"v{j}", -1, 1) for j in range(d)], Numeric("y", -1, 1), intercept=False
    )
    agreement = Agreement.propose(
        schema, epsilon=2.0, delta=1e-3, quorum=n, weight_bound=0.8, mechanism="input"
    )
    found = agreement.calibration
    best = minimise(clean.gram, clean.moment, weight_bound=0.8).objective
    draws, excesses = sampler_for(agreement, input_totals(agreement, clean)), []
    for _ in range(150):
        seen = statistics_of(agreement, draws.draw(generator))
        w = released_weights(agreement, seen)
        excesses.append((w @ clean.gram @ w / 2 - clean.moment @ w - best) / n)
    assert np.quantile(excesses, 0.9) <= found.excess_risk
    if kind == "flat":
        assert found.excess_risk <= 10 * np.quantile(
            excesses, 0.9
        )  # a bound for all data, yet no empty one


@pytest.mark.statistical
@pytest.mark.parametrize("ridge", [0.0, -3.0])
def test_norm_of_the_noise_on_the_factors(ridge: float) -> None:
    """With next to no noise on p, the forecast is η²‖UᵀU + UᵀQ + QᵀU + Δ_in·I‖/n, for the worst Q:
    all rows equal."""
    generator = np.random.default_rng(8)
    n, d, sigma = 300, 6, 2.0
    Q = np.zeros((n, d))
    Q[:, 0] = 1.0
    norms = []
    for _ in range(400):
        U = sigma / math.sqrt(n) * generator.standard_normal((n, d))
        norms.append(np.linalg.norm(U.T @ U + U.T @ Q + Q.T @ U + ridge * np.eye(d), 2))
    setting = Setting(d, n, 1.0, 1.0, 3.0)
    bound = excess_risk.input_excess_risk(setting, Scales(sigma, 1e-12, ridge)) * n / 9
    assert np.quantile(norms, 0.9) <= bound <= 4 * np.quantile(norms, 0.9)
