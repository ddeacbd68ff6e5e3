"""Records as quadratics: against the true losses, on grids, by mpmath, and all over the ball."""

import doctest
import importlib
import math
import pkgutil
import tracemalloc
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre
from scipy.optimize import minimize
from scipy.special import gammaln

from blurfit.errors import InvalidValueError
from blurfit.theory import losses
from blurfit.theory.losses import (
    LogisticAround,
    LogisticLoss,
    PoissonAround,
    PoissonLoss,
    Quadratic,
    QuadraticLoss,
    SquaredLoss,
    check_bounds,
    value,
)

APPROXIMATIONS: list[Any] = ["taylor", "chebyshev", "least-squares"]
PRIOR = (0.9, -1.2, 0.4)
REACHES = [1e-3, 0.3, 1.0, 2.5, 6.0, 20.0]

EVERY_LOSS = [
    SquaredLoss(),
    SquaredLoss(feature_bound=3.0, target_bound=0.2),
    LogisticLoss(),
    LogisticLoss(2.0, "chebyshev", weight_bound=1.5),
    LogisticLoss(0.5, "least-squares", weight_bound=4.0),
    LogisticAround(PRIOR),
    LogisticAround(PRIOR, feature_bound=3.0),
    PoissonLoss(4.0, 1.0, approximation="taylor"),
    PoissonLoss(0.5, 2.0, 1.5),
    PoissonLoss(9.0, 1.0, 2.0, "least-squares"),
    PoissonAround(PRIOR, count_bound=4.0),
    PoissonAround(PRIOR, count_bound=0.1, feature_bound=2.0),
    PoissonAround((0.09, -0.12, 0.04), count_bound=0.5),
]


def targets_of(loss: Any) -> tuple[float, float]:
    """The least and the largest target that a loss takes."""
    if isinstance(loss, LogisticLoss | LogisticAround):
        return -1.0, 1.0
    if isinstance(loss, SquaredLoss):
        return -loss.target_bound, loss.target_bound
    return 0.0, loss.count_bound


