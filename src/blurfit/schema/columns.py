"""The kinds of columns, each a way from public facts to [−1, 1] and back.

| kind | values | z |
| --- | --- | --- |
| `Numeric` | numbers in [lower, upper] | 2(v − lower)/(upper − lower) − 1 |
| `Binary` | 0 or 1, False or True | 2v − 1 |
| `Categorical` | one of the levels | one 1 among zeros, a column for each level |
| `Label` | numbers in [lower, upper] | +1 above the threshold, −1 otherwise; for targets only |

Whatever the data are, a feature adds at most 1 to ‖z‖², which is what privacy rests upon: so scales
come from what everyone knows beforehand, and never from the records. With `optional=True` a feature
may be left unsaid, which has a column of its own (`blurfit.schema.unsaid`). What people read is its
`wording` (`blurfit.schema.content`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from blurfit import validate
from blurfit.arrays import AnyArray, FloatArray
from blurfit.errors import InvalidValueError
from blurfit.schema.content import NO, NO_WORDING, YES, Wording, refuse_harmful
from blurfit.schema.table import codes, missing, numbers, refuse_first
from blurfit.schema.unsaid import (
    NOT_SAID,
    filled,
    scaled_or_unsaid,
    unsaid_column,
    unscaled_or_unsaid,
)

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
        name = _text(name=self.name)
        _set(self, name=name, lower=_number(lower=self.lower), upper=_number(upper=self.upper))
        validate.one_of(OUTSIDE, outside=self.outside)
        _check_words(self, (), measured=True)
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
        return _columns(self)

    @property
    def affine(self) -> tuple[float, float]:
        """The slope and the constant of z = slope·v + constant."""
        return 2 / self.width, -(self.lower / self.width + self.upper / self.width)

    def above(self, threshold: float) -> "Label":
        """Whether the value is above the threshold, as a label to be learned."""
        if self.optional:
            raise InvalidValueError(f"Expected {self.name!r} to be answered: a target must be.")
        return Label(self.name, self.lower, self.upper, threshold, self.outside, self.wording)

    def inside(self, values: AnyArray) -> FloatArray:
        """The values, all of them within the bounds."""
        v = numbers(self.name, values)
        if self.lower <= v.min() and v.max() <= self.upper:
            return v
        if self.outside == "refuse":
            refuse_first(
                self.name,
                values,
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
        return {"name": self.name, "kind": "numeric", **bounds, **_more(self)}


@dataclass(frozen=True)
class Binary:
    """z = 2v − 1 for v = 0 or 1, False or True.

    >>> Binary("married").scale(np.array([True, False])).tolist()
    [1.0, -1.0]
    """

    name: str
    optional: bool = False
    wording: Wording = field(default=NO_WORDING, repr=False)

    def __post_init__(self) -> None:
        _set(self, name=_text(name=self.name))
        _check_words(self, (YES, NO))

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of the one column that it becomes, and of the one for not saying."""
        return _columns(self)

    @property
    def affine(self) -> tuple[float, float]:
        """The slope and the constant of z = slope·v + constant."""
        return 2.0, -1.0

    def scale(self, values: AnyArray) -> FloatArray:
        """To −1 and +1."""
        if self.optional:
            return scaled_or_unsaid(values, self._scale, 0)
        return self._scale(values)

    def _scale(self, values: AnyArray) -> FloatArray:
        remedy = "and a binary column has 0 and 1, or False and True; map the others beforehand"
        v = numbers(self.name, values, remedy)
        refuse_first(self.name, values, (v != 0) & (v != 1), remedy)
        return 2 * v - 1

    def unscale(self, z: FloatArray) -> AnyArray:
        """The inverse of `scale`, as 0 and 1."""
        if self.optional:
            return unscaled_or_unsaid(z, lambda signs: (signs > 0).astype(np.int64), None)
        return (z > 0).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """As in the file."""
        return {"name": self.name, "kind": "binary", **_more(self)}


