"""What no honest contributor sends, and is refused on arrival.

A submission is a record of bounded length and noise of known size, on a known grid, so three things
never happen: a number that is not finite, a number off the grid, and (almost never) a norm beyond

    ‖q̃‖² ≤ s_q²·χ²_d(R_q²/s_q²)      ‖p̃‖² ≤ s_p²·χ²_d(R_p²/s_p²)               (input)
    ‖M̃‖_F² ≤ s²·χ²_k(R²/s²)                                                     (moment)

where χ²_k(θ) is the noncentral quantile at probability γ, shared among the parts of a submission,
and s the deviation of one record's noise. M̃ holds the k products that are sent, R bounds them, and
they are measured in the Frobenius norm, in which their noise is isotropic: off the diagonal it has
the variance s²/2 and counts twice.

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
from blurfit.agreement.numbers import Part
from blurfit.errors import InvalidValueError
from blurfit.theory.quantiles import shifted_energy_ceiling

FloatArray = npt.NDArray[np.float64]

LARGEST_PROBABILITY = 1e-12
SHARE = 1e-4  # of δ
_LEAST_LOGARITHM = math.log(1e-290)


@dataclass(frozen=True)
class Screen:
    """The radii beyond which a submission is refused, and the steps that it must be made of, for
    each part of the agreement.
    """

    parts: tuple[Part, ...]
    radii: tuple[float, ...]

    @classmethod
    def of(cls, agreement: Agreement) -> "Screen":
        """The screen of an agreement: everything follows from its calibration and its grid."""
        parts, gamma = agreement.parts, refusal_probability(agreement)

        def radius(part: Part) -> float:
            if gamma == 0:
                return math.inf
            size = len(part.counts)
            scale = float(part.deviations[0] * math.sqrt(part.counts[0]))
            energy = shifted_energy_ceiling(gamma / len(parts), size, part.bound, scale)
            return math.sqrt(energy) + part.step * math.sqrt(part.counts.sum())

        return cls(parts, tuple(radius(part) for part in parts))

    def largest_steps(self) -> tuple[float, ...]:
        """How many steps a number that passes can have, in each part."""
        return tuple(
            radius / part.fine for part, radius in zip(self.parts, self.radii, strict=True)
        )

    def passes(self, numbers: FloatArray) -> npt.NDArray[np.bool_]:
        """Which rows an honest contributor could have sent."""
        good = np.ones(len(numbers), dtype=bool)
        with np.errstate(over="ignore", invalid="ignore"):  # a NaN passes no comparison
            for part, radius in zip(self.parts, self.radii, strict=True):
                some = numbers[:, part.numbers]
                good &= np.einsum("ij,ij,j->i", some, some, part.counts) <= radius**2
                steps = some * (1 / part.fine)  # a power of two, so these are the quotients
                whole = np.rint(steps)
                whole -= steps  # NaN where a number is not finite
                if whole.any():  # hardly ever; row by row is slow
                    good &= (whole == 0).all(axis=1)
        return good

    def require(self, numbers: FloatArray) -> None:
        """Refuse all rows for the first that does not pass."""
        good = self.passes(numbers)
        if not good.all():
            place = int(good.argmin())
            raise self.refuse(numbers[place], place)

    @np.errstate(over="ignore")
    def refuse(self, row: FloatArray, place: int) -> InvalidValueError:
        """Why a row did not pass, in words for whoever sent it."""
        wrong = "numbers that no honest contributor sends"
        if not np.isfinite(row).all():
            wrong = f"the number {row[~np.isfinite(row)][0]}, which blurring never makes"
        else:
            for part, radius in zip(self.parts, self.radii, strict=True):
                some = row[part.numbers]
                size = math.hypot(*(some * np.sqrt(part.counts)))
                if not (np.rint(some / part.fine) == some / part.fine).all():
                    wrong = f"a number that is no multiple of {part.fine}"
                elif size > radius:
                    wrong = f"a norm of {size:.6g}, where noise hardly ever exceeds {radius:.6g}"
                else:
                    continue
                break
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
