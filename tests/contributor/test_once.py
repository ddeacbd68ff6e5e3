"""One person and a plan: her record is blurred once, whatever is lost and whichever wave opens."""

import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.account import Ledger
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.errors import (
    ClosedError,
    ConflictError,
    NotCertifiedError,
    NotInvitedError,
    OtherGroupError,
    ServiceError,
    WaveClosedError,
)
from blurfit.protocol.tokens import hashed
from blurfit.protocol.wire import plan_path
from blurfit.store import plans
from blurfit.store.advance import advance, learn_model
from support.lots import invitations, toss
from support.plans import people, plan, rows

PLAN = plan("number", waves=2, quorum=60, admission="anyone")
FIRST = PLAN.quorums[0]
RECORD = {"age": 40, "education": 12, "region": "west", "married": 1, "income": 30_000}


@pytest.fixture(autouse=True)
def a_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BLURFIT_HOME", str(tmp_path / "home"))
    toss(monkeypatch, 1)


@pytest.fixture
def client(url, network):
    with Client(url, transports=[network], patience=0.0, pause=lambda _seconds: None) as connected:
        yield connected


@pytest.fixture
def first(store) -> Agreement:
    return store.write(plans.begin, PLAN)


def others_fill(store, first: Agreement) -> Agreement:
    """Wave 1 gets the rest of its quorum, and is released."""
    missing = FIRST - store.count(first)
    store.add(first, perturb_table(first, rows(people(60), 0, missing)))
    return store.write(advance, PLAN.fingerprint)


def test_one_record_under_a_plan(client, store, first, network) -> None:
    receipt = client.contribute(PLAN.fingerprint, RECORD)
    assert receipt.fingerprint == first.fingerprint
    assert store.count(first) == 1
    assert [(one.once, one.rows) for one in Ledger().entries()] == [(PLAN.fingerprint, 1)]
    with pytest.raises(ConflictError, match="You took part in this plan before"):
        client.contribute(PLAN, RECORD | {"age": 41})
    assert len(network.sent) == 1


def test_whoever_took_part_is_not_asked_again_in_a_later_wave(
    client, store, first, network
) -> None:
    client.contribute(PLAN, RECORD)
    second = others_fill(store, first)
    for agreed in (PLAN, second):
        with pytest.raises(ConflictError, match="nobody takes part twice"):
            client.contribute(agreed, RECORD)
    assert len(network.sent) == 1
    receipt = client.contribute(PLAN, RECORD, person="Ada")  # somebody else at this machine
    assert receipt.fingerprint == second.fingerprint
    with pytest.raises(ConflictError, match="'Ada' took part"):
        client.contribute(PLAN, RECORD, person="Ada")


def test_a_coin_is_tossed_once_and_whoever_comes_early_comes_back(
    client, store, first, network, monkeypatch
) -> None:
    toss(monkeypatch, 2, 1)  # a second toss would please
    for _ in range(3):
        with pytest.raises(OtherGroupError, match="group 2, which comes later"):
            client.contribute(PLAN, RECORD)
    assert not network.sent
    second = others_fill(store, first)
    assert client.contribute(PLAN, RECORD).fingerprint == second.fingerprint


def test_whoever_comes_after_their_wave_is_told_that_it_is_complete(client, store, first) -> None:
    invited = plan("number", waves=2, quorum=60)
    store.write(plans.begin, invited)
    given = {group: invitations(invited, group, 1)[0] for group in (1, 2)}
    store.invite(invited.first().fingerprint, map(hashed, given.values()))
    with pytest.raises(NotInvitedError, match="Nothing was blurred"):
        client.contribute(invited, RECORD)
    with pytest.raises(OtherGroupError, match="comes later"):
        client.contribute(invited, RECORD, invitations=[given[2]], person="early")
    store.add(invited.first(), perturb_table(invited.first(), rows(people(60), 0, FIRST)))
    second = store.write(advance, invited.fingerprint)
    with pytest.raises(OtherGroupError, match="group 1, which is complete"):
        client.contribute(invited, RECORD, invitations=[given[1]], person="late")
    receipt = client.contribute(invited, RECORD, invitations=[given[2]], person="early")
    assert receipt.fingerprint == second.fingerprint


