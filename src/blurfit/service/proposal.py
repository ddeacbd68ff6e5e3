"""The agreement that a schema and a promise would give: for whoever is about to open a collection.

Nothing is kept and no record is read: the same choices give the same agreement, here or by
`Agreement.propose` in Python.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import Terms
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.json_reader import read_json
from blurfit.schema.schema import Schema


class Proposal(Terms, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schema, and everything that may be chosen; the rest of the agreement follows."""

    schema: dict[str, Any]


class PlanProposal(Proposal, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proposal for waves: as many as help, or so many at most; `counts` says that the target
    counts something.
    """

    waves: Literal["auto"] | Annotated[int, msgspec.Meta(ge=1, le=9)] = "auto"
    counts: bool = False


class Wish(Proposal, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proposal, and by how much its predictions may be off, in units of the target."""

    off: Annotated[float, msgspec.Meta(gt=0)] | None = None


_Kind = TypeVar("_Kind", bound=Proposal)
_Made = TypeVar("_Made")


def agreement_from(body: bytes) -> Agreement:
    """The agreement that a proposal in JSON gives.

    >>> agreement_from(b'''{"epsilon": 1, "delta": 1e-6, "quorum": 100, "schema": {
    ...     "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}],
    ...     "target": {"name": "smokes", "kind": "binary"}}}''').mechanism
    'moment'
    """
    return made(body, Proposal, lambda given, schema: Agreement.propose(schema, given))


def plan_from(body: bytes) -> Plan:
    """The plan that a proposal in JSON gives.

    >>> plan = plan_from(b'''{"epsilon": 1, "delta": 1e-6, "quorum": 100, "waves": 2, "schema": {
    ...     "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}],
    ...     "target": {"name": "smokes", "kind": "binary"}}}''')
    >>> len(plan)
    2
    """
    return made(
        body,
        PlanProposal,
        lambda given, schema: Plan.propose(
            schema, waves=given.waves, counts=given.counts, terms=given
        ),
    )


def made(body: bytes, kind: type[_Kind], make: Callable[[_Kind, Schema], _Made]) -> _Made:
    """What is made of a proposal in JSON, and of its schema; whatever is wrong is said."""
    try:
        proposal: _Kind = read_json(body, kind)
    except ValueError as error:
        raise InvalidValueError(
            f"Expected a proposal in JSON, with schema, epsilon, delta and quorum: {error}."
        ) from error
    schema = Schema.from_dict(proposal.schema)
    try:
        return make(proposal, schema)
    except BlurfitError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise InvalidValueError(
            f"Expected numbers for which noise can be computed: {error}. Choose less extreme ones."
        ) from error
