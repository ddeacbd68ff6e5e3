"""How an operation is declared; the whole document is held to the service in `test_openapi`."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from blurfit import Store
from blurfit.protocol import problems
from blurfit.protocol.http import JSON, PROBLEM, Acknowledgement
from blurfit.service.app import Service
from blurfit.service.operations import (
    OBJECT,
    answer,
    document,
    get,
    operation,
    or_page,
    post,
    query,
    routes,
)

DONE = answer(OBJECT, "Done.")


class Things:
    """Endpoints of two paths."""

    @get("/things", DONE)
    async def list(self, _request: Request) -> Response:
        """All things.

        In no order.
        """
        return Response("listed")

    @post("/things", DONE, body=Acknowledgement)
    async def keep(self, _request: Request) -> Response:
        """Keep a thing."""
        return Response("kept")

    @post("/things/{fingerprint}", DONE)
    async def change(self, _request: Request) -> Response:
        """Change a thing."""
        return Response("changed")


def test_endpoints_of_one_path_are_one_route() -> None:
    things, one = routes([Things()])
    assert (things.path, one.path) == ("/things", "/things/{fingerprint}")
    assert things.methods == {"GET", "HEAD", "POST"}
    assert one.methods == {"POST"}
    for method, expected in (("GET", b"listed"), ("HEAD", b"listed"), ("POST", b"kept")):
        request = Request({"type": "http", "method": method})
        assert asyncio.run(things.endpoint(request)).body == expected


def test_what_is_declared_is_described_by_its_docstring() -> None:
    found = document([Things.list.operation, Things.keep.operation])["paths"]
    assert set(found) == {"/things"}
    assert found["/things"]["get"]["summary"] == "All things"
    body = found["/things"]["post"]["requestBody"]["content"]
    assert body == {JSON: {"schema": {"$ref": "#/components/schemas/Acknowledgement"}}}


def test_refusals_of_one_status_are_told_together() -> None:
    told = operation("get", "/", "x", DONE, problems.INVALID, security="administrator").described
    assert told["security"] == [{"administrator": []}]
    refusal = told["responses"][str(problems.INVALID.status)]
    assert problems.INVALID.title in refusal["description"]
    assert set(refusal["content"]) == {PROBLEM}
    always = {str(kind.status) for kind in (problems.TOO_MANY, problems.UNAVAILABLE)}
    assert always | {"200", str(problems.UNAUTHORISED.status)} <= set(told["responses"])


def test_some_refusals_follow_from_the_rest() -> None:
    plain = operation("get", "/", "x", DONE).described["responses"]
    assert not {"400", "401", "404", "413"} & set(plain)
    one = operation("post", "/{fingerprint}", "x", DONE, body=Acknowledgement, security="peer")
    assert {"400", "401", "404", "408", "413", "415"} <= set(one.described["responses"])


def test_parameters_and_pages() -> None:
    after = query("after", {"pattern": "^a$"})
    found = document([operation("get", "/{fingerprint}", "x", {}, parameters=[after])])["paths"]
    assert found["/{fingerprint}"]["parameters"][0]["name"] == "fingerprint"
    assert found["/{fingerprint}"]["get"]["parameters"] == [after]
    assert (after["in"], after["schema"]["type"]) == ("query", "string")
    page = or_page(DONE)
    assert set(page["200"]["content"]) == {JSON, "text/html"}


def test_every_type_that_is_referred_to_has_a_schema_under_its_name() -> None:
    found = Service(Store()).document["components"]["schemas"]
    assert {"Status", "Problem", "Hour", "Hashes", "Sums", "News"} <= set(found)
    assert found["Hashes"]["additionalProperties"] is False
    assert found["Status"]["required"] == ["fingerprint", "state", "count", "quorum", "invited"]
