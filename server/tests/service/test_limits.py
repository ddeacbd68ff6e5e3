"""What anyone may take: requests, bodies, memory, and time."""

import asyncio
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from starlette.testclient import TestClient

from blurfit import protocol as tokens
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import OVERHEAD, Submissions
from blurfit.protocol import BINARY, JSON, OCTETS, RequestError, hashed
from blurfit_server.service import intake, limits
from blurfit_server.service import limits as module
from blurfit_server.service.app import Limits, Service
from blurfit_server.service.intake import JSON_BYTES, largest_body
from blurfit_server.service.limits import (
    JSON_OF_A_REQUEST,
    ROWS_OF_A_REQUEST,
    Allowance,
    Limiter,
    network_of,
    proxies_in,
    run_in_daemon_thread,
)
from blurfit_server.store.store import Store
from server_support.requests import TOKEN, opened, refused, send
from support.proposals import PEOPLE, propose
from support.sharing import new_agreement


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_kept_of_an_address_and_many_take_no_more_room() -> None:
    clock = Clock()
    limiter = Limiter(rate=1, burst=10, clock=clock)
    size = limiter._full.nbytes
    for number in range(20_000):
        assert limiter.allows(f"192.0.2.{number}")
    assert limiter._full.nbytes == size
    clock.now = 100.0
    assert [limiter.allows("192.0.2.7") for _ in range(11)] == [True] * 10 + [False]


def test_whoever_shares_a_place_with_somebody_busy_does_not_wait_with_him(monkeypatch) -> None:
    """Only those do who share both; found here by trying, which takes the key.

    With a random key none of 200 shares both in one run of 23.
    """
    monkeypatch.setattr(limits, "_PLACES", 8)
    limiter = Limiter(rate=1, burst=2, clock=Clock(), _key=bytes(16))
    assert [limiter.allows("busy", 2), limiter.allows("busy")] == [True, False]
    busy = limiter._places("busy")
    seen = set()
    for number in range(200):
        places = limiter._places(str(number))
        shared = sum(one == other for one, other in zip(places, busy, strict=True))
        fresh = Limiter(1, 2, limiter.clock, limits._table(), limiter._key)
        assert fresh.allows("busy", 2)
        assert fresh.allows(str(number), 2) == (shared < 2)
        seen.add(shared)
    assert seen == {0, 1, 2}


def test_forked_processes_keep_to_one_limit() -> None:
    limiter = Limiter(rate=1, burst=3, clock=Clock())
    process = multiprocessing.get_context("fork").Process(target=limiter.allows, args=("a", 2))
    process.start()
    process.join()
    assert [limiter.allows("a"), limiter.allows("a"), limiter.allows("b")] == [True, False, True]


def test_what_costs_more_than_a_bucket_holds_waits_and_does_not_exceed_the_rate() -> None:
    """The request itself is charged before the batch or the withdrawal that it brings."""
    clock = Clock()
    limiter = Limiter(rate=10, burst=100, clock=clock)
    times = []
    for second in range(0, 1000, 5):
        clock.now = float(second)
        if limiter.allows("a") and limiter.allows("a", 999):
            times.append(second)
    assert times[0] == 0
    assert 8 <= len(times) <= 11, "1000 each, so one in a hundred seconds"


def test_a_full_bucket_is_enough_for_any_json() -> None:
    agreement = propose()
    many = perturb_table(agreement, {name: np.resize(of, 2000) for name, of in PEOPLE.items()})
    text = many.to_json().encode()
    assert 1.2 * len(text) / JSON_OF_A_REQUEST < 2000 / ROWS_OF_A_REQUEST
    for body in (text, iter([text])):  # with its length, and without
        limits_here = Limits(requests_per_second=1e-9, burst=30)
        with Store() as store, TestClient(Service(store, limits_here)) as http:
            store.open(agreement)
            path = f"/collections/{agreement.fingerprint}"
            assert send(http, path, body, JSON).json()["new"] == 2000
            refused(send(http, path, text, JSON), 429, "too-many-requests")


