"""A plan over HTTP: it goes from wave to wave by itself, and what would break it is refused."""

from starlette.testclient import TestClient

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb_table
from blurfit.model.course import follows, learn_plan
from blurfit.model.model import PublishedModel
from blurfit.model.moments import PublishedMoments
from blurfit.protocol.tokens import hashed
from support.lots import invitations
from support.plans import people, plan, rows
from support.requests import ADMINISTRATOR, as_json, refused, send
from support.stores import whatever_it_keeps

PLAN = plan("label", waves=2, quorum=60, admission="anyone")
INVITED = plan("label", waves=2, quorum=60)
FIRST, SECOND = PLAN.quorums
HERE = f"/plans/{PLAN.fingerprint}"
EVERYONE = people(70, 4)


def begun(http: TestClient, given: Plan = PLAN) -> dict:
    answer = http.post("/plans", content=given.to_json(), headers=ADMINISTRATOR | as_json())
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def current(http: TestClient, given: Plan = PLAN) -> Agreement:
    answer = http.get(f"/plans/{given.fingerprint}/agreement")
    assert answer.status_code == 200, answer.text
    return Agreement.from_json(answer.text)


def blurred(agreement: Agreement, start: int, stop: int) -> bytes:
    return perturb_table(agreement, rows(EVERYONE, start, stop)).to_bytes()


def sent(http: TestClient, agreement: Agreement, body: bytes, **headers: str):
    return send(http, f"/collections/{agreement.fingerprint}", body, **headers)


def do(http: TestClient, what: str):
    return http.post(f"{HERE}/{what}", headers=ADMINISTRATOR)


def eventually(http: TestClient, path: str):
    """What is there once the service has done what it does beside the answers."""
    for _ in range(500):
        answer = http.get(path)
        if answer.status_code == 200:
            return answer
    raise TimeoutError(answer.text)


def test_it_goes_from_wave_to_wave_by_itself(http) -> None:
    status = begun(http)
    assert status["state"] == "collecting"
    assert begun(http) == status  # again changes nothing
    assert Plan.from_json(http.get(f"{HERE}/plan").text) == PLAN
    first = current(http)
    assert first == PLAN.first()
    kept = blurred(first, 0, FIRST)
    assert sent(http, first, kept).json() == {"accepted": FIRST, "new": FIRST}
    second = current(http)  # whoever was answered finds the next wave open
    published = [PublishedMoments.from_json(text) for text in texts(http)]
    follows(PLAN, published, second)
    assert http.get(f"/collections/{first.fingerprint}/moments").text == published[0].to_json()

    # What was stored is acknowledged after its wave was released; what is late is not.
    assert sent(http, first, kept).json() == {"accepted": FIRST, "new": 0}
    before = http.get(f"{HERE}/releases").text
    late = sent(http, first, blurred(first, 0, 1))
    refused(late, 409, "wave-closed", "Wave 1 has closed", PLAN.fingerprint)
    assert http.get(f"{HERE}/releases").text == before
    refused(http.get(f"{HERE}/model"), 404, "not-published", "goes on")

    assert sent(http, second, blurred(second, FIRST, 60)).status_code == 200
    model = eventually(http, f"{HERE}/model")
    published = [PublishedMoments.from_json(text) for text in texts(http)]
    assert model.text == learn_plan(PLAN, published).to_json()
    assert http.get(f"/collections/{second.fingerprint}/model").text == model.text
    assert "Privacy statement" in http.get(f"{HERE}/statement").text
    refused(http.get(f"{HERE}/agreement"), 409, "closed", "All of its waves")
    (ended,) = http.get("/plans").json()
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


def test_a_wave_below_its_quorum_is_never_released(http) -> None:
    begun(http)
    first = current(http)
    sent(http, first, blurred(first, 0, FIRST - 1))
    assert http.get(f"{HERE}/releases").text == "[]"
    refused(do(http, "publish"), 409, "below-quorum")
    path = f"/collections/{first.fingerprint}"
    refused(http.get(f"{path}/moments"), 404, "not-published", "wave 1")
    for what in ("close", "publish"):
        answer = http.post(f"{path}/{what}", headers=ADMINISTRATOR)
        refused(answer, 409, "infeasible", "Hold the plan")
    assert current(http) == first


def test_held_and_resumed(http) -> None:
    begun(http)
    first = current(http)
    assert do(http, "hold").json()["state"] == "held"
    sent(http, first, blurred(first, 0, FIRST))
    sent(http, first, blurred(first, FIRST, FIRST + 3))  # it goes on collecting
    assert current(http) == first
    assert do(http, "resume").json()["state"] == "collecting"
    for _ in range(500):
        if (second := current(http)) != first:
            break
    assert second.wave.number == 2
    assert http.get(HERE).json()["waves"][0]["count"] == FIRST + 3


def test_ended_early_with_the_best_model_so_far(http) -> None:
    begun(http)
    first = current(http)
    sent(http, first, blurred(first, 0, FIRST))
    second = current(http)
    sent(http, second, blurred(second, FIRST, FIRST + 5))
    model = do(http, "publish")
    assert model.status_code == 200, model.text
    assert PublishedModel.from_json(model.text).count == FIRST
    assert do(http, "publish").text == model.text == http.get(f"{HERE}/model").text
    status = http.get(HERE).json()
    assert status["reason"] == "Its administrator ended it after wave 1 of 2."
    assert [one["state"] for one in status["waves"]] == ["released", "dropped"]
    refused(sent(http, second, blurred(second, 50, 51)), 409, "wave-closed")
    refused(http.get(f"{HERE}/agreement"), 409, "closed", "Its administrator ended it")
    refused(do(http, "hold"), 409, "closed")
    hashes = {"hashes": [hashed("a").hex()]}
    refused(http.post(f"{HERE}/invitations", json=hashes, headers=ADMINISTRATOR), 409, "closed")


