"""What a plan's second database answers, and to whom."""

import json
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from blurfit.protocol import tokens
from blurfit.service.app import Limits, Service
from blurfit.service.leading import RemoteFollower
from blurfit.store import plans
from support.joint_plans import Both, both, joint_plan
from support.requests import refused
from support.sharing import TWO

PEER = "the-token-that-both-databases-share"
PLAN = joint_plan()
FIRST, SECOND = PLAN.quorums
WAVE, NAME = f"/collections/{PLAN.first().fingerprint}/shares", f"/plans/{PLAN.fingerprint}/shares"


@pytest.fixture
def two() -> Iterator[Both]:
    with both(PLAN) as opened:
        yield opened


@pytest.fixture
def http(two) -> Iterator[TestClient]:
    service = Service(two.second, Limits(requests_per_second=0), peer_token=PEER)
    with TestClient(service, base_url=TWO[1][1]) as client:
        yield client


def by_the_first(fingerprint: str) -> dict[str, str]:
    token = tokens.for_agreement(PEER, fingerprint)
    return {"authorization": f"Bearer {token}", "content-type": "application/json"}


def test_a_whole_plan_over_the_wire(two, http) -> None:
    with RemoteFollower(PLAN, PEER, transport=http._transport, patience=0.0) as follower:
        two.first.write(plans.hold, two.name)
        two.lead(follower)
        assert two.status(1).state == "held"
        two.first.write(plans.resume, two.name)
        for quorum in PLAN.quorums:
            two.send(quorum)
            two.lead(follower)
            two.check()
    assert two.second.read(plans.model_text, two.name) == two.first.read(plans.model_text, two.name)


def test_only_the_other_database_may_ask(two, http) -> None:
    two.send(FIRST)
    for path in (f"{WAVE}/close", f"{WAVE}/release", f"{NAME}/state"):
        for headers in ({}, by_the_first("ab" * 32), {"authorization": f"Bearer {PEER}"}):
            refused(http.post(path, headers=headers), 401, "unauthorised")
    assert two.states() == [["collecting", "planned"]] * 2


def test_a_wave_below_its_quorum_is_not_closed(two, http) -> None:
    two.send(FIRST - 1)
    headers = by_the_first(PLAN.first().fingerprint)
    refused(http.post(f"{WAVE}/close", headers=headers), 409, "below-quorum")
    two.send(1)
    assert http.post(f"{WAVE}/close", headers=headers).json()["state"] == "closed"
    assert http.post(f"{WAVE}/close", headers=headers).json()["state"] == "closed"
    refused(http.get(f"/plans/{PLAN.fingerprint}/agreement"), 503, "between-waves")


def test_what_cannot_be_read_is_refused(two, http) -> None:
    wave, plan = by_the_first(PLAN.first().fingerprint), by_the_first(PLAN.fingerprint)
    for path, headers in ((f"{WAVE}/release", wave), (f"{NAME}/state", plan)):
        for body in (b"", b"[]", b'{"state": "gone"}', b'{"moments": "x"}'):
            refused(http.post(path, content=body, headers=headers), 400, "invalid")
    body = json.dumps({"moments": "{}", "following": None})
    refused(http.post(f"{WAVE}/release", content=body, headers=wave), 400, "invalid")
    twice = b'{"state": "held", "state": "collecting"}'
    refused(http.post(f"{NAME}/state", content=twice, headers=plan), 400, "invalid", "twice")
    told = json.dumps({"state": "ended", "reason": "x" * 3000})
    refused(http.post(f"{NAME}/state", content=told, headers=plan), 400, "invalid")
    assert two.status(1).state == "collecting"


def test_ordinary_publication_of_a_wave_is_refused(two, http) -> None:
    headers = by_the_first(PLAN.first().fingerprint)
    body = json.dumps({"model": None, "moments": "{}"})
    answer = http.post(f"{WAVE}/result", content=body, headers=headers)
    refused(answer, 409, "infeasible")