def draw(loss: Any, n: int, seed: int = 0, on_sphere: bool = False) -> tuple[Any, Any]:
    """Records anywhere in the ball (or on its sphere), in three dimensions."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x *= loss.feature_bound * (1.0 if on_sphere else rng.random((n, 1)) ** (1 / 3))
    low, high = targets_of(loss)
    if isinstance(loss, LogisticLoss | LogisticAround):
        return x, rng.choice([-1.0, 1.0], n)
    return x, rng.uniform(low, high, n)


def true_value(loss: Any, x: Any, y: Any, w: Any) -> Any:
    z = x @ np.asarray(w)
    if isinstance(loss, SquaredLoss):
        return (y - z) ** 2 / 2
    if isinstance(loss, LogisticLoss | LogisticAround):
        return np.logaddexp(0, -y * z)
    return np.exp(z) - y * z + gammaln(y + 1)


@st.composite
def records(draw: Any, loss: Any) -> tuple[Any, float]:
    """One record, as near to the edges as it pleases."""
    x = np.array(draw(st.lists(st.floats(-1, 1), min_size=3, max_size=3)))
    norm = math.hypot(*x)
    x = x / norm if norm > 1 or (norm > 1e-3 and draw(st.booleans())) else x
    low, high = targets_of(loss)
    if isinstance(loss, LogisticLoss | LogisticAround):
        return x * loss.feature_bound, draw(st.sampled_from([-1.0, 1.0]))
    return x * loss.feature_bound, draw(st.floats(low, high))


# What every loss promises


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
@settings(max_examples=15)
@given(data=st.data())
def test_bounds_and_parallel_hold_for_every_record(loss: Any, data: Any) -> None:
    assert isinstance(loss, QuadraticLoss)
    for x, y in data.draw(st.tuples(*[records(loss)] * 4)):
        q, p, s = loss.terms(x, y)
        assert math.hypot(*q) <= loss.q_bound * (1 + 1e-14)
        assert math.hypot(*p) <= loss.p_bound * (1 + 1e-14)
        assert np.isfinite(s)
        check_bounds(loss, x, y)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_bounds_are_attained(loss: Any) -> None:
    R = loss.feature_bound
    along = np.array(PRIOR) / math.hypot(*PRIOR)
    across = np.cross(along, [0.0, 0.0, 1.0])
    across /= math.hypot(*across)
    x = R * np.array([along, -along, across])
    x, y = np.repeat(x, 2, axis=0), np.tile(targets_of(loss), 3)
    q, p, _ = loss.terms(x, y)
    assert np.linalg.norm(q, axis=1).max() == pytest.approx(loss.q_bound, rel=1e-9)
    assert np.linalg.norm(p, axis=1).max() == pytest.approx(loss.p_bound, rel=1e-9)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_one_record_is_a_row_of_many(loss: Any) -> None:
    x, y = draw(loss, 20)
    many = loss.terms(x, y)
    assert many.q.shape == many.p.shape == (20, 3)
    assert many.s.shape == (20,)
    for i in range(20):
        one = loss.terms(x[i], y[i])
        assert one.q.shape == one.p.shape == (3,)
        assert np.ndim(one.s) == 0
        for single, row in zip(one, many, strict=True):
            np.testing.assert_allclose(single, row[i], rtol=1e-14)
    w = [0.3, -0.2, 0.9]
    np.testing.assert_allclose(value(loss.terms(x[3], y[3]), w), value(many, w)[3], rtol=1e-13)
    assert value(loss.terms(x[:0], y[:0]), w).shape == (0,)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_records_rounded_over_the_sphere_are_put_back(loss: Any) -> None:
    x, y = draw(loss, 500, on_sphere=True)
    if not isinstance(loss, LogisticLoss | LogisticAround):
        y[:250], y[250:] = np.array(targets_of(loss)) * (1 + 5e-10)
    q, p, _ = loss.terms(x * (1 + 5e-10), y)
    assert np.linalg.norm(q, axis=1).max() <= loss.q_bound * (1 + 1e-14)
    assert np.linalg.norm(p, axis=1).max() <= loss.p_bound * (1 + 1e-14)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_value_is_the_quadratic_with_its_matrix(loss: Any) -> None:
    x, y = draw(loss, 1)
    q, p, s = loss.terms(x[0], y[0])
    w = np.array([0.3, -0.2, 0.9])
    expected = w @ np.outer(q, q) @ w / 2 - p @ w + s
    assert value(Quadratic(q, p, s), w) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_gradients_stay_within_zeta(loss: Any) -> None:
    eta = 1.3
    zeta = loss.q_bound**2 * eta + loss.p_bound
    x, y = draw(loss, 4000, seed=3, on_sphere=True)
    w = eta * np.random.default_rng(4).normal(size=(4000, 3))
    w /= np.maximum(1, np.linalg.norm(w, axis=1, keepdims=True) / eta)
    q, p, _ = loss.terms(x, y)
    gradient = q * np.sum(q * w, axis=1, keepdims=True) - p
    assert np.linalg.norm(gradient, axis=1).max() <= zeta * (1 + 1e-12)


@pytest.mark.parametrize("loss", EVERY_LOSS[:1] + EVERY_LOSS[3:4] + EVERY_LOSS[5:6], ids=repr)
def test_inputs_are_neither_changed_nor_shared(loss: Any) -> None:
    x, y = draw(loss, 5)
    x.flags.writeable = y.flags.writeable = False
    terms = loss.terms(x, y)
    assert not any(np.shares_memory(term, given) for term in terms for given in (x, y))


@pytest.mark.parametrize(
    "loss",
    [SquaredLoss(), LogisticLoss(), LogisticAround(np.ones(5)), PoissonAround(np.ones(5), 2.0)],
    ids=repr,
)
def test_many_records_without_a_third_large_array(loss: Any) -> None:
    n, d = 2 * 10**5, 5
    x = np.random.default_rng(1).uniform(-0.4, 0.4, size=(n, d))
    y = np.where(x[:, 0] > 0, 1.0, -1.0 if isinstance(loss, LogisticLoss | LogisticAround) else 0.0)
    tracemalloc.start()
    terms = loss.terms(x, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert terms.q.shape == (n, d)
    large, small = 8 * n * d, 8 * n
    assert peak < 2 * large + 9 * small


# Squared loss


def test_squared_loss_is_exact() -> None:
    loss = SquaredLoss(feature_bound=2.0, target_bound=3.0)
    x, y = draw(loss, 200)
    w = np.array([0.7, -2.0, 1.1])
    np.testing.assert_allclose(value(loss.terms(x, y), w), true_value(loss, x, y, w), atol=1e-13)
    assert (loss.q_bound, loss.p_bound, loss.parallel) == (2.0, 6.0, True)


def test_minimiser_of_the_squared_sum_is_least_squares() -> None:
    x, y = draw(SquaredLoss(), 300)
    q, p, _ = SquaredLoss().terms(x, y)
    fitted = np.linalg.solve(q.T @ q, p.sum(axis=0))
    np.testing.assert_allclose(fitted, np.linalg.lstsq(x, y)[0], rtol=1e-10)


# Parabolas for the logistic loss


def logistic(approximation: Any, reach: float) -> LogisticLoss:
    return LogisticLoss(approximation=approximation, weight_bound=reach)


def even_part(z: Any) -> Any:
    return np.abs(z) / 2 + np.log1p(np.exp(-np.abs(z)))


def residual(loss: Any, z: Any) -> Any:
    """Of g(z) or e^z, by the loss's parabola."""
    a, b, c = loss.parabola.constant, loss.parabola.slope, loss.parabola.curvature
    curve = even_part(z) if isinstance(loss, LogisticLoss) else np.exp(z)
    return curve - (a + z * (b + c * z / 2))


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("reach", REACHES)
def test_logistic_error_is_the_largest_on_a_dense_grid(approximation: Any, reach: float) -> None:
    loss = logistic(approximation, reach)
    z = np.linspace(-reach, reach, 200_001)
    largest = np.abs(residual(loss, z)).max()
    assert largest <= loss.approximation_error() <= largest + 1e-9
    further = np.linspace(0, 2 * reach, 200_001)
    largest = np.abs(residual(loss, further)).max()
    assert largest <= loss.approximation_error(2 * reach) <= largest + 1e-9


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_logistic_quadratic_errs_by_no_more_than_it_says(approximation: Any) -> None:
    loss = LogisticLoss(2.0, approximation, weight_bound=1.5)
    x, y = draw(loss, 5000, on_sphere=True)
    w = 1.5 * np.array([0.6, 0.0, 0.8])
    error = np.abs(value(loss.terms(x, y), w) - true_value(loss, x, y, w)).max()
    assert 0.7 * loss.approximation_error() < error <= loss.approximation_error()


