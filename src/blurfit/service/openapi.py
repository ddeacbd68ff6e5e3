"""The service described for programs (OpenAPI 3.1): every path, every answer, every refusal.

A test sends thousands of requests that it makes from this document, and compares the answers with
it. The schemas are those of `blurfit.service.documents`.
"""

from typing import Any

from blurfit.protocol import problems
from blurfit.protocol.problems import Kind
from blurfit.protocol.wire import (
    BINARY,
    COLLECTIONS,
    INVITATION,
    JSON,
    MOST_SUBMISSIONS,
    OCTETS,
    ONE_COLLECTION,
    ONE_PLAN,
    PLANS,
    PROBLEM,
    SUBMISSIONS,
)
from blurfit.service import documents
from blurfit.version import __version__

_ALWAYS = (problems.TOO_MANY, problems.UNAVAILABLE)
_BODY = (problems.TOO_SLOW, problems.TOO_LARGE, problems.WRONG_TYPE)
_ONE = (problems.UNKNOWN,)
_TEXT = {"type": "string"}
_BYTES = {"type": "string", "format": "binary"}
_PRINT = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_OBJECT = {"type": "object"}


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
            **_reading(),
            f"{ONE_COLLECTION}{SUBMISSIONS}": _of_one(post=_submissions()),
            **_plans(),
            **_shares(),
            **_pages(),
        },
        "components": {
            "schemas": documents.schemas(),
            "securitySchemes": {
                who: {"type": "http", "scheme": "bearer"} for who in ("administrator", "peer")
            },
        },
    }


def _reading() -> dict[str, Any]:
    """What anyone may read."""
    state = _answer(_reference("Status"), "The state.")
    hours = _answer(_array("Hour"), "Hours in which anyone came.")
    agreement = _answer(_reference("Agreement"), "The agreement, always the same bytes.")
    model = _answer(_OBJECT, "The model, always the same bytes.")
    moments = _answer(_reference("Moments"), "The moments, always the same bytes; models are free.")
    statement = _content("The statement.", "text/markdown", "text/html", "application/yaml")
    published = (*_ONE, problems.NOT_PUBLISHED)
    of_one = {
        "": _operation("State, count and quorum, or a page", _or_page(state), *_ONE),
        "/history": _operation("How many came in which hour", hours, *_ONE),
        "/agreement": _operation("What everyone agreed on", agreement, *_ONE),
        "/invitation": _operation(
            "Whether a submission with this invitation would be let in",
            _answer(_reference("Invitation"), "Of one that is not good, nobody can tell why."),
            *_ONE,
            parameters=[{"name": INVITATION, "in": "header", "schema": _TEXT}],
        ),
        "/model": _operation("The published model", model, *published),
        "/moments": _operation("The blurred sums of a `moment` collection", moments, *published),
        "/statement": _operation(
            "The privacy statement in words",
            statement,
            problems.INVALID,
            *published,
            parameters=[_query("format", {"enum": ["markdown", "html", "yaml"]})],
        ),
    }
    ok, text = _answer(_OBJECT, "It does."), _content("Counters.", "text/plain")
    return {
        **{f"{ONE_COLLECTION}{path}": _of_one(get=one) for path, one in of_one.items()},
        "/healthz": {"get": _operation("Whether the store answers", ok)},
        "/metrics": {"get": _operation("Counters for Prometheus", text)},
        "/openapi.json": {"get": _operation("This document", _answer(_OBJECT, "This document."))},
    }


def _administration() -> dict[str, Any]:
    """What the administrator's token is for, and the list of all collections."""
    status, model = _reference("Status"), _answer(_OBJECT, "The model; again, the same.")
    opened = _answer(status, "It was open.") | _answer(status, "It is open now.", "201")
    how = [
        _query("role", {"enum": ["whole", "first", "second"]}, "Which of two databases this is.")
    ]
    found = {
        "/invitations": _operation(
            "Keep the hashes of one-time invitations",
            _answer(_reference("Acknowledgement"), "They are on disk."),
            *(problems.INVALID, problems.INFEASIBLE, *_ONE, *_BODY),
            body={JSON: _reference("Hashes")},
            security="administrator",
        ),
        **{
            path: _operation(
                words,
                _answer(status, "How far it is."),
                *(*_ONE, problems.CLOSED, problems.INFEASIBLE),
                security="administrator",
            )
            for path, words in (
                ("/pause", "Take no submissions for a while"),
                ("/resume", "Go on collecting"),
            )
        },
        "/close": _operation(
            "Stop collecting",
            _answer(status, "Closed, or published."),
            *(*_ONE, problems.INFEASIBLE),
            security="administrator",
        ),
        "/publish": _operation(
            "Close the collection, learn its model and publish it, once",
            model,
            *(*_ONE, problems.NOT_PUBLISHED, problems.BELOW_QUORUM, problems.INFEASIBLE),
            *(problems.CONFLICT, problems.OTHER_DATABASE),
            security="administrator",
        ),
    }
    return {
        COLLECTIONS: {
            "get": _operation("All collections", _answer(_array("Status"), "Their states.")),
            "post": _operation(
                "Open a collection from an agreement",
                opened,
                *(problems.INVALID, problems.CONFLICT, *_BODY),
                body={JSON: _reference("Agreement")},
                parameters=how,
                security="administrator",
            ),
        },
        "/agreements": {
            "post": _operation(
                "The agreement that a schema and a promise would give; nothing is kept",
                _answer(_reference("Agreement"), "The agreement."),
                *(problems.INVALID, problems.INFEASIBLE, *_BODY),
                body={JSON: _reference("Proposal")},
                security="administrator",
            )
        },
        "/deeds": {
            "get": _operation(
                "What was done with tokens, the last one first",
                _answer({"type": "array", "items": _OBJECT}, "The newest thousand."),
                problems.UNAVAILABLE,
                security="administrator",
            )
        },
        "/outlooks": {
            "post": _operation(
                "How far off predictions may be, for typical people; nothing is kept",
                _answer(_reference("Expected"), "An estimate."),
                *(problems.INVALID, problems.INFEASIBLE, *_BODY),
                body={JSON: _reference("Wish")},
                security="administrator",
            )
        },
        **{f"{ONE_COLLECTION}{path}": _of_one(post=one) for path, one in found.items()},
    }


