"""`blurfit serve` from its first start to its end."""

import signal
import socket
import ssl
import stat
import subprocess
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from blurfit.protocol import tokens
from support.programs import program

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
    result = blurfit("serve", "--port", "0", *arguments, "wrong.txt")
    assert result.returncode == 2
    assert "Expected 'wrong.txt' to hold the token" in result.stderr
    assert "Traceback" not in result.stderr
    assert not result.stdout
    with blurfit.serving(*arguments, "token.txt", "--new-admin-token") as served:
        new = (folder / "token.txt").read_text().strip()
        assert new != token
        assert stat.S_IMODE((folder / "token.txt").stat().st_mode) == 0o600
        assert is_administrator(served.url, new)
        assert not is_administrator(served.url, token)


# ---- how it ends, and what it says meanwhile


def test_a_supervisor_stops_it_cleanly_and_no_address_was_logged(blurfit) -> None:
    with blurfit.serving() as served:
        assert httpx.get(f"{served.url}/nowhere", **PLAIN).status_code == 404
        code, out, err = served.stop(signal.SIGTERM)
        assert not err
        assert code == 0
        assert out == "Stopped; what was acknowledged is stored.\n"


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "sqlite:///nowhere/collection.db"], "nowhere"),
        (["--store", "mysql://here/there"], "mysql"),
        (["--requests-per-second", "-1"], "rate=-1"),
        (["--port", "70000"], "port"),
        (["--tls-certificate", "nowhere.pem"], "'nowhere.pem' does not exist"),
    ],
    ids=["folder", "kind of store", "rate", "port", "certificate"],
)
def test_what_cannot_be_is_said_and_nothing_is_served(blurfit, arguments, message: str) -> None:
    result = blurfit("serve", "--port", "0", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "floating point" not in result.stderr  # which has nothing to do with it
    assert "Traceback" not in result.stderr
    assert not result.stdout


def test_a_port_that_is_taken_is_exit_code_2(blurfit) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = blurfit("serve", "--port", port)
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
