"""Numbers within public bounds, and labels that are made from them by a threshold."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from blurfit import validate
from blurfit.arrays import AnyArray, FloatArray
from blurfit.errors import InvalidValueError
from blurfit.schema.content import NO, NO_WORDING, YES, Wording
from blurfit.schema.declared import as_number, as_text, assign, check_words, said_besides
from blurfit.schema.table import numbers, refuse_first
from blurfit.schema.unsaid import scaled_or_unsaid, unsaid_columns, unscaled_or_unsaid

Outside = Literal["clip", "refuse"]
OUTSIDE: tuple[Outside, ...] = get_args(Outside)
SMALLEST_WIDTH, LARGEST_WIDTH = 1e-300, 1e301  # of bounds: safe to divide by, and to divide


@dataclass(frozen=True)
class Numeric:
    """z = 2(v − lower)/(upper − lower) − 1, which is exactly −1 and +1 at the two bounds.

    What lies outside them is moved to the nearer one (`outside="clip"`), or the contributor is
    asked to do so ("refuse": for typing errors). **Either way everybody counts, whatever the
    answers.** That is needed: the promise is for one person's record being another one, and takes
    the number of contributors to be the same. If a record could be left out because of an answer,
    the count would reveal that answer, with certainty. So every record has an encoding, and no
    refusal offers to leave one out. Rounding keeps order, so that v ≤ upper gives v − lower ≤ upper
    − lower as computed, and |z| ≤ 1 to the last bit.

    >>> Numeric("age", 0, 100).scale(np.array([25, 130])).tolist()
    [-0.5, 1.0]
    """

    name: str
    lower: float
    upper: float
    outside: Outside = "clip"
    optional: bool = False
    wording: Wording = field(default=NO_WORDING, repr=False)

    def __post_init__(self) -> None:
        name = as_text(name=self.name)
        assign(
            self, name=name, lower=as_number(lower=self.lower), upper=as_number(upper=self.upper)
        )
        validate.one_of(OUTSIDE, outside=self.outside)
        check_words(self, (), measured=True)
        if not SMALLEST_WIDTH <= self.width <= LARGEST_WIDTH:
            raise InvalidValueError(
                f"Expected lower={self.lower!r} < upper={self.upper!r} for {self.name!r}, and not "
                f"closer than {SMALLEST_WIDTH} nor further apart than {LARGEST_WIDTH}: state the "
                "bounds that every value is publicly known to keep, if need be in other units."
            )

    @property
    def width(self) -> float:
        """upper − lower."""
        return self.upper - self.lower

    @property
    def centre(self) -> float:
        """(lower + upper)/2: the value at z = 0."""
        return self.lower / 2 + self.upper / 2

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of the one column that it becomes, and of the one for not saying."""
        return self.name, *unsaid_columns(self.name, self.optional)

    @property
    def affine(self) -> tuple[float, float]:
        """The slope and the constant of z = slope·v + constant."""
        return 2 / self.width, -(self.lower / self.width + self.upper / self.width)

    @property
    def affines(self) -> tuple[tuple[float, float], ...]:
        """`affine` for each column; a number that was not said is at the middle, z = 0."""
        return (self.affine, (1.0, 0.0))[: len(self.columns)]

    def above(self, threshold: float) -> "Label":
        """Whether the value is above the threshold, as a label to be learned."""
        if self.optional:
            raise InvalidValueError(
                f"Expected {self.name!r} not to be optional: a target is answered."
            )
        return Label(self.name, self.lower, self.upper, threshold, self.outside, self.wording)

    def inside(self, values: AnyArray) -> FloatArray:
        """The values, all of them within the bounds."""
        v = numbers(self.name, values)
        if self.lower <= v.min() and v.max() <= self.upper:
            return v
        if self.outside == "refuse":
            refuse_first(
                self.name,
                (v < self.lower) | (v > self.upper),
                f"which is not within lower={self.lower!r} and upper={self.upper!r}; correct it, "
                'or put the nearer bound in its place, which outside="clip" does by itself',
            )
        return np.clip(v, self.lower, self.upper)

    def scale(self, values: AnyArray) -> FloatArray:
        """Into [−1, 1]."""
        if self.optional:
            return scaled_or_unsaid(values, self._scale, self.centre)
        return self._scale(values)

    def _scale(self, values: AnyArray) -> FloatArray:
        z = self.inside(values) - self.lower
        z /= self.width
        z *= 2
        z -= 1
        return z

    def unscale(self, z: FloatArray) -> FloatArray:
        """The inverse of `scale`: (1 − t)·lower + t·upper, t = (z + 1)/2, exact at the two ends."""
        if self.optional:
            return unscaled_or_unsaid(z, self._unscale, np.nan)
        return self._unscale(z)

    def _unscale(self, z: FloatArray) -> FloatArray:
        t = (np.clip(z, -1, 1) + 1) / 2
        v: FloatArray = np.clip((1 - t) * self.lower + t * self.upper, self.lower, self.upper)
        return v

    def to_dict(self) -> dict[str, Any]:
        """As in the file."""
        bounds = {"lower": self.lower, "upper": self.upper, "outside": self.outside}
        return {"name": self.name, "kind": "numeric", **bounds, **said_besides(self)}


@dataclass(frozen=True)
class Label:
    """+1 where the value is above the threshold, and −1 otherwise: `Numeric(…).above(threshold)`.

    >>> Numeric("income", 0, 200_000).above(37_000).scale(np.array([37_000, 37_001])).tolist()
    [-1.0, 1.0]
    """

    name: str
    lower: float
    upper: float
    threshold: float
    outside: Outside = "clip"
    wording: Wording = field(default=NO_WORDING, repr=False)
    optional: ClassVar = False  # a target must be answered
    affines: ClassVar = ((2.0, -1.0),)  # z = 2v − 1 where v is 0 or 1

    def __post_init__(self) -> None:
        self.wording.refuse_unless_about(str(self.name), (YES, NO), measured=True)
        value, threshold = self.value, as_number(threshold=self.threshold)
        if not value.lower < threshold < value.upper:
            raise InvalidValueError(
                f"Expected threshold={threshold!r} for {value.name!r} strictly between "
                f"lower={value.lower!r} and upper={value.upper!r}: otherwise all labels are alike."
            )
        assign(self, name=value.name, lower=value.lower, upper=value.upper, threshold=threshold)

    @property
    def value(self) -> Numeric:
        """The column that the label is made from."""
        return Numeric(self.name, self.lower, self.upper, self.outside)

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of the one column that it becomes."""
        return (self.name,)

    def scale(self, values: AnyArray) -> FloatArray:
        """To −1 and +1."""
        return np.where(self.value.inside(values) > self.threshold, 1.0, -1.0)

    def unscale(self, z: FloatArray) -> AnyArray:
        """Whether the value was above the threshold; the value itself is gone."""
        return np.asarray(z > 0)

    def to_dict(self) -> dict[str, Any]:
        """As in the file."""
        return {**self.value.to_dict(), "above": self.threshold, **self.wording.to_dict()}
