"""Log lines: one for each event, whatever its message holds."""

import json
import logging
import logging.config

import pytest

from blurfit.service.server import configuration


@pytest.fixture(params=["text", "json"])
def style(request):
    return request.param


def lines(style: str, capsys, *messages: str) -> list[str]:
    try:
        logging.config.dictConfig(configuration(style, access=False))
        for message in messages:
            logging.getLogger("blurfit.audit_log").info("%s", message)
        logging.getLogger("uvicorn.access").info("an address")
    finally:
        for name in ("blurfit", "blurfit.audit_log", "uvicorn", "uvicorn.error", "uvicorn.access"):
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True
            logger.setLevel(logging.NOTSET)
    return capsys.readouterr().err.splitlines()


def test_a_message_cannot_begin_another_line(style, capsys) -> None:
    found = lines(style, capsys, "one\n2026-01-01 info forged", "two")
    assert len(found) == 2
    assert "address" not in "".join(found)


def test_json_has_time_level_logger_and_message(capsys) -> None:
    (line,) = lines("json", capsys, "opened ε")
    found = json.loads(line)
    assert found["message"] == "opened ε"
    assert (found["level"], found["logger"]) == ("info", "blurfit.audit_log")
    assert found["time"].endswith("+00:00")
