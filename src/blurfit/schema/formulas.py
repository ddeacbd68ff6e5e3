"""Formulas, `income ~ curve(age) + C(region)*sex`, and their coefficients in the user's units.

Parsed by formulaic, which reads the formulas of R, patsy and statsmodels. Blurred second moments
know sums of columns and nothing else, so a formula names columns:

| in a formula | what it names |
| --- | --- |
| `age`, `.` | a column; all others that are asked |
| `C(region)`, `C(region, 'south')` | a choice, and the level that others are compared with |
| `curve(age)`, `bands(pay)` | the `Curve`, or the `Bands`, of a number |
| `poly(age, 3)` | the number with its Legendre polynomials of degrees 2 and 3: `Poly` |
| `sex:region`, `age:hours`, `age:region` | their `Cross`, or their `Product` |
| `region*sex` | `region + sex + region:sex` |
| `1` | nothing: the mean |

Of a release, these have to be declared in its schema; whatever would need the records themselves
(logarithms, other interactions) is refused by name (`parsed`). Of rows at hand they are declared
here, before anything is blurred, by public facts alone (`declared`): `curve(age)` has six knots
from bound to bound, `curve(age, 9)` nine, `curve(age, [18, 30, 90])` these; bands alike.

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
"""

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, optional
from blurfit.schema.columns import Categorical, Feature, Numeric, Question
from blurfit.schema.derived import Bands, Condition, Cross, Curve, Poly, Product, levels_of
from blurfit.schema.schema import INTERCEPT, Schema
from blurfit.schema.table import listed

KNOTS = 6  # of a curve of which nothing is said
_CALLS = ("C", "curve", "bands", "poly")


@dataclass(frozen=True)
class Formula:
    """One target, the questions that predict it, and reference levels where they are chosen."""

    target: str
    features: tuple[str, ...]
    references: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.target} ~ {' + '.join(self.features) or '1'}"


class Term(NamedTuple):
    """A part of a formula: a call's name or "", the columns it is of, and what more it says."""

    call: str
    of: tuple[str, ...]
    more: Any = None

    @property
    def text(self) -> str:
        """How it is written, without what more it says."""
        return f"{self.call}({self.of[0]})" if self.call else ":".join(self.of)


def parsed(text: str, schema: Schema, targets: Sequence[str] | None = None) -> Formula:
    """Return the formula in a text, or refuse what cannot be had from second moments.

    >>> from blurfit import Categorical, Numeric, Schema
    >>> schema = Schema(
    ...     [Numeric("age", 0, 100), Categorical("region", ["north", "south"])],
    ...     Numeric("income", 0, 1e5),
    ... )
    >>> str(parsed("income ~ .", schema))
    'income ~ age + region'
    >>> parsed("age ~ C(region, 'south')", schema).references
    {'region': 'south'}
    """
    every = [one.name for one in schema.plain]
    target, terms = _terms(text, every, {one.name for one in schema.questions})
    ((aim, _),) = _columns(target, text, schema)
    if targets is not None and aim not in targets:
        raise InvalidValueError(
            f"Expected the target {aim!r} to be one of {listed(targets)}: the agreement says "
            "that only these may be predicted."
        )
    features: dict[str, None] = {}
    references: dict[str, str] = {}
    for term in terms:
        for name, reference in _columns(term, text, schema):
            if name == aim:
                raise InvalidValueError(f"Expected {aim!r} on one side of ~ only, in {text!r}.")
            if aim in schema.question(name).of or name in schema.question(aim).of:
                raise InvalidValueError(
                    f"Expected features in {text!r} that do not tell the target: {name!r} and "
                    f"{aim!r} are computed from one another."
                )
            features[name] = None
            if reference is not None:
                references[name] = reference
    return Formula(aim, tuple(features), references)