def test_nobody_is_invited_to_two_waves(http) -> None:
    begun(http, INVITED)
    first = current(http, INVITED)
    tokens = [*invitations(INVITED, 1, FIRST), *invitations(INVITED, 2, 2)]
    hashes = {"hashes": [hashed(one).hex() for one in tokens]}
    path = f"/plans/{INVITED.fingerprint}/invitations"
    answer = http.post(path, json=hashes, headers=ADMINISTRATOR)
    assert answer.json() == {"accepted": FIRST + 2, "new": FIRST + 2}
    early = sent(http, first, blurred(first, 20, 21), **{"blurfit-invitation": tokens[-1]})
    refused(early, 409, "other-group", "group 2, which comes later")
    body = blurred(first, 0, FIRST)
    given = {"blurfit-invitation": ",".join(tokens[:FIRST])}
    assert sent(http, first, body, **given).status_code == 200
    second = current(http, INVITED)
    again = sent(http, second, blurred(second, 0, 1), **{"blurfit-invitation": tokens[0]})
    refused(again, 403, "not-invited", "have been used")
    other = sent(http, second, blurred(second, 20, 21), **{"blurfit-invitation": tokens[-1]})
    assert other.json() == {"accepted": 1, "new": 1}
    path = f"/collections/{second.fingerprint}/invitation"
    good = {one: http.get(path, headers={"blurfit-invitation": one}).json() for one in tokens[-2:]}
    assert [one["usable"] for one in good.values()] == [True, False]
    # stored, and only not known to be: acknowledged, with an invitation that is long used
    assert sent(http, first, body, **given).json() == {"accepted": FIRST, "new": 0}


def test_a_submission_of_one_wave_is_not_taken_for_another(http) -> None:
    """Its fingerprint says under which map it was blurred."""
    begun(http)
    first = current(http)
    old = blurred(first, 0, FIRST)
    sent(http, first, old)
    second = current(http)
    refused(sent(http, second, old), 400, "invalid")
    assert http.get(HERE).json()["waves"][1]["count"] == 0


@whatever_it_keeps
def test_waves_are_opened_by_their_plan(http) -> None:
    headers = ADMINISTRATOR | as_json()
    answer = http.post("/collections", content=PLAN.first().to_json(), headers=headers)
    refused(answer, 400, "invalid", "open the plan")


@whatever_it_keeps
def test_only_the_administrator_decides(http) -> None:
    begun(http)
    for what in ("hold", "resume", "publish", "invitations"):
        refused(http.post(f"{HERE}/{what}"), 401, "unauthorised")
    refused(http.post("/plans", content=PLAN.to_json(), headers=as_json()), 401, "unauthorised")
    assert http.get(HERE).json()["state"] == "collecting"


@whatever_it_keeps
def test_what_is_not_there(http) -> None:
    for path in ("", "/plan", "/agreement", "/releases", "/model", "/statement"):
        refused(http.get(f"/plans/{'ab' * 32}{path}"), 404, "unknown-collection")
    refused(http.post("/plans", content=b"{}", headers=ADMINISTRATOR | as_json()), 400, "invalid")


@whatever_it_keeps
def test_a_plan_is_proposed(http) -> None:
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 60, "waves": 2}
    body = {"schema": PLAN.schema.to_dict(), **terms}
    answer = http.post("/plans/proposal", json=body, headers=ADMINISTRATOR)
    assert answer.text == INVITED.to_json()
    assert http.get("/plans").json() == []


@whatever_it_keeps
def test_no_plan_is_proposed_of_what_may_not_teach_others(http) -> None:
    """Of `input` only the model may be shown, and a map follows from sums."""
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 60, "mechanism": "input", "weight_bound": 2}
    body = {"schema": PLAN.schema.to_dict(), **terms}
    refused(http.post("/plans/proposal", json=body, headers=ADMINISTRATOR), 400, "invalid", "waves")


def test_which_of_two_databases_this_is_must_be_said(http) -> None:
    databases = (("One", "https://one.example"), ("Two", "https://two.example"))
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 60, "databases": databases}
    shared = Plan.propose(PLAN.schema, waves=2, **terms)
    headers, body = ADMINISTRATOR | as_json(), shared.to_json()
    refused(http.post("/plans", content=body, headers=headers), 400, "invalid", "--as first")
    whole = http.post("/plans?role=first", content=PLAN.to_json(), headers=headers)
    refused(whole, 400, "invalid", "names no second database")
    assert http.get("/plans").json() == []
    assert http.post("/plans?role=second", content=body, headers=headers).status_code == 201
    answer = http.post(f"/plans/{shared.fingerprint}/publish", headers=ADMINISTRATOR)
    refused(answer, 404, "not-published", "One leads this plan")
    page = http.get(f"/c/{shared.fingerprint}").headers["content-security-policy"]
    assert "connect-src 'self' https://one.example https://two.example;" in page
