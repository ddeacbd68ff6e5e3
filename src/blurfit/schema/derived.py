"""Columns that are computed on the device from answers that are given anyway.

| derived | columns | what a record has in it |
| --- | --- | --- |
| `Bands("pay", edges=[20, 40])` | one for each band | one 1 among zeros: the band of the number |
| `Curve("age", knots=[18, 40, 90])` | one for each knot | how near the number is to each: hats |
| `Poly("age", degree=2)` | one | Legendre's polynomial of the number, scaled to [−1, 1] |
| `Cross("sex", "region")` | one for each pair of levels | one 1 among zeros: the pair |
| `Product("age", "hours")` | one | the product of the two numbers, each scaled to [−1, 1] |
| `Product("age", "region")` | one for each level | the number at one's own level, 0 at the others |
| `Condition("works", "hours", above=0)` | one | ±1: a number is above it, or a choice is a level |

Nobody is asked anything more. Definitions are part of the schema and of the agreement's
fingerprint; edges, knots, thresholds and levels are public and stated beforehand, never taken from
answers. A question that is asked only for what is derived from it is one of the schema's `sources`.
Optional answers have no derived columns: what the silent would have said is unknown.

Each adds at most 1 to ‖z‖², as a question does, so every sensitivity stays. Hats, the proof and its
floating point are in `docs/theory/records.md`. Tested by `tests/schema/test_derived.py`.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, ClassVar, get_args

import numpy as np

from blurfit.data import AnyArray, FloatArray, canonical
from blurfit.errors import InvalidValueError
from blurfit.schema.columns import (
    NO_WORDING,
    WORDING_KEYS,
    Binary,
    Categorical,
    Label,
    Numeric,
    Question,
    Wording,
    as_number,
    as_text,
    assign,
)
from blurfit.schema.table import refuse_keys
from blurfit.wording import Series


def _define(column: Any, of: Sequence[Any], name: str, **more: Any) -> None:
    """Set the fields of a column that is computed from the answers to some questions."""
    assign(column, of=tuple(as_text(of=one) for one in of), name=name, optional=False, **more)
    column.__post_init__()


def _number(sources: Sequence[Question], why: str) -> Numeric:
    if not isinstance(sources[0], Numeric):
        raise InvalidValueError(
            "Expected {sources_name!r} to be a number, to {why}.",
            sources_name=sources[0].name,
            why=why,
        )
    return sources[0]


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
        cut = _growing(1, edges=edges)
        said = _written(cut)
        middle = [f"{one} to {other}" for one, other in pairwise(said)]
        levels = (f"under {said[0]}", *middle, f"{said[-1]} or more")
        name = f"bands({of})" if name is None else name
        _define(self, [of], name, edges=cut, levels=levels, wording=wording)

    def bound(self, sources: Sequence[Question]) -> "Bands":
        """Refuse a source that is no number, and edges that nobody is beyond."""
        source = _number(sources, "have bands of it")
        if not source.lower < self.edges[0] <= self.edges[-1] < source.upper:
            raise InvalidValueError(
                "Expected the edges {edges} of {name!r} strictly between "
                "lower={lower!r} and upper={upper!r}.",
                edges=list(self.edges),
                name=self.name,
                lower=source.lower,
                upper=source.upper,
            )
        return self

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return each row's band."""
        place = np.searchsorted(self.edges, sources[0].inside(values[0]), side="right")
        return np.asarray(np.array(self.levels, dtype=object)[place])

    def _stated(self) -> dict[str, Any]:
        return {"of": self.of[0], "edges": list(self.edges)}


