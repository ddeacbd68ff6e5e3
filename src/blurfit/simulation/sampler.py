"""A whole collection's blurred statistics in one draw: exact, in O(d³), whatever n is.

The database sees a collection only through N, A and c, so to know how a collection will turn out
one need not blur its records one by one: for experiments, forecasts and audits, and for data that
is in one place anyway. Only a generator that nobody can repeat protects anyone
(`blurfit.simulation.entropy`).
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from blurfit.errors import InvalidValueError
from blurfit.learning.statistics import Statistics
from blurfit.theory.calibration import InputCalibration, MomentCalibration
from blurfit.theory.losses import LogisticLoss, SquaredLoss

FloatArray = npt.NDArray[np.float64]


class Sampler(Protocol):
    """Draws what a database would hold after a collection."""

    def draw(self, generator: np.random.Generator) -> Statistics:
        """One collection's blurred statistics."""
        ...  # pragma: no cover


def sampler_for(calibration: InputCalibration | MomentCalibration, clean: Statistics) -> Sampler:
    """The sampler of the calibration's mechanism, for records whose unblurred statistics are
    `clean`.

    >>> from blurfit import calibrate
    >>> clean = Statistics(1000, 40 * np.eye(3), np.ones(3))
    >>> noise = calibrate(1, 1e-6, dimension=3, quorum=1000, q_bound=1, p_bound=1)
    >>> sampler_for(noise, clean).draw(np.random.default_rng(7)).count
    1000
    """
    if clean.dimension != calibration.setting.dimension:
        raise InvalidValueError(
            f"Expected dimension={clean.dimension} of the statistics to be "
            f"{calibration.setting.dimension}, which the noise was calibrated for."
        )
    quorum = calibration.setting.quorum
    if isinstance(calibration, MomentCalibration):
        return MomentSampler.of(
            clean, quorum=quorum, sigma_m=calibration.sigma_m, sigma_p=calibration.sigma_p
        )
    return InputSampler.of(
        clean, quorum=quorum, sigma_u=calibration.sigma_u, sigma_b=calibration.sigma_b
    )


def clean_sums(
    loss: SquaredLoss | LogisticLoss, count: int, gram: FloatArray, moment: FloatArray
) -> Statistics:
    """Σqqᵀ and Σp of records of which Σxxᵀ and Σyx are known: q = R_q·x and p = R_p·yx.

    So it is for both losses that an agreement can name.
    """
    return Statistics(count, loss.q_bound**2 * gram, loss.p_bound * moment)


@dataclass(frozen=True, eq=False)
class InputSampler:
    """(Q + U)ᵀ(Q + U) ~ (R + Z)ᵀ(R + Z) + W and Σp̃ ~ Σp + N(0, (N/n)σ_b²·I).

    Let RᵀR = QᵀQ with R of k = min(N, d) rows. An orthogonal O takes Q to (R, 0), and U is as
    likely as OU, so the first k rows of OU are Z, with entries N(0, s²), s² = σ_u²/n, and the N − k
    others add their own Gram matrix W ~ Wishart_d(s²I, N − k). For N ≥ 2d, Bartlett's decomposition
    draws W = s²·LLᵀ with L lower triangular, L_jj² ~ χ²_{N−k−j} (j from 0) and N(0, 1) below the
    diagonal; for fewer, the N − k rows are drawn themselves.
    """

    count: int
    factor: FloatArray  # R
    moment: FloatArray  # Σp
    q_noise: float  # s
    p_noise: float  # σ_b·√(N/n)

    @classmethod
    def of(
        cls, clean: Statistics, *, quorum: int, sigma_u: float, sigma_b: float
    ) -> "InputSampler":
        """From the unblurred statistics and the agreement's scales."""
        if clean.count < 1:
            raise InvalidValueError(f"Expected count={clean.count} >= 1: there is nothing to blur.")
        return cls(
            count=clean.count,
            factor=_factor(clean),
            moment=clean.moment,
            q_noise=sigma_u / math.sqrt(quorum),
            p_noise=sigma_b * math.sqrt(clean.count / quorum),
        )

    def draw(self, generator: np.random.Generator) -> Statistics:
        """One draw of (A, c)."""
        k, d = self.factor.shape
        others = self.count - k
        if others >= d:
            pure = np.tril(generator.standard_normal((d, d)), -1)
            np.fill_diagonal(pure, np.sqrt(generator.chisquare(others - np.arange(d))))
            pure = pure.T
        else:
            pure = generator.standard_normal((others, d))
        blurred = self.factor + self.q_noise * generator.standard_normal((k, d))
        rows = np.vstack([blurred, self.q_noise * pure])
        noise = self.p_noise * generator.standard_normal(d)
        return Statistics(self.count, rows.T @ rows, self.moment + noise)


@dataclass(frozen=True, eq=False)
class MomentSampler:
    """ΣM̃ = Σqqᵀ + E, E = √(N/n)·σ·(G + Gᵀ)/2 with G standard normal, and Σp̃ = Σp + N(0,
    (N/n)τ²σ²·I).

    (G + Gᵀ)/2 has variance 1 on the diagonal and ½ beside it: the sum of N independent noises of
    the mechanism, over N/n.
    """

    count: int
    gram: FloatArray
    moment: FloatArray
    m_noise: float  # σ·√(N/n)
    p_noise: float  # τσ·√(N/n)

    @classmethod
    def of(
        cls, clean: Statistics, *, quorum: int, sigma_m: float, sigma_p: float
    ) -> "MomentSampler":
        """From the unblurred statistics and the agreement's scales."""
        growth = math.sqrt(clean.count / quorum)
        return cls(clean.count, clean.gram, clean.moment, sigma_m * growth, sigma_p * growth)

    def draw(self, generator: np.random.Generator) -> Statistics:
        """One draw of (A, c)."""
        d = len(self.moment)
        noise = generator.standard_normal((d, d))
        gram = self.gram + self.m_noise * (noise + noise.T) / 2
        return Statistics(
            self.count, gram, self.moment + self.p_noise * generator.standard_normal(d)
        )


def _factor(clean: Statistics) -> FloatArray:
    """R with RᵀR = G and min(N, d) rows: √Λ·Vᵀ of the eigendecomposition, so that a singular G is
    welcome.
    """
    rows = min(clean.count, clean.dimension)
    values, vectors = np.linalg.eigh(clean.gram)
    largest = max(float(values[-1]), 0.0)
    rounding = 1e-10 * largest
    if values[0] < -rounding or (values[: clean.dimension - rows] > rounding).any():
        raise InvalidValueError(
            f"Expected gram to be the sum of {clean.count} products qqᵀ: positive semidefinite, "
            f"of rank at most {rows}. Are these blurred statistics?"
        )
    kept = slice(clean.dimension - rows, None)
    return np.asarray(np.sqrt(np.maximum(values[kept], 0.0))[:, None] * vectors[:, kept].T)
