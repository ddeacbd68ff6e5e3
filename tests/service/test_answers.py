"""Every answer carries its headers, and logs tell nothing."""

import logging

import numpy as np

from blurfit.contributor.blur import perturb
from blurfit.service.answers import HEADERS
from support.requests import opened, send


def test_every_answer_carries_the_headers(http, agreement) -> None:
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    for answer in (
        http.get("/healthz"),
        http.get("/nothing"),
        http.get(f"{path}/model"),
        send(http, path, one.to_bytes()),
        send(http, path, b"garbage"),
        http.post("/collections"),
    ):
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (answer.url, name)
    assert "immutable" in http.get(f"{path}/agreement").headers["cache-control"]


def test_logs_hold_no_values_and_no_addresses(http, agreement, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    send(http, path, one.to_bytes())
    send(http, path, one.to_bytes()[:-8] + np.array([2.0**50]).tobytes())
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("blurfit")]
    assert not any("testclient" in text or str(one.numbers[0]) in text for text in ours)