@dataclass(frozen=True, init=False)
class Curve(Categorical):
    """A curve of a number, straight between knots: a share of 1 for each knot that it is near.

    As a categorical has levels, a curve has knots: both have columns that sum to 1. A model's
    coefficients are the values at the knots beside that at the reference knot.

    >>> Curve("age", knots=[18, 40, 90]).scale(np.array([29.0, 90.0])).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """

    of: tuple[str, ...] = ()
    knots: tuple[float, ...] = ()
    kind: ClassVar = "curve"

    def __init__(
        self,
        of: str,
        knots: Sequence[float],
        name: str | None = None,
        wording: Wording = NO_WORDING,
    ) -> None:
        at = _growing(3, knots=knots)
        name = f"curve({of})" if name is None else name
        _define(self, [of], name, knots=at, levels=tuple(_written(at)), wording=wording)

    def bound(self, sources: Sequence[Question]) -> "Curve":
        """Refuse a source that is no number, and knots where nobody can be."""
        source = _number(sources, "curve it")
        if not source.lower <= self.knots[0] <= self.knots[-1] <= source.upper:
            raise InvalidValueError(
                "Expected the knots {knots} of {name!r} from lower={lower!r} to upper={upper!r}.",
                knots=list(self.knots),
                name=self.name,
                lower=source.lower,
                upper=source.upper,
            )
        return self

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return each row's number, within its bounds."""
        return np.asarray(sources[0].inside(values[0]))

    def contains(self, number: Question) -> bool:
        """Tell whether a straight line over the whole range of the number is such a curve."""
        ends = self.knots[0], self.knots[-1]
        return isinstance(number, Numeric) and ends == (number.lower, number.upper)

    def scale(self, values: AnyArray) -> FloatArray:
        """Return the hats of each number, (n, K)."""
        knots = np.array(self.knots)
        x = np.clip(np.asarray(values, dtype=np.float64), knots[0], knots[-1])
        place = np.minimum(np.searchsorted(knots, x, side="right") - 1, len(knots) - 2)
        left = 1 - (x - knots[place]) / (knots[place + 1] - knots[place])
        found = np.zeros((*x.shape, len(knots)))
        np.put_along_axis(found, place[..., None], left[..., None], axis=-1)
        np.put_along_axis(found, place[..., None] + 1, (1 - left)[..., None], axis=-1)
        return found

    def _stated(self) -> dict[str, Any]:
        return {"of": self.of[0], "knots": list(self.knots)}


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
            raise InvalidValueError(
                "Expected two different questions, and got {value!r} twice.", value=one
            )
        name = f"{one}:{other}" if name is None else name
        assign(self, of=of, name=name, levels=("(a)", "(b)"), optional=False, wording=wording)

    def bound(self, sources: Sequence[Question]) -> "Cross":
        """Return it with the levels of its two questions."""
        found = copy(self)
        assign(found, levels=tuple(map(":".join, product(*map(levels_of, sources)))))
        found.__post_init__()
        return found

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return each row's pair of levels."""
        one, other = (_places(*pair) for pair in zip(sources, values, strict=True))
        found = np.array(self.levels, dtype=object)[one * len(levels_of(sources[1])) + other]
        return np.asarray(found, dtype=object)

    def _stated(self) -> dict[str, Any]:
        return {"of": list(self.of)}


class _Computed(Numeric):
    """A number in [−1, 1] that is computed from answers."""

    def _computed(self, of: Sequence[Any], name: str, **more: Any) -> None:
        _define(self, of, name, lower=-1.0, upper=1.0, outside="clip", **more)

    def scale(self, values: AnyArray) -> FloatArray:
        """Return what was computed as it is."""
        return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True, init=False)
class Product(_Computed):
    """The product of two numbers, each scaled to [−1, 1] by its public bounds.

    One of them may be a yes/no, which is ±1, or a choice: then there is a column for each of its
    levels, which has the number for those who chose the level, and 0 for all others.
    """

    of: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    kind: ClassVar = "product"

    def __init__(
        self, one: str, other: str, name: str | None = None, wording: Wording = NO_WORDING
    ) -> None:
        name = f"{one}:{other}" if name is None else name
        self._computed([one, other], name, wording=wording, levels=())

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of the one column, or of each level's."""
        return tuple(f"{self.name}={level}" for level in self.levels) or (self.name,)

    @property
    def affines(self) -> tuple[tuple[float, float], ...]:
        """Each column is what it is: z = v."""
        return ((1.0, 0.0),) * len(self.columns)

    def bound(self, sources: Sequence[Question]) -> "Product":
        """Return it with the levels of the choice, if one of its questions is one."""
        if not any(isinstance(one, Numeric) for one in sources) or any(
            isinstance(one, Label) for one in sources
        ):
            raise InvalidValueError(
                "Expected one of {of} to be a number, to multiply it: of choices, declare a Cross.",
                of=Series(self.of, " and "),
            )
        found, choices = copy(self), (one.levels for one in sources if isinstance(one, Categorical))
        assign(found, levels=tuple(next(choices, ())))
        return found

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return each row's product, (n,) or (n, levels)."""
        one, other = (source.scale(column) for source, column in zip(sources, values, strict=True))
        if self.levels:
            one, other = (part if part.ndim == 2 else part[:, None] for part in (one, other))
        return np.asarray(one * other)

    def _stated(self) -> dict[str, Any]:
        return {"of": list(self.of)}


