"""`blurfit open --until` and `blurfit until`, against a real service that closes by itself."""

import json

import pytest

from blurfit.dates import instant
from blurfit.store.store import Store
from support.closings import let_pass


@pytest.fixture
def agreed(blurfit, propose):
    agreement = propose(epsilon=1.5)
    agreement.save(blurfit.folder / "agreement.json")
    return agreement


def test_a_collection_closes_at_its_date(blurfit, service, agreed, asked, as_administrator) -> None:
    opened = blurfit("open", "agreement.json", *as_administrator, "--until", "2096-01-31")
    assert "20 more are needed. It closes at 2096-02-01 00:00 UTC." in opened.stdout
    again = blurfit("open", "agreement.json", *as_administrator, "--until", "2096-02-28")
    assert again.returncode == 4
    assert "move the date with `blurfit until`" in again.stderr
    vague = blurfit("until", "agreement.json", "2096-01-31T18:00", *as_administrator)
    assert vague.returncode == 2
    assert "a time with its zone" in vague.stderr
    never = blurfit("until", "agreement.json", "never", *as_administrator)
    assert never.stdout.endswith("20 more are needed.\n")
    moved = blurfit(
        "until", "agreement.json", "2096-02-28T18:00+01:00", *as_administrator, "--json"
    )
    assert json.loads(moved.stdout)["closes"] == instant("2096-02-28T17:00Z")
    with Store(service.folder / "blurfit.db") as store:
        let_pass(store, agreed.fingerprint)
    words = blurfit("status", "agreement.json", *asked).stdout
    assert words == (
        "Closed since 2001-09-09 01:46:40 UTC with 0 contributions; nothing is published.\n"
    )
    late = blurfit("until", "agreement.json", "never", *as_administrator)
    assert late.returncode == 4
    assert "closed for good" in late.stderr
