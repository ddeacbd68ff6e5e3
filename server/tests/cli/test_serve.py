"""`blurfit serve` from its first start to its end, and the commands that look after a store."""

import json
import signal
import socket
import ssl
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from click.testing import CliRunner

from blurfit import PublishedModel, cli, private_files
from blurfit import protocol as tokens
from blurfit.cli import main
from blurfit.contributor.blur import perturb_table
from blurfit.errors import InvalidValueError
from blurfit.messages.signing import Signer, new_key
from blurfit_server.cli.serve import appoint, beside, key_in, signing_key_in
from blurfit_server.store.arrivals import Bearer
from blurfit_server.store.store import Store
from support import processes
from support.programs import program
from support.proposals import PEOPLE, propose

PLAIN: dict[str, Any] = {"trust_env": False, "verify": False, "timeout": 300}  # no TLS, no haste
ONCE = "The administrator's token, shown this once, is "


def is_administrator(url: str, token: str) -> bool:
    """Whether the service does what only its administrator may ask for (nothing, in the end)."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    answer = httpx.post(f"{url}/collections", content=b"{}", headers=headers, **PLAIN)
    assert answer.status_code in (400, 401)
    return answer.status_code == 400  # let in, and then told that this is no agreement


# ---- the administrator's token


def test_the_first_start_on_a_fresh_machine_shows_the_token_once(blurfit) -> None:
    with blurfit.serving() as served:
        assert served.greeting.startswith("Serving at http://127.0.0.1:")
        assert f"{served.url}/openapi.json" in served.greeting
        assert served.said.startswith(ONCE)
        assert f"open {served.url}/admin in a browser" in served.hint
        assert "put the token into a file of yours, token.txt; then `blurfit open" in served.hint
        assert f"--to {served.url} --admin-token-file token.txt`" in served.hint
        token = served.said.removeprefix(ONCE)
        assert len(token) == 43
        assert is_administrator(served.url, token)
        assert not is_administrator(served.url, tokens.new_token())
        assert httpx.get(f"{served.url}/healthz", **PLAIN).json() == {"status": "ok"}
        code, out, err = served.stop()
        assert (code, out) == (0, "Stopped; what was acknowledged is stored.\n")
        assert all(" info blurfit.audit_log: administrator: " in line for line in err.splitlines())
    assert (blurfit.folder / "blurfit.db").stat().st_mode & 0o777 == 0o600
    for file in blurfit.folder.iterdir():
        assert token.encode() not in file.read_bytes()  # the store keeps its hash alone
    with blurfit.serving() as served:  # the second start does not show it, and it holds
        assert token not in served.greeting + served.said
        assert "that of the first start" in served.said
        assert is_administrator(served.url, token)


def test_a_token_file_is_written_for_its_owner_and_another_is_refused(blurfit) -> None:
    folder: Path = blurfit.folder
    arguments = ["--store", "sqlite:///collection.db", "--admin-token-file"]
    with blurfit.serving(*arguments, "token.txt") as served:
        assert "token.txt, which is new" in served.said
        assert f"`blurfit open agreement.json --to {served.url} --admin-token-file " in served.hint
        assert "put the token" not in served.hint
        token = (folder / "token.txt").read_text().strip()
        assert token not in served.greeting + served.said
        assert stat.S_IMODE((folder / "token.txt").stat().st_mode) == 0o600
        assert is_administrator(served.url, token)
    assert (folder / "collection.db").exists()
    tokens.write_token(folder / "wrong.txt", tokens.new_token())
    blurfit.refused(
        "serve --port 0", *arguments, "wrong.txt", says="Expected 'wrong.txt' to hold the token"
    )
    with blurfit.serving(*arguments, "token.txt", "--new-admin-token") as served:
        new = (folder / "token.txt").read_text().strip()
        assert new != token
        assert stat.S_IMODE((folder / "token.txt").stat().st_mode) == 0o600
        assert is_administrator(served.url, new)
        assert not is_administrator(served.url, token)


# ---- how it ends, and what it says meanwhile


def test_options_about_the_network_reach_the_server(blurfit) -> None:
    options = ["--access-log", "--body-limit", "1", "--requests-per-second", "0.2"]
    with blurfit.serving(*options) as served:
        url = f"{served.url}/collections/{'0' * 64}/submissions"
        with httpx.Client(**PLAIN) as client:
            large = client.post(f"{served.url}/collections", content=bytes(2**20 + 1))
            assert large.status_code == 401  # whoever is nobody need not be read
            # a burst of two, and then one in five seconds
            answers = [client.get(url) for _ in range(20)]
            assert answers[0].status_code == 405
            assert {one.status_code for one in answers} == {405, 429}
            waits = [one.headers["retry-after"] for one in answers if one.status_code == 429]
            assert all(int(one) >= 1 for one in waits)
        code, _, err = served.stop()
        assert code == 0
        assert "127.0.0.1" in err  # asked for


# ---- what cannot be


def test_a_port_that_is_taken_is_exit_code_2(blurfit) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = blurfit("serve --port", port)
    assert result.returncode == 2
    assert f"Cannot listen on 127.0.0.1:{port}; try another --port." in result.stderr
    assert "Traceback" not in result.stderr
    assert not result.stdout


# ---- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself, and its key."""
    openssl = program("openssl")
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "certificate.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return paths