def test_a_crowd_at_one_collection_leaves_the_others_alone() -> None:
    """From many addresses, each within its own limit; what was refused may come again."""
    crowded, quiet = propose(), propose(epsilon=99)
    with Store() as store:
        for one in (crowded, quiet):
            store.open(one)
        service = Service(store, Limits(requests_per_second=0, submissions_per_second=1e-6))
        service._submissions.collection_limiter.burst = 5
        with TestClient(service) as http:
            table = [one.to_bytes() for one in perturb_table(crowded, PEOPLE)][:8]
            here, there = (f"/collections/{one.fingerprint}" for one in (crowded, quiet))
            answers = [send(http, here, one) for one in table]
            assert [one.status_code for one in answers] == [200] * 5 + [429] * 3
            refused(answers[-1], 429, "crowded", "send the same request again")
            assert int(answers[-1].headers["retry-after"]) > 0
            few = {name: values[:4] for name, values in PEOPLE.items()}
            assert send(http, there, perturb_table(quiet, few).to_bytes()).json()["new"] == 4
            assert send(http, there, perturb_table(quiet, few).to_bytes()).status_code == 429
            assert http.get(here).status_code == 200  # whoever reads is not limited by it
        assert (store.count(crowded), store.count(quiet)) == (5, 4)


# ---- who counts as one: an IPv4 address, however it is written, and an IPv6 network of 2⁶⁴


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8:0:0:ffff:ffff:ffff:ffff", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_what_an_address_is_counted_as(address: str, counted: str) -> None:
    assert network_of(address) == counted


def test_proxies_are_counted_alike() -> None:
    assert proxies_in("") == frozenset()
    assert proxies_in(" 10.0.0.1,::ffff:10.0.0.2 ,") == {"10.0.0.1", "10.0.0.2"}


@pytest.mark.parametrize("text", ["*", "proxy.example", "10.0.0.0/8", "10.0.0.1, *"])
def test_proxies_are_addresses_and_nothing_wider(text: str) -> None:
    with pytest.raises(InvalidValueError, match="trusted proxy"):
        proxies_in(text)


# ---- bodies


async def read(headers: dict[bytes, bytes], receive, limit: int, held=None) -> bytes:
    if held is not None:
        return await module.read_body(headers, receive, limit, held, lambda _size: 1.0)
    with Allowance().reserve("192.0.2.1", "c") as own:
        return await module.read_body(headers, receive, limit, own, lambda _size: 1.0)


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


def test_a_body_that_does_not_come_is_given_up(http, agreement, monkeypatch) -> None:
    monkeypatch.setattr(module, "SECONDS_FOR_A_SMALL_ONE", 0.01)

    def after(parts: int):
        """So many parts of a body, and then silence."""
        left = [b"x"] * parts

        async def receive() -> dict:
            if not left:
                await asyncio.sleep(10)
            return {"type": "http.request", "body": left.pop(), "more_body": True}

        return receive

    for parts in (0, 1, 2):
        with pytest.raises(RequestError, match="within 0"):
            asyncio.run(read({}, after(parts), 100))


def test_a_body_is_no_longer_than_the_layout_allows(http, store, agreement) -> None:
    path = opened(http, agreement)
    collection = store.collection(agreement.fingerprint)
    most = largest_body(collection, {b"content-type": BINARY.encode()})
    assert most == OVERHEAD + 16 + 10_001 * agreement.layout.size
    refused(send(http, path, b"", **{"content-length": str(most + 1)}), 413, "too-large", str(most))
    refused(send(http, path, b" " * (JSON_BYTES + 1), JSON), 413, "too-large", str(JSON_BYTES))


def test_all_bodies_together_fit_a_budget() -> None:
    """Unfinished ones count by what came of them, half of it for one address; then 503."""
    budget = Allowance(total=1000)

    def coming(*parts: bytes):
        left = [*parts]

        async def receive() -> dict:
            body = left.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(left)}

        return receive

    async def read_from(address: str, *parts: bytes, to: str = "c") -> bytes:
        with budget.reserve(address, to) as held:
            return await read({}, coming(*parts), 2000, held)

    with budget.reserve("192.0.2.1", "a") as first, budget.reserve("192.0.2.2", "b") as second:
        first.take(450)
        for address in ("192.0.2.1", "::ffff:192.0.2.1"):
            with pytest.raises(RequestError, match="at once") as refusal:
                asyncio.run(read_from(address, bytes(30), bytes(30)))
            assert (refusal.value.kind.status, refusal.value.kind.retry_after) == (503, 2)
        second.take(450)
        assert len(asyncio.run(read_from("192.0.2.3", bytes(100)))) == 100
        with pytest.raises(RequestError, match="at once"):
            asyncio.run(read_from("192.0.2.3", bytes(101)))
    assert budget == Allowance(total=1000), "all of it was given back"


