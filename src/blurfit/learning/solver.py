"""The exact minimiser of ½wᵀ(A + ridge·I)w − cᵀw + l1·‖w‖₁ over ‖w‖ ≤ η, with its certificate.

Whatever finds the weights here, `certify` looks at the answer alone, with the original matrix, and
rejects it unless it is optimal to within rounding. An answer is either certified or not returned.
"""

from collections import deque
from dataclasses import dataclass
from itertools import cycle
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.linalg.blas import dnrm2

from blurfit.data import FloatArray, fixed
from blurfit.errors import (
    InfeasibleError,
    NotCertifiedError,
    finite,
    nonnegative,
    positive,
)
from blurfit.learning.sums import conforming, symmetrised

EPSILON = float(np.finfo(np.float64).eps)

# The splitting stops at RESIDUAL_SOUGHT or, where rounding forbids that, after twice the steps that
# brought it to RESIDUAL_ENOUGH. Those are tens as a rule and rarely thousands: the limit is for
# problems that have no minimiser.
RESIDUAL_SOUGHT = 1e-13
RESIDUAL_ENOUGH = 1e-11
STEPS_ALLOWED = 20_000
STEPS_REMEMBERED = 25
FIRST_REVIEW = 30
PENALTY_FACTORS = (1.0, 0.03, 30.0, 0.001, 1000.0)
RESIDUAL_ALLOWED = 1e-10
LENGTH_ALLOWED = 1.0 + 1e-12

# Corrections of an interior solution; three reach the last digit wherever the first helps.
REFINEMENTS = 3


@dataclass(frozen=True, eq=False)
class Program:
    """½wᵀHw − cᵀw + l1·‖w‖₁ over ‖w‖ ≤ η, with H = A + ridge·I; η is infinite where no ball is."""

    hessian: FloatArray
    moment: FloatArray
    weight_bound: float
    l1: float = 0.0

    def gradient(self, weights: FloatArray) -> FloatArray:
        """Return Hw − c, of the quadratic part."""
        return np.asarray(self.hessian @ weights - self.moment)

    def objective(self, weights: FloatArray) -> float:
        """Return ½wᵀ(Hw − c) − ½cᵀw + l1·‖w‖₁."""
        quadratic = 0.5 * float(weights @ self.gradient(weights) - self.moment @ weights)
        return quadratic + self.l1 * float(np.abs(weights).sum())

    def prox(self, point: FloatArray, step: float) -> tuple[FloatArray, float]:
        """Find argmin_{‖w‖≤η} t·l1·‖w‖₁ + ½‖w − v‖², and the multiplier ν of the ball.

        Without a ball, v is shrunk towards 0 by t·l1. With one, add ½ν(‖w‖² − η²) and complete the
        square: the minimiser is that for θv and θt, θ = 1/(1 + ν). A norm is positively
        homogeneous, so this is θ times the one without a ball, and θ takes it to the sphere.
        """
        w = np.sign(point) * np.maximum(np.abs(point) - step * self.l1, 0.0)
        norm = length(w)
        if not norm > self.weight_bound:
            return w, 0.0
        return w * (self.weight_bound / norm), norm / self.weight_bound - 1.0


@dataclass(frozen=True, eq=False)
class Spectrum:
    """H = V·diag(λ)·Vᵀ with λ ascending, which is exact for a matrix within `rounding` of H."""

    values: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, symmetric: FloatArray) -> Self:
        """Decompose by divide and conquer ("evd"), LAPACK's fastest way to all eigenvectors.

        The transpose of a symmetric matrix is itself, in the order of memory that LAPACK reads.
        """
        return cls(*eigh(symmetric.T, driver="evd", check_finite=False))

    @property
    def smallest(self) -> float:
        """λ₁."""
        return float(self.values[0])

    @property
    def norm(self) -> float:
        """‖H‖ = max|λᵢ|."""
        return float(max(-self.values[0], self.values[-1]))

    @property
    def rounding(self) -> float:
        """d·2⁻⁵²·‖H‖: eigenvalues nearer than this cannot be told apart."""
        return len(self.values) * EPSILON * self.norm


@dataclass(frozen=True, eq=False)
class Minimiser:
    """The certified weights, and what they were certified by.

    `multiplier` is ν of the ball (0 inside it), the eigenvalues are those of A + ridge·I, and
    `residual` is as `certify` defines it. Of input perturbation publish nothing but the weights.
    """

    weights: FloatArray
    objective: float
    multiplier: float
    smallest_eigenvalue: float
    largest_eigenvalue: float
    residual: float
    iterations: int


