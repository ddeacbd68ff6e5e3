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
