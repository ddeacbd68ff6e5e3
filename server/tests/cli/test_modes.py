"""Every command that writes, under a usual umask, and the mode of all that it has written."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from blurfit_server.store.store import Store

PUBLIC = {
    "agreement.json",
    "invited.json",
    "model.json",
    "moments.json",
    "learned.json",
    "learned-moments.json",
    "kept.json",  # of `learn --receipt`: what was released, as beside the files
    "fitted.json",
    "agreed.json",
    "plan.json",
    "schema.toml",
    "people.csv",  # tables that somebody brought
    "others.csv",
    "more.csv",
    "late.csv",
    "README.md",
}


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(*folders: Path) -> dict[str, int]:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {path.name: path.stat().st_mode & 0o777 for path in files}


def is_public(name: str) -> bool:
    return name in PUBLIC or name.endswith(".release.json")


def test_what_is_private_is_for_its_owner_alone(blurfit, propose, tmp_path, home) -> None:
    agreement, invited = propose(), propose(admission="invited", epsilon=2.0)
    agreement.save(tmp_path / "agreement.json")
    invited.save(tmp_path / "invited.json")
    for number, name in enumerate(("people", "others", "more", "late")):
        rows = "".join(f"{20 + row},{100 * number + row}\n" for row in range(20))
        (tmp_path / f"{name}.csv").write_text("age,income\n" + rows)

    def typed(line: str, code: int = 0) -> None:
        done = blurfit(*line.split())
        assert done.returncode == code, done.stderr

    options = "--admin-token-file admin.txt --share-key-file shares.key --store sqlite:///c.db"
    with blurfit.serving(*options.split()) as served:
        to = f"--to {served.url} --patience 120"
        by = f"{to} --admin-token-file admin.txt"
        typed(f"open agreement.json {by}")
        typed(f"open invited.json {by}")
        typed("token --store sqlite:///c.db --name mail --right invite --out mail.txt")
        typed(f"invite invited.json {by} --count 3 --out invitations.txt")
        typed(f"invite invited.json {by} --count 3 --csv --out links.csv")
        typed(f"contribute agreement.json people.csv {to} --receipt receipt.json")
        typed(f"contribute agreement.json others.csv {to}")
        with Store(tmp_path / "c.db") as store:
            store.pause(agreement.fingerprint)
        waiting = f"--to {served.url} --patience 0 --receipt waiting.json --journal waiting.journal"
        typed(f"contribute agreement.json more.csv {waiting}", code=4)
        while_it_serves = modes(tmp_path, home)
        typed("backup --store sqlite:///c.db --out backup.db")
        typed(f"publish agreement.json {by} --out model.json --moments moments.json")
    typed("contribute invited.json late.csv --out blurred.parquet")
    typed("export agreement.json --store sqlite:///c.db --out submissions.parquet")
    receipt = "--receipt kept.json --out learned.json --moments learned-moments.json"
    typed(f"learn agreement.json submissions.parquet {receipt}")
    typed("fit moments.json --out fitted.json")
    typed("init example")
    promise = "--epsilon 1 --quorum 2000 --anyone --waves 2 --plan plan.json"
    typed(f"agree example/schema.toml {promise} --out agreed.json")
    typed("predict model.json people.csv --out predictions.csv")
    (tmp_path / "predictions.csv").chmod(0o666)
    typed("predict model.json people.csv --out predictions.csv")  # replaces what was widened
    typed("backup --store sqlite:///c.db --out again.db")
    for path in tmp_path.glob("c.db*"):
        path.unlink()
    typed("restore backup.db --store sqlite:///restored.db")
    for found in (while_it_serves, modes(tmp_path, home)):
        assert {name for name, one in found.items() if one & 0o077} <= {
            name for name in found if is_public(name)
        }
        assert {one for name, one in found.items() if not is_public(name)} == {0o600}
    assert modes(home).keys() >= {"account.db", "releases.db"}
    expected = {"c.db", "c.db-wal", "c.db-shm", "c.db.signing-key", "admin.txt", "shares.key"}
    expected |= {"mail.txt", "invitations.txt", "links.csv", "receipt.json", "waiting.journal"}
    assert while_it_serves.keys() >= expected
    assert {"blurred.parquet", "submissions.parquet", "predictions.csv"} <= modes(tmp_path).keys()
