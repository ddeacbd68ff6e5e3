"""What the two databases of an agreement ask each other, described."""

from typing import Any

from blurfit.protocol import problems
from blurfit.protocol.wire import JSON, OCTETS, ONE_COLLECTION, ONE_PLAN
from blurfit.service.operations import (
    BODY,
    BYTES,
    ONE,
    PRINT,
    answer,
    of_one,
    operation,
    query,
    reference,
)


def shares() -> dict[str, Any]:
    """What the two databases of an agreement ask each other, with the token that both have."""
    shared = (problems.INVALID, problems.INFEASIBLE, *ONE)
    fixed = (*shared, problems.CONFLICT, problems.BELOW_QUORUM, *BODY)
    identifiers = operation(
        "The identifiers of the shares here, in order, once the collection is closed",
        {"200": {"description": "16 bytes each.", "content": {OCTETS: {"schema": BYTES}}}},
        *shared,
        parameters=[query("after", {"pattern": "^([0-9a-f]{32})?$"})],
        security="peer",
    )
    proofs = operation(
        "Verify proofs together: answers to the first database's half of some verifiers",
        {"200": {"description": "32 bytes each.", "content": {OCTETS: {"schema": BYTES}}}},
        *(*shared, problems.CONFLICT, *BODY),
        body={OCTETS: BYTES},
        security="peer",
    )
    total = operation(
        "Commit to one set of contributors, for ever, and tell the sum of their masks",
        answer(reference("Sums"), "The sums mod 2⁶⁴; asked again, the same."),
        *fixed,
        body={OCTETS: BYTES},
        parameters=[query("digest", PRINT), query("count", {"type": "integer", "minimum": 0})],
        security="peer",
    )
    result = operation(
        "Store and serve the result",
        answer(reference("Status"), "It is published here too."),
        *fixed,
        body={JSON: reference("Published")},
        security="peer",
    )
    told = (*shared, problems.CLOSED, problems.CONFLICT, *BODY)
    closed = operation(
        "Close a wave of a plan that has its quorum at both databases",
        answer(reference("Status"), "No more shares are taken for it."),
        *(*shared, problems.CLOSED, problems.BELOW_QUORUM),
        security="peer",
    )
    released = operation(
        "Publish a wave's sums here too, and open the wave that follows",
        answer(reference("Status"), "It is published here too."),
        *told,
        body={JSON: reference("ReleasedWave")},
        security="peer",
    )
    state = operation(
        "Be held, go on, or end with a model, as the plan's first database does",
        answer(reference("PlanStatus"), "How far the plan is."),
        *told,
        body={JSON: reference("ToldPlan")},
        security="peer",
    )
    signed = operation(
        "Keep signatures of the result, and tell all that there are",
        answer(reference("Signatures"), "Those of both databases."),
        *(problems.INVALID, problems.INFEASIBLE, *ONE, *BODY),
        body={JSON: reference("Signatures")},
        security="peer",
    )
    return {
        f"{ONE_COLLECTION}/shares/close": of_one(post=closed),
        f"{ONE_COLLECTION}/shares/release": of_one(post=released),
        f"{ONE_PLAN}/shares/state": of_one(post=state),
        f"{ONE_COLLECTION}/shares/signatures": of_one(post=signed),
        f"{ONE_COLLECTION}/shares/identifiers": of_one(get=identifiers),
        f"{ONE_COLLECTION}/shares/proofs": of_one(post=proofs),
        f"{ONE_COLLECTION}/shares/sum": of_one(post=total),
        f"{ONE_COLLECTION}/shares/result": of_one(post=result),
    }
