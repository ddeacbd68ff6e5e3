"""A record as the one vector that joint moments blur, and back to the user's own units.

Every question of the schema, the target among them, becomes columns v: a number one in [−1, 1], a
yes/no or a label one of ±1, a categorical a 0/1 column for each level. Nothing here looks at data.

**Units.** A column is v = a·x + b of the user's value x, and the target's v_y = a_y·y + b_y. So a
model v_y = θ₀ + Σ θⱼvⱼ says, in the user's units,

    y = (θ₀ + Σ θⱼbⱼ − b_y)/a_y + Σ (θⱼaⱼ/a_y)·xⱼ,

an affine map of θ: covariances follow it. For a label y is its probability, (v_y + 1)/2.

**Reference levels.** The levels of a categorical sum to one, as the constant does. A model that has
a coefficient for each of them is written with contrasts instead: each level against a reference,
whose own coefficient moves into the constant. Predictions stay the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Categorical, Label, Numeric, affines
from blurfit.schema.schema import Schema
from blurfit.schema.table import listed, read
from blurfit.theory.joint_form import ColumnKind, JointColumn, JointForm
from blurfit.theory.public_weights import Kind

Question = Numeric | Binary | Categorical | Label


def questions(schema: Schema) -> tuple[Question, ...]:
    """All columns that a record answers: the features in their order, then the target."""
    return (*schema.features, schema.target)


def question(schema: Schema, name: str) -> Question:
    """The question of that name."""
    for one in questions(schema):
        if one.name == name:
            return one
    raise InvalidValueError(
        f"Expected {name!r} to be one of the columns {listed(q.name for q in questions(schema))}."
    )


def kind_of(one: Question) -> Kind:
    """What public weights are chosen by: a number, a sign, or how many levels there are."""
    if isinstance(one, Categorical):
        return len(one.columns)
    if getattr(one, "optional", False):
        return 3  # low, high and not said: two coefficients, as of three levels
    return "numeric" if isinstance(one, Numeric) else "sign"


def columns_of(one: Question) -> tuple[str, ...]:
    """The names of the columns that a question becomes: its own, one for each level, and one for
    not saying where that is allowed.
    """
    return (one.name,) if isinstance(one, Label) else one.columns


def joint_form(schema: Schema, constant: float, weights: Sequence[float]) -> JointForm:
    """The form of a schema's records, with a public weight for each question."""
    asked = questions(schema)
    if len(weights) != len(asked):
        raise InvalidValueError(
            f"Expected {len(asked)} weights, one for each of {listed(q.name for q in asked)}, and "
            f"got {len(weights)}."
        )
    columns: list[JointColumn] = []
    for one, weight in zip(asked, weights, strict=True):
        names = columns_of(one)
        group = one.name if len(names) > 1 or isinstance(one, Categorical) else None
        columns += [
            JointColumn(name, weight, kind, group)
            for name, kind in zip(names, kinds_of(one), strict=True)
        ]
    return JointForm(constant, tuple(columns))


def kinds_of(one: Question) -> tuple[ColumnKind, ...]:
    """The kind of each of a question's columns; an optional yes/no may be 0, so it is no sign."""
    if isinstance(one, Categorical):
        return tuple("level" for _ in one.columns)
    if isinstance(one, Label):
        return ("sign",)
    if one.optional:
        return ("numeric", "level")
    return ("numeric",) if isinstance(one, Numeric) else ("sign",)


def values(schema: Schema, records: Any, names: Sequence[str] | None = None) -> FloatArray:
    """The columns v of some questions (all of them, if none are named): (n, k), or (k,) for one
    record.

    |v| ≤ 1 to the last bit, and a categorical has one 1 among its levels (`schema.columns`).
    Whoever does not say, where that is allowed, has a 1 of her own and zeros beside it
    (`schema.unsaid`).
    """
    asked = questions(schema) if names is None else [question(schema, name) for name in names]
    table = read(records, [one.name for one in asked])
    parts = [np.asarray(one.scale(table.columns[one.name])) for one in asked]
    found = np.column_stack([part.reshape(table.rows, -1) for part in parts])
    return found[0] if table.single else found


@dataclass(frozen=True, eq=False)
class Units:
    """From coefficients of (1, v), a level's column for each level, to the user's units.

    `matrix` and `offset` are the affine map of the module's docstring, contrasts included; `names`
    are those of its rows: the constant, each feature, each level but the reference.
    """

    names: tuple[str, ...]
    matrix: FloatArray
    offset: FloatArray
    scale: float  # a_y: one unit of v_y is 1/a_y of the target's

    def apply(self, coefficients: FloatArray) -> FloatArray:
        """The coefficients in the user's units."""
        found: FloatArray = self.matrix @ coefficients + self.offset
        return found

    def without(self, names: Sequence[str]) -> "Units":
        """The map to all coefficients but these."""
        rows = [row for row, name in enumerate(self.names) if name not in names]
        kept = tuple(self.names[row] for row in rows)
        return Units(kept, self.matrix[rows], self.offset[rows], self.scale)


def units(
    schema: Schema,
    target: str,
    features: Sequence[str],
    *,
    references: Mapping[str, str] | None = None,
    level: str | None = None,
    log_odds: bool = False,
) -> Units:
    """The map for a model of one target by some features.

    Args:
        schema: what the columns are.
        target: the question that is predicted.
        features: the questions that predict it.
        references: for a categorical the level that others are compared with (default: its first).
        level: for a categorical target, the class whose probability is told.
        log_odds: whether the model tells a label's log-odds, which have no unit.
    """
    chosen = dict(references or {})
    aim = question(schema, target)
    slope, constant = (1.0, 0.0) if log_odds else affines(aim)[0]
    if isinstance(aim, Categorical) and level not in aim.levels:
        raise InvalidValueError(f"Expected level={level!r} to be one of {listed(aim.levels)}.")
    names, rows, moved = ["(intercept)"], [], []
    at = 1
    for name in features:
        one = question(schema, name)
        width = len(columns_of(one))
        if isinstance(one, Categorical):
            reference = chosen.pop(name, one.levels[0])
            if reference not in one.levels:
                raise InvalidValueError(
                    f"Expected the reference level {reference!r} of {name!r} to be one of "
                    f"{listed(one.levels)}."
                )
            base = at + one.levels.index(reference)
            moved.append((base, 1.0))
            for place, column in enumerate(one.columns, start=at):
                if place != base:
                    names.append(column)
                    rows.append({place: 1.0, base: -1.0})
        else:
            for place, (column, (a, b)) in enumerate(
                zip(columns_of(one), affines(one), strict=True), start=at
            ):
                names.append(column)
                rows.append({place: a})
                moved.append((place, b))
        at += width
    if chosen:
        raise InvalidValueError(
            f"Expected reference levels for categorical features only, and got {listed(chosen)}."
        )
    matrix = np.zeros((len(names), at))
    matrix[0, 0] = 1.0
    for place, amount in moved:
        matrix[0, place] += amount
    for row, entries in enumerate(rows, start=1):
        for place, amount in entries.items():
            matrix[row, place] = amount
    offset = np.zeros(len(names))
    offset[0] = -constant / slope
    return Units(tuple(names), matrix / slope, offset, slope)
