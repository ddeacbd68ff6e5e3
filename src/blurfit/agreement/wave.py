"""An agreement's place in a plan: which wave it is, what it follows, and the map that it announces.

The first wave sends the products of all columns, as any collection by `moment` does. A later wave
sends what its map makes of a record (`blurfit.theory.forms`). The map is public, and part of
the agreement's fingerprint, which every submission carries: so no submission of a wave can come
before its map. What else a wave states is checked against the plan
(`blurfit.agreement.plan.Plan.require`); that the noise keeps the promise *whatever map is
announced* is checked here and in `Agreement.verify`, before a record is read.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blurfit.agreement.lot import Lot
from blurfit.errors import InvalidValueError, OtherGroupError
from blurfit.json_reader import canonical
from blurfit.schema.columns import Categorical, Numeric
from blurfit.schema.schema import Schema
from blurfit.theory.forms import WaveForm, wave_form
from blurfit.theory.maps import Announced, GaugeMap, NewtonMap, PoissonNewton, map_from_dict
from blurfit.theory.planning import StageKind, Task
from blurfit.validate import whole

_FIELDS = {"plan", "number", "follows", "map", "people"}


@dataclass(frozen=True, eq=False)
class Wave:
    """Wave `number` of a plan.

    Attributes:
        plan: the plan's fingerprint.
        number: 1 for the first.
        follows: the SHA-256 of each earlier wave's release, in their order.
        chart: the public map from a record to what is blurred; None in the first wave.
        people: how many people each of the plan's waves waits for, by which the lot falls.
    """

    plan: str
    number: int
    people: tuple[int, ...]
    follows: tuple[str, ...] = ()
    chart: Announced | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wave) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(canonical(self.to_dict()))

    @property
    def quorum(self) -> int:
        """How many people this wave waits for."""
        return self.people[self.number - 1]

    @property
    def kind(self) -> StageKind:
        """What is sent: all products in the first wave, then what the map makes of a record."""
        if self.chart is None:
            return "joint"
        if isinstance(self.chart, GaugeMap):
            return "gauge"
        return "newton" if isinstance(self.chart, NewtonMap) else "residual"

    @property
    def lot(self) -> Lot:
        """By which it is decided who is in which wave."""
        return Lot(self.plan, self.people)

    def form(self, schema: Schema) -> WaveForm:
        """What is sent in a later wave; a map that does not fit the schema is refused."""
        if self.chart is None:
            raise InvalidValueError("Expected a map: the first wave has none, and sends products.")
        _refuse_other_targets(self.chart, schema)
        names = tuple(name for one in schema.questions for name in one.columns)
        return wave_form(self.chart, names, kept_columns(schema))

    def verify(self) -> None:
        """Refuse what no plan announces, before any record is read; the map is read afresh."""
        whole(number=self.number, **{f"people[{at}]": one for at, one in enumerate(self.people)})
        if self.number > len(self.people):
            raise InvalidValueError(
                f"Expected wave {self.number} to be one of the {len(self.people)} of its plan."
            )
        for mark in (self.plan, *self.follows):
            if not isinstance(mark, str) or not re.fullmatch("[0-9a-f]{64}", mark):
                raise InvalidValueError(f"Expected {mark!r} to be 64 hexadecimal digits.")
        if len(self.follows) != self.number - 1 or (self.chart is None) != (self.number == 1):
            raise InvalidValueError(
                f"Expected wave {self.number} to follow {self.number - 1} releases, with a map "
                "unless it is the first, and got "
                f"{len(self.follows)} releases and {'no' if self.chart is None else 'a'} map."
            )
        if self.chart is not None:
            map_from_dict(self.chart.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """As part of an agreement."""
        return {
            "plan": self.plan,
            "number": self.number,
            "follows": list(self.follows),
            "map": None if self.chart is None else self.chart.to_dict(),
            "people": list(self.people),
        }

    @classmethod
    def from_dict(cls, entry: Any) -> "Wave":
        """The inverse of `to_dict`; the map is checked."""
        if not isinstance(entry, Mapping) or set(entry) != _FIELDS:
            raise InvalidValueError(f"Expected a wave with the fields {sorted(_FIELDS)}.")
        chart, follows, people = entry["map"], entry["follows"], entry["people"]
        for name, value in (("follows", follows), ("people", people)):
            if not isinstance(value, list):
                raise InvalidValueError(f"Expected {name}={value!r} to be a list.")
        return cls(
            entry["plan"],
            entry["number"],
            tuple(people),
            tuple(follows),
            None if chart is None else map_from_dict(chart),
        )


def require_group(wave: Wave, groups: Sequence[int]) -> None:
    """Refuse people whom the lot has put into another group than the wave that collects.

    Raises:
        OtherGroupError: the first who is in another one comes too early, or too late.
    """
    other = next((one for one in groups if one != wave.number), wave.number)
    if other > wave.number:
        raise OtherGroupError(
            f"Group {wave.number} of {len(wave.people)} is asked now, and the lot has put you into "
            f"group {other}, which comes later. Nothing was kept. Come back with the same "
            f"invitation when group {other} is asked."
        )
    if other < wave.number:
        raise OtherGroupError(
            f"Group {wave.number} of {len(wave.people)} is asked now, and the lot had put you into "
            f"group {other}, which is complete. Nothing was kept, and nobody can change groups. "
            "Thank you for coming."
        )


def kept_columns(schema: Schema) -> tuple[int, ...]:
    """The places of the columns that maps speak of: all features', but a categorical's last level,
    which follows from the others.
    """
    kept: list[int] = []
    at = 0
    for one in schema.features:
        kept += range(at, at + len(one.columns) - isinstance(one, Categorical))
        at += len(one.columns)
    return tuple(kept)


def task_of(schema: Schema, *, counts: bool = False) -> Task:
    """What a plan for the schema's target learns; `counts` says that a number is a count."""
    target = schema.target
    if isinstance(target, Categorical):
        raise InvalidValueError(
            f"Expected a number or a label as the target of waves, and {target.name!r} has "
            "classes: collect them in one wave, or plan a label for each."
        )
    if not counts:
        return "number" if isinstance(target, Numeric) else "label"
    if not isinstance(target, Numeric) or target.lower != 0:
        raise InvalidValueError(
            f"Expected a number with lower bound 0 as a target of counts, and got {target.name!r}: "
            "state lower=0, and the largest count as upper."
        )
    return "count"


def _refuse_other_targets(chart: Announced, schema: Schema) -> None:
    """Refuse Newton's quadratic of a loss that is not the target's: labels or counts."""
    if not isinstance(chart, NewtonMap):
        task_of(schema)
        return
    if not isinstance(chart.loss, PoissonNewton):
        if task_of(schema) != "label":
            raise InvalidValueError(
                f"Expected a label as the target of a logistic map, and got {schema.target.name!r}."
            )
        return
    task_of(schema, counts=True)
    target = schema.target
    if isinstance(target, Numeric) and chart.loss.count_bound != target.upper:
        raise InvalidValueError(
            f"Expected count_bound={chart.loss.count_bound!r} to be {target.upper!r}, the schema's "
            f"largest {target.name!r}."
        )
