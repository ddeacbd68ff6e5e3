"""How an operation is described; the whole document is held to the service in `test_openapi`."""

from blurfit.protocol import problems
from blurfit.protocol.wire import JSON, PROBLEM
from blurfit.service.operations import OBJECT, answer, of_one, operation, or_page, query


def test_refusals_of_one_status_are_told_together() -> None:
    told = operation("x", answer(OBJECT, "Done."), problems.INVALID, security="administrator")
    assert told["security"] == [{"administrator": []}]
    refusal = told["responses"][str(problems.INVALID.status)]
    assert problems.INVALID.title in refusal["description"]
    assert set(refusal["content"]) == {PROBLEM}
    always = {str(kind.status) for kind in (problems.TOO_MANY, problems.UNAVAILABLE)}
    assert always | {"200", str(problems.UNAUTHORISED.status)} <= set(told["responses"])
    assert str(problems.UNAUTHORISED.status) not in operation("x", {})["responses"]


def test_parameters_and_pages() -> None:
    one = of_one(get=operation("x", {}, parameters=[query("after", {"pattern": "^a$"})]))
    assert one["parameters"][0]["name"] == "fingerprint"
    (after,) = one["get"]["parameters"]
    assert (after["in"], after["schema"]["type"]) == ("query", "string")
    page = or_page(answer(OBJECT, "The state."))
    assert set(page["200"]["content"]) == {JSON, "text/html"}
