"""The sensitivity by optimising over pairs of records, the guarantee by another accountant, the
noise by counting."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event, pld
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import kstest

from blurfit import calibrate
from blurfit.learning.statistics import Statistics
from blurfit.simulation.sampler import sampler_for
from blurfit.theory import gaussian, moment
from blurfit.theory.setting import Setting


def into_ball(vector: np.ndarray, radius: float) -> np.ndarray:
    """A smooth map of all vectors onto the open ball, so that an unconstrained search covers it."""
    length = np.linalg.norm(vector)
    return vector * (radius * math.tanh(length) / length) if length else vector


def farthest_pair(setting: Setting, balance: float, parallel: bool, seed: int) -> float:
    """The largest ‖(qqᵀ − q'q'ᵀ, p − p')‖ that a search over records finds."""
    d, generator = setting.dimension, np.random.default_rng(seed)
    kappa = setting.p_bound / setting.q_bound

    def records(point: np.ndarray) -> tuple[np.ndarray, ...]:
        q, q_other = (into_ball(point[i * d : (i + 1) * d], setting.q_bound) for i in (0, 1))
        if parallel:
            p, p_other = (
                kappa * math.sin(point[4 * d + i]) * q for i, q in enumerate((q, q_other))
            )
        else:
            p, p_other = (into_ball(point[i * d : (i + 1) * d], setting.p_bound) for i in (2, 3))
        if setting.neighbours == "zero-out":
            q_other, p_other = 0 * q_other, 0 * p_other
        return q, q_other, p, p_other

    def distance(point: np.ndarray) -> float:
        q, q_other, p, p_other = records(point)
        gap = np.outer(q, q) - np.outer(q_other, q_other)
        return -math.sqrt((gap**2).sum() + ((p - p_other) ** 2).sum() / balance**2)

    starts = generator.normal(size=(12, 4 * d + 2)) * 2
    return max(-minimize(distance, start, method="BFGS").fun for start in starts)


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("balance", [0.2, 0.7, 1.5, 6.0])
@pytest.mark.parametrize(
    ("neighbours", "parallel"), [("replace", False), ("replace", True), ("zero-out", False)]
)
def test_sensitivity_is_attained_and_never_exceeded(
    dimension: int, balance: float, neighbours, parallel: bool
) -> None:
    setting = Setting(dimension, 100, 1.3, 0.8, None, neighbours)
    claimed = moment.sensitivity(setting, balance, parallel=parallel)
    found = farthest_pair(setting, balance, parallel, seed=dimension)
    assert found <= claimed * (1 + 1e-9)
    assert found >= claimed * (1 - 1e-3)


def test_in_one_dimension_it_is_an_upper_bound() -> None:
    for balance in (0.2, 1.0, 5.0):
        for parallel in (False, True):
            setting = Setting(1, 100, 1.0, 1.0)
            found = farthest_pair(setting, balance, parallel, seed=3)
            assert found <= moment.sensitivity(setting, balance, parallel=parallel) * (1 + 1e-9)


def test_a_multiple_without_a_bounded_factor_is_not_parallel() -> None:
    """p a multiple of q is not enough: (q, p) = (e, e) against (10⁻⁹e, −e) is farther than the
    parallel Δ at ϱ = 1."""
    parallel = moment.sensitivity(Setting(2, 100, 1.0, 1.0), 1.0, parallel=True)
    assert math.sqrt(1 + 4) > parallel
    assert math.sqrt(1 + 4) <= moment.sensitivity(Setting(2, 100, 1.0, 1.0), 1.0, parallel=False)


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("weight_bound", [None, 0.5, 3.0])
def test_best_balance_minimises_the_proxy(neighbours, parallel: bool, weight_bound) -> None:
    setting = Setting(5, 100, 0.5, 0.7, weight_bound, neighbours)
    eta = weight_bound or setting.p_bound / setting.q_bound**2

    def proxy(log_balance: float) -> float:
        balance = math.exp(log_balance)
        reach = moment.sensitivity(setting, balance, parallel=parallel)
        return reach**2 * (5 * balance**2 + 3 * eta**2)

    best = minimize_scalar(proxy, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10})
    assert math.log(moment.best_balance(setting, parallel=parallel)) == pytest.approx(
        best.x, abs=1e-5
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_guarantee_agrees_with_dp_accounting(epsilon: float) -> None:
    found = calibrate(epsilon, 1e-6, dimension=6, quorum=1000, q_bound=1, p_bound=1, parallel=True)
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_event.GaussianDpEvent(found.sigma_m / found.sensitivity))
    assert accountant.get_epsilon(1e-6) == pytest.approx(epsilon, rel=2e-3)  # it discretises
    assert accountant.get_delta(epsilon) == pytest.approx(1e-6, rel=5e-3)


