"""The proof of the certified theorem, step by step (lab/docs/certified.md), on random instances."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi, kstest, ncx2

from blurfit.learning.solver import minimise

D, ETA, T = 3, 1.5, 0.3


def instance(seed: int, records: int = 12):
    """A₋, q̃, q̃', p, p', c₋ of a random collection."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(records, D))
    q, q_other, p, p_other, c = generator.normal(size=(5, D))
    return rows.T @ rows, q, q_other, p, p_other, 3 * c


def barrier(w: np.ndarray) -> float:
    return -math.log(ETA**2 - w @ w)


def barrier_gradient(w: np.ndarray) -> np.ndarray:
    return 2 * w / (ETA**2 - w @ w)


def barrier_hessian(w: np.ndarray) -> np.ndarray:
    room = ETA**2 - w @ w
    return 2 * np.eye(D) / room + 4 * np.outer(w, w) / room**2


def noise_for(w, gram, q, p, c, t: float = T) -> np.ndarray:
    """b(w) of step 1."""
    return (gram + np.outer(q, q)) @ w + t * barrier_gradient(w) - c - p


@pytest.mark.parametrize("seed", range(5))
def test_step_1_the_density_of_the_minimiser(seed: int) -> None:
    gram, q, q_other, p, p_other, c = instance(seed)
    w = np.random.default_rng(seed).uniform(-0.8, 0.8, D)
    b = noise_for(w, gram, q, p, c)

    def objective(v: np.ndarray) -> float:
        if v @ v >= ETA**2:
            return math.inf
        return v @ (gram + np.outer(q, q)) @ v / 2 - (c + p + b) @ v + T * barrier(v)

    found = minimize(objective, np.zeros(D), method="Nelder-Mead", options={"xatol": 1e-9})
    assert found.x == pytest.approx(w, abs=1e-5)
    # the Jacobian is B + q̃q̃ᵀ
    B = gram + T * barrier_hessian(w)
    h = 1e-6
    columns = [
        (noise_for(w + h * e, gram, q, p, c) - noise_for(w - h * e, gram, q, p, c)) / (2 * h)
        for e in np.eye(D)
    ]
    jacobian = np.array(columns).T
    assert jacobian == pytest.approx(B + np.outer(q, q), rel=1e-5)
    # and the neighbour's noise is b − g
    g = (np.outer(q, q) - np.outer(q_other, q_other)) @ w - (p - p_other)
    assert noise_for(w, gram, q_other, p_other, c) == pytest.approx(b - g)


@pytest.mark.parametrize("seed", range(20))
def test_step_2_determinants(seed: int) -> None:
    gram, q, q_other, *_ = instance(seed)
    more = gram + barrier_hessian(np.full(D, 0.3))
    ratio = np.linalg.det(more + np.outer(q, q)) / np.linalg.det(more + np.outer(q_other, q_other))
    assert np.linalg.det(more + np.outer(q, q)) / np.linalg.det(more) == pytest.approx(
        1 + q @ np.linalg.solve(more, q)
    )
    assert ratio <= 1 + q @ np.linalg.solve(more, q) + 1e-12
    assert ratio <= 1 + q @ np.linalg.solve(gram, q) + 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["zero", "equal", "random"])
