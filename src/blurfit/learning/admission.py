"""What no honest contributor sends, and is refused on arrival.

A submission is a record of bounded length and noise of known size, on a known grid, so three things
never happen: a number that is not finite, a number off the grid, and (almost never) a norm beyond

    ‖q̃‖² ≤ s_q²·χ²_d(R_q²/s_q²)      ‖p̃‖² ≤ s_p²·χ²_d(R_p²/s_p²)               (input)
    ‖M̃‖_F² ≤ s_m²·χ²_{d(d+1)/2}(R_q⁴/s_m²)   and p̃ as before                  (moment)

at probability γ/2 each, where χ²_k(θ) is the noncentral quantile and s the deviation of one
record's noise. M̃ is measured in the Frobenius norm, in which its noise is isotropic: E_jk beside
the diagonal has the variance s_m²/2 and counts twice.

**What it costs.** To refuse by value is to cut the noise's tail. Let n honest contributors be the
ones that the guarantee relies on. Without the cut the model is (ε, δ')-private; the cut changes
anything at all with probability at most nγ, so with it

    P(S) ≤ P_uncut(S) + nγ ≤ e^ε·Q_uncut(S) + δ' + nγ ≤ e^ε·Q(S) + δ' + (1 + e^ε)·nγ.

γ = min(10⁻¹², 10⁻⁴·δ/((1 + e^ε)·n)) keeps the last term within a tenth of the thousandth of δ that
an agreement keeps back (`blurfit.agreement.grid`). Where ε is so large that γ would leave floating
point, norms are not looked at.

The noise is discrete, and `input`'s p̃ dithered: both move a number by at most half a step, so each
norm by less than step·√k, which is added to the radius.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.errors import InvalidValueError
from blurfit.theory.calibration import InputCalibration
from blurfit.theory.quantiles import shifted_energy_ceiling

FloatArray = npt.NDArray[np.float64]

LARGEST_PROBABILITY = 1e-12
SHARE = 1e-4  # of δ
_LEAST_LOGARITHM = math.log(1e-290)


@dataclass(frozen=True)
class Screen:
    """The radii beyond which a submission is refused, and the steps that it must be made of."""

    quadratic_radius: float
    linear_radius: float
    quadratic_step: float
    linear_step: float
    squares: FloatArray  # how often each number of `quadratic` counts in its norm

    @classmethod
    def of(cls, agreement: Agreement) -> "Screen":
        """The screen of an agreement: everything follows from its calibration and its grid."""
        calibration, d = agreement.calibration, agreement.dimension
        setting, grid, gamma = calibration.setting, agreement.grid, refusal_probability(agreement)
        if isinstance(calibration, InputCalibration):
            squares, scale, shift = np.ones(d), calibration.q_noise, setting.q_bound
        else:
            rows, columns = np.triu_indices(d)
            squares = np.where(rows == columns, 1.0, 2.0)
            scale, shift = calibration.m_noise, setting.smoothness

        def radius(size: int, shift: float, scale: float, step: float) -> float:
            if gamma == 0:
                return math.inf
            energy = shifted_energy_ceiling(gamma / 2, size, shift, scale)
            return math.sqrt(energy) + step * math.sqrt(squares.sum() if size > d else size)

        return cls(
            radius(len(squares), shift, scale, grid.quadratic),
            radius(d, setting.p_bound, calibration.p_noise, grid.linear),
            grid.quadratic,
            grid.dither,
            squares,
        )

    def largest_steps(self) -> tuple[float, float]:
        """How many steps a number that passes can have, of `quadratic` and of `linear`."""
        return self.quadratic_radius / self.quadratic_step, self.linear_radius / self.linear_step

    def passes(self, numbers: FloatArray) -> npt.NDArray[np.bool_]:
        """Which rows an honest contributor could have sent."""
        k = len(self.squares)
        quadratic, linear = numbers[:, :k], numbers[:, k:]
        with np.errstate(over="ignore", invalid="ignore"):  # a NaN passes no comparison
            good = np.einsum("ij,ij,j->i", quadratic, quadratic, self.squares)
            good = good <= self.quadratic_radius**2
            good &= np.einsum("ij,ij->i", linear, linear) <= self.linear_radius**2
            parts = [1 / self.quadratic_step, 1 / self.linear_step]
            # powers of two, so these are exactly the quotients
            steps = numbers * np.repeat(parts, [k, numbers.shape[1] - k])
            whole = np.rint(steps)
            whole -= steps  # NaN where a number is not finite
            if whole.any():  # hardly ever; row by row is slow
                good &= (whole == 0).all(axis=1)
            return np.asarray(good)

    def require(self, numbers: FloatArray) -> None:
        """Refuse all rows for the first that does not pass."""
        good = self.passes(numbers)
        if not good.all():
            place = int(good.argmin())
            raise self.refuse(numbers[place], place)

    @np.errstate(over="ignore")
    def refuse(self, row: FloatArray, place: int) -> InvalidValueError:
        """Why a row did not pass, in words for whoever sent it."""
        k = len(self.squares)
        if not np.isfinite(row).all():
            wrong = f"the number {row[~np.isfinite(row)][0]}, which blurring never makes"
        elif not (_whole(row[None, :k] / self.quadratic_step)[0]):
            wrong = f"a number in quadratic that is no multiple of {self.quadratic_step}"
        elif not (_whole(row[None, k:] / self.linear_step)[0]):
            wrong = f"a number in linear that is no multiple of {self.linear_step}"
        else:
            size = math.hypot(*(row[:k] * np.sqrt(self.squares)))
            name, limit = "quadratic", self.quadratic_radius
            if size <= limit:
                name, size, limit = "linear", math.hypot(*row[k:]), self.linear_radius
            wrong = f"a norm of {size:.6g} in {name}, where noise hardly ever exceeds {limit:.6g}"
        return InvalidValueError(
            f"Submission {place} has {wrong}. Blur the record under this very agreement, with "
            "blurfit.perturb or the page that the service offers."
        )


def refusal_probability(agreement: Agreement) -> float:
    """γ: how likely an honest submission is refused, at most; 0 where norms are not looked at."""
    logarithm = (
        math.log(SHARE * agreement.delta)
        - np.logaddexp(0.0, agreement.epsilon)
        - math.log(agreement.quorum)
    )
    if logarithm < _LEAST_LOGARITHM:
        return 0.0
    return min(LARGEST_PROBABILITY, math.exp(logarithm))


def _whole(steps: FloatArray) -> npt.NDArray[np.bool_]:
    return np.asarray((np.rint(steps) == steps).all(axis=1))
