"""Two real services, over HTTP and SQLite, take a plan from wave to wave by themselves."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

from blurfit.agreement.plan import Plan
from blurfit.contributor.client import Client
from blurfit.errors import ClosedError, InfeasibleError, ServiceError
from blurfit.messages.signing import Signer, new_key
from blurfit.model.model import PublishedModel
from blurfit.model.release import examine
from blurfit.model.statement import as_markdown
from blurfit.protocol import tokens
from blurfit.protocol.tokens import joined
from blurfit.service.app import Limits, Service
from blurfit.service.leading import Leading
from blurfit.service.remote import RemoteDatabase
from blurfit.service.server import in_a_thread
from blurfit.service.signatory import Signatory
from blurfit.store import plans
from blurfit.store.store import Store
from support.joint_plans import both, joint_plan
from support.lots import toss
from support.plans import people, rows, written
from support.sharing import TWO

TOKEN, PEER = "the-token-of-an-administrator-here", "the-token-that-both-databases-share"
PRIVATE = new_key(), new_key()
KEYS = tuple(Signer(one).key for one in PRIVATE)
COLUMNS = ("age", "education", "region", "married", "income")


@dataclass(frozen=True)
class Running:
    """A service, and its administrator's connection."""

    url: str
    store: Store
    database: RemoteDatabase


@pytest.fixture(scope="module")
def services(tmp_path_factory) -> Iterator[list[Running]]:
    with ExitStack() as stack:
        found = []
        for name, key in zip(("first", "second"), PRIVATE, strict=True):
            place = tmp_path_factory.mktemp("joint") / f"{name}.db"
            store = stack.enter_context(Store(place))
            store.appoint(tokens.hashed(TOKEN))
            secrets = {"peer_token": PEER, "signing_key": key}
            app = Service(store, Limits(requests_per_second=0), look_every=0.05, **secrets)
            url = stack.enter_context(in_a_thread(app))
            database = stack.enter_context(RemoteDatabase(url, token=TOKEN))
            found.append(Running(url, store, database))
        yield found


@pytest.fixture(autouse=True)
def a_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BLURFIT_HOME", str(tmp_path / "home"))


def opened(services: list[Running], **changes: Any) -> Plan:
    """A plan between the two, open at both."""
    names = [(name, one.url) for name, one in zip(("Office", "Uni"), services, strict=True)]
    plan = joint_plan(databases=tuple(names), **changes)
    for one, role in zip(services, ("first", "second"), strict=True):
        one.database.open(plan, role=role)
    return plan


