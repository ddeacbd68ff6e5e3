"""A date over HTTP: set when something is opened, moved while it is open, and kept."""

import time

import pytest
from starlette.testclient import TestClient

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.dates import instant
from blurfit.protocol.tokens import hashed
from blurfit.service.app import Limits, Service
from blurfit.store import stewards
from blurfit.store.store import Store
from support.closings import let_pass
from support.plans import people, plan, rows
from support.requests import ADMINISTRATOR, TOKEN, as_json, opened, refused, send
from support.stores import PEOPLE, propose

AGREEMENT = propose()
PLAN = plan("label", waves=2, quorum=60, admission="anyone")
HERE = f"/plans/{PLAN.fingerprint}"


@pytest.fixture
def store():
    with Store() as kept:
        kept.appoint(hashed(TOKEN))
        yield kept


def served(store: Store, look_every: float) -> TestClient:
    return TestClient(Service(store, Limits(requests_per_second=0), look_every=look_every))


@pytest.fixture
def http(store):
    with served(store, look_every=3600) as client:
        yield client


def move(http: TestClient, path: str, body: str):
    return http.post(f"{path}/until", content=body, headers=ADMINISTRATOR | as_json())


def test_after_its_date_a_collection_refuses_kindly(http, store) -> None:
    path = opened(http, AGREEMENT, until="2096-01-31T18:00+01:00")
    assert http.get(path).json()["closes"] == instant("2096-01-31T17:00Z")
    table = perturb_table(AGREEMENT, PEOPLE).to_bytes()
    assert send(http, path, table).json() == {"accepted": 40, "new": 40}
    let_pass(store, AGREEMENT.fingerprint)
    late = perturb(AGREEMENT, {"age": 1, "income": 2}).to_bytes()
    refused(send(http, path, late), 409, "date-closed", "took submissions until 2001-09-09")
    assert send(http, path, table).json() == {"accepted": 40, "new": 0}
    assert http.get("/collections").json()[0]["state"] == "closed"
    refused(move(http, path, '{"until": null}'), 409, "closed", "closed for good")
    assert http.post(f"{path}/publish", headers=ADMINISTRATOR).status_code == 200


def test_the_date_of_an_open_collection_is_moved_by_its_administrator(http, store) -> None:
    path = opened(http, AGREEMENT)
    assert http.get(path).json()["closes"] is None
    assert move(http, path, '{"until": "2096-01-31"}').json()["closes"] == instant("2096-01-31")
    assert move(http, path, '{"until": null}').json()["closes"] is None
    refused(move(http, path, '{"until": "2001-01-31"}'), 400, "invalid", "To close now")
    refused(move(http, path, '{"until": "soon"}'), 400, "invalid", "a time with its zone")
    refused(move(http, path, "[]"), 400, "invalid", "null for no date")
    body = '{"until": "2096-01-31"}'
    refused(http.post(f"{path}/until", content=body, headers=as_json()), 401, "unauthorised")
    done = [(one.what, one.outcome) for one in store.read(stewards.newest)]
    assert done[::-1] == [
        ("open", 201),
        *(("move date", outcome) for outcome in (200, 200, 400, 400, 400)),
    ]


def test_a_plan_ends_by_itself_when_its_date_comes(http, store) -> None:
    query = {"until": "2096-01-31"}
    answer = http.post(
        "/plans", content=PLAN.to_json(), headers=ADMINISTRATOR | as_json(), params=query
    )
    assert answer.json()["closes"] == instant("2096-01-31")
    first = Agreement.from_json(http.get(f"{HERE}/agreement").text)
    filled = perturb_table(first, rows(people(70, 4), 0, PLAN.quorums[0])).to_bytes()
    assert send(http, f"/collections/{first.fingerprint}", filled).status_code == 200
    second = Agreement.from_json(http.get(f"{HERE}/agreement").text)
    assert second.wave.number == 2
    moved = move(http, HERE, '{"until": "2097-01-31"}')
    assert moved.json()["closes"] == instant("2097-01-31")
    refused(move(http, f"/collections/{second.fingerprint}", '{"until": null}'), 409, "infeasible")
    let_pass(store, PLAN.fingerprint)
    refused(http.get(f"{HERE}/agreement"), 409, "date-closed")
    deadline = time.monotonic() + 300
    with served(store, look_every=0.05) as another:
        while (status := another.get(HERE).json())["model"] is None:  # at its next look
            assert time.monotonic() < deadline, status
    assert status["state"] == "ended"
    assert status["reason"] == "Its date came after 1 of its 2 waves."
    refused(move(http, HERE, '{"until": null}'), 409, "closed")
    refused(move(http, f"/plans/{'0' * 64}", '{"until": null}'), 404, "unknown-collection")
