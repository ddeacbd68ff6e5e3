"""The public grid on which noise is exact, and what the rounding to it costs.

Noise that is drawn in floating point can be recognised by its last bits. So whatever is sent is a
multiple of a power of two that everyone knows, and the noise is a discrete Gaussian on those
multiples. That has to be paid for:

* *Rounding the record.* `input` rounds q and p towards zero, which never lengthens them; noise is
  calibrated for bounds that are larger by the factor 1 + ξ, ξ = 2⁻¹¹. `moment` rounds the products
  of z to the nearest multiples of one step g, so that each product of two records differs by up to
  g more, and the matrix by up to g·k in the Frobenius norm, k its size. The step is such that this
  is at most half of ξΔ; the other half is far more than what floating point adds to the products.
  Noise is calibrated for a reach of (1 + ξ)Δ (`enlarged`).
* *Discrete noise.* The sum of n discrete Gaussians of deviation s on a grid of step g ≤ s/2¹⁰
  differs from one of deviation s√n by less than e^{−10⁶} (Canonne, Kamath and Steinke 2020; Poisson
  summation), and that one from a rounded continuous Gaussian by a factor of 1 ± (g/s)²x²/(24n) at x
  deviations: less than 10⁻⁴ where δ ≥ 10⁻³⁰⁰. Rounding is post-processing. A thousandth of δ is
  kept back for it. (A tenth of that pays for what the database refuses by its size, see
  `blurfit.learning.admission`.)
* *Weights on a lattice.* For `input` the theorem is about the weights, and takes p̃ to be
  continuous. Were it on a grid, so would be the weights, given the q̃, and whoever knows the q̃
  could tell two records apart by their lattices. So each p̃ is dithered: a uniform multiple of a
  much finer step is added to it within its own step (post-processing), and the published weights
  are rounded to multiples of ω ≈ 2⁻²⁰η. One fine step g of Σp̃ moves the weights by at most g/κ,
  where κ ≤ λ_min(A + Δ_in·I), so every cell of side ω holds a ball of M/2 lattice steps, M = ωκ/g,
  and its probability is what the continuous noise gives it, times (1 ± √d/M)^d. (Cells that the
  surface of ‖w‖ ≤ η cuts are cones of far more points.) M ≥ 2¹²d^{3/2}/ε keeps the two factors of a
  likelihood ratio below e^{ε/2¹⁰}, and that share of ε is kept back; κ is certain but for half of
  the thousandth of δ. (Beyond some ten million records float64 rounds the sums to a lattice that
  may be ten times coarser than g, and the share of ε would have to be as much larger.)
"""

import math
from dataclasses import dataclass

from blurfit.errors import InfeasibleError, NotCertifiedError
from blurfit.theory.certified import spectrum_floor
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.moment_calibration import MomentCalibration, Reach

ROUNDING = 2.0**-11  # ξ: bounds are enlarged by this share, which pays for rounding the record
DISCRETE_SHARE = 1e-3  # of δ, kept back for noise that is discrete
LATTICE_SHARE = {"moment": 0.0, "input": 2.0**-10}  # of ε, kept back for weights on a lattice
_RESOLUTION = {"moment": 2.0**-10, "input": 2.0**-13}  # of the noise's deviation, at the coarsest
_SHARED_RESOLUTION = 2.0**-11  # of the noise, so that off the diagonal too 2¹⁰ steps are spanned
_WEIGHT_RESOLUTION = 2.0**-20  # of the weight bound
_POINTS_IN_A_CELL = 2.0**12  # times d^{3/2}/ε


@dataclass(frozen=True)
class Grid:
    """Steps, each a power of two: for `input` of q, of the noise on p, and of p̃, where
    `dither` is finer than `linear`; for `moment` one step, of the products of z, three times.
    """

    quadratic: float
    linear: float
    dither: float

    @classmethod
    def of(
        cls,
        calibration: InputCalibration | MomentCalibration,
        *,
        size: int,
        shared: bool = False,
    ) -> "Grid":
        """The coarsest grid that the calibration's budget for rounding allows.

        `size` is d for `input`, and how many rows zzᵀ has for `moment`. Where trust is `shared`
        between two databases, every number's noise spans at least 2¹⁰ steps.
        """
        if isinstance(calibration, MomentCalibration):
            slack = ROUNDING * calibration.reach.sums / (1 + ROUNDING) / 2
            coarse = _SHARED_RESOLUTION if shared else _RESOLUTION["moment"]
            step = power_of_two_below(min(slack / size, calibration.noise * coarse))
            return cls(step, step, step)
        d = size
        quadratic = calibration.q_noise * _RESOLUTION["input"]
        linear = power_of_two_below(calibration.p_noise * _RESOLUTION["input"])
        points = _POINTS_IN_A_CELL * d**1.5 / calibration.model.epsilon
        finest = weight_step(calibration.setting.ball) * _least_curvature(calibration) / points
        return cls(power_of_two_below(quadratic), linear, min(linear, power_of_two_below(finest)))

    def verify(
        self,
        calibration: InputCalibration | MomentCalibration,
        *,
        size: int,
        shared: bool = False,
    ) -> None:
        """Refuse all steps but those that follow from the noise: a coarser grid costs privacy that
        nothing pays for.
        """
        expected = Grid.of(calibration, size=size, shared=shared)
        if self != expected:
            raise NotCertifiedError(
                f"Expected the grid {expected}, which follows from the noise, but {self} is "
                "stated. Do not send anything under this agreement."
            )


def enlarged(reach: Reach) -> Reach:
    """(1 + ξ) times as far: what noise is calibrated for, so that rounding is paid."""
    return Reach(*((1 + ROUNDING) * one for one in reach))


def weight_step(weight_bound: float) -> float:
    """ω: to which multiples a model from `input` rounds its weights, a power of two near 2⁻²⁰η."""
    return power_of_two_below(weight_bound * _WEIGHT_RESOLUTION)


def power_of_two_below(value: float) -> float:
    """The largest power of two that is at most the value."""
    return math.ldexp(0.5, math.frexp(value)[1])


def _least_curvature(calibration: InputCalibration) -> float:
    """κ ≤ λ_min(A + Δ_in·I), for any records: the noise's own spectrum, and the ridge."""
    setting, paid = calibration.setting, 0.0
    if calibration.shares is not None:
        paid = calibration.shares.spectrum  # for a negative ridge the theorem has paid already
    probability = paid or DISCRETE_SHARE / 2 * calibration.model.delta
    floor = spectrum_floor(calibration.q_noise, setting.dimension, setting.quorum, probability)
    if floor + calibration.ridge <= 0:
        raise InfeasibleError(
            f"Expected a larger quorum than {setting.quorum}: with so few records the noise may "
            "leave a direction without curvature, and the weights could betray the grid of the "
            "noise. mechanism='moment' works with any."
        )
    return floor + calibration.ridge
