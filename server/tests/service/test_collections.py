"""Collections of one wave and of several, as their users meet them, from opening to statement."""

import time

import pytest
from starlette.testclient import TestClient

from blurfit import Agreement, PublishedModel, PublishedMoments
from blurfit.agreement.plan import Agreed, Plan, read_agreed
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.errors import instant
from blurfit.model.course import follows, learn_plan
from blurfit.protocol import JSON
from blurfit_server.service import endpoints
from blurfit_server.service.app import Limits, Service
from server_support.requests import ADMINISTRATOR, as_json, opened, opening, refused, send
from server_support.stores import whatever_it_keeps
from support.plans import people, plan, rows
from support.proposals import PEOPLE, propose

PLAN = plan("label", waves=2, quorum=60, admission="anyone")
FIRST, SECOND = PLAN.quorums
HERE = f"/collections/{PLAN.fingerprint}"
EVERYONE = people(70, 4)
UNKNOWN = f"/collections/{'ab' * 32}"
ONE_OR_SEVERAL = pytest.mark.parametrize("agreed", [propose(), PLAN], ids=["one", "several"])


def current(http: TestClient, agreed: Agreed = PLAN) -> Agreement:
    answer = http.get(f"/collections/{agreed.fingerprint}/agreement")
    assert answer.status_code == 200, answer.text
    return Agreement.from_json(answer.text)


def blurred(agreement: Agreement, start: int, stop: int) -> bytes:
    table = EVERYONE if agreement.wave is not None else {k: [*v] * 2 for k, v in PEOPLE.items()}
    return perturb_table(agreement, rows(table, start, stop)).to_bytes()


def sent(http: TestClient, agreement: Agreement, start: int, stop: int, **headers: str):
    body = blurred(agreement, start, stop)
    return send(http, f"/collections/{agreement.fingerprint}", body, **headers)


def do(http: TestClient, what: str, path: str = HERE, **given):
    return http.post(f"{path}/{what}", headers=ADMINISTRATOR, **given)


def eventually(http: TestClient, path: str, reached=lambda answer: answer.status_code == 200):
    """What is there once the service has done what it does beside the answers."""
    deadline = time.monotonic() + 300
    while not reached(answer := http.get(path)):
        assert time.monotonic() < deadline, answer.text
    return answer


def test_one_wave_from_opening_to_statement(http, agreement) -> None:
    path = opened(http, agreement)
    again = opening(http, agreement)
    assert again.status_code == 200
    status = http.get(path).json()
    assert (status["fingerprint"], status["state"]) == (agreement.fingerprint, "collecting")
    assert (status["count"], status["quorum"], status["invited"]) == (0, 20, False)
    assert [one["state"] for one in status["waves"]] == ["collecting"]
    for name in ("agreement", "document"):
        assert Agreement.from_json(http.get(f"{path}/{name}").text) == agreement
    refused(http.get(f"{path}/model"), 404, "not-published", "20")
    batch, one = perturb_table(agreement, PEOPLE), perturb(agreement, {"age": 1, "income": 2})
    assert send(http, path, batch.to_bytes()).json() == {"accepted": 40, "new": 40}
    assert do(http, "pause", path).json()["state"] == "paused"
    answer = send(http, path, one.to_bytes())
    refused(answer, 503, "paused")
    assert int(answer.headers["retry-after"]) > 0
    assert do(http, "resume", path).json()["state"] == "collecting"
    assert send(http, path, batch.to_json(), JSON).json() == {"accepted": 40, "new": 0}
    assert send(http, path, one.to_json(), JSON).json() == {"accepted": 1, "new": 1}
    assert send(http, path, one.to_bytes()).json() == {"accepted": 1, "new": 0}
    assert [each["count"] for each in http.get("/collections").json()] == [41]
    assert sum(each["count"] for each in http.get(f"{path}/history").json()) == 41

    first = do(http, "publish", path)
    assert first.status_code == 200, first.text
    assert do(http, "publish", path).content == first.content
    assert http.get(f"{path}/model").content == first.content
    assert PublishedModel.from_json(first.text).count == 41
    assert http.get(path).json()["state"] == "published"
    for kind, words in (("markdown", "# Privacy"), ("html", "<h1>Privacy"), ("yaml", "epsilon")):
        statement = http.get(f"{path}/statement", params={"format": kind})
        assert statement.status_code == 200
        assert words in statement.text
    refused(http.get(f"{path}/statement", params={"format": "pdf"}), 400, "invalid", "pdf")
    moments = http.get(f"{path}/moments")
    found = PublishedMoments.from_json(moments.content)
    assert found.fit().to_json() == http.get(f"{path}/model").text
    assert found.fit(target="age", ridge=0.1).count == 41, "further models are free"
    assert http.get(f"{path}/releases").text == f"[{moments.text}]"
    assert send(http, path, one.to_bytes()).status_code == 200  # who was not sure may ask again
    late = perturb(agreement, {"age": 1, "income": 2})
    refused(send(http, path, late.to_bytes()), 409, "closed", "nothing of this was stored")


