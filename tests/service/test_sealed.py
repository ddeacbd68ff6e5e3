"""Sealed shares end to end: a proxy before both databases sees neither numbers nor names."""

import numpy as np
import pytest
from starlette.testclient import TestClient

from blurfit import Agreement, InvalidValueError, Store
from blurfit.agreement.terms import Database
from blurfit.contributor.blur import share
from blurfit.contributor.client import Client
from blurfit.messages.submissions import new_key, public_key
from blurfit.protocol.http import BINARY
from blurfit.protocol.tokens import hashed
from blurfit.service.app import Service
from support.requests import ADMINISTRATOR, TOKEN, as_json, refused
from support.services import two_services
from support.sharing import SCHEMA, TWO

KEYS = new_key(), new_key()
SEALED = tuple(Database(*one, public_key(key)) for one, key in zip(TWO, KEYS, strict=True))
PROMISE = {"epsilon": 190, "delta": 1e-6, "quorum": 3, "admission": "anyone"}
AGREEMENT = Agreement.propose(SCHEMA, databases=SEALED, **PROMISE)
PEOPLE = {"age": np.linspace(0, 90, 5), "income": np.linspace(9, 99, 5)}


class Proxy:
    """Ends TLS, forwards, and remembers what it saw."""

    def __init__(self, way) -> None:
        self.way, self.seen = way, []

    def handle_request(self, request):
        self.seen.append(request.read())
        return self.way.handle_request(request)

    def close(self) -> None:
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_error: object) -> None:
        pass


def test_a_proxy_before_both_sees_nothing_and_one_model_comes_out() -> None:
    path = f"/collections/{AGREEMENT.fingerprint}"

    def post(client: TestClient, content: bytes):
        headers = {"content-type": BINARY}
        return client.post(f"{path}/submissions", content=content, headers=headers)

    with (
        Store() as one,
        Store() as other,
        two_services(AGREEMENT, (one, other), share_key=KEYS) as (first, second),
    ):
        proxies = [Proxy(client._transport) for client in (first, second)]
        shared = share(AGREEMENT, PEOPLE)
        with Client.of(AGREEMENT, transports=proxies, patience=0.0) as sender:
            assert sender.submit(shared) == len(shared)
            assert sender.submit(shared) == 0, "again is safe, and sealed afresh"
        seen = [b"".join(proxy.seen) for proxy in proxies]
        for message, hidden in zip((shared.first, shared.second), seen, strict=True):
            for name in message.identifiers:
                assert name.tobytes() not in hidden
            assert message.words.tobytes()[:16] not in hidden
        refused(post(first, shared.first.to_bytes()), 400, "invalid", "not sealed at all")
        refused(post(first, proxies[1].seen[-1]), 400, "invalid", "for another one")
        second.post(f"{path}/close", headers=ADMINISTRATOR)
        model = first.post(f"{path}/publish", headers=ADMINISTRATOR)
        assert model.json()["count"] == 5


def test_a_service_with_another_key_does_not_open_it() -> None:
    with Store() as store:
        store.appoint(hashed(TOKEN))
        for key in (None, new_key(), KEYS[1]):
            with TestClient(Service(store, share_key=key), base_url=TWO[0][1]) as client:
                answer = client.post(
                    "/collections?role=first",
                    content=AGREEMENT.to_json(),
                    headers=ADMINISTRATOR | as_json(),
                )
                refused(answer, 409, "infeasible", "--share-key-file")


def test_keys_are_under_the_fingerprint_and_there_are_two_or_none() -> None:
    plain = Agreement.propose(SCHEMA, databases=TWO, **PROMISE)
    assert plain.fingerprint != AGREEMENT.fingerprint
    assert "key" not in plain.to_dict()["databases"][0]
    assert Agreement.from_json(AGREEMENT.to_json()) == AGREEMENT
    for databases in (
        (SEALED[0], Database(*TWO[1])),
        (SEALED[0], Database(*TWO[1], SEALED[0].key)),
    ):
        with pytest.raises(InvalidValueError, match="for each of the two"):
            Agreement.propose(SCHEMA, databases=databases, **PROMISE)