@pytest.mark.parametrize("reach", REACHES)
def test_chebyshev_is_the_best_for_the_logistic_loss(reach: float) -> None:
    taylor, chebyshev, projection = (
        logistic(name, reach).approximation_error() for name in APPROXIMATIONS
    )
    assert chebyshev <= projection + 1e-14
    assert chebyshev <= taylor + 1e-14
    if reach >= 0.3:
        assert chebyshev < projection < taylor


@pytest.mark.parametrize("reach", REACHES[1:])
def test_logistic_chebyshev_equioscillates(reach: float) -> None:
    loss = logistic("chebyshev", reach)
    z = np.linspace(0, reach, 400_001)
    error, E = residual(loss, z), loss.approximation_error()
    inner = error.argmax()
    assert 0 < inner < z.size - 1
    np.testing.assert_allclose([-error[0], error[inner], -error[-1]], E, rtol=1e-6)


@pytest.mark.parametrize("reach", [1e-9, 1e-3, 0.5, 3.0, 47.0, 49.0, 1e3, 1e6])
def test_logistic_curvatures_by_mpmath(reach: float) -> None:
    with mpmath.workdps(60):
        Z = mpmath.mpf(reach)
        chord = 2 * mpmath.log(mpmath.cosh(Z / 2)) / Z**2

        def integrand(z: Any) -> Any:
            return (1 - (z / Z) ** 2) ** 2 / (4 * mpmath.cosh(z / 2) ** 2)

        edges = [mpmath.mpf(edge) for edge in (0, 1, 5, 20, 60, 200) if edge < reach]
        projection = mpmath.mpf(15) / 8 / Z * mpmath.quad(integrand, [*edges, min(Z, 200)])
    assert logistic("chebyshev", reach).parabola.curvature == pytest.approx(float(chord), rel=1e-13)
    found = logistic("least-squares", reach).parabola.curvature
    assert found == pytest.approx(float(projection), rel=1e-13)
    assert 0 < found <= 0.25 * (1 + 1e-15)


