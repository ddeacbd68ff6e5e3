"""What contributors who lie together could have done to a model, from what is published of it.

A submission that is longer than honest ones are is refused (`blurfit.agreement.radius`), or cannot
be proved to be short, so L liars push the sums M = Σzzᵀ by at most some T in the Frobenius norm
(`push_of_liars`), in any direction. How far that moves a coefficient follows from the sums alone:
this is post-processing, and gives nothing away.

**A line** (joint sums and residual waves). With w = A⁻¹c, u = (−w, 1), P = A⁻¹ padded by zeros, and
a = Pm for a coefficient m·w: if the others' sums are M + E, their coefficient differs by

    m·w' − m·w = aᵀ·E·u',   (1 + PE)u' = u,   hence   = aᵀQu  with  Q = E(1 + PE)⁻¹.

Q is symmetric, and ‖Q‖ ≤ ‖E‖/(1 − ρ) with ρ = T‖A⁻¹‖ in the spectral norm, as long as ρ < 1. So

    |m·w' − m·w| ≤ T·‖(auᵀ + uaᵀ)/2‖/(1 − ρ) = T·√((‖a‖²‖u‖² + (a·u)²)/2)/(1 − ρ).          (1)

That is a bound for every T, and not only to first order; as T → 0 a push along auᵀ + uaᵀ attains
it. From ρ = 1 on, liars can take all curvature from some direction, and there is no bound.

**A Newton wave**: the step is θ = A⁻¹t, and a push is (E, e) with ‖E‖² + ‖e‖²/τ² ≤ T². The same
algebra gives −aᵀQθ + aᵀ(1 + EP)⁻¹e, hence (1) with √((‖a‖²‖θ‖² + (a·θ)²)/2 + τ²‖a‖²).

Both are quadratic forms in m: T·√(mᵀKm)/(1 − ρ), with K as below. What is published is
(Â + G)⁻¹ĉ, corrected for the bias that the noise brings (`blurfit.learning.inference`); (1) is read
with this inverse, and is exact where that correction is small.
"""

import math
from dataclasses import dataclass

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.learning.inference import debiased, steady
from blurfit.learning.joint_sums import Submodel


@dataclass(frozen=True, eq=False)
class Pull:
    """How coefficients follow a push of the sums, by at most √(mᵀKm) for each unit of it.

    Attributes:
        squares: K.
        softness: ‖A⁻¹‖, the reciprocal of the push from which on there is no bound.
    """

    squares: FloatArray
    softness: float = 0.0

    @classmethod
    def of_line(cls, sums: Submodel) -> "Pull":
        """Of the coefficients of (1, v) that `blurfit.learning.inference` tells."""
        found = cls.of_step(steady(sums), debiased(sums), 0.5)  # c is beside the diagonal
        return found.through(np.diag(sums.in_columns(np.ones(len(sums.gram)))))

    @classmethod
    def of_step(cls, inverse: FloatArray, theta: FloatArray, linear: float) -> "Pull":
        """Of θ = A⁻¹t, where a unit of push moves t by √`linear`, and A by 1."""
        along = inverse @ theta
        size = float(theta @ theta) / 2 + linear
        squares = size * inverse @ inverse + np.outer(along, along) / 2
        return cls(squares, float(np.linalg.norm(inverse, 2)))

    def through(self, matrix: FloatArray) -> "Pull":
        """Of linear combinations of the coefficients, the rows of `matrix`."""
        return Pull(matrix @ self.squares @ matrix.T, self.softness)

    def moved(self, push: float) -> FloatArray:
        """By how much a push of this size moves each coefficient, at most; infinite without a
        bound.
        """
        size = np.sqrt(np.maximum(np.diagonal(self.squares), 0.0))
        left = 1 - push * self.softness
        bounded = math.isfinite(push) and left > 0
        return size * push / left if bounded else np.full(len(size), np.inf)
