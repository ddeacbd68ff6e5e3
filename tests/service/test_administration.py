"""Open, invite, close, publish: with the administrator's token, and not without."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from blurfit import Agreement, Store
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.messages.signing import Signer, new_key
from blurfit.protocol.tokens import hashed, new_token
from blurfit.service.answers import HEADERS
from blurfit.service.app import Limits, Service
from support.requests import ADMINISTRATOR, TOKEN, as_json, opened, refused, send
from support.stores import PEOPLE, propose

DECISIONS = ("invitations", "pause", "resume", "close", "publish")


def test_a_path_that_no_database_can_keep_is_a_refusal_like_any_other(http, store) -> None:
    for what in DECISIONS[1:]:
        answer = http.post(f"/collections/%00{what}/{what}", headers=ADMINISTRATOR)
        refused(answer, 404, "unknown-collection")
    assert {(one.fingerprint, one.outcome) for one in store.audit_log()} == {
        (what, 404) for what in DECISIONS[1:]
    }


@pytest.mark.parametrize(
    ("trouble", "left"), [("max_page_count = 1", "closed"), ("query_only = 1", "collecting")]
)
def test_publishing_goes_on_where_a_store_that_was_full_or_read_only_left_it(
    tmp_path, trouble, left
) -> None:
    """A set that could be fixed stays so, and its model is stored when there is room."""
    agreement = propose()
    with Store(tmp_path / "collection.db") as kept:
        kept.appoint(hashed(TOKEN))
        with TestClient(Service(kept, Limits(requests_per_second=0))) as client:
            path = opened(client, agreement)
            send(client, path, perturb_table(agreement, PEOPLE).to_bytes())

            def troubled(connection, *_: object) -> None:
                connection.execute(f"PRAGMA {trouble}")

            sa.event.listen(kept._engine, "checkout", troubled)
            answer = client.post(f"{path}/publish", headers=ADMINISTRATOR)
            refused(answer, 503, "unavailable")
            sa.event.remove(kept._engine, "checkout", troubled)
            kept._engine.dispose()
            assert client.get(path).json()["state"] == left
            answer = client.post(f"{path}/publish", headers=ADMINISTRATOR)
            assert (answer.status_code, answer.json()["count"]) == (200, 40)


@pytest.mark.parametrize("role", ["whole", "first", "second"])
def test_an_agreement_that_lacks_a_database_or_its_key_is_refused(http, role) -> None:
    both = ("First", "https://first.example"), ("Second", "https://second.example")
    two = propose(databases=both, signing_keys=(Signer(new_key()).key, Signer(new_key()).key))
    for damaged in (
        replace(two, databases=two.databases[:1], signing_keys=()),
        replace(two, signing_keys=two.signing_keys[:1]),
    ):
        answer = http.post(
            f"/collections?role={role}",
            content=damaged.to_json(),
            headers=ADMINISTRATOR | as_json(),
        )
        refused(answer, 400, "invalid", "Expected")


def test_an_agreement_that_promises_too_much_is_not_opened(http, agreement) -> None:
    forged = agreement.to_dict()
    forged["calibration"]["model"]["epsilon"] = 0.01
    text = Agreement.from_dict(forged).to_json()
    answer = http.post("/collections", content=text, headers=ADMINISTRATOR | as_json())
    refused(answer, 400, "invalid", "epsilon=0.01")
    assert http.get("/collections").json() == []


def test_invitations(http, agreement) -> None:
    agreement = replace(agreement, admission="invited")
    path = opened(http, agreement)
    tokens = [new_token() for _ in range(2)]
    hashes = {"hashes": [hashed(token).hex() for token in tokens]}
    given = http.post(f"{path}/invitations", json=hashes, headers=ADMINISTRATOR)
    assert given.json() == {"accepted": 2, "new": 2}
    one, other = perturb_table(agreement, {name: v[:2] for name, v in PEOPLE.items()})
    refused(send(http, path, one.to_bytes()), 403, "not-invited")
    refused(send(http, path, one.to_bytes(), **{"blurfit-invitation": "x"}), 403, "not-invited")
    header = {"blurfit-invitation": tokens[0]}

    def usable(given: str) -> bool:
        answer = http.get(f"{path}/invitation", headers={"blurfit-invitation": given})
        assert answer.headers["cache-control"] == "no-store"
        return bool(answer.json()["usable"])

    assert [usable(one) for one in (*tokens, new_token(), "")] == [True, True, False, False]
    assert send(http, path, one.to_bytes(), **header).json() == {"accepted": 1, "new": 1}
    assert send(http, path, one.to_bytes(), **header).json() == {"accepted": 1, "new": 0}
    refused(send(http, path, other.to_bytes(), **header), 403, "not-invited")
    assert [usable(one) for one in tokens] == [False, True]
    for bad in ({}, {"hashes": []}, {"hashes": ["xy"]}, {"hashes": ["ab"]}, [1], {"hashes": [1]}):
        answer = http.post(f"{path}/invitations", json=bad, headers=ADMINISTRATOR)
        refused(answer, 400, "invalid")


def test_what_no_body_could_hold_is_not_opened(store) -> None:
    """One submission of five thousand columns has 95 MiB: it would be refused when it comes."""
    agreement = propose()
    limits = Limits(requests_per_second=0, body_bytes=agreement.layout.size)
    with TestClient(Service(store, limits)) as http:
        answer = http.post(
            "/collections", content=agreement.to_json(), headers=ADMINISTRATOR | as_json()
        )
        refused(answer, 409, "infeasible", f"{agreement.width} numbers", "--body-limit")
        assert http.get("/collections").json() == []


def test_sums_without_a_model_are_what_publishing_answers(http) -> None:
    agreement = propose(sends="targets", public_rows="00" * 32)
    path = opened(http, agreement)
    send(http, path, perturb_table(agreement, PEOPLE).to_bytes())
    published = http.post(f"{path}/publish", headers=ADMINISTRATOR)
    assert published.status_code == 200
    assert published.json()["format"] == "blurfit-moments"
    assert published.text == http.get(f"{path}/moments").text
    refused(http.get(f"{path}/model"), 404, "not-published")


# ---- every answer carries its headers, and logs tell nothing


def test_every_answer_carries_the_headers(http, agreement) -> None:
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    for answer in (
        http.get("/healthz"),
        http.get("/nothing"),
        http.get(f"{path}/model"),
        send(http, path, one.to_bytes()),
        send(http, path, b"garbage"),
        http.post("/collections"),
    ):
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (answer.url, name)
    assert "immutable" in http.get(f"{path}/agreement").headers["cache-control"]


def test_logs_hold_no_values_and_no_addresses(http, agreement, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    send(http, path, one.to_bytes())
    send(http, path, one.to_bytes()[:-8] + np.array([2.0**50]).tobytes())
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("blurfit")]
    assert not any("testclient" in text or str(one.numbers[0]) in text for text in ours)
