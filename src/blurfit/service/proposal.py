"""The agreement that a schema and a promise would give: for whoever is about to open a collection.

Nothing is kept and no record is read: the same choices give the same agreement, here or by
`Agreement.propose` in Python.
"""

from typing import Any

import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.terms import Terms
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.schema.schema import Schema


class Proposal(Terms, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schema, and everything that may be chosen; the rest of the agreement follows."""

    schema: dict[str, Any]


def agreement_from(body: bytes) -> Agreement:
    """The agreement that a proposal in JSON gives.

    >>> agreement_from(b'''{"epsilon": 1, "delta": 1e-6, "quorum": 100, "schema": {
    ...     "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}],
    ...     "target": {"name": "smokes", "kind": "binary"}}}''').mechanism
    'moment'
    """
    try:
        proposal = msgspec.json.decode(body, type=Proposal)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidValueError(
            f"Expected a proposal in JSON, with schema, epsilon, delta and quorum: {error}."
        ) from error
    schema = Schema.from_dict(proposal.schema)
    try:
        return Agreement.propose(schema, proposal)
    except BlurfitError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise InvalidValueError(
            f"Expected numbers for which noise can be computed: {error}. Choose less extreme ones."
        ) from error
