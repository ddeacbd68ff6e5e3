"""Requests to a service, and what is expected of its refusals."""

from starlette.testclient import TestClient

from blurfit.agreement.plan import Agreed
from blurfit.protocol import BINARY, JSON

TOKEN = "a-token-that-is-long-enough-for-tests"
ADMINISTRATOR = {"authorization": f"Bearer {TOKEN}"}


def opening(http: TestClient, agreed: Agreed, **query: str):
    """What is answered to whoever opens something."""
    headers = ADMINISTRATOR | as_json()
    return http.post("/collections", content=agreed.to_json(), headers=headers, params=query)


def opened(http: TestClient, agreement: Agreed, **query: str) -> str:
    answer = opening(http, agreement, **query)
    assert answer.status_code == 201, answer.text
    return f"/collections/{agreement.fingerprint}"


def as_json() -> dict[str, str]:
    return {"content-type": JSON}


def send(http: TestClient, path: str, body: bytes | str, kind: str = BINARY, **headers: str):
    return http.post(f"{path}/submissions", content=body, headers={"content-type": kind, **headers})


def refused(answer, status: int, kind: str, *words: str) -> None:
    asked = f"{answer.request.method} {answer.request.url} {dict(answer.request.headers)}"
    assert answer.status_code == status, f"{asked}: {answer.text}"
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:blurfit:problem:{kind}"
    assert problem["status"] == status
    for word in words:
        assert word in problem["detail"]
