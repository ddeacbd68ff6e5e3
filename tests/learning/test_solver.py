import math
import warnings
from dataclasses import FrozenInstanceError
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blurfit.errors import InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.learning import solver
from blurfit.learning.solver import (
    RESIDUAL_ALLOWED,
    ElasticNet,
    Program,
    Spectrum,
    _direction,
    certify,
    minimise,
)


def positive_definite(found):
    """Whether λ₁ > 0 beyond what rounding could have made of a zero."""
    rounding = len(found.weights) * solver.EPSILON * abs(found.largest_eigenvalue)
    return found.smallest_eigenvalue > rounding


def rotation(dimension, rng):
    return np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]


def with_eigenvalues(eigenvalues, rng):
    V = rotation(len(eigenvalues), rng)
    A = (V * np.asarray(eigenvalues)) @ V.T
    return (A + A.T) / 2, V


def problem_of(kind, dimension, seed):
    """A gram matrix of the given kind, and a moment of about the size that A times weights has."""
    rng = np.random.default_rng(seed)
    eigenvalues = {
        "definite": rng.uniform(0.5, 3.0, dimension),
        "semidefinite": np.where(np.arange(dimension) < dimension // 2, 0.0, 1.0),
        "ill-conditioned": np.logspace(0, -8, dimension),
        "indefinite": np.r_[-1.0, rng.normal(size=dimension - 1)],
        "negative": -rng.uniform(0.5, 3.0, dimension),
    }[kind]
    return with_eigenvalues(eigenvalues, rng)[0], rng.normal(size=dimension)


def objective(A, c, w, penalty=0.0):
    """Of one vector of weights, or of each row of many."""
    return 0.5 * ((w @ A) * w).sum(axis=-1) - w @ c + penalty


def solved_by_clarabel(A, c, weight_bound=None, penalty=lambda _: 0.0, constraints=lambda _: []):
    values, V = np.linalg.eigh(A)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * V.T
    w = cp.Variable(len(c))
    limits = list(constraints(w))
    if weight_bound is not None:
        limits.append(cp.norm(w) <= weight_bound)
    goal = 0.5 * cp.sum_squares(root @ w) - c @ w + penalty(w)
    program = cp.Problem(cp.Minimize(goal), limits)
    solve_tightly(program)
    return np.asarray(w.value), float(program.value)


def assert_near(weights, clarabels, A, value):
    """As near as two objectives that agree to 1e-9 must be: λ₁·‖w − w'‖²/2 is at most their gap.

    Where an interior-point method stops is up to its linear algebra; how far a point so good can be
    from the minimiser is not.
    """
    gap = 1e-9 * (1.0 + abs(value))
    distance = np.linalg.norm(weights - clarabels)
    assert distance <= math.sqrt(2 * gap / np.linalg.eigvalsh(A)[0])


def solve_tightly(program):
    """Ask Clarabel for 1e-12; it warns where it stops a little short, which the tests judge."""
    settings = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        program.solve(solver=cp.CLARABEL, **settings)


class Groups:
    """Ω(w) = strength·(‖first half‖ + ‖second half‖)."""

    def __init__(self, strength):
        self.strength = strength

    def value(self, weights):
        return self.strength * sum(np.linalg.norm(half) for half in np.array_split(weights, 2))

    def prox(self, point, step):
        def shrink(half):
            size = np.linalg.norm(half)
            return half * max(0.0, 1.0 - step * self.strength / size) if size else half

        return np.concatenate([shrink(half) for half in np.array_split(point, 2)])


class Nonnegative:
    def value(self, weights):
        return 0.0 if (weights >= 0).all() else math.inf

    def prox(self, point, _step):
        return np.maximum(point, 0.0)


class TestConvex:
    @pytest.mark.parametrize("weight_bound", [0.05, 0.5, 1e3])
    @pytest.mark.parametrize("dimension", [1, 2, 7, 30])
    @pytest.mark.parametrize("kind", ["definite", "semidefinite", "ill-conditioned"])
    def test_agrees_with_clarabel(self, kind, dimension, weight_bound):
        A, c = problem_of(kind, dimension, seed=dimension)
        found = minimise(A, c, weight_bound=weight_bound)
        w, value = solved_by_clarabel(A, c, weight_bound)
        assert np.linalg.norm(found.weights) <= weight_bound * (1 + 1e-12)
        assert found.objective == pytest.approx(value, rel=1e-8, abs=1e-10)
        if kind == "definite":
            assert_near(found.weights, w, A, value)

    @pytest.mark.parametrize("dimension", [1, 5, 40])
    def test_without_a_ball_it_solves_the_equations(self, dimension):
        A, c = problem_of("definite", dimension, seed=3)
        found = minimise(A, c, ridge=0.25)
        oracle = np.linalg.solve(A + 0.25 * np.eye(dimension), c)
        assert found.weights == pytest.approx(oracle, rel=1e-12, abs=1e-12)
        assert found.multiplier == 0.0
        assert found.smallest_eigenvalue == pytest.approx(np.linalg.eigvalsh(A)[0] + 0.25)
        assert found.largest_eigenvalue == pytest.approx(np.linalg.eigvalsh(A)[-1] + 0.25)
        assert positive_definite(found)

    def test_on_the_boundary_the_multiplier_is_the_slope_of_the_value(self):
        A, c = problem_of("definite", 6, seed=1)
        eta, h = 0.1, 1e-5
        up, down = (minimise(A, c, weight_bound=eta + s).objective for s in (h, -h))
        slope = -(up - down) / (2 * h)
        assert minimise(A, c, weight_bound=eta).multiplier * eta == pytest.approx(slope, rel=1e-6)

    def test_of_many_minimisers_it_takes_the_shortest(self):
        A, c = np.diag([2.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0])
        found = minimise(A, c, weight_bound=5.0)
        assert found.weights.tolist() == [1.0, 0.0, 0.0]
        assert found.multiplier == 0.0
        assert not positive_definite(found)
        found = minimise(np.diag([1.0, 0.0]), [0.0, 1e-3], weight_bound=5.0)
        assert found.weights == pytest.approx([0.0, 5.0], abs=1e-12)

    def test_features_of_very_different_scales_keep_their_digits(self):
        rng = np.random.default_rng(0)
        scales = np.array([1.0, 1e-6, 1e-2, 1e-5, 1e-4])
        X = rng.normal(size=(30, 5))
        A = X.T @ X
        plain = np.linalg.solve(A, X.T @ np.ones(30))
        found = minimise(A * np.outer(scales, scales), (X.T @ np.ones(30)) * scales)
        assert found.weights * scales == pytest.approx(plain, rel=1e-9)

    @pytest.mark.parametrize("seed", range(20))
    def test_correcting_digits_does_not_leave_the_ball(self, seed):
        rng = np.random.default_rng(seed)
        scales = np.array([1.0, 1e-6, 1e-2, 1e-5, 1e-4])
        X = rng.normal(size=(30, 5)) * scales
        A, c = X.T @ X, X.T @ rng.normal(size=30)
        bound = float(np.linalg.norm(minimise(A, c).weights)) * (1 - 1e-10)
        found = minimise(A, c, weight_bound=bound)
        assert np.linalg.norm(found.weights) <= bound * (1 + 1e-12)


class TestNonconvex:
    @pytest.mark.parametrize("seed", range(12))
    def test_on_the_circle_by_dense_angles(self, seed):
        A, c = problem_of(("indefinite", "negative")[seed % 2], 2, seed)
        found = minimise(A, c, weight_bound=1.5)
        angles = np.linspace(0, 2 * np.pi, 200_001)
        circle = 1.5 * np.array([np.cos(angles), np.sin(angles)])
        values = 0.5 * np.einsum("ik,ij,jk->k", circle, A, circle) - c @ circle
        # The value is flat at its minimum, so a step of 3e-5 between the angles shifts it by 1e-9.
        assert found.objective <= values.min() + 1e-12
        assert found.objective == pytest.approx(values.min(), abs=1e-7)

    @pytest.mark.parametrize("dimension", [1, 3, 12, 40])
    @pytest.mark.parametrize("kind", ["indefinite", "negative"])
    @pytest.mark.parametrize("weight_bound", [0.1, 1.0, 30.0])
    def test_multiplier_is_the_rightmost_eigenvalue(self, kind, dimension, weight_bound):
        # Adachi, Iwata, Nakatsukasa and Takeda (2017): (H + νI)²y = c(cᵀy)/η² as one pencil.
        A, c = problem_of(kind, dimension, seed=dimension)
        pencil = np.block([[-A, np.outer(c, c) / weight_bound**2], [np.eye(dimension), -A]])
        eigenvalues = np.linalg.eigvals(pencil)
        oracle = eigenvalues[np.abs(eigenvalues.imag) < 1e-6].real.max()
        found = minimise(A, c, weight_bound=weight_bound)
        assert found.multiplier == pytest.approx(oracle, rel=1e-6)
        assert np.linalg.norm(found.weights) == pytest.approx(weight_bound, rel=1e-13)
        assert not positive_definite(found)

    @pytest.mark.parametrize("hard", [False, True])
    @pytest.mark.parametrize("dimension", [2, 5, 9])
    def test_agrees_with_the_semidefinite_relaxation(self, dimension, hard):
        rng = np.random.default_rng(dimension)
        A, V = with_eigenvalues(np.linspace(-1.0, 2.0, dimension), rng)
        c = 0.3 * rng.normal(size=dimension)
        if hard:
            c -= V[:, 0] * (V[:, 0] @ c)
        M = cp.Variable((dimension + 1, dimension + 1), PSD=True)
        X, x = M[:dimension, :dimension], M[dimension, :dimension]
        goal = cp.Minimize(0.5 * cp.trace(A @ X) - c @ x)
        program = cp.Problem(goal, [cp.trace(X) <= 4.0, M[dimension, dimension] == 1.0])
        solve_tightly(program)
        found = minimise(A, c, weight_bound=2.0)
        assert found.objective == pytest.approx(float(program.value), rel=1e-7)

    @pytest.mark.parametrize("lowest", [1, 3])
    @pytest.mark.parametrize("seed", range(4))
    def test_hard_case(self, seed, lowest):
        rng = np.random.default_rng(seed)
        eigenvalues = np.r_[np.full(lowest, -2.0), 1.0, 1.5, 4.0]
        A, V = with_eigenvalues(eigenvalues, rng)
        rest = V[:, lowest:] @ np.array([0.3, -0.2, 0.1])
        c = (A + 2.0 * np.eye(len(A))) @ rest
        found = minimise(A, c, weight_bound=1.0)
        assert found.multiplier == pytest.approx(2.0, abs=1e-12)
        assert np.linalg.norm(found.weights) == pytest.approx(1.0, rel=1e-13)
        added = found.weights - rest
        assert V[:, lowest:].T @ added == pytest.approx(0, abs=1e-12)
        assert found.residual <= 1e-13

    def test_hard_cases_are_settled_by_a_rule_and_not_by_rounding(self):
        # The lowest eigenspace is spanned by (1, −1, 0)/√2, which LAPACK may give either sign.
        A = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
        found = minimise(A, [0.0, 0.0, 1.0], weight_bound=1.0)
        assert found.weights == pytest.approx([math.sqrt(0.48), -math.sqrt(0.48), 0.2], abs=1e-12)
        assert minimise(-np.eye(3), np.zeros(3), weight_bound=2.0).weights.tolist() == [2, 0, 0]
        for sign in (1.0, -1.0):
            found = minimise(np.diag([-1.0, 1.0]), [sign * 1e-12, 1.0], weight_bound=1.0)
            assert found.weights == pytest.approx([sign * math.sqrt(0.75), 0.5], abs=1e-9)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    @pytest.mark.parametrize("ulps", [-4, 0, 4])
    def test_nearly_equal_axes_are_a_tie(self, sign, ulps):
        basis = sign * np.array([[1.0], [-1.0 - ulps * 2.0**-52]]) / math.sqrt(2)
        assert _direction(basis) == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)])

    def test_orthogonal_to_the_lowest_space_but_not_inside_of_the_ball(self):
        # Each part alone is inside (|γᵢ|/δᵢ < η), but not both together; the last part is 0/0 at
        # the start unless that is kept to the right of the pole.
        A, c = np.diag([-1.0, 0.0, 0.0, -0.8]), np.array([0.0, 0.8, 0.8, 0.0])
        found = minimise(A, c, weight_bound=1.0)
        assert found.weights == pytest.approx([0, math.sqrt(0.5), math.sqrt(0.5), 0], abs=1e-13)
        assert found.multiplier == pytest.approx(0.8 * math.sqrt(2), rel=1e-13)

    @pytest.mark.parametrize("kind", ["definite", "semidefinite", "indefinite", "negative"])
    @settings(max_examples=30)
    @given(seed=st.integers(0, 10**6), dimension=st.integers(1, 6), bound=st.floats(0.01, 10))
    def test_no_point_of_the_ball_is_better(self, kind, seed, dimension, bound):
        A, c = problem_of(kind, dimension, seed)
        found = minimise(A, c, weight_bound=bound)
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(200, dimension))
        points *= (
            bound * rng.uniform(size=(200, 1)) ** 0.2 / np.linalg.norm(points, axis=1)[:, None]
        )
        near = found.weights + 1e-3 * bound * rng.normal(size=(200, dimension))
        near *= np.minimum(1.0, bound / np.linalg.norm(near, axis=1))[:, None]
        slack = 1e-13 * (bound**2 + bound) * dimension * 10
        assert found.objective <= objective(A, c, np.vstack([points, near])).min() + slack
        assert np.linalg.norm(found.weights) <= bound * (1 + 1e-12)


