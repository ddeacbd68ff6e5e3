"""The service described for programs (OpenAPI 3.1): every path, every answer, every refusal.

A test sends thousands of requests that it makes from this document, and compares the answers with
it.
"""

from importlib.metadata import version
from typing import Any

from blurfit.service import problems
from blurfit.service.problems import Kind

_FINGERPRINT = {
    "name": "fingerprint",
    "in": "path",
    "required": True,
    "description": "The agreement's SHA-256, 64 hexadecimal digits.",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
_JSON, _BINARY = "application/json", "application/vnd.blurfit.submission"
_OCTETS = "application/octet-stream"
_ALWAYS = (problems.TOO_MANY, problems.UNAVAILABLE)
_BODY = (problems.TOO_SLOW, problems.TOO_LARGE, problems.WRONG_TYPE)
_ONE = (problems.UNKNOWN,)
_ADMINISTRATOR = (problems.UNAUTHORISED,)


def document() -> dict[str, Any]:
    """The whole document."""
    one = "/collections/{fingerprint}"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "blurfit",
            "version": version("blurfit"),
            "description": "Collect blurred records, lose nothing, publish one private model.",
        },
        "paths": {
            "/collections": {
                "get": _operation(
                    "All collections", _answer(_array(_reference("Status")), "Their states.")
                ),
                "post": _operation(
                    "Open a collection from an agreement",
                    {
                        **_answer(_reference("Status"), "It was open already."),
                        **_answer(_reference("Status"), "It is open now.", status="201"),
                    },
                    problems.INVALID,
                    problems.CONFLICT,
                    *_BODY,
                    administrator=True,
                    body={_JSON: {"schema": _reference("Agreement")}},
                    parameters=[
                        {
                            "name": "invited",
                            "in": "query",
                            "description": "Whether each submission needs an invitation.",
                            "schema": {"type": "string", "enum": ["true", "false"]},
                        },
                        {
                            "name": "role",
                            "in": "query",
                            "description": "Which of an agreement's two databases this is.",
                            "schema": {"type": "string", "enum": ["whole", "first", "second"]},
                        },
                    ],
                ),
            },
            one: _of_one(
                get=_operation(
                    "State, count and quorum; a page where text/html is asked for",
                    _or_page(_answer(_reference("Status"), "The state.")),
                    *_ONE,
                )
            ),
            f"{one}/history": _of_one(
                get=_operation(
                    "How many came in which hour",
                    _answer(_array(_reference("Hour")), "Hours in which anyone came."),
                    *_ONE,
                )
            ),
            f"{one}/agreement": _of_one(
                get=_operation(
                    "What everyone agreed on",
                    _answer(_reference("Agreement"), "The agreement, always the same bytes."),
                    *_ONE,
                )
            ),
            f"{one}/model": _of_one(
                get=_operation(
                    "The published model",
                    _answer(_reference("Model"), "The model, always the same bytes."),
                    *_ONE,
                    problems.NOT_PUBLISHED,
                )
            ),
            f"{one}/statement": _of_one(get=_statement()),
            f"{one}/statistics": _of_one(
                get=_operation(
                    "The blurred sums of a published 'moment' collection",
                    _answer(_reference("Statistics"), "The sums; further models are free."),
                    *_ONE,
                    problems.NOT_PUBLISHED,
                )
            ),
            f"{one}/submissions": _of_one(post=_submissions()),
            f"{one}/invitations": _of_one(
                post=_operation(
                    "Keep the hashes of one-time invitations",
                    _answer(_reference("Acknowledgement"), "They are on disk."),
                    problems.INVALID,
                    problems.INFEASIBLE,
                    *_ONE,
                    *_BODY,
                    administrator=True,
                    body={_JSON: {"schema": _reference("Hashes")}},
                )
            ),
            f"{one}/close": _of_one(
                post=_operation(
                    "Stop collecting",
                    _answer(_reference("Status"), "The state, which is closed or published."),
                    *_ONE,
                    administrator=True,
                )
            ),
            f"{one}/publish": _of_one(
                post=_operation(
                    "Close the collection, learn its model and publish it, once",
                    _answer(_reference("Model"), "The model; a second call returns the first."),
                    *_ONE,
                    problems.NOT_PUBLISHED,
                    problems.BELOW_QUORUM,
                    problems.INFEASIBLE,
                    problems.CONFLICT,
                    problems.OTHER_DATABASE,
                    administrator=True,
                )
            ),
            **_shares(one),
            "/agreements": {
                "post": _operation(
                    "The agreement that a schema and a promise would give; nothing is kept",
                    _answer(_reference("Agreement"), "The agreement."),
                    problems.INVALID,
                    problems.INFEASIBLE,
                    *_BODY,
                    administrator=True,
                    body={_JSON: {"schema": _reference("Proposal")}},
                )
            },
            **_pages(),
            "/healthz": {
                "get": _operation(
                    "Whether the store answers", _answer({"type": "object"}, "It does.")
                )
            },
            "/metrics": {
                "get": _operation(
                    "Counters for Prometheus",
                    {"200": {"description": "Text.", "content": {"text/plain": {"schema": _TEXT}}}},
                )
            },
            "/openapi.json": {
                "get": _operation("This document", _answer({"type": "object"}, "It."))
            },
        },
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "administrator": {"type": "http", "scheme": "bearer"},
                "peer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


