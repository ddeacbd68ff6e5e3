"""Answers: signed, kept as they are sent, counted, and read by other origins."""

import asyncio
import gzip
import itertools
import json

import pytest
import rfc8785
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from blurfit import Agreement, PublishedModel, PublishedMoments, perturb
from blurfit.agreement.plan import Plan
from blurfit.contributor.client import Client
from blurfit.messages.signing import Signer, new_key
from blurfit.model.release import examine
from blurfit.protocol import BINARY, hashed
from blurfit_server import Store
from blurfit_server.service import answers, endpoints
from blurfit_server.service import answers as kept
from blurfit_server.service.answers import Kept, Metrics, Shelf, for_strangers, shown
from blurfit_server.service.app import Limits, Service
from blurfit_server.service.endpoints import POLICY
from blurfit_server.service.limits import BYTES_OF_A_REQUEST, LONG, Turns
from blurfit_server.store.collections import Status, WaveStatus
from server_support.requests import ADMINISTRATOR, TOKEN, as_json, opened, opening, refused, send
from server_support.services import two_services
from support import ed25519, sharing
from support.proposals import PEOPLE, propose
from support.sharing import SCHEMA, TWO, marked, new_agreement

# ---- signatures


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
            answer = opening(http, other)
            refused(answer, 409, "infeasible", KEYS[0])


def test_a_plan_is_signed_wave_by_wave(store) -> None:
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 40, "admission": "anyone"}
    plan = Plan.propose(SCHEMA, waves=1, signing_keys=KEYS[:1], **promise)
    with TestClient(Service(store)) as http:
        answer = opening(http, plan)
        refused(answer, 409, "infeasible", KEYS[0])
    with TestClient(Service(store, signing_key=PRIVATE[0])) as http:
        opening(http, plan)
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


# ---- what is always the same bytes


ALONE = (
    "agreement",
    "model",
    "moments",
    *(f"statement?format={one}" for one in endpoints.STATEMENTS),
)
WAVES = ("document", "agreement", "releases")


@pytest.fixture
def http(store):
    with TestClient(
        Service(store, Limits(requests_per_second=0), signing_key=PRIVATE[0])
    ) as client:
        yield client


@pytest.fixture
def paths(http) -> list[str]:
    """Everything that is always the same: of a collection, of a plan, and of the service."""
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 40, "admission": "anyone"}
    plan = Plan.propose(SCHEMA, waves=2, **promise)
    opening(http, plan)
    collection = opened(http, SIGNED)
    send(http, collection, perturb(SIGNED, PEOPLE).to_bytes())
    assert http.post(f"{collection}/publish", headers=ADMINISTRATOR).status_code == 200
    waves = [f"/collections/{plan.fingerprint}/{one}" for one in WAVES]
    return ["/openapi.json", *(f"{collection}/{one}" for one in ALONE), *waves]


def test_nothing_is_read_or_written_twice(http, paths, monkeypatch) -> None:
    """Seen before: the OpenAPI document was put together, the moments parsed, and the statement
    written anew for each who asked, while everybody else waited.
    """
    before = [http.get(path) for path in paths]
    assert [one.status_code for one in before] == [200] * len(paths)
    worked: list[str] = []
    for place, name in (
        *((json, "loads"), (json, "dumps"), (gzip, "compress"), (kept.hashlib, "sha256")),
        *((PublishedModel, "from_json"), (answers, "with_signatures")),
    ):
        work = getattr(place, name)

        def noted(*given, work=work, name=name, **named):
            worked.append(name)
            return work(*given, **named)

        monkeypatch.setattr(place, name, noted)
    after = [http.get(path) for path in paths]
    assert worked == []
    assert [one.content for one in after] == [one.content for one in before]


def test_what_is_final_is_not_asked_of_the_store(http, store, paths, monkeypatch) -> None:
    final = [path for path in paths if not path.endswith(("releases", "/agreement"))]
    for path in final:
        http.get(path)
    asked: list[object] = []
    monkeypatch.setattr(store, "read", lambda *given: asked.append(given))
    assert {http.get(path).status_code for path in final} == {200}
    assert asked == []


