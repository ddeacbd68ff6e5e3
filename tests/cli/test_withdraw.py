"""A receipt from the command line to the end: contribute, verify, withdraw, publish, verify."""

import json

from click.testing import CliRunner

from blurfit import Store
from blurfit.cli import main
from blurfit.contributor.journal import Receipt
from blurfit.messages.signing import Signer, new_key
from blurfit.protocol.tokens import hashed
from blurfit.service.app import Service
from blurfit.service.server import in_a_thread
from support.requests import TOKEN
from support.stores import propose


def run(*typed: object, code: int = 0) -> str:
    result = CliRunner().invoke(main, [str(one) for one in typed])
    assert result.exit_code == code, result.output
    return result.output


def test_from_a_receipt_to_a_verified_model(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    private = new_key()
    agreement = propose(signing_keys=[Signer(private).key])
    agreement.save("agreement.json")
    (tmp_path / "token.txt").write_text(TOKEN)
    rows = "".join(f"{n},{2 * n}\n" for n in range(24))
    (tmp_path / "people.csv").write_text(f"age,income\n{rows}")
    with Store() as store:
        store.appoint(hashed(TOKEN))
        store.open(agreement)
        with in_a_thread(Service(store, signing_key=private)) as url:
            to = ("--to", url, "--patience", 5)
            told = run("contribute", "agreement.json", "people.csv", *to, "--receipt", "r.json")
            assert "The receipt is in r.json" in told
            assert Receipt.load("r.json").parts[0].rows == 24
            checked = ("verify", "r.json", "--agreement", "agreement.json")
            assert "that 24 submissions are stored" in run(*checked)
            assert "Expected --agreement" in run("verify", "r.json", code=2)
            assert "from 1 to 24, and got 25" in run("withdraw", "r.json", "--row", 25, code=2)
            assert "2 submissions are withdrawn" in run(
                "withdraw", "r.json", "--row", 3, "--row", 7
            )
            again = json.loads(run("withdraw", "r.json", "--row", 3, "--json"))
            assert (again["out"], again["staying"], len(again["signatures"])) == (1, 0, 1)
            assert store.count(agreement) == 22
            administer = (*to, "--admin-token-file", "token.txt")
            run("publish", "agreement.json", *administer, "--out", "m.json", "--moments", "s.json")
            assert "is closed" in run("withdraw", "r.json", "--row", 1, code=4)
        for file in ("m.json", "s.json"):
            assert "verified." in run("verify", file, "--agreement", "agreement.json")
        assert json.loads((tmp_path / "m.json").read_text())["count"] == 22
