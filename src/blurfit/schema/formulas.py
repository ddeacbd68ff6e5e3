"""Formulas, such as `income ~ curve(age) + C(region)*sex`.

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
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from blurfit.errors import InvalidValueError, optional
from blurfit.schema.columns import Categorical, Feature, Numeric
from blurfit.schema.derived import Bands, Cross, Curve, Poly, Product
from blurfit.schema.schema import Schema
from blurfit.schema.table import listed
from blurfit.wording import Series

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
            "Expected the target {aim!r} to be one of {listed}: the agreement says "
            "that only these may be predicted.",
            aim=aim,
            listed=listed(targets),
        )
    features: dict[str, None] = {}
    references: dict[str, str] = {}
    for term in terms:
        for name, reference in _columns(term, text, schema):
            if name == aim:
                raise InvalidValueError(
                    "Expected {aim!r} on one side of ~ only, in {text!r}.", aim=aim, text=text
                )
            if aim in schema.question(name).of or name in schema.question(aim).of:
                raise InvalidValueError(
                    "Expected features in {text!r} that do not tell the target: {name!r} and "
                    "{aim!r} are computed from one another.",
                    text=text,
                    name=name,
                    aim=aim,
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
    target, terms = _terms(text, list(columns), set(columns), ADD_COLUMN)
    if target.call or len(target.of) > 1 or target.of[0] in columns:
        raise InvalidValueError(
            "Expected the name of y before ~ in {text!r}, and not {target_text!r}.",
            text=text,
            target_text=target.text,
        )
    features: dict[str, Any] = {}
    references: dict[str, str] = {}
    for term in terms:
        if unknown := [name for name in term.of if name not in columns]:
            raise InvalidValueError(
                "Expected {listed} in {text!r} to be among the columns {listed_2} "
                "whose bounds are stated.",
                listed=listed(unknown),
                text=text,
                listed_2=listed(columns),
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


ADD_COLUMN = "Bounds are public: add the transformed column to X, with bounds of its own."
NEXT_COLLECTION = (
    "It needs the records themselves, and the release has sums of products of the columns as they "
    "were agreed on. Put the transformed column into the schema of the next collection."
)


def _terms(
    text: str, every: Sequence[str], known: set[str], remedy: str = NEXT_COLLECTION
) -> tuple[Term, list[Term]]:
    """Read the target and the terms of a formula with a constant.

    Args:
        text: The formula.
        every: What a dot means.
        known: The names of all columns.
        remedy: What to do instead of a transformation.
    """
    parser = optional("formulaic.parser").DefaultFormulaParser()
    errors = optional("formulaic.errors")
    try:
        found = parser.get_terms(text, context={"__formulaic_variables_available__": list(every)})
    except (errors.FormulaInvalidError, errors.FormulaicError, SyntaxError) as error:
        raise InvalidValueError(
            "Expected a formula such as 'income ~ age + C(region)', and got {text!r}: {splitlines}",
            text=text,
            splitlines=str(error).splitlines()[0],
        ) from error
    sides = {
        side: [[str(factor.expr) for factor in term.factors] for term in terms]
        for side, terms in found._to_dict().items()
    }
    if set(sides) != {"lhs", "rhs"}:
        raise InvalidValueError(
            "Expected a target, ~ and features, such as 'income ~ age + C(region)', and got "
            "{text!r}.",
            text=text,
        )
    if len(sides["lhs"]) != 1:
        raise InvalidValueError(
            "Expected one column before ~ in {text!r}: a model has one target.", text=text
        )
    if ["1"] not in sides["rhs"]:
        raise InvalidValueError(
            "Expected a model with an intercept, and {text!r} leaves it out: drop the '- 1' or "
            "'+ 0'. Columns are centred by their public bounds, so that the origin means little.",
            text=text,
        )
    target, *terms = (
        _term(factors, text, known, remedy)
        for factors in (*sides["lhs"], *sides["rhs"])
        if factors != ["1"]
    )
    return target, terms


def _term(factors: Sequence[str], text: str, known: set[str], remedy: str) -> Term:
    each = [Term("", (one,)) if one in known else _call(one, text, remedy) for one in factors]
    if len(each) == 1:
        return each[0]
    if len(each) > 2 or any(one.call not in ("", "C") for one in each):
        raise InvalidValueError(
            "Expected interactions of two columns in {text!r}, and got {factors!r}: "
            "products of more are not in the release.",
            text=text,
            factors=Series(factors, ":"),
        )
    return Term("", (each[0].of[0], each[1].of[0]))


_POWER = re.compile(r"(?:I\(|\{)?(\w+) ?\*\* ?([2-9])[)}]?")


def _call(expression: str, text: str, remedy: str) -> Term:
    """Return curve(name), C(name, 'level') and the like; refuse what needs the records."""
    try:
        call: Any = ast.parse(expression, mode="eval").body
    except SyntaxError:
        call = None
    if isinstance(call, ast.Name):
        return Term("", (call.id,))
    if (power := _POWER.fullmatch(expression)) is not None:
        remedy = f"Write poly({power[1]}, {power[2]}) for powers up to {power[2]}."
    refused = InvalidValueError(
        "The formula {text!r} must have plain columns, and C, curve, bands and poly of them, got "
        "{expression!r}. {remedy}",
        text=text,
        expression=expression,
        remedy=remedy,
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
                "Expected {name!r} in {text!r} to be one of the columns {listed} of the release.",
                name=name,
                text=text,
                listed=listed(known),
            )
    if term.call == "C" and not isinstance(schema.question(term.of[0]), Categorical):
        raise InvalidValueError(
            "Expected {of!r} in {term_text!r} to be categorical in the schema: its levels "
            "had to be named before anything was collected.",
            of=term.of[0],
            term_text=term.text,
        )
    if term.call in ("", "C") and len(term.of) == 1:
        if term.of[0] in known:
            return [(term.of[0], term.more)]
        raise InvalidValueError(
            "Expected a column of the release in {text!r}, and {of!r} was asked only for "
            "what is derived from it: there are {listed}.",
            text=text,
            of=term.of[0],
            listed=listed(known),
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
        "Expected sums of columns in {text!r}, and got {what}, which is not in the release: it "
        "has products of two columns as they were agreed on. Declare it in the schema of the next "
        "collection: {declare}.",
        text=text,
        what=what,
        declare=declare.get(term.call, "Cross or Product"),
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
        raise InvalidValueError(
            "Expected {name!r} in {text!r} to be a number.", name=one.name, text=text
        )
    if term.call == "poly":
        return [one, *(Poly(one.name, degree) for degree in _degrees(term, text))]
    points = term.more
    if points is None or (isinstance(points, int) and not isinstance(points, bool)):
        count = KNOTS if points is None else points
        least = 3 if term.call == "curve" else 2
        if not least <= count <= 100:
            raise InvalidValueError(
                "Expected {least} to 100 knots or bands in {text!r}, and got {count}.",
                least=least,
                text=text,
                count=count,
            )
        even = np.linspace(one.lower, one.upper, count + (term.call == "bands")).tolist()
        points = even if term.call == "curve" else even[1:-1]
    return [(Curve if term.call == "curve" else Bands)(one.name, points)]


def _degrees(term: Term, text: str) -> tuple[int, ...]:
    if isinstance(term.more, bool) or not isinstance(term.more, int) or term.more < 2:
        raise InvalidValueError(
            "Expected a degree of at least 2 in {text!r}, as in poly({of}, 3).",
            text=text,
            of=term.of[0],
        )
    return tuple(range(2, term.more + 1))
