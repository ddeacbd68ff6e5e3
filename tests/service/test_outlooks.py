"""The estimate over HTTP, for the administrator alone."""

import pytest

from blurfit import Agreement
from blurfit.learning.outlook import outlook
from blurfit.schema.schema import Numeric, Schema
from support.requests import ADMINISTRATOR, refused

SCHEMA = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
TERMS = {"epsilon": 1, "delta": 1e-6, "quorum": 2000}
WISH = {"schema": SCHEMA.to_dict(), **TERMS}


def test_what_to_expect_and_what_it_takes(http) -> None:
    found = http.post("/outlooks", json=WISH, headers=ADMINISTRATOR).json()
    expected = outlook(Agreement.propose(SCHEMA, **TERMS))
    assert found["off"] == pytest.approx(expected.off)
    assert found["without_privacy"] == pytest.approx(expected.without_privacy)
    assert found["people"] is None
    wish = WISH | {"off": 0.7 * expected.off}
    found = http.post("/outlooks", json=wish, headers=ADMINISTRATOR).json()
    assert 2000 < found["people"] < 10_000
    assert 1 < found["epsilon"] < 20
    assert http.get("/collections").json() == []


def test_what_cannot_be_told_is_refused(http) -> None:
    by_input = WISH | {"mechanism": "input", "weight_bound": 1}
    refused(http.post("/outlooks", json=by_input, headers=ADMINISTRATOR), 409, "infeasible")
    refused(http.post("/outlooks", json=WISH | {"off": -1}, headers=ADMINISTRATOR), 400, "invalid")
    refused(http.post("/outlooks", json=WISH), 401, "unauthorised")