def minimise(
    gram: npt.ArrayLike,
    moment: npt.ArrayLike,
    *,
    ridge: float = 0.0,
    weight_bound: float | None = None,
    l1: float = 0.0,
) -> Minimiser:
    """Find argmin_{‖w‖≤η} ½wᵀ(A + ridge·I)w − cᵀw + l1·‖w‖₁, certified.

    Without l1 the matrix may be indefinite as long as there is a ball (the trust-region problem);
    with it the matrix has to be positive semidefinite, or else the problem is not convex. One
    symmetric eigendecomposition decides which, and does most of the work.

    >>> minimise([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0]).weights
    array([1., 1.])
    >>> minimise([[2.0, 0.0], [0.0, -1.0]], [0.0, 3.0], weight_bound=2.0).weights
    array([0., 2.])
    """
    finite(ridge=ridge)
    if weight_bound is not None:
        positive(weight_bound=weight_bound)
    nonnegative(l1=l1)
    H = symmetrised(gram=gram)
    c = conforming(H, moment=moment)
    H[np.diag_indices_from(H)] += ridge
    eta = np.inf if weight_bound is None else float(weight_bound)
    problem = Program(H, c, eta, l1)
    # What overflows does not stay silent: infinities and NaNs are never certified.
    with np.errstate(over="ignore", invalid="ignore"):
        spectrum = Spectrum.of(H)
        _refuse_unless_solvable(problem, spectrum, ridge)
        w, nu, steps = (splitting if l1 > 0 else _trust_region)(problem, spectrum)
        residual = certify(problem, spectrum, w, nu)
        objective = problem.objective(w)
    lowest, highest = spectrum.smallest, float(spectrum.values[-1])
    return Minimiser(fixed(w), objective, nu, lowest, highest, residual, iterations=steps)


def certify(problem: Program, spectrum: Spectrum, weights: FloatArray, multiplier: float) -> float:
    """Return the relative residual of w; refuse a w that is not a global minimiser. O(d²).

    Without l1 (Moré and Sorensen, 1983), w is a global minimiser, convex or not, if and only if

        (H + νI)w = c,   ‖w‖ ≤ η,   ν ≥ 0,   ν(η − ‖w‖) = 0,   λ₁ + ν ≥ 0    for some ν.

    With l1, which needs λ₁ ≥ 0, if and only if w = prox(w − t(Hw − c)), the prox being that of t in
    the ball. The gap over t has the units of c, and is at most ‖e‖ for a w that is exact for
    c + e, because prox does not expand. t is the lesser of 1/‖H‖ and η/‖c‖: a longer step would
    call any two points of a small ball near.

    The residual is the gap in the equation, less what rounding explains (d·2⁻⁵²·‖H‖‖w‖), relative
    to ‖Hw‖ + ν‖w‖ + ‖c‖, the size of what it adds up: 0 if w cannot be told from exact. Where
    neither a ball nor curvature holds w, it may be running off to infinity, where rounding hides
    every gap; there rounding counts against w. The inequalities have to hold to within rounding.
    """
    eta, nu = problem.weight_bound, multiplier
    norm, push = length(weights), length(problem.moment)
    gradient = problem.gradient(weights)
    if problem.l1 == 0:
        slack = nu * max(eta - norm, 0.0) if nu else 0.0
        gap, curvature = max(length(gradient + nu * weights), slack), spectrum.smallest + nu
        rounding = spectrum.rounding * norm
    else:
        t = 1.0 / (max(spectrum.norm, push / eta) or 1.0)
        nearest, _ = problem.prox(weights - t * gradient, t)
        gap, curvature = length(weights - nearest) / t, spectrum.smallest
        rounding = len(weights) * EPSILON * norm / t
        if np.isinf(eta) and spectrum.smallest <= spectrum.rounding:
            gap, rounding = gap + rounding, 0.0
    addends = length(gradient + problem.moment) + nu * norm + push
    residual = relative(gap, of=addends, rounding=rounding)
    inside, convex = norm <= eta * LENGTH_ALLOWED, curvature >= -spectrum.rounding
    if not (residual <= RESIDUAL_ALLOWED and inside and convex and nu >= 0.0):
        raise NotCertifiedError(
            "The weights have norm={norm:.6g} (weight_bound={eta:.6g}), multiplier={nu:.6g}, "
            "curvature={curvature:.3g} and residual={residual:.3g} (at most {residual_allowed}), "
            "so they are not shown to be the exact minimiser, which the privacy proof needs. Raise "
            "the ridge or lower the weight_bound, or scale the data if its numbers are extreme.",
            norm=norm,
            eta=eta,
            nu=nu,
            curvature=curvature,
            residual=residual,
            residual_allowed=RESIDUAL_ALLOWED,
        )
    return residual


