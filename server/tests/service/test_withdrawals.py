"""Withdraw over HTTP: with the secret alone, at one database or at two."""

from dataclasses import replace

import httpx2 as httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from blurfit import InvalidValueError, perturb
from blurfit.contributor.client import Client
from blurfit.contributor.journal import Part, Receipt, withdraw
from blurfit.errors import ServiceError
from blurfit.messages.signing import Signer, about_submissions, new_key
from blurfit.messages.submissions import secrets_of
from blurfit.protocol import hashed
from blurfit.randomness import new_secret
from blurfit_server import Store
from blurfit_server.service.app import Limits, Service
from blurfit_server.store import arrivals
from server_support.requests import ADMINISTRATOR, TOKEN, as_json, opened, refused, send
from server_support.services import two_services
from support import ed25519, sharing
from support.proposals import PEOPLE, propose
from support.sharing import TWO

PRIVATE = new_key(), new_key()
KEYS = [Signer(one).key for one in PRIVATE]


@pytest.fixture
def store():
    with Store() as found:
        found.appoint(hashed(TOKEN))
        yield found


@pytest.fixture
def http(store):
    with TestClient(Service(store, signing_key=PRIVATE[0])) as found:
        yield found


def ask(http: TestClient, path: str, *secrets: bytes):
    body = {"secrets": [one.hex() for one in secrets]}
    return http.post(f"{path}/withdrawals", json=body)


def test_the_secret_withdraws_and_the_identifier_does_not(http, store) -> None:
    agreement = propose(signing_keys=KEYS[:1])
    path, secret = opened(http, agreement), new_secret()
    sent = perturb(agreement, PEOPLE, secret=secret)
    send(http, path, sent.to_bytes())
    names = sent.identifiers
    guesses = [name.tobytes() * 2 for name in names[:2]] + [bytes(32), bytes.fromhex(secret)]
    answer = ask(http, path, *guesses).json()
    assert (answer["withdrawn"], answer["new"], len(answer["unknown"])) == (0, 0, 4)
    assert "signature" not in answer
    right = secrets_of(secret, 3, 6)
    answer = ask(http, path, *right, bytes(32)).json()
    assert (answer["withdrawn"], answer["new"], len(answer["unknown"])) == (3, 3, 1)
    told = about_submissions("withdrawal", agreement.fingerprint, "whole", names[3:6].tobytes())
    assert ed25519.verifies(told, KEYS[0], answer["signature"])
    assert ask(http, path, *right).json() == {
        "withdrawn": 3,
        "new": 0,
        "signature": answer["signature"],
    }
    refused(send(http, path, sent.to_bytes()), 409, "conflict", "withdrawn")
    assert http.get(path).json()["count"] == 37
    model = http.post(f"{path}/publish", headers=ADMINISTRATOR).json()
    assert model["count"] == 37
    stay = np.delete(sent.numbers, [3, 4, 5], axis=0)
    exact = [float(sum(map(int, column))) for column in (stay / agreement.step).T]
    assert store.moments(agreement).sums.tolist() == [one * agreement.step for one in exact]
    refused(ask(http, path, *secrets_of(secret, 0, 1)), 409, "closed", "fixed")
    assert ask(http, path, *right).json()["withdrawn"] == 3, "it is done, whatever came since"


