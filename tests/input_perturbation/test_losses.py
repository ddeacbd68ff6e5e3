"""Records as quadratics: against the true losses, on grids, by mpmath, and all over the ball."""

import math
import tracemalloc
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre

from blurfit.errors import InvalidValueError
from blurfit.input_perturbation.losses import (
    LogisticLoss,
    Quadratic,
    QuadraticLoss,
    SquaredLoss,
    check_bounds,
    value,
)

APPROXIMATIONS: list[Any] = ["taylor", "chebyshev", "least-squares"]
REACHES = [1e-3, 0.3, 1.0, 2.5, 6.0, 20.0]

EVERY_LOSS = [
    SquaredLoss(),
    SquaredLoss(feature_bound=3.0, target_bound=0.2),
    LogisticLoss(),
    LogisticLoss(2.0, "chebyshev", weight_bound=1.5),
    LogisticLoss(0.5, "least-squares", weight_bound=4.0),
]


def targets_of(loss: Any) -> tuple[float, float]:
    """The least and the largest target that a loss takes."""
    if isinstance(loss, LogisticLoss):
        return -1.0, 1.0
    return -loss.target_bound, loss.target_bound


def draw(loss: Any, n: int, seed: int = 0, on_sphere: bool = False) -> tuple[Any, Any]:
    """Records anywhere in the ball (or on its sphere), in three dimensions."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x *= loss.feature_bound * (1.0 if on_sphere else rng.random((n, 1)) ** (1 / 3))
    low, high = targets_of(loss)
    if isinstance(loss, LogisticLoss):
        return x, rng.choice([-1.0, 1.0], n)
    return x, rng.uniform(low, high, n)


def true_value(loss: Any, x: Any, y: Any, w: Any) -> Any:
    z = x @ np.asarray(w)
    if isinstance(loss, SquaredLoss):
        return (y - z) ** 2 / 2
    return np.logaddexp(0, -y * z)


@st.composite
def records(draw: Any, loss: Any) -> tuple[Any, float]:
    """One record, as near to the edges as it pleases."""
    x = np.array(draw(st.lists(st.floats(-1, 1), min_size=3, max_size=3)))
    norm = math.hypot(*x)
    x = x / norm if norm > 1 or (norm > 1e-3 and draw(st.booleans())) else x
    low, high = targets_of(loss)
    if isinstance(loss, LogisticLoss):
        return x * loss.feature_bound, draw(st.sampled_from([-1.0, 1.0]))
    return x * loss.feature_bound, draw(st.floats(low, high))


# What every loss promises
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
@settings(max_examples=15)
@given(data=st.data())
def test_bounds_hold_for_every_record(loss: Any, data: Any) -> None:
    assert isinstance(loss, QuadraticLoss)
    for x, y in data.draw(st.tuples(*[records(loss)] * 4)):
        q, p, s = loss.terms(x, y)
        assert math.hypot(*q) <= loss.q_bound * (1 + 1e-14)
        assert math.hypot(*p) <= loss.p_bound * (1 + 1e-14)
        assert np.isfinite(s)
        check_bounds(loss, x, y)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_bounds_are_attained_and_kept_where_rounding_goes_over_the_sphere(loss: Any) -> None:
    R = loss.feature_bound
    along = np.array([0.6, 0.0, 0.8])
    across = np.cross(along, [0.0, 0.0, 1.0])
    across /= math.hypot(*across)
    x = R * np.array([along, -along, across])
    x, y = np.repeat(x, 2, axis=0), np.tile(targets_of(loss), 3)
    q, p, _ = loss.terms(x, y)
    assert np.linalg.norm(q, axis=1).max() == pytest.approx(loss.q_bound, rel=1e-9)
    assert np.linalg.norm(p, axis=1).max() == pytest.approx(loss.p_bound, rel=1e-9)
    x, y = draw(loss, 500, on_sphere=True)
    if not isinstance(loss, LogisticLoss):
        y[:250], y[250:] = np.array(targets_of(loss)) * (1 + 5e-10)
    q, p, _ = loss.terms(x * (1 + 5e-10), y)
    assert np.linalg.norm(q, axis=1).max() <= loss.q_bound * (1 + 1e-14)
    assert np.linalg.norm(p, axis=1).max() <= loss.p_bound * (1 + 1e-14)


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
def test_gradients_stay_within_zeta(loss: Any) -> None:
    eta = 1.3
    zeta = loss.q_bound**2 * eta + loss.p_bound
    x, y = draw(loss, 4000, seed=3, on_sphere=True)
    w = eta * np.random.default_rng(4).normal(size=(4000, 3))
    w /= np.maximum(1, np.linalg.norm(w, axis=1, keepdims=True) / eta)
    q, p, _ = loss.terms(x, y)
    gradient = q * np.sum(q * w, axis=1, keepdims=True) - p
    assert np.linalg.norm(gradient, axis=1).max() <= zeta * (1 + 1e-12)


@pytest.mark.parametrize("loss", EVERY_LOSS[:1] + EVERY_LOSS[3:4], ids=repr)
def test_inputs_are_neither_changed_nor_shared(loss: Any) -> None:
    x, y = draw(loss, 5)
    x.flags.writeable = y.flags.writeable = False
    terms = loss.terms(x, y)
    assert not any(np.shares_memory(term, given) for term in terms for given in (x, y))


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=repr)
def test_many_records_without_a_third_large_array(loss: Any) -> None:
    n, d = 2 * 10**5, 5
    x = np.random.default_rng(1).uniform(-0.4, 0.4, size=(n, d))
    y = np.where(x[:, 0] > 0, 1.0, -1.0 if isinstance(loss, LogisticLoss) else 0.0)
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
    assert (loss.q_bound, loss.p_bound) == (2.0, 6.0)


# Parabolas for the logistic loss
def logistic(approximation: Any, reach: float) -> LogisticLoss:
    return LogisticLoss(approximation=approximation, weight_bound=reach)


def even_part(z: Any) -> Any:
    return np.abs(z) / 2 + np.log1p(np.exp(-np.abs(z)))


def residual(loss: Any, z: Any) -> Any:
    """Of g(z), by the loss's parabola."""
    a, b, c = loss.parabola.constant, loss.parabola.slope, loss.parabola.curvature
    return even_part(z) - (a + z * (b + c * z / 2))


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
    curve = even_part(reach * nodes)
    fit = legendre.leg2poly(legendre.legfit(nodes, curve, 2, w=np.sqrt(weights)))
    a, b, c = fit / [1, reach, reach**2 / 2]
    size = float(np.abs(curve).max())
    parabola = logistic("least-squares", reach).parabola
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