_TEXT = {"type": "string"}


def _submissions() -> dict[str, Any]:
    operation = _operation(
        "Send one submission or up to 10,000; answered once they are on disk",
        _answer(_reference("Acknowledgement"), "They are on disk, each counted once."),
        problems.INVALID,
        problems.NOT_INVITED,
        problems.CONFLICT,
        problems.CLOSED,
        *_ONE,
        *_BODY,
        body={
            _JSON: {
                "schema": {"oneOf": [_reference("Submission"), _array(_reference("Submission"))]}
            },
            _BINARY: {"schema": {"type": "string", "format": "binary"}},
        },
    )
    operation["parameters"] = [
        {
            "name": "blurfit-invitation",
            "in": "header",
            "description": "An invitation for each submission, separated by commas.",
            "schema": {"type": "string"},
        }
    ]
    return operation


def _statement() -> dict[str, Any]:
    kinds = {"text/markdown": _TEXT, "text/html": _TEXT, "application/yaml": {"type": "object"}}
    operation = _operation(
        "The privacy statement in words",
        {
            "200": {
                "description": "The statement.",
                "content": {kind: {"schema": schema} for kind, schema in kinds.items()},
            }
        },
        problems.INVALID,
        *_ONE,
        problems.NOT_PUBLISHED,
    )
    operation["parameters"] = [
        {
            "name": "format",
            "in": "query",
            "schema": {"type": "string", "enum": ["markdown", "html", "yaml"]},
        }
    ]
    return operation


def _shares(one: str) -> dict[str, Any]:
    """What the two databases of an agreement ask each other, with the token that both have."""
    octets = {"schema": {"type": "string", "format": "binary"}}
    shared = (problems.INVALID, problems.INFEASIBLE, *_ONE)

    def query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "in": "query", "schema": schema}

    names = _operation(
        "The names of the shares here, in order, once the collection is closed",
        {"200": {"description": "16 bytes each.", "content": {_OCTETS: octets}}},
        *shared,
        parameters=[query("after", {"type": "string", "pattern": "^([0-9a-f]{32})?$"})],
        peer=True,
    )
    total = _operation(
        "Commit to one set of names, for ever, and tell the sum of their masks",
        _answer(_reference("Sums"), "The sums mod 2⁶⁴; asked again, the same."),
        *shared,
        problems.CONFLICT,
        problems.BELOW_QUORUM,
        *_BODY,
        body={_OCTETS: octets},
        parameters=[query("digest", _PRINT), query("count", _COUNT)],
        peer=True,
    )
    result = _operation(
        "Store and serve the result",
        _answer(_reference("Status"), "It is published here too."),
        *shared,
        problems.CONFLICT,
        problems.BELOW_QUORUM,
        *_BODY,
        body={_JSON: {"schema": _reference("Published")}},
        peer=True,
    )
    return {
        f"{one}/shares/names": _of_one(get=names),
        f"{one}/shares/sum": _of_one(post=total),
        f"{one}/shares/result": _of_one(post=result),
    }


def _pages() -> dict[str, Any]:
    """Pages for people; what they show they ask for at the other addresses."""
    same = {"304": {"description": "It is what the browser has already."}}
    page = _or_page({"200": {"description": "A page.", "content": {}}}) | same
    lost = {
        "404": {
            "description": "A page that says that this is no fingerprint.",
            "content": {"text/html": {"schema": _TEXT}},
        }
    }
    kinds = ("text/css", "text/javascript", "image/svg+xml")
    file = {"description": "A file.", "content": {kind: {"schema": _TEXT} for kind in kinds}}
    name = {"name": "name", "in": "path", "required": True, "schema": _TEXT}
    return {
        "/": {"get": _operation("All collections, as a page", page)},
        "/c/{fingerprint}": _of_one(get=_operation("Contribute, as a page", page | lost)),
        "/m/{fingerprint}": _of_one(get=_operation("A model, as a page", page | lost)),
        "/admin": {"get": _operation("Administration, as a page", page)},
        "/pages/{name}": {
            "get": _operation(
                "What the pages are made of",
                {"200": file} | same,
                problems.NOT_FOUND,
                parameters=[name],
            )
        },
    }


