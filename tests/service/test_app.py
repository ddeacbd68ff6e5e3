"""The service as its users meet it: every request, every refusal, both forms of submissions."""

import json
import logging
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from blurfit import Agreement, Numeric, PublishedModel, Schema, Statistics, learn
from blurfit.contributor.perturb import perturb, perturb_table
from blurfit.messages.submissions import Submission, Submissions
from blurfit.protocol.tokens import hashed, new_token
from blurfit.service import app as module
from blurfit.service.app import BINARY, HEADERS, JSON, Limits, Service, application
from blurfit.store.store import Store

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PEOPLE = {"age": np.linspace(0, 100, 40), "income": np.linspace(0, 100, 40)}
TOKEN = "a-token-that-is-long-enough-for-tests"
ADMINISTRATOR = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def store(place) -> Iterator[Store]:
    with Store(place) as kept:
        kept.appoint(hashed(TOKEN))
        yield kept


@pytest.fixture
def http(store) -> Iterator[TestClient]:
    with TestClient(Service(store, Limits(requests_per_second=0))) as client:
        yield client


def opened(http: TestClient, agreement: Agreement, **query: str) -> str:
    answer = http.post(
        "/collections", content=agreement.to_json(), headers=ADMINISTRATOR | as_json(), params=query
    )
    assert answer.status_code == 201, answer.text
    return f"/collections/{agreement.fingerprint}"


def as_json() -> dict[str, str]:
    return {"content-type": JSON}


def send(http: TestClient, path: str, body: bytes | str, kind: str = BINARY, **headers: str):
    return http.post(f"{path}/submissions", content=body, headers={"content-type": kind, **headers})


def refused(answer, status: int, kind: str, *words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:blurfit:problem:{kind}"
    assert problem["status"] == status
    for word in words:
        assert word in problem["detail"]


def test_a_collection_from_opening_to_statement(http, agreement) -> None:
    path = opened(http, agreement)
    again = http.post(
        "/collections", content=agreement.to_json(), headers=ADMINISTRATOR | as_json()
    )
    assert again.status_code == 200
    assert http.get(path).json() == {
        "fingerprint": agreement.fingerprint,
        "state": "collecting",
        "count": 0,
        "quorum": 20,
        "invited": False,
    }
    assert Agreement.from_json(http.get(f"{path}/agreement").text) == agreement
    refused(http.get(f"{path}/model"), 404, "not-published", "20")
    batch, one = perturb_table(agreement, PEOPLE), perturb(agreement, {"age": 1, "income": 2})
    assert send(http, path, batch.to_bytes()).json() == {"accepted": 40, "new": 40}
    assert send(http, path, batch.to_json(), JSON).json() == {"accepted": 40, "new": 0}
    assert send(http, path, one.to_json(), JSON).json() == {"accepted": 1, "new": 1}
    assert send(http, path, one.to_bytes()).json() == {"accepted": 1, "new": 0}
    assert [each["count"] for each in http.get("/collections").json()] == [41]

    first = http.post(f"{path}/publish", headers=ADMINISTRATOR)
    assert first.status_code == 200
    assert http.post(f"{path}/publish", headers=ADMINISTRATOR).content == first.content
    assert http.get(f"{path}/model").content == first.content
    assert PublishedModel.from_json(first.text).count == 41
    assert http.get(path).json()["state"] == "published"
    for kind, words in (("markdown", "# Privacy"), ("html", "<h1>Privacy"), ("yaml", "epsilon")):
        statement = http.get(f"{path}/statement", params={"format": kind})
        assert statement.status_code == 200
        assert words in statement.text
    refused(http.get(f"{path}/statement", params={"format": "pdf"}), 400, "invalid", "pdf")
    statistics = http.get(f"{path}/statistics")
    if agreement.mechanism == "moment":
        further = learn(agreement, Statistics.from_json(statistics.content), ridge=3.0)
        assert further.count == 41
    else:
        refused(statistics, 404, "not-published", "never shown")
    assert send(http, path, one.to_bytes()).status_code == 200  # who was not sure may ask again
    late = perturb(agreement, {"age": 1, "income": 2})
    refused(send(http, path, late.to_bytes()), 409, "closed", "Nothing was kept")


def test_nothing_is_published_below_the_quorum(http, agreement) -> None:
    path = opened(http, agreement)
    few = perturb_table(agreement, {name: values[:19] for name, values in PEOPLE.items()})
    send(http, path, few.to_bytes())
    refused(http.post(f"{path}/publish", headers=ADMINISTRATOR), 409, "below-quorum", "1 more")
    refused(http.get(f"{path}/statistics"), 404, "not-published")
    assert http.get(path).json()["state"] == "collecting"


def test_closed_without_publishing(http, agreement) -> None:
    path = opened(http, agreement)
    send(http, path, perturb_table(agreement, PEOPLE).to_bytes())
    assert http.post(f"{path}/close", headers=ADMINISTRATOR).json()["state"] == "closed"
    late = perturb(agreement, {"age": 1, "income": 2})
    refused(send(http, path, late.to_bytes()), 409, "closed")
    assert http.post(f"{path}/publish", headers=ADMINISTRATOR).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/collections"),
        ("POST", "/collections/{}/invitations"),
        ("POST", "/collections/{}/close"),
        ("POST", "/collections/{}/publish"),
    ],
)
@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN]
)
def test_only_the_administrator_may(authorization, method, path, tmp_path) -> None:
    headers = as_json() | ({} if authorization is None else {"authorization": authorization})
    with Store() as kept, TestClient(Service(kept)) as client:
        for token in (None, TOKEN):  # before there is one, nobody is let in
            if token:
                kept.appoint(hashed(token))
            answer = client.request(method, path.format("0" * 64), headers=headers)
            refused(answer, 401, "unauthorised")
            assert answer.headers["www-authenticate"] == "Bearer"