def declared(
    text: str, columns: Mapping[str, Feature]
) -> tuple[Formula, tuple[Feature, ...], tuple[Feature, ...]]:
    """Return a formula over rows at hand, its features, and the columns that are only sources; the
    target is none of the columns, of which each is publicly known.
    """
    target, terms = _terms(text, list(columns), set(columns))
    if target.call or len(target.of) > 1 or target.of[0] in columns:
        raise InvalidValueError(
            f"Expected the name of y before ~ in {text!r}, and not {target.text!r}."
        )
    features: dict[str, Any] = {}
    references: dict[str, str] = {}
    for term in terms:
        if unknown := [name for name in term.of if name not in columns]:
            raise InvalidValueError(
                f"Expected {listed(unknown)} in {text!r} to be among the columns {listed(columns)} "
                "whose bounds are stated."
            )
        for one in _declare(term, columns, text):
            features[one.name] = one
        if term.call == "C" and term.more is not None:
            references[term.of[0]] = term.more
    used = {name for one in features.values() for name in one.of}
    sources = tuple(one for name, one in columns.items() if name in used and name not in features)
    return Formula(target.of[0], tuple(features), references), tuple(features.values()), sources


def target_of(text: str) -> str:
    """Return the name that stands before ~."""
    return text.partition("~")[0].strip()


def _terms(text: str, every: Sequence[str], known: set[str]) -> tuple[Term, list[Term]]:
    """Return the target and the terms of a formula with a constant; `every` is what a dot means."""
    parser = optional("formulaic.parser").DefaultFormulaParser()
    errors = optional("formulaic.errors")
    try:
        found = parser.get_terms(text, context={"__formulaic_variables_available__": list(every)})
    except (errors.FormulaInvalidError, errors.FormulaicError, SyntaxError) as error:
        raise InvalidValueError(
            f"Expected a formula such as 'income ~ age + C(region)', and got {text!r}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    sides = {
        side: [[str(factor.expr) for factor in term.factors] for term in terms]
        for side, terms in found._to_dict().items()
    }
    if set(sides) != {"lhs", "rhs"}:
        raise InvalidValueError(
            f"Expected a target, ~ and features, such as 'income ~ age + C(region)', and got "
            f"{text!r}."
        )
    if len(sides["lhs"]) != 1:
        raise InvalidValueError(
            f"Expected one column before ~ in {text!r}: a model has one target."
        )
    if ["1"] not in sides["rhs"]:
        raise InvalidValueError(
            f"Expected a model with an intercept, and {text!r} leaves it out: drop the '- 1' or "
            "'+ 0'. Columns are centred by their public bounds, so that the origin means little."
        )
    target, *terms = (
        _term(factors, text, known)
        for factors in (*sides["lhs"], *sides["rhs"])
        if factors != ["1"]
    )
    return target, terms


def _term(factors: Sequence[str], text: str, known: set[str]) -> Term:
    each = [Term("", (one,)) if one in known else _call(one, text) for one in factors]
    if len(each) == 1:
        return each[0]
    if len(each) > 2 or any(one.call not in ("", "C") for one in each):
        raise InvalidValueError(
            f"Expected interactions of two columns in {text!r}, and got {':'.join(factors)!r}: "
            "products of more are not in the release."
        )
    return Term("", (each[0].of[0], each[1].of[0]))


def _call(expression: str, text: str) -> Term:
    """Return curve(name), C(name, 'level') and the like; refuse what needs the records."""
    try:
        call: Any = ast.parse(expression, mode="eval").body
    except SyntaxError:
        call = None
    if isinstance(call, ast.Name):
        return Term("", (call.id,))
    refused = InvalidValueError(
        f"Expected plain columns in {text!r}, and got {expression!r}: a transformation needs the "
        "records themselves, and the release has sums of products of the columns as they were "
        "agreed on. Put the transformed column into the schema of the next collection."
    )
    is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    if not is_call or call.func.id not in _CALLS or call.keywords or not 1 <= len(call.args) <= 2:
        raise refused
    first, *rest = call.args
    try:
        name = first.id if isinstance(first, ast.Name) else ast.literal_eval(first)
        more = ast.literal_eval(rest[0]) if rest else None
    except ValueError:
        raise refused from None
    if not isinstance(name, str) or (call.func.id == "C" and not isinstance(more, str | None)):
        raise refused
    return Term(call.func.id, (name,), more)


