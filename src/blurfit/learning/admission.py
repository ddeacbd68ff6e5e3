"""What no honest contributor sends, and is refused on arrival.

A submission is a record of bounded length and noise of known size, on a known grid, so three things
never happen: a number that is not finite, a number off the grid, and (almost never) a norm beyond
the radius of `blurfit.agreement.radius`, which says what it costs to refuse that.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import NumberRun
from blurfit.agreement.radius import radii
from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError


@dataclass(frozen=True)
class Screen:
    """The radii beyond which a submission is refused, and the steps that it must be made of, for
    each part of the agreement.
    """

    parts: tuple[NumberRun, ...]
    radii: tuple[float, ...]

    @classmethod
    def of(cls, agreement: Agreement) -> "Screen":
        """The screen of an agreement: everything follows from its calibration and its grid."""
        return cls(agreement.parts, radii(agreement))

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
        """Why a row did not pass, in words for whoever sent it; of its numbers none is told."""
        wrong = "numbers that no honest contributor sends"
        if not np.isfinite(row).all():
            wrong = "a number that is not finite, which blurring never makes"
        else:
            for part, radius in zip(self.parts, self.radii, strict=True):
                some = row[part.numbers]
                size = math.hypot(*(some * np.sqrt(part.counts)))
                if not (np.rint(some / part.fine) == some / part.fine).all():
                    wrong = f"a number that is no multiple of {part.fine}"
                elif size > radius:
                    wrong = f"a norm above {radius:.6g}, which noise hardly ever exceeds"
                else:
                    continue
                break
        return InvalidValueError(
            f"Submission {place} has {wrong}. Blur the record under this very agreement, with "
            "blurfit.perturb or the page that the service offers."
        )