def test_an_agreement_that_promises_too_much_is_not_opened(http, agreement) -> None:
    forged = agreement.to_dict()
    forged["calibration"]["model"]["epsilon"] = 0.01
    text = Agreement.from_dict(forged).to_json()
    answer = http.post("/collections", content=text, headers=ADMINISTRATOR | as_json())
    refused(answer, 400, "invalid", "epsilon=0.01")
    assert http.get("/collections").json() == []


def test_bad_submissions_are_refused_and_nothing_is_kept(http, agreement) -> None:
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    other = Agreement.propose(SCHEMA, epsilon=2, delta=1e-6, quorum=20)
    foreign = perturb(other, {"age": 30, "income": 20})
    wide = Submission("00" * 16, agreement.fingerprint, "input", np.zeros(5), np.zeros(5))
    message = json.loads(one.to_json())
    infinite = one.to_bytes()[:-8] + np.array([np.inf]).tobytes()
    nan = one.to_bytes()[:-8] + np.array([np.nan]).tobytes()
    large = one.to_bytes()[:-8] + np.array([2.0**50]).tobytes()
    between = one.to_bytes()[:-8] + np.array([agreement.grid.dither / 4]).tobytes()
    for body, kind, word in (
        (foreign.to_bytes(), BINARY, "another agreement"),
        (foreign.to_json(), JSON, "another agreement"),
        (wide.to_bytes(), BINARY, "of dimension 5"),
        (wide.to_json(), JSON, "of dimension 5"),
        (infinite, BINARY, "inf"),
        (nan, BINARY, "nan"),
        (large, BINARY, "a norm of"),
        (between, BINARY, "no multiple of"),
        (json.dumps(message | {"linear": [1e400, 0.0]}), JSON, "cannot be read"),
        (json.dumps(message | {"linear": [1e300, 0.0]}), JSON, "a norm of"),
        (json.dumps(message | {"extra": 1}), JSON, "extra"),
        (json.dumps([]), JSON, "batch"),
        (b"", BINARY, "cut short"),
        (b"", JSON, "cannot be read"),
        (one.to_bytes()[:-1], BINARY, "cut short"),
        (one.to_bytes() + b"x", BINARY, "something follows"),
        (b"\xff" * 500, BINARY, "marked"),
        (b"[" * 100_000, JSON, "cannot be read"),
    ):
        refused(send(http, path, body, kind), 400, "invalid", word)
    refused(send(http, path, one.to_bytes(), "text/plain"), 415, "unsupported-media-type")
    batch = perturb_table(agreement, PEOPLE)
    spoiled = bytearray(batch.to_bytes())
    spoiled[-8:] = np.array([2.0**50]).tobytes()
    refused(send(http, path, bytes(spoiled)), 400, "invalid", "Submission 39 has a norm")
    changed = Submission(
        one.identifier,
        one.fingerprint,
        one.mechanism,
        one.quadratic + agreement.grid.quadratic,
        one.linear,
    )
    assert http.get(path).json()["count"] == 0
    send(http, path, one.to_bytes())
    refused(send(http, path, changed.to_bytes()), 409, "conflict", one.identifier)
    assert http.get(path).json()["count"] == 1


