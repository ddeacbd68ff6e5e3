"""A record as the one vector that joint moments blur, and back to the user's own units.

Every question of the schema, the target among them, becomes columns v: a number one in [−1, 1], a
yes/no or a label one of ±1, a categorical a 0/1 column for each level. Nothing here looks at data.

**Units.** A column is v = a·x + b of the user's value x, and the target's v_y = a_y·y + b_y. So a
model v_y = θ₀ + Σ θⱼvⱼ says, in the user's units,

    y = (θ₀ + Σ θⱼbⱼ − b_y)/a_y + Σ (θⱼaⱼ/a_y)·xⱼ,

an affine map of θ: covariances follow it. For a label y is its probability, (v_y + 1)/2.

**Reference levels.** The levels of a categorical, and the hats of a curve, sum to one, as the
constant does. A model that has a coefficient for each of them is written with contrasts instead:
each level against a reference, whose own coefficient moves into the constant. Alike for whatever
else repeats itself: the pairs of a `Cross` beside its own questions become interactions, those of a
reference level being left out, and a number at each level beside the number itself becomes the
difference from the reference level's slope. Each column that is left out is a sum of others, so
predictions stay the same. A product beside both of its questions is told in their units:
(a₁x₁ + b₁)(a₂x₂ + b₂) = a₁a₂·x₁x₂ + b₂v₁ + b₁v₂ − b₁b₂, of which all but the first is theirs.

`user_units_matrix` and `coefficients` do the same for weights of an encoded record x.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.columns import Categorical, Numeric, Question
from blurfit.schema.derived import Condition, Cross, Curve, Product, levels_of
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
    if isinstance(one, Curve):
        return tuple("hat" for _ in one.columns)
    if isinstance(one, Categorical):
        return tuple("level" for _ in one.columns)
    if one.optional:
        return ("numeric", "level")
    return tuple("numeric" if isinstance(one, Numeric) else "sign" for _ in one.columns)


@dataclass(frozen=True, eq=False)
class Units:
    """From coefficients of (1, v), a level's column for each level, to the user's units.

    `matrix` and `offset` are the affine map of the module's docstring, contrasts included. Its rows
    are the constant, each feature, and each level but the reference: `names` are their names, and
    `places` their own columns of (1, v). `columns` are those that predictions are made with: all,
    reference levels too, but for those that repeat others in another way, whose weights are 0.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    matrix: FloatArray
    offset: FloatArray
    scale: float  # a_y: one unit of v_y is 1/a_y of the target's
    columns: tuple[str, ...]
    fitted: tuple[int, ...]  # the places of the constant and of these

    def apply(self, coefficients: FloatArray) -> FloatArray:
        """Return the coefficients in the user's units."""
        found: FloatArray = self.matrix @ coefficients + self.offset
        return found

    def spread(self, weights: FloatArray) -> FloatArray:
        """Return weights of the constant and `columns` as weights of all columns."""
        found = np.zeros(self.matrix.shape[1])
        found[list(self.fitted)] = weights
        return found

    def rows(self, v: FloatArray) -> FloatArray:
        """Return what the coefficients of `names` multiply for people with these columns (n, k)."""
        kept = np.column_stack([np.ones(len(v)), v])[:, list(self.places)]
        square = self.scale * self.matrix[:, list(self.places)]
        return np.asarray(np.linalg.solve(square.T, kept.T).T)

    def without(self, names: Collection[str]) -> "Units":
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
    slope, constant = (1.0, 0.0) if log_odds else schema.question(target).affines[0]
    names = [INTERCEPT, *schema.columns_of(features)]
    matrix, left_out, repeats = independent(schema, features, references)
    in_units, at = np.eye(len(names)), 1
    for one in map(schema.question, features):
        own = slice(at, at + len(one.columns))
        slopes, constants = zip(*one.affines, strict=True)
        in_units[own, own] *= slopes
        in_units[0, own] += constants
        at = own.stop
    places = [place for place in range(len(names)) if place not in left_out]
    offset = np.zeros(len(places))
    offset[0] = -constant / slope
    told = tuple(names[place] for place in places)
    fitted = tuple(place for place in range(len(names)) if place not in repeats)
    columns = tuple(names[place] for place in fitted[1:])
    whole = (in_units @ matrix)[places] / slope
    return Units(told, tuple(places), whole, offset, slope, columns, fitted)


def independent(
    schema: Schema, features: Sequence[str], references: Mapping[str, str] | None = None
) -> tuple[FloatArray, set[int], set[int]]:
    """Return how each column of (1, v) is made of those that do not follow from others, a column of
    the matrix for each; the places of those that do; and of these all but reference levels.

    `references` says which level is left out of each categorical (default: its first). Of a yes/no
    in pairs it is no.
    """
    chosen = dict(references or {})
    asked = sorted(map(schema.question, features), key=lambda one: bool(one.of))
    if unknown := set(chosen) - {one.name for one in asked if isinstance(one, Categorical)}:
        raise InvalidValueError(
            f"Expected reference levels for categorical features only, and got {listed(unknown)}."
        )
    found = _Elimination(schema, features, chosen)
    for one in asked:
        beside = [schema.question(name) for name in one.of if name in features]
        if isinstance(one, Cross) and beside:
            found.pairs(one, beside)
        elif isinstance(one, Categorical):
            found.levels(one, beside)
        elif isinstance(one, Product):
            found.product(one, beside)
        elif isinstance(one, Condition) and one.level is not None and beside:
            found.leave(found.places[one.name], 2 * found.has(beside[0], one.level) - found.one)
    return found.matrix, found.left_out, found.left_out - found.bases


