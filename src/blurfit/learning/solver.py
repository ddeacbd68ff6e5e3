"""The exact minimiser of ½wᵀ(A + ridge·I)w − cᵀw + Ω(w) over ‖w‖ ≤ η, with its certificate.

The proof of privacy is about the exact minimiser, so a solver that stops early voids it. Whatever
finds the weights here, `certify` looks at the answer alone, with the original matrix, and refuses
it unless it is optimal to within rounding. An answer is either certified or not returned.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from blurfit import validate
from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.learning.regularisers import (
    EPSILON,
    Regulariser,
    length,
    prox_in_ball,
    relative,
    splitting,
)
from blurfit.learning.statistics import conforming, symmetrised

RESIDUAL_ALLOWED = 1e-10
LENGTH_ALLOWED = 1.0 + 1e-12

# Corrections of an interior solution; three reach the last digit wherever the first helps.
REFINEMENTS = 3


@dataclass(frozen=True, eq=False)
class Program:
    """½wᵀHw − cᵀw + Ω(w) over ‖w‖ ≤ η, with H = A + ridge·I; η is infinite where no ball is."""

    hessian: FloatArray
    moment: FloatArray
    weight_bound: float
    regulariser: Regulariser | None = None

    def gradient(self, weights: FloatArray) -> FloatArray:
        """Hw − c, of the quadratic part."""
        gradient: FloatArray = self.hessian @ weights - self.moment
        return gradient

    def objective(self, weights: FloatArray) -> float:
        """½wᵀ(Hw − c) − ½cᵀw + Ω(w)."""
        quadratic = 0.5 * float(weights @ self.gradient(weights) - self.moment @ weights)
        return quadratic + (self.regulariser.value(weights) if self.regulariser else 0.0)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """H = V·diag(λ)·Vᵀ with λ ascending, which is exact for a matrix within `rounding` of H."""

    values: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, symmetric: FloatArray) -> Self:
        """By divide and conquer ("evd"), LAPACK's fastest way to all eigenvectors.

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
    `residual` is as `certify` defines it. Only the weights are covered by the theorem of the
    `input` mechanism: publish nothing else of this there.
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
    regulariser: Regulariser | None = None,
) -> Minimiser:
    """argmin_{‖w‖≤η} ½wᵀ(A + ridge·I)w − cᵀw + Ω(w), certified.

    Without Ω the matrix may be indefinite as long as there is a ball (the trust-region problem);
    with Ω it has to be positive semidefinite, or else the problem is not convex. One symmetric
    eigendecomposition decides which, and does most of the work.

    >>> minimise([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0]).weights
    array([1., 1.])
    >>> minimise([[2.0, 0.0], [0.0, -1.0]], [0.0, 3.0], weight_bound=2.0).weights
    array([0., 2.])
    """
    validate.finite(ridge=ridge)
    if weight_bound is not None:
        validate.positive(weight_bound=weight_bound)
    if not (regulariser is None or isinstance(regulariser, Regulariser)):
        raise InvalidValueError(
            f"Expected regulariser={regulariser!r} to have value(weights) and prox(point, step)."
        )
    H = symmetrised(gram=gram)
    c = conforming(H, moment=moment)
    H[np.diag_indices_from(H)] += ridge
    eta = np.inf if weight_bound is None else float(weight_bound)
    problem = Program(H, c, eta, regulariser)
    # What overflows does not stay silent: infinities and NaNs are never certified.
    with np.errstate(over="ignore", invalid="ignore"):
        spectrum = Spectrum.of(H)
        _refuse_unless_solvable(problem, spectrum, ridge)
        if regulariser is None:
            w, nu, steps = _trust_region(problem, spectrum)
        else:
            eigen = spectrum.values, spectrum.vectors
            w, nu, steps = splitting(H, c, regulariser, eigen=eigen, radius=eta)
        residual = certify(problem, spectrum, w, nu)
        objective = problem.objective(w)
    lowest, highest = spectrum.smallest, float(spectrum.values[-1])
    return Minimiser(fixed(w), objective, nu, lowest, highest, residual, iterations=steps)


def certify(problem: Program, spectrum: Spectrum, weights: FloatArray, multiplier: float) -> float:
    """The relative residual of w; refuses a w that is not a global minimiser. O(d²).

    Without Ω (Moré and Sorensen, 1983), w is a global minimiser, convex or not, if and only if

        (H + νI)w = c,   ‖w‖ ≤ η,   ν ≥ 0,   ν(η − ‖w‖) = 0,   λ₁ + ν ≥ 0    for some ν.

    With Ω, which needs λ₁ ≥ 0, if and only if w = prox(w − t(Hw − c)), the prox being that of t·Ω
    in the ball. The gap over t has the units of c, and is at most ‖e‖ for a w that is exact for
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
    if problem.regulariser is None:
        slack = nu * max(eta - norm, 0.0) if nu else 0.0
        gap, curvature = max(length(gradient + nu * weights), slack), spectrum.smallest + nu
        rounding = spectrum.rounding * norm
    else:
        t = 1.0 / (max(spectrum.norm, push / eta) or 1.0)
        nearest, _ = prox_in_ball(problem.regulariser, weights - t * gradient, t, eta)
        gap, curvature = length(weights - nearest) / t, spectrum.smallest
        rounding = len(weights) * EPSILON * norm / t
        if np.isinf(eta) and spectrum.smallest <= spectrum.rounding:
            gap, rounding = gap + rounding, 0.0
    addends = length(gradient + problem.moment) + nu * norm + push
    residual = relative(gap, of=addends, rounding=rounding)
    inside, convex = norm <= eta * LENGTH_ALLOWED, curvature >= -spectrum.rounding
    if not (residual <= RESIDUAL_ALLOWED and inside and convex and nu >= 0.0):
        raise NotCertifiedError(
            f"The weights have norm={norm:.6g} (weight_bound={eta:.6g}), multiplier={nu:.6g}, "
            f"curvature={curvature:.3g} and residual={residual:.3g} (at most {RESIDUAL_ALLOWED}), "
            "so they are not shown to be the exact minimiser, which the privacy proof needs. Raise "
            "the ridge or lower the weight_bound, or scale the data if its numbers are extreme."
        )
    return residual


def _trust_region(problem: Program, spectrum: Spectrum) -> tuple[FloatArray, float, int]:
    """The weights (H + νI)⁻¹c, with ν ≥ 0 the least for which H + νI ⪰ 0 and ‖w‖ ≤ η.

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
    """The unit vector of span(basis) nearest to a coordinate axis; the first axis, if several are.

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
    if problem.regulariser is not None and lowest < -rounding:
        raise InfeasibleError(
            f"{found}, but with a regulariser the problem must be convex: {enough}, or leave the "
            "regulariser out and give a weight_bound."
        )
    if problem.regulariser is None and np.isinf(problem.weight_bound) and lowest <= rounding:
        raise InfeasibleError(
            f"{found}, which without a ball leaves no single minimiser: {enough}, or give a "
            "weight_bound."
        )
