"""The service as its users meet it, from opening a collection to its statement."""

from unittest.mock import ANY

from starlette.testclient import TestClient

from blurfit import Agreement, PublishedModel, PublishedMoments
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.protocol.wire import JSON
from blurfit.service.app import Limits, Service
from support.requests import ADMINISTRATOR, as_json, opened, refused, send
from support.stores import PEOPLE


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
        "opened": ANY,
        "closes": None,
        "sums": False,
        "awaits": None,
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
    moments = http.get(f"{path}/moments")
    if agreement.mechanism == "moment":
        found = PublishedMoments.from_json(moments.content)
        assert found.fit().to_json() == http.get(f"{path}/model").text
        assert found.fit(target="age", ridge=0.1).count == 41, "further models are free"
    else:
        refused(moments, 404, "not-published", "never shown")
    assert send(http, path, one.to_bytes()).status_code == 200  # who was not sure may ask again
    late = perturb(agreement, {"age": 1, "income": 2})
    refused(send(http, path, late.to_bytes()), 409, "closed", "Nothing was kept")


def test_too_many_requests_from_one_address(store, agreement) -> None:
    with TestClient(Service(store, Limits(requests_per_second=0.001, burst=3))) as client:
        answers = [client.get("/healthz") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        refused(answers[-1], 429, "too-many-requests")
        assert int(answers[-1].headers["retry-after"]) >= 1
