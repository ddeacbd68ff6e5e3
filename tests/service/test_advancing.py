"""Steps that nobody asked for: at the start, after another process, or one that failed."""

import time

from starlette.testclient import TestClient

from blurfit.contributor.blur import perturb_table
from blurfit.errors import StorageError
from blurfit.service import advancing as module
from blurfit.service.app import Limits, Service
from blurfit.store import plans
from blurfit.store.advance import advance
from support.plans import fill, people, plan, rows
from support.requests import send
from support.stores import whatever_it_keeps

PLAN = plan("label", waves=2, quorum=60, admission="anyone")
NAME = PLAN.fingerprint
FIRST = PLAN.quorums[0]
NO_LIMITS = Limits(requests_per_second=0)


def until(store, reached) -> None:
    """Until the plan is where it should be."""
    deadline = time.monotonic() + 300
    while not reached(store.read(plans.status, NAME)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_wave_that_was_full_when_the_service_was_killed(store) -> None:
    """Its arrivals are on disk and the step was not taken: it is taken at the start."""
    fill(store, store.write(plans.begin, PLAN), 0, FIRST)
    with TestClient(Service(store)):
        until(store, lambda status: status.waves[1].state == "collecting")


def test_a_plan_that_had_ended_without_its_model_gets_it_at_the_start(store) -> None:
    fill(store, store.write(plans.begin, PLAN), 0, FIRST)
    store.write(advance, NAME, end=True)
    with TestClient(Service(store)):
        until(store, lambda status: status.model is not None)


def test_what_another_process_stored_is_seen_by_looking(store) -> None:
    first = store.write(plans.begin, PLAN)
    with TestClient(Service(store, look_every=0.02)):
        fill(store, first, 0, FIRST)  # past this service
        until(store, lambda status: status.waves[1].state == "collecting")


def test_arrivals_are_acknowledged_although_the_step_fails(store, monkeypatch) -> None:
    first = store.write(plans.begin, PLAN)
    failing = iter([True])

    def fail_once(connection, fingerprint):
        if next(failing, False):
            raise StorageError("The store cannot be used now.")
        return advance(connection, fingerprint)

    monkeypatch.setattr(module, "advance", fail_once)
    with TestClient(Service(store, NO_LIMITS, look_every=0.02)) as http:
        body = perturb_table(first, rows(people(60), 0, FIRST)).to_bytes()
        answer = send(http, f"/collections/{first.fingerprint}", body)
        assert answer.json() == {"accepted": FIRST, "new": FIRST}
        until(store, lambda status: status.waves[1].state == "collecting")
        again = send(http, f"/collections/{first.fingerprint}", body)
        assert again.json() == {"accepted": FIRST, "new": 0}


@whatever_it_keeps
def test_counting_is_rare_while_much_is_missing(store, monkeypatch) -> None:
    first = store.write(plans.begin, PLAN)
    counted = []
    real = module.missing
    monkeypatch.setattr(module, "missing", lambda *given: (counted.append(1), real(*given))[1])
    with TestClient(Service(store, NO_LIMITS)) as http:
        service = http.app._advancing
        service.stored(store.collection(first.fingerprint), 1)
        assert len(counted) == 1
        for _ in range(FIRST // 8 - 1):
            service.stored(store.collection(first.fingerprint), 1)
        assert len(counted) == 1
        service.stored(store.collection(first.fingerprint), 1)
        assert len(counted) == 2


@whatever_it_keeps
def test_a_wave_without_its_plan_is_left_alone(store, caplog) -> None:
    store.open(PLAN.first())
    with TestClient(Service(store, NO_LIMITS)) as http:
        for _ in range(2):
            http.app._advancing.stored(store.collection(PLAN.first().fingerprint), 60)
    assert not caplog.records