def test_unfinished_bodies_make_room_for_those_who_send_less() -> None:
    """However many addresses hold some: the largest share is given up, and answered 503."""
    budget = Allowance(total=1000)
    silent = asyncio.Event()

    async def read_from(address: str, size: int, *, whole: bool) -> bytes:
        sent = False

        async def receive() -> dict:
            nonlocal sent
            if sent:
                await silent.wait()
            sent = True
            return {"type": "http.request", "body": bytes(size), "more_body": not whole}

        with budget.reserve(address, address) as held:
            return await read({}, receive, 2000, held)

    async def run() -> None:
        sizes = (400, 300, 280)
        reading = [
            asyncio.create_task(read_from(f"192.0.2.{size}", size, whole=False)) for size in sizes
        ]
        await asyncio.sleep(0)
        assert budget.taken == 980
        assert len(await read_from("198.51.100.1", 100, whole=True)) == 100
        await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
        assert [one.done() for one in reading] == [True, False, False]
        with pytest.raises(RequestError, match="at once"):
            await reading[0]
        with pytest.raises(RequestError, match="at once"):
            await read_from("198.51.100.2", 450, whole=True)  # more than anybody holds
        for one in reading[1:]:
            one.cancel()
        await asyncio.gather(*reading, return_exceptions=True)

    asyncio.run(run())
    assert budget == Allowance(total=1000), "all of it was given back"


def test_long_json_is_read_beside_the_others(http, agreement, monkeypatch) -> None:
    path = opened(http, agreement)
    threads = []
    read = intake._rows
    monkeypatch.setattr(
        intake,
        "_rows",
        lambda *given: (threads.append(threading.current_thread().name), read(*given))[1],
    )
    many = perturb_table(agreement, {name: np.resize(of, 400) for name, of in PEOPLE.items()})
    assert send(http, path, many.to_json(), JSON).json()["new"] == 400
    assert threads == ["blurfit-background"]


# Every path that takes a body, and whose token it asks for; {} is the collection's fingerprint.
TAKING = {
    "/surveys": "administrator",
    "/proposals": "administrator",
    "/outlooks": "administrator",
    "/collections": "administrator",
    "/collections/{}/invitations": "administrator",
    "/collections/{}/until": "administrator",
    "/collections/{}/withdrawals": None,
    "/collections/{}/submissions": None,
    "/collections/{}/peer/proofs": "peer",
    "/collections/{}/peer/sum": "peer",
    "/collections/{}/peer/news": "peer",
    "/collections/{}/peer/signatures": "peer",
}


def test_the_table_has_every_path_that_takes_a_body() -> None:
    declared = {
        path.replace("{fingerprint}", "{}")
        for path, methods in Service(Store()).document["paths"].items()
        if "requestBody" in methods.get("post", {})
    }
    assert set(TAKING) == declared


class Flood:
    """Requests straight to a service, whose bodies never end."""

    def __init__(self, service: Service, path: str, headers: dict[str, str]) -> None:
        self.service, self.path = service, path
        self.headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.refusals: list[int] = []

    async def half(self, address: str, size: int) -> None:
        """So many bytes of a body that was to be longer by seven, and then silence."""
        sent: list[bytes] = [bytes(size)]

        async def receive() -> dict:
            if not sent:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": sent.pop(), "more_body": True}

        async def send(message: dict) -> None:
            if message["type"] == "http.response.start":
                self.refusals.append(message["status"])

        scope = {
            "type": "http",
            "method": "POST",
            "path": self.path,
            "query_string": b"digest=" + b"0" * 64 + b"&count=1",
            "headers": [*self.headers, (b"content-length", b"%d" % (size + 7))],
            "client": (address, 1),
        }
        await self.service(scope, receive, send)


