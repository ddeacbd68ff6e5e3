"""Tokens and deeds from the shell."""

import json

from click.testing import CliRunner

from blurfit import cli
from blurfit.protocol import tokens
from blurfit.store.store import Bearer, Store


def test_a_token_is_granted_listed_used_and_revoked(tmp_path) -> None:
    place = f"sqlite:///{tmp_path / 'store.db'}"
    runner, out = CliRunner(), tmp_path / "mail.txt"

    def typed(*words: str):
        return runner.invoke(cli.main, [*words, "--store", place])

    made = typed("token", "--name", "mail office", "--right", "invite", "--out", str(out))
    assert made.exit_code == 0, made.output
    assert out.stat().st_mode & 0o777 == 0o600
    assert typed("token").output == "mail office: invite\n"
    with Store(place) as store:
        hashed = tokens.hashed(tokens.read_token(out))
        assert store.bearer(hashed) == Bearer("mail office", ("invite",))
        store.log("mail office", "invite", None, 200)
    assert typed("deeds").output.endswith("Z  200  mail office: invite\n")
    (told,) = json.loads(typed("deeds", "--json").output)["deeds"]
    assert told["name"] == "mail office"
    assert typed("token", "--name", "mail office", "--revoke").exit_code == 0
    assert typed("token").output == "There are none.\n"


def test_what_is_missing_is_said(tmp_path) -> None:
    place = f"sqlite:///{tmp_path / 'store.db'}"
    asked = CliRunner().invoke(cli.main, ["token", "--store", place, "--name", "x"])
    assert asked.exit_code == 2
    assert "--right and --out" in asked.output