def test_unknown_collections_and_paths(http, agreement) -> None:
    one = perturb(agreement, {"age": 30, "income": 20})
    unknown = f"/collections/{agreement.fingerprint}"
    refused(send(http, unknown, one.to_bytes()), 404, "unknown-collection", agreement.fingerprint)
    for path in ("", "/agreement", "/model", "/statement", "/statistics"):
        refused(http.get(unknown + path), 404, "unknown-collection")
    for strange in ("%00", "%ff", "%F0%9F%98%80", "x" * 5000, "A" * 64, "%27%20OR%201=1--"):
        refused(http.get(f"/collections/{strange}"), 404, "unknown-collection")
        refused(send(http, f"/collections/{strange}", b""), 404, "unknown-collection")
    refused(http.get("/nothing"), 404, "not-found")
    refused(http.get("/collections/a/b/c/submissions"), 405, "method-not-allowed")
    refused(http.delete("/collections"), 405, "method-not-allowed")
    refused(http.put(f"{unknown}/submissions"), 405, "method-not-allowed")


def test_bodies_over_the_limit(store, agreement) -> None:
    with TestClient(Service(store, Limits(body_bytes=1000, requests_per_second=0))) as client:
        path = opened(client, agreement)
        large = perturb_table(agreement, PEOPLE).to_bytes()
        refused(send(client, path, large), 413, "too-large", "1000 bytes")
        lied = send(client, path, b"x", **{"content-length": "99999999999"})
        refused(lied, 413, "too-large")

        def parts() -> Iterator[bytes]:  # no length is stated
            yield from (large[start : start + 100] for start in range(0, len(large), 100))

        refused(send(client, path, parts()), 413, "too-large")
        small = perturb(agreement, {"age": 30, "income": 20}).to_bytes()
        assert send(client, path, iter([small[:50], small[50:]])).status_code == 200


def test_no_more_than_ten_thousand_at_once(http, agreement) -> None:
    path = opened(http, agreement)
    many = {name: np.resize(values, 10_001) for name, values in PEOPLE.items()}
    batch = perturb_table(agreement, many)
    refused(send(http, path, batch.to_bytes()), 413, "too-large", "10001")
    all_but_one = Submissions(
        batch.identifiers[1:],
        batch.fingerprint,
        batch.mechanism,
        batch.quadratic[1:],
        batch.linear[1:],
    )
    assert send(http, path, all_but_one.to_bytes()).json()["new"] == 10_000


