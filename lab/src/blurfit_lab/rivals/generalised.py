"""Generalised objective perturbation: Gaussian, any ridge, and the privacy profile itself.

Redberg, Koskela and Wang 2023 (arXiv 2401.00583): for ℓ(w; x, y) = f(w·x; y) with |f'| ≤ L and 0 ≤
f'' ≤ β, ‖x‖ ≤ 1, without a ball,

    w = argmin Σℓ + ½·ridge·‖w‖² + b·w,   b ~ N(0, σ²I).

**Privacy.** b ↔ w is a bijection, and the log-ratio of w's densities under two neighbouring tables
is J + m²/2 + m·X at most, where m = change/σ, J bounds the determinants' part, and X is the length
of b/σ within the space where the gradient's change lies, whatever w is:

| neighbours | change | that space | X | J |
| --- | --- | --- | --- | --- |
| zero-out, as published | L | the line of x | χ₁ | ln(1 + β/ridge) |
| replace | 2L | the plane of x, x' | χ₂ | ln(1 + β/ridge) |

(‖g‖ = ‖f'(w·x)x − f'(w·x')x'‖ depends on w, and so on b, which is why X is a length and not one
normal variable: the two-sided tail costs a factor of 2 in δ.) So (ε, δ) is kept where, with ε̂ = ε
− J − m²/2,

    χ₁:  δ ≥ 2δ_G(m, ε − J) if ε̂ ≥ 0, else 1 − e^ε̂ + 2e^ε̂·δ_G(m, m²/2)   (their theorem)
    χ₂:  δ ≥ m√(π/2)·e^{−(ε̂/m)²/2}·erfcx((ε̂/m + m)/√2) if ε̂ ≥ 0

with the Gaussian profile δ_G. Their J is −ln(1 − β/ridge); ln(1 + β/ridge) is less and enough,
because the table with the record has a Hessian H ⪰ ridge·I + f''xxᵀ, so that 1 − f''xᵀH⁻¹x ≥ 1/(1 +
β/ridge).

**Ridge and noise** as their code chooses them: the ridge starts at 2β/ε and grows by a twentieth
until σ ≤ 1.3 times the plain Gaussian mechanism's. (Their script also chooses its solver's learning
rate by the accuracy on the test rows; ours solves to 1e-10 and looks at no test row. They release
an approximate minimum with a little output noise; ours is exact to rounding.)

**Least squares** has no bounded slope. As the paper says for such losses, slopes are clipped: for a
loss of w·x that is a convex loss again, here Huber's with |f'| ≤ L = `clip` and β = 1, so the
theorem holds as it stands. With |y| ≤ 1, `clip` = 1 cuts no slope at w = 0.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import erfcx

from blurfit.arrays import FloatArray
from blurfit.theory.gaussian import delta_of, mu_of
from blurfit.theory.guarantees import Neighbours
from blurfit.theory.numerics import root_of_increasing
from blurfit.validate import positive
from blurfit_lab.rivals.huber import huber_minimiser
from blurfit_lab.rivals.normals import gaussian as gaussian_noise
from blurfit_lab.rivals.objective import Perturbation
from blurfit_lab.rivals.risk import minimiser
from blurfit_lab.rivals.rival import ApproximateRival, RivalClassifier, RivalRegressor

MOST_NOISE = 1.3  # times the plain Gaussian mechanism's
GROWTH = 1.05
_ROUNDING = 1 + 1e-9


def delta_kept(m: float, headroom: float, neighbours: Neighbours) -> float:
    """E[(1 − exp(headroom − m²/2 − mX))₊] with headroom = ε − J, X ~ χ₁ or χ₂.

    >>> round(delta_kept(0.5, 1.0, "zero-out"), 4) == round(2 * delta_of(0.5, 1.0), 4)
    True
    """
    left = headroom - m * m / 2
    if neighbours == "zero-out":
        if left >= 0:
            return 2 * delta_of(m, headroom)
        return -math.expm1(left) + math.exp(left) * 2 * delta_of(m, m * m / 2)
    start = max(0.0, left / m)
    tail = m * math.sqrt(math.pi / 2) * float(erfcx((start + m) / math.sqrt(2)))
    if left >= 0:
        return math.exp(-start * start / 2) * tail
    return -math.expm1(left) + math.exp(left) * tail


def least_scale(
    epsilon: float,
    delta: float,
    ridge: float,
    curvature: float,
    change: float,
    neighbours: Neighbours,
) -> float | None:
    """The least σ that keeps (ε, δ) with this ridge; None if J alone is too much."""
    headroom = epsilon - math.log1p(curvature / ridge)
    if headroom <= 0:
        return None
    m = root_of_increasing(
        lambda m: math.log(max(delta_kept(m, headroom, neighbours), 1e-300)) - math.log(delta),
        guess=mu_of(headroom, delta),
    )
    return change / m * _ROUNDING


@lru_cache(maxsize=1024)
def calibrate(
    epsilon: float, delta: float, curvature: float, change: float, neighbours: Neighbours
) -> Perturbation:
    """The least ridge of the sequence 2β/ε·1.05ᵏ whose σ is at most 1.3·change/μ(ε, δ)."""
    ridge, most = 2 * curvature / epsilon, MOST_NOISE * change / mu_of(epsilon, delta)
    while True:
        scale = least_scale(epsilon, delta, ridge, curvature, change, neighbours)
        # Two-sided tails may cost more than a factor of 1.3 at any ridge: then J ≤ ε/50 is enough.
        if scale is not None and (scale <= most or math.log1p(curvature / ridge) < epsilon / 50):
            return Perturbation(scale, ridge)
        ridge *= GROWTH


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralisedObjectivePerturbationClassifier(ApproximateRival, RivalClassifier):
    """Logistic regression with a Gaussian linear term, by the privacy profile itself."""

    source = "Redberg, Koskela and Wang 2023, generalised objective perturbation"
    published_neighbours = "zero-out"

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        risk = self._risk(x, y)
        change = risk.gradient_change(self.neighbours)
        found = calibrate(self.epsilon, self.delta, risk.curvature, change, self.neighbours)
        return minimiser(risk, found.ridge, gaussian_noise(x.shape[1], found.scale, generator))


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralisedObjectivePerturbationRegressor(ApproximateRival, RivalRegressor):
    """Least squares with clipped slopes (Huber's loss) and a Gaussian linear term.

    Args:
        clip: L, the largest slope of one record.
    """

    source = "Redberg, Koskela and Wang 2023, generalised objective perturbation"
    published_neighbours = "zero-out"

    clip: float = 1.0

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        positive(clip=self.clip)
        change = self.clip * (2.0 if self.neighbours == "replace" else 1.0)
        found = calibrate(self.epsilon, self.delta, 1.0, change, self.neighbours)
        noise = gaussian_noise(x.shape[1], found.scale, generator)
        return huber_minimiser(x, y, clip=self.clip, ridge=found.ridge, linear=noise)
