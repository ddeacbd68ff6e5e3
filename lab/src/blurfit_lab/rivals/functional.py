"""The functional mechanism: add Laplace noise to the objective's coefficients, then minimise.

Zhang, Zhang, Xiao, Yang and Winslett 2012, Algorithm 1 and 2: the objective is a polynomial in w,
and one person changes the vector of its coefficients by at most Δ in the 1-norm, so Lap(Δ/ε) on
each makes it ε-differentially private, for neighbours that replace one record.

| loss | coefficients of one record | Δ, replace (half of it for zero-out) |
| --- | --- | --- |
| (y − w·x)² | −2yx_j, x_j², 2x_jx_l (j < l) | 2(2‖x‖₁ + ‖x‖₁²) ≤ 2(2√d + d) |
| logistic, by Taylor | −½yx_j, ⅛x_j², ¼x_jx_l (j < l) | 2(½‖x‖₁ + ⅛‖x‖₁²) ≤ 2(½√d + ⅛d) |

The paper prints 2(d² + 2d + 1) and d²/4 + 3d, from |x_j| ≤ 1 each; with ‖x‖ ≤ 1, which it asks for
too, ‖x‖₁ ≤ √d, and this is what we take: less noise, the same proof. (y² is left out: it does not
move the minimiser.)

The noisy quadratic need not have a minimum. As the paper does (section 6): a ridge of 4 standard
deviations of the noise is added to the matrix, and eigenvectors whose eigenvalue is then still not
positive are left out. Both are post-processing.
"""

import math
from dataclasses import dataclass

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.learning.sums import Statistics
from blurfit.theory import forms
from blurfit.theory.guarantees import Neighbours
from blurfit_lab.rivals.risk import LogisticRisk, Risk, SquaredRisk
from blurfit_lab.rivals.rival import PureRival, RivalClassifier, RivalRegressor

RIDGE_IN_DEVIATIONS = 4.0


@dataclass(frozen=True)
class Polynomial:
    """½wᵀAw + b·w as a record's share of it: A = `square`·xxᵀ and b = −`slope`·yx."""

    square: float
    slope: float

    def sensitivity(self, dimension: int, neighbours: Neighbours) -> float:
        """Δ = slope·√d + ½·square·d for one record, and twice that to replace one.

        The coefficients of ½wᵀAw are ½A_jj and A_jl for j < l; their 1-norm is ½·square·‖x‖₁².
        """
        one = self.slope * math.sqrt(dimension) + self.square / 2 * dimension
        return one * (2 if neighbours == "replace" else 1)


SQUARED = Polynomial(square=2.0, slope=2.0)  # (y − w·x)², as the paper writes it
LOGISTIC = Polynomial(square=0.25, slope=0.5)  # ln 2 − ½y w·x + ⅛(w·x)²


@dataclass(kw_only=True, eq=False, repr=False)
class FunctionalMechanism(PureRival):
    """Laplace noise on the coefficients of the objective."""

    source = "Zhang, Zhang, Xiao, Yang and Winslett 2012, functional mechanism"
    published_neighbours = "replace"

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The minimiser of the noisy polynomial."""
        if isinstance(risk, SquaredRisk):
            return self.from_sums(risk.statistics, SQUARED, generator)
        if not isinstance(risk, LogisticRisk):
            raise InvalidValueError(
                "Expected a squared or a logistic loss: others are not polynomials."
            )
        return self.from_sums(sums_of(risk), LOGISTIC, generator)

    def from_sums(
        self, sums: Statistics, polynomial: Polynomial, generator: np.random.Generator
    ) -> FloatArray:
        """From G = Σxxᵀ and c = Σyx: noise, ridge, and the trimmed spectrum."""
        d = sums.dimension
        scale = polynomial.sensitivity(d, self.neighbours) / self.epsilon
        noise = forms.unpack(generator.laplace(0.0, scale, forms.size(d)), d)
        # The coefficient of w_j² is ½A_jj, that of w_j·w_l is A_jl: the diagonal's noise doubles.
        A = polynomial.square * sums.gram + noise + np.diag(np.diag(noise))
        b = polynomial.slope * sums.moment + generator.laplace(0.0, scale, d)
        return trimmed_minimiser(A, b, RIDGE_IN_DEVIATIONS * math.sqrt(2) * scale)


def sums_of(risk: LogisticRisk) -> Statistics:
    """Σxxᵀ and Σyx, from the logistic loss at w = 0: its Hessian is ¼Σxxᵀ, its gradient −½Σyx."""
    origin = np.zeros(risk.dimension)
    return Statistics(risk.count, 4 * risk.hessian(origin), -2 * risk.gradients(origin[None])[0])


def trimmed_minimiser(A: FloatArray, b: FloatArray, ridge: float) -> FloatArray:
    """argmin ½wᵀ(A + ridge·I)w − b·w over the eigenvectors with a positive eigenvalue."""
    values, vectors = np.linalg.eigh(A + ridge * np.eye(len(b)))
    kept = values > 0
    V = vectors[:, kept]
    return np.asarray(V @ ((V.T @ b) / values[kept]))


@dataclass(kw_only=True, eq=False, repr=False)
class FunctionalMechanismRegressor(FunctionalMechanism, RivalRegressor):
    """Least squares with Laplace noise on Σxxᵀ and Σyx."""


@dataclass(kw_only=True, eq=False, repr=False)
class FunctionalMechanismClassifier(FunctionalMechanism, RivalClassifier):
    """Logistic regression by Taylor's parabola, with Laplace noise on Σxxᵀ and Σyx."""
