"""The files for running a service: each is checked by the tool that reads it, where it is here."""

import configparser
import json
import os
import re
import runpy
import subprocess
from importlib.metadata import requires
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sqlalchemy import make_url

from blurfit import protocol as problems
from blurfit.cli import read
from blurfit_server.service.answers import Metrics
from support.programs import program

DEPLOY = Path(__file__).parents[2] / "deploy"


def checked(*words: str, **environment: str) -> None:
    done = subprocess.run(
        words, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_reads_the_rules() -> None:
    checked(program("promtool"), "check", "rules", str(DEPLOY / "prometheus-rules.yaml"))


def test_caddy_reads_its_file(tmp_path) -> None:
    file = str(DEPLOY / "Caddyfile")
    checked(
        program("caddy"), "validate", "--adapter", "caddyfile", "--config", file, HOME=str(tmp_path)
    )


def test_nginx_reads_its_file(tmp_path) -> None:
    nginx, openssl = program("nginx"), program("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    checked(openssl, *made, "-subj", "/CN=x", "-keyout", str(key), "-out", str(certificate))
    site = (DEPLOY / "nginx.conf").read_text()
    site = site.replace("/etc/ssl/blurfit/fullchain.pem", str(certificate))
    (tmp_path / "site.conf").write_text(site.replace("/etc/ssl/blurfit/privkey.pem", str(key)))
    whole = f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ include site.conf; }}\n"
    (tmp_path / "nginx.conf").write_text(whole)
    checked(nginx, "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"))


def test_systemd_reads_the_unit(tmp_path) -> None:
    analyze = program("systemd-analyze")
    unit = (DEPLOY / "blurfit.service").read_text()
    here = tmp_path / "blurfit.service"
    here.write_text(unit.replace("/opt/blurfit/bin/blurfit", "/bin/true"))
    checked(analyze, "verify", str(here))
    checked(analyze, "security", "--offline=true", "--threshold=20", str(here))  # of 100


def options_of(text: str) -> set[str]:
    return set(re.findall(r"BLURFIT_SERVE_[A-Z_]+", text))


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml", "blurfit.service"])
def test_every_setting_is_an_option_of_serve(name) -> None:
    known = {option.envvar for option in read("serve").params}
    found = options_of((DEPLOY / name).read_text())
    assert found
    assert found <= known


def test_compose_has_what_its_services_name() -> None:
    document = compose()
    for service in document["services"].values():
        assert set(service.get("secrets", [])) <= set(document["secrets"])
        volumes = {one.split(":")[0] for one in service.get("volumes", [])}
        assert {one for one in volumes if not one.startswith(".")} <= set(document["volumes"])
        assert set(service.get("depends_on", {})) <= set(document["services"])


def test_rules_and_dashboard_ask_for_what_the_service_counts() -> None:
    counted = Metrics()
    counted.accepted(2, 1)
    counted.refused(problems.UNAVAILABLE.name)
    names = set(re.findall(r"^# TYPE (\w+)", counted.text([], exact=True).decode(), re.MULTILINE))
    names |= {f"{name}_total" for name in names}
    texts = [(DEPLOY / "prometheus-rules.yaml").read_text()]
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    texts += [target["expr"] for panel in panels for target in panel["targets"]]
    asked = {name for text in texts for name in re.findall(r"\bblurfit_\w+", text)}
    assert asked
    assert asked <= names
    assert f'kind="{problems.UNAVAILABLE.name}"' in texts[0]


def test_the_unit_is_an_ini_file_with_a_command() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read_string((DEPLOY / "blurfit.service").read_text())
    assert unit["Service"]["ExecStart"].split()[1] == "serve"


# ---- containers


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def test_the_proxy_reaches_the_service_from_the_address_that_is_trusted() -> None:
    """Over one network: by a second one it would come from another address."""
    document = compose()
    service, proxy, database = (
        document["services"][one] for one in ("service", "proxy", "database")
    )
    (shared,) = set(service["networks"]) & set(proxy["networks"])
    address = proxy["networks"][shared]["ipv4_address"]
    assert service["environment"]["BLURFIT_SERVE_TRUSTED_PROXIES"] == address
    (subnet,) = (one["subnet"] for one in document["networks"][shared]["ipam"]["config"])
    assert ip_address(address) in ip_network(subnet)
    assert set(service["networks"]) & set(database["networks"])
    assert not set(proxy["networks"]) & set(database["networks"])
    named = {one for service in document["services"].values() for one in service["networks"]}
    assert named == set(document["networks"])