def _submissions() -> dict[str, Any]:
    one_or_many = {"oneOf": [_reference("Submission"), _array("Submission")]}
    each = "An invitation for each submission, separated by commas."
    return _operation(
        f"Send one submission or up to {MOST_SUBMISSIONS:,}; answered once they are on disk",
        _answer(_reference("Acknowledgement"), "They are on disk, each counted once."),
        *(problems.INVALID, problems.NOT_INVITED, problems.CLOSED, *_ONE, *_BODY),
        problems.WAVE_CLOSED,
        problems.PAUSED,
        body={JSON: one_or_many, BINARY: _BYTES},
        parameters=[{"name": INVITATION, "in": "header", "description": each, "schema": _TEXT}],
    )


def _plans() -> dict[str, Any]:
    """Plans of waves; each wave is a collection as well."""
    status, model = _reference("PlanStatus"), _answer(_OBJECT, "The model, always the same bytes.")
    state = _answer(status, "How far the plan is.")
    opened = _answer(status, "It was open.") | _answer(status, "It is open now.", "201")
    published = (*_ONE, problems.NOT_PUBLISHED)
    reading = {
        "": _operation("State, waves, counts and quorums", state, *_ONE),
        "/plan": _operation(
            "The plan itself", _answer(_reference("Plan"), "Always the same bytes."), *_ONE
        ),
        "/agreement": _operation(
            "The agreement of the wave that collects now",
            _answer(_reference("Agreement"), "The agreement; later, another."),
            *(*_ONE, problems.CLOSED),
        ),
        "/releases": _operation(
            "What the waves so far have published, in order",
            _answer(_array("Moments"), "The releases."),
            *_ONE,
        ),
        "/model": _operation("The model of a plan that has ended", model, *published),
        "/statement": _operation(
            "The privacy statement in words",
            _content("The statement.", "text/markdown", "text/html", "application/yaml"),
            *(problems.INVALID, *published),
            parameters=[_query("format", {"enum": ["markdown", "html", "yaml"]})],
        ),
    }
    doing = {
        "/invitations": _operation(
            "Keep the hashes of one-time invitations to the plan",
            _answer(_reference("Acknowledgement"), "They are on disk."),
            *(problems.INVALID, problems.INFEASIBLE, problems.CLOSED, *_ONE, *_BODY),
            body={JSON: _reference("Hashes")},
            security="administrator",
        ),
        "/hold": _operation(
            "Release no wave until the plan is resumed; the open one goes on collecting",
            state,
            *(*_ONE, problems.CLOSED),
            security="administrator",
        ),
        "/resume": _operation(
            "Let a plan go on", state, *(*_ONE, problems.CLOSED), security="administrator"
        ),
        "/publish": _operation(
            "End the plan now, with the best model so far",
            model,
            *(*published, problems.BELOW_QUORUM),
            security="administrator",
        ),
    }
    return {
        PLANS: {
            "get": _operation("All plans", _answer(_array("PlanStatus"), "Their states.")),
            "post": _operation(
                "Keep a plan, and open its first wave",
                opened,
                *(problems.INVALID, problems.CONFLICT, problems.INFEASIBLE, *_BODY),
                body={JSON: _reference("Plan")},
                security="administrator",
            ),
        },
        f"{PLANS}/proposal": {
            "post": _operation(
                "The plan that a schema and a promise would give; nothing is kept",
                _answer(_reference("Plan"), "The plan."),
                *(problems.INVALID, problems.INFEASIBLE, *_BODY),
                body={JSON: _reference("PlanProposal")},
                security="administrator",
            )
        },
        **{f"{ONE_PLAN}{path}": _of_one(get=one) for path, one in reading.items()},
        **{f"{ONE_PLAN}{path}": _of_one(post=one) for path, one in doing.items()},
    }


