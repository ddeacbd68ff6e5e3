"""The administrator's and the user's side, against a real service over a real connection."""

from collections.abc import Iterator

import httpx2 as httpx
import numpy as np
import pytest

from blurfit import protocol as http
from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb_table
from blurfit.errors import BlurfitError, InfeasibleError, NotPublishedError, ServiceError
from blurfit.protocol import RemoteDatabase, hashed, new_token
from blurfit.schema.schema import Numeric, Schema
from blurfit_server.service.app import Service, in_a_thread
from blurfit_server.store.store import Store

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 20}
AGREEMENT = Agreement.propose(SCHEMA, **PROMISE, admission="anyone")
INVITED = Agreement.propose(SCHEMA, **PROMISE)
PEOPLE = {"age": np.linspace(0, 100, 40), "income": np.linspace(0, 100, 40)}
TOKEN = new_token()


class ForgetfulWire(httpx.BaseTransport):
    """Loses the answer to every request at first, after it has been delivered."""

    def __init__(self) -> None:
        self._wire, self._lost = httpx.HTTPTransport(verify=False), False
        self.requests: list[tuple[str, bytes]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.url.path, request.content))
        response = self._wire.handle_request(request)
        response.read()
        self._lost = not self._lost
        if self._lost:
            raise httpx.ReadError("the answer was lost")
        return response

    def close(self) -> None:
        self._wire.close()


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    with Store(tmp_path / "collection.db") as store:
        store.appoint(hashed(TOKEN))
        yield store


@pytest.fixture
def url(store) -> Iterator[str]:
    with in_a_thread(Service(store)) as url:
        yield url


@pytest.fixture(params=["good", "forgetful"])
def wire(request) -> httpx.BaseTransport:
    return ForgetfulWire() if request.param == "forgetful" else httpx.HTTPTransport(verify=False)


@pytest.fixture
def database(url, wire) -> Iterator[RemoteDatabase]:
    with RemoteDatabase(url, token=TOKEN, transport=wire, pause=lambda _: None) as database:
        yield database


def test_a_collection_from_its_opening_to_its_model(database, store) -> None:
    state = database.open(AGREEMENT)
    assert (state["state"], state["count"], state["quorum"]) == ("collecting", 0, 20)
    assert database.open(AGREEMENT) == state  # again, nothing changes
    store.add(AGREEMENT, perturb_table(AGREEMENT, PEOPLE))
    assert database.status(AGREEMENT)["count"] == 40
    for ask in (database.model, database.moments):
        with pytest.raises(NotPublishedError):
            ask(AGREEMENT)
    assert state["invited"] is False
    with pytest.raises(InfeasibleError, match="lets anyone take part"):
        database.invite(AGREEMENT, 1)
    assert database.close_collection(AGREEMENT)["state"] == "closed"
    model = database.publish(AGREEMENT)
    assert database.status(AGREEMENT)["state"] == "published"
    assert model.count == 40
    assert model.agreement == AGREEMENT
    assert database.publish(AGREEMENT).to_json() == model.to_json()
    assert database.model(AGREEMENT).to_json() == model.to_json()
    assert store.model(AGREEMENT.fingerprint) == model.to_json()
    assert database.moments(AGREEMENT).fit().to_json() == model.to_json()


def test_invitations_are_made_here_and_only_their_hashes_leave(
    database, store, wire, monkeypatch
) -> None:
    monkeypatch.setattr(http, "HASHES_AT_ONCE", 3)
    assert database.open(INVITED)["invited"] is True
    tokens = database.invite(INVITED, 8)
    assert len(set(tokens)) == 8
    assert store.unused_invitations(INVITED.fingerprint) == 8
    hashes = [hashed(token) for token in tokens]
    assert store.invite(INVITED.fingerprint, hashes) == 0  # these very ones are known
    if isinstance(wire, ForgetfulWire):
        sent = b"".join(content for _, content in wire.requests)
        assert not any(token.encode() in sent for token in tokens)
        assert all(one.hex().encode() in sent for one in hashes)


def test_something_else_at_the_address_is_an_error(url) -> None:
    page = httpx.MockTransport(lambda _: httpx.Response(200, text="<html>welcome</html>"))
    with RemoteDatabase(url, transport=page) as database:
        with pytest.raises(ServiceError, match="Is this a blurfit service"):
            database.status(AGREEMENT)
        with pytest.raises(BlurfitError, match="Expected"):
            database.model(AGREEMENT)
