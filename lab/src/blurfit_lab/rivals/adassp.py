"""AdaSSP: noisy sums, with a ridge that reads the noisy smallest eigenvalue. Least squares only.

Wang 2018, Algorithm 2 (adaptive sufficient statistics perturbation), with three parts of ε/3 and
δ/3 each. For ‖x‖ ≤ 1, |y| ≤ 1, k = √(ln(6/δ))/(ε/3), standard normal z and symmetric Z (the upper
triangle drawn):

    λ̃ = max(0, λ_min(G) + k·Δ₁·z − k·Δ₁·√(ln(6/δ)))
    ridge = max(0, k·Δ₂·√(d·ln(2d²/ρ)) − λ̃),                    ρ = 0.05
    w = (G + k·Δ₂·Z + ridge·I)⁻¹(c + k·Δ₃·z')

| what one person moves | zero-out, as published | replace |
| --- | --- | --- |
| Δ₁: λ_min(G) | 1 | 1, because G − xxᵀ ⪯ G' ⪯ G + x'x'ᵀ |
| Δ₂: G, in the Frobenius norm | 1 | √2, because ‖xxᵀ − x'x'ᵀ‖_F² = ‖x‖⁴ + ‖x'‖⁴ − 2(x·x')² |
| Δ₃: c | 1 | 2 |

Wang's relation adds or removes one record; with n public that is zero-out.

| accounting | k | at (0.1, 0.01) | at (1, 1e-6) |
| --- | --- | --- | --- |
| "published" | √(ln(6/δ))/(ε/3) | 75.9 | 11.85 |
| "exact" | √3/μ(ε, δ) | 16.5 | 7.32 |

Three Gaussians with noise k·Δ are together μ-GDP with μ = √3/k, exactly (Dong, Roth and Su 2022,
Corollary 3.3; the upper triangle is moved by no more than Δ₂). So "exact" takes the least k whose
profile is (ε, δ), and "published", which is less than the classical Gaussian mechanism's
√(2 ln(1.25·3/δ))/(ε/3), keeps more than it promises wherever `promise` lets it pass. A lead over
the published constants alone would be a lead over their slack.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.estimators.guarantee import FitGuarantee
from blurfit.learning.sums import Statistics
from blurfit.theory import forms
from blurfit.theory.gaussian import delta_of, mu_of
from blurfit.theory.guarantees import Neighbours
from blurfit_lab.rivals.risk import Risk, SquaredRisk
from blurfit_lab.rivals.rival import ApproximateRival, RivalRegressor

Accounting = Literal["published", "exact"]
ACCOUNTINGS: tuple[Accounting, ...] = ("published", "exact")
RELEASES = 3  # the smallest eigenvalue, G and c
_ROUNDING = 1 + 1e-9  # noise is rounded up, by far more than μ(ε, δ) errs
FAILURE = 0.05  # ρ, the probability that the forecast of the noise's norm fails


@dataclass(frozen=True)
class Sensitivities:
    """How far one person moves the smallest eigenvalue, G and c."""

    eigenvalue: float
    gram: float
    moment: float

    @classmethod
    def of(cls, neighbours: Neighbours) -> "Sensitivities":
        """Δ₁, Δ₂ and Δ₃ for ‖x‖ ≤ 1 and |y| ≤ 1."""
        if neighbours == "replace":
            return cls(1.0, math.sqrt(2), 2.0)
        return cls(1.0, 1.0, 1.0)


@lru_cache(maxsize=256)
def noise_multiplier(epsilon: float, delta: float, accounting: Accounting = "published") -> float:
    """k = √(ln(6/δ))/(ε/3) as published, or √3/μ(ε, δ).

    >>> round(noise_multiplier(0.1, 0.01), 1), round(noise_multiplier(0.1, 0.01, "exact"), 1)
    (75.9, 16.5)
    """
    if accounting == "exact":
        return math.sqrt(RELEASES) / mu_of(epsilon, delta) * _ROUNDING
    return math.sqrt(math.log(6 / delta)) / (epsilon / 3)


@dataclass(kw_only=True, eq=False, repr=False)
class AdaSSPRegressor(ApproximateRival, RivalRegressor):
    """Least squares from noisy sums with an adaptive ridge.

    Args:
        accounting: "published" for Wang's constants, "exact" for the least noise that keeps the
            promise.
    """

    source = "Wang 2018, AdaSSP"
    published_neighbours = "zero-out"
    choices = (("accounting", ACCOUNTINGS),)

    accounting: Accounting = "published"

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP, checked by the exact Gaussian profile."""
        promise = super().promise()
        kept = delta_of(math.sqrt(RELEASES) / self.multiplier, self.epsilon)
        if kept > self.delta:
            raise InfeasibleError(
                f"AdaSSP's constants keep delta={kept:.3g} at epsilon={self.epsilon:g}, not "
                f"delta={self.delta:g}: they are meant for small epsilon. Lower epsilon, or choose "
                "accounting='exact'."
            )
        return promise

    @property
    def multiplier(self) -> float:
        """k, the noise of a quantity that one person moves by one."""
        return noise_multiplier(self.epsilon, self.delta, self.accounting)

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """Three releases, and what follows from them."""
        if not isinstance(risk, SquaredRisk):
            raise InvalidValueError("AdaSSP is for squared loss: there are no such sums otherwise.")
        return self.from_sums(risk.statistics, generator)

    def from_sums(self, sums: Statistics, generator: np.random.Generator) -> FloatArray:
        """From G = Σxxᵀ and c = Σyx."""
        d, k = sums.dimension, self.multiplier
        reach = Sensitivities.of(self.neighbours)
        lowest = float(np.linalg.eigvalsh(sums.gram)[0])
        lowest += k * reach.eigenvalue * float(generator.standard_normal())
        lowest -= k * reach.eigenvalue * math.sqrt(math.log(6 / self.delta))
        forecast = k * reach.gram * math.sqrt(d * math.log(2 * d * d / FAILURE))
        ridge = max(0.0, forecast - max(0.0, lowest))
        Z = forms.unpack(generator.standard_normal(forms.size(d)), d)
        gram = sums.gram + k * reach.gram * Z + ridge * np.eye(d)
        moment = sums.moment + k * reach.moment * generator.standard_normal(d)
        return np.asarray(np.linalg.lstsq(gram, moment, rcond=None)[0])