def test_an_answer_lost_and_the_wave_changed_in_between(client, store, first, network) -> None:
    """It has arrived, and nobody knows: the same bytes go to the same wave, and are acknowledged
    although that was released meanwhile."""
    network.fates = ["lose response"]
    with pytest.raises(ServiceError):
        client.contribute(PLAN, RECORD)
    second = others_fill(store, first)
    receipt = client.contribute(PLAN, RECORD)
    assert receipt.fingerprint == first.fingerprint
    assert network.sent[1] == network.sent[0]
    assert (store.count(first), store.count(second)) == (FIRST, 0)
    assert receipt.identifier in {
        one.identifier for part in store.submissions(first.fingerprint) for one in part
    }


def test_a_request_lost_and_the_wave_closed_in_between(client, store, first, network) -> None:
    network.fates = ["lose request"]
    with pytest.raises(ServiceError):
        client.contribute(PLAN, RECORD)
    second = others_fill(store, first)
    with pytest.raises(WaveClosedError, match="left out"):
        client.contribute(PLAN, RECORD)
    with pytest.raises(ConflictError):  # and never again, for whichever wave
        client.contribute(PLAN, RECORD)
    assert network.sent == [network.sent[0]] * 2
    assert (store.count(first), store.count(second)) == (FIRST, 0)


def test_a_wave_that_closes_while_a_record_is_on_its_way(client, store, first, network) -> None:
    def overtaken(request):
        others_fill(store, first)
        return network._wire.handle_request(request)

    network.fates = [overtaken]
    with pytest.raises(WaveClosedError, match="left out"):
        client.contribute(PLAN, RECORD)
    with pytest.raises(ConflictError):
        client.contribute(PLAN, RECORD)
    assert len(network.sent) == 1


def test_a_closed_wave_is_refused_before_anything_is_blurred(client, store, first, network) -> None:
    second = others_fill(store, first)
    with pytest.raises(WaveClosedError, match="nothing was blurred or sent"):
        client.contribute(first, RECORD)
    assert not network.sent
    assert client.contribute(PLAN, RECORD).fingerprint == second.fingerprint  # and so she may
    assert client.current(PLAN) == second


def test_a_plan_at_its_end_is_said_to_be(client, store, first, network) -> None:
    others_fill(store, first)
    store.write(advance, PLAN.fingerprint, end=True)
    learn_model(store, PLAN.fingerprint)
    with pytest.raises(ClosedError, match="come to its end"):
        client.contribute(PLAN, RECORD)
    assert not network.sent


def test_another_plan_than_one_was_invited_to_is_refused(client, store, first) -> None:
    assert client.plan(PLAN.fingerprint) == PLAN
    other = Plan.propose(PLAN.schema, waves=2, epsilon=2, delta=1e-6, quorum=60)
    store.write(lambda connection: _swap(connection, other))
    with pytest.raises(ValueError, match="Expected the plan"):
        client.plan(PLAN.fingerprint)


def _swap(connection, other: Plan) -> None:
    from blurfit.store import tables

    connection.execute(tables.plans.update().values(document=other.to_json()))


def test_a_wave_of_one_plan_is_not_taken_for_another_plan_s(client, store, first) -> None:
    """Although the same client has found it to follow, from its own plan."""
    assert client.current(PLAN) == first
    other = Plan.propose(PLAN.schema, waves=2, epsilon=2, delta=1e-6, quorum=60, admission="anyone")
    store.write(plans.begin, other)
    hostile = plan_path(other.fingerprint)

    class Swapping(type(client.exchanges[0])):
        def get(self, path: str) -> bytes:
            return super().get(path.replace(hostile, plan_path(PLAN.fingerprint)))

    client.exchanges[0].__class__ = Swapping
    with pytest.raises(NotCertifiedError):
        client.current(other)
