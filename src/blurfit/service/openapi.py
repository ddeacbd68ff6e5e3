"""The service described for programs (OpenAPI 3.1): every path, every answer, every refusal.

A test sends thousands of requests that it makes from this document, and compares the answers with
it. The schemas are those of `blurfit.service.documents`, and what anyone may ask is in
`blurfit.service.openapi_public`.
"""

from typing import Any

from blurfit.protocol import problems
from blurfit.protocol.wire import (
    COLLECTIONS,
    JSON,
    OCTETS,
    ONE_COLLECTION,
    ONE_PLAN,
    PLANS,
)
from blurfit.service import documents
from blurfit.service.openapi_public import pages, reading, sending
from blurfit.service.operations import (
    BODY,
    BYTES,
    OBJECT,
    ONE,
    PRINT,
    UNTIL,
    answer,
    array,
    content,
    of_one,
    operation,
    query,
    reference,
)
from blurfit.version import __version__

_ROLE = query("role", {"enum": ["whole", "first", "second"]}, "Which of two databases this is.")


def document() -> dict[str, Any]:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "blurfit",
            "version": __version__,
            "description": "Collect blurred records, lose nothing, publish one private model.",
        },
        "paths": {
            **_administration(),
            **reading(),
            **sending(),
            **_plans(),
            **_shares(),
            **pages(),
        },
        "components": {
            "schemas": documents.schemas(),
            "securitySchemes": {
                who: {"type": "http", "scheme": "bearer"} for who in ("administrator", "peer")
            },
        },
    }


def _administration() -> dict[str, Any]:
    """What the administrator's token is for, and the list of all collections."""
    status = reference("Status")
    model = answer(OBJECT, "The model, or sums that have none of their own; again, the same.")
    opened = answer(status, "It was open.") | answer(status, "It is open now.", "201")
    found = {
        "/invitations": operation(
            "Keep the hashes of one-time invitations",
            answer(reference("Acknowledgement"), "They are on disk."),
            *(problems.INVALID, problems.INFEASIBLE, *ONE, *BODY),
            body={JSON: reference("Hashes")},
            security="administrator",
        ),
        **{
            path: operation(
                words,
                answer(status, "How far it is."),
                *(*ONE, problems.CLOSED, problems.INFEASIBLE),
                security="administrator",
            )
            for path, words in (
                ("/pause", "Take no submissions for a while"),
                ("/resume", "Go on collecting"),
            )
        },
        "/until": operation(
            "Close at another moment, or at none",
            answer(status, "How far it is, and when it closes."),
            *(*ONE, problems.INVALID, problems.CLOSED, problems.INFEASIBLE, *BODY),
            body={JSON: reference("Until")},
            security="administrator",
        ),
        "/close": operation(
            "Stop collecting",
            answer(status, "Closed, or published."),
            *(*ONE, problems.INFEASIBLE),
            security="administrator",
        ),
        "/publish": operation(
            "Close the collection, learn its model and publish it, once",
            model,
            *(*ONE, problems.NOT_PUBLISHED, problems.BELOW_QUORUM, problems.INFEASIBLE),
            *(problems.CONFLICT, problems.OTHER_DATABASE),
            security="administrator",
        ),
    }
    return {
        COLLECTIONS: {
            "get": operation("All collections", answer(array("Status"), "Their states.")),
            "post": operation(
                "Open a collection from an agreement",
                opened,
                *(problems.INVALID, problems.CONFLICT, problems.INFEASIBLE, *BODY),
                body={JSON: reference("AgreementDocument")},
                parameters=[_ROLE, UNTIL],
                security="administrator",
            ),
        },
        "/agreements": {
            "post": operation(
                "The agreement that a schema and a promise would give; nothing is kept",
                answer(reference("AgreementDocument"), "The agreement."),
                *(problems.INVALID, problems.INFEASIBLE, *BODY),
                body={JSON: reference("Proposal")},
                security="administrator",
            )
        },
        "/deeds": {
            "get": operation(
                "What was done with tokens, the last one first",
                answer({"type": "array", "items": OBJECT}, "The newest thousand."),
                problems.UNAVAILABLE,
                security="administrator",
            )
        },
        "/outlooks": {
            "post": operation(
                "How far off predictions may be, for typical people; nothing is kept",
                answer(reference("Expected"), "An estimate."),
                *(problems.INVALID, problems.INFEASIBLE, *BODY),
                body={JSON: reference("Wish")},
                security="administrator",
            )
        },
        f"{ONE_COLLECTION}/sides": of_one(
            get=operation(
                "How many shares each of two databases has, before one is closed",
                answer(reference("Sides"), "Both, and why closing now would be in vain."),
                *(*ONE, problems.INFEASIBLE),
                security="administrator",
            )
        ),
        **{f"{ONE_COLLECTION}{path}": of_one(post=one) for path, one in found.items()},
    }


