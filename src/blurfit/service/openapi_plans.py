"""Plans of waves, described: what anyone may read of them, and what administrators do."""

from typing import Any

from blurfit.protocol import problems
from blurfit.protocol.wire import JSON, ONE_PLAN, PLANS
from blurfit.service.operations import (
    BODY,
    OBJECT,
    ONE,
    ROLE,
    UNTIL,
    answer,
    array,
    content,
    of_one,
    operation,
    query,
    reference,
)


def plans() -> dict[str, Any]:
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
                parameters=[ROLE, UNTIL],
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
