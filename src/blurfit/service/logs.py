"""Logs for people or for machines: one line for each event, with its time and level.

Neither addresses nor anything that was submitted is logged, unless the access log is asked for.
"""

import datetime as dt
import json
import logging
from typing import Any, Literal

Style = Literal["text", "json"]
STYLES: tuple[Style, ...] = ("text", "json")


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON, in which no line of a message begins another record."""
        found: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=False)


class TextLines(logging.Formatter):
    """Time, level, logger and message; what would begin another line is shown as it is written."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, and the traceback of an error below it."""
        message = record.getMessage().replace("\\", "\\\\")
        message = message.replace("\n", "\\n").replace("\r", "\\r")
        line = f"{_time(record)} {record.levelname.lower()} {record.name}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _time(record: logging.LogRecord) -> str:
    return dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")


def configuration(style: Style, *, access: bool) -> dict[str, Any]:
    """For `logging.config.dictConfig`, which uvicorn calls: all on standard error."""
    formatter = {"text": TextLines, "json": JsonLines}[style]
    quiet = {"level": "WARNING", "handlers": ["lines"], "propagate": False}
    spoken = quiet | {"level": "INFO"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": formatter}},
        "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "loggers": {
            "blurfit": quiet,
            "blurfit.deeds": spoken,
            "uvicorn": quiet,
            "uvicorn.error": quiet,
            "uvicorn.access": spoken if access else quiet,
        },
    }
