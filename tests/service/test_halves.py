"""Whether contributors look honest is told to the administrator, and to nobody else."""

import pytest
from starlette.testclient import TestClient

from blurfit import Agreement, perturb_table
from blurfit.protocol import tokens
from blurfit.schema.schema import Numeric, Schema
from blurfit.service.app import Service
from blurfit.store.store import RIGHTS, Store

SCHEMA = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 100))
AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=200, admission="anyone")
PATH = f"/collections/{AGREEMENT.fingerprint}/halves"


@pytest.fixture
def service():
    with Store() as store:
        given = {"administrator": tokens.new_token()}
        store.appoint(tokens.hashed(given["administrator"]))
        for right in RIGHTS:
            given[right] = tokens.new_token()
            store.grant(f"may {right}", right, tokens.hashed(given[right]))
        store.open(AGREEMENT)
        with TestClient(Service(store)) as client:
            yield (
                store,
                client,
                {name: {"authorization": f"Bearer {token}"} for name, token in given.items()},
            )


def send(store: Store, age: float, count: int = 100) -> None:
    store.add(AGREEMENT, perturb_table(AGREEMENT, {"age": [age] * count, "income": [age] * count}))


def test_only_the_administrators_own_token_is_good_for_it(service) -> None:
    store, client, given = service
    send(store, 50.0)
    for right in (*RIGHTS, None):
        assert client.get(PATH, headers=given.get(right)).status_code == 401
    found = client.get(PATH, headers=given["administrator"]).json()
    assert set(found) == {"people", "disagree", "long", "told"}
    assert found["people"] == 100
    assert found["disagree"] is False


def test_it_changes_with_who_comes(service) -> None:
    store, client, given = service
    send(store, 0.0, 150)
    before = client.get(PATH, headers=given["administrator"]).json()
    send(store, 100.0, 150)
    after = client.get(PATH, headers=given["administrator"]).json()
    assert (before["disagree"], after["disagree"]) == (False, True)
    unknown = client.get(f"/collections/{'0' * 64}/halves", headers=given["administrator"])
    assert unknown.status_code == 404


def test_strangers_see_nothing_of_it_in_the_state(service) -> None:
    store, client, _ = service
    send(store, 0.0)
    state = client.get(f"/collections/{AGREEMENT.fingerprint}").json()
    assert "halves" not in state
    assert "disagree" not in str(state)
