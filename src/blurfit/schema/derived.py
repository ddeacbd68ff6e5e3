"""Columns that are computed on the device from answers that are given anyway.

| derived | columns | what a record has in it |
| --- | --- | --- |
| `Bands("pay", edges=[20, 40])` | one for each band | one 1 among zeros: the band of the number |
| `Cross("sex", "region")` | one for each pair of levels | one 1 among zeros: the pair |
| `Product("age", "hours")` | one | the product of the two numbers, each scaled to [−1, 1] |
| `Condition("works", "hours", above=0)` | one | ±1: a number is above it, or a choice is a level |

Nobody is asked anything more. The definition is part of the schema, and so of the agreement and its
fingerprint; edges, thresholds and levels are public and stated beforehand, never taken from
answers.

**The promise stays.** Each of them adds at most 1 to ‖z‖², as a question does: one-hot columns have
norm 1, the one-hot code of a pair of levels is one-hot, and |v₁v₂| ≤ 1. So a derived column is a
question like any other for the bounds ‖x‖ ≤ 1 and ρ² = Σω² (`blurfit.schema.columns`,
`blurfit.theory.forms`), and the sensitivities proved from them hold as they are: a record is still
one vector z within the ball, whatever function of the answers its entries are. In floating point a
product of two numbers within [−1, 1] is within [−1, 1], since rounding keeps order.

Answers that need not be given have no derived columns: what the silent would have said is unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from blurfit.arrays import AnyArray
from blurfit.errors import InvalidValueError
from blurfit.json_reader import canonical
from blurfit.schema.columns import (
    Binary,
    Categorical,
    Label,
    Numeric,
    Question,
    as_number,
    as_text,
    assign,
)
from blurfit.schema.table import refuse_keys
from blurfit.schema.wording import NO_WORDING, WORDING_KEYS, Wording, wording_from


@dataclass(frozen=True, init=False)
class Bands(Categorical):
    """The band that a number is in, from edge to edge: a level for each.

    >>> Bands("pay", edges=[20, 40]).levels
    ('under 20', '20 to 40', '40 or more')
    """

    of: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    kind: ClassVar = "bands"

    def __init__(
        self,
        of: str,
        edges: Sequence[float],
        name: str | None = None,
        wording: Wording = NO_WORDING,
    ) -> None:
        if isinstance(edges, str | bytes) or not isinstance(edges, Sequence) or not edges:
            raise InvalidValueError(f"Expected edges={edges!r} to be a list of numbers.")
        cut = tuple(as_number(edge=edge) for edge in edges)
        if any(one >= other for one, other in pairwise(cut)):
            raise InvalidValueError(f"Expected edges={edges!r} to grow from each to the next.")
        said = [canonical(edge).decode() for edge in cut]  # as pages write them
        middle = [f"{one} to {other}" for one, other in pairwise(said)]
        levels = (f"under {said[0]}", *middle, f"{said[-1]} or more")
        assign(
            self,
            of=(as_text(of=of),),
            edges=cut,
            name=f"bands({of})" if name is None else name,
            levels=levels,
            optional=False,
            wording=wording,
        )
        self.__post_init__()

    def bound(self, sources: Sequence[Question]) -> "Bands":
        """Refuse a source that is no number, and edges that nobody is beyond."""
        (source,) = sources
        if not isinstance(source, Numeric):
            raise InvalidValueError(f"Expected {self.of[0]!r} to be a number, to have bands of it.")
        if not source.lower < self.edges[0] <= self.edges[-1] < source.upper:
            raise InvalidValueError(
                f"Expected the edges {list(self.edges)} of {self.name!r} strictly between "
                f"lower={source.lower!r} and upper={source.upper!r}."
            )
        return self

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return each row's band."""
        place = np.searchsorted(self.edges, sources[0].inside(values[0]), side="right")
        return np.asarray(np.array(self.levels, dtype=object)[place])

    def _stated(self) -> dict[str, Any]:
        return {"of": self.of[0], "edges": list(self.edges)}


@dataclass(frozen=True, init=False)
class Cross(Categorical):
    """A level for each pair of levels of two questions; a yes/no has the levels yes and no.

    Its levels are known once it stands in a schema beside the two.
    """

    of: tuple[str, ...] = ()
    kind: ClassVar = "cross"

    def __init__(
        self, one: str, other: str, name: str | None = None, wording: Wording = NO_WORDING
    ) -> None:
        of = as_text(one=one), as_text(other=other)
        if one == other:
            raise InvalidValueError(f"Expected two different questions, and got {one!r} twice.")
        name = f"{one}:{other}" if name is None else name
        assign(self, of=of, name=name, levels=("(a)", "(b)"), optional=False, wording=wording)

    def bound(self, sources: Sequence[Question]) -> "Cross":
        """Return it with the levels of its two questions."""
        found = Cross(self.of[0], self.of[1], self.name, self.wording)
        one, other = map(_levels_of, sources)
        assign(found, levels=tuple(f"{first}:{second}" for first in one for second in other))
        found.__post_init__()
        return found

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return each row's pair of levels."""
        one, other = (_places(*pair) for pair in zip(sources, values, strict=True))
        found = np.array(self.levels, dtype=object)[one * len(_levels_of(sources[1])) + other]
        return np.asarray(found, dtype=object)

    def _stated(self) -> dict[str, Any]:
        return {"of": list(self.of)}