def test_all_of_it_is_compressed_and_asked_after(http, paths) -> None:
    for path in paths:
        plain = http.get(path, headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        small = http.get(path, headers={"accept-encoding": "gzip"})
        assert small.headers["content-encoding"] == "gzip"
        assert "accept-encoding" in small.headers["vary"]
        assert small.content == plain.content  # httpx unpacks it
        again = http.get(path, headers={"if-none-match": plain.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        other = http.get(path, headers={"if-none-match": '"of something else"'})
        assert other.status_code == 200


def test_a_signature_that_comes_is_shown(store) -> None:
    """Also where another process of the same store has made it."""
    store.add(SIGNED, perturb(SIGNED, PEOPLE))
    store.publish(SIGNED)
    path = f"/collections/{SIGNED.fingerprint}/model"
    with TestClient(Service(store)) as http:
        for _ in range(2):
            answer = http.get(path)
            assert "signatures" not in answer.json()
            assert answer.headers["cache-control"] == "no-cache"
        with TestClient(Service(store, signing_key=PRIVATE[0])) as other:
            signed = other.get(path)
        answer = http.get(path, headers={"if-none-match": answer.headers["etag"]})
        assert answer.content == signed.content
        assert "immutable" in answer.headers["cache-control"]


def test_answers_are_paid_by_their_size(store) -> None:
    limits = Limits(requests_per_second=1e-9, burst=6)
    with TestClient(Service(store, limits), client=("203.0.113.5", 1)) as http:
        plain = {"accept-encoding": "identity"}
        answer = http.get("/openapi.json", headers=plain)
        size = len(answer.content) / BYTES_OF_A_REQUEST
        assert 2 < size < 3, "about three requests"
        same = {"if-none-match": answer.headers["etag"]}
        assert [http.get("/openapi.json", headers=same).status_code for _ in range(2)] == [304] * 2
        assert http.get("/openapi.json", headers=plain).status_code == 200  # and now it is empty
        refused(http.get("/healthz"), 429, "too-many-requests")


# ---- the shelf


def made(text: str, version: int | None = None) -> Kept:
    return Kept.made(text, "text/plain", version=version)


def test_whoever_asks_at_once_waits_for_the_same_work() -> None:
    found: list[str] = []

    def find() -> str:
        found.append("once")
        return "x" * (LONG + 1)

    async def run() -> None:
        shelf = Shelf(Turns())
        answers = await asyncio.gather(*(shelf.get("name", find, made) for _ in range(20)))
        assert all(one is answers[0] for one in answers)
        assert await shelf.get("name", find, made) is answers[0]

    asyncio.run(run())
    assert found == ["once"]


def test_so_many_bytes_are_kept_and_the_newest_whatever_it_takes() -> None:
    one = made("one")
    size = len(one.plain) + len(one.compressed)

    async def run() -> None:
        shelf = Shelf(Turns(), most=2 * size)
        names: list[str] = []

        def finding(name: str):
            return lambda: (names.append(name), name)[1]

        for name in ("one", "two", "one", "six", "one", "two"):
            await shelf.get(name, finding(name), made)
        assert names == ["one", "two", "six", "two"], "the one not asked for longest went first"
        await shelf.get("long", lambda: "long" * 1000, made)
        assert set(shelf._kept) == {"long"}
        assert (await shelf.get("long", finding("long"), made)).plain == b"long" * 1000

    asyncio.run(run())


# ---- counts


def status(state: str, count: int, quorum: int) -> Status:
    """A collection of one wave."""
    wave = WaveStatus(
        1, "joint", quorum, "released" if state == "published" else state, count, "ab"
    )
    return Status("ab", state, count, quorum, invited=True, waves=(wave,))


def samples(text: bytes) -> dict:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_counters_and_gauges() -> None:
    metrics = Metrics()
    metrics.accepted(10, 7)
    metrics.accepted(1, 0)
    metrics.refused("conflict")
    found = samples(metrics.text([status("collecting", 7, 20)], exact=True))
    assert found["blurfit_submissions_total", "new"] == 7
    assert found["blurfit_submissions_total", "again"] == 4
    assert found["blurfit_refusals_total", "conflict"] == 1
    assert found["blurfit_collection_submissions", "ab", "collecting"] == 7
    assert found["blurfit_collection_quorum", "ab"] == 20
    later = samples(metrics.text([status("published", 9, 20)], exact=True))
    assert ("blurfit_collection_submissions", "ab", "collecting") not in later
    assert later["blurfit_collection_submissions", "ab", "published"] == 9


def test_without_a_token_no_single_arrival_shows() -> None:
    metrics = Metrics()
    metrics.accepted(1999, 1234)
    seen = []
    for count in (1999, 2001):
        one = status("collecting", count, 2000)
        seen.append(samples(metrics.text([one], exact=False)))
        metrics.accepted(1, 1)
    assert [one["blurfit_collection_submissions", "ab", "collecting"] for one in seen] == [
        1900,
        2000,
    ]
    assert [one["blurfit_submissions_total", "new"] for one in seen] == [1200, 1200]
    exact = samples(metrics.text([], exact=True))
    assert exact["blurfit_submissions_total", "new"] == 1236


# ---- counts for strangers: no single arrival shows, and a quorum that is reached does


@pytest.mark.parametrize("quorum", [1, 150, 2000, 10**6])
def test_what_is_told_of_every_count(quorum) -> None:
    told = [shown(count, quorum) for count in range(5000)]
    assert told == sorted(told)
    for count, one in enumerate(told):
        assert (one >= quorum) is (count >= quorum)
        assert one <= count
        assert count - one <= max(0, count // 10)
    changes = sum(one != other for one, other in itertools.pairwise(told[100:]))
    assert changes <= 90 + 40 + 1, "90 steps to a thousand, 40 from there, and the quorum"


def test_states_keep_everything_else() -> None:
    assert for_strangers(status("collecting", 1234, 2000)) == status("collecting", 1200, 2000)
    done = status("published", 1234, 1000)
    assert for_strangers(done) == done, "the model says it anyway"
    waves = (
        WaveStatus(1, "joint", 1000, "released", 1234, "ab"),
        WaveStatus(2, "newton", 2000, "collecting", 567, "cd"),
        WaveStatus(3, "newton", 3000),
    )
    told = for_strangers(Status("ef", "collecting", 567, 2000, True, waves=waves))
    assert [wave.count for wave in told.waves] == [1234, 560, 0]
    assert told.count == 560


# ---- other origins


ONE = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=3)


@pytest.fixture
def both():
    agreement = new_agreement()
    with Store() as store:
        store.open(agreement, role="first")
        store.open(ONE)
        with TestClient(Service(store, Limits(requests_per_second=0))) as http:
            yield agreement, http


def preflight(http, fingerprint: str, origin: str):
    headers = {"origin": origin, "access-control-request-method": "POST"}
    return http.options(f"/collections/{fingerprint}/submissions", headers=headers)


@pytest.mark.parametrize("origin", [url for _, url in TWO])
def test_pages_of_the_two_may_send(both, origin) -> None:
    agreement, http = both
    answer = preflight(http, agreement.fingerprint, origin)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-methods"] == "POST"
    assert answer.headers["access-control-allow-headers"] == "content-type, blurfit-invitation"
    assert "access-control-allow-credentials" not in answer.headers
    share = marked(agreement, 1).first.to_bytes()
    for body, status in ((share, 200), (b"x", 400)):
        sent = http.post(
            f"/collections/{agreement.fingerprint}/submissions",
            content=body,
            headers={"origin": origin, "content-type": BINARY},
        )
        assert sent.status_code == status
        assert sent.headers["access-control-allow-origin"] == origin


def test_no_other_page_may(both) -> None:
    agreement, http = both
    for fingerprint, origin in (
        (agreement.fingerprint, "https://elsewhere.example"),
        (agreement.fingerprint, "null"),
        (agreement.fingerprint, TWO[0][1] + "/"),
        (ONE.fingerprint, TWO[0][1]),
        ("0" * 64, TWO[0][1]),
    ):
        answer = preflight(http, fingerprint, origin)
        assert answer.status_code == 405
        assert "access-control-allow-origin" not in answer.headers
    asked = http.options(
        f"/collections/{agreement.fingerprint}/invitation", headers={"origin": TWO[1][1]}
    )
    assert asked.headers["access-control-allow-methods"] == "GET"
    assert asked.headers["access-control-allow-headers"].lower() == "blurfit-invitation"
    state = http.get(f"/collections/{agreement.fingerprint}", headers={"origin": TWO[1][1]})
    assert state.headers["access-control-allow-origin"] == TWO[1][1]  # how many there are
    for path in ("/agreement", "/model", "/peer/identifiers", "/publish"):
        address = f"/collections/{agreement.fingerprint}{path}"
        answer = http.get(address, headers={"origin": TWO[1][1]})
        assert "access-control-allow-origin" not in answer.headers


def test_the_page_may_ask_these_and_nobody_else(both) -> None:
    agreement, http = both
    allowed = f"connect-src 'self' {TWO[0][1]} {TWO[1][1]}"
    policy = http.get(f"/c/{agreement.fingerprint}").headers["content-security-policy"]
    assert policy == POLICY.replace("connect-src 'self'", allowed)
    for path in (f"/c/{ONE.fingerprint}", f"/c/{'0' * 64}", f"/m/{agreement.fingerprint}", "/"):
        assert http.get(path).headers["content-security-policy"] == POLICY