class _Elimination:
    """Leaves columns out one after the other, each told as a sum of those that stay."""

    def __init__(
        self, schema: Schema, features: Sequence[str], references: Mapping[str, str]
    ) -> None:
        self.schema, self.references = schema, references
        self.places = {name: at for at, name in enumerate(schema.columns_of(features), start=1)}
        self.matrix, self.left_out = np.eye(1 + len(self.places)), set[int]()
        self.bases = set[int]()

    @property
    def one(self) -> FloatArray:
        """The constant."""
        return self.matrix[:, 0]

    def leave(self, place: int, expression: FloatArray) -> None:
        """Leave a column out, which is this sum of others."""
        self.matrix[:, place] = expression
        self.left_out.add(place)

    def reference(self, one: Question) -> str:
        """Return the level that others are compared with."""
        if not isinstance(one, Categorical):
            return "no"
        level = self.references.get(one.name, one.levels[0])
        if f"{one.name}={level}" not in one.columns:
            raise InvalidValueError(
                f"Expected the reference level {level!r} of {one.name!r} to be one of "
                f"{listed(one.levels)}."
            )
        return level

    def has(self, one: Question, level: str) -> FloatArray:
        """Tell whether a question is answered by a level, 0 or 1, as a sum of columns."""
        if isinstance(one, Categorical):
            return self.matrix[:, self.places[f"{one.name}={level}"]]
        sign = 1 if level == "yes" else -1
        return (self.one + sign * self.matrix[:, self.places[one.name]]) / 2

    def rest(self, whole: FloatArray, own: Iterable[int], place: int) -> FloatArray:
        """Return what the others leave of their sum to one of them."""
        others = [at for at in own if at != place]
        return np.asarray(whole - self.matrix[:, others].sum(axis=1))

    def levels(self, one: Categorical, beside: Sequence[Question]) -> None:
        """Leave the reference level out: all sum to 1. Of a curve beside its own number, whose line
        it contains, another knot as well.
        """
        own = [self.places[name] for name in one.columns]
        base = self.places[f"{one.name}={self.reference(one)}"]
        if isinstance(one, Curve) and beside and one.contains(beside[0]):
            end = own[-1] if base != own[-1] else own[0]
            z = np.asarray(beside[0].scale(np.array(one.knots)))
            middle = float(z[own.index(base)])
            line = self.matrix[:, self.places[beside[0].name]] - middle * self.one
            for at, far in zip(own, z - middle, strict=True):
                if at not in (base, end):
                    line = line - far * self.matrix[:, at]
            self.leave(end, line / (z[own.index(end)] - middle))
        self.leave(base, self.rest(self.one, own, base))
        self.bases.add(base)

    def product(self, one: Product, beside: Sequence[Question]) -> None:
        """Tell a product in the units of its questions, if both are there; and leave the reference
        level's slope out if the number itself is there, as all of them sum to it.
        """
        own = [self.places[name] for name in one.columns]
        sources = [self.schema.question(name) for name in one.of]
        whole = len(beside) == len(set(one.of)) == 2
        if not one.levels:
            if whole:
                (a, b), (c, d) = (each.affines[0] for each in sources)
                first, last = (self.matrix[:, self.places[each.name]] for each in sources)
                self.matrix[:, own[0]] *= a * c
                self.matrix[:, own[0]] += d * first + b * last - b * d * self.one
            return
        choice = next(each for each in sources if isinstance(each, Categorical))
        number = next(each for each in sources if each is not choice)
        if whole:
            slope, constant = number.affines[0]
            for place, level in zip(own, one.levels, strict=True):
                self.matrix[:, place] *= slope
                self.matrix[:, place] += constant * self.has(choice, level)
        if number in beside:
            base = own[one.levels.index(self.reference(choice))]
            total = self.matrix[:, self.places[number.name]]
            self.leave(base, self.rest(total, own, base))

    def pairs(self, one: Cross, beside: Sequence[Question]) -> None:
        """Leave out each pair with the reference level of a question that is there itself: the
        pairs with one level of the other question sum to that level.
        """
        first, last = sources = [self.schema.question(name) for name in one.of]
        levels = [list(levels_of(each)) for each in sources]
        own = np.reshape(
            [self.places[name] for name in one.columns], [len(each) for each in levels]
        )
        i, j = (each.index(self.reference(by)) for each, by in zip(levels, sources, strict=True))
        rows, columns = range(len(levels[0])), range(len(levels[1]))
        if last in beside:  # its reference comes last, when all else of its row is known
            for column in sorted(columns, key=lambda at: at == j):
                if first in beside and column == j:
                    continue
                whole = self.has(last, levels[1][column])
                self.leave(own[i, column], self.rest(whole, own[:, column], own[i, column]))
        if first in beside:
            for row in sorted(rows, key=lambda at: at == i):
                whole = self.has(first, levels[0][row])
                self.leave(own[row, j], self.rest(whole, own[row], own[row, j]))


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