@dataclass(frozen=True, init=False)
class Poly(_Computed):
    """Legendre's polynomial of one degree of a number that is scaled to [−1, 1].

    `poly(age, 3)` in a formula is age itself with those of degrees 2 and 3.
    """

    of: tuple[str, ...] = ()
    degree: int = 2
    kind: ClassVar = "poly"

    def __init__(
        self, of: str, degree: int, name: str | None = None, wording: Wording = NO_WORDING
    ) -> None:
        if type(degree) is not int or not 2 <= degree <= MOST_DEGREE:
            raise InvalidValueError(
                "Expected degree={degree!r} to be a whole number from 2 to {most_degree}: of "
                "degree 1 it is the number itself, and for more bends a Curve has less noise.",
                degree=degree,
                most_degree=MOST_DEGREE,
            )
        name = f"poly{degree}({of})" if name is None else name
        self._computed([of], name, wording=wording, degree=degree)

    def bound(self, sources: Sequence[Question]) -> "Poly":
        """Refuse a source that is no number."""
        _number(sources, "have powers")
        return self

    def derive(self, sources: Sequence[Any], values: Sequence[AnyArray]) -> AnyArray:
        """Return the polynomial at each row's number, by the recurrence, cut to [−1, 1]."""
        z = sources[0].scale(values[0])
        before, found = np.ones_like(z), z
        for k in range(1, self.degree):
            before, found = found, ((2 * k + 1) * z * found - k * before) / (k + 1)
        return np.asarray(np.clip(found, -1, 1))

    def _stated(self) -> dict[str, Any]:
        return {"of": self.of[0], "degree": self.degree}


@dataclass(frozen=True, init=False)
class Condition(Binary):
    """Whether a number is above a threshold, or a choice is one of its levels."""

    of: tuple[str, ...] = ()
    above: float | None = None
    level: str | None = None
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
                "Expected above=… of a number or level=… of a choice for {name!r}, one of the two.",
                name=name,
            )
        threshold = None if above is None else as_number(above=above)
        _define(self, [of], name, above=threshold, level=level, wording=wording)

    def bound(self, sources: Sequence[Question]) -> "Condition":
        """Refuse a threshold that nobody is beyond, and a level that nobody can choose."""
        (source,) = sources
        if self.above is None:
            if not isinstance(source, Categorical) or self.level not in source.levels:
                raise InvalidValueError(
                    "Expected {level!r} to be a level of {of!r}.", level=self.level, of=self.of[0]
                )
        elif not isinstance(source, Numeric) or not source.lower <= self.above < source.upper:
            raise InvalidValueError(
                "Expected {of!r} to be a number whose bounds hold above={above!r}.",
                of=self.of[0],
                above=self.above,
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


Derived = Bands | Curve | Cross | Product | Poly | Condition
KINDS: dict[str, Any] = {one.kind: one for one in get_args(Derived)}
MOST_DEGREE = 9
_RULES = {"bands": ("edges",), "curve": ("knots",), "poly": ("degree",)}


def derived_from_dict(entry: Mapping[str, Any]) -> Derived:
    """Read a derived column as a file describes it."""
    kind, of, words = entry["kind"], entry.get("of"), Wording.of(entry)
    needs, may = _RULES.get(kind, ()), ("above", "level") if kind == "condition" else ()
    refuse_keys(entry, ("name", "kind", "of", *needs), (*may, *WORDING_KEYS))
    given = {key: entry[key] for key in ("name", *needs, *may) if key in entry}
    if kind not in ("cross", "product"):
        return KINDS[kind](of=of, **given, wording=words)  # type: ignore[no-any-return]
    if not isinstance(of, list) or len(of) != 2:
        raise InvalidValueError("Expected of={of!r} to name two questions.", of=of)
    return KINDS[kind](*of, **given, wording=words)  # type: ignore[no-any-return]


def _growing(least: int, **named: Any) -> tuple[float, ...]:
    ((name, given),) = named.items()
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_list or len(given) < least:
        raise InvalidValueError(
            "Expected {name}={given!r} to be a list of numbers, at least {least} of them.",
            name=name,
            given=given,
            least=least,
        )
    found = tuple(as_number(**{name: one}) for one in given)
    if any(one >= other for one, other in pairwise(found)):
        raise InvalidValueError(
            "Expected {name}={given!r} to grow from each to the next.", name=name, given=given
        )
    return found


def _written(numbers: Sequence[float]) -> list[str]:
    """Return numbers as pages write them."""
    return [canonical(number).decode() for number in numbers]


def levels_of(source: Question) -> tuple[str, ...]:
    """Return the levels that a question can be crossed by; a yes/no has yes and no."""
    if isinstance(source, Categorical):
        return tuple(source.levels)
    if isinstance(source, Numeric | Label):
        raise InvalidValueError(
            "Expected {source_name!r} to be a choice or a yes/no, to cross it: of a number, "
            "declare Bands or a Product.",
            source_name=source.name,
        )
    return "yes", "no"


def _places(source: Any, values: AnyArray) -> Any:
    if isinstance(source, Categorical):
        return source.places(values)
    return (source.scale(values) < 0).astype(np.intp)
