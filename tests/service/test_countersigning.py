"""What two databases publish is signed by both in the end, whatever became of the first try."""

import time
from contextlib import contextmanager

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from blurfit.messages.signing import Signer, new_key
from blurfit.model.release import examine
from blurfit.service.app import Service
from blurfit.service.countersigning import FIRST_PAUSE, Countersigning
from blurfit.service.leading import Leading
from blurfit.service.peer import publish_remotely
from blurfit.service.signatory import Signatory
from blurfit.store import joint_publication, plans, signatures
from blurfit.store.store import Store
from support import sharing
from support.joint_plans import both, joint_plan
from support.sharing import TWO

PRIVATE = new_key(), new_key()
KEYS = tuple(Signer(one).key for one in PRIVATE)
PEER = "a-secret-of-both-databases-for-tests"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def reachable(second: Store):
    """Options under which the second database's service answers."""
    service = Service(second, peer_token=PEER, signing_key=PRIVATE[1])
    with TestClient(service, base_url=TWO[1][1]) as http:
        yield {"transport": http._transport, "patience": 0.0}


def _nobody(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("nobody answers", request=request)


AWAY = {"transport": httpx.MockTransport(_nobody), "patience": 0.0}


def published(first: Store, second: Store, **terms) -> str:
    """A collection that is at both, of which nobody has asked for signatures."""
    agreement = sharing.new_agreement(**terms)
    sharing.opened(agreement, first, second)
    sharing.send(agreement, first, second, 1, 2, 3)
    name = agreement.fingerprint
    second.write(joint_publication.consent, second.collection(name))
    with reachable(second) as options:
        publish_remotely(first, name, PEER, **options)
    return name


@pytest.fixture
def two():
    with Store() as first, Store() as second:
        yield first, second


def shown(store: Store, name: str) -> str:
    """The model with the signatures that are kept."""
    return Signatory(store).signed(name, "model", store.model(name)).text


def test_it_is_asked_for_until_both_have_signed(two) -> None:
    first, second = two
    name = published(first, second, signing_keys=KEYS)
    clock, signing = Clock(), Signatory(first, Signer(PRIVATE[0]))
    away = Countersigning(first, signing, PEER, AWAY, clock)
    assert away.due() == [name], "killed before anything was exchanged"
    away.ask(name)
    assert away.due() == [], "not at once"
    clock.now += FIRST_PAUSE
    assert away.due() == [name]
    away.ask(name)
    clock.now += FIRST_PAUSE
    assert away.due() == [], "and less often"
    assert not examine(shown(first, name)).verified
    again = Countersigning(first, signing, PEER, AWAY)
    assert again.due() == [name], "a service that starts anew finds it in its store"
    with reachable(second) as options:
        again.options = options
        again.ask(name)
    assert again.due() == []
    texts = {shown(store, name) for store in two}  # what is kept, and no more
    assert len(texts) == 1
    assert examine(texts.pop()).verified
    assert Countersigning(second, Signatory(second, Signer(PRIVATE[1])), PEER).due() == []


def test_where_nobody_signs_or_can_sign_nothing_is_asked(two) -> None:
    first, second = two
    name = published(first, second)
    signing = Signatory(first, Signer(PRIVATE[0]))
    assert first.read(signatures.missing) == [name]
    assert Countersigning(first, signing, PEER).due() == []
    signed = published(first, second, signing_keys=KEYS)
    assert Countersigning(first, signing, PEER).due() == [signed]
    assert Countersigning(first, Signatory(first), PEER).due() == []
    assert Countersigning(first, signing, None).due() == []


def test_the_waves_and_the_model_of_a_plan() -> None:
    """The second was away for signatures alone, when the plan came to its end."""
    with both(joint_plan(signing_keys=KEYS)) as two, reachable(two.second) as options:
        signing = Signatory(two.first, Signer(PRIVATE[0]))
        leading = Leading(two.first, PEER, options)  # which exchanges no signatures
        for quorum in two.plan.quorums:
            two.send(quorum)
            leading.forward(two.name)
        completing = Countersigning(two.first, signing, PEER, options)
        assert len(completing.due()) == len(two.plan)
        for one in completing.due():
            completing.ask(one)
        assert two.first.read(signatures.missing) == []
        for store in two.stores:
            shown = Signatory(store)
            wave = store.read(plans.shown_at, two.name)
            signed = shown.signed(wave, "model", store.read(plans.model_text, two.name))
            assert examine(signed.text).verified


def test_a_service_does_it_by_itself(two) -> None:
    first, second = two
    name = published(first, second, signing_keys=KEYS)
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
            while first.read(signatures.missing):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            shown = http.get(f"/collections/{name}/model").text
    assert examine(shown).verified