# A user's own loss
@dataclass(frozen=True)
class OwnLoss:
    """Squared loss, with room for each way to go wrong."""

    q_bound: float = 1.0
    p_bound: float = 1.0
    stretch: float = 1.0

    def terms(self, features: Any, target: Any) -> Quadratic:
        x, y = np.asarray(features), np.asarray(target)
        return Quadratic(self.stretch * x, y[..., None] * x, y**2 / 2)


def test_own_loss_is_accepted_wherever_it_keeps_its_promises_and_shapes() -> None:
    x, y = np.array([[0.6, 0.8], [0.0, 0.0], [0.1, 0.0]]), np.array([1.0, -0.4, -1.0])
    own = OwnLoss()
    assert isinstance(own, QuadraticLoss)
    check_bounds(own, x, y)
    check_bounds(own, x[0], y[0])

    class Flat(OwnLoss):
        def terms(self, features: Any, target: Any) -> Quadratic:
            q, p, s = super().terms(features, target)
            return Quadratic(q, p, s[:1])

    with pytest.raises(InvalidValueError, match=r"Expected s of shape \(2,\), and .* gave \(1,\)"):
        check_bounds(Flat(), np.zeros((2, 2)), np.zeros(2))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (OwnLoss(q_bound=0.5), r"Row 1 has a ‖q‖ above q_bound=0\.5"),
        (OwnLoss(p_bound=0.3), r"Row 2 has a ‖p‖ above p_bound=0\.3"),
        (OwnLoss(stretch=math.nan), "Row 0 has a ‖q‖ above"),
        (OwnLoss(q_bound=0.0), r"Expected q_bound=0\.0 > 0"),
        (OwnLoss(p_bound=-1.0), r"Expected p_bound=-1\.0 >= 0"),
    ],
)
def test_own_loss_is_refused_where_it_breaks_one(loss: Any, message: str) -> None:
    x, y = np.array([[0.1, 0.1], [0.6, 0.8], [0.3, 0.4]]), np.array([0.0, 0.1, 1.0])
    with pytest.raises(InvalidValueError, match=message):
        check_bounds(loss, x, y)


# What is refused
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_bad_records_are_refused_by_name(loss: Any) -> None:
    x, y = draw(loss, 4)
    for bad in (math.nan, math.inf, 1e200, 3.1):
        worse = x.copy()
        worse[2, 1] = bad
        with pytest.raises(
            InvalidValueError, match="Row 2 has features whose norm is not within feature_bound"
        ):
            loss.terms(worse, y)
    for bad in (math.nan, math.inf, -math.inf, 100.0, -100.0):
        worse = y.copy()
        worse[3] = bad
        with pytest.raises(InvalidValueError, match=r"Row 3 has a (label|target) which"):
            loss.terms(x, worse)
    with pytest.raises(InvalidValueError, match="Row 0 has features whose norm"):
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


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1", None])
def test_bad_bounds_are_refused(bad: Any) -> None:
    for make in (
        lambda: SquaredLoss(feature_bound=bad),
        lambda: SquaredLoss(target_bound=bad),
        lambda: LogisticLoss(feature_bound=bad),
        lambda: LogisticLoss(approximation="chebyshev", weight_bound=bad),
    ):
        with pytest.raises(InvalidValueError, match=r"Expected (\w+_bound)"):
            make()
    if bad is not None:
        with pytest.raises(InvalidValueError, match="Expected weight_bound"):
            LogisticLoss().approximation_error(bad)


TERMS = SquaredLoss().terms(np.zeros((2, 3)), np.zeros(2))
LABELS = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        *(
            (lambda y=y: LogisticLoss().terms(LABELS, [1, y, -1]), r"Row 1 .*2 \* label - 1")
            for y in (0.0, 0.5, 2.0, False)
        ),
        (lambda: SquaredLoss().terms([0.1], 1.5), "Row 0 .* is not within target_bound=1 of 0"),
        *(
            (lambda x=x: SquaredLoss().terms(x, 1.0), "Expected features to be an array of")
            for x in (["a", "b"], [1j, 2j], [[1.0], [1.0, 2.0]], [None, 1.0])
        ),
        (lambda: LogisticLoss().approximation_error(), r"n_error\(weight_bound=1\.0\)"),
        (lambda: LogisticLoss(approximation="least-squares"), "choose approximation='taylor'"),
        (lambda: LogisticLoss(approximation="tailor"), "='tailor' to be one of 'taylor'"),
        *(
            (lambda w=w: value(TERMS, w), r"Expected weights of shape \(3,\)")
            for w in (np.zeros(2), np.zeros((3, 1)), 1.0)
        ),
    ],
)
def test_refusals_name_the_value_and_the_remedy(attempt: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        attempt()