@whatever_it_keeps
def test_what_follows_from_what_was_published_is_told_paid_for_and_checked_first(
    store, agreement, monkeypatch
) -> None:
    store.add(agreement, perturb_table(agreement, PEOPLE))
    store.publish(agreement)
    path = f"/collections/{agreement.fingerprint}"
    with TestClient(Service(store, Limits(requests_per_second=0))) as http:
        told = http.get(f"{path}/estimates").json()
        model = PublishedModel.from_json(http.get(f"{path}/model").text)
        assert told["fingerprint"] == agreement.fingerprint
        assert [one["name"] for one in told["estimates"]["income"]] == [
            one.name for one in model.estimates()
        ]
        assert "age" in http.get(f"{path}/tables").text
        assert http.get(f"{path}/tables", params={"of": "income"}).status_code == 200
        with monkeypatch.context() as patched:
            patched.setattr(PublishedMoments, "from_json", lambda _: pytest.fail("it was read"))
            for given in ({"of": "nobody"}, {"of": "age", "by": "nobody"}):
                refused(http.get(f"{path}/tables", params=given), 400, "invalid", "'nobody'")
    monkeypatch.setattr(endpoints, "NUMBERS_OF_A_REQUEST", agreement.width / 50)
    limits = Limits(requests_per_second=1e-3, burst=60)
    with TestClient(Service(store, limits), client=("192.0.2.1", 1)) as http:
        assert http.get(f"{path}/tables").status_code == 200
        refused(http.get(f"{path}/tables"), 429, "too-many-requests")
        assert http.get(f"{path}/model").status_code == 200, "which is kept as it is"


def test_several_waves_go_on_by_themselves(http) -> None:
    opened(http, PLAN)
    status = http.get(HERE).json()
    again = opening(http, PLAN)
    assert (again.status_code, again.json()) == (200, status)
    assert read_agreed(http.get(f"{HERE}/document").text) == PLAN
    first = current(http)
    assert first == PLAN.first()
    kept = blurred(first, 0, FIRST)
    wave = f"/collections/{first.fingerprint}"
    assert do(http, "hold").json()["state"] == "held"
    refused(do(http, "close"), 409, "infeasible", "Hold the plan")
    refused(do(http, "publish", wave), 409, "infeasible", "a wave of")
    assert do(http, "resume").json()["state"] == "collecting"
    assert send(http, wave, kept).json() == {"accepted": FIRST, "new": FIRST}
    second = current(http)  # whoever was answered finds the next wave open
    published = [PublishedMoments.from_json(text) for text in texts(http)]
    follows(PLAN, published, second)
    assert http.get(f"{wave}/moments").text == published[0].to_json()
    assert http.get(wave).json()["state"] == "closed"
    assert Agreement.from_json(http.get(f"{wave}/agreement").text) == first

    # What was stored is acknowledged after its wave was released; what is late is not.
    assert send(http, wave, kept).json() == {"accepted": FIRST, "new": 0}
    before = http.get(f"{HERE}/releases").text
    refused(sent(http, first, 0, 1), 409, "wave-closed", "Wave 1 has closed", PLAN.fingerprint)
    # A submission says under which map it was blurred.
    refused(send(http, f"/collections/{second.fingerprint}", kept), 400, "invalid")
    assert http.get(f"{HERE}/releases").text == before
    refused(http.get(f"{HERE}/model"), 404, "not-published", "goes on")

    assert sent(http, second, FIRST, 60).status_code == 200
    model = eventually(http, f"{HERE}/model")
    published = [PublishedMoments.from_json(text) for text in texts(http)]
    assert model.text == learn_plan(PLAN, published).to_json()
    assert http.get(f"/collections/{second.fingerprint}/model").text == model.text
    assert do(http, "publish").text == model.text
    assert http.get(f"{HERE}/estimates").json()["fingerprint"] == second.fingerprint
    assert "Privacy statement" in http.get(f"{HERE}/statement").text
    refused(http.get(f"{HERE}/agreement"), 409, "closed", "All of its waves")
    (ended,) = http.get("/collections").json()
    assert ended == http.get(HERE).json()
    assert (ended["state"], ended["model"]) == ("ended", second.fingerprint)
    assert [one["state"] for one in ended["waves"]] == ["released", "released"]


