"""A bucket for each address."""

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


def test_memory_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(limits, "_MOST_ADDRESSES", 100)
    clock = Clock()
    limiter = Limiter(rate=1, burst=10, clock=clock)
    for number in range(1000):
        clock.now = number / 1000
        assert limiter.allows(str(number))
        assert len(limiter._buckets) <= 100
    clock.now = 100.0
    assert limiter.allows("late")
    assert len(limiter._buckets) == 1  # everyone else's is full again


def test_rows_cost_as_much_as_the_requests_they_stand_for() -> None:
    limiter = Limiter(rate=1, burst=100, clock=Clock())
    assert limiter.allows("a")
    assert limiter.allows_rows("a", 50)  # no more than the request
    assert limiter.allows_rows("a", 50 * 60)
    assert not limiter.allows_rows("a", 50 * 60)
    assert limiter.allows_rows("b", 10**9), "a full bucket is enough for whatever is allowed"
    assert not limiter.allows("b")


def test_networks_of_ipv6_count_as_one() -> None:
    limiter = Limiter(rate=1, burst=2, clock=Clock())
    assert [limiter.allows(f"2001:db8::{n}") for n in range(3)] == [True, True, False]
    assert limiter.allows("2001:db8:0:1::1")
    mapped = [limiter.allows(one) for one in ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1")]
    assert mapped == [True, True, False]


def test_new_addresses_are_no_dearer_when_there_are_many(monkeypatch) -> None:
    """However many there are, each one lets go of about one other: looked at, and not timed."""
    monkeypatch.setattr(limits, "_MOST_ADDRESSES", 1000)
    limiter = Limiter(rate=1, burst=10, clock=Clock())
    looks = 0

    class Watched(type(limiter._buckets)):
        def popitem(self, last=True):
            nonlocal looks
            looks += 1
            return super().popitem(last)

        def items(self):
            raise AssertionError("all of them are looked at")

    limiter._buckets = Watched()
    for number in range(5000):
        assert limiter.allows(str(number))
    assert looks <= 2 * 5000
    assert len(limiter._buckets) == 1000