def splitting(problem: Program, spectrum: Spectrum) -> tuple[FloatArray, float, int]:
    """Find the weights for H ⪰ 0 and l1 > 0, the ball's ν, and the steps taken.

    Douglas–Rachford splitting, with the spectrum to solve with H at any ρ:

        x = (H + ρI)⁻¹(c + ρs),   z = prox at 2x − s in the ball, of 1/ρ,   s ← s + z − x.

    The first says Hx − c = ρ(s − x), the second ρ(2x − s − z) ∈ l1·∂‖z‖₁ + νz. Added up, z is exact
    for c + e with e = (H − ρI)(z − x), so ‖e‖ is the gap. Plain steps converge from anywhere, but
    slowly where H is ill conditioned; Anderson's extrapolation needs a hundredth of them at
    condition number 10⁸. A leap that more than doubles ‖z − x‖ is taken back for the plain step.
    The ρ that is best for a quadratic, √((λ₁ + ν)(λd + ν)), follows ν as it becomes known; as no ρ
    suits every problem, multiples of it take turns, each longer than the last.
    """
    hessian, moment, V = problem.hessian, problem.moment, spectrum.vectors
    eigenvalues = np.maximum(spectrum.values, 0.0)
    greatest, push = float(eigenvalues[-1]), length(moment)

    def penalty(nu: float) -> float:
        least = max(float(eigenvalues[0]), 1e-6 * greatest)
        return float(np.sqrt(least + nu) * np.sqrt(greatest + nu)) or 1.0

    rho = penalty(max(push / problem.weight_bound - greatest, 0.0))
    review, factors = FIRST_REVIEW, cycle(PENALTY_FACTORS)
    s = plain = weights = np.zeros_like(moment)
    multiplier, best, last, leapt = 0.0, np.inf, np.inf, False
    past: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=STEPS_REMEMBERED)
    step, limit = 0, STEPS_ALLOWED
    while best > RESIDUAL_SOUGHT and step < limit:
        step += 1
        x = V @ ((V.T @ (moment + rho * s)) / (eigenvalues + rho))
        z, price = problem.prox(2.0 * x - s, 1.0 / rho)
        g = z - x
        size = length(g)
        if leapt and not size <= 2.0 * last:
            s, leapt = plain, False
            past.clear()
            continue
        if not np.isfinite(size):
            break
        gap, addends = length(hessian @ g - rho * g), length(moment + rho * (s - x)) + push
        if relative(gap, of=addends) < best:
            best, weights, multiplier = relative(gap, of=addends), z, rho * price
        rounding = len(g) * EPSILON * greatest * length(z)
        if relative(gap, of=addends, rounding=rounding) <= RESIDUAL_ENOUGH:
            limit = min(limit, 2 * step + 100)
        plain, last = s + g, size
        past.append((s, g))
        s, leapt = _extrapolate(past), len(past) > 1
        if step >= review:
            review += review // 2
            better = next(factors) * penalty(rho * price)
            if not 1 / 3 < better / rho < 3:
                # The same x and dual variable ρ(s − x), in the units of the new ρ.
                s, rho, leapt = x + (plain - g - x) * (rho / better), better, False
                past.clear()
    return weights, multiplier, step


def relative(gap: float, *, of: float, rounding: float = 0.0) -> float:
    """Return what rounding does not explain of a gap, relative to the size of what was added up.

    Not relative to ‖H‖‖w‖, which would forgive any gap to weights that run off to infinity.
    """
    return 0.0 if gap <= rounding < np.inf else (gap - rounding) / (of or 1.0)


def length(vector: FloatArray) -> float:
    """Return ‖v‖ by BLAS, which scales as it sums: squares neither overflow nor vanish."""
    return float(dnrm2(vector)) if vector.size else 0.0


