"""What is always the same bytes is made once, asked after by its tag, and paid for by its size."""

import asyncio
import gzip
import json

import pytest
from starlette.testclient import TestClient

from blurfit import Store, perturb
from blurfit.agreement.plan import Plan
from blurfit.messages.signing import Signer, new_key
from blurfit.model.model import PublishedModel
from blurfit.protocol.tokens import hashed
from blurfit.service import answers, endpoints
from blurfit.service import answers as kept
from blurfit.service.answers import Kept, Shelf
from blurfit.service.app import Limits, Service
from blurfit.service.limits import BYTES_OF_A_REQUEST, LONG, Turns
from support.requests import ADMINISTRATOR, TOKEN, as_json, opened, refused, send
from support.stores import PEOPLE, SCHEMA, propose

PRIVATE = new_key()
SIGNED = propose(signing_keys=[Signer(PRIVATE).key])
ALONE = (
    "agreement",
    "model",
    "moments",
    *(f"statement?format={one}" for one in endpoints.STATEMENTS),
)
WAVES = ("document", "agreement", "releases")


@pytest.fixture
def store():
    with Store() as found:
        found.appoint(hashed(TOKEN))
        yield found


@pytest.fixture
def http(store):
    with TestClient(Service(store, Limits(requests_per_second=0), signing_key=PRIVATE)) as client:
        yield client


@pytest.fixture
def paths(http) -> list[str]:
    """Everything that is always the same: of a collection, of a plan, and of the service."""
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 40, "admission": "anyone"}
    plan = Plan.propose(SCHEMA, waves=2, **promise)
    http.post("/collections", content=plan.to_json(), headers=ADMINISTRATOR | as_json())
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
        with TestClient(Service(store, signing_key=PRIVATE)) as other:
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


def test_what_fails_is_not_kept() -> None:
    def fails() -> str:
        raise LookupError

    async def run() -> None:
        shelf = Shelf(Turns())
        with pytest.raises(LookupError):
            await shelf.get("name", fails, made)
        assert (await shelf.get("name", lambda: "there", made)).plain == b"there"

    asyncio.run(run())


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


def test_what_may_change_is_made_anew_when_it_has() -> None:
    now = [1]

    async def run() -> None:
        shelf = Shelf(Turns())

        async def get() -> bytes:
            version = now[0]
            found = await shelf.get(
                "name", lambda: f"{version}", lambda text: made(text, version), lambda: now[0]
            )
            return found.plain

        assert [await get(), await get()] == [b"1", b"1"]
        now[0] = 2
        assert [await get(), await get()] == [b"2", b"2"]

    asyncio.run(run())
