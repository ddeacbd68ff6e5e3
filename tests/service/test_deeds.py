"""The list of deeds over HTTP: the newest thousand, and no more."""

from starlette.testclient import TestClient

from blurfit.protocol import tokens
from blurfit.service.app import Service
from blurfit.store import stewards
from blurfit.store.store import Store


def test_the_newest_come_first_and_the_list_ends() -> None:
    with Store() as store:
        token = tokens.new_token()
        store.appoint(tokens.hashed(token))

        def many(connection) -> None:
            for number in range(1001):
                stewards.write_down(connection, "administrator", f"deed {number}", None, 200)

        store.write(many)
        with TestClient(Service(store)) as client:
            answer = client.get("/deeds", headers={"authorization": f"Bearer {token}"})
    found = answer.json()
    assert len(found) == 1000
    assert found[0]["what"] == "deed 1000"