def _or_page(answers: dict[str, Any]) -> dict[str, Any]:
    answer = answers["200"]
    content = {**answer["content"], "text/html": {"schema": _TEXT}}
    return {**answers, "200": {**answer, "content": content}}


def _of_one(**operations: Any) -> dict[str, Any]:
    return {"parameters": [_FINGERPRINT], **operations}


def _operation(
    summary: str,
    answers: dict[str, Any],
    *kinds: Kind,
    administrator: bool = False,
    body: dict[str, Any] | None = None,
    parameters: list[Any] | None = None,
    peer: bool = False,
) -> dict[str, Any]:
    refusals: dict[str, list[Kind]] = {}
    for kind in (*kinds, *(_ADMINISTRATOR if administrator or peer else ()), *_ALWAYS):
        refusals.setdefault(str(kind.status), []).append(kind)
    found: dict[str, Any] = {
        "summary": summary,
        "responses": answers
        | {
            status: {
                "description": ". Or: ".join(kind.title for kind in sharing) + ".",
                "content": {problems.MEDIA_TYPE: {"schema": _reference("Problem")}},
            }
            for status, sharing in refusals.items()
        },
    }
    if administrator:
        found["security"] = [{"administrator": []}]
    if peer:
        found["security"] = [{"peer": []}]
    if body is not None:
        found["requestBody"] = {"required": True, "content": body}
    if parameters is not None:
        found["parameters"] = parameters
    return found


def _answer(schema: dict[str, Any], description: str, status: str = "200") -> dict[str, Any]:
    return {status: {"description": description, "content": {_JSON: {"schema": schema}}}}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 0}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


_COUNT = {"type": "integer", "minimum": 0}
_PRINT = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_OPTIONAL = {"type": ["number", "null"], "exclusiveMinimum": 0}
_SCHEMAS: dict[str, Any] = {
    "Status": _object(
        fingerprint=_PRINT,
        state={"type": "string", "enum": ["collecting", "closed", "published"]},
        count=_COUNT,
        quorum=_COUNT,
        invited={"type": "boolean"},
    ),
    "Hour": _object(
        hour={**_COUNT, "description": "Since 1970, in UTC."},
        count=_COUNT,
    ),
    "Proposal": {
        "type": "object",
        "required": ["schema", "epsilon", "delta", "quorum"],
        "additionalProperties": False,
        "properties": {
            "schema": {"type": "object"},
            "epsilon": {"type": "number", "exclusiveMinimum": 0},
            "delta": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "quorum": {"type": "integer", "minimum": 1},
            "mechanism": {"type": "string", "enum": ["moment", "input"]},
            "neighbours": {"type": "string", "enum": ["replace", "zero-out"]},
            "approximation": {"type": "string", "enum": ["taylor", "chebyshev", "least-squares"]},
            "weight_bound": _OPTIONAL,
            "l1": {"type": "number", "minimum": 0},
            "l2": {"type": "number", "minimum": 0},
            "local_epsilon": _OPTIONAL,
            "local_delta": {**_OPTIONAL, "exclusiveMaximum": 1},
        },
    },
    "Acknowledgement": _object(accepted=_COUNT, new=_COUNT),
    "Hashes": {
        **_object(hashes={"type": "array", "items": _PRINT, "minItems": 1, "maxItems": 10_000}),
        "additionalProperties": False,
    },
    "Submission": {
        **_object(
            format={"const": "blurfit-submission"},
            version={"const": 1},
            identifier={"type": "string", "pattern": "^[0-9a-f]{32}$"},
            fingerprint=_PRINT,
            mechanism={"type": "string", "enum": ["input", "moment"]},
            quadratic=_NUMBERS,
            linear=_NUMBERS,
        ),
        "additionalProperties": False,
    },
    "Agreement": _object(
        format={"const": "blurfit-agreement"},
        version={"enum": [1, 2]},
        fingerprint=_PRINT,
        schema={"type": "object"},
        loss={"type": "object"},
        regulariser={"type": "object"},
        calibration={"type": "object"},
        grid={"type": "object"},
    ),
    "Model": {"type": "object"},
    "Sums": _object(
        digest=_PRINT,
        count=_COUNT,
        sums={"type": "array", "items": {"type": "string", "pattern": "^[0-9]{1,20}$"}},
    ),
    "Published": {
        **_object(model={"type": "string"}, statistics={"type": "string"}),
        "additionalProperties": False,
    },
    "Statistics": _object(
        format={"const": "blurfit-statistics"},
        version={"const": 1},
        fingerprint=_PRINT,
        count=_COUNT,
        gram=_NUMBERS,
        moment=_NUMBERS,
    ),
    "Problem": _object(type=_TEXT, title=_TEXT, status={"type": "integer"}, detail=_TEXT),
}
