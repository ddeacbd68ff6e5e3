"""What a signature shows: tests/cli/test_verify.py has what is wrong; here whose it is."""

import json

import pytest

from blurfit import InvalidValueError, Store, perturb
from blurfit.messages.signing import Signer, about_release, new_key
from blurfit.model.model import with_signatures
from blurfit.model.release import examine, signers
from support.sharing import propose as propose_two
from support.stores import PEOPLE, propose


def test_a_model_without_a_key_is_nobodys() -> None:
    agreement = propose()
    with Store() as store:
        store.add(agreement, perturb(agreement, PEOPLE))
        text = store.publish_text(agreement.fingerprint)
    signer = Signer(new_key())
    forged = with_signatures(text, [signer.sign(about_release(json.loads(text)))])
    for one in (text, forged):
        found = examine(one, agreement)
        assert not found.verified
        assert "names no key" in found.wrong[0]
    assert with_signatures(forged, ()) == text


def test_who_signs_has_a_name() -> None:
    assert signers(propose()) == ("The service",)
    assert signers(propose_two()) == ("Office", "University")
    for text in ("", "[]", "{}", '{"format": "another"}'):
        with pytest.raises(InvalidValueError):
            examine(text)