@pytest.mark.parametrize("reach", [0.3, 2.5, 20.0])
def test_least_squares_agrees_with_a_fit(reach: float) -> None:
    nodes, weights = legendre.leggauss(400)
    z = reach * nodes
    for loss, curve in (
        (logistic("least-squares", reach), even_part(z)),
        (PoissonLoss(1.0, reach, approximation="least-squares"), np.exp(z)),
    ):
        fit = legendre.leg2poly(legendre.legfit(nodes, curve, 2, w=np.sqrt(weights)))
        a, b, c = fit / [1, reach, reach**2 / 2]
        size = float(np.abs(curve).max())
        parabola = loss.parabola
        assert parabola.constant == pytest.approx(a, rel=1e-11, abs=1e-11 * size)
        assert parabola.slope == pytest.approx(b, rel=1e-11, abs=1e-11 * size)
        assert parabola.curvature == pytest.approx(c, rel=1e-10)


def test_taylor_is_the_textbook_expansion() -> None:
    q, p, s = LogisticLoss().terms([[0.6, 0.8]], [-1.0])
    np.testing.assert_allclose(q, [[0.3, 0.4]])
    np.testing.assert_allclose(p, [[-0.3, -0.4]])
    assert s[0] == math.log(2)


def test_logistic_survives_huge_and_tiny_reaches() -> None:
    for reach in (1e-300, 1e-160, 1e160, 1e300):
        for approximation in APPROXIMATIONS:
            loss = logistic(approximation, reach)
            assert 0 < loss.q_bound <= 0.5
            if approximation != "taylor":
                assert math.isfinite(loss.approximation_error())


# Parabolas for the Poisson loss


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("reach", REACHES)
def test_poisson_error_is_the_largest_on_a_dense_grid(approximation: Any, reach: float) -> None:
    loss = PoissonLoss(3.0, reach, approximation=approximation)
    for further in (reach, reach / 2, 1.5 * reach):
        z = np.linspace(-further, further, 400_001)
        largest = np.abs(residual(loss, z)).max()
        error = loss.approximation_error(further)
        assert largest <= error <= largest + 1e-9 * max(1.0, largest, math.exp(further))


