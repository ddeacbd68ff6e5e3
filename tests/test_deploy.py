"""The files for running a service: each is checked by the tool that reads it, where it is here."""

import configparser
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from blurfit.cli import read
from blurfit.protocol import problems
from blurfit.service.metrics import Metrics
from support.programs import program

DEPLOY = Path(__file__).parents[1] / "deploy"


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


def options_of(text: str) -> set[str]:
    return set(re.findall(r"BLURFIT_SERVE_[A-Z_]+", text))


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml", "blurfit.service"])
def test_every_setting_is_an_option_of_serve(name) -> None:
    known = {option.envvar for option in read("serve").params}
    found = options_of((DEPLOY / name).read_text())
    assert found
    assert found <= known


def test_compose_has_what_its_services_name() -> None:
    document = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
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