@dataclass(frozen=True, init=False)
class Product(Numeric):
    """The product of two numbers, each scaled to [−1, 1] by its public bounds."""

    of: tuple[str, ...] = ()
    kind: ClassVar = "product"

    def __init__(
        self, one: str, other: str, name: str | None = None, wording: Wording = NO_WORDING
    ) -> None:
        assign(
            self,
            of=(as_text(one=one), as_text(other=other)),
            name=f"{one}:{other}" if name is None else name,
            lower=-1.0,
            upper=1.0,
            outside="clip",
            optional=False,
            wording=wording,
        )
        self.__post_init__()

    def bound(self, sources: Sequence[Question]) -> "Product":
        """Refuse sources that are no numbers."""
        if not all(isinstance(one, Numeric) for one in sources):
            raise InvalidValueError(
                f"Expected {' and '.join(self.of)} to be numbers, to multiply them: of choices, "
                "declare a Cross."
            )
        return self

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return each row's product."""
        one, other = (source.scale(column) for source, column in zip(sources, values, strict=True))
        return np.asarray(one * other)

    def _stated(self) -> dict[str, Any]:
        return {"of": list(self.of)}


@dataclass(frozen=True, init=False)
class Condition(Binary):
    """Whether a number is above a threshold, or a choice is one of its levels."""

    of: tuple[str, ...] = ()
    above: float | None = None
    level: str | None = field(default=None)
    kind: ClassVar = "condition"

    def __init__(
        self,
        name: str,
        of: str,
        *,
        above: float | None = None,
        level: str | None = None,
        wording: Wording = NO_WORDING,
    ) -> None:
        if (above is None) == (level is None):
            raise InvalidValueError(
                f"Expected above=… of a number or level=… of a choice for {name!r}, one of the two."
            )
        threshold = None if above is None else as_number(above=above)
        assign(
            self,
            name=name,
            of=(as_text(of=of),),
            above=threshold,
            level=level,
            optional=False,
            wording=wording,
        )
        self.__post_init__()

    def bound(self, sources: Sequence[Question]) -> "Condition":
        """Refuse a threshold that nobody is beyond, and a level that nobody can choose."""
        (source,) = sources
        if self.level is not None:
            if not isinstance(source, Categorical) or self.level not in source.levels:
                raise InvalidValueError(f"Expected {self.level!r} to be a level of {self.of[0]!r}.")
            return self
        assert self.above is not None
        if not isinstance(source, Numeric) or not source.lower <= self.above < source.upper:
            raise InvalidValueError(
                f"Expected {self.of[0]!r} to be a number whose bounds hold above={self.above!r}."
            )
        return self

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return 1 for each row of which it is true, else 0."""
        if self.level is not None:
            found = _places(sources[0], values[0]) == sources[0].levels.index(self.level)
        else:
            found = sources[0].inside(values[0]) > self.above
        return np.asarray(found, dtype=np.int64)

    def _stated(self) -> dict[str, Any]:
        rule = {"level": self.level} if self.above is None else {"above": self.above}
        return {"of": self.of[0], **rule}


Derived = Bands | Cross | Product | Condition
KINDS = ("bands", "cross", "product", "condition")


def derived_from_dict(entry: Mapping[str, Any]) -> Derived:
    """Read a derived column as a file describes it."""
    kind, words = entry["kind"], wording_from(entry)
    extra = {"bands": ("edges",)}.get(kind, ())
    optional = ("above", "level") if kind == "condition" else ()
    refuse_keys(entry, ("name", "kind", "of", *extra), (*optional, *WORDING_KEYS))
    name, of = entry["name"], entry["of"]
    if kind == "bands":
        return Bands(of, entry["edges"], name, words)
    if kind == "condition":
        rule = {key: entry[key] for key in optional if key in entry}
        return Condition(name, of, **rule, wording=words)
    if not isinstance(of, list) or len(of) != 2:
        raise InvalidValueError(f"Expected of={of!r} to name two questions.")
    return (Cross if kind == "cross" else Product)(of[0], of[1], name, words)


def _levels_of(source: Question) -> tuple[str, ...]:
    if isinstance(source, Categorical):
        return tuple(source.levels)
    if isinstance(source, Numeric | Label):
        raise InvalidValueError(
            f"Expected {source.name!r} to be a choice or a yes/no, to cross it: of a number, "
            "declare Bands or a Product."
        )
    return "yes", "no"


def _places(source: Any, values: AnyArray) -> Any:
    """Return the place of each row's level."""
    if isinstance(source, Categorical):
        return source.places(values)
    return (source.scale(values) < 0).astype(np.intp)
