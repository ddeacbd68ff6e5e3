"""Learn from noisy sums.

**AdaSSP**, Wang 2018, Algorithm 2: least squares from noisy sums, with a ridge that reads the noisy
smallest eigenvalue, three parts of ε/3 and δ/3 each. For ‖x‖ ≤ 1, |y| ≤ 1, k = √(ln(6/δ))/(ε/3),
standard normal z and symmetric Z (the upper triangle drawn):

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
√(2 ln(1.25·3/δ))/(ε/3), keeps more than it promises wherever `promise` lets it pass.

**BoostedAdaSSP**, Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu 2023 (arXiv 2303.03451),
Algorithm 2: AdaSSP's noisy matrix once, and T rounds of noisy residual moments. For ‖x‖ ≤ 1,
residuals clipped to [−1, 1], and noise σ for what one person moves by one:

    Ĝ = G + σΔ₂·Z,   λ̃ = max(0, λ_min(G) + σΔ₁(z − 1.96)),   ridge = max(0, 1.96·σΔ₂√d − λ̃)
    repeat T times:  ĉ = Σ clip(y − w·x, −1, 1)·x + σΔ₃·z,   w ← w + (Ĝ + ridge·I)⁻¹ĉ

**Privacy.** T + 2 Gaussian releases, each of a quantity that one person moves by at most Δ: a
clipped residual is at most 1 in size whatever w is, so Δ₁, Δ₂ and Δ₃ are AdaSSP's. Composed
adaptively they are μ-GDP with μ = √(T + 2)/σ, exactly, so the least noise is σ = √(T + 2)/μ(ε, δ).

**Where the public code does not keep its promise.** It computes μ(ε, δ) and then takes σ = μ
itself: at (1, 1e-6) and T = 100 that is σ = 0.237 instead of 42.7, and the release has ε = 1,112 at
δ = 1e-6 (`epsilon_kept`). `calibration="code"` does so, for audits; "exact" keeps the promise and
is the rival that we compare with.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.estimators.base import FitGuarantee
from blurfit.input_perturbation.algorithms import Sums
from blurfit.theory import forms
from blurfit.theory.gaussian import delta_of, epsilon_of, mu_of
from blurfit.theory.moments import Neighbours
from blurfit_lab.rivals.rival import ApproximateRival, Risk, RivalRegressor, SquaredRisk

Accounting = Literal["published", "exact"]
RELEASES = 3  # the smallest eigenvalue, G and c
_ROUNDING = 1 + 1e-9  # noise is rounded up, by far more than μ(ε, δ) errs
FAILURE = 0.05  # ρ, the probability that the forecast of the noise's norm fails


class Sensitivities(NamedTuple):
    """How far one person moves the smallest eigenvalue, G and c, for ‖x‖ ≤ 1 and |y| ≤ 1."""

    eigenvalue: float
    gram: float
    moment: float


SENSITIVITIES: dict[Neighbours, Sensitivities] = {
    "replace": Sensitivities(1.0, math.sqrt(2), 2.0),
    "zero-out": Sensitivities(1.0, 1.0, 1.0),
}


def noisy_gram(
    gram: FloatArray,
    k: float,
    reach: Sensitivities,
    *,
    tail: float,
    forecast: float,
    generator: np.random.Generator,
) -> FloatArray:
    """G with noise k·Δ₂, and the ridge that its noisy smallest eigenvalue leaves of the forecast of
    that noise's norm; the eigenvalue is lowered by `tail` deviations, the forecast is over k·Δ₂.
    """
    lowest = float(np.linalg.eigvalsh(gram)[0])
    lowest += k * reach.eigenvalue * (float(generator.standard_normal()) - tail)
    ridge = max(0.0, k * reach.gram * forecast - max(0.0, lowest))
    d = len(gram)
    Z = forms.unpack(generator.standard_normal(forms.size(d)), d)
    return np.asarray(gram + k * reach.gram * Z + ridge * np.eye(d))


class AccountedRegressor(ApproximateRival, RivalRegressor):
    """Least squares whose published constants keep more than they promise.

    Args:
        accounting: "published" for the authors' constants, "exact" for the least noise that keeps
            the promise.
    """

    published_neighbours = "zero-out"

    accounting: Accounting = "published"


class AdaSSPRegressor(AccountedRegressor):
    """Least squares from noisy sums with an adaptive ridge."""

    source = "Wang 2018, AdaSSP"

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
        """k, the noise of a quantity that one person moves by one.

        >>> published, exact = AdaSSPRegressor(), AdaSSPRegressor(accounting="exact")
        >>> round(published.multiplier, 2), round(exact.multiplier, 2)
        (11.85, 7.32)
        """
        if self.accounting == "exact":
            return math.sqrt(RELEASES) / mu_of(self.epsilon, self.delta) * _ROUNDING
        return math.sqrt(math.log(6 / self.delta)) / (self.epsilon / 3)

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """Three releases, and what follows from them."""
        if not isinstance(risk, SquaredRisk):
            raise InvalidValueError("AdaSSP is for squared loss: there are no such sums otherwise.")
        return self.from_sums(risk.statistics, generator)

    def from_sums(self, sums: Sums, generator: np.random.Generator) -> FloatArray:
        """From G = Σxxᵀ and c = Σyx."""
        d, k = sums.dimension, self.multiplier
        reach, tail = SENSITIVITIES[self.neighbours], math.sqrt(math.log(6 / self.delta))
        forecast = math.sqrt(d * math.log(2 * d * d / FAILURE))
        gram = noisy_gram(sums.gram, k, reach, tail=tail, forecast=forecast, generator=generator)
        moment = sums.moment + k * reach.moment * generator.standard_normal(d)
        return np.asarray(np.linalg.lstsq(gram, moment, rcond=None)[0])


Calibration = Literal["exact", "code"]
TAIL = 1.96  # deviations that the ridge allows for


class BoostedAdaSSPRegressor(ApproximateRival, RivalRegressor):
    """Least squares by T rounds of AdaSSP on clipped residuals.

    Args:
        rounds: T, 100 in the authors' code.
        calibration: "exact", which keeps the promise, or "code", which does not.
    """

    source = "Tang et al. 2023, BoostedAdaSSP"
    published_neighbours = "zero-out"

    rounds: int = 100
    calibration: Calibration = "exact"

    @property
    def objection(self) -> str | None:
        """The public code's noise is not enough."""
        kept = f"keeps epsilon={self.epsilon_kept:.4g}; calibration='exact' keeps the promise."
        code = f"calibration='code' sets sigma = mu as the public code does, and {kept}"
        return code if self.calibration == "code" else None

    @property
    def multiplier(self) -> float:
        """σ, the noise of a quantity that one person moves by one.

        >>> exact, code = BoostedAdaSSPRegressor(), BoostedAdaSSPRegressor(calibration="code")
        >>> round(exact.multiplier, 1), round(code.multiplier, 3)
        (42.7, 0.237)
        """
        mu = mu_of(self.epsilon, self.delta)
        return mu if self.calibration == "code" else math.sqrt(self.rounds + 2) / mu * _ROUNDING

    @property
    def epsilon_kept(self) -> float:
        """The exact ε at δ of T + 2 Gaussian releases with this noise."""
        return epsilon_of(math.sqrt(self.rounds + 2) / self.multiplier, self.delta)

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        d, sigma, reach = x.shape[1], self.multiplier, SENSITIVITIES[self.neighbours]
        forecast = TAIL * math.sqrt(d)
        gram = noisy_gram(x.T @ x, sigma, reach, tail=TAIL, forecast=forecast, generator=generator)
        inverse = np.linalg.pinv(gram, hermitian=True)
        weights = np.zeros(d)
        for _ in range(self.rounds):
            residuals = np.clip(y - x @ weights, -1.0, 1.0)
            moment = residuals @ x + sigma * reach.moment * generator.standard_normal(d)
            weights = weights + inverse @ moment
        return weights
