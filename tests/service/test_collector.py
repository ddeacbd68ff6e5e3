"""Groups: who waits with whom, and that one bad arrival does not spoil the others."""

import asyncio

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit import InvalidValueError, StorageError
from blurfit.contributor.blur import perturb_table
from blurfit.service import intake as module
from blurfit.service.intake import Collector
from blurfit.store import database
from blurfit.store.arrivals import Arrival
from blurfit.store.store import Store
from support.stores import propose


def rows(agreement, count: int) -> list[bytes]:
    people = {name: np.linspace(0, 100, count) for name in ("age", "income")}
    return [one.to_bytes() for one in perturb_table(agreement, people)]


def collect(store, agreement, bodies, linger=0.01) -> list:
    async def run() -> list:
        collector = Collector(store, linger)
        collection = store.collection(agreement.fingerprint)
        outcomes = await asyncio.gather(
            *(collector.submit(collection, Arrival(body)) for body in bodies),
            return_exceptions=True,
        )
        await collector.close()
        return outcomes

    return asyncio.run(run())


@pytest.fixture
def store(agreement):
    with Store() as kept:
        kept.open(agreement)
        yield kept


def test_a_bad_one_is_refused_alone(store, agreement) -> None:
    bodies = rows(agreement, 5)
    bodies[2] = bodies[2][:-8] + np.array([np.nan]).tobytes()
    outcomes = collect(store, agreement, bodies)
    assert isinstance(outcomes[2], InvalidValueError)
    assert outcomes[:2] + outcomes[3:] == [1] * 4
    assert store.count(agreement) == 4


def test_what_nobody_thought_of_hits_its_sender_alone(store, agreement, monkeypatch) -> None:
    bodies = rows(agreement, 5)
    receive, poison = store.receive, bodies[3][8:24]

    def fragile(fingerprint, arrivals):
        if any(bytes(arrival.rows).count(poison) for arrival in arrivals):
            raise ZeroDivisionError
        return receive(fingerprint, arrivals)

    monkeypatch.setattr(store, "receive", fragile)
    outcomes = collect(store, agreement, bodies)
    assert isinstance(outcomes[3], StorageError)
    assert outcomes[:3] + outcomes[4:] == [1] * 4


def test_a_storage_that_fails_is_told_to_everyone(store, agreement, monkeypatch) -> None:
    def full(fingerprint, arrivals):
        raise StorageError("full")

    monkeypatch.setattr(store, "receive", full)
    assert all(
        isinstance(one, StorageError) for one in collect(store, agreement, rows(agreement, 4))
    )


def test_groups_are_bounded_and_so_is_what_waits(store, agreement, monkeypatch) -> None:
    groups = []
    receive = store.receive
    monkeypatch.setattr(
        store,
        "receive",
        lambda f, arrivals: (groups.append(len(arrivals)), receive(f, arrivals))[1],
    )
    size = agreement.layout.size
    monkeypatch.setattr(module, "GROUP_BYTES", 3 * size)
    assert collect(store, agreement, rows(agreement, 10)) == [1] * 10
    assert groups == [3, 3, 3, 1]
    monkeypatch.setattr(module, "WAITING_BYTES", 2 * size)
    outcomes = collect(store, agreement, rows(agreement, 10))
    assert outcomes[:3] == [1] * 3
    assert all(isinstance(one, StorageError) for one in outcomes[3:])


def test_closing_stores_what_waits_and_takes_no_more(store, agreement) -> None:
    async def run() -> None:
        collector = Collector(store, 0.05)
        collection = store.collection(agreement.fingerprint)
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


def test_whoever_goes_away_does_not_stop_the_others(store, agreement) -> None:
    async def run() -> None:
        collector = Collector(store, 0.02)
        collection = store.collection(agreement.fingerprint)
        bodies = rows(agreement, 2)
        gone, stays = (
            asyncio.create_task(collector.submit(collection, Arrival(b))) for b in bodies
        )
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == 1
        await collector.close()
        assert store.count(agreement) == 2  # it had been sent

    asyncio.run(run())


def test_the_store_is_tidied_now_and_then_and_a_failure_is_no_matter(
    store, agreement, monkeypatch, caplog
) -> None:
    tidied = []

    def tidy() -> None:
        tidied.append(True)
        raise StorageError("busy")

    monkeypatch.setattr(store, "tidy", tidy)
    monkeypatch.setattr(module, "TIDY_BYTES", 1)
    assert collect(store, agreement, rows(agreement, 3)) == [1] * 3
    assert tidied == [True]
    assert "could not be tidied" in caplog.text


def test_the_store_is_tidied_soon_after_little_was_written(store, agreement, monkeypatch) -> None:
    """By time as well as by size: a log that somebody removes holds little."""
    monkeypatch.setattr(module, "TIDY_SECONDS", 0.01)

    async def run() -> None:
        tidied = asyncio.Event()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(store, "tidy", lambda: loop.call_soon_threadsafe(tidied.set))
        collector = Collector(store)
        collection = store.collection(agreement.fingerprint)
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
    with Store(places.fresh()) as store:
        store.open(locked)
        store.open(free)

        async def run(holder: sa.Connection) -> None:
            collector = Collector(store)

            def sent(agreement) -> asyncio.Task[int]:
                (body,) = rows(agreement, 1)
                collection = store.collection(agreement.fingerprint)
                return asyncio.create_task(collector.submit(collection, Arrival(body)))

            waits = sent(locked)
            await asyncio.sleep(0.01)  # first in line
            assert await sent(free) == 1
            assert not waits.done()
            holder.rollback()
            assert await waits == 1
            await collector.close()

        held = sa.text("SELECT 1 FROM courses WHERE fingerprint = :name FOR UPDATE")
        with store._engine.connect() as holder:
            holder.execute(held, {"name": locked.fingerprint})
            asyncio.run(run(holder))


def test_collections_take_turns(store, agreement, monkeypatch) -> None:
    """However much waits for one of them, another one's arrival is in the second commit."""
    other = propose(epsilon=99, mechanism=agreement.mechanism)
    store.open(other)
    crowd = rows(agreement, 12)
    monkeypatch.setattr(module, "GROUP_BYTES", 3 * len(crowd[0]))
    order, receive = [], store.receive

    def noted(collection, arrivals):
        order.append((collection.fingerprint == other.fingerprint, len(arrivals)))
        return receive(collection, arrivals)

    monkeypatch.setattr(store, "receive", noted)

    async def run() -> list:
        collector = Collector(store, 0.01)
        here, there = (store.collection(one.fingerprint) for one in (agreement, other))
        waiting = [collector.submit(here, Arrival(body)) for body in crowd]
        waiting.append(collector.submit(there, Arrival(rows(other, 1)[0])))
        outcomes = await asyncio.gather(*waiting)
        await collector.close()
        return outcomes

    assert asyncio.run(run()) == [1] * 13
    assert order == [(False, 3), (True, 1), (False, 3), (False, 3), (False, 3)]
