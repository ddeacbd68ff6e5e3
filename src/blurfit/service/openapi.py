"""The service described for programs (OpenAPI 3.1): every path, every answer, every refusal.

A test sends thousands of requests that it makes from this document, and compares the answers with
it. The schemas are those of `blurfit.service.documents`. What anyone may ask is in
`blurfit.service.openapi_public`, plans are in `blurfit.service.openapi_plans`, and what two
databases ask each other is in `blurfit.service.openapi_shares`; the rest is below.
"""

from typing import Any

from blurfit.protocol import problems
from blurfit.protocol.wire import COLLECTIONS, JSON, ONE_COLLECTION
from blurfit.service import documents
from blurfit.service.openapi_plans import plans
from blurfit.service.openapi_public import pages, reading, sending
from blurfit.service.openapi_shares import shares
from blurfit.service.operations import (
    BODY,
    OBJECT,
    ONE,
    ROLE,
    UNTIL,
    answer,
    array,
    of_one,
    operation,
    reference,
)
from blurfit.version import __version__


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
            **plans(),
            **shares(),
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
                parameters=[ROLE, UNTIL],
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
