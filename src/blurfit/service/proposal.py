"""The agreement that a schema and a promise would give: for whoever is about to open a collection.

Nothing is kept and no record is read: the same choices give the same agreement, here or by
`Agreement.propose` in Python.
"""

from typing import Annotated, Any

import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.schema.schema import Schema
from blurfit.theory.calibration import Mechanism
from blurfit.theory.losses import Approximation
from blurfit.theory.setting import Neighbours


class Proposal(msgspec.Struct, forbid_unknown_fields=True):
    """What may be chosen; the rest of the agreement follows."""

    schema: dict[str, Any]
    epsilon: float
    delta: float
    quorum: Annotated[int, msgspec.Meta(ge=1, le=2**53)]  # so that no float loses it
    mechanism: Mechanism = "moment"
    neighbours: Neighbours = "replace"
    approximation: Approximation = "taylor"
    weight_bound: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    local_epsilon: float | None = None
    local_delta: float | None = None


def agreement_from(body: bytes) -> Agreement:
    """The agreement that a proposal in JSON gives.

    >>> agreement_from(b'''{"epsilon": 1, "delta": 1e-6, "quorum": 100, "schema": {
    ...     "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}],
    ...     "target": {"name": "smokes", "kind": "binary"}}}''').loss_name
    'logistic'
    """
    try:
        proposal = msgspec.json.decode(body, type=Proposal)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidValueError(
            f"Expected a proposal in JSON, with schema, epsilon, delta and quorum: {error}."
        ) from error
    choices = msgspec.structs.asdict(proposal)
    schema = Schema.from_dict(choices.pop("schema"))
    try:
        return Agreement.propose(schema, **choices)
    except BlurfitError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise InvalidValueError(
            f"Expected numbers for which noise can be computed: {error}. Choose less extreme ones."
        ) from error