def test_too_many_requests_from_one_address(store, agreement) -> None:
    with TestClient(Service(store, Limits(requests_per_second=0.001, burst=3))) as client:
        answers = [client.get("/healthz") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        refused(answers[-1], 429, "too-many-requests")
        assert int(answers[-1].headers["retry-after"]) >= 1


def test_invitations(http, agreement) -> None:
    path = opened(http, agreement, invited="true")
    tokens = [new_token() for _ in range(2)]
    hashes = {"hashes": [hashed(token).hex() for token in tokens]}
    given = http.post(f"{path}/invitations", json=hashes, headers=ADMINISTRATOR)
    assert given.json() == {"accepted": 2, "new": 2}
    one, other = perturb_table(agreement, {name: v[:2] for name, v in PEOPLE.items()})
    refused(send(http, path, one.to_bytes()), 403, "not-invited")
    refused(send(http, path, one.to_bytes(), **{"blurfit-invitation": "x"}), 403, "not-invited")
    header = {"blurfit-invitation": tokens[0]}
    assert send(http, path, one.to_bytes(), **header).json() == {"accepted": 1, "new": 1}
    assert send(http, path, one.to_bytes(), **header).json() == {"accepted": 1, "new": 0}
    refused(send(http, path, other.to_bytes(), **header), 403, "not-invited")
    for bad in ({}, {"hashes": []}, {"hashes": ["xy"]}, {"hashes": ["ab"]}, [1], {"hashes": [1]}):
        answer = http.post(f"{path}/invitations", json=bad, headers=ADMINISTRATOR)
        refused(answer, 400, "invalid")
    refused(
        http.post("/collections?invited=maybe", content="{}", headers=ADMINISTRATOR | as_json()),
        400,
        "invalid",
        "maybe",
    )


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


def test_when_storage_fails_nothing_is_acknowledged(agreement, tmp_path, caplog) -> None:
    with Store(tmp_path / "collection.db") as kept:
        kept.appoint(hashed(TOKEN))
        with TestClient(Service(kept, Limits(requests_per_second=0))) as client:
            path = opened(client, agreement)

            def full(connection, *_: object) -> None:
                connection.execute("PRAGMA max_page_count = 1")

            sa.event.listen(kept._engine, "checkout", full)
            large = {name: np.resize(values, 9000) for name, values in PEOPLE.items()}
            batch = perturb_table(agreement, large).to_bytes()
            with caplog.at_level(logging.ERROR):
                answer = send(client, path, batch)
            refused(answer, 503, "unavailable", "Nothing was kept")
            assert int(answer.headers["retry-after"]) >= 1
            assert "full" in caplog.text
            sa.event.remove(kept._engine, "checkout", full)
            kept._engine.dispose()
            assert client.get(path).json()["count"] == 0
            assert send(client, path, batch).json()["new"] == 9000


def test_logs_hold_no_values_and_no_addresses(http, agreement, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    send(http, path, one.to_bytes())
    send(http, path, one.to_bytes()[:-8] + np.array([2.0**50]).tobytes())
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("blurfit")]
    assert not any("testclient" in text or str(one.linear[0]) in text for text in ours)


def test_many_at_once_are_grouped_and_each_is_answered(store, agreement, monkeypatch) -> None:
    sizes = []
    receive = store.receive
    monkeypatch.setattr(
        store, "receive", lambda f, arrivals: (sizes.append(len(arrivals)), receive(f, arrivals))[1]
    )
    ones = list(perturb_table(agreement, PEOPLE))
    with TestClient(Service(store, Limits(requests_per_second=0), linger=0.05)) as client:
        path = opened(client, agreement)
        answers: list[int] = []
        threads = [
            threading.Thread(
                target=lambda one=one: answers.append(
                    send(client, path, one.to_bytes()).json()["new"]
                )
            )
            for one in ones
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [1] * 40
        assert client.get(path).json()["count"] == 40
    assert len(sizes) < 40
    assert sum(sizes) == 40


def test_a_body_that_does_not_come_is_given_up(http, agreement, monkeypatch) -> None:
    import asyncio

    from blurfit.service.problems import RequestError

    monkeypatch.setattr(module, "SECONDS_FOR_A_BODY", 0.01)

    async def never() -> dict:
        if not started:
            started.append(True)
            return {"type": "http.request", "body": b"x", "more_body": True}
        await asyncio.sleep(10)
        return {}

    started: list[bool] = []
    with pytest.raises(RequestError, match="within 0"):
        asyncio.run(module.read_body({}, never, 100))


def test_metrics_and_health(http, agreement) -> None:
    path = opened(http, agreement)
    send(http, path, perturb_table(agreement, PEOPLE).to_bytes())
    send(http, path, b"garbage")
    text = http.get("/metrics").text
    assert 'blurfit_submissions_total{kind="new"} 40.0' in text
    assert 'blurfit_refusals_total{kind="invalid"} 1.0' in text
    assert http.get("/healthz").json() == {"status": "ok"}


def test_the_application_is_a_service() -> None:
    with Store() as kept:
        assert isinstance(application(kept), Service)
