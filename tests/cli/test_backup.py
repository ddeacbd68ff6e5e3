"""`blurfit backup` and `blurfit restore` as an operator meets them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from blurfit.cli import main
from blurfit.contributor.blur import perturb_table
from blurfit.store.store import Store
from support.stores import PEOPLE, propose


@pytest.fixture
def typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agreement = propose(mechanism="moment")
    with Store(tmp_path / "collection.db") as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
    return lambda *words: CliRunner().invoke(main, words)


STORE = ("--store", "sqlite:///collection.db")


def test_a_backup_is_restored_and_closed_for_good(typed) -> None:
    facts = json.loads(typed("backup", *STORE, "--out", "monday.db", "--json").stdout)
    assert facts == {"out": "monday.db", "collections": 1, "submissions": 40}
    said = typed("restore", "monday.db", "--store", "sqlite:///again.db")
    assert said.exit_code == 0, said.output
    words = " ".join(said.output.split())
    assert "1 collections with 40 submissions" in words
    assert "closed for good, because the original may have published since" in words
    there = ("restore", "monday.db", "--store", "sqlite:///lost.db", "--original-lost")
    refused = typed(*there)
    assert refused.exit_code == 2
    assert "could publish too" in " ".join(refused.output.split())
    Path("collection.db").unlink()
    lost = typed(
        "restore", "monday.db", "--store", "sqlite:///lost.db", "--original-lost", "--json"
    )
    assert json.loads(lost.stdout)["closed"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("restore",), "Expected the FILE of a backup"),
        (("restore", "monday.db", "--in-place"), "Expected the FILE of a backup"),
        (("restore", "monday.db", "--store", "postgresql://x/y"), "use --in-place"),
    ],
)
def test_what_cannot_be_restored_is_said(typed, words, message: str) -> None:
    refused = typed(*words)
    assert refused.exit_code != 0
    assert message in " ".join(f"{refused.output} {refused.exception}".split())
