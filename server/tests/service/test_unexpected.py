"""An unhandled exception is answered with a name, under which the log has it."""

import logging
import sqlite3
import sys

import pytest
from starlette.testclient import TestClient

from blurfit.contributor.blur import perturb
from blurfit.protocol import hashed
from blurfit_server.service.app import Limits, Service, configuration
from blurfit_server.store.store import Store
from server_support.requests import ADMINISTRATOR, TOKEN, opened, refused, send
from support.proposals import propose

AGREEMENT = propose()


@pytest.fixture
def place() -> str:
    return ":memory:"


def test_it_has_a_name_in_answer_and_log_and_is_a_deed(http, store, monkeypatch, caplog) -> None:
    path = opened(http, AGREEMENT)

    def broken(*_given):
        raise ZeroDivisionError

    monkeypatch.setattr(store, "close_collection", broken)
    with caplog.at_level(logging.ERROR, "blurfit"):
        answer = http.post(f"{path}/close", headers=ADMINISTRATOR)
    refused(answer, 500, "unexpected", "log under that name")
    assert answer.headers["x-content-type-options"] == "nosniff"
    name = answer.json()["detail"].split()[1]
    (record,) = [one for one in caplog.records if name in one.getMessage()]
    assert record.exc_info[0] is ZeroDivisionError
    assert TOKEN not in record.getMessage()
    deed = store.audit_log()[0]
    assert (deed.what, deed.outcome) == ("close", 500)


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_log_holds_nothing_that_a_terminal_obeys(style) -> None:
    hostile = "\x1b]0;owned\x07\r\nforged info: all is well\x9b\u202e"
    try:
        raise ValueError(hostile)
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("blurfit", logging.INFO, "", 0, "%s", (hostile,), error)
    formatter = configuration(style, access=False)["formatters"]["lines"]["()"]()
    lines = formatter.format(record).split("\n")
    assert all(map(str.isprintable, lines))
    assert not any(line.startswith("forged") for line in lines)
    assert "forged info" in lines[0]


def test_so_has_what_goes_past_the_router(http, store, monkeypatch, caplog) -> None:
    path = opened(http, AGREEMENT)
    monkeypatch.setattr(store, "known", lambda _: 1 // 0)
    with caplog.at_level(logging.ERROR, "blurfit"):
        refused(send(http, path, b""), 500, "unexpected", "log under that name")
    assert "ZeroDivisionError" in caplog.text


def test_a_damaged_file_is_a_store_that_is_away(tmp_path) -> None:
    """And not an error that nobody foresaw: whoever sends keeps what she has, and tries again."""
    file = tmp_path / "damaged.db"
    with Store(file) as kept:
        kept.appoint(hashed(TOKEN))
        kept.open(AGREEMENT)
    with sqlite3.connect(file) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with Store(file) as kept:
        kept._engine.dispose()  # nothing of it is remembered
        with file.open("r+b") as stream:
            for page in range(1, pages):  # the first one says what it is
                stream.seek(page * size)
                stream.write(b"\xff" * size)
        with TestClient(Service(kept, Limits(requests_per_second=0))) as http:
            path = f"/collections/{AGREEMENT.fingerprint}"
            late = perturb(AGREEMENT, {"age": 1, "income": 2}).to_bytes()
            for answer in (http.get(path), http.get("/collections"), send(http, path, late)):
                refused(answer, 503, "unavailable")


def test_by_tls_browsers_are_told_to_come_by_it_alone(store) -> None:
    service = Service(store, Limits(requests_per_second=0))
    name = "strict-transport-security"
    with TestClient(service, base_url="https://survey.example") as http:
        path = opened(http, AGREEMENT)
        for answer in (http.get("/"), http.get(path), http.get("/nothing"), send(http, path, b"")):
            assert answer.headers[name] == "max-age=31536000"
    with TestClient(service, base_url="http://survey.example") as http:
        assert name not in http.get("/").headers


@pytest.mark.parametrize("path", ["/collections/", "/admin/", "/healthz/"])
def test_no_answer_leads_where_the_host_header_says(http, path) -> None:
    answer = http.get(path, headers={"host": "evil.example"}, follow_redirects=False)
    assert answer.status_code == 404
    assert "location" not in answer.headers
