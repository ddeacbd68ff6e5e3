'''Endpoints that declare themselves: where they are, what they answer and what they refuse.

    @get(f"{ONE_COLLECTION}/history", answer(array(Hour), "Hours in which anyone came."))
    async def history(self, request: Request) -> Response:
        """How many came in which hour."""

The routes of the service and its OpenAPI document (3.1, at /openapi.json) are both made from these
declarations. An endpoint that is a plain function runs in a thread, and what it returns is told in
JSON. The summary of an operation is that of its docstring. Some refusals follow from the rest: that
of an unknown fingerprint from the path, of a bad body from there being one, of a token from
`security`.
'''

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from inspect import getdoc
from typing import Any, NamedTuple

import msgspec
from starlette.routing import Route

from blurfit import protocol
from blurfit.protocol import JSON, PROBLEM, Kind
from blurfit.version import __version__
from blurfit_server.service.answers import Endpoint, route_of

Described = dict[str, Any]  # a part of the OpenAPI document
JsonSchema = Described | type  # itself, or a type from which msgspec makes it

TEXT = {"type": "string"}
BYTES = {"type": "string", "format": "binary"}
PRINT = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
OBJECT = {"type": "object"}
# Beside the answer, where it is kept by its tag.
SAME: Described = {"304": {"description": "It is what whoever asks has already."}}
_ALWAYS = (protocol.TOO_MANY, protocol.UNAVAILABLE)
_OF_A_BODY = (
    *(protocol.INVALID, protocol.TOO_SLOW, protocol.TOO_LARGE, protocol.WRONG_TYPE),
    protocol.BUSY,
)
_REFERENCE = "#/components/schemas/{name}"
_KINDS: dict[str, type] = {}  # of documents that declarations refer to, by name
_FINGERPRINT = {
    "name": "fingerprint",
    "in": "path",
    "required": True,
    "description": "The agreement's or plan's SHA-256, 64 hexadecimal digits.",
    "schema": PRINT,
}


class Operation(NamedTuple):
    """One method of a path, and how it is described."""

    method: str
    path: str
    described: Described


def declared(method: str, path: str, *given: Any, **named: Any) -> Callable[[Endpoint], Endpoint]:
    """Declare an endpoint for a method of a path; what else is given is for `operation`."""

    def declare(endpoint: Endpoint) -> Endpoint:
        summary = (getdoc(endpoint) or "").split("\n\n")[0].replace("\n", " ").removesuffix(".")
        named.setdefault("security", getattr(endpoint, "security", None))  # of whoever guards it
        vars(endpoint)["operation"] = operation(method, path, summary, *given, **named)
        return endpoint

    return declare


get, post = partial(declared, "get"), partial(declared, "post")


def operation(
    method: str,
    path: str,
    summary: str,
    answers: Described,
    *kinds: Kind,
    body: JsonSchema | None = None,
    parameters: Iterable[Described] = (),
    security: str | None = None,
) -> Operation:
    """Describe one method of a path: its answers, and every kind of refusal under its status.

    `body` is in JSON, unless schemas are given by their media types.
    """
    found: Described = {"summary": summary, "responses": dict(answers)}
    refusals: dict[str, list[Kind]] = {}
    for kind in dict.fromkeys(
        (
            *kinds,
            *([protocol.UNKNOWN] if "{fingerprint}" in path else []),
            *(_OF_A_BODY if body else []),
            *([protocol.UNAUTHORISED] if security else []),
            *_ALWAYS,
        )
    ):
        refusals.setdefault(str(kind.status), []).append(kind)
    for status, sharing in refusals.items():
        refusal = {
            "description": ". Or: ".join(kind.title for kind in sharing) + ".",
            "content": {PROBLEM: {"schema": reference(protocol.Problem)}},
        }
        found["responses"].setdefault(status, refusal)
    if security:
        found["security"] = [{security: []}]
    if body:
        kinds_of_body = {JSON: reference(body)} if isinstance(body, type) else body
        content = {kind: {"schema": schema} for kind, schema in kinds_of_body.items()}
        found["requestBody"] = {"required": True, "content": content}
    if parameters:
        found["parameters"] = [*parameters]
    return Operation(method, path, found)


def declared_by(part: object) -> Iterator[tuple[str, Operation]]:
    """Yield the operations of an object, each with the name of its endpoint."""
    for name, member in vars(type(part)).items():
        if isinstance(found := getattr(member, "operation", None), Operation):
            yield name, found


def routes(parts: Iterable[object]) -> list[Route]:
    """Return where the endpoints of some objects are served."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for part in parts:
        for name, (method, path, _) in declared_by(part):
            by_path.setdefault(path, {})[method] = getattr(part, name)
    return [route_of(path, endpoints) for path, endpoints in by_path.items()]


def document(operations: Iterable[Operation]) -> Described:
    """Return the OpenAPI document of some operations, with the types that they refer to."""
    paths: Described = {}
    for method, path, described in operations:
        shared = {"parameters": [_FINGERPRINT]} if "{fingerprint}" in path else {}
        paths.setdefault(path, shared)[method] = described
    _, schemas = msgspec.json.schema_components(_KINDS.values(), ref_template=_REFERENCE)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "blurfit",
            "version": __version__,
            "description": "Collect blurred records, lose nothing, publish one private model.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                who: {"type": "http", "scheme": "bearer"} for who in ("administrator", "peer")
            },
        },
    }


# ---- the parts of a description


def query(name: str, schema: Described, description: str = "") -> Described:
    """Describe a parameter after the question mark."""
    found = {"name": name, "in": "query", "schema": {**TEXT, **schema}}
    return found | ({"description": description} if description else {})


def header(name: str, description: str = "") -> Described:
    """Describe a parameter in the head of a request."""
    found = {"name": name, "in": "header", "schema": TEXT}
    return found | ({"description": description} if description else {})


def answer(schema: JsonSchema, description: str, status: str = "200") -> Described:
    """Describe an answer in JSON."""
    schema = reference(schema) if isinstance(schema, type) else schema
    return {status: {"description": description, "content": {JSON: {"schema": schema}}}}


def content(description: str, *kinds: str) -> Described:
    """Describe an answer of any of some media types."""
    schemas = {"application/yaml": OBJECT, "application/octet-stream": BYTES}
    content = {kind: {"schema": schemas.get(kind, TEXT)} for kind in kinds}
    return {"200": {"description": description, "content": content}}


def or_page(answers: Described) -> Described:
    """Describe answers of which the first may be a page as well, for a browser."""
    found = answers["200"]
    page = {"text/html": {"schema": TEXT}}
    return {**answers, "200": {**found, "content": found["content"] | page}}


def array(kind: type) -> Described:
    """Describe a list of documents of one type."""
    return {"type": "array", "items": reference(kind)}


def reference(kind: type) -> Described:
    """Refer to the documents of a type, and describe them in the document."""
    _KINDS.setdefault(kind.__name__, kind)
    return {"$ref": _REFERENCE.format(name=kind.__name__)}


ROLE = query("role", {"enum": ["whole", "first", "second"]}, "Which of two databases this is.")
# A moment as `blurfit.errors.instant` reads it; one that exists, and lies in the future.
MOMENT: Described = {
    "pattern": r"^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d))?$",
}
UNTIL = query(
    "until", MOMENT, "When it closes: a future date, until its end in UTC, or a time with its zone."
)
