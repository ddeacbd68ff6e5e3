"""Whether promises are kept, as a user asks: `blurfit audit` and `blurfit verify`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from blurfit import perturb
from blurfit.audit import agreements as attacks
from blurfit.audit.examination import Finding
from blurfit.cli import main
from blurfit.messages.signing import Signer, new_key
from blurfit_server import Store
from blurfit_server.service.answers import Signatory
from support.proposals import PEOPLE, propose

SURVEY = Path(__file__).parents[2] / "docs" / "examples" / "survey.json"


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


# ---- verify


SIGNER = Signer(new_key())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("signed")
    agreement = propose(signing_keys=[SIGNER.key])
    agreement.save(place / "agreement.json")
    propose(quorum=19).save(place / "other.json")
    with Store() as store:
        store.add(agreement, perturb(agreement, PEOPLE))
        text = store.publish_text(agreement.fingerprint)
        (place / "unsigned.json").write_text(text)
        signed, _ = Signatory(store, SIGNER).signed(agreement.fingerprint, "model", text)
        (place / "model.json").write_text(signed)
    return place


def run_verify(folder, *typed: str) -> tuple[int, dict]:
    paths = [str(folder / one) if one.endswith(".json") else one for one in typed]
    result = CliRunner().invoke(main, ["verify", *paths, "--json"])
    return result.exit_code, json.loads(result.output)


def changed(folder, **values) -> str:
    document = json.loads((folder / "model.json").read_text()) | values
    (folder / "changed.json").write_text(json.dumps(document))
    return "changed.json"


def test_what_is_shown(folder) -> None:
    code, found = run_verify(folder, "model.json", "--agreement", "agreement.json")
    assert (code, found["verified"], found["wrong"]) == (0, True, [])
    assert any(SIGNER.key in one for one in found["shown"])
    assert any("That is the agreement" in one for one in found["shown"])
    assert not any("Whose key" in one for one in found["not_shown"])
    assert any("honest" in one for one in found["not_shown"])
    code, alone = run_verify(folder, "model.json")
    assert code == 0
    assert "Whose key it is" in alone["not_shown"][0]
    words = CliRunner().invoke(main, ["verify", str(folder / "model.json")]).output
    assert "model: verified." in words
    assert "Not shown, and no signature can:" in words
    assert run_verify(folder, changed(folder, count=40))[0] == 0, "in whatever order and spaces"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"count": 41}, "does not match this file"),
        ({"method": "another"}, "does not match this file"),
        ({"signatures": []}, "has not signed it"),
        ({"signatures": [{"key": SIGNER.key, "signature": "00" * 64}]}, "does not match this file"),
        ({"count": 3}, "quorum"),
        ({"caveats": ["It was learned twice."]}, "Nothing is promised. It was learned twice."),
    ],
)
def test_what_is_wrong(folder, values, words) -> None:
    code, found = run_verify(folder, changed(folder, **values), "--agreement", "agreement.json")
    assert (code, found["verified"]) == (1, False)
    assert words in " ".join(found["wrong"])


def test_another_agreement_no_signature_and_another_key(folder) -> None:
    code, found = run_verify(folder, "model.json", "--agreement", "other.json")
    assert code == 1
    assert "another agreement" in found["wrong"][0]
    code, found = run_verify(folder, "unsigned.json")
    assert code == 1
    assert "has not signed" in found["wrong"][0]
    result = CliRunner().invoke(main, ["verify", str(folder / "agreement.json")])
    assert result.exit_code == 2
    assert "format='blurfit-agreement'" in result.output