class TestDegenerate:
    @pytest.mark.parametrize("bound", [0.3, 2.0])
    def test_zero_matrix_goes_along_the_moment(self, bound):
        found = minimise(np.zeros((2, 2)), [3.0, 4.0], weight_bound=bound)
        assert found.weights == pytest.approx([0.6 * bound, 0.8 * bound], rel=1e-14)
        assert found.multiplier == pytest.approx(5.0 / bound)

    def test_zero_moments_and_repeated_eigenvalues(self):
        assert minimise(np.eye(3), np.zeros(3)).weights.tolist() == [0, 0, 0]
        assert minimise(np.zeros((3, 3)), np.zeros(3), weight_bound=1.0).weights.tolist() == [0] * 3
        assert minimise(np.diag([1.0, -1.0]), np.zeros(2), weight_bound=3.0).weights.tolist() == [
            0.0,
            3.0,
        ]
        c = np.array([1.0, -2.0, 2.0])
        assert minimise(2 * np.eye(3), c).weights == pytest.approx(c / 2)
        assert minimise(2 * np.eye(3), c, weight_bound=0.3).weights == pytest.approx(c / 10)
        assert minimise(-2 * np.eye(3), c, weight_bound=0.3).weights == pytest.approx(c / 10)

    @pytest.mark.parametrize(
        ("a", "c", "bound", "w"),
        [
            (2, 3, None, 1.5),
            (2, 3, 1, 1),
            (2, -3, 1, -1),
            (-2, -3, 1, -1),
            (-2, 0, 1, 1),
            (0, 0, 1, 0),
        ],
    )
    def test_one_dimension(self, a, c, bound, w):
        assert minimise([[a]], [c], weight_bound=bound).weights.tolist() == [w]

    @pytest.mark.parametrize("of_gram", [1e-150, 1.0, 1e150])
    @pytest.mark.parametrize("of_weights", [1e-150, 1.0, 1e150])
    @pytest.mark.parametrize("kind", ["definite", "indefinite"])
    def test_extreme_scales(self, kind, of_gram, of_weights):
        A, c = problem_of(kind, 5, seed=7)
        plain = minimise(A, c, weight_bound=0.5)
        found = minimise(A * of_gram, c * of_gram * of_weights, weight_bound=0.5 * of_weights)
        assert found.weights / of_weights == pytest.approx(plain.weights, rel=1e-12)
        assert found.multiplier / of_gram == pytest.approx(plain.multiplier, rel=1e-12)

    def test_numbers_beyond_float64_are_not_certified(self):
        A, c = problem_of("indefinite", 5, seed=7)
        with pytest.raises(NotCertifiedError, match="scale the data"):
            minimise(1e300 * A, c, weight_bound=1e150)

    def test_results_are_read_only_and_arguments_left_alone(self):
        found = minimise(np.eye(2), [1.0, 2.0])
        with pytest.raises(ValueError, match="read-only"):
            found.weights[0] = 5.0
        with pytest.raises(FrozenInstanceError):
            found.multiplier = 1.0
        A, c = problem_of("indefinite", 4, seed=0)
        copies = A.copy(), c.copy()
        minimise(A, c, ridge=1.0, weight_bound=1.0)
        assert np.array_equal(A, copies[0])
        assert np.array_equal(c, copies[1])


