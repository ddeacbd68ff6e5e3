"""Formulas over a release: `income ~ age + education + C(region)`, as statisticians write them.

Blurred second moments know sums of columns and nothing else. So a formula may name the columns of
the release, one by one or all others by a dot, and choose a categorical's reference level; whatever
would need the rows themselves (logarithms, powers, interactions) is refused by name. Parsed by
formulaic, which reads the formulas of R, patsy and statsmodels.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from blurfit.errors import InvalidValueError
from blurfit.optional import optional
from blurfit.schema.schema import Categorical, Schema
from blurfit.schema.table import listed


@dataclass(frozen=True)
class Formula:
    """One target, the questions that predict it, and reference levels where they are chosen."""

    target: str
    features: tuple[str, ...]
    references: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.target} ~ {' + '.join(self.features)}"


def parsed(text: str, schema: Schema, targets: Sequence[str] | None = None) -> Formula:
    """The formula in a text, or why it cannot be had from second moments.

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
    names = [one.name for one in schema.questions]
    sides = _sides(text, names)
    if len(sides["lhs"]) != 1 or len(sides["lhs"][0]) != 1:
        raise InvalidValueError(
            f"Expected one column before ~ in {text!r}: a model has one target."
        )
    (target,) = sides["lhs"][0]
    target, _ = _column(target, text, schema)
    if targets is not None and target not in targets:
        raise InvalidValueError(
            f"Expected the target {target!r} to be one of {listed(targets)}: the agreement says "
            "that only these may be predicted."
        )
    features: list[str] = []
    references: dict[str, str] = {}
    has_constant = False
    for term in sides["rhs"]:
        if [str(factor) for factor in term] == ["1"]:
            has_constant = True
            continue
        if len(term) != 1:
            raise InvalidValueError(
                f"Expected sums of columns in {text!r}, and got the interaction "
                f"{':'.join(map(str, term))!r}: products of two columns with a third are not in "
                "the release, which has products of two. It would need the records themselves."
            )
        name, reference = _column(term[0], text, schema)
        if name == target:
            raise InvalidValueError(f"Expected {target!r} on one side of ~ only, in {text!r}.")
        if name not in features:
            features.append(name)
        if reference is not None:
            references[name] = reference
    if not has_constant:
        raise InvalidValueError(
            f"Expected a model with an intercept, and {text!r} leaves it out: drop the '- 1' or "
            "'+ 0'. Columns are centred by their public bounds, so that the origin means little."
        )
    if not features:
        raise InvalidValueError(f"Expected at least one column after ~ in {text!r}.")
    return Formula(target, tuple(features), references)


def _sides(text: str, names: Sequence[str]) -> dict[str, list[list[Any]]]:
    parser = optional("formulaic.parser").DefaultFormulaParser()
    errors = optional("formulaic.errors")
    try:
        found = parser.get_terms(text, context={"__formulaic_variables_available__": list(names)})
    except (errors.FormulaInvalidError, errors.FormulaicError, SyntaxError) as error:
        raise InvalidValueError(
            f"Expected a formula such as 'income ~ age + C(region)', and got {text!r}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    sides = {
        side: [list(term.factors) for term in terms] for side, terms in found._to_dict().items()
    }
    if set(sides) != {"lhs", "rhs"}:
        raise InvalidValueError(
            f"Expected a target, ~ and features, such as 'income ~ age + C(region)', and got "
            f"{text!r}."
        )
    return sides


def _column(factor: Any, text: str, schema: Schema) -> tuple[str, str | None]:
    """The column that a factor names, and the reference level that it chooses, if any."""
    expression = str(factor.expr)
    known = {one.name: one for one in schema.questions}
    if expression in known:
        return expression, None
    name, reference = _categorical(expression)
    if name in known:
        if not isinstance(known[name], Categorical):
            raise InvalidValueError(
                f"Expected {name!r} in {expression!r} to be categorical in the schema: its levels "
                "had to be named before anything was collected."
            )
        return name, reference
    if name is not None or expression.isidentifier():
        raise InvalidValueError(
            f"Expected {name or expression!r} in {text!r} to be one of the columns "
            f"{listed(known)} of the release."
        )
    raise InvalidValueError(
        f"Expected plain columns in {text!r}, and got {expression!r}: a transformation needs the "
        "records themselves, and the release has sums of products of the columns as they were "
        "agreed on. Put the transformed column into the schema of the next collection."
    )


def _categorical(expression: str) -> tuple[str | None, str | None]:
    """The name and the reference level in C(name) or C(name, "level")."""
    try:
        call = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None, None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "C"):
        return None, None
    first, *rest = call.args
    if not isinstance(first, ast.Name) or call.keywords or len(rest) > 1:
        return None, None
    if not rest:
        return first.id, None
    if isinstance(rest[0], ast.Constant) and isinstance(rest[0].value, str):
        return first.id, rest[0].value
    return None, None
