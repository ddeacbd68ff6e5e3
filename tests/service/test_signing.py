"""A service that signs: receipts, what it publishes, alone or as one of two."""

import json

import httpx2 as httpx
import pytest
import rfc8785
from starlette.testclient import TestClient

from blurfit import PublishedModel, PublishedMoments, Store, perturb
from blurfit.agreement.plan import Plan
from blurfit.contributor.client import Client
from blurfit.errors import ServiceError
from blurfit.messages.signing import Signer, new_key
from blurfit.model.release import examine
from blurfit.protocol.tokens import hashed
from blurfit.service.app import Service
from support import ed25519, sharing
from support.requests import ADMINISTRATOR, TOKEN, as_json, opened, refused, send
from support.services import two_services
from support.stores import PEOPLE, SCHEMA, propose

PRIVATE = new_key(), new_key()
KEYS = [Signer(one).key for one in PRIVATE]
SIGNED = propose(signing_keys=KEYS[:1])


@pytest.fixture
def store():
    with Store() as found:
        found.appoint(hashed(TOKEN))
        yield found


def verifies(document: dict, key: str) -> bool:
    """By another implementation, and the canonical text written here."""
    (signature,) = (one["signature"] for one in document["signatures"] if one["key"] == key)
    rest = {name: value for name, value in document.items() if name != "signatures"}
    return ed25519.verifies(b"blurfit release\n" + rfc8785.dumps(rest), key, signature)


def test_receipts_and_what_is_published_are_signed_and_stay_so(store) -> None:
    with TestClient(Service(store, signing_key=PRIVATE[0])) as http:
        assert http.get("/signing-key").json() == {"key": KEYS[0]}
        path = opened(http, SIGNED)
        sent = perturb(SIGNED, PEOPLE)
        answer = send(http, path, sent.to_bytes()).json()
        again = send(http, path, sent.to_bytes()).json()
        assert (answer["new"], again["new"]) == (40, 0)
        assert answer["signature"] == again["signature"], "the same statement"
        text = http.post(f"{path}/publish", headers=ADMINISTRATOR).text
        assert text == http.get(f"{path}/model").text
        assert verifies(json.loads(text), KEYS[0])
        assert verifies(http.get(f"{path}/moments").json(), KEYS[0])
        assert PublishedModel.from_json(text).to_json() == text, "signatures are read and written"
        assert examine(text, SIGNED).verified
        shown = PublishedMoments.from_json(http.get(f"{path}/moments").text)
        assert shown.mark == store.moments(SIGNED).mark, "a release is the same, whoever signed it"
        assert shown.fit().signatures == ()
        assert http.get(f"{path}/statement").status_code == 200
    for key in (None, new_key()):  # lost: what was signed stays signed, and nothing more is taken
        with TestClient(Service(store, signing_key=key)) as http:
            assert http.get(f"{path}/model").text == text
            late = send(http, path, perturb(SIGNED, PEOPLE).to_bytes())
            refused(late, 409, "infeasible", "--signing-key-file")
            other = propose(signing_keys=KEYS[:1], quorum=21)
            answer = http.post(
                "/collections", content=other.to_json(), headers=ADMINISTRATOR | as_json()
            )
            refused(answer, 409, "infeasible", KEYS[0])


class Meddling(httpx.BaseTransport):
    """A proxy that answers in the service's place, or changes what it says."""

    def __init__(self, way) -> None:
        self.way, self.change = way, lambda answer: answer

    def handle_request(self, request):
        answer = self.way.handle_request(request)
        if not request.url.path.endswith("/submissions"):
            return answer
        content = self.change(json.loads(answer.read()))
        return httpx.Response(answer.status_code, json=content)


def test_the_client_takes_no_other_acknowledgement(store) -> None:
    with TestClient(Service(store, signing_key=PRIVATE[0])) as http:
        opened(http, SIGNED)
        way = Meddling(http._transport)
        with Client("http://testserver", transports=[way], patience=0.0) as client:
            record = {"age": 30, "income": 40}
            for change in (
                lambda answer: answer | {"signature": None},
                lambda answer: {name: answer[name] for name in ("accepted", "new")},
                lambda answer: answer | {"signature": "00" * 64},
            ):
                way.change = change
                with pytest.raises(ServiceError, match="signed with the key"):
                    client.contribute(SIGNED, record)
                with pytest.raises(ServiceError, match="signed with the key"):
                    client.submit(perturb(SIGNED, PEOPLE))
            way.change = lambda answer: answer
            receipt = client.contribute(SIGNED.fingerprint, record)
            assert receipt.wrong_with(SIGNED) == []
            assert client.submit(perturb(SIGNED, PEOPLE)) == 40


def test_a_plan_is_signed_wave_by_wave(store) -> None:
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 40, "admission": "anyone"}
    plan = Plan.propose(SCHEMA, waves=1, signing_keys=KEYS[:1], **promise)
    with TestClient(Service(store)) as http:
        answer = http.post(
            "/collections", content=plan.to_json(), headers=ADMINISTRATOR | as_json()
        )
        refused(answer, 409, "infeasible", KEYS[0])
    with TestClient(Service(store, signing_key=PRIVATE[0])) as http:
        http.post("/collections", content=plan.to_json(), headers=ADMINISTRATOR | as_json())
        wave = plan.first()
        send(http, f"/collections/{wave.fingerprint}", perturb(wave, PEOPLE).to_bytes())
        model = http.post(f"/collections/{plan.fingerprint}/publish", headers=ADMINISTRATOR)
        assert verifies(model.json(), KEYS[0])
        assert model.text == http.get(f"/collections/{plan.fingerprint}/model").text
        (released,) = http.get(f"/collections/{plan.fingerprint}/releases").json()
        assert "signatures" not in released, "its text is what later waves follow"


def test_of_two_databases_both_sign(store) -> None:
    agreement = sharing.new_agreement(signing_keys=KEYS)
    path = f"/collections/{agreement.fingerprint}"
    with (
        Store() as other,
        two_services(agreement, (store, other), signing_key=PRIVATE) as (first, second),
    ):
        ways = [first._transport, second._transport]
        with Client.of(agreement, transports=ways, patience=0.0) as sender:
            for age in (10, 40, 70, 90):
                sent = sender.contribute(agreement, {"age": age, "income": age})
                assert sent.wrong_with(agreement) == []
        swapped = sent.parts[0].signatures[::-1]
        assert swapped[0] != swapped[1], "each says which database it is"
        second.post(f"{path}/close", headers=ADMINISTRATOR)
        text = first.post(f"{path}/publish", headers=ADMINISTRATOR).text
        assert text == first.get(f"{path}/model").text == second.get(f"{path}/model").text
        for key in KEYS:
            assert verifies(json.loads(text), key)
            for http in (first, second):
                assert verifies(http.get(f"{path}/moments").json(), key)
        assert examine(text, agreement).verified
        one = json.loads(text)
        one["signatures"] = one["signatures"][:1]
        assert "University has not signed" in examine(json.dumps(one)).wrong[0]
        asked = second.post(f"{path}/peer/signatures", content=b"{}", headers=as_json())
        refused(asked, 401, "unauthorised")