PENALTIES = {
    "l1": (ElasticNet(0.2), lambda w: 0.2 * cp.norm1(w), lambda _: []),
    "elastic net": (
        ElasticNet(0.1, 0.7),
        lambda w: 0.1 * cp.norm1(w) + 0.35 * cp.sum_squares(w),
        lambda _: [],
    ),
    "groups": (
        Groups(0.3),
        lambda w: 0.3 * (cp.norm(w[: (w.size + 1) // 2]) + cp.norm(w[(w.size + 1) // 2 :])),
        lambda _: [],
    ),
    "nonnegative": (Nonnegative(), lambda _: 0.0, lambda w: [w >= 0]),
}


class TestRegularised:
    @pytest.mark.parametrize("weight_bound", [None, 0.2, 50.0])
    @pytest.mark.parametrize("dimension", [2, 9, 25])
    @pytest.mark.parametrize("name", PENALTIES)
    def test_agrees_with_clarabel(self, name, dimension, weight_bound):
        regulariser, penalty, constraints = PENALTIES[name]
        A, c = problem_of("definite", dimension, seed=dimension)
        found = minimise(A, c, weight_bound=weight_bound, regulariser=regulariser)
        w, value = solved_by_clarabel(A, c, weight_bound, penalty, constraints)
        assert found.objective == pytest.approx(value, rel=1e-8, abs=1e-9)
        assert_near(found.weights, w, A, value)
        assert found.residual <= 1e-12

    @pytest.mark.parametrize("name", PENALTIES)
    @pytest.mark.parametrize("kind", ["semidefinite", "ill-conditioned"])
    def test_agrees_with_clarabel_where_the_matrix_is_flat(self, name, kind):
        regulariser, penalty, constraints = PENALTIES[name]
        A, c = problem_of(kind, 10, seed=5)
        found = minimise(A, c, weight_bound=3.0, regulariser=regulariser)
        _, value = solved_by_clarabel(A, c, 3.0, penalty, constraints)
        assert found.objective == pytest.approx(value, rel=1e-8)

    @pytest.mark.parametrize("condition", [1.0, 1e4, 1e8])
    def test_soft_thresholding_where_it_is_known(self, condition):
        a = np.geomspace(1.0, 1.0 / condition, 6)
        c = np.array([3.0, -0.4, 1.5, 0.45, -2.0, 0.1])
        found = minimise(np.diag(a), c, regulariser=ElasticNet(0.5))
        exact = np.sign(c) * np.maximum(np.abs(c) - 0.5, 0.0) / a
        assert found.weights == pytest.approx(exact, rel=1e-6)
        assert np.array_equal(found.weights == 0, exact == 0)

    def test_the_multiplier_is_that_of_the_ball(self):
        a, c, l1 = 2.0, np.array([3.0, -4.0, 0.1]), 0.5
        found = minimise(a * np.eye(3), c, weight_bound=0.5, regulariser=ElasticNet(l1))
        shrunk = np.sign(c) * np.maximum(np.abs(c) - l1, 0.0)
        assert found.weights == pytest.approx(shrunk / np.linalg.norm(shrunk) / 2, rel=1e-10)
        assert found.multiplier == pytest.approx(np.linalg.norm(shrunk) / 0.5 - a, rel=1e-10)

    def test_l2_is_a_ridge_and_a_zero_matrix_has_a_minimiser(self):
        A, c = problem_of("definite", 8, seed=4)
        found = minimise(A, c, regulariser=ElasticNet(0.0, 1.5))
        assert found.weights == pytest.approx(minimise(A, c, ridge=1.5).weights, rel=1e-10)
        found = minimise(
            np.zeros((2, 2)), [1.0, 0.3], weight_bound=2.0, regulariser=ElasticNet(0.5)
        )
        assert found.weights == pytest.approx([2.0, 0.0], abs=1e-12)
        assert found.multiplier == pytest.approx(0.25)

    @pytest.mark.parametrize("name", PENALTIES)
    @settings(max_examples=30)
    @given(seed=st.integers(0, 10**6), dimension=st.integers(2, 5), bound=st.floats(0.05, 5))
    def test_no_point_of_the_ball_is_better(self, name, seed, dimension, bound):
        regulariser = PENALTIES[name][0]
        A, c = problem_of("definite", dimension, seed)
        found = minimise(A, c, weight_bound=bound, regulariser=regulariser)
        rng = np.random.default_rng(seed)
        steps = np.repeat([1e-4, 1e-2, 1.0], 20)[:, None] * rng.normal(size=(60, dimension))
        w = np.array([regulariser.prox(one, 1e-9) for one in found.weights + bound * steps])
        sizes = np.linalg.norm(w, axis=1, keepdims=True)
        w *= np.minimum(1.0, bound / np.maximum(sizes, 1e-300))
        others = objective(A, c, w, [regulariser.value(one) for one in w])
        assert found.objective <= others.min() + 1e-12 * (1 + bound**2)

    @pytest.mark.parametrize("name", PENALTIES)
    @pytest.mark.parametrize("bounded", [False, True])
    def test_ill_conditioned_problems_of_two_hundred_weights_take_few_steps(self, name, bounded):
        rng = np.random.default_rng(11)
        A, _ = with_eigenvalues(np.logspace(0, -8, 200), rng)
        c = A @ rng.normal(size=200)
        scale = 0.1 * float(np.abs(c).max())
        regulariser = {
            "l1": ElasticNet(scale),
            "elastic net": ElasticNet(scale, 1e-6),
            "groups": Groups(scale),
        }
        bound, penalty = 2.0 if bounded else None, regulariser.get(name, Nonnegative())
        found = minimise(A, c, weight_bound=bound, regulariser=penalty)
        assert found.residual <= 1e-11
        # The ball makes it easy, once the penalty has adapted to the multiplier.
        assert found.iterations < (150 if bounded else 1200)

    @pytest.mark.parametrize("condition", [1e6, 1e8, 1e9])
    def test_nonnegative_weights_by_trying_every_support(self, condition):
        # Small, but hard for a splitting: the slow direction runs into one kink after another.
        rng, steps = np.random.default_rng(int(math.log10(condition))), []
        for _ in range(40):
            dimension = int(rng.integers(2, 6))
            exponents = np.r_[0.0, 1.0, rng.uniform(size=dimension - 2)]
            A, _ = with_eigenvalues(condition**-exponents, rng)
            c = A @ rng.normal(size=dimension)
            found = minimise(A, c, regulariser=Nonnegative())
            supports = np.array(list(product((False, True), repeat=dimension)))
            systems = np.where(supports[:, :, None] & supports[:, None, :], A, np.eye(dimension))
            candidates = np.linalg.solve(systems, np.where(supports, c, 0.0)[..., None])[..., 0]
            best = objective(A, c, candidates[(candidates >= 0).all(axis=1)]).min()
            assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-15)
            steps.append(found.iterations)
        # Plain steps would take √condition·ln(1e13), a million at 1e9. One problem in sixty may be
        # a hard one, and which one is up to the rounding of the machine; most take a few dozen.
        assert np.median(steps) < 150
        assert max(steps) < solver.STEPS_ALLOWED

    @pytest.mark.parametrize("scale", [1e-100, 1e100])
    def test_scales(self, scale):
        A, c = problem_of("definite", 6, seed=9)
        plain = minimise(A, c, weight_bound=0.3, regulariser=ElasticNet(0.1))
        found = minimise(
            A * scale, c * scale, weight_bound=0.3, regulariser=ElasticNet(0.1 * scale)
        )
        assert found.weights == pytest.approx(plain.weights, rel=1e-11)


class TestRefusals:
    def test_an_indefinite_matrix_needs_a_ball_or_a_finite_ridge(self):
        A = np.diag([3.0, -1.5])
        with pytest.raises(InfeasibleError, match=r"is -1.5 at ridge=0,.* ridge greater than 1.5"):
            minimise(A, [1.0, 1.0])
        with pytest.raises(InfeasibleError, match=r"is -1 at ridge=0.5,.* ridge greater than 1.5"):
            minimise(A, [1.0, 1.0], ridge=0.5)
        assert positive_definite(minimise(A, [1.0, 1.0], ridge=1.6))
        assert minimise(A, [1.0, 1.0], weight_bound=1.0).multiplier > 1.5
        with pytest.raises(InvalidValueError, match="ridge=nan"):
            minimise(np.eye(2), [1.0, 1.0], ridge=np.nan)

    @pytest.mark.parametrize(
        "A", [np.ones((3, 3)), np.diag([1.0, 1.0, 0.0]), np.diag([1, 1, 1e-17])]
    )
    def test_a_singular_matrix_needs_a_ball_too(self, A):
        with pytest.raises(InfeasibleError, match="or give a weight_bound"):
            minimise(A, [1.0, 1.0, 1.0])
        assert not positive_definite(minimise(A, [1.0, 1.0, 1.0], weight_bound=1.0))

    def test_what_cannot_be_regularised_is_refused(self):
        with pytest.raises(InfeasibleError, match=r"convex.* ridge greater than 1.5"):
            minimise(
                np.diag([3.0, -1.5]), [1.0, 1.0], weight_bound=1.0, regulariser=ElasticNet(1.0)
            )

        class Shifted(Nonnegative):
            def prox(self, point, _step):
                return np.maximum(point, 4.0)

        with pytest.raises(InfeasibleError, match="Shifted is infinite on the whole ball"):
            minimise(np.eye(2), [1.0, 1.0], weight_bound=1.0, regulariser=Shifted())
        with pytest.raises(InvalidValueError, match=r"regulariser=0.5 to have value"):
            minimise(np.eye(2), [1.0, 1.0], regulariser=0.5)

    @pytest.mark.parametrize(
        ("gram", "moment", "named"),
        [
            ([[1.0, 2.0], [0.0, 1.0]], [1.0, 1.0], "gram to be symmetric"),
            ([[np.nan, 0.0], [0.0, 1.0]], [1.0, 1.0], "gram to be finite"),
            (np.eye(2), [np.nan, 1.0], "moment to be finite"),
            (np.eye(2), [1.0, 1.0, 1.0], r"moment.shape=\(3,\)"),
            (np.ones((2, 3)), [1.0, 1.0], r"gram.shape=\(2, 3\)"),
            (np.ones(2), [1.0, 1.0], r"gram.shape=\(2,\)"),
        ],
    )
    def test_bad_arrays_are_named(self, gram, moment, named):
        with pytest.raises(InvalidValueError, match=named):
            minimise(gram, moment, weight_bound=1.0)

    @pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan, "1"])
    def test_the_weight_bound_is_positive(self, bound):
        with pytest.raises(InvalidValueError, match="weight_bound="):
            minimise(np.eye(2), [1.0, 1.0], weight_bound=bound)


