"""Moments that everyone means alike."""

import pytest

from blurfit.dates import in_words, instant
from blurfit.errors import InvalidValueError


def test_a_date_lasts_until_its_end_in_utc() -> None:
    assert in_words(instant("2027-01-31")) == "2027-02-01 00:00 UTC"
    assert in_words(instant("2028-02-29")) == "2028-03-01 00:00 UTC"


def test_a_time_needs_its_zone() -> None:
    assert in_words(instant("2027-01-31T18:00:07-05:00")) == "2027-01-31 23:00:07 UTC"
    for text in ("2027-01-31T18:00", "tomorrow", "", "9999-12-31", "2027-02-29", None):
        with pytest.raises(InvalidValueError, match="a time with its zone"):
            instant(text)
