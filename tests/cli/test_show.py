"""Whatever file somebody was sent, one command says what it is."""

import json

import pytest

from support.joint_release import release

MOMENTS = release()


@pytest.fixture
def show(blurfit):
    def show(what, *arguments: str):
        what.save(blurfit.folder / "file.json")
        done = blurfit("show", "file.json", *arguments)
        assert done.returncode == 0, done.stderr
        return done

    return show


def test_an_agreement(show) -> None:
    done = show(MOMENTS.agreement)
    words = " ".join(done.stdout.split())
    assert "(1, 1e-06)-differentially private" in words
    assert f"Fingerprint {MOMENTS.fingerprint}." in words
    facts = json.loads(show(MOMENTS.agreement, "--json").stdout)
    assert (facts["kind"], facts["fingerprint"]) == ("agreement", MOMENTS.fingerprint)


def test_a_model(show) -> None:
    model = MOMENTS.fit()
    assert show(model).stdout == f"{model.summary()}\n"
    facts = json.loads(show(model, "--json").stdout)
    assert (facts["kind"], facts["target"], facts["count"]) == ("model", "income", 20_000)


def test_moments(show) -> None:
    done = show(MOMENTS)
    assert str(MOMENTS.correlations()) in done.stdout
    assert '`blurfit fit file.json "income ~ ."`' in done.stderr
    facts = json.loads(show(MOMENTS, "--json").stdout)
    assert (facts["kind"], facts["targets"][-1]) == ("moments", "income")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"format": "other"}', "\xff", '{"format": []}']
)
def test_anything_else_is_refused(blurfit, text: str) -> None:
    (blurfit.folder / "file.json").write_text(text, encoding="latin-1")
    refused = blurfit("show", "file.json")
    assert refused.returncode == 2
    assert "to be an agreement, a plan, a model or moments" in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.stderr


def test_a_forged_agreement_is_refused(blurfit) -> None:
    document = MOMENTS.agreement.to_document()
    document["calibration"]["model"]["epsilon"] = 0.1
    (blurfit.folder / "file.json").write_text(json.dumps(document))
    refused = blurfit("show", "file.json")
    assert refused.returncode == 2
    assert "the text was changed" in " ".join(refused.stderr.split())