@pytest.mark.parametrize("path", TAKING)
def test_half_sent_bodies_are_refused_beyond_one_allowance(path, monkeypatch) -> None:
    """Seen before: 1,500 half-sent withdrawals took 1.7 GB, as only submissions were counted."""
    monkeypatch.setattr(module, "SECONDS_FOR_A_SMALL_ONE", 600.0)
    agreement = new_agreement(proofs=True)
    secret = "a-secret-of-both-databases-for-tests"
    with Store() as store:
        store.appoint(hashed(TOKEN))
        store.open(agreement, role="second")
        limits = Limits(requests_per_second=0, bytes_in_flight=10_000)
        service = Service(store, limits, peer_token=secret)
        about = agreement.fingerprint
        token = {"administrator": TOKEN, "peer": tokens.for_agreement(secret, about)}
        others = {"submissions": BINARY, "proofs": OCTETS, "sum": OCTETS, "surveys": OCTETS}
        headers = {"content-type": others.get(path.rpartition("/")[2], JSON)}
        if TAKING[path]:
            headers["authorization"] = f"Bearer {token[TAKING[path]]}"
        flood = Flood(service, path.format(about), headers)

        async def run() -> None:
            many = [
                asyncio.create_task(flood.half(f"192.0.2.{number}", 1000)) for number in range(15)
            ]
            while len(flood.refusals) < 8:  # all that do not fit three quarters of it
                await asyncio.sleep(0.001)
            assert service._allowance.taken == 7000
            for one in many:
                one.cancel()
            await asyncio.gather(*many, return_exceptions=True)

        asyncio.run(run())
        assert set(flood.refusals) == {503}
        assert service._allowance == Allowance(total=10_000), "all of it was given back"


def test_a_batch_that_is_known_is_not_written_again(http, store, agreement, monkeypatch) -> None:
    """And a batch in which something is new still is."""
    path = opened(http, agreement)
    many = perturb_table(agreement, {name: np.resize(of, 400) for name, of in PEOPLE.items()})
    assert send(http, path, many.to_bytes()).json() == {"accepted": 400, "new": 400}
    received = []
    receive = store.receive
    monkeypatch.setattr(store, "receive", lambda *a: (received.append(1), receive(*a))[1])
    assert send(http, path, many.to_bytes()).json() == {"accepted": 400, "new": 0}
    assert not received
    more = Submissions.gather([*many, perturb(agreement, {"age": 30, "income": 20})])
    assert send(http, path, more.to_bytes()).json() == {"accepted": 401, "new": 1}
    assert received == [1]


def test_rows_are_limited_and_not_requests(store, agreement) -> None:
    with TestClient(Service(store, Limits(requests_per_second=0.001, burst=50))) as client:
        path = opened(client, agreement)
        many = perturb_table(agreement, {name: np.resize(of, 2000) for name, of in PEOPLE.items()})
        assert send(client, path, many.to_bytes()).status_code == 200
        refused(send(client, path, many.to_bytes()), 429, "too-many-requests")
        one = perturb(agreement, {"age": 30, "income": 20})
        assert send(client, path, one.to_bytes()).status_code == 200


def test_a_body_of_unknown_length_is_paid_as_the_longest_before_it_is_read(
    store, agreement
) -> None:
    """Or whoever has no requests left for it could send all of it, again and again."""
    came = []

    def parts() -> Iterator[bytes]:
        for _ in range(4):
            came.append(1)
            yield bytes(agreement.layout.size)

    with TestClient(Service(store)) as administrator:
        path = opened(administrator, agreement)
    with TestClient(Service(store, Limits(requests_per_second=0.001, burst=50))) as client:
        small = perturb(agreement, {"age": 30, "income": 20}).to_bytes()
        assert send(client, path, iter([small[:50], small[50:]])).status_code == 200
        refused(send(client, path, parts()), 429, "too-many-requests")


# ---- work that takes long


def test_whoever_gives_up_is_not_answered() -> None:
    async def gives_up() -> None:
        gate = threading.Event()
        waiting = asyncio.ensure_future(run_in_daemon_thread(lambda: gate.wait(30)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()
        await asyncio.sleep(0.01)

    asyncio.run(gives_up())


def test_a_process_ends_though_the_work_does_not() -> None:
    script = """
import asyncio, threading
from blurfit_server.service.limits import run_in_daemon_thread

async def main():
    asyncio.ensure_future(run_in_daemon_thread(threading.Event().wait))
    await asyncio.sleep(0.1)

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=600).returncode == 0