@pytest.mark.parametrize("reach", [*REACHES, 100.0])
def test_poisson_chebyshev_equioscillates_and_is_best(reach: float) -> None:
    taylor, best, projection = (
        PoissonLoss(3.0, reach, approximation=name) for name in APPROXIMATIONS
    )
    E = best.approximation_error()
    assert E < projection.approximation_error() < taylor.approximation_error()
    z = np.linspace(-reach, reach, 400_001)
    error = residual(best, z)
    low = error[: error.size // 2].argmax() if reach < 5 else error[:-2].argmax()
    high = low + error[low:].argmin()
    points = error[[0, low, high, -1]]
    np.testing.assert_allclose(points * [-1, 1, -1, 1], E, rtol=1e-4, atol=1e-14)
    assert np.exp(-reach) < best.parabola.curvature < np.exp(reach)


@pytest.mark.parametrize("reach", [1e-12, 1e-6])
def test_poisson_chebyshev_keeps_its_digits_for_small_reaches(reach: float) -> None:
    """The cubic z³/6 dominates: slope 1 + Z²/8, and the quartic z⁴/24 gives c = 1 + Z²/12 + …"""
    parabola = PoissonLoss(3.0, reach).parabola
    assert parabola.slope == pytest.approx(1 + reach**2 / 8, rel=1e-15)
    assert parabola.curvature == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_poisson_quadratic_errs_by_no_more_than_it_says(approximation: Any) -> None:
    loss = PoissonLoss(6.0, 1.2, 2.0, approximation)
    x, y = draw(loss, 5000, on_sphere=True)
    w = 1.2 * np.array([0.6, 0.0, 0.8])
    error = np.abs(value(loss.terms(x, y), w) - true_value(loss, x, y, w)).max()
    assert 0.7 * loss.approximation_error() < error <= loss.approximation_error() * (1 + 1e-12)


# Around a prior model


AROUND: list[Any] = [
    LogisticAround(PRIOR, feature_bound=2.0),
    LogisticAround((5.0, 3.0, -8.0)),
    PoissonAround(PRIOR, count_bound=7.0),
    PoissonAround((2.0, 3.0, -1.0), count_bound=2.0),
]


@pytest.mark.parametrize("loss", AROUND, ids=repr)
def test_value_gradient_and_hessian_agree_at_the_prior(loss: Any) -> None:
    x, y = draw(loss, 6, seed=5)
    rng = np.random.default_rng(6)
    w0 = np.array(loss.prior_weights)
    for i in range(6):
        q, p, s = loss.terms(x[i], y[i])
        direction = rng.normal(size=3)
        start, step, label = (float(v) for v in (x[i] @ w0, x[i] @ direction, y[i]))

        def along(t: Any, start: float = start, step: float = step, label: float = label) -> Any:
            z = start + t * step
            if isinstance(loss, LogisticAround):
                return mpmath.log1p(mpmath.exp(-label * z))
            return mpmath.exp(z) - label * z + mpmath.loggamma(label + 1)

        with mpmath.workdps(40):
            true = [float(mpmath.diff(along, 0, order)) for order in range(3)]
        found = [
            value(Quadratic(q, p, s), w0),
            (q @ w0) * (q @ direction) - p @ direction,
            (q @ direction) ** 2,
        ]
        np.testing.assert_allclose(found, true, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("loss", AROUND, ids=repr)
@pytest.mark.parametrize("eta", [0.5, 1.0, 3.0, 15.0])
def test_error_around_a_prior_is_the_largest_on_a_grid(loss: Any, eta: float) -> None:
    Z = loss.feature_bound * math.hypot(*loss.prior_weights)
    reach = eta * loss.feature_bound
    z = np.linspace(-reach, reach, 40_001)
    largest = 0.0
    for z0 in np.linspace(-Z, Z, 41):
        u = z - z0
        if isinstance(loss, LogisticAround):
            c = 0.25 / np.cosh(z0 / 2) ** 2
            error = even_part(z) - even_part(z0) - np.tanh(z0 / 2) / 2 * u - c * u**2 / 2
        else:
            error = np.exp(z) - np.exp(z0) * (1 + u + u**2 / 2)
        largest = max(largest, np.abs(error).max())
    found = loss.approximation_error(eta)
    assert largest <= found * (1 + 1e-14)
    assert found <= largest * (1 + 1e-7) + 1e-9


def test_error_near_the_prior_is_of_the_third_order() -> None:
    loss = LogisticAround(PRIOR)
    x, y = draw(loss, 2000, on_sphere=True)
    for r in (1.0, 0.1, 0.01):
        w = np.array(PRIOR) + r * np.array([0.0, 0.6, 0.8])
        error = np.abs(value(loss.terms(x, y), w) - true_value(loss, x, y, w)).max()
        assert error <= r**3 / (36 * math.sqrt(3)) + 1e-15
    assert loss.approximation_error(2.0) >= LogisticLoss().approximation_error(2.0)


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 4.0, 30.0, 1000.0])
def test_logistic_around_bounds_on_a_dense_grid(scale: float) -> None:
    loss = LogisticAround((scale, 0.0), feature_bound=1.0)
    cosine = np.linspace(-1, 1, 100_001)
    x = np.column_stack([cosine, np.sqrt(1 - cosine**2)])
    for label in (-1.0, 1.0):
        q, p, s = loss.terms(x, np.full(cosine.size, label))
        assert np.linalg.norm(q, axis=1).max() == pytest.approx(0.5, rel=1e-9)
        assert np.linalg.norm(p, axis=1).max() == pytest.approx(loss.p_bound, rel=1e-9)
        assert np.linalg.norm(p, axis=1).max() <= loss.p_bound
        assert np.isfinite(s).all()
    assert 0.5 <= loss.p_bound <= 1 + 1e-14


def test_around_is_parallel_but_its_ratio_is_not_bounded() -> None:
    """Were it to say parallel=True, the moment mechanism would add too little noise."""
    prior = np.array(PRIOR)
    Z = math.hypot(*PRIOR)
    for loss, worst_record, label, factor in (
        (LogisticAround(PRIOR), prior / Z, -1.0, math.cosh(Z / 2)),
        (PoissonAround(PRIOR, 1e6), -prior / Z, 1e6, math.exp(Z)),
    ):
        assert not loss.parallel
        q, p, _ = loss.terms(worst_record, label)
        ratio = math.hypot(*p) / math.hypot(*q)
        assert ratio == pytest.approx(factor * loss.p_bound / loss.q_bound, rel=1e-5)

        class Boaster:
            q_bound, p_bound, parallel = loss.q_bound, loss.p_bound, True
            terms = loss.terms

        with pytest.raises(InvalidValueError, match=r"Row 0 has ‖p‖/‖q‖=.*say parallel=False"):
            check_bounds(Boaster(), worst_record, label)