def _extrapolate(past: deque[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Take Anderson's step (type II) for s ← s + g(s), from the last few pairs of s and g.

    Of all combinations of the points, with weights that sum to 1, take the one whose g, combined
    in the same way, is shortest, and step by that g.
    """
    s, g = past[-1]
    points, steps = (np.diff(np.array(part), axis=0).T for part in zip(*past, strict=True))
    mixture = np.linalg.lstsq(steps, g, rcond=1e-12)[0]
    return np.asarray(s + g - (points + steps) @ mixture)


def _trust_region(problem: Program, spectrum: Spectrum) -> tuple[FloatArray, float, int]:
    """Find the weights (H + νI)⁻¹c, with ν ≥ 0 the least for which H + νI ⪰ 0 and ‖w‖ ≤ η.

    In the eigenbasis, with γ = Vᵀc, δᵢ = λᵢ − λ₁ and t = λ₁ + ν, this is wᵢ = γᵢ/(δᵢ + t); in t
    instead of ν nothing cancels near the pole t = 0. At the root t ≥ |γᵢ|/η − δᵢ for each i, so
    start from the greatest of these and λ₁ (where ν = 0): left of the root, but with ‖w‖ ≤ √d·η.
    As 1/‖w(t)‖ is concave, Newton's steps on 1/‖w‖ − 1/η rise to the root and never pass it, so
    they need no bracket.

    The hard case: c has no part in the lowest eigenspace, and even at t = 0 the rest is inside of
    the ball. Then a vector of that space may be added at no cost. If λ₁ < 0, it has to reach the
    sphere; if λ₁ = 0, the shortest minimiser is taken, which adds none.
    """
    V, eta, lowest = spectrum.vectors, problem.weight_bound, spectrum.smallest
    gamma, delta = V.T @ problem.moment, spectrum.values - lowest
    pole = delta <= spectrum.rounding
    noise = len(gamma) * EPSILON * length(gamma)
    if lowest <= spectrum.rounding and length(gamma[pole]) <= noise:
        # Leave the lowest part out: its sign, if it has one, came from rounding.
        space, V, gamma, delta = V[:, pole], V[:, ~pole], gamma[~pole], delta[~pole]
        w = gamma / delta
        rest = length(w)
        if rest <= eta and lowest >= -spectrum.rounding:
            return V @ w, 0.0, 0
        if rest <= eta:
            reach = eta * np.sqrt((1.0 - rest / eta) * (1.0 + rest / eta))
            return V @ w + reach * _direction(space), -lowest, 0
    t = float(max(0.0, lowest, np.max(np.abs(gamma) / eta - delta)))
    w = gamma / (delta + t)
    steps = 0
    while (norm := length(w)) > eta:
        unit = w / norm
        further = t + (norm / eta - 1.0) / float(unit @ (unit / (delta + t)))
        if not further > t:
            w *= eta / norm
            break
        t, steps = further, steps + 1
        w = gamma / (delta + t)
    if t > lowest:
        return V @ w, t - lowest, steps
    return _refined(problem, spectrum, V @ w), 0.0, steps


def _refined(problem: Program, spectrum: Spectrum, weights: FloatArray) -> FloatArray:
    """Repeat w ← w − H⁻¹(Hw − c) in the interior, for features of very different scales.

    The eigenvectors mix such features, so that the small ones drown in the rounding of the large
    ones. Hw − c does not mix them: from it, a few corrections recover the digits.
    """
    V, correction = spectrum.vectors, weights
    for _ in range(REFINEMENTS):
        last = length(correction)
        correction = V @ ((V.T @ problem.gradient(weights)) / spectrum.values)
        refined = weights - correction
        if length(correction) > 0.5 * last or length(refined) > problem.weight_bound:
            break
        weights = refined
    return weights


def _direction(basis: FloatArray) -> FloatArray:
    """Return the unit vector of span(basis) nearest to a coordinate axis, the first if several are.

    It belongs to the space and not to the basis, which LAPACK may choose otherwise elsewhere.
    """
    nearness = np.einsum("ij,ij->i", basis, basis)
    axis = int(np.argmax(nearness >= (1.0 - 1e-6) * nearness.max()))
    direction: FloatArray = basis @ basis[axis]
    return direction / length(direction)


def _refuse_unless_solvable(problem: Program, spectrum: Spectrum, ridge: float) -> None:
    lowest, rounding = spectrum.smallest, spectrum.rounding
    found = f"The smallest eigenvalue of gram + ridge·I is {lowest:.6g} at ridge={ridge:.6g}"
    enough = f"choose a ridge greater than {ridge - lowest + rounding:.6g}"
    if problem.l1 > 0 and lowest < -rounding:
        raise InfeasibleError(
            "{number}, but with l1 the problem must be convex: {enough}, or leave l1 out and give "
            "a weight_bound.",
            number=found,
            enough=enough,
        )
    if problem.l1 == 0 and np.isinf(problem.weight_bound) and lowest <= rounding:
        raise InfeasibleError(
            "{number}, which without a ball leaves no single minimiser: {enough}, or give a "
            "weight_bound.",
            number=found,
            enough=enough,
        )
