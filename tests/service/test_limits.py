"""A bucket for each address."""

import multiprocessing
from contextlib import suppress

import numpy as np
import pytest
from starlette.testclient import TestClient

from blurfit.contributor.blur import perturb_table
from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import Submission
from blurfit.protocol.http import JSON
from blurfit.protocol.problems import RequestError
from blurfit.service import limits
from blurfit.service.app import Limits, Service
from blurfit.service.limits import (
    JSON_OF_A_REQUEST,
    ROWS_OF_A_REQUEST,
    Allowance,
    Limiter,
    cost_of,
    network_of,
    proxies_in,
)
from blurfit.store.store import Store
from support.requests import refused, send
from support.stores import PEOPLE, propose


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_the_rate() -> None:
    clock = Clock()
    limiter = Limiter(rate=2, burst=5, clock=clock)
    assert [limiter.allows("a") for _ in range(7)] == [True] * 5 + [False] * 2
    clock.now = 1.0
    assert [limiter.allows("a") for _ in range(3)] == [True, True, False]
    assert limiter.allows("b")
    clock.now = 1000.0
    assert [limiter.allows("a") for _ in range(7)] == [True] * 5 + [False] * 2


def test_one_may_look_whether_a_request_is_left_without_using_it() -> None:
    limiter = Limiter(rate=1, burst=2, clock=Clock())
    for _ in range(2):
        assert limiter.has_left("a")
        assert limiter.has_left("a")
        assert limiter.allows("a")
    assert not limiter.has_left("a")
    assert limiter.has_left("b")
    assert Limiter(rate=0, burst=0).has_left("a")


def test_no_limit() -> None:
    limiter = Limiter(rate=0, burst=0)
    assert all(limiter.allows("a") for _ in range(1000))


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


def test_bodies_cost_as_much_as_the_requests_they_stand_for() -> None:
    assert cost_of(2**15, 50, json=False) == 1, "no more than the request"
    assert cost_of(2**14, json=True) == 1
    assert cost_of(2**15, 50 * 60, json=False) == 60
    assert cost_of(20 * 2**15, 1, json=False) == 20
    assert cost_of(30 * 2**14, json=True) == 30


def test_what_a_request_costs_is_paid_once() -> None:
    allowance = Allowance(limiter=Limiter(rate=1, burst=100, clock=Clock()))
    with allowance.reserve("a", "") as held, allowance.reserve("b", "") as other:
        held.pay(1)
        for cost in (60, 60, 20):
            held.pay(cost)
        assert held.paid == 60
        with pytest.raises(RequestError, match="Wait"):
            held.pay(102)
        held.owe(102)  # what nobody could know before is charged to the next
        assert not allowance.limiter.allows("a")
        other.pay(10**9)  # a full bucket is enough for any
        assert not allowance.limiter.allows("b")


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


def test_small_rows_in_json_pass_at_any_rate_and_keep_it() -> None:
    """They cost more than their bytes: what that is shows once they are read, and is not refused.

    Each try pays for the request and the bytes; the rest is charged to whoever comes next.
    """
    clock = Clock()
    limiter = Limiter(rate=1, burst=10, clock=clock)
    rows, size = 2000, 2000 * 200  # 24.4 requests by their bytes, 40 by their number
    times = []
    for second in range(0, 1000, 5):
        clock.now = float(second)
        if not limiter.allows("a"):
            continue
        with Allowance(limiter=limiter).reserve("a", "") as held, suppress(RequestError):
            held.pay(cost_of(size, json=True))
            held.owe(cost_of(size, rows, json=True))
            times.append(second)
    assert times[0] == 0
    assert 1000 / 40 - 2 <= len(times) <= 1000 / 40 + 1


def test_names_and_fingerprint_alone_cost_half_of_a_row_in_json() -> None:
    """`Reserve.owe` rests on it."""
    least = Submission("0" * 32, "0" * 64, np.zeros(1)).to_json()
    assert 100 * len(least) > JSON_OF_A_REQUEST
    assert JSON_OF_A_REQUEST / len(least) <= 2 * ROWS_OF_A_REQUEST


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


def test_networks_of_ipv6_count_as_one() -> None:
    limiter = Limiter(rate=1, burst=2, clock=Clock())
    assert [limiter.allows(f"2001:db8::{n}") for n in range(3)] == [True, True, False]
    assert limiter.allows("2001:db8:0:1::1")
    mapped = [limiter.allows(one) for one in ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1")]
    assert mapped == [True, True, False]


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
