"""Submissions over HTTP: what is taken, in groups, sealed, and by a store that hangs."""

import asyncio
import json
import logging
import threading

import httpx2 as httpx
import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from blurfit import Agreement, StorageError
from blurfit.agreement.terms import Database
from blurfit.contributor.blur import perturb, perturb_table, share
from blurfit.contributor.client import Client
from blurfit.messages.submissions import Submission, Submissions, new_key, public_key
from blurfit.protocol import BINARY, JSON, hashed
from blurfit_server import Store
from blurfit_server.service import intake as collector
from blurfit_server.service import intake as module
from blurfit_server.service.app import Limits, Service
from blurfit_server.service.intake import Collector
from blurfit_server.store import database
from blurfit_server.store.arrivals import Arrival
from server_support.requests import ADMINISTRATOR, TOKEN, opened, opening, refused, send
from server_support.services import two_services
from support.proposals import PEOPLE, propose
from support.sharing import SCHEMA, TWO


def test_bad_submissions_are_refused_and_nothing_is_kept(http, agreement) -> None:
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    other = Agreement.propose(SCHEMA, epsilon=2, delta=1e-6, quorum=20)
    foreign = perturb(other, {"age": 30, "income": 20})
    wide = Submission("00" * 16, agreement.fingerprint, np.zeros(6))
    message = json.loads(one.to_json())
    rest = message["numbers"][1:]
    infinite = one.to_bytes()[:-8] + np.array([np.inf]).tobytes()
    nan = one.to_bytes()[:-8] + np.array([np.nan]).tobytes()
    large = one.to_bytes()[:-8] + np.array([2.0**50]).tobytes()
    between = one.to_bytes()[:-8] + np.array([agreement.step / 4]).tobytes()
    for body, kind, word in (
        (foreign.to_bytes(), BINARY, "another agreement"),
        (foreign.to_json(), JSON, "another agreement"),
        (wide.to_bytes(), BINARY, "numbers, and got 6"),
        (wide.to_json(), JSON, "numbers, and got 6"),
        (infinite, BINARY, "finite"),
        (nan, BINARY, "finite"),
        (large, BINARY, "a norm above"),
        (between, BINARY, "no multiple of"),
        (json.dumps(message | {"numbers": [1e400, *rest]}), JSON, "cannot be read"),
        (json.dumps(message | {"numbers": [1e300, *rest]}), JSON, "a norm above"),
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
    assert http.get(path).json()["count"] == 0


def test_no_more_than_ten_thousand_at_once(http, agreement) -> None:
    path = opened(http, agreement)
    many = {name: np.resize(values, 10_001) for name, values in PEOPLE.items()}
    batch = perturb_table(agreement, many)
    refused(send(http, path, batch.to_bytes()), 413, "too-large", "10001")
    all_but_one = Submissions(batch.identifiers[1:], batch.fingerprint, batch.numbers[1:])
    assert send(http, path, all_but_one.to_bytes()).json()["new"] == 10_000


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


# ---- groups: one bad arrival does not spoil the others


def rows(agreement, count: int) -> list[bytes]:
    people = {name: np.linspace(0, 100, count) for name in ("age", "income")}
    return [one.to_bytes() for one in perturb_table(agreement, people)]


def collect(kept, agreement, bodies, linger=0.01) -> list:
    async def run() -> list:
        collector = Collector(kept, linger)
        collection = kept.collection(agreement.fingerprint)
        outcomes = await asyncio.gather(
            *(collector.submit(collection, Arrival(body)) for body in bodies),
            return_exceptions=True,
        )
        await collector.close()
        return outcomes

    return asyncio.run(run())


@pytest.fixture
def kept(agreement):
    with Store() as kept:
        kept.open(agreement)
        yield kept


def test_what_nobody_thought_of_hits_its_sender_alone(kept, agreement, monkeypatch) -> None:
    bodies = rows(agreement, 5)
    receive, poison = kept.receive, bodies[3][8:24]

    def fragile(fingerprint, arrivals):
        if any(bytes(arrival.rows).count(poison) for arrival in arrivals):
            raise ZeroDivisionError
        return receive(fingerprint, arrivals)

    monkeypatch.setattr(kept, "receive", fragile)
    outcomes = collect(kept, agreement, bodies)
    assert isinstance(outcomes[3], StorageError)
    assert outcomes[:3] + outcomes[4:] == [1] * 4


def test_groups_are_bounded_and_so_is_what_waits(kept, agreement, monkeypatch) -> None:
    groups = []
    receive = kept.receive
    monkeypatch.setattr(
        kept, "receive", lambda f, arrivals: (groups.append(len(arrivals)), receive(f, arrivals))[1]
    )
    size = agreement.layout.size
    monkeypatch.setattr(module, "GROUP_BYTES", 3 * size)
    assert collect(kept, agreement, rows(agreement, 10)) == [1] * 10
    assert groups == [3, 3, 3, 1]
    monkeypatch.setattr(module, "WAITING_BYTES", 2 * size)
    outcomes = collect(kept, agreement, rows(agreement, 10))
    assert outcomes[:3] == [1] * 3
    assert all(isinstance(one, StorageError) for one in outcomes[3:])


def test_closing_stores_what_waits_and_takes_no_more(kept, agreement) -> None:
    async def run() -> None:
        collector = Collector(kept, 0.05)
        collection = kept.collection(agreement.fingerprint)
        bodies = rows(agreement, 3)
        waiting = [
            asyncio.create_task(collector.submit(collection, Arrival(body))) for body in bodies[:2]
        ]
        await asyncio.sleep(0)
        await collector.close()
        assert await asyncio.gather(*waiting) == [1, 1]
        with pytest.raises(StorageError):
            await collector.submit(collection, Arrival(bodies[2]))

    asyncio.run(run())


def test_whoever_goes_away_does_not_stop_the_others(kept, agreement) -> None:
    async def run() -> None:
        collector = Collector(kept, 0.02)
        collection = kept.collection(agreement.fingerprint)
        bodies = rows(agreement, 2)
        gone, stays = (
            asyncio.create_task(collector.submit(collection, Arrival(b))) for b in bodies
        )
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == 1
        await collector.close()
        assert kept.count(agreement) == 2  # it had been sent

    asyncio.run(run())


def test_the_store_is_tidied_now_and_then_and_a_failure_is_no_matter(
    kept, agreement, monkeypatch, caplog
) -> None:
    tidied = []

    def tidy() -> None:
        tidied.append(True)
        raise StorageError("busy")

    monkeypatch.setattr(kept, "tidy", tidy)
    monkeypatch.setattr(module, "TIDY_BYTES", 1)
    assert collect(kept, agreement, rows(agreement, 3)) == [1] * 3
    assert tidied == [True]
    assert "could not be tidied" in caplog.text


def test_the_store_is_tidied_soon_after_little_was_written(kept, agreement, monkeypatch) -> None:
    """By time as well as by size: a log that somebody removes holds little."""
    monkeypatch.setattr(module, "TIDY_SECONDS", 0.01)

    async def run() -> None:
        tidied = asyncio.Event()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(kept, "tidy", lambda: loop.call_soon_threadsafe(tidied.set))
        collector = Collector(kept)
        collection = kept.collection(agreement.fingerprint)
        await collector.submit(collection, Arrival(*rows(agreement, 1)))
        await asyncio.wait_for(tidied.wait(), 300)
        tidied.clear()
        collector.tidy()
        await asyncio.wait_for(tidied.wait(), 300)
        await collector.close()

    asyncio.run(run())


def test_a_locked_collection_keeps_no_other_waiting_on_postgresql(places, monkeypatch) -> None:
    monkeypatch.setattr(database, "_SECONDS_FOR_A_LOCK", 60)
    locked, free = propose(), propose(epsilon=101)
    with Store(places.fresh()) as kept:
        kept.open(locked)
        kept.open(free)

        async def run(holder: sa.Connection) -> None:
            collector = Collector(kept)

            def sent(agreement) -> asyncio.Task[int]:
                (body,) = rows(agreement, 1)
                collection = kept.collection(agreement.fingerprint)
                return asyncio.create_task(collector.submit(collection, Arrival(body)))

            waits = sent(locked)
            await asyncio.sleep(0.01)  # first in line
            assert await sent(free) == 1
            assert not waits.done()
            holder.rollback()
            assert await waits == 1
            await collector.close()

        held = sa.text("SELECT 1 FROM courses WHERE fingerprint = :name FOR UPDATE")
        with kept._engine.connect() as holder:
            holder.execute(held, {"name": locked.fingerprint})
            asyncio.run(run(holder))


def test_collections_take_turns(kept, agreement, monkeypatch) -> None:
    """However much waits for one of them, another one's arrival is in the second commit."""
    other = propose(epsilon=99)
    kept.open(other)
    crowd = rows(agreement, 12)
    monkeypatch.setattr(module, "GROUP_BYTES", 3 * len(crowd[0]))
    order, receive = [], kept.receive

    def noted(collection, arrivals):
        order.append((collection.fingerprint == other.fingerprint, len(arrivals)))
        return receive(collection, arrivals)

    monkeypatch.setattr(kept, "receive", noted)

    async def run() -> list:
        collector = Collector(kept, 0.01)
        here, there = (kept.collection(one.fingerprint) for one in (agreement, other))
        waiting = [collector.submit(here, Arrival(body)) for body in crowd]
        waiting.append(collector.submit(there, Arrival(rows(other, 1)[0])))
        outcomes = await asyncio.gather(*waiting)
        await collector.close()
        return outcomes

    assert asyncio.run(run()) == [1] * 13
    assert order == [(False, 3), (True, 1), (False, 3), (False, 3), (False, 3)]


# ---- a store that hangs


def test_nobody_waits_with_a_store_that_hangs(agreement, in_memory, monkeypatch) -> None:
    monkeypatch.setattr(collector, "SECONDS_TO_STORE", 0.2)
    again = threading.Event()
    with Store(in_memory / "collection.db") as store:
        store.appoint(hashed(TOKEN))
        receive = store.receive
        monkeypatch.setattr(store, "receive", lambda *a: (again.wait(600), receive(*a))[1])
        with TestClient(Service(store, Limits(requests_per_second=0))) as client:
            path = opened(client, agreement)
            one = perturb(agreement, {"age": 30, "income": 20}).to_bytes()
            answer = send(client, path, one)
            refused(answer, 503, "unavailable", "not known yet")
            assert int(answer.headers["retry-after"]) >= 1
            assert client.get("/healthz").status_code == 200, "others are served meanwhile"
            again.set()
            monkeypatch.setattr(collector, "SECONDS_TO_STORE", 600.0)
            assert send(client, path, one).json()["accepted"] == 1
            assert client.get(path).json()["count"] == 1


# ---- sealed shares: a proxy sees neither numbers nor names


KEYS = new_key(), new_key()
SEALED = tuple(Database(*one, public_key(key)) for one, key in zip(TWO, KEYS, strict=True))
PROMISE = {"epsilon": 190, "delta": 1e-6, "quorum": 3, "admission": "anyone"}
AGREEMENT = Agreement.propose(SCHEMA, databases=SEALED, **PROMISE)


class Proxy(httpx.BaseTransport):
    """Ends TLS, forwards, and remembers what it saw."""

    def __init__(self, way: httpx.BaseTransport) -> None:
        self.way, self.seen = way, []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request.read())
        return self.way.handle_request(request)


