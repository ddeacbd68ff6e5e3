"""What nobody asked for: at the start, after another process, or again after it failed."""

import asyncio
import logging
import time
from contextlib import contextmanager

import httpx2 as httpx
from starlette.testclient import TestClient

from blurfit.contributor.blur import perturb_table
from blurfit.errors import StorageError
from blurfit.messages.signing import Signer, new_key
from blurfit.model.release import examine
from blurfit_server.service import peers as module
from blurfit_server.service.answers import Signatory
from blurfit_server.service.app import Limits, Service
from blurfit_server.service.peers import Jobs
from blurfit_server.store.database import next_tasks
from blurfit_server.store.store import Store
from server_support import sharing
from server_support.closings import let_pauses_pass
from server_support.joint_plans import both, joint_plan
from server_support.requests import send
from support.plans import fill, people, plan, rows
from support.sharing import TWO, new_agreement

PLAN = plan("label", waves=2, quorum=60, admission="anyone")
NAME, FIRST = PLAN.fingerprint, PLAN.quorums[0]
NO_LIMITS = Limits(requests_per_second=0)
PEER = "the-token-that-both-databases-share"
PRIVATE = new_key(), new_key()
KEYS = tuple(Signer(one).key for one in PRIVATE)


def until(store, reached, name: str = NAME) -> None:
    """Until a course is where it should be."""
    deadline = time.monotonic() + 300
    while not reached(store.status(name)):
        assert time.monotonic() < deadline, store.status(name)
        time.sleep(0.01)


def second_is_open(status) -> bool:
    return status.waves[1].state == "collecting"


def test_a_wave_that_was_full_when_the_service_was_killed(store) -> None:
    """Its arrivals are on disk and the step was not taken: it is taken at the start."""
    store.open(PLAN)
    fill(store, PLAN.first(), 0, FIRST)
    with TestClient(Service(store)):
        until(store, second_is_open)


def test_what_another_process_stored_is_seen_by_looking(store) -> None:
    store.open(PLAN)
    with TestClient(Service(store, look_every=0.02)):
        fill(store, PLAN.first(), 0, FIRST)  # past this service
        until(store, second_is_open)


def test_arrivals_are_acknowledged_although_the_step_fails(store, monkeypatch) -> None:
    store.open(PLAN)
    first, real, failing = PLAN.first(), store.advance, iter([True])

    def fail_once(fingerprint, peer=None):
        if next(failing, False):
            raise StorageError("The store cannot be used now.")
        real(fingerprint, peer)

    monkeypatch.setattr(store, "advance", fail_once)
    with TestClient(Service(store, NO_LIMITS, look_every=0.02)) as http:
        body = perturb_table(first, rows(people(60), 0, FIRST)).to_bytes()
        answer = send(http, f"/collections/{first.fingerprint}", body)
        assert answer.json() == {"accepted": FIRST, "new": FIRST}
        until(store, second_is_open)
        again = send(http, f"/collections/{first.fingerprint}", body)
        assert again.json() == {"accepted": FIRST, "new": 0}


# ---- with the other database


def _nobody(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("nobody answers", request=request)


AWAY = {"transport": httpx.MockTransport(_nobody), "patience": 0.0}


@contextmanager
def reachable(second: Store):
    """Options under which the second database's service answers."""
    service = Service(second, peer_token=PEER, signing_key=PRIVATE[1])
    with TestClient(service, base_url=TWO[1][1]) as http:
        yield {"transport": http._transport, "patience": 0.0}


def driven(jobs: Jobs) -> list[str]:
    """Do what is due, each once; what that was."""
    tasks = jobs.store.due()
    for task in tasks:
        asyncio.run(jobs._do(task))
    return [task.what for task in tasks]


def test_what_fails_is_tried_again_later_and_less_often(caplog, monkeypatch) -> None:
    quorum = joint_plan().quorums[0]
    with both(joint_plan()) as two:
        jobs = Jobs(two.first, Signatory(two.first), PEER, AWAY)
        two.send(quorum - 1)
        assert driven(jobs) == []
        two.send(1)
        pauses = []
        put_off = two.first.put_off
        monkeypatch.setattr(
            two.first, "put_off", lambda task, s, e: (pauses.append(s), put_off(task, s, e))
        )
        for _ in range(8):
            assert driven(jobs) == ["advance"]  # nobody is there
            assert driven(jobs) == [], "not at once"
            let_pauses_pass(two.first)
        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
        assert "tried again in 60 s" in caplog.text
        with reachable(two.second) as options, caplog.at_level(logging.INFO, module.__name__):
            jobs.options = options
            while driven(jobs):
                pass
        assert "is done" in caplog.text
        two.check()
        assert two.states() == [["released", "collecting"]] * 2


def test_signatures_are_asked_for_until_both_have_signed() -> None:
    """The second was away for them alone, and the first was killed before it asked again."""
    agreement = new_agreement(signing_keys=KEYS)
    name = agreement.fingerprint
    with Store() as first, Store() as second:
        peer = sharing.opened(agreement, first, second)
        sharing.send(agreement, first, second, 1, 2, 3)
        second.close_collection(name)
        first.publish_text(name, peer)
        jobs = Jobs(first, Signatory(first, Signer(PRIVATE[0])), PEER, AWAY)
        assert driven(jobs) == ["sign"]
        assert driven(jobs) == []
        let_pauses_pass(first)
        assert not examine(shown(first, name)).verified
        with reachable(second) as options:
            service = Service(
                first,
                look_every=0.01,
                peer_token=PEER,
                signing_key=PRIVATE[0],
                peer_options=options,
            )
            deadline = time.monotonic() + 300
            with TestClient(service) as http:
                while first.read(next_tasks):
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                assert examine(http.get(f"/collections/{name}/model").text).verified
        texts = {shown(store, name) for store in (first, second)}  # what is kept, and no more
        assert len(texts) == 1
        assert examine(texts.pop()).verified


def shown(store: Store, name: str) -> str:
    """The model with the signatures that are kept."""
    return Signatory(store).signed(name, "model", store.model(name))[0]
