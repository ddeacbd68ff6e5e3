"""Tokens that are good for one thing, over HTTP; and what was done is written down."""

import pytest
from starlette.testclient import TestClient

from blurfit import perturb_table
from blurfit.protocol import tokens
from blurfit.service.app import Service
from blurfit.store.store import RIGHTS, Store
from support.requests import refused
from support.stores import propose

JSON = {"content-type": "application/json"}


@pytest.fixture
def service():
    with Store() as store:
        given = {name: tokens.new_token() for name in ("administrator", *RIGHTS)}
        store.appoint(tokens.hashed(given["administrator"]))
        for right in RIGHTS:
            store.grant(f"may {right}", right, tokens.hashed(given[right]))
        with TestClient(Service(store)) as client:
            bearers = {name: {"authorization": f"Bearer {given[name]}"} for name in given}
            yield client, bearers


def test_a_token_says_what_it_may_do(service) -> None:
    client, given = service
    told = {who: client.get("/token", headers=headers).json() for who, headers in given.items()}
    assert told["administrator"] == {"name": "administrator", "rights": [*RIGHTS]}
    for right in RIGHTS:
        assert told[right] == {"name": f"may {right}", "rights": [right]}
    for headers in ({}, {"authorization": "Bearer of-nothing"}):
        refused(client.get("/token", headers=headers), 401, "unauthorised")
    assert not client.get("/audit-log", headers=given["administrator"]).json(), "asking is no deed"


def test_what_was_done_is_told_with_who_and_how_it_ended(service) -> None:
    client, given = service
    agreement = propose(admission="invited")
    client.post("/collections", content=agreement.to_json(), headers=JSON | given["open"])
    path = f"/collections/{agreement.fingerprint}"
    client.post(f"{path}/publish", headers=given["publish"])
    client.post(f"{path}/publish", headers=given["open"])  # is refused: nobody was let in
    found = client.get("/audit-log", headers=given["read"]).json()
    assert [(one["name"], one["what"], one["outcome"]) for one in found] == [
        ("may publish", "publish", 409),
        ("may open", "open", 201),
    ]
    assert found[0]["fingerprint"] == agreement.fingerprint


@pytest.mark.parametrize("peer_token", [None, "p" * 43], ids=["alone", "with a peer"])
def test_every_door_that_needs_a_token_is_shut_without_it(peer_token) -> None:
    """What is described needs a token; that it is asked for is up to each endpoint."""
    both = ("First", "https://first.example"), ("Second", "https://second.example")
    agreement = propose(databases=both)
    with Store() as store, TestClient(Service(store, peer_token=peer_token)) as client:
        administrator = tokens.new_token()
        store.appoint(tokens.hashed(administrator))
        store.open(agreement, role="second")
        wrong = {"administrator": ["x" * 43], "peer": ["x" * 43, administrator]}
        for path, method, kind in guarded():
            for fingerprint in (agreement.fingerprint, "0" * 64):
                for token in (None, *wrong[kind]):
                    headers = {} if token is None else {"authorization": f"Bearer {token}"}
                    address = path.format(fingerprint=fingerprint)
                    answer = client.request(method, address, headers=headers)
                    assert answer.status_code == 401, f"{method} {address}"


def test_every_door_is_shut_to_tokens_of_other_rights(service) -> None:
    client, given = service
    agreement = propose(admission="invited")
    client.post("/collections", content=agreement.to_json(), headers=JSON | given["open"])
    steered = ("pause", "hold", "resume", "until", "close", "sides")
    fits = {f"/collections/{{fingerprint}}/{what}": {"open"} for what in steered}
    fits |= {place: {"open"} for place in ("/surveys", "/proposals", "/outlooks", "/collections")}
    fits |= {"/collections/{fingerprint}/invitations": {"invite"}, "/audit-log": {"read"}}
    fits |= {"/collections/{fingerprint}/publish": {"publish"}, "/token": set(RIGHTS)}
    fits |= {"/collections/{fingerprint}/halves": set()}  # the administrator's own alone
    doors = [(path, method) for path, method, kind in guarded() if kind == "administrator"]
    assert {path for path, _ in doors} == set(fits)
    for path, method in doors:
        for right in RIGHTS:
            address = path.format(fingerprint=agreement.fingerprint)
            answer = client.request(method, address, headers=given[right])
            assert (answer.status_code != 401) == (right in fits[path]), f"{right}: {address}"


def guarded() -> list[tuple[str, str, str]]:
    return [
        (path, method, next(iter(operation["security"][0])))
        for path, operations in Service(Store()).document["paths"].items()
        for method, operation in operations.items()
        if method != "parameters" and "security" in operation
    ]


# ---- whether contributors look honest is told to the administrator, and to nobody else

AGREEMENT = propose(epsilon=1, quorum=200)
PATH = f"/collections/{AGREEMENT.fingerprint}/halves"


def send(client: TestClient, age: float, count: int = 100) -> None:
    people = {"age": [age] * count, "income": [age] * count}
    client.app.store.add(AGREEMENT, perturb_table(AGREEMENT, people))


def test_it_changes_with_who_comes(service) -> None:
    client, given = service
    send(client, 0.0, 150)
    before = client.get(PATH, headers=given["administrator"]).json()
    assert set(before) == {"people", "disagree", "long", "told"}
    send(client, 100.0, 150)
    after = client.get(PATH, headers=given["administrator"]).json()
    assert (before["people"], before["disagree"], after["disagree"]) == (150, False, True)
    unknown = client.get(f"/collections/{'0' * 64}/halves", headers=given["administrator"])
    assert unknown.status_code == 404
