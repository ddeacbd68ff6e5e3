"""Objective perturbation: add a random linear term and a ridge, then minimise.

    w = argmin Σℓ + ½·ridge·‖w‖² + b·w

| rule | b | ridge | promise |
| --- | --- | --- | --- |
| "laplace" | density ∝ e^{−ε'‖b‖/change} | Λ, or more where ε' needs it | ε-DP |
| "gaussian" | N(0, σ²I), σ = change·√(8 ln(2/δ) + 4ε)/ε | 2λ/ε at least | (ε, δ)-DP, as claimed |
| "certified" | N(0, σ²I), σ = change/m | λ/(e^{split·ε} − 1) at least | (ε, δ)-DP, proved |

**laplace**: Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 2, for neighbours that replace one
record (Theorem 9). ε' = ε − 2 ln(1 + λ/Λ), which pays for the determinant of the change from b to
w; where that is not positive, the ridge becomes λ/(e^{ε/4} − 1) and ε' = ε/2. (In the mean's scale,
as they write it, Λ is nΛ', and change = 2 where a gradient is at most 1 long.) For zero-out one
factor of the determinant is enough: ε' = ε − ln(1 + λ/Λ), and λ/(e^{ε/2} − 1).

**gaussian**: Kifer, Smith and Thakurta 2012, Algorithm 1, printed with the gradient's own bound ζ
in place of `change`, which covers adding or removing one record; for "replace" we put what one
person can change then. Its proof takes the noise along the gradient's change for one Gaussian, but
that direction depends on w, hence on b (docs/errata.md), so the promise is claimed and not proved.

**certified**: `blurfit.theory.certified` with σ_u = 0: J = ln(1 + λ/ridge), and all of the
gradient's change moves with w, in the plane of x and x', so that m = change/σ is the largest with
E[(1 − exp(ε − J − m²/2 − mX))₊] ≤ δ, X ~ χ_{min(2, d)}. Its proof asks of the loss a Hessian of
rank one along x and a gradient's change in span{x, x'}: every loss of w·x has both.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.estimators.guarantee import FitGuarantee
from blurfit.theory.gradient_delta import least_sigma_b
from blurfit.theory.guarantees import Neighbours
from blurfit.validate import inside_unit_interval, nonnegative
from blurfit_lab.rivals.normals import exponential_in_norm
from blurfit_lab.rivals.normals import gaussian as gaussian_noise
from blurfit_lab.rivals.risk import Risk, minimiser
from blurfit_lab.rivals.rival import ApproximateRival, InBall, PureRival, RivalClassifier

GaussianRule = Literal["published", "certified"]
GAUSSIAN_RULES: tuple[GaussianRule, ...] = ("published", "certified")
_LARGEST = 700.0  # e⁷⁰⁰ is still a number
_ROUNDING = 1 + 1e-9  # noise is rounded up, by far more than the functions here err


@dataclass(frozen=True)
class Perturbation:
    """How much noise b has, as a standard deviation or as 1/rate, and the ridge with it."""

    scale: float
    ridge: float


def laplace(
    epsilon: float, curvature: float, change: float, ridge: float, neighbours: Neighbours
) -> Perturbation:
    """Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 2: density ∝ e^{−‖b‖/scale}.

    >>> laplace(1.0, 0.25, 2.0, 0.0, "replace").scale
    4.0
    """
    factors = 2 if neighbours == "replace" else 1
    left = -1.0 if ridge == 0 else epsilon - factors * math.log1p(curvature / ridge)
    if left > 0:
        return Perturbation(change / left, ridge)
    needed = curvature / math.expm1(min(epsilon / (2 * factors), _LARGEST))
    return Perturbation(2 * change / epsilon, max(ridge, needed))


def gaussian(
    epsilon: float, delta: float, curvature: float, change: float, ridge: float
) -> Perturbation:
    """Kifer, Smith and Thakurta 2012, Algorithm 1: σ = change·√(8 ln(2/δ) + 4ε)/ε, ridge ≥ 2λ/ε."""
    scale = change * math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
    return Perturbation(scale, max(ridge, 2 * curvature / epsilon))


def certified(
    epsilon: float,
    delta: float,
    curvature: float,
    change: float,
    ridge: float,
    *,
    dimension: int,
    split: float,
) -> Perturbation:
    """σ = change/m, with J = ln(1 + λ/ridge) at most split·ε: docs/certified.md at σ_u = 0."""
    ridge = max(ridge, curvature / math.expm1(min(split * epsilon, _LARGEST)))
    headroom = epsilon - math.log1p(curvature / ridge)
    scale = least_sigma_b(headroom, delta, 0.0, change, dimension)
    return Perturbation(scale * _ROUNDING, ridge)


@dataclass(kw_only=True, eq=False, repr=False)
class LaplaceObjectivePerturbation(PureRival):
    """ε-DP, by a linear term whose length is Gamma distributed.

    Args:
        ridge: Λ, in all and not per record; raised where ε needs it.
    """

    source = "Chaudhuri, Monteleoni and Sarwate 2011, objective perturbation"
    published_neighbours = "replace"

    ridge: float = 0.0

    def promise(self) -> FitGuarantee:
        """ε-DP."""
        nonnegative(ridge=self.ridge)
        return super().promise()

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The minimiser of the perturbed objective."""
        change = risk.gradient_change(self.neighbours)
        found = laplace(self.epsilon, risk.curvature, change, self.ridge, self.neighbours)
        noise = exponential_in_norm(risk.dimension, 1 / found.scale, generator)
        return minimiser(risk, found.ridge, noise)


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectivePerturbation(ApproximateRival):
    """(ε, δ)-DP, by a Gaussian linear term.

    Args:
        ridge: in all and not per record; raised where ε needs it.
        rule: "published" as in the paper of 2012, or "certified", which is proved, and less noise.
        split: with "certified", the share of ε that pays for the determinant.
    """

    source = "Kifer, Smith and Thakurta 2012, objective perturbation"
    published_neighbours = "zero-out"
    choices = (("rule", GAUSSIAN_RULES),)

    ridge: float = 0.0
    rule: GaussianRule = "published"
    split: float = 0.2

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP; proved if certified."""
        nonnegative(ridge=self.ridge)
        inside_unit_interval(split=self.split)
        return super().promise()

    @property
    def objection(self) -> str | None:
        """Only the certified rule is proved."""
        if self.rule == "certified":
            return None
        return (
            "the published proof takes the noise along a direction that depends on it for one "
            "Gaussian; rule='certified' is proved."
        )

    def perturbation(self, risk: Risk) -> Perturbation:
        """Noise and ridge for this risk: from public facts alone."""
        change = risk.gradient_change(self.neighbours)
        if self.rule == "published":
            return gaussian(self.epsilon, self.delta, risk.curvature, change, self.ridge)
        return certified(
            self.epsilon,
            self.delta,
            risk.curvature,
            change,
            self.ridge,
            dimension=risk.dimension,
            split=self.split,
        )

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The minimiser of the perturbed objective."""
        found = self.perturbation(risk)
        noise = gaussian_noise(risk.dimension, found.scale, generator)
        return minimiser(risk, found.ridge, noise)


@dataclass(kw_only=True, eq=False, repr=False)
class LaplaceObjectivePerturbationRegressor(LaplaceObjectivePerturbation, InBall):
    """Least squares in a ball, its objective perturbed; ε-DP."""


@dataclass(kw_only=True, eq=False, repr=False)
class LaplaceObjectivePerturbationClassifier(LaplaceObjectivePerturbation, RivalClassifier):
    """Logistic regression, its objective perturbed; ε-DP."""


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectivePerturbationRegressor(ObjectivePerturbation, InBall):
    """Least squares in a ball, its objective perturbed; (ε, δ)-DP."""


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectivePerturbationClassifier(ObjectivePerturbation, RivalClassifier):
    """Logistic regression, its objective perturbed; (ε, δ)-DP."""
