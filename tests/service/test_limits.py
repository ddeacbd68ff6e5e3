"""A bucket for each address."""

from starlette.testclient import TestClient

from blurfit.contributor.perturb import perturb_table
from blurfit.service import limits
from blurfit.service.app import Limits, Service
from blurfit.service.limits import Limiter
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


def test_a_crowd_at_one_collection_leaves_the_others_alone() -> None:
    """From many addresses, each within its own limit; what was refused may come again."""
    crowded, quiet = propose(), propose(epsilon=99)
    with Store() as store:
        for one in (crowded, quiet):
            store.open(one)
        service = Service(store, Limits(requests_per_second=0, submissions_per_second=1e-6))
        service._submissions.crowds.burst = 5
        with TestClient(service) as http:
            table = [one.to_bytes() for one in perturb_table(crowded, PEOPLE)][:8]
            here, there = (f"/collections/{one.fingerprint}" for one in (crowded, quiet))
            answers = [send(http, here, one) for one in table]
            assert [one.status_code for one in answers] == [200] * 5 + [429] * 3
            refused(answers[-1], 429, "crowded", "Send the same again")
            assert int(answers[-1].headers["retry-after"]) > 0
            few = {name: values[:4] for name, values in PEOPLE.items()}
            assert send(http, there, perturb_table(quiet, few).to_bytes()).json()["new"] == 4
            assert send(http, there, perturb_table(quiet, few).to_bytes()).status_code == 429
            assert http.get(here).status_code == 200  # whoever reads is not limited by it
        assert (store.count(crowded), store.count(quiet)) == (5, 4)
