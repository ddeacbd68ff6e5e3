"""A bucket for each address."""

import multiprocessing

from blurfit.service import limits
from blurfit.service.limits import Limiter


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
    """Only those do who share both; found here by trying, which takes the key."""
    monkeypatch.setattr(limits, "_PLACES", 8)
    limiter = Limiter(rate=1, burst=2, clock=Clock())
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


def test_rows_cost_as_much_as_the_requests_they_stand_for() -> None:
    limiter = Limiter(rate=1, burst=100, clock=Clock())
    assert limiter.allows("a")
    assert limiter.allows_rows("a", 50)  # no more than the request
    assert limiter.allows_rows("a", 50 * 60)
    assert not limiter.allows_rows("a", 50 * 60)
    assert limiter.allows_rows("b", 10**9), "a full bucket is enough for whatever is allowed"
    assert not limiter.allows("b")


def test_json_costs_as_much_as_it_takes_to_read() -> None:
    limiter = Limiter(rate=1, burst=100, clock=Clock())
    assert limiter.allows("a")
    assert limiter.allows_json("a", 2**14)  # no more than the request
    assert limiter.allows_json("a", 60 * 2**14)
    assert not limiter.allows_json("a", 60 * 2**14)


def test_networks_of_ipv6_count_as_one() -> None:
    limiter = Limiter(rate=1, burst=2, clock=Clock())
    assert [limiter.allows(f"2001:db8::{n}") for n in range(3)] == [True, True, False]
    assert limiter.allows("2001:db8:0:1::1")
    mapped = [limiter.allows(one) for one in ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1")]
    assert mapped == [True, True, False]
