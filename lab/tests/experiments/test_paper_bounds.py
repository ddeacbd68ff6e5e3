"""The paper's bounds as its appendix writes them out."""

import math

import numpy as np
import pytest
from lab.tests.experiments.paper_bounds import (
    excess_risk_with_probability,
    expected_excess_rate,
    expected_excess_risk,
    regularisation_bounds,
)

from blurfit.theory.guarantees import Setting

SETTING = Setting(7, 5000, 0.9, 1.2, 1.5)


def test_lemma_1_as_printed() -> None:
    lam, n, d, sigma, gamma = 0.81, 5000, 7, 1.7, 0.03
    bounds = regularisation_bounds(SETTING, sigma, gamma)
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
    bounds = regularisation_bounds(setting, 1.5, gamma=0.1)
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
    found = excess_risk_with_probability(
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
    found = expected_excess_risk(
        SETTING, sigma, epsilon, delta, total_ridge=ridge, weight_norm=norm
    )
    assert found == pytest.approx(2 * a + b)
    rate = expected_excess_rate(SETTING, epsilon, delta, weight_norm=norm)
    assert rate == pytest.approx(zeta * norm * math.sqrt(d * math.log(1 / delta)) / (epsilon * n))