@given(
    st.floats(1e-3, 1e3),
    st.floats(1e-30, 0.4),
    st.integers(1, 40),
    st.integers(1, 10**9),
    st.booleans(),
    st.sampled_from(["replace", "zero-out"]),
)
def test_promise_is_kept_and_not_overpaid(
    epsilon: float, delta: float, dimension: int, quorum: int, parallel: bool, neighbours
) -> None:
    found = calibrate(
        epsilon,
        delta,
        dimension=dimension,
        quorum=quorum,
        q_bound=0.5,
        p_bound=2.0,
        parallel=parallel,
        neighbours=neighbours,
    )
    assert found.guarantee().epsilon <= epsilon
    assert gaussian.delta_of(found.mu, epsilon) <= delta
    assert gaussian.delta_of(found.mu * (1 + 1e-6), epsilon) > delta
    assert found.guarantee(count=2 * quorum).epsilon <= found.guarantee().epsilon
    assert found.local.mu >= found.mu  # one record alone is never better hidden than in the crowd
    more = calibrate(
        epsilon,
        delta,
        dimension=dimension,
        quorum=2 * quorum,
        q_bound=0.5,
        p_bound=2.0,
        parallel=parallel,
        neighbours=neighbours,
    )
    assert more.sigma_m == found.sigma_m  # a larger quorum costs the collection nothing


@pytest.mark.statistical
def test_an_optimal_attack_gains_exactly_the_profile() -> None:
    """Count, for the two farthest records, how often the likelihood ratio test is right: P(L > ε) −
    e^ε P'(L > ε) is δ(ε)."""
    generator = np.random.default_rng(5)
    found = calibrate(1.0, 0.05, dimension=2, quorum=50, q_bound=1, p_bound=1, parallel=True)
    ratio = 1 / found.balance**2
    cosine = ratio / 2
    q, q_other = np.array([1.0, 0.0]), np.array([cosine, math.sqrt(1 - cosine**2)])
    base = generator.normal(size=(49, 2)) * 0.3
    trials = 60_000
    gap = np.outer(q, q) - np.outer(q_other, q_other)
    shift = q + q_other  # κ = 1 against κ = −1
    squared = (gap**2).sum() + (shift**2).sum() / found.balance**2
    assert math.sqrt(squared) == pytest.approx(found.sensitivity, rel=1e-9)
    losses = []
    for record, p in ((q, q), (q_other, -q_other)):
        clean = Statistics.of_records(np.vstack([base, record]), np.vstack([base, p]))
        centre = clean.gram - np.outer(record, record), clean.moment - p
        draws = sampler_for(found, clean)
        loss = np.empty(trials)
        for trial in range(trials):
            seen = draws.draw(generator)
            across = (
                (seen.gram - centre[0]) * gap
            ).sum() - 0  # ⟨M̃ − M₀, qqᵀ − q'q'ᵀ⟩; both records have ‖qqᵀ‖_F = 1
            along = (seen.moment - centre[1]) @ shift / found.balance**2
            loss[trial] = (across + along) / found.sigma_m**2
        losses.append(loss)
    assert kstest(losses[0], "norm", args=(found.mu**2 / 2, found.mu)).pvalue > 1e-3
    for epsilon in (0.2, 1.0):
        gained = (losses[0] > epsilon).mean() - math.exp(epsilon) * (losses[1] > epsilon).mean()
        error = math.exp(epsilon) / math.sqrt(trials)
        assert gained == pytest.approx(gaussian.delta_of(found.mu, epsilon), abs=4 * error)
