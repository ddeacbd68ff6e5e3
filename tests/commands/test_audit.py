"""`blurfit audit` as a user meets it."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from blurfit import Agreement
from blurfit.audit.examination import Finding
from blurfit.cli import main
from blurfit.commands import audit as module

SURVEY = Path(__file__).parents[2] / "docs" / "examples" / "survey.json"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments], catch_exceptions=False)


def test_table_and_plot(tmp_path: Path) -> None:
    picture = tmp_path / "audit.png"
    result = run(str(SURVEY), "--trials", "150", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert "No attack exceeded what is promised" in result.output
    assert picture.exists()


def test_json_has_every_finding() -> None:
    findings = json.loads(run(str(SURVEY), "--trials", "150", "--json").stdout)
    assert {one["view"] for one in findings} == {"submission", "sums", "model"}
    assert not any(one["broken"] for one in findings)


def test_a_broken_promise_is_exit_code_1(monkeypatch) -> None:
    broken = Finding("model", "zero and extreme", "linear", 1000, 1.0, 1e-6, 2.5)
    monkeypatch.setattr(module, "audit_agreement", lambda *_, **__: [broken])
    result = run(str(SURVEY))
    assert result.exit_code == 1
    assert "BROKEN" in result.output


def test_the_example_is_an_agreement_that_keeps_its_promise() -> None:
    assert Agreement.load(SURVEY).quorum == 2000


def test_mistakes_are_one_line_and_exit_code_2() -> None:
    result = run(str(SURVEY), "--trials", "10")
    assert result.exit_code == 2
    assert "trials=" in result.output