def test_the_password_is_where_the_service_looks_and_can_be_read_there(tmp_path) -> None:
    """As the documentation makes it: Compose keeps the owner and the mode that a file has."""
    document = compose()
    service = document["services"]["service"]
    url = make_url(service["environment"]["BLURFIT_SERVE_STORE"])
    (secret,) = service["secrets"]
    assert url.query == {"password_file": f"/run/secrets/{secret}"}
    database = document["services"]["database"]
    assert database["environment"]["POSTGRES_PASSWORD_FILE"] == url.query["password_file"]
    assert (url.host, url.username, url.database) == (
        "database",
        database["environment"]["POSTGRES_USER"],
        database["environment"]["POSTGRES_DB"],
    )
    page = (DEPLOY.parent / "docs" / "deploying.md").read_text()
    typed = page.partition("## Containers")[2].split("```")[1].splitlines()
    enter, *make, start = (one.removeprefix("$ ") for one in typed if one.startswith("$ "))
    assert (enter, start.split()[1:]) == ("cd deploy", ["podman", "compose", "up", "--detach"])
    assert start.split()[0].split("=")[0] in (DEPLOY / "compose.yaml").read_text()
    subprocess.run(["bash", "-ec", f"umask 077; {'; '.join(make)}"], cwd=tmp_path, check=True)
    file = tmp_path / document["secrets"][secret]["file"]
    assert len(file.read_text().strip()) == 32
    assert file.stat().st_mode & 0o777 == 0o644, "whoever runs in the container may read it"
    assert file.parent.stat().st_mode & 0o777 == 0o700, "and nobody else here gets to it"
    ignored = (DEPLOY.parent / ".gitignore").read_text().splitlines()
    assert f"deploy/{file.parent.name}/" in ignored


def pinned(name: str) -> dict[str, str]:
    """The version of each package that a file of requirements names."""
    text = (DEPLOY.parent / "requirements" / name).read_text()
    found = re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.MULTILINE)
    return {canonicalize_name(package): version for package, version in found}


def needed(*wanted: str, python: str) -> set[str]:
    """What some requirements come to, as the packages that are installed here tell."""
    found, left = set(), [Requirement(one) for one in wanted]
    while left:
        one = left.pop()
        extras = one.extras or {""}
        if (name := canonicalize_name(one.name)) not in found and name != "blurfit":
            found.add(name)
            for text in requires(name) or []:
                more = Requirement(text)
                given = [{"python_version": python, "extra": extra} for extra in extras | {""}]
                if more.marker is None or any(more.marker.evaluate(one) for one in given):
                    left.append(more)
    return found


def test_every_wheel_of_the_image_has_its_version_and_its_hash() -> None:
    """After a change of what blurfit needs, `make hashes` writes them again."""
    direct = runpy.run_path(str(DEPLOY.parent / "release" / "hashes.py"))["direct"]()
    tested = pinned("runtime.txt") | pinned("dev.txt")
    steps = (DEPLOY / "Containerfile").read_text()
    (python,) = set(re.findall(r"python:(3\.\d+)-slim", steps))
    for name, wanted in direct.items():
        found = pinned(name)
        assert needed(*wanted, python=python) <= found.keys()
        assert found.items() <= tested.items(), "the versions that tests run with"
        entries = (DEPLOY.parent / "requirements" / name).read_text().replace("\\\n", "")
        for line in entries.splitlines()[1:]:
            assert re.fullmatch(r"[\w.-]+==\S+( +--hash=sha256:[0-9a-f]{64})+", line), line
        assert f"COPY requirements/{name}" in steps
    installed = re.findall(r"pip (?:install|wheel) [^&\n]*", steps)
    assert installed
    for command in installed:
        assert "--require-hashes" in command or "--no-deps" in command