def test_around_zero_is_taylor() -> None:
    x, y = draw(LogisticLoss(), 50)
    for around, taylor in (
        (LogisticAround(np.zeros(3)), LogisticLoss()),
        (PoissonAround(np.zeros(3), 2.0), PoissonLoss(2.0, 1.0, approximation="taylor")),
    ):
        for one, other in zip(around.terms(x, y**2), taylor.terms(x, y**2), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)
        assert around.p_bound == pytest.approx(taylor.p_bound)


def test_a_good_prior_comes_nearer_to_the_true_model_than_taylor() -> None:
    rng = np.random.default_rng(7)
    x, _ = draw(LogisticLoss(), 4000, seed=7, on_sphere=True)
    y = np.where(rng.random(4000) < 1 / (1 + np.exp(-x @ [3.0, -2.0, 1.0])), 1.0, -1.0)

    def mean_loss(w: Any) -> float:
        return float(np.logaddexp(0, -y * (x @ w)).mean())

    truth = minimize(mean_loss, np.zeros(3), tol=1e-12).x

    def minimiser(loss: QuadraticLoss) -> Any:
        q, p, _ = loss.terms(x, y)
        return np.linalg.solve(q.T @ q, p.sum(axis=0))

    last_year = truth + np.array([0.3, 0.2, -0.2])
    newton = minimiser(LogisticAround(last_year))
    taylor = minimiser(LogisticLoss())
    chebyshev = minimiser(LogisticLoss(approximation="chebyshev", weight_bound=4.0))
    distance = {
        name: math.dist(w, truth)
        for name, w in (("newton", newton), ("taylor", taylor), ("chebyshev", chebyshev))
    }
    assert distance["newton"] < 0.1 * math.dist(last_year, truth)
    assert distance["newton"] < distance["chebyshev"] < distance["taylor"]
    for _ in range(4):
        newton = minimiser(LogisticAround(newton))
    np.testing.assert_allclose(newton, truth, atol=1e-5)


def test_huge_margins_do_not_overflow() -> None:
    loss = LogisticAround((1e200, -1e200), feature_bound=1e3, weight_bound=1.0)
    x = np.array([[600.0, -800.0], [-600.0, 800.0], [0.0, 0.0]])
    for label in (-1.0, 1.0):
        terms = loss.terms(x, np.full(3, label))
        assert all(np.isfinite(term).all() for term in terms)
    assert math.isfinite(loss.approximation_error())
    around = PoissonAround((0.0, 99.0), count_bound=3.0)
    assert np.isfinite(around.terms([0.0, 1.0], 3.0).s)


def test_losses_around_a_prior_compare_and_hash() -> None:
    first, second = LogisticAround(np.array([1, 2])), LogisticAround([1.0, 2.0])
    assert first == second
    assert hash(first) == hash(second)
    assert first != LogisticAround([1.0, 3.0])
    assert repr(first).startswith("LogisticAround(prior_weights=(1.0, 2.0), ")
    with pytest.raises(FrozenInstanceError):
        first.feature_bound = 2.0  # type: ignore[misc]
    source = np.array([1.0, 2.0])
    loss = PoissonAround(source, 1.0)
    source[:] = 9.0
    assert loss.prior_weights == (1.0, 2.0)


# A user's own loss


@dataclass(frozen=True)
class OwnLoss:
    """Squared loss, with room for each way to go wrong."""

    q_bound: float = 1.0
    p_bound: float = 1.0
    parallel: bool = True
    turn: float = 0.0
    stretch: float = 1.0

    def terms(self, features: Any, target: Any) -> Quadratic:
        x, y = np.asarray(features), np.asarray(target)
        p = y[..., None] * x
        return Quadratic(self.stretch * x, p + self.turn * p[..., ::-1] * [1, -1], y**2 / 2)


def test_the_own_loss_of_the_documentation_runs() -> None:
    names = [module.name for module in pkgutil.iter_modules(losses.__path__)]
    for name in ["", *(f".{name}" for name in names)]:
        module = importlib.import_module(losses.__name__ + name)
        outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
        assert outcome.failed == 0
        assert outcome.attempted > 0 or name not in ("", ".squared", ".logistic", ".poisson")