def _shares() -> dict[str, Any]:
    """What the two databases of an agreement ask each other, with the token that both have."""
    shared = (problems.INVALID, problems.INFEASIBLE, *_ONE)
    fixed = (*shared, problems.CONFLICT, problems.BELOW_QUORUM, *_BODY)
    identifiers = _operation(
        "The identifiers of the shares here, in order, once the collection is closed",
        {"200": {"description": "16 bytes each.", "content": {OCTETS: {"schema": _BYTES}}}},
        *shared,
        parameters=[_query("after", {"pattern": "^([0-9a-f]{32})?$"})],
        security="peer",
    )
    proofs = _operation(
        "Verify proofs together: answers to the first database's half of some verifiers",
        {"200": {"description": "32 bytes each.", "content": {OCTETS: {"schema": _BYTES}}}},
        *(*shared, problems.CONFLICT, *_BODY),
        body={OCTETS: _BYTES},
        security="peer",
    )
    total = _operation(
        "Commit to one set of contributors, for ever, and tell the sum of their masks",
        _answer(_reference("Sums"), "The sums mod 2⁶⁴; asked again, the same."),
        *fixed,
        body={OCTETS: _BYTES},
        parameters=[_query("digest", _PRINT), _query("count", {"type": "integer", "minimum": 0})],
        security="peer",
    )
    result = _operation(
        "Store and serve the result",
        _answer(_reference("Status"), "It is published here too."),
        *fixed,
        body={JSON: _reference("Published")},
        security="peer",
    )
    return {
        f"{ONE_COLLECTION}/shares/identifiers": _of_one(get=identifiers),
        f"{ONE_COLLECTION}/shares/proofs": _of_one(post=proofs),
        f"{ONE_COLLECTION}/shares/sum": _of_one(post=total),
        f"{ONE_COLLECTION}/shares/result": _of_one(post=result),
    }


def _pages() -> dict[str, Any]:
    """Pages for people; what they show they ask for at the other addresses."""
    same = {"304": {"description": "It is what the browser has already."}}
    page = _content("A page.", "text/html") | same
    lost = {"404": _content("A page that says that this is no fingerprint.", "text/html")["200"]}
    file = _content("A file.", "text/css", "text/javascript", "image/svg+xml") | same
    name = {"name": "name", "in": "path", "required": True, "schema": _TEXT}
    parts = _operation("Parts of the pages", file, problems.NOT_FOUND, parameters=[name])
    return {
        "/": {"get": _operation("All collections, as a page", page)},
        "/c/{fingerprint}": _of_one(get=_operation("Contribute, as a page", page | lost)),
        "/m/{fingerprint}": _of_one(get=_operation("A model, as a page", page | lost)),
        "/admin": {"get": _operation("Administration, as a page", page)},
        "/pages/{name}": {"get": parts},
    }


# ---- the grammar of the document


def _operation(
    summary: str,
    answers: dict[str, Any],
    *kinds: Kind,
    body: dict[str, Any] | None = None,
    parameters: list[Any] | None = None,
    security: str | None = None,
) -> dict[str, Any]:
    """One method of a path: its answers, and every kind of refusal under its status."""
    refusals: dict[str, list[Kind]] = {}
    for kind in (*kinds, *((problems.UNAUTHORISED,) if security else ()), *_ALWAYS):
        refusals.setdefault(str(kind.status), []).append(kind)
    found: dict[str, Any] = {"summary": summary, "responses": dict(answers)}
    for status, sharing in refusals.items():
        found["responses"][status] = {
            "description": ". Or: ".join(kind.title for kind in sharing) + ".",
            "content": {PROBLEM: {"schema": _reference("Problem")}},
        }
    if security:
        found["security"] = [{security: []}]
    if body:
        content = {kind: {"schema": schema} for kind, schema in body.items()}
        found["requestBody"] = {"required": True, "content": content}
    if parameters:
        found["parameters"] = parameters
    return found


def _of_one(**operations: Any) -> dict[str, Any]:
    fingerprint = {
        "name": "fingerprint",
        "in": "path",
        "required": True,
        "description": "The agreement's or plan's SHA-256, 64 hexadecimal digits.",
        "schema": _PRINT,
    }
    return {"parameters": [fingerprint], **operations}


def _query(name: str, schema: dict[str, Any], description: str = "") -> dict[str, Any]:
    found = {"name": name, "in": "query", "schema": {**_TEXT, **schema}}
    return found | ({"description": description} if description else {})


def _answer(schema: dict[str, Any], description: str, status: str = "200") -> dict[str, Any]:
    return {status: {"description": description, "content": {JSON: {"schema": schema}}}}


def _content(description: str, *kinds: str) -> dict[str, Any]:
    content = {kind: {"schema": _TEXT if "yaml" not in kind else _OBJECT} for kind in kinds}
    return {"200": {"description": description, "content": content}}


def _or_page(answers: dict[str, Any]) -> dict[str, Any]:
    page = {"text/html": {"schema": _TEXT}}
    answer = answers["200"]
    return {**answers, "200": {**answer, "content": answer["content"] | page}}


def _array(name: str) -> dict[str, Any]:
    return {"type": "array", "items": _reference(name)}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": documents.REFERENCE.format(name=name)}
