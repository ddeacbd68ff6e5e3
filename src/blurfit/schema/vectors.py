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

`user_units_matrix` and `coefficients` do the same for weights of an encoded record x.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.columns import Categorical, Numeric, Question
from blurfit.schema.schema import INTERCEPT, Coefficients, Schema
from blurfit.schema.table import listed
from blurfit.theory.forms import ColumnKind, JointColumn, JointForm
from blurfit.theory.planning import Kind


def kind_of(one: Question) -> Kind:
    """Return what public weights are chosen by: a number, a sign, or how many levels there are."""
    if isinstance(one, Categorical):
        return len(one.columns)
    if one.optional:
        return 3  # low, high and not said: two coefficients, as of three levels
    return "numeric" if isinstance(one, Numeric) else "sign"


def joint_form(
    asked: Sequence[Question], constant: float, weights: Sequence[float], *, counted: bool = True
) -> JointForm:
    """Return the form of the answers to some questions, with a public weight for each; `counted`
    as in `JointForm`.
    """
    if len(weights) != len(asked):
        raise InvalidValueError(
            f"Expected {len(asked)} weights, one for each of {listed(q.name for q in asked)}, and "
            f"got {len(weights)}."
        )
    columns: list[JointColumn] = []
    for one, weight in zip(asked, weights, strict=True):
        group = one.name if len(one.columns) > 1 or isinstance(one, Categorical) else None
        columns += [
            JointColumn(name, weight, kind, group)
            for name, kind in zip(one.columns, _kinds(one), strict=True)
        ]
    return JointForm(constant, tuple(columns), counted=counted)


def _kinds(one: Question) -> tuple[ColumnKind, ...]:
    """Return the kind of each of a question's columns; an optional yes/no may be 0, so no sign."""
    if isinstance(one, Categorical):
        return tuple("level" for _ in one.columns)
    if one.optional:
        return ("numeric", "level")
    return ("numeric",) if isinstance(one, Numeric) else ("sign",)


def values(schema: Schema, records: Any, names: Sequence[str] | None = None) -> FloatArray:
    """Return the columns v of some questions (all of them, if none are named): (n, k), or (k,) for
    one record.

    |v| ≤ 1 to the last bit, and a categorical has one 1 among its levels (`schema.columns`).
    Whoever does not say, where that is allowed, has a 1 of their own and zeros beside it.
    """
    chosen = schema.questions if names is None else [schema.question(name) for name in names]
    table = schema.read(records, chosen)
    parts = [np.asarray(one.scale(table.columns[one.name])) for one in chosen]
    found = np.column_stack([part.reshape(table.rows, -1) for part in parts])
    return found[0] if table.single else found


@dataclass(frozen=True, eq=False)
class Units:
    """From coefficients of (1, v), a level's column for each level, to the user's units.

    `matrix` and `offset` are the affine map of the module's docstring, contrasts included. Its rows
    are the constant, each feature, and each level but the reference: `names` are their names, and
    `places` their own columns of (1, v).
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    matrix: FloatArray
    offset: FloatArray
    scale: float  # a_y: one unit of v_y is 1/a_y of the target's

    def apply(self, coefficients: FloatArray) -> FloatArray:
        """Return the coefficients in the user's units."""
        found: FloatArray = self.matrix @ coefficients + self.offset
        return found

    def without(self, names: Sequence[str]) -> "Units":
        """Return the map to all coefficients but these."""
        rows = [row for row, name in enumerate(self.names) if name not in names]
        return replace(
            self,
            names=tuple(self.names[row] for row in rows),
            places=tuple(self.places[row] for row in rows),
            matrix=self.matrix[rows],
            offset=self.offset[rows],
        )


