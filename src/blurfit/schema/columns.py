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
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.arrays import AnyArray, FloatArray
from blurfit.errors import InvalidValueError
from blurfit.schema.content import NO, NO_WORDING, YES, Wording
from blurfit.schema.declared import as_level, as_text, assign, check_words, said_besides
from blurfit.schema.numeric import Label, Numeric
from blurfit.schema.table import codes, missing, numbers, refuse_first
from blurfit.schema.unsaid import (
    NOT_SAID,
    filled,
    scaled_or_unsaid,
    unsaid_columns,
    unscaled_or_unsaid,
)

__all__ = ["Binary", "Categorical", "Feature", "Label", "Numeric", "Question"]


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
        assign(self, name=as_text(name=self.name))
        check_words(self, (YES, NO))

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of the one column that it becomes, and of the one for not saying."""
        return self.name, *unsaid_columns(self.name, self.optional)

    @property
    def affines(self) -> tuple[tuple[float, float], ...]:
        """The slope and the constant of z = slope·v + constant, for each column; unsaid is ½."""
        return ((2.0, -1.0), (1.0, 0.0))[: len(self.columns)]

    def scale(self, values: AnyArray) -> FloatArray:
        """To −1 and +1."""
        if self.optional:
            return scaled_or_unsaid(values, self._scale, 0)
        return self._scale(values)

    def _scale(self, values: AnyArray) -> FloatArray:
        remedy = "which is neither 0 nor 1, nor False or True; map such values beforehand"
        v = numbers(self.name, values, remedy)
        refuse_first(self.name, (v != 0) & (v != 1), remedy)
        return 2 * v - 1

    def unscale(self, z: FloatArray) -> AnyArray:
        """The inverse of `scale`, as 0 and 1."""
        if self.optional:
            return unscaled_or_unsaid(z, lambda signs: (signs > 0).astype(np.int64), None)
        return (z > 0).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """As in the file."""
        return {"name": self.name, "kind": "binary", **said_besides(self)}


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
        assign(self, name=as_text(name=self.name))
        is_list = isinstance(self.levels, Sequence) and not isinstance(self.levels, str | bytes)
        levels = tuple(as_level(level) for level in self.levels) if is_list else ()
        if len(levels) < 2 or len(set(levels)) < len(levels):
            raise InvalidValueError(
                f"Expected levels={self.levels!r} of {self.name!r} to be a list of at least two "
                "words, each of them once."
            )
        assign(self, levels=levels)
        check_words(self, levels)
        if self.optional and NOT_SAID in levels:
            raise InvalidValueError(
                f"Expected levels of {self.name!r} other than {NOT_SAID!r}, which stands for "
                "people who do not answer an optional question."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each level's column: "sex=f", "sex=m"; and of the one for not saying."""
        said = (f"{self.name}={level}" for level in self.levels)
        return *said, *unsaid_columns(self.name, self.optional)

    @property
    def affines(self) -> tuple[tuple[float, float], ...]:
        """The slope and the constant of z = slope·v + constant, where v is a level's 0 or 1."""
        return ((1.0, 0.0),) * len(self.columns)

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
        return {**entry, **said_besides(self)}


Feature = Numeric | Binary | Categorical
Question = Feature | Label  # whatever a record answers; a label can only be the target
