"""The certified forecast of the excess risk, by trying to break it."""

import math

import numpy as np
import pytest

from blurfit.input_perturbation import theorem
from blurfit.input_perturbation.algorithms import Sums, blur_sums, solve
from blurfit.input_perturbation.calibration import PublicInput
from blurfit.input_perturbation.losses import SquaredLoss
from blurfit.input_perturbation.theorem import Scales, Setting
from blurfit.learning.solver import minimise


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
    clean = Sums(n, q.T @ q, p.sum(axis=0))
    public = PublicInput.agree(
        SquaredLoss(), dimension=d, quorum=n, epsilon=2.0, delta=1e-3, weight_bound=0.8
    )
    found = public.calibration
    best, excesses = minimise(clean.gram, clean.moment, weight_bound=0.8).objective, []
    for _ in range(150):
        w = solve(public, blur_sums(public, clean, generator))
        excesses.append((w @ clean.gram @ w / 2 - clean.moment @ w - best) / n)
    assert np.quantile(excesses, 0.9) <= found.excess_risk
    if kind == "flat":
        assert found.excess_risk <= 10 * np.quantile(excesses, 0.9)  # for all data, yet not empty


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
    bound = theorem.input_excess_risk(setting, Scales(sigma, 1e-12, ridge)) * n / 9
    assert np.quantile(norms, 0.9) <= bound <= 4 * np.quantile(norms, 0.9)
