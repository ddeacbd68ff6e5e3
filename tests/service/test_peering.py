"""Two services that publish together, over HTTP: what is asked, by whom, and what is refused."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest
from starlette.testclient import TestClient

from blurfit import Agreement, PublishedModel
from blurfit.protocol import tokens
from blurfit.protocol.wire import BINARY
from blurfit.service import peer as module
from blurfit.service import peering
from blurfit.service.app import Limits, Service
from blurfit.store import stewards
from blurfit.store.store import Store
from support.requests import refused
from support.sharing import TWO, counted, marked, new_agreement
from support.stores import whatever_it_keeps

TOKEN, PEER = "the-token-of-an-administrator-here", "the-token-that-both-databases-share"
ADMINISTRATOR = {"authorization": f"Bearer {TOKEN}"}
JSON = {"content-type": "application/json"}
NO_LIMIT = Limits(requests_per_second=0)


@dataclass
class Two:
    """Two services, and an agreement between them."""

    agreement: Agreement
    first: TestClient
    second: TestClient
    stores: tuple[Store, Store]

    @property
    def path(self) -> str:
        return f"/collections/{self.agreement.fingerprint}"

    @property
    def other(self) -> dict[str, str]:
        token = tokens.for_agreement(PEER, self.agreement.fingerprint)
        return {"authorization": f"Bearer {token}"}

    def send(self, *people: int, to: tuple[int, ...] = (0, 1)) -> None:
        shared = marked(self.agreement, *people)
        for side in to:
            shares = (shared.first, shared.second)[side]
            answer = (self.first, self.second)[side].post(
                f"{self.path}/submissions",
                content=shares.to_bytes(),
                headers={"content-type": BINARY},
            )
            assert answer.json() == {"accepted": len(people), "new": len(people)}, answer.text

    def publish(self, side: int):
        return (self.first, self.second)[side].post(f"{self.path}/publish", headers=ADMINISTRATOR)


@pytest.fixture
def two(place, tmp_path) -> Iterator[Two]:
    with running(new_agreement(), place, tmp_path) as both:
        yield both


@contextmanager
def running(agreement: Agreement, place, tmp_path) -> Iterator[Two]:
    with Store(place) as one, Store(tmp_path / "second.db") as other:
        for store in (one, other):
            store.appoint(tokens.hashed(TOKEN))
        far = Service(other, NO_LIMIT, peer_token=PEER)
        with TestClient(far, base_url=TWO[1][1]) as second:
            options = {"transport": second._transport, "patience": 0.0}
            near = Service(one, NO_LIMIT, peer_token=PEER, peer_options=options)
            with TestClient(near, base_url=TWO[0][1]) as first:
                for client, role in ((first, "first"), (second, "second")):
                    answer = client.post(
                        f"/collections?role={role}",
                        content=agreement.to_json(),
                        headers=ADMINISTRATOR | JSON,
                    )
                    assert answer.status_code == 201, answer.text
                yield Two(agreement, first, second, (one, other))


def test_from_opening_to_one_model_at_both(two, monkeypatch) -> None:
    monkeypatch.setattr(module, "IDENTIFIERS_AT_ONCE", 4)  # so that names come on several pages
    monkeypatch.setattr(peering, "IDENTIFIERS_AT_ONCE", 4)
    two.send(*range(9))
    two.send(20, to=(0,))
    two.send(30, 31, to=(1,))
    refused(two.publish(0), 409, "infeasible", "University to have closed")
    refused(two.publish(1), 404, "not-published", "The next step is Office's")
    done = [(one.what, one.outcome) for one in two.stores[1].read(stewards.newest)][:2]
    assert done == [("publish", 404), ("let publish", 200)], "it is closed, and written down so"
    answer = two.publish(0)
    assert answer.status_code == 200, answer.text
    for client in (two.first, two.second):
        assert client.get(f"{two.path}/model").content == answer.content
        moments = client.get(f"{two.path}/moments")
        assert moments.json()["count"] == 9
        assert "Either of the two databases" in client.get(f"{two.path}/statement").text
    assert two.publish(1).content == two.publish(0).content == answer.content
    assert counted(two.stores[1], two.agreement) == set(range(9))
    assert PublishedModel.from_json(answer.text).count == 9
    late = marked(two.agreement, 40).first.to_bytes()
    sent = two.first.post(f"{two.path}/submissions", content=late, headers={"content-type": BINARY})
    refused(sent, 409, "closed")


@whatever_it_keeps
def test_only_its_own_share_is_taken_by_each(two) -> None:
    shared = marked(two.agreement, 1)
    for client, wrong in ((two.first, shared.second), (two.second, shared.first)):
        answer = client.post(
            f"{two.path}/submissions", content=wrong.to_bytes(), headers={"content-type": BINARY}
        )
        refused(answer, 400, "invalid", "one of two shares")
        answer = client.post(f"{two.path}/submissions", content=b"{}", headers=JSON)
        refused(answer, 415, "unsupported-media-type")
    assert [store.count(two.agreement) for store in two.stores] == [0, 0]


def test_a_role_is_needed_and_stays(two) -> None:
    body = {"content": two.agreement.to_json(), "headers": ADMINISTRATOR | JSON}
    refused(two.first.post("/collections", **body), 400, "invalid", "--as first")
    refused(two.first.post("/collections?role=second", **body), 409, "conflict", "'first'")
    refused(two.first.post("/collections?role=third", **body), 400, "invalid", "third")
    assert two.first.post("/collections?role=first", **body).status_code == 200


@whatever_it_keeps
def test_only_the_other_database_may_ask(two) -> None:
    two.send(*range(5))
    two.publish(1)
    for headers in (
        {},
        ADMINISTRATOR,
        {"authorization": "Bearer "},
        {"authorization": f"Basic {PEER}"},
        {"authorization": f"Bearer {PEER}"},  # the secret itself never travels
        {"authorization": f"Bearer {tokens.for_agreement(PEER, '00' * 32)}"},
    ):
        for method, path in (
            ("GET", "identifiers"),
            ("POST", f"sum?digest={'0' * 64}&count=5"),
            ("POST", "result"),
        ):
            answer = two.second.request(method, f"{two.path}/shares/{path}", headers=headers)
            refused(answer, 401, "unauthorised", "--peer-token-file")


@whatever_it_keeps
def test_a_service_without_a_token_has_no_other_database(two) -> None:
    alone = Service(two.stores[1], NO_LIMIT)
    with TestClient(alone) as client:
        for token in ("", "x", PEER):
            headers = {"authorization": f"Bearer {token}"}
            refused(
                client.get(f"{two.path}/shares/identifiers", headers=headers), 401, "unauthorised"
            )
    with TestClient(Service(two.stores[0], NO_LIMIT)) as client:
        answer = client.post(f"{two.path}/publish", headers=ADMINISTRATOR)
        refused(answer, 409, "infeasible", "--peer-token-file")


@whatever_it_keeps
def test_another_token_is_told(two) -> None:
    options = {"transport": two.second._transport, "patience": 0.0}
    with TestClient(
        Service(two.stores[0], NO_LIMIT, peer_token="x" * 40, peer_options=options)
    ) as client:
        answer = client.post(f"{two.path}/publish", headers=ADMINISTRATOR)
        refused(answer, 502, "other-database", "University", "same --peer-token-file")


@whatever_it_keeps
def test_nobody_answers(two) -> None:
    two.send(*range(4))
    with TestClient(
        Service(two.stores[0], NO_LIMIT, peer_token=PEER, peer_options={"patience": 0.0})
    ) as client:
        answer = client.post(f"{two.path}/publish", headers=ADMINISTRATOR)
        refused(answer, 502, "other-database", "University", "nothing is done twice")
    assert two.first.get(two.path).json()["state"] == "collecting"


def test_what_the_other_asks_is_checked(two) -> None:
    two.send(*range(5))
    path = f"{two.path}/shares"

    def ask(query: str, content: bytes = b"", kind: str = "application/octet-stream"):
        headers = two.other | {"content-type": kind}
        return two.second.post(f"{path}/sum?{query}", content=content, headers=headers)

    digest = "0" * 64
    refused(
        two.second.get(f"{path}/identifiers", headers=two.other), 409, "infeasible", "blurfit close"
    )
    refused(ask(f"digest={digest}&count=5"), 409, "infeasible", "blurfit close")
    two.publish(1)
    assert len(two.second.get(f"{path}/identifiers", headers=two.other).content) == 5 * 16
    refused(
        two.second.get(f"{path}/identifiers?after=xyz", headers=two.other), 400, "invalid", "xyz"
    )
    refused(ask("digest=12&count=5"), 400, "invalid", "64 hexadecimal")
    refused(ask(f"digest={digest}&count=-5"), 400, "invalid", "-5")
    everyone, two_of_them = bytes([0b11111000]), bytes([0b00011000])
    for cut in (b"", b"xx"):
        refused(ask(f"digest={digest}&count=5", cut), 400, "invalid", "a bit for each of the 5")
    refused(ask(f"digest={digest}&count=5", everyone), 400, "invalid", "damaged")
    refused(ask(f"digest={digest}&count=5", kind="text/plain"), 415, "unsupported-media-type")
    refused(ask(f"digest={digest}&count=2", two_of_them), 409, "below-quorum", "there are 2")
    headers = two.other | JSON
    for body in (b"", b"{}", b"[]", b'{"model": 1, "moments": ""}'):
        answer = two.second.post(f"{path}/result", content=body, headers=headers)
        refused(answer, 400, "invalid", "Expected a model")
    body = json.dumps({"model": "{}", "moments": "{}"})
    answer = two.second.post(f"{path}/result", content=body, headers=headers)
    refused(answer, 409, "infeasible", "fixed before")
    for one in ("identifiers", "sum?digest=" + digest + "&count=5"):
        method = "GET" if one == "identifiers" else "POST"
        kind = {"content-type": "application/octet-stream"}
        answer = two.first.request(method, f"{path}/{one}", headers=two.other | kind)
        refused(answer, 409, "infeasible", "opened as 'first'")
    assert two.publish(0).status_code == 200, "nothing of this was in the way"


def test_two_databases_collect_by_invitation_unless_agreed_otherwise(two) -> None:
    """Neither can tell people from contributors whom the other one has invented."""
    for client, role in ((two.first, "first"), (two.second, "second")):
        agreement = replace(new_agreement(), admission="invited")
        answer = client.post(
            f"/collections?role={role}", content=agreement.to_json(), headers=ADMINISTRATOR | JSON
        )
        assert answer.json()["invited"] is True
        share = getattr(marked(agreement, 1), role).to_bytes()
        sent = client.post(
            f"/collections/{agreement.fingerprint}/submissions",
            content=share,
            headers={"content-type": BINARY},
        )
        refused(sent, 403, "not-invited")


def test_proofs_are_verified_over_http_and_garbage_is_left_out(
    place, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("blurfit.service.verifying.BATCH", 3)
    with running(new_agreement(proofs=True), place, tmp_path) as two:
        proofs = f"{two.path}/shares/proofs"
        octets = {"content-type": "application/octet-stream"}
        two.send(*range(7))
        garbage = marked(two.agreement, 9).first
        garbage.words[0, 0] ^= np.uint64(1)
        for client, shares in (
            (two.first, garbage),
            (two.second, marked(two.agreement, 9).second),
        ):
            sent = client.post(
                f"{two.path}/submissions",
                content=shares.to_bytes(),
                headers={"content-type": BINARY},
            )
            assert sent.json() == {"accepted": 1, "new": 1}
        one = 16 + 8 * two.agreement.proving.prio3.verifier_words
        refused(two.second.post(proofs, content=b"", headers=octets), 401, "unauthorised")
        early = two.second.post(proofs, content=bytes(one), headers=octets | two.other)
        refused(early, 409, "infeasible", "University to have closed")
        two.publish(1)
        cut = two.second.post(proofs, content=bytes(one - 1), headers=octets | two.other)
        refused(cut, 400, "invalid", "cut short")
        unknown = two.second.post(proofs, content=bytes(one), headers=octets | two.other)
        assert unknown.content == bytes(32)
        answer = two.publish(0)
        assert answer.status_code == 200, answer.text
        assert counted(two.stores[1], two.agreement) == set(range(7))
        assert "has proved" in two.first.get(f"{two.path}/statement").text


@whatever_it_keeps
def test_there_are_no_proofs_to_verify_where_nobody_proves_anything(two) -> None:
    answer = two.second.post(
        f"{two.path}/shares/proofs",
        content=bytes(16),
        headers={"content-type": "application/octet-stream"} | two.other,
    )
    refused(answer, 400, "invalid", "this one has none")
