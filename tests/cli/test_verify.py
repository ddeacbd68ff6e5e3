"""Whether a signed file is what it says: `blurfit verify`."""

import json

import pytest
from click.testing import CliRunner

from blurfit import perturb
from blurfit.cli import main
from blurfit.messages.signing import Signer, new_key
from blurfit_server import Store
from blurfit_server.service.answers import Signatory
from support.proposals import PEOPLE, propose

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


def verify(folder, *typed: str) -> tuple[int, dict]:
    paths = [str(folder / one) if one.endswith(".json") else one for one in typed]
    result = CliRunner().invoke(main, ["verify", *paths, "--json"])
    return result.exit_code, json.loads(result.output)


def changed(folder, **values) -> str:
    document = json.loads((folder / "model.json").read_text()) | values
    (folder / "changed.json").write_text(json.dumps(document))
    return "changed.json"


def test_what_is_shown(folder) -> None:
    code, found = verify(folder, "model.json", "--agreement", "agreement.json")
    assert (code, found["verified"], found["wrong"]) == (0, True, [])
    assert any(SIGNER.key in one for one in found["shown"])
    assert any("That is the agreement" in one for one in found["shown"])
    assert not any("Whose key" in one for one in found["not_shown"])
    assert any("honest" in one for one in found["not_shown"])
    code, alone = verify(folder, "model.json")
    assert code == 0
    assert "Whose key it is" in alone["not_shown"][0]
    words = CliRunner().invoke(main, ["verify", str(folder / "model.json")]).output
    assert "model: verified." in words
    assert "Not shown, and no signature can:" in words
    assert verify(folder, changed(folder, count=40))[0] == 0, "in whatever order and spaces"


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
    code, found = verify(folder, changed(folder, **values), "--agreement", "agreement.json")
    assert (code, found["verified"]) == (1, False)
    assert words in " ".join(found["wrong"])


def test_another_agreement_no_signature_and_another_key(folder) -> None:
    code, found = verify(folder, "model.json", "--agreement", "other.json")
    assert code == 1
    assert "another agreement" in found["wrong"][0]
    code, found = verify(folder, "unsigned.json")
    assert code == 1
    assert "has not signed" in found["wrong"][0]
    result = CliRunner().invoke(main, ["verify", str(folder / "agreement.json")])
    assert result.exit_code == 2
    assert "format='blurfit-agreement'" in result.output