class TestCertificate:
    A = np.diag([2.0, 1.0, -1.0])
    c = np.array([1.0, 1.0, 0.5])

    def parts(self, bound=1.0, regulariser=None, ridge=0.0):
        H = self.A + ridge * np.eye(3)
        found = minimise(self.A, self.c, ridge=ridge, weight_bound=bound, regulariser=regulariser)
        return Program(H, self.c, bound, regulariser), Spectrum.of(H), found

    @pytest.mark.parametrize(
        "regulariser", [None, ElasticNet(0.1), ElasticNet(0.1, 1.0), Nonnegative()]
    )
    @pytest.mark.parametrize("bound", [0.5, 100.0])
    @pytest.mark.parametrize("error", [1e-8, 1e-5, 1e-1])
    def test_refuses_a_perturbed_minimiser(self, regulariser, bound, error):
        problem, spectrum, found = self.parts(bound, regulariser, ridge=1.5)
        assert certify(problem, spectrum, found.weights, found.multiplier) <= 1e-12
        for direction in np.vstack([np.eye(3), -np.eye(3)]):
            wrong = found.weights + error * direction
            wrong *= min(1.0, bound / np.linalg.norm(wrong))
            if np.linalg.norm(wrong - found.weights) > 0.1 * error:
                with pytest.raises(NotCertifiedError, match="exact minimiser"):
                    certify(problem, spectrum, wrong, found.multiplier)

    @pytest.mark.parametrize("factor", [0.0, 1 - 1e-8, 1 + 1e-8, 2.0, -1.0])
    def test_refuses_a_wrong_multiplier(self, factor):
        problem, spectrum, found = self.parts()
        with pytest.raises(NotCertifiedError):
            certify(problem, spectrum, found.weights, factor * found.multiplier)

    def test_refuses_what_is_another_minimum_or_none(self):
        # At w = −1 the slope of −½w² − ½w points out of [−1, 1]: a minimum, but w = 1 is lower.
        problem = Program(np.array([[-1.0]]), np.array([0.5]), 1.0)
        spectrum = Spectrum.of(problem.hessian)
        assert certify(problem, spectrum, np.array([1.0]), 1.5) == 0.0
        with pytest.raises(NotCertifiedError, match=r"curvature=-0.5"):
            certify(problem, spectrum, np.array([-1.0]), 0.5)
        problem, spectrum, _ = self.parts(bound=10.0)
        saddle = np.linalg.solve(self.A, self.c)
        with pytest.raises(NotCertifiedError, match="curvature=-1"):
            certify(problem, spectrum, saddle, 0.0)

    def test_refuses_weights_and_multipliers_that_do_not_fit_the_ball(self):
        problem = Program(np.eye(2), np.array([2.0, 0.0]), 1.0)
        with pytest.raises(NotCertifiedError, match="norm=2"):
            certify(problem, Spectrum.of(problem.hessian), np.array([2.0, 0.0]), 0.0)
        # (H + νI)w = c holds, but it is the answer to another ridge.
        problem = Program(np.eye(2), np.array([1.0, 0.0]), 3.0)
        with pytest.raises(NotCertifiedError):
            certify(problem, Spectrum.of(problem.hessian), np.array([0.5, 0.0]), 1.0)
        # (H + νI)w = c and ‖w‖ = η, but the minimum is inside, at (1, 0).
        problem = Program(np.eye(2), np.array([1.0, 0.0]), 2.0)
        with pytest.raises(NotCertifiedError, match=r"multiplier=-0.5"):
            certify(problem, Spectrum.of(problem.hessian), np.array([2.0, 0.0]), -0.5)
        # Here ‖c‖/‖H‖ is 10¹², so that a step of 1/‖H‖ could not tell two points of the ball apart.
        problem = Program(1e-12 * np.eye(2), np.array([1.0, 1.0]), 1.0, ElasticNet(0.1))
        with pytest.raises(NotCertifiedError):
            certify(problem, Spectrum.of(problem.hessian), np.array([1.0, 0.0]), 1.0)

    @pytest.mark.parametrize("regulariser", [None, ElasticNet(0.1)])
    def test_refuses_what_is_not_a_number(self, regulariser):
        problem, spectrum, _ = self.parts(1.0, regulariser, ridge=2.0)
        with pytest.raises(NotCertifiedError):
            certify(problem, spectrum, np.full(3, np.nan), 0.0)
        with pytest.raises(NotCertifiedError):
            certify(problem, spectrum, np.zeros(3), np.nan)

    def test_what_stops_early_or_is_no_number_is_refused(self, monkeypatch):
        A, c = problem_of("ill-conditioned", 20, seed=0)
        monkeypatch.setattr(solver, "STEPS_ALLOWED", 5)
        with pytest.raises(NotCertifiedError, match="exact minimiser"):
            minimise(A, c, weight_bound=1.0, regulariser=ElasticNet(0.1))

        class Broken(Nonnegative):
            def prox(self, point, _step):
                return point * np.nan

        with pytest.raises(NotCertifiedError):
            minimise(np.eye(2), [1.0, 1.0], weight_bound=1.0, regulariser=Broken())

    @pytest.mark.parametrize("curvature", [0.0, 1.0])
    def test_a_problem_without_a_minimiser_is_refused(self, curvature):
        # Along the second axis nothing holds the weights back: |c₂| is more than the strength.
        with pytest.raises(NotCertifiedError):
            minimise(np.diag([curvature, 0.0]), [1.0, 1.0], regulariser=ElasticNet(0.5))

    @pytest.mark.parametrize("distance", [1e3, 1e9, 1e15, 1e21])
    def test_no_distance_hides_that_there_is_no_minimiser(self, distance):
        problem = Program(np.diag([1.0, 0.0]), np.ones(2), np.inf, ElasticNet(0.5))
        with pytest.raises(NotCertifiedError):
            certify(problem, Spectrum.of(problem.hessian), np.array([0.5, distance]), 0.0)

    def test_a_singular_matrix_may_have_a_minimiser_all_the_same(self):
        found = minimise(np.diag([1.0, 0.0]), [1.0, 0.3], regulariser=ElasticNet(0.5))
        assert found.weights == pytest.approx([0.5, 0.0], abs=1e-12)
        held = minimise(np.diag([1.0, 0.0]), [1.0, 1.0], regulariser=ElasticNet(0.5, 0.25))
        assert held.weights == pytest.approx([0.4, 2.0], rel=1e-11)

    @pytest.mark.parametrize("kind", ["definite", "indefinite", "negative", "ill-conditioned"])
    @pytest.mark.parametrize("dimension", [1, 14, 150])
    def test_what_minimise_returns_is_within_rounding(self, kind, dimension):
        A, c = problem_of(kind, dimension, seed=1)
        assert minimise(A, c, weight_bound=1.0).residual <= 1e-14 < RESIDUAL_ALLOWED
