"""GaussMix: least squares on k random mixtures of all records.

Lev, Srinivasan, Shenfeld, Ligett, Sekhari and Wilson 2025 (arXiv 2505.24603), linear mixing. With z
= (x, y), ‖z‖² ≤ r² = 2: ν from the noisy smallest eigenvalue of ZᵀZ, then k rows N(0, ZᵀZ + νI),
and least squares on these (`blurfit_lab.rivals.mixing` has the privacy of both).

    k = 2.5·max(d, ln(2/ϱ)),   τ = √(2 ln(max(3/δ, 2/ϱ))),   ϱ = δ/10

| accounting | γ |
| --- | --- |
| "published" | Rényi divergence for the sketch, the classical Gaussian mechanism for λ̃, δ/3 each |
| "exact" | the least γ for which the integral over both, and Φ(−τ), is at most δ |

**Where the public code does not do what it says.** It adds noise r·γ/√k to the smallest eigenvalue,
which one person moves by r², while its accounting charges for √k/γ: that needs r²·γ/√k, √2 times as
much. We add what the accounting charges for. The promise survives, because Rényi's slack is larger
than the gap: at (1, 1e-6), d = 10, the published γ keeps ε = 0.58 with that repair, and 0.64
without. (It also takes the classical Gaussian mechanism's formula, proved for ε < 1 only, for the
eigenvalue at any ε; at ε = 10 the whole keeps 6.5, and 7.1 without the repair.)

The authors' relation zeroes a record out.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from blurfit.arrays import FloatArray
from blurfit.theory.guarantees import Neighbours
from blurfit_lab.rivals.adassp import ACCOUNTINGS, Accounting
from blurfit_lab.rivals.mixing import delta_kept, least, lift_of, renyi_gamma, sketch
from blurfit_lab.rivals.rival import ApproximateRival, RivalRegressor

SQUARE = 2.0  # r²: ‖x‖² + y²
PER_DIMENSION = 2.5


def mixtures(dimension: int, delta: float) -> int:
    """k."""
    return int(PER_DIMENSION * max(dimension, math.log(20 / delta)))


def tail(delta: float) -> float:
    """τ, in deviations of the noise on the eigenvalue."""
    return math.sqrt(2 * math.log(20 / delta))


def kept(epsilon: float, delta: float, gamma: float, count: int, neighbours: Neighbours) -> float:
    """δ at ε, all told: mixtures, eigenvalue, and what fails beyond τ."""
    mu = math.sqrt(count) / gamma
    told = delta_kept(epsilon, share=SQUARE / gamma, draws=count, mu=mu, neighbours=neighbours)
    return told + float(ndtr(-tail(delta)))


@lru_cache(maxsize=1024)
def gamma_for(
    epsilon: float, delta: float, dimension: int, neighbours: Neighbours, accounting: Accounting
) -> float:
    """γ, the eigenvalue that the covariance has at least."""
    count = mixtures(dimension, delta)
    if accounting == "published":
        return renyi_gamma(
            epsilon, delta, square=SQUARE, mixtures=count, sketches=1, neighbours=neighbours
        )
    return least(
        lambda gamma: kept(epsilon, delta, gamma, count, neighbours) <= delta,
        SQUARE * math.sqrt(count) / epsilon,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class GaussMixRegressor(ApproximateRival, RivalRegressor):
    """Least squares on random mixtures of the records.

    Args:
        accounting: "published" by Rényi divergences, "exact" for the least noise that keeps the
            promise.
    """

    source = "Lev et al. 2025, GaussMix"
    published_neighbours = "zero-out"
    choices = (("accounting", ACCOUNTINGS),)

    accounting: Accounting = "published"

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        d = x.shape[1]
        z = np.column_stack([x, y])
        gram, count = z.T @ z, mixtures(d, self.delta)
        gamma = gamma_for(self.epsilon, self.delta, d, self.neighbours, self.accounting)
        lift = lift_of(
            gram, gamma, square=SQUARE, count=count, tail=tail(self.delta), generator=generator
        )
        mixed = sketch(gram, lift, count, generator)
        return np.asarray(np.linalg.lstsq(mixed[:, :-1], mixed[:, -1], rcond=None)[0])
