"""The files of `blurfit invite`: for mail merge, and to print."""

import csv
import io
import re

import pytest

from blurfit import Agreement, InvalidValueError
from blurfit.cli._common import Administered
from blurfit.cli.administer import _both, _theirs, read, written
from support.stores import SCHEMA

PAGE = "https://first.example/c/" + "ab" * 32
TOKENS = ["one-token", "another,of-both"]


def test_a_table_for_mail_merge() -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv", TOKENS, PAGE))))
    assert [row["number"] for row in rows] == ["1", "2"]
    assert [row["link"] for row in rows] == [f"{PAGE}#invitation={one}" for one in TOKENS]


@pytest.mark.parametrize("form", ["tokens", "links", "csv"])
def test_what_is_written_can_be_read(form) -> None:
    assert read(written(form, TOKENS, PAGE)) == [["one-token"], ["another", "of-both"]]


def test_codes_to_print() -> None:
    page = written("qr", TOKENS, PAGE)
    assert page.count("<svg") == 2
    assert re.findall("<figcaption>(.*?)</figcaption>", page) == ["1", "2"]
    assert "one-token" not in page  # the code alone carries it


def test_joined_in_the_order_of_the_databases(tmp_path) -> None:
    databases = [("Office", "https://first.example"), ("University", "https://second.example")]
    shared = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20, databases=databases)
    own, other = tmp_path / "own.txt", tmp_path / "other.txt"
    addresses = [one.url for one in shared.databases]
    found = _both(shared, Administered(to="https://second.example/", admin_token_file=own), other)
    assert [(one.to, one.admin_token_file) for one in found] == list(
        zip(addresses, (other, own), strict=True)
    )
    with pytest.raises(InvalidValueError, match="one of the agreement's two databases"):
        _both(shared, Administered(to="https://third.example", admin_token_file=own), other)
    alone = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20)
    with pytest.raises(InvalidValueError, match="only one database"):
        _both(alone, Administered(to="https://first.example", admin_token_file=own), other)


def test_invitations_of_the_other_database_are_read_whole_or_not_at_all(tmp_path) -> None:
    file, addresses = tmp_path / "theirs.txt", ["https://first.example", "https://second.example"]
    file.write_text("one\nother\n")
    assert _theirs(file, addresses, addresses[1], 2) == ["one", "other"]
    for own, count, text in (
        (addresses[0], 3, "one\nother\n"),
        (addresses[0], 2, "one,two\nother,more\n"),
        ("https://third.example", 2, "one\nother\n"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidValueError, match="Expected"):
            _theirs(file, addresses, own, count)
