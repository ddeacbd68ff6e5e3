"""Whether promises are kept, as a user asks: `blurfit-lab audit`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from blurfit_lab.audit import agreements as attacks
from blurfit_lab.audit.examination import Finding
from blurfit_lab.cli import main

SURVEY = Path(__file__).parents[3] / "docs" / "examples" / "survey.json"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments], catch_exceptions=False)


def test_table_and_plot(tmp_path: Path) -> None:
    picture = tmp_path / "audit.png"
    result = run(str(SURVEY), "--trials", "100", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert "No attack exceeded what is promised" in result.output
    assert picture.exists()


def test_json_has_every_finding() -> None:
    findings = json.loads(run(str(SURVEY), "--trials", "100", "--json").stdout)
    assert {one["view"] for one in findings} == {"submission", "sums", "model"}
    assert not any(one["broken"] for one in findings)


def test_a_broken_promise_is_exit_code_1(monkeypatch) -> None:
    broken = Finding("model", "zero and extreme", "linear", 1000, 1.0, 1e-6, 2.5)
    monkeypatch.setattr(attacks, "audit_agreement", lambda *_, **__: [broken])
    result = run(str(SURVEY))
    assert result.exit_code == 1
    assert "BROKEN" in result.output


def test_anybodys_estimator(tmp_path: Path) -> None:
    bounds = ("--set", "bounds=[-1, 1]", "--set", "target_bounds=[-1, 1]", "--set", "delta=0.001")
    what = ("--of", "blurfit_lab.rivals:BoostedAdaSSPRegressor", "--set", "rounds=5", *bounds)
    honest = run(*what, "--pair", "target", "--trials", "200")
    assert honest.exit_code == 0, honest.output
    assert "all together with confidence 0.999" in honest.output
    assert "proves nothing." in honest.output
    broken = run(
        *what, "--set", "calibration=code", "--pair", "target", "--trials", "200", "--json"
    )
    assert broken.exit_code == 1
    (found,) = json.loads(broken.stdout)
    assert found["broken"]
    assert found["pair"] == "target"


def test_a_pair_of_your_own(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("first.csv", "second.csv")]
    for file, last in zip(files, (1, -1), strict=True):
        file.write_text(f"x,y\n0,0\n0.5,0.1\n1,{last}\n", encoding="utf-8")
    pair = ",".join(map(str, files))
    where = ("--of", "blurfit_lab.rivals:AdaSSPRegressor", "--pair", pair, "--trials", "100")
    settings = ("--set", "bounds=[-1, 1]", "--set", "target_bounds=[-1, 1]")
    assert run(*where, *settings).exit_code == 0
    files[1].write_text("x,y\n1,1\n1,1\n1,1\n", encoding="utf-8")
    refused = run(*where, *settings)
    assert refused.exit_code == 2
    assert "differ in one row" in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ((), "--of module:Estimator"),
        ((str(SURVEY), "--of", "blurfit_lab.rivals:AdaSSPRegressor"), "--of module:Estimator"),
        (("--of", "blurfit_lab.rivals:AdaSSPRegressor", "--set", "epsilon"), "name=value"),
    ],
)
def test_what_cannot_be_attacked_is_refused(typed, words) -> None:
    refused = run(*typed)
    assert refused.exit_code == 2
    assert words in refused.output