def _columns(term: Term, text: str, schema: Schema) -> list[tuple[str, str | None]]:
    """Return the columns of a release that a term names, and the reference level, if any."""
    known = [one.name for one in schema.questions]
    for name in term.of:
        if name not in (*known, *(one.name for one in schema.sources)):
            raise InvalidValueError(
                f"Expected {name!r} in {text!r} to be one of the columns {listed(known)} of the "
                "release."
            )
    if term.call == "C" and not isinstance(schema.question(term.of[0]), Categorical):
        raise InvalidValueError(
            f"Expected {term.of[0]!r} in {term.text!r} to be categorical in the schema: its levels "
            "had to be named before anything was collected."
        )
    if term.call in ("", "C") and len(term.of) == 1:
        if term.of[0] in known:
            return [(term.of[0], term.more)]
        raise InvalidValueError(
            f"Expected a column of the release in {text!r}, and {term.of[0]!r} was asked only for "
            f"what is derived from it: there are {listed(known)}."
        )
    derived = [one for one in schema.features if sorted(one.of) == sorted(term.of)]
    if term.call == "poly":
        degrees = _degrees(term, text)
        found = [one.name for one in derived if isinstance(one, Poly) and one.degree in degrees]
        if len(found) == len(degrees) and term.of[0] in known:
            return [(name, None) for name in (term.of[0], *found)]
    else:
        kinds: dict[str, Any] = {"curve": Curve, "bands": Bands, "": Cross | Product}
        if found := [one.name for one in derived if isinstance(one, kinds[term.call])]:
            return [(found[0], None)]
    declare = {"curve": "Curve", "bands": "Bands", "poly": "Poly, one for each degree"}
    what = f"the interaction {term.text!r}" if len(term.of) > 1 else repr(term.text)
    raise InvalidValueError(
        f"Expected sums of columns in {text!r}, and got {what}, which is not in the release: it "
        "has products of two columns as they were agreed on. Declare it in the schema of the next "
        f"collection: {declare.get(term.call, 'Cross or Product')}."
    )


def _declare(term: Term, columns: Mapping[str, Feature], text: str) -> list[Any]:
    """Return the columns that a term stands for, derived from those at hand."""
    of = [columns[name] for name in term.of]
    if len(of) == 2:
        numbers = any(isinstance(one, Numeric) for one in of)
        return [(Product if numbers else Cross)(term.of[0], term.of[1])]
    (one,) = of
    if term.call in ("", "C"):
        return [one]
    if not isinstance(one, Numeric):
        raise InvalidValueError(f"Expected {one.name!r} in {text!r} to be a number.")
    if term.call == "poly":
        return [one, *(Poly(one.name, degree) for degree in _degrees(term, text))]
    points = term.more
    if points is None or (isinstance(points, int) and not isinstance(points, bool)):
        count = KNOTS if points is None else points
        least = 3 if term.call == "curve" else 2
        if not least <= count <= 100:
            raise InvalidValueError(
                f"Expected {least} to 100 knots or bands in {text!r}, and got {count}."
            )
        even = np.linspace(one.lower, one.upper, count + (term.call == "bands")).tolist()
        points = even if term.call == "curve" else even[1:-1]
    return [(Curve if term.call == "curve" else Bands)(one.name, points)]


def _degrees(term: Term, text: str) -> tuple[int, ...]:
    if isinstance(term.more, bool) or not isinstance(term.more, int) or term.more < 2:
        raise InvalidValueError(
            f"Expected a degree of at least 2 in {text!r}, as in poly({term.of[0]}, 3)."
        )
    return tuple(range(2, term.more + 1))


@dataclass(frozen=True, eq=False)
class Units:
    """From coefficients of (1, v), a level's column for each level, to the user's units.

    `matrix` and `offset` are the affine map of the module's docstring, contrasts included; `names`
    are those of its rows, and `places` their own columns of (1, v). `columns` are those that
    predictions are made with: all, reference levels too, but for those that repeat others in
    another way, whose weights are 0.
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

    `references` are the levels that others are compared with (default: each categorical's first);
    `log_odds` says that the model tells a label's log-odds, which have no unit.
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
    the matrix for each; the places of those that do; and of these all but reference levels. Of a
    yes/no in pairs the reference is no.
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
