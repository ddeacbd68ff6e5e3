"""A page may send shares to the other database, and nothing else may come from elsewhere."""

import pytest
from starlette.testclient import TestClient

from blurfit import Agreement, Store
from blurfit.protocol.http import BINARY
from blurfit.service.app import Limits, Service
from blurfit.service.website import POLICY
from support.sharing import SCHEMA, TWO, marked, new_agreement

ONE = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=3)


@pytest.fixture
def both():
    agreement = new_agreement()
    with Store() as store:
        store.open(agreement, role="first")
        store.open(ONE)
        with TestClient(Service(store, Limits(requests_per_second=0))) as http:
            yield agreement, http


def preflight(http, fingerprint: str, origin: str):
    headers = {"origin": origin, "access-control-request-method": "POST"}
    return http.options(f"/collections/{fingerprint}/submissions", headers=headers)


@pytest.mark.parametrize("origin", [url for _, url in TWO])
def test_pages_of_the_two_may_send(both, origin) -> None:
    agreement, http = both
    answer = preflight(http, agreement.fingerprint, origin)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-methods"] == "POST"
    assert answer.headers["access-control-allow-headers"] == "content-type, blurfit-invitation"
    assert "access-control-allow-credentials" not in answer.headers
    share = marked(agreement, 1).first.to_bytes()
    for body, status in ((share, 200), (b"x", 400)):
        sent = http.post(
            f"/collections/{agreement.fingerprint}/submissions",
            content=body,
            headers={"origin": origin, "content-type": BINARY},
        )
        assert sent.status_code == status
        assert sent.headers["access-control-allow-origin"] == origin


def test_no_other_page_may(both) -> None:
    agreement, http = both
    for fingerprint, origin in (
        (agreement.fingerprint, "https://elsewhere.example"),
        (agreement.fingerprint, "null"),
        (agreement.fingerprint, TWO[0][1] + "/"),
        (ONE.fingerprint, TWO[0][1]),
        ("0" * 64, TWO[0][1]),
    ):
        answer = preflight(http, fingerprint, origin)
        assert answer.status_code == 405
        assert "access-control-allow-origin" not in answer.headers
    asked = http.options(
        f"/collections/{agreement.fingerprint}/invitation", headers={"origin": TWO[1][1]}
    )
    assert asked.headers["access-control-allow-methods"] == "GET"
    assert asked.headers["access-control-allow-headers"].lower() == "blurfit-invitation"
    state = http.get(f"/collections/{agreement.fingerprint}", headers={"origin": TWO[1][1]})
    assert state.headers["access-control-allow-origin"] == TWO[1][1]  # how many there are
    for path in ("/agreement", "/model", "/peer/identifiers", "/publish"):
        address = f"/collections/{agreement.fingerprint}{path}"
        answer = http.get(address, headers={"origin": TWO[1][1]})
        assert "access-control-allow-origin" not in answer.headers


def test_the_page_may_ask_these_and_nobody_else(both) -> None:
    agreement, http = both
    allowed = f"connect-src 'self' {TWO[0][1]} {TWO[1][1]}"
    policy = http.get(f"/c/{agreement.fingerprint}").headers["content-security-policy"]
    assert policy == POLICY.replace("connect-src 'self'", allowed)
    for path in (f"/c/{ONE.fingerprint}", f"/c/{'0' * 64}", f"/m/{agreement.fingerprint}", "/"):
        assert http.get(path).headers["content-security-policy"] == POLICY