def test_step_2b_the_residual_of_one_column(kind: str) -> None:
    """1/(eᵀ(YᵀY)⁻¹e) given the other columns: s² times a noncentral χ²_{n−d}."""
    generator = np.random.default_rng(len(kind))
    n, d, s = 10, 4, 0.7
    clean = {
        "zero": np.zeros((n - 1, d)),
        "equal": np.full((n - 1, d), 0.5),
        "random": generator.normal(size=(n - 1, d)),
    }[kind]
    others = clean[:, 1:] + s * generator.normal(size=(n - 1, d - 1))  # given
    basis = np.linalg.qr(others)[0]
    mean = clean[:, 0] - basis @ (basis.T @ clean[:, 0])
    seen = []
    for _ in range(3000):
        Y = np.column_stack([clean[:, 0] + s * generator.normal(size=n - 1), others])
        seen.append(1 / np.linalg.inv(Y.T @ Y)[0, 0] / s**2)
    law = ncx2(n - d, max(mean @ mean / s**2, 1e-12))
    assert kstest(seen, law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("seed", range(20))
def test_step_2c_superadditive(seed: int) -> None:
    one, other = instance(seed)[0], instance(seed + 100)[0]
    e = np.random.default_rng(seed).normal(size=D)
    e /= np.linalg.norm(e)

    def floor(A: np.ndarray) -> float:
        return 1 / (e @ np.linalg.solve(A, e))

    assert floor(one + other) >= floor(one) + floor(other) - 1e-9
    assert floor(one + 2.0 * np.eye(D)) >= floor(one) + 2.0 - 1e-9
    # the minimum of xᵀAx over x·e = 1
    x = np.linalg.solve(one, e) * floor(one)
    assert x @ e == pytest.approx(1)
    assert x @ one @ x == pytest.approx(floor(one))


@pytest.mark.parametrize("seed", range(20))
def test_step_2d_taking_a_ridge_away(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n, d = 30, 3
    Q = np.outer(generator.normal(size=n - 1), generator.normal(size=d))
    U = generator.normal(size=(n - 1, d))
    A = (Q + U).T @ (Q + U)
    basis = np.linalg.qr(np.column_stack([Q, np.eye(n - 1, d)]))[0][:, :d]  # holds Q's columns
    rest = U - basis @ (basis.T @ U)
    least = np.linalg.eigvalsh(A)[0]
    assert least >= np.linalg.svd(rest, compute_uv=False)[-1] ** 2 - 1e-9
    c = 0.6 * least
    gap = np.linalg.eigvalsh(A - c * np.eye(d) - (1 - c / least) * A)
    assert gap[0] >= -1e-9 * least


@pytest.mark.parametrize("seed", range(50))
def test_step_3_the_change_of_the_gradient(seed: int) -> None:
    generator = np.random.default_rng(seed)
    q, q_other, u = generator.normal(size=(3, D))
    q, q_other = q / np.linalg.norm(q), q_other / np.linalg.norm(q_other) * generator.random()
    one, other = q + u, q_other + u
    change = np.outer(one, one) - np.outer(other, other)
    norm = np.abs(np.linalg.eigvalsh(change)).max()
    assert norm <= max(one @ one, other @ other) + 1e-12
    assert norm <= 1 + 4 * np.linalg.norm(u) + 1e-12
    expanded = np.outer(q, q) - np.outer(q_other, q_other)
    expanded += np.outer(q - q_other, u) + np.outer(u, q - q_other)
    assert change == pytest.approx(expanded)
    alone = np.outer(one, one) - np.outer(u, u)
    assert np.abs(np.linalg.eigvalsh(alone)).max() <= 1 + 2 * np.linalg.norm(u) + 1e-12


@pytest.mark.statistical
def test_step_4_three_dimensions() -> None:
    """g(w) for many w spans three dimensions of seven, and the noise in them is χ₃."""
    generator = np.random.default_rng(0)
    q, q_other, p = generator.normal(size=(3, 7))
    change = np.outer(q, q) - np.outer(q_other, q_other)
    g = np.array([change @ w - p for w in generator.normal(size=(50, 7))])
    assert np.linalg.matrix_rank(g) == 3
    basis = np.linalg.svd(g)[2][:3]
    lengths = np.linalg.norm(generator.normal(size=(5000, 7)) @ basis.T, axis=1)
    assert kstest(lengths, chi(3).cdf).pvalue > 1e-4


@pytest.mark.parametrize("seed", range(5))
def test_step_5_the_barrier_goes(seed: int) -> None:
    """The minimiser with a barrier tends to the one in the ball, boundary solutions included."""
    gram, q, _, p, _, c = instance(seed)
    H, linear = gram + np.outer(q, q), (c + p) * (20 if seed % 2 else 1)
    exact = minimise(H, linear, weight_bound=ETA).weights
    w, distances = np.zeros(D), []
    for t in np.geomspace(1, 1e-4, 60):  # along the path, by Newton's steps that stay inside
        for _ in range(20):
            slope = H @ w - linear + t * barrier_gradient(w)
            step = np.linalg.solve(H + t * barrier_hessian(w), slope)
            while (w - step) @ (w - step) >= ETA**2:
                step = step / 2
            w = w - step
        distances.append(np.linalg.norm(w - exact))
    assert distances[0] > distances[30] > distances[-1]
    assert distances[-1] < 1e-2