def test_what_is_no_secret_is_refused_and_each_costs_a_hundred_requests(store) -> None:
    limits = Limits(requests_per_second=1e-9, burst=950)
    with TestClient(Service(store, limits), client=("203.0.113.5", 1)) as http:
        agreement = propose()
        path = opened(http, agreement)
        for body in (b"", b"{}", b'{"secrets": []}', b'{"secrets": ["ab"]}', b'["ab"]'):
            answer = http.post(f"{path}/withdrawals", content=body, headers=as_json())
            refused(answer, 400, "invalid", "secrets")
        refused(ask(http, f"/collections/{'0' * 64}", bytes(32)), 404, "unknown-collection")
        assert [ask(http, path, bytes(32)).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_a_withdrawal_is_paid_before_any_of_it_is_read(store) -> None:
    """Seen before: 0.95 MB with a name twice, 45 a second, each read at the others' expense."""
    limits = Limits(requests_per_second=1e-9, burst=150)
    with TestClient(Service(store, limits), client=("203.0.113.5", 1)) as http:
        path = opened(http, propose())
        assert ask(http, path, bytes(32)).status_code == 200

        def body():
            yield b'{"secrets": ["'
            raise AssertionError("nothing of it should be asked for")

        answer = http.post(f"{path}/withdrawals", content=body(), headers=as_json())
        refused(answer, 429, "too-many-requests")


def test_where_there_are_more_blocks_each_costs_a_request(store, monkeypatch) -> None:
    monkeypatch.setattr(store, "blocks", lambda _wave: 150)
    limits = Limits(requests_per_second=1e-9, burst=350)
    with TestClient(Service(store, limits), client=("203.0.113.5", 1)) as http:
        path = opened(http, propose())
        assert [ask(http, path, bytes(32)).status_code for _ in range(3)] == [200, 200, 429]


def test_a_collection_that_closes_in_between_tells_who_stays(store, monkeypatch) -> None:
    """Others write between any two blocks; here it is somebody who closes the collection."""
    monkeypatch.setattr(arrivals, "BLOCKS_AT_ONCE", 1)
    agreement = propose(signing_keys=KEYS[:1])
    service = Service(store, signing_key=PRIVATE[0])
    with TestClient(service) as http:
        path, secret = opened(http, agreement), new_secret()
        sent = perturb(agreement, PEOPLE, secret=secret)
        for one in sent:
            send(http, path, one.to_bytes())
        write = store.write

        def and_close(work, *given, **named):
            done = write(work, *given, **named)
            if work is arrivals.remove:
                store.close_collection(agreement.fingerprint)
            return done

        monkeypatch.setattr(store, "write", and_close)
        answer = ask(http, path, *secrets_of(secret, 0, 3)).json()
        assert (answer["withdrawn"], answer["new"], len(answer["staying"])) == (1, 1, 2)
        names = [one.tobytes() for one in sent.identifiers[:3]]
        (out,) = [one for one in names if one.hex() not in answer["staying"]]
        told = about_submissions("withdrawal", agreement.fingerprint, "whole", out)
        assert ed25519.verifies(told, KEYS[0], answer["signature"])
        part = Part(0, 3, agreement.fingerprint, (None,))
        receipt = Receipt(("http://testserver",), secret, (part,))
        found = withdraw(receipt, transports=[http._transport], patience=0.0)
        assert (found.out, found.staying) == (1, 2)
        assert "closed before all of it was withdrawn" in found.reason
        assert store.count(agreement) == 39


def test_a_receipt_withdraws_all_of_it_or_some_rows(http, store) -> None:
    agreement = propose(signing_keys=KEYS[:1])
    opened(http, agreement)
    way = {"transports": [http._transport], "patience": 0.0}
    with Client("http://testserver", transports=[http._transport], patience=0.0) as client:
        receipts = [client.contribute(agreement, {"age": 5, "income": n}) for n in range(3)]
        client.submit(perturb(agreement, PEOPLE))
    found = withdraw(receipts[0], **way)
    assert (found.out, found.unknown, found.staying) == (1, 0, 0)
    assert withdraw(receipts[0], **way) == found
    assert store.count(agreement) == 42
    stranger = replace(receipts[1], secret=new_secret())
    found = withdraw(stranger, **way)
    assert (found.out, found.unknown, found.signatures) == (1, 1, [])
    with pytest.raises(InvalidValueError, match="from 1 to 1, and got 8"):
        withdraw(receipts[1], [7], **way)
    http.post(f"/collections/{agreement.fingerprint}/close", headers=ADMINISTRATOR)
    found = withdraw(receipts[1], [0], **way)
    assert (found.out, found.staying) == (0, 1)
    assert "closed" in found.reason
    assert store.count(agreement) == 42


def test_an_answer_that_is_not_signed_as_agreed_is_none(http) -> None:
    agreement = propose(signing_keys=KEYS[:1])
    opened(http, agreement)

    class Lying(httpx.BaseTransport):
        def handle_request(self, request):
            if request.url.path.endswith("/withdrawals"):
                return httpx.Response(200, json=self.says)
            return http._transport.handle_request(request)

    with Client("http://testserver", transports=[http._transport], patience=0.0) as client:
        receipt = client.contribute(agreement, {"age": 5, "income": 6})
    way = Lying()
    for says, words in (
        ({"withdrawn": 1, "new": 1}, "signed"),
        ({"withdrawn": 1, "new": 1, "signature": "00" * 64}, "signed"),
        ({"withdrawn": 0, "new": 0}, "1 submissions"),
        ({}, "answer to a withdrawal"),
    ):
        way.says = says
        with pytest.raises(ServiceError, match=words):
            withdraw(receipt, transports=[way], patience=0.0)
    way.says = {"withdrawn": 0, "new": 0, "unknown": [receipt.identifier]}
    found = withdraw(receipt, transports=[way], patience=0.0)
    assert (found.out, found.staying) == (0, 1), "it signed that it has it"
    assert "signed that it has stored" in found.reason
    unsigned = replace(receipt, parts=(replace(receipt.parts[0], signatures=(None,)),))
    assert withdraw(unsigned, transports=[way], patience=0.0).unknown == 1


@pytest.mark.parametrize("closed", ["neither", "second"])
def test_two_databases_are_both_asked(store, closed) -> None:
    agreement = sharing.new_agreement(signing_keys=KEYS)
    path = f"/collections/{agreement.fingerprint}"
    with (
        Store() as other,
        two_services(agreement, (store, other), signing_key=PRIVATE) as (first, second),
    ):
        ways = [first._transport, second._transport]
        with Client.of(agreement, transports=ways, patience=0.0) as sender:
            sent = [sender.contribute(agreement, {"age": age, "income": age}) for age in range(5)]
        if closed == "second":
            second.post(f"{path}/close", headers=ADMINISTRATOR)
        found = withdraw(sent[2], transports=ways, patience=0.0)
        assert (found.out, found.unknown, found.staying) == (1, 0, 0)
        assert len(found.signatures) == (2 if closed == "neither" else 1)
        asked = second.options(f"{path}/withdrawals", headers={"origin": TWO[0][1]})
        assert asked.headers["access-control-allow-origin"] == TWO[0][1]
        second.post(f"{path}/close", headers=ADMINISTRATOR)
        model = first.post(f"{path}/publish", headers=ADMINISTRATOR).json()
        assert model["count"] == 4
        late = withdraw(sent[3], transports=ways, patience=0.0)
        assert (late.out, late.staying) == (0, 1)