def units(
    schema: Schema,
    target: str,
    features: Sequence[str],
    *,
    references: Mapping[str, str] | None = None,
    log_odds: bool = False,
) -> Units:
    """Return the map for a model of one target by some features, the same for all of its classes.

    Args:
        schema: what the columns are.
        target: the question that is predicted.
        features: the questions that predict it.
        references: for a categorical the level that others are compared with (default: its first).
        log_odds: whether the model tells a label's log-odds, which have no unit.
    """
    chosen = dict(references or {})
    slope, constant = (1.0, 0.0) if log_odds else schema.question(target).affines[0]
    names = [INTERCEPT, *schema.columns_of(features)]
    matrix, at, left_out = np.eye(len(names)), 1, set()
    for one in map(schema.question, features):
        own = slice(at, at + len(one.columns))
        if isinstance(one, Categorical):
            reference = chosen.pop(one.name, one.levels[0])
            if reference not in one.levels:
                raise InvalidValueError(
                    f"Expected the reference level {reference!r} of {one.name!r} to be one of "
                    f"{listed(one.levels)}."
                )
            base = at + one.levels.index(reference)
            left_out.add(base)
            matrix[own, base] -= 1.0
            matrix[0, base] = 1.0
        else:
            slopes, constants = zip(*one.affines, strict=True)
            matrix[own, own] *= slopes
            matrix[0, own] += constants
        at = own.stop
    if chosen:
        raise InvalidValueError(
            f"Expected reference levels for categorical features only, and got {listed(chosen)}."
        )
    places = [place for place in range(len(names)) if place not in left_out]
    offset = np.zeros(len(places))
    offset[0] = -constant / slope
    told = tuple(names[place] for place in places)
    return Units(told, tuple(places), matrix[places] / slope, offset, slope)


def user_units_matrix(schema: Schema) -> tuple[FloatArray, FloatArray]:
    """Return T and t of (intercept, effects …) = T·w + t, ordered as `columns` but intercept first.

    Each column of x is s·(aⱼ·vⱼ + bⱼ), where s is 1/√m, vⱼ the user's value (a level's is 0 or
    1), and (aⱼ, bⱼ) the column's (slope, constant); the intercept's is s. Therefore

        w·x = Σ wⱼ·s·(aⱼ·vⱼ + bⱼ) + w₀·s = (w₀·s + Σ wⱼ·s·bⱼ) + Σ (wⱼ·s·aⱼ)·vⱼ

    and the effects are wⱼ·s·aⱼ: T has s·aⱼ on its diagonal, and s·bⱼ and s in its first row. A
    label's log-odds are w·x, so t = 0. A numeric target is centre + half·y, so all of T is
    taken `half` times, and t is `centre` for the intercept. The map is affine: a covariance V
    of the weights becomes T·V·Tᵀ.
    """
    d = schema.dimension
    effects = d - schema.intercept
    T, t = np.zeros((1 + effects, d)), np.zeros(1 + effects)
    affine = [pair for feature in schema.features for pair in feature.affines]
    T[1 + np.arange(effects), np.arange(effects)] = [slope for slope, _ in affine]
    T[0] = [*(constant for _, constant in affine), *([1.0] if schema.intercept else [])]
    half = 1.0
    if isinstance(schema.target, Numeric):
        half, t[0] = schema.target.width / 2, schema.target.centre
    with np.errstate(over="ignore"):  # refused on the next line
        T *= schema.scale * half
    if not np.isfinite(T).all():
        raise InfeasibleError(
            f"The effect of {schema.columns[int((~np.isfinite(T)).any(axis=0).argmax())]!r} on "
            f"{schema.target.name!r} is beyond 1.8e308 in these units; state one of them in "
            "others."
        )
    return T, t


def coefficients(schema: Schema, weights: npt.ArrayLike) -> Coefficients:
    """Return the weights of an encoded record x in the user's units: see `user_units_matrix`."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (schema.dimension,) or not np.isfinite(w).all():
        raise InvalidValueError(
            f"Expected weights={w.tolist()} to be {schema.dimension} finite numbers, one for "
            f"each of the columns {listed(schema.columns)}."
        )
    matrix, offset = user_units_matrix(schema)
    intercept, *effects = (matrix @ w + offset).tolist()
    return Coefficients(intercept, dict(zip(schema.columns, effects, strict=False)))