def test_own_loss_is_accepted_wherever_it_keeps_its_promises() -> None:
    x, y = np.array([[0.6, 0.8], [0.0, 0.0], [0.1, 0.0]]), np.array([1.0, -0.4, -1.0])
    own = OwnLoss()
    assert isinstance(own, QuadraticLoss)
    check_bounds(own, x, y)
    check_bounds(own, x[0], y[0])
    check_bounds(OwnLoss(parallel=False, turn=0.5, p_bound=2.0), x, y)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (OwnLoss(q_bound=0.5), r"Row 1 has ‖q‖=1, above q_bound=0\.5"),
        (OwnLoss(p_bound=0.3), r"Row 2 has ‖p‖=0\.5, above p_bound=0\.3"),
        (OwnLoss(turn=0.1), r"Row 1 has a part of p across q of norm=0\.01"),
        (OwnLoss(q_bound=2.0), r"Row 2 has ‖p‖/‖q‖=1, above p_bound/q_bound=0\.5"),
        (OwnLoss(stretch=0.0), r"Row 1 has ‖p‖/‖q‖=inf"),
        (OwnLoss(stretch=math.nan), r"Row 0 has ‖q‖=nan"),
        (OwnLoss(q_bound=0.0), r"Expected q_bound=0\.0 > 0"),
        (OwnLoss(p_bound=-1.0), r"Expected p_bound=-1\.0 >= 0"),
    ],
)
def test_own_loss_is_refused_where_it_breaks_one(loss: Any, message: str) -> None:
    x, y = np.array([[0.1, 0.1], [0.6, 0.8], [0.3, 0.4]]), np.array([0.0, 0.1, 1.0])
    with pytest.raises(InvalidValueError, match=message):
        check_bounds(loss, x, y)


def test_own_loss_must_give_one_quadratic_per_record() -> None:
    class Flat(OwnLoss):
        def terms(self, features: Any, target: Any) -> Quadratic:
            q, p, s = super().terms(features, target)
            return Quadratic(q, p, s[:1])

    with pytest.raises(InvalidValueError, match=r"Expected s of shape \(2,\), and .* gave \(1,\)"):
        check_bounds(Flat(), np.zeros((2, 2)), np.zeros(2))


# What is refused


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_bad_records_are_refused_by_name(loss: Any) -> None:
    x, y = draw(loss, 4)
    for bad, norm in ((math.nan, "nan"), (math.inf, "inf"), (1e200, "inf"), (3.1, r"3\.\d+")):
        worse = x.copy()
        worse[2, 1] = bad
        with pytest.raises(
            InvalidValueError, match=rf"Row 2 has features of norm={norm}, .* feature_bound"
        ):
            loss.terms(worse, y)
    for bad in (math.nan, math.inf, -math.inf, 100.0, -100.0):
        worse = y.copy()
        worse[3] = bad
        with pytest.raises(InvalidValueError, match=r"Row 3 has the (label|target)="):
            loss.terms(x, worse)
    with pytest.raises(InvalidValueError, match=r"Row 0 has features of norm=4, "):
        loss.terms([4.0, 0.0, 0.0], y[0])
    beyond = np.array([loss.feature_bound * (1 + 2e-9), 0.0, 0.0])
    with pytest.raises(InvalidValueError, match="Row 0 has features"):
        loss.terms(beyond, y[0])


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
@pytest.mark.parametrize(
    ("features", "target"),
    [
        (np.zeros((4, 3)), np.zeros(3)),
        (np.zeros((4, 3)), np.zeros((4, 1))),
        (np.zeros((4, 3)), 1.0),
        (np.zeros(3), np.ones(1)),
        (np.zeros((2, 2, 3)), np.zeros((2, 2))),
        (np.zeros((4, 0)), np.zeros(4)),
        (1.0, 1.0),
    ],
)
def test_wrong_shapes_are_refused(loss: Any, features: Any, target: Any) -> None:
    with pytest.raises(InvalidValueError, match="Expected features of shape"):
        loss.terms(features, target)


@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticAround([1.0, 1.0])], ids=repr)
@pytest.mark.parametrize("label", [0.0, 0.5, 2.0, False])
def test_other_labels_are_refused_with_the_remedy(loss: Any, label: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"Row 1 has the label=.*2 \* label - 1"):
        loss.terms(np.zeros((3, 2)), [1, label, -1])


