"""A store that hangs: whoever sends is told so, and is counted once in the end."""

import threading

from starlette.testclient import TestClient

from blurfit.contributor.blur import perturb
from blurfit.protocol.tokens import hashed
from blurfit.service import intake as collector
from blurfit.service.app import Limits, Service
from blurfit.store.store import Store
from support.requests import TOKEN, opened, refused, send


def test_nobody_waits_with_a_store_that_hangs(agreement, in_memory, monkeypatch) -> None:
    monkeypatch.setattr(collector, "SECONDS_TO_STORE", 0.2)
    again = threading.Event()
    with Store(in_memory / "collection.db") as store:
        store.appoint(hashed(TOKEN))
        receive = store.receive
        monkeypatch.setattr(store, "receive", lambda *a: (again.wait(600), receive(*a))[1])
        with TestClient(Service(store, Limits(requests_per_second=0))) as client:
            path = opened(client, agreement)
            one = perturb(agreement, {"age": 30, "income": 20}).to_bytes()
            answer = send(client, path, one)
            refused(answer, 503, "unavailable", "not known yet")
            assert int(answer.headers["retry-after"]) >= 1
            assert client.get("/healthz").status_code == 200, "others are served meanwhile"
            again.set()
            monkeypatch.setattr(collector, "SECONDS_TO_STORE", 600.0)
            assert send(client, path, one).json()["accepted"] == 1
            assert client.get(path).json()["count"] == 1
