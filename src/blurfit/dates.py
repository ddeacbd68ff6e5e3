"""A moment that everyone means alike: a date, or a time with its zone, as seconds since 1970."""

import datetime as dt

from blurfit.errors import InvalidValueError


def instant(text: str) -> int:
    """Return the second since 1970 that a text names; a date alone is the end of its day in UTC.

    A time without its zone is refused: it would be another moment for each who reads it.

    >>> instant("2027-01-31") == instant("2027-02-01T00:00Z") == instant("2027-02-01T01:00+01:00")
    True
    """
    try:
        found = dt.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        found = None
    if found is None or found.year >= 9999 or (found.tzinfo is None and not _is_date(text)):
        raise InvalidValueError(
            f"Expected {text!r} to be a date such as 2027-01-31, which lasts until the end of that "
            "day in UTC, or a time with its zone such as 2027-01-31T18:00+01:00."
        )
    if found.tzinfo is None:
        found = found.replace(tzinfo=dt.UTC) + dt.timedelta(days=1)
    return int(found.timestamp())


def in_words(second: int) -> str:
    """Return a moment as people read it.

    >>> in_words(instant("2027-01-31T18:00+01:00"))
    '2027-01-31 17:00 UTC'
    """
    found = dt.datetime.fromtimestamp(second, dt.UTC)
    return f"{found:%Y-%m-%d %H:%M:%S} UTC" if found.second else f"{found:%Y-%m-%d %H:%M} UTC"


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True
