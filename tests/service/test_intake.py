"""Submissions in both forms: what is taken, what is refused, and that answers tell nothing."""

import json
import logging
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from blurfit import Agreement
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.messages.submissions import Submission, Submissions
from blurfit.protocol.http import BINARY, JSON
from blurfit.protocol.tokens import hashed, new_token
from blurfit.service.app import Limits, Service
from blurfit.store.store import Store
from support.requests import ADMINISTRATOR, TOKEN, opened, refused, send
from support.stores import PEOPLE, SCHEMA


@pytest.mark.parametrize(
    ("place", "admission"),
    [("sqlite", "anyone"), ("postgresql", "invited")],
    indirect=["place"],
)
def test_a_known_identifier_is_answered_alike_whatever_comes_under_it(
    http, store, agreement, admission
) -> None:
    """Else whoever knows an identifier could test guesses of the numbers."""
    agreement = replace(agreement, admission=admission)
    path = opened(http, agreement)
    one, other = (perturb(agreement, {"age": 1, "income": 2}) for _ in range(2))
    token = new_token()
    if admission == "invited":
        store.invite(agreement.fingerprint, [hashed(token)])
    assert send(http, path, one.to_bytes(), **{"blurfit-invitation": token}).status_code == 200
    forged = Submission(one.identifier, one.fingerprint, other.numbers)
    for state in ("collecting", "closed"):
        if state == "closed":
            http.post(f"{path}/close", headers=ADMINISTRATOR)
        for body, kind in (
            (lambda one: one.to_bytes(), BINARY),
            (lambda one: one.to_json(), JSON),
            (lambda one: Submissions.gather([one] * 2).to_bytes(), BINARY),
            (lambda one: Submissions.gather([one] * 2).to_json(), JSON),
        ):
            for headers in ({}, {"blurfit-invitation": token}, {"blurfit-invitation": "guess"}):
                right, wrong = (send(http, path, body(x), kind, **headers) for x in (one, forged))
                assert right.status_code == wrong.status_code == 200
                assert right.content == wrong.content
                assert right.headers.items() == wrong.headers.items()
        mixed = [Submissions.gather([one, x]) for x in (one, forged)]
        assert len({send(http, path, x.to_bytes()).content for x in mixed}) == 1
    (kept,) = store.submissions(agreement.fingerprint)
    assert [*kept] == [one]


def test_bad_submissions_are_refused_and_nothing_is_kept(http, agreement) -> None:
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    other = Agreement.propose(SCHEMA, epsilon=2, delta=1e-6, quorum=20)
    foreign = perturb(other, {"age": 30, "income": 20})
    wide = Submission("00" * 16, agreement.fingerprint, np.zeros(6))
    message = json.loads(one.to_json())
    rest = message["numbers"][1:]
    infinite = one.to_bytes()[:-8] + np.array([np.inf]).tobytes()
    nan = one.to_bytes()[:-8] + np.array([np.nan]).tobytes()
    large = one.to_bytes()[:-8] + np.array([2.0**50]).tobytes()
    between = one.to_bytes()[:-8] + np.array([agreement.grid.dither / 4]).tobytes()
    for body, kind, word in (
        (foreign.to_bytes(), BINARY, "another agreement"),
        (foreign.to_json(), JSON, "another agreement"),
        (wide.to_bytes(), BINARY, "numbers, and got 6"),
        (wide.to_json(), JSON, "numbers, and got 6"),
        (infinite, BINARY, "finite"),
        (nan, BINARY, "finite"),
        (large, BINARY, "a norm above"),
        (between, BINARY, "no multiple of"),
        (
            json.dumps(message | {"numbers": [1e400, *rest]}),
            JSON,
            "cannot be read",
        ),
        (json.dumps(message | {"numbers": [1e300, *rest]}), JSON, "a norm above"),
        (json.dumps(message | {"extra": 1}), JSON, "extra"),
        (json.dumps([]), JSON, "batch"),
        (b"", BINARY, "cut short"),
        (b"", JSON, "cannot be read"),
        (one.to_bytes()[:-1], BINARY, "cut short"),
        (one.to_bytes() + b"x", BINARY, "something follows"),
        (b"\xff" * 500, BINARY, "marked"),
        (b"[" * 100_000, JSON, "cannot be read"),
    ):
        refused(send(http, path, body, kind), 400, "invalid", word)
    refused(send(http, path, one.to_bytes(), "text/plain"), 415, "unsupported-media-type")
    batch = perturb_table(agreement, PEOPLE)
    spoiled = bytearray(batch.to_bytes())
    spoiled[-8:] = np.array([2.0**50]).tobytes()
    refused(send(http, path, bytes(spoiled)), 400, "invalid", "Submission 39 has a norm")
    assert http.get(path).json()["count"] == 0


def test_no_more_than_ten_thousand_at_once(http, agreement) -> None:
    path = opened(http, agreement)
    many = {name: np.resize(values, 10_001) for name, values in PEOPLE.items()}
    batch = perturb_table(agreement, many)
    refused(send(http, path, batch.to_bytes()), 413, "too-large", "10001")
    all_but_one = Submissions(
        batch.identifiers[1:],
        batch.fingerprint,
        batch.numbers[1:],
    )
    assert send(http, path, all_but_one.to_bytes()).json()["new"] == 10_000


def test_when_storage_fails_nothing_is_acknowledged(agreement, tmp_path, caplog) -> None:
    with Store(tmp_path / "collection.db") as kept:
        kept.appoint(hashed(TOKEN))
        with TestClient(Service(kept, Limits(requests_per_second=0))) as client:
            path = opened(client, agreement)

            def full(connection, *_: object) -> None:
                connection.execute("PRAGMA max_page_count = 1")

            sa.event.listen(kept._engine, "checkout", full)
            large = {name: np.resize(values, 9000) for name, values in PEOPLE.items()}
            batch = perturb_table(agreement, large).to_bytes()
            with caplog.at_level(logging.ERROR):
                answer = send(client, path, batch)
            refused(answer, 503, "unavailable", "Nothing was kept")
            assert int(answer.headers["retry-after"]) >= 1
            assert "full" in caplog.text
            sa.event.remove(kept._engine, "checkout", full)
            kept._engine.dispose()
            assert client.get(path).json()["count"] == 0
            assert send(client, path, batch).json()["new"] == 9000
