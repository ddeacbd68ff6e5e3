"""What anyone may ask of the service, described: reading, sending, withdrawing, pages."""

from typing import Any

from blurfit.protocol import problems
from blurfit.protocol.wire import (
    BINARY,
    INVITATION,
    JSON,
    MOST_SUBMISSIONS,
    ONE_COLLECTION,
    SUBMISSIONS,
    WITHDRAWALS,
)
from blurfit.service.operations import (
    BODY,
    BYTES,
    OBJECT,
    ONE,
    TEXT,
    answer,
    array,
    content,
    of_one,
    operation,
    or_page,
    query,
    reference,
)


def reading() -> dict[str, Any]:
    """What anyone may read."""
    state = answer(reference("Status"), "The state.")
    hours = answer(array("Hour"), "Hours in which anyone came.")
    agreement = answer(reference("AgreementDocument"), "The agreement, always the same bytes.")
    model = answer(OBJECT, "The model, always the same bytes.")
    moments = answer(reference("Moments"), "The moments, always the same bytes; models are free.")
    statement = content("The statement.", "text/markdown", "text/html", "application/yaml")
    published = (*ONE, problems.NOT_PUBLISHED)
    found = {
        "": operation("State, count and quorum, or a page", or_page(state), *ONE),
        "/history": operation("How many came in which hour", hours, *ONE),
        "/agreement": operation("What everyone agreed on", agreement, *ONE),
        "/invitation": operation(
            "Whether a submission with this invitation would be let in",
            answer(reference("Invitation"), "Of one that is not good, nobody can tell why."),
            *ONE,
            parameters=[{"name": INVITATION, "in": "header", "schema": TEXT}],
        ),
        "/model": operation("The published model", model, *published),
        "/moments": operation("The blurred sums of a `moment` collection", moments, *published),
        "/statement": operation(
            "The privacy statement in words",
            statement,
            problems.INVALID,
            *published,
            parameters=[query("format", {"enum": ["markdown", "html", "yaml"]})],
        ),
    }
    key = answer(OBJECT, "The key, or null where this service signs nothing.")
    ok, text = answer(OBJECT, "It does."), content("Counters.", "text/plain")
    return {
        **{f"{ONE_COLLECTION}{path}": of_one(get=one) for path, one in found.items()},
        "/signing-key": {"get": operation("The public key of this service", key)},
        "/healthz": {"get": operation("Whether the store answers", ok)},
        "/metrics": {"get": operation("Counters for Prometheus", text, problems.UNAUTHORISED)},
        "/openapi.json": {"get": operation("This document", answer(OBJECT, "This document."))},
    }


def sending() -> dict[str, Any]:
    """What contributors send, and take back."""
    return {
        f"{ONE_COLLECTION}{SUBMISSIONS}": of_one(post=_submissions()),
        f"{ONE_COLLECTION}{WITHDRAWALS}": of_one(post=_withdrawals()),
    }


def _submissions() -> dict[str, Any]:
    one_or_many = {"oneOf": [reference("SubmissionDocument"), array("SubmissionDocument")]}
    each = "An invitation for each submission, separated by commas."
    return operation(
        f"Send one submission or up to {MOST_SUBMISSIONS:,}; answered once they are on disk",
        answer(reference("Acknowledgement"), "They are on disk, each counted once."),
        *(problems.INVALID, problems.NOT_INVITED, problems.CLOSED, *ONE, *BODY),
        *(problems.WAVE_CLOSED, problems.DATE_CLOSED),
        *(problems.PAUSED, problems.CROWDED, problems.CONFLICT, problems.INFEASIBLE),
        body={JSON: one_or_many, BINARY: BYTES},
        parameters=[{"name": INVITATION, "in": "header", "description": each, "schema": TEXT}],
    )


def _withdrawals() -> dict[str, Any]:
    return operation(
        "Withdraw submissions by their secrets, until the collection closes",
        answer(reference("Withdrawal"), "They are not in the sums; asked again, the same."),
        *(problems.INVALID, problems.CLOSED, problems.WAVE_CLOSED, *ONE, *BODY),
        body={JSON: reference("Secrets")},
    )


def pages() -> dict[str, Any]:
    """Pages for people; what they show they ask for at the other addresses."""
    same = {"304": {"description": "It is what the browser has already."}}
    page = content("A page.", "text/html") | same
    lost = {"404": content("A page that says that this is no fingerprint.", "text/html")["200"]}
    file = content("A file.", "text/css", "text/javascript", "image/svg+xml") | same
    name = {"name": "name", "in": "path", "required": True, "schema": TEXT}
    parts = operation("Parts of the pages", file, problems.NOT_FOUND, parameters=[name])
    return {
        "/": {"get": operation("All collections, as a page", page)},
        "/c/{fingerprint}": of_one(get=operation("Contribute, as a page", page | lost)),
        "/m/{fingerprint}": of_one(get=operation("A model, as a page", page | lost)),
        "/admin": {"get": operation("Administration, as a page", page)},
        "/pages/{name}": {"get": parts},
    }