def _plans() -> dict[str, Any]:
    """Plans of waves; each wave is a collection as well."""
    status, model = reference("PlanStatus"), answer(OBJECT, "The model, always the same bytes.")
    state = answer(status, "How far the plan is.")
    opened = answer(status, "It was open.") | answer(status, "It is open now.", "201")
    published = (*ONE, problems.NOT_PUBLISHED)
    reading = {
        "": operation("State, waves, counts and quorums", state, *ONE),
        "/plan": operation(
            "The plan itself", answer(reference("PlanDocument"), "Always the same bytes."), *ONE
        ),
        "/agreement": operation(
            "The agreement of the wave that collects now",
            answer(reference("AgreementDocument"), "The agreement; later, another."),
            *(*ONE, problems.CLOSED, problems.DATE_CLOSED, problems.BETWEEN_WAVES),
        ),
        "/releases": operation(
            "What the waves so far have published, in order",
            answer(array("Moments"), "The releases."),
            *ONE,
        ),
        "/model": operation("The model of a plan that has ended", model, *published),
        "/statement": operation(
            "The privacy statement in words",
            content("The statement.", "text/markdown", "text/html", "application/yaml"),
            *(problems.INVALID, *published),
            parameters=[query("format", {"enum": ["markdown", "html", "yaml"]})],
        ),
    }
    doing = {
        "/invitations": operation(
            "Keep the hashes of one-time invitations to the plan",
            answer(reference("Acknowledgement"), "They are on disk."),
            *(problems.INVALID, problems.INFEASIBLE, problems.CLOSED, problems.DATE_CLOSED),
            *(*ONE, *BODY),
            body={JSON: reference("Hashes")},
            security="administrator",
        ),
        "/until": operation(
            "End the plan at another moment at the latest, or at none",
            state,
            *(problems.INVALID, problems.CLOSED, *ONE, *BODY),
            body={JSON: reference("Until")},
            security="administrator",
        ),
        "/hold": operation(
            "Release no wave until the plan is resumed; the open one goes on collecting",
            state,
            *(*ONE, problems.CLOSED),
            security="administrator",
        ),
        "/resume": operation(
            "Let a plan go on", state, *(*ONE, problems.CLOSED), security="administrator"
        ),
        "/publish": operation(
            "End the plan now, with the best model so far",
            model,
            *(*published, problems.BELOW_QUORUM, problems.INFEASIBLE, problems.OTHER_DATABASE),
            security="administrator",
        ),
    }
    return {
        PLANS: {
            "get": operation("All plans", answer(array("PlanStatus"), "Their states.")),
            "post": operation(
                "Keep a plan, and open its first wave",
                opened,
                *(problems.INVALID, problems.CONFLICT, problems.INFEASIBLE, *BODY),
                body={JSON: reference("PlanDocument")},
                parameters=[_ROLE, UNTIL],
                security="administrator",
            ),
        },
        f"{PLANS}/proposal": {
            "post": operation(
                "The plan that a schema and a promise would give; nothing is kept",
                answer(reference("PlanDocument"), "The plan."),
                *(problems.INVALID, problems.INFEASIBLE, *BODY),
                body={JSON: reference("PlanProposal")},
                security="administrator",
            )
        },
        **{f"{ONE_PLAN}{path}": of_one(get=one) for path, one in reading.items()},
        **{f"{ONE_PLAN}{path}": of_one(post=one) for path, one in doing.items()},
    }


def _shares() -> dict[str, Any]:
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
