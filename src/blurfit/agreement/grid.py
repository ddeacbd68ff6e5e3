"""The public grid on which noise is exact, and what the rounding to it costs.

Noise that is drawn in floating point can be recognised by its last bits. So whatever is sent is a
multiple of a power of two that everyone knows, and the noise is a discrete Gaussian on those
multiples. Two things have to be paid for:

* *Rounding the record.* `input` rounds q and p towards zero, which never lengthens them. `moment`
  rounds qqᵀ and p to the nearest multiples; two records then differ by up to g_m·d and g_p·√d more
  (Frobenius norm; Euclidean norm). The steps are chosen such that this is at most ξΔ, ξ = 2⁻¹⁶, and
  noise is calibrated for bounds R_q and R_p that are larger by the factor 1 + ξ, which raises
  the sensitivity to at least (1 + ξ)Δ (it grows with R_q² and R_p).
* *Discrete noise.* The sum of n discrete Gaussians of deviation s on a grid of step g ≤ s/2¹⁰
  differs from one of deviation s√n by less than e^{−10⁶} (Canonne, Kamath and Steinke 2020; Poisson
  summation), and that one from a rounded continuous Gaussian by a factor of 1 ± (g/s)²x²/(24n) at x
  deviations: less than 10⁻⁶ where δ ≥ 10⁻³⁰⁰. Rounding is post-processing. A thousandth of δ is
  kept back for it.

For `input` the theorem speaks of the weights and not of the sums, so the published weights are
rounded too (`weight_step`), to a grid far coarser than what one step of the noise moves them by.
"""

import math
from dataclasses import dataclass

from blurfit.errors import NotCertifiedError
from blurfit.theory.calibrated import InputCalibration, MomentCalibration

ROUNDING = 2.0**-16  # ξ: bounds are enlarged by this share, which pays for rounding the record
DISCRETE_SHARE = 1e-3  # of δ, kept back for noise that is discrete
_LEAST_RESOLUTION = {"moment": 2.0**-10, "input": 2.0**-13}  # of the noise's deviation
_WEIGHT_RESOLUTION = 2.0**-24  # of the weight bound


@dataclass(frozen=True)
class Grid:
    """Steps, each a power of two: of q (input) or of qqᵀ (moment), and of p."""

    quadratic: float
    linear: float

    @classmethod
    def of(cls, calibration: InputCalibration | MomentCalibration) -> "Grid":
        """The coarsest grid that the calibration's budget for rounding allows."""
        quadratic, linear = _largest_steps(calibration)
        return cls(_power_of_two_below(quadratic), _power_of_two_below(linear))

    def verify(self, calibration: InputCalibration | MomentCalibration) -> None:
        """Refuse steps that are no powers of two, or coarser than has been paid for."""
        for name, step, largest in zip(
            ("quadratic", "linear"),
            (self.quadratic, self.linear),
            _largest_steps(calibration),
            strict=True,
        ):
            if not 0 < step <= largest * (1 + 1e-9) or math.frexp(step)[0] != 0.5:
                raise NotCertifiedError(
                    f"Expected grid.{name}={step!r} to be a power of two of at most "
                    f"{largest:.3g}: a "
                    "coarser grid costs privacy that the noise does not pay for."
                )


def weight_step(weight_bound: float) -> float:
    """To which multiples the weights of a model from `input` are rounded: a power of two near
    2⁻²⁴η.
    """
    return _power_of_two_below(weight_bound * _WEIGHT_RESOLUTION)


def _largest_steps(calibration: InputCalibration | MomentCalibration) -> tuple[float, float]:
    d = calibration.setting.dimension
    if isinstance(calibration, InputCalibration):
        quadratic = linear = math.inf
        noise = calibration.q_noise
    else:
        # half of ξΔ for each of the two roundings, in the geometry ‖M‖_F² + ‖p‖²/τ²
        slack = ROUNDING * calibration.sensitivity / (1 + ROUNDING) / 2
        quadratic, linear = slack / d, slack * calibration.balance / math.sqrt(d)
        noise = calibration.m_noise
    resolution = _LEAST_RESOLUTION[calibration.mechanism]
    return min(quadratic, noise * resolution), min(linear, calibration.p_noise * resolution)


def _power_of_two_below(value: float) -> float:
    return math.ldexp(0.5, math.frexp(value)[1])