def until(done: Callable[[], Any], seconds: float = 300.0) -> None:
    """Wait for what the services do by themselves."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def states(services: list[Running], plan: Plan) -> list[str]:
    return [one.database.status(plan)["state"] for one in services]


def waves(services: list[Running], plan: Plan) -> list[list[str]]:
    return [[wave["state"] for wave in one.database.status(plan)["waves"]] for one in services]


def test_from_the_first_person_to_one_model_at_both(services, tmp_path) -> None:
    plan = opened(services, task="label", admission="invited", signing_keys=KEYS)
    made = [one.database.invite(plan, 60) for one in services]
    invitations = list(zip(*joined(made, plan.lot), strict=True))
    table = written(tmp_path / "people.csv", rows(people(60, 4), 0, 60), COLUMNS)
    with Client.of(plan) as client:
        client.check(plan)
        # Part for part: it waits while the two publish a wave, and goes on with the next one.
        assert client.contribute_table(plan, table, invitations=invitations) == 60
    until(lambda: states(services, plan) == ["ended", "ended"])
    assert waves(services, plan) == [["released", "released"]] * 2
    until(lambda: services[1].database.status(plan)["model"] is not None)
    until(lambda: all(len(one.database.model(plan).signatures) == 2 for one in services))
    here, there = (one.database.model(plan).to_json() for one in services)
    assert here == there
    assert examine(here).verified, "both have signed"
    releases = [one.store.read(plans.release_texts, plan.fingerprint) for one in services]
    assert releases[0] == releases[1]
    model = PublishedModel.from_json(here)
    assert [one.count for one in model.waves] == list(plan.quorums)
    told = as_markdown(model)
    assert "(at least\n18 in wave 1 and 42 in wave 2 were required)" in told
    assert "if at most 11 % of any group collude" in told
    assert "drawn with the invitation" in told
    assert "Either of the two databases alone" in told
    assert "at least 16 in wave 1 and 37 in wave 2 of those who are counted must be honest" in told
    with Client.of(plan) as client, pytest.raises(ClosedError, match="come to its end"):
        client.current(plan)


def test_held_resumed_and_ended_early_at_the_leading_side(services, tmp_path, monkeypatch) -> None:
    plan = opened(services)
    assert services[0].database.hold(plan)["state"] == "held"
    until(lambda: states(services, plan) == ["held", "held"])
    table = written(tmp_path / "people.csv", rows(people(25, 4), 0, 25), COLUMNS)
    toss(monkeypatch, 1)
    with Client.of(plan) as client:
        assert client.contribute_table(plan, table) == 25  # it goes on collecting
    assert waves(services, plan) == [["collecting", "planned"]] * 2
    services[0].database.resume(plan)
    until(lambda: waves(services, plan) == [["released", "collecting"]] * 2)
    until(lambda: states(services, plan) == ["collecting", "collecting"])
    model = services[0].database.publish(plan)
    assert model.count == 25
    until(lambda: services[1].database.status(plan)["model"] is not None)
    assert services[1].database.model(plan).to_json() == model.to_json()
    assert services[1].database.publish(plan).to_json() == model.to_json()
    assert waves(services, plan) == [["released", "dropped"]] * 2


def test_what_fails_is_tried_again_later_and_sooner_when_more_have_come() -> None:
    now = [0.0]
    plan = joint_plan()
    first, _ = plan.quorums
    with both(plan) as two:
        options = {"patience": 0.0}
        leading = Leading(two.first, PEER, options, clock=lambda: now[0])
        two.send(first - 1)
        two.send(1, sides=(0,))
        assert leading.due() == [two.name]
        leading.forward(two.name)  # nobody is there, at the address that the plan names
        assert leading.due() == []
        assert leading.seconds_to_wait(5.0) == 1.0
        now[0] += 1.0
        assert leading.due() == [two.name]
        leading._follower = lambda _name: _Here(two)
        leading.forward(two.name)  # one is missing there
        assert leading.due() == []
        two.send(1)
        assert leading.due() == [two.name], "somebody has come since"
        leading.forward(two.name)
        two.check()
        assert leading.due() == []
        assert leading.seconds_to_wait(5.0) == 5.0


class _Here:
    """The second database without a wire."""

    def __init__(self, two) -> None:
        self.two = two

    def __enter__(self):
        return self.two.follower

    def __exit__(self, *_error: object) -> None:
        """Nothing to hang up."""


def test_both_sign_what_a_plan_publishes() -> None:
    private = new_key(), new_key()
    plan = joint_plan(signing_keys=tuple(Signer(one).key for one in private))
    with both(plan) as two:
        far = Service(two.second, peer_token=PEER, signing_key=private[1])
        with TestClient(far, base_url=TWO[1][1]) as second:
            options = {"transport": second._transport, "patience": 0.0}
            signing = Signatory(two.first, Signer(private[0]))
            leading = Leading(two.first, PEER, options, signing=signing)
            for quorum in plan.quorums:
                two.send(quorum)
                leading.forward(two.name)
        two.check()
        texts = []
        for store in two.stores:
            shown = Signatory(store)  # what is kept, and no more
            model = store.read(plans.model_text, two.name)
            wave = store.read(plans.shown_at, two.name)
            texts.append(shown.signed(wave, "model", model).text)
            assert examine(texts[-1]).verified
            for one in store.read(plans.releases, two.name):
                text = store.moments_text(one.fingerprint)
                assert examine(shown.signed(one.fingerprint, "moments", text).text).verified
        assert texts[0] == texts[1]


def test_nobody_leads_without_a_secret() -> None:
    with both(joint_plan()) as two:
        two.send(two.plan.quorums[0])
        leading = Leading(two.first, None)
        assert leading.due() == []
        with pytest.raises(InfeasibleError, match="--peer-token-file"):
            leading.end(two.name)
        away = Leading(two.first, PEER, {"patience": 0.0})
        with pytest.raises(ServiceError, match="Nothing has ended"):
            away.end(two.name)