def test_https_is_answered_to_those_who_know_the_certificate(blurfit, propose, certificate) -> None:
    shown, key = map(str, certificate)
    propose().save(blurfit.folder / "agreement.json")
    tls = ["--tls-certificate", shown, "--tls-key", key]
    with blurfit.serving(*tls, "--admin-token-file", "token.txt") as served:
        assert served.url.startswith("https://127.0.0.1:")
        known = ssl.create_default_context(cafile=shown)
        answer = httpx.get(f"{served.url}/healthz", **PLAIN | {"verify": known})
        assert answer.json() == {"status": "ok"}
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{served.url}/healthz", **PLAIN | {"verify": True})
        opening = ["agreement.json", "--to", served.url, "--admin-token-file", "token.txt"]
        opened = blurfit.apart("open", *opening, SSL_CERT_FILE=shown)
        assert opened.returncode == 0, opened.stderr
        stranger = blurfit.apart("open", *opening, "--patience", "0")
        assert stranger.returncode == 3
        assert "certificate verify failed" in stranger.stderr


@pytest.mark.parametrize("given", ["certificate alone", "key alone", "neither of them"])
def test_a_certificate_that_cannot_be_used_is_a_wrong_value(
    blurfit, certificate, given: str
) -> None:
    shown, key = map(str, certificate)
    (blurfit.folder / "nonsense.pem").write_text("nonsense")
    tls = {
        "certificate alone": ["--tls-certificate", shown],
        "key alone": ["--tls-key", key],
        "neither of them": ["--tls-certificate", "nonsense.pem", "--tls-key", "nonsense.pem"],
    }[given]
    process = blurfit.start("serve", "--port", "0", *tls)
    try:
        code, out, err = process.end()
    finally:
        process.kill()
    assert code == 2
    assert "Traceback" not in err
    assert "Serving" not in out


# ---- first start


@pytest.fixture
def store():
    with Store() as store:
        yield store


def test_a_token_file_that_is_there_already_is_used_for_a_new_store(store, tmp_path) -> None:
    path, token = tmp_path / "token.txt", tokens.new_token()
    tokens.write_token(path, token)
    assert str(path) in appoint(store, path)
    assert tokens.matches(token, store.administrator())
    assert appoint(store, path) == f"The administrator's token is in {path}."
    assert tokens.read_token(path) == token


def test_a_guessable_token_is_refused_for_a_new_store(store, tmp_path) -> None:
    path = tmp_path / "token.txt"
    private_files.write(path, "admin\n")
    with pytest.raises(InvalidValueError, match="at least 32"):
        appoint(store, path)
    assert store.administrator() is None


def test_a_lost_token_file_is_not_made_up(store, tmp_path) -> None:
    path = tmp_path / "token.txt"
    appoint(store, path)
    before = store.administrator()
    path.unlink()
    assert "--new-admin-token" in appoint(store, path)
    assert not path.exists()
    assert store.administrator() == before
    assert "which is new" in appoint(store, path, replace=True)
    assert tokens.matches(tokens.read_token(path), store.administrator())


def test_the_key_is_made_once_for_its_owner_beside_the_store(tmp_path) -> None:
    path = beside(f"sqlite:///{tmp_path}/collection.db")
    assert path == tmp_path / "collection.db.signing-key"
    private, said = signing_key_in(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Signer(private).key in said
    assert private not in said
    assert signing_key_in(path) == (private, said)
    assert beside("postgresql://user@host/name") is None
    assert signing_key_in(None) == (None, "")
    path.write_text("not a key")
    with pytest.raises(InvalidValueError, match="--signing-key-file"):
        key_in("--signing-key-file", path, new_key, lambda one: Signer(one).key)


# ---- backup


@pytest.fixture
def typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agreement = propose()
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


# ---- stewards


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


@pytest.mark.parametrize(
    "name", ["administrator ", "Administrator", "ａdministrator", "mail\u200b"]
)
def test_no_token_has_a_name_that_looks_like_another(name) -> None:
    with Store() as store, pytest.raises(InvalidValueError, match="other than 'administrator'"):
        store.grant(name, "invite", bytes(32))


# ---- quickstart


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to(how, blurfit) -> None:
    typed = ("quickstart", "--people", "1000", "--seconds", "3600", "--no-browser")
    process: processes.Talking = blurfit.start(*typed)
    try:
        deadline = time.monotonic() + 300
        while "http://127.0.0.1" not in process.out:
            assert process.process.poll() is None, process.err
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.process.send_signal(how)
        code, out, err = process.end()
        assert (code, err) == (0, "")
        assert "Ended. Next: `blurfit init survey`" in out
    finally:
        process.kill()


# ---- demo


def test_the_example(blurfit) -> None:
    result = blurfit.done("demo --contributors 2000 --out demo --json")
    played = {"contributors": 2000, "databases": 2, "waves": False, "out": "demo"}
    assert json.loads(result.stdout) == played
    assert "Both databases serve the same model" in " ".join(result.stderr.split())
    assert (blurfit.folder / "demo" / "demo.png").stat().st_size > 10_000
    model = PublishedModel.load(blurfit.folder / "demo" / "model.json")
    assert (model.count, model.agreement.trust) == (2000, "shared")


def test_too_few_people_are_refused(blurfit) -> None:
    assert blurfit("demo --contributors 10").returncode == 2
