"""An invitation is checked by whoever holds it, and by nobody else."""

from dataclasses import replace

from starlette.testclient import TestClient

from blurfit import Agreement, Store
from blurfit.contributor.blur import perturb
from blurfit.protocol.tokens import hashed, new_token
from blurfit.service.app import Service
from support.requests import ADMINISTRATOR, opened, refused, send
from support.stores import SCHEMA

HEADER = "blurfit-invitation"


def test_good_until_it_is_used(http, agreement) -> None:
    agreement = replace(agreement, admission="invited")
    path = opened(http, agreement)
    token = new_token()
    hashes = {"hashes": [hashed(token).hex()]}
    http.post(f"{path}/invitations", json=hashes, headers=ADMINISTRATOR)

    def usable(given: str) -> bool:
        answer = http.get(f"{path}/invitation", headers={HEADER: given})
        assert answer.headers["cache-control"] == "no-store"
        return answer.json() == {"usable": True}

    assert usable(token)
    assert usable(token)  # asking does not use it up
    assert not usable(new_token())
    assert http.get(f"{path}/invitation").json() == {"usable": False}
    sent = perturb(agreement, {"age": 1, "income": 2})
    send(http, path, sent.to_bytes(), **{HEADER: token})
    assert not usable(token)


def test_where_none_is_needed(http, agreement) -> None:
    path = opened(http, agreement)
    assert http.get(f"{path}/invitation").json() == {"usable": True}
    refused(http.get(f"/collections/{'0' * 64}/invitation"), 404, "unknown-collection")


def test_pages_of_the_other_database_may_ask() -> None:
    databases = [("Office", "https://first.example"), ("University", "https://second.example")]
    shared = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20, databases=databases)
    with Store() as store, TestClient(Service(store)) as client:
        store.open(shared, role="second")
        path = f"/collections/{shared.fingerprint}/invitation"
        for origin, let in (("https://first.example", True), ("https://evil.example", False)):
            for method in ("GET", "OPTIONS"):
                answer = client.request(method, path, headers={"origin": origin})
                allowed = answer.headers.get("access-control-allow-origin")
                assert allowed == (origin if let else None)
        preflight = client.options(path, headers={"origin": "https://first.example"})
        assert preflight.headers["access-control-allow-methods"] == "GET"
        assert preflight.headers["access-control-allow-headers"].lower() == HEADER
