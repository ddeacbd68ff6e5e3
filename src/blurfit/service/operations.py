"""How an operation of the service is described: its answers, refusals, bodies and parameters.

`blurfit.service.openapi` is written in these words.
"""

from typing import Any

from blurfit.protocol import problems
from blurfit.protocol.problems import Kind
from blurfit.protocol.wire import JSON, PROBLEM
from blurfit.service import documents

ALWAYS = (problems.TOO_MANY, problems.UNAVAILABLE)
BODY = (problems.TOO_SLOW, problems.TOO_LARGE, problems.WRONG_TYPE)
ONE = (problems.UNKNOWN,)
TEXT = {"type": "string"}
BYTES = {"type": "string", "format": "binary"}
PRINT = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
OBJECT = {"type": "object"}

ROLE = {
    "name": "role",
    "in": "query",
    "schema": {**TEXT, "enum": ["whole", "first", "second"]},
    "description": "Which of two databases this is.",
}
UNTIL = {
    "name": "until",
    "in": "query",
    "schema": TEXT,
    "description": "When it closes: a date, until its end in UTC, or a time with its zone.",
}


def operation(
    summary: str,
    answers: dict[str, Any],
    *kinds: Kind,
    body: dict[str, Any] | None = None,
    parameters: list[Any] | None = None,
    security: str | None = None,
) -> dict[str, Any]:
    """One method of a path: its answers, and every kind of refusal under its status."""
    refusals: dict[str, list[Kind]] = {}
    for kind in (*kinds, *((problems.UNAUTHORISED,) if security else ()), *ALWAYS):
        refusals.setdefault(str(kind.status), []).append(kind)
    found: dict[str, Any] = {"summary": summary, "responses": dict(answers)}
    for status, sharing in refusals.items():
        found["responses"][status] = {
            "description": ". Or: ".join(kind.title for kind in sharing) + ".",
            "content": {PROBLEM: {"schema": reference("Problem")}},
        }
    if security:
        found["security"] = [{security: []}]
    if body:
        content = {kind: {"schema": schema} for kind, schema in body.items()}
        found["requestBody"] = {"required": True, "content": content}
    if parameters:
        found["parameters"] = parameters
    return found


def of_one(**operations: Any) -> dict[str, Any]:
    """A path with a fingerprint in it, and its operations."""
    fingerprint = {
        "name": "fingerprint",
        "in": "path",
        "required": True,
        "description": "The agreement's or plan's SHA-256, 64 hexadecimal digits.",
        "schema": PRINT,
    }
    return {"parameters": [fingerprint], **operations}


def query(name: str, schema: dict[str, Any], description: str = "") -> dict[str, Any]:
    """A parameter after the question mark."""
    found = {"name": name, "in": "query", "schema": {**TEXT, **schema}}
    return found | ({"description": description} if description else {})


def answer(schema: dict[str, Any], description: str, status: str = "200") -> dict[str, Any]:
    """An answer in JSON."""
    return {status: {"description": description, "content": {JSON: {"schema": schema}}}}


def content(description: str, *kinds: str) -> dict[str, Any]:
    """An answer of any of some kinds."""
    content = {kind: {"schema": TEXT if "yaml" not in kind else OBJECT} for kind in kinds}
    return {"200": {"description": description, "content": content}}


def or_page(answers: dict[str, Any]) -> dict[str, Any]:
    """Answers of which the first may be a page as well, for a browser."""
    page = {"text/html": {"schema": TEXT}}
    answer = answers["200"]
    return {**answers, "200": {**answer, "content": answer["content"] | page}}


def array(name: str) -> dict[str, Any]:
    """A list of documents of one kind."""
    return {"type": "array", "items": reference(name)}


def reference(name: str) -> dict[str, Any]:
    """A document of `blurfit.service.documents`."""
    return {"$ref": documents.REFERENCE.format(name=name)}