def texts(http: TestClient) -> list[str]:
    """The releases, each from its own place: the bytes whose SHA-256 is the mark."""
    waves = http.get(HERE).json()["waves"]
    names = [one["fingerprint"] for one in waves if one["state"] == "released"]
    found = [http.get(f"/collections/{name}/moments").text for name in names]
    assert http.get(f"{HERE}/releases").text == f"[{','.join(found)}]"
    return found


# ---- dates


def move(http: TestClient, path: str, body: str):
    return http.post(f"{path}/until", content=body, headers=ADMINISTRATOR | as_json())


@ONE_OR_SEVERAL
def test_the_date_is_set_at_opening_and_moved_by_the_administrator(http, agreed) -> None:
    path = opened(http, agreed, until="2096-01-31T18:00+01:00")
    assert http.get(path).json()["closes"] == instant("2096-01-31T17:00Z")
    assert move(http, path, '{"until": "2097-01-31"}').json()["closes"] == instant("2097-01-31")
    assert move(http, path, '{"until": null}').json()["closes"] is None
    refused(move(http, path, '{"until": "2001-01-31"}'), 400, "invalid", "To close now")
    refused(move(http, path, '{"until": "soon"}'), 400, "invalid", "a time with its zone")
    refused(move(http, path, "[]"), 400, "invalid", "null for no date")
    body = '{"until": "2096-01-31"}'
    refused(http.post(f"{path}/until", content=body, headers=as_json()), 401, "unauthorised")


# ---- what is refused


@whatever_it_keeps
def test_what_is_not_there(http) -> None:
    for path in ("", "/document", "/agreement", "/releases", "/model", "/statement", "/moments"):
        refused(http.get(UNKNOWN + path), 404, "unknown-collection")
    refused(move(http, UNKNOWN, '{"until": null}'), 404, "unknown-collection")
    for strange in ("%00", "%ff", "%F0%9F%98%80", "x" * 5000, "A" * 64, "%27%20OR%201=1--"):
        refused(http.get(f"/collections/{strange}"), 404, "unknown-collection")
        refused(send(http, f"/collections/{strange}", b""), 404, "unknown-collection")
    refused(http.get("/nothing"), 404, "not-found")
    refused(http.get("/collections/a/b/c/submissions"), 405, "method-not-allowed")
    refused(http.delete("/collections"), 405, "method-not-allowed")
    refused(http.put(f"{UNKNOWN}/submissions"), 405, "method-not-allowed")
    for body in (b"{}", b"[]", b"x", PLAN.first().to_json()):  # a wave is opened by its plan
        answer = http.post("/collections", content=body, headers=ADMINISTRATOR | as_json())
        refused(answer, 400, "invalid")


def test_which_of_two_databases_this_is_must_be_said(http) -> None:
    databases = (("One", "https://one.example"), ("Two", "https://two.example"))
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 60, "databases": databases}
    headers = ADMINISTRATOR | as_json()
    for shared in (
        Plan.propose(PLAN.schema, waves=2, **terms),
        Agreement.propose(PLAN.schema, **terms),
    ):
        body = shared.to_json()
        refused(http.post("/collections", content=body, headers=headers), 400, "invalid", "--as")
        whole = http.post("/collections?role=first", content=PLAN.to_json(), headers=headers)
        refused(whole, 400, "invalid", "names no second database")
        third = http.post("/collections?role=third", content=body, headers=headers)
        refused(third, 400, "invalid", "'third'")
        assert http.post("/collections?role=second", content=body, headers=headers).is_success
        answer = do(http, "publish", f"/collections/{shared.fingerprint}")
        refused(answer, 404, "not-published", "One")
        page = http.get(f"/c/{shared.fingerprint}").headers["content-security-policy"]
        assert "connect-src 'self' https://one.example https://two.example;" in page