@dataclass(frozen=True)
class Categorical:
    """A column of zeros and ones for each level, with one 1 in each row.

    Levels are words. A number in the data stands for the level that writes it as a whole number (7
    and 7.0 for "7"), and a truth value for "True" or "False".

    >>> Categorical("sex", ["f", "m"]).scale(np.array(["m", "f"])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    name: str
    levels: Sequence[str]
    optional: bool = False
    wording: Wording = field(default=NO_WORDING, repr=False)

    def __post_init__(self) -> None:
        _set(self, name=_text(name=self.name))
        is_list = isinstance(self.levels, Sequence) and not isinstance(self.levels, str | bytes)
        levels = tuple(_level(level) for level in self.levels) if is_list else ()
        if len(levels) < 2 or len(set(levels)) < len(levels):
            raise InvalidValueError(
                f"Expected levels={self.levels!r} of {self.name!r} to be a list of at least two "
                "words, each of them once."
            )
        _set(self, levels=levels)
        _check_words(self, levels)
        if self.optional and NOT_SAID in levels:
            raise InvalidValueError(
                f"Expected other levels of {self.name!r} than {NOT_SAID!r}, which is the one for "
                "not saying if it is optional."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each level's column: "sex=f", "sex=m"; and of the one for not saying."""
        unsaid = (unsaid_column(self.name),) if self.optional else ()
        return (*(f"{self.name}={level}" for level in self.levels), *unsaid)

    @property
    def affine(self) -> tuple[float, float]:
        """The slope and the constant of z = slope·v + constant, where v is a level's 0 or 1."""
        return 1.0, 0.0

    def scale(self, values: AnyArray) -> FloatArray:
        """To one 1 among zeros."""
        return np.eye(len(self.columns))[self.places(values)]

    def places(self, values: AnyArray) -> npt.NDArray[np.intp]:
        """The place of each value among the columns, the last for whoever does not say."""
        if not self.optional:
            return codes(self.name, values, self.levels)
        silent = missing(values)
        found = codes(self.name, filled(values, silent, self.levels[0]), self.levels)
        found[silent] = len(self.levels)
        return found

    def unscale(self, z: FloatArray) -> AnyArray:
        """The inverse of `scale`: the level whose column is the largest."""
        words = np.array([*self.levels, None], dtype=object)
        return np.asarray(words[z.argmax(axis=-1)], dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """As in the file."""
        entry = {"name": self.name, "kind": "categorical", "levels": list(self.levels)}
        return {**entry, **_more(self)}


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

    def __post_init__(self) -> None:
        self.wording.refuse_unless_about(str(self.name), (YES, NO), measured=True)
        value, threshold = self.value, _number(threshold=self.threshold)
        if not value.lower < threshold < value.upper:
            raise InvalidValueError(
                f"Expected threshold={threshold!r} for {value.name!r} strictly between "
                f"lower={value.lower!r} and upper={value.upper!r}: otherwise all labels are alike."
            )
        _set(self, name=value.name, lower=value.lower, upper=value.upper, threshold=threshold)

    @property
    def value(self) -> Numeric:
        """The column that the label is made from."""
        return Numeric(self.name, self.lower, self.upper, self.outside)

    def scale(self, values: AnyArray) -> FloatArray:
        """To −1 and +1."""
        return np.where(self.value.inside(values) > self.threshold, 1.0, -1.0)

    def unscale(self, z: FloatArray) -> AnyArray:
        """Whether the value was above the threshold; the value itself is gone."""
        return np.asarray(z > 0)

    def to_dict(self) -> dict[str, Any]:
        """As in the file."""
        return {**self.value.to_dict(), "above": self.threshold, **self.wording.to_dict()}


Feature = Numeric | Binary | Categorical
Target = Numeric | Binary | Label | Categorical


def affines(one: Feature | Label) -> tuple[tuple[float, float], ...]:
    """a and b of v = a·x + b for each column; a label's x is 0 or 1, a level's too.

    A number that was not said has v = 0, which is x at the middle; a yes/no then is ½.
    """
    if isinstance(one, Label):
        return ((2.0, -1.0),)
    if isinstance(one, Categorical):
        return tuple(one.affine for _ in one.columns)
    return (one.affine, *(((1.0, 0.0),) if one.optional else ()))


def _columns(column: Numeric | Binary) -> tuple[str, ...]:
    return (column.name, unsaid_column(column.name)) if column.optional else (column.name,)


def _check_words(column: Any, answers: Sequence[str], *, measured: bool = False) -> None:
    if not isinstance(column.optional, bool):
        raise InvalidValueError(f"Expected optional={column.optional!r} to be True or False.")
    if not isinstance(column.wording, Wording):
        raise InvalidValueError(f"Expected wording={column.wording!r} to be a Wording.")
    column.wording.refuse_unless_about(column.name, answers, measured=measured)


def _more(column: Numeric | Binary | Categorical) -> dict[str, Any]:
    """What a column says beyond what it always says."""
    return {**({"optional": True} if column.optional else {}), **column.wording.to_dict()}


def _set(column: Any, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(column, name, value)


def _number(**named: Any) -> float:
    """The one named value as a finite float, and −0 as 0: equal schemas are written alike."""
    ((name, value),) = named.items()
    try:
        validate.finite(**named)
    except OverflowError as error:
        raise InvalidValueError(f"Expected {name} to be at most 1.8e308 in size.") from error
    return float(value) + 0.0


def _text(**named: Any) -> str:
    """The one named value as text that UTF-8 can write down."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or not value or any("\ud800" <= c <= "\udfff" for c in value):
        raise InvalidValueError(f"Expected {name}={value!r} to be a word, in Unicode.")
    refuse_harmful(name, value)
    return str(value)


def _level(value: Any) -> str:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return str(int(value)) if is_whole else _text(level=value)