def test_targets_beyond_their_bounds_are_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidValueError, match=r"Row 0 has the target=1\.5.*target_bound=1 of 0"):
        SquaredLoss().terms([0.1], 1.5)
    with pytest.raises(InvalidValueError, match=r"the target=-1, .*counts are at least 0"):
        PoissonLoss(3.0, 1.0).terms([0.1], -1)
    with pytest.raises(InvalidValueError, match=r"the target=4, .*count_bound=3"):
        PoissonAround([1.0], 3.0).terms([0.1], 4)


@pytest.mark.parametrize("loss", [LogisticAround([1.0, 1.0]), PoissonAround([1.0, 1.0], 1.0)])
def test_a_prior_of_another_dimension_is_refused(loss: Any) -> None:
    with pytest.raises(InvalidValueError, match="as many features as prior_weights, 2, and got 3"):
        loss.terms([0.1, 0.1, 0.1], 1.0)


@pytest.mark.parametrize("prior", [[], [math.nan], [math.inf, 0.0], [[1.0, 2.0]], 3.0, ["a"]])
def test_a_prior_that_is_no_vector_is_refused(prior: Any) -> None:
    with pytest.raises(InvalidValueError, match="Expected prior_weights"):
        LogisticAround(prior)
    with pytest.raises(InvalidValueError, match="Expected prior_weights"):
        PoissonAround(prior, 1.0)


@pytest.mark.parametrize(
    "features", [["a", "b"], [1j, 2j], [[1.0], [1.0, 2.0]], [None, 1.0]], ids=repr
)
def test_what_is_not_a_number_is_refused(features: Any) -> None:
    with pytest.raises(InvalidValueError, match="Expected features to be an array of"):
        SquaredLoss().terms(features, 1.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1", None])
def test_bad_bounds_are_refused(bad: Any) -> None:
    for make in (
        lambda: SquaredLoss(feature_bound=bad),
        lambda: SquaredLoss(target_bound=bad),
        lambda: LogisticLoss(feature_bound=bad),
        lambda: LogisticLoss(approximation="chebyshev", weight_bound=bad),
        lambda: LogisticAround([1.0], feature_bound=bad),
        lambda: PoissonLoss(bad, 1.0),
        lambda: PoissonLoss(1.0, bad),
        lambda: PoissonLoss(1.0, 1.0, bad),
        lambda: PoissonAround([1.0], bad),
    ):
        with pytest.raises(InvalidValueError, match=r"Expected (\w+_bound)"):
            make()
    if bad is not None:
        for loss in (LogisticLoss(), *AROUND, PoissonLoss(1.0, 1.0)):
            with pytest.raises(InvalidValueError, match="Expected weight_bound"):
                loss.approximation_error(bad)


def test_a_missing_weight_bound_is_asked_for() -> None:
    for loss in (LogisticLoss(), *AROUND):
        with pytest.raises(InvalidValueError, match=r"approximation_error\(weight_bound=1\.0\)"):
            loss.approximation_error()
    with pytest.raises(InvalidValueError, match="or choose approximation='taylor'"):
        LogisticLoss(approximation="least-squares")
    assert LogisticAround([1.0], weight_bound=1.0).approximation_error() > 0


def test_unknown_approximations_and_endless_rates_are_refused() -> None:
    name: Any = "tailor"
    with pytest.raises(InvalidValueError, match="approximation='tailor' to be one of 'taylor'"):
        LogisticLoss(approximation=name)
    with pytest.raises(InvalidValueError, match="approximation='tailor' to be one of 'taylor'"):
        PoissonLoss(1.0, 1.0, 1.0, name)
    with pytest.raises(InvalidValueError, match=r"weight_bound \* feature_bound=101 <= 100"):
        PoissonLoss(1.0, 101.0)
    with pytest.raises(InvalidValueError, match=r"‖prior_weights‖ \* feature_bound=200 <= 100"):
        PoissonAround([100.0], 1.0, feature_bound=2.0)
    with pytest.raises(InvalidValueError, match=r"‖prior_weights‖ \* feature_bound=inf"):
        LogisticAround([1e200], feature_bound=1e200)


def test_weights_of_another_dimension_are_refused() -> None:
    terms = SquaredLoss().terms(np.zeros((2, 3)), np.zeros(2))
    for weights in (np.zeros(2), np.zeros((3, 1)), 1.0):
        with pytest.raises(InvalidValueError, match=r"Expected weights of shape \(3,\)"):
            value(terms, weights)
