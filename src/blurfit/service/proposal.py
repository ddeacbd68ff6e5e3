"""What a schema and a promise would give: for whoever is about to open a collection or a plan.

Nothing is kept and no record is read: the same choices give the same agreement, here or by
`Agreement.propose` in Python. What a collection may achieve is an estimate for typical people
(`blurfit.learning.outlook`), as the page says; `blurfit forecast` simulates collections of people
who are publicly known.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import Terms
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError
from blurfit.learning.outlook import epsilon_needed, outlook, people_needed
from blurfit.schema.schema import Schema
from blurfit.service.limits import document_from


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


class Expected(msgspec.Struct):
    """How far off predictions may be, for typical people: `blurfit.learning.outlook`.

    `people` is how many people would bring predictions as close as was wished, and `epsilon` which
    ε would with the people agreed on; null where nothing was wished, or nothing suffices.
    """

    count: Annotated[int, msgspec.Meta(ge=0)]
    off: float
    without_privacy: float
    spread: float
    people: Annotated[int, msgspec.Meta(ge=0)] | None
    epsilon: float | None


_Kind = TypeVar("_Kind", bound=Proposal)
_Made = TypeVar("_Made")


def agreement_from(body: bytes) -> Agreement:
    """The agreement that a proposal in JSON gives.

    >>> agreement_from(b'''{"epsilon": 1, "delta": 1e-6, "quorum": 100, "schema": {
    ...     "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}],
    ...     "target": {"name": "smokes", "kind": "binary"}}}''').mechanism
    'moment'
    """
    return _made(body, Proposal, lambda given, schema: Agreement.propose(schema, given))


def plan_from(body: bytes) -> Plan:
    """The plan that a proposal in JSON gives.

    >>> plan = plan_from(b'''{"epsilon": 1, "delta": 1e-6, "quorum": 100, "waves": 2, "schema": {
    ...     "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}],
    ...     "target": {"name": "smokes", "kind": "binary"}}}''')
    >>> len(plan)
    2
    """
    return _made(
        body,
        PlanProposal,
        lambda given, schema: Plan.propose(
            schema, waves=given.waves, counts=given.counts, terms=given
        ),
    )


def expected_from(body: bytes) -> Expected:
    """How far off predictions will be, and what it takes to be off by no more than is wished."""
    return _made(body, Wish, _expected)


def _expected(wish: Wish, schema: Schema) -> Expected:
    def propose(**changes: Any) -> Agreement:
        return Agreement.propose(schema, msgspec.structs.replace(wish, **changes))

    found = outlook(propose())
    people = epsilon = None
    if wish.off is not None:
        try:
            people = people_needed(lambda count: propose(quorum=count), wish.off)
            epsilon = epsilon_needed(lambda one: propose(epsilon=one), wish.off)
        except InfeasibleError:  # noise that nobody could draw: there is no such collection
            pass
    return Expected(found.count, found.off, found.without_privacy, found.spread, people, epsilon)


def _made(body: bytes, kind: type[_Kind], make: Callable[[_Kind, Schema], _Made]) -> _Made:
    """What is made of a proposal in JSON, and of its schema; whatever is wrong is said."""
    proposal = document_from(
        body, kind, "a proposal in JSON, with schema, epsilon, delta and quorum"
    )
    schema = Schema.from_dict(proposal.schema)
    try:
        return make(proposal, schema)
    except BlurfitError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise InvalidValueError(
            f"Expected numbers for which noise can be computed: {error}. Choose less extreme ones."
        ) from error