def test_a_proxy_before_both_sees_nothing_and_one_model_comes_out() -> None:
    path = f"/collections/{AGREEMENT.fingerprint}"

    def post(client: TestClient, content: bytes):
        headers = {"content-type": BINARY}
        return client.post(f"{path}/submissions", content=content, headers=headers)

    with (
        Store() as one,
        Store() as other,
        two_services(AGREEMENT, (one, other), share_key=KEYS) as (first, second),
    ):
        proxies = [Proxy(client._transport) for client in (first, second)]
        shared = share(AGREEMENT, PEOPLE)
        with Client.of(AGREEMENT, transports=proxies, patience=0.0) as sender:
            assert sender.submit(shared) == len(shared)
            assert sender.submit(shared) == 0, "again is safe, and sealed afresh"
        seen = [b"".join(proxy.seen) for proxy in proxies]
        for message, hidden in zip((shared.first, shared.second), seen, strict=True):
            for name in message.identifiers:
                assert name.tobytes() not in hidden
            assert message.words.tobytes()[:16] not in hidden
        refused(post(first, shared.first.to_bytes()), 400, "invalid", "not sealed at all")
        refused(post(first, proxies[1].seen[-1]), 400, "invalid", "for another one")
        second.post(f"{path}/close", headers=ADMINISTRATOR)
        model = first.post(f"{path}/publish", headers=ADMINISTRATOR)
        assert model.json()["count"] == len(shared)


def test_a_service_with_another_key_does_not_open_it() -> None:
    with Store() as store:
        store.appoint(hashed(TOKEN))
        for key in (None, new_key(), KEYS[1]):
            with TestClient(Service(store, share_key=key), base_url=TWO[0][1]) as client:
                answer = opening(client, AGREEMENT, role="first")
                refused(answer, 409, "infeasible", "--share-key-file")
