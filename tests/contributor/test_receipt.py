"""Receipts as files, and acknowledgements that are none."""

from dataclasses import replace

import pytest

from blurfit import Agreement, InvalidValueError, perturb
from blurfit.contributor.noise import new_secret
from blurfit.contributor.receipt import Part, Receipt, checked, roles
from blurfit.errors import ServiceError
from blurfit.messages.signing import Signer, about_submissions, new_key
from blurfit.protocol.wire import Acknowledgement
from support import ed25519
from support.stores import PEOPLE, propose

SIGNER = Signer(new_key())
AGREEMENT = propose(signing_keys=[SIGNER.key])
MARK = AGREEMENT.fingerprint


def signed(receipt: Receipt, by: Signer = SIGNER) -> Receipt:
    (part,) = receipt.parts
    message = about_submissions("receipt", MARK, "whole", receipt.identifiers(part))
    return replace(receipt, parts=(replace(part, signatures=(by.sign(message).signature,)),))


BLANK = Receipt(("https://a.example",), new_secret(), (Part(3, 40, MARK, (None,)),))
GOOD = signed(BLANK)


def test_a_file_is_read_as_it_was_written(tmp_path) -> None:
    GOOD.save(tmp_path / "receipt.json")
    GOOD.save(tmp_path / "receipt.json")
    assert Receipt.load(tmp_path / "receipt.json") == GOOD
    assert (tmp_path / "receipt.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["receipt.json"]
    assert "40 rows" in repr(GOOD)
    assert GOOD.secret not in repr(GOOD)
    for text in ("", "[]", "{}", '{"format": "blurfit-receipt", "version": 1}', BLANK.secret):
        with pytest.raises(InvalidValueError):
            Receipt.from_json(text)


@pytest.mark.parametrize(("start", "rows"), [(-1, 1), (0, 0), (5, -3), (0, 2**40)])
def test_rows_that_no_table_has_are_refused(start, rows) -> None:
    with pytest.raises(InvalidValueError, match="rows"):
        Receipt.from_json(replace(BLANK, parts=(Part(start, rows, MARK, (None,)),)).to_json())


def test_the_signature_is_checked_under_the_agreement() -> None:
    assert GOOD.wrong_with(AGREEMENT) == []
    message = about_submissions("receipt", MARK, "whole", GOOD.identifiers(GOOD.parts[0]))
    (signature,) = GOOD.parts[0].signatures
    assert ed25519.verifies(message, SIGNER.key, signature)
    assert "is not by" in BLANK.wrong_with(AGREEMENT)[0]
    assert "is not by" in signed(BLANK, Signer(new_key())).wrong_with(AGREEMENT)[0]
    assert "is not by" in replace(GOOD, secret=new_secret()).wrong_with(AGREEMENT)[0]
    assert "were sent under" in GOOD.wrong_with(propose(signing_keys=[SIGNER.key], quorum=9))[0]
    plain: Agreement = propose()
    unsigned = replace(BLANK, parts=(replace(BLANK.parts[0], under=plain.fingerprint),))
    assert "names no key" in unsigned.wrong_with(plain)[0]
    assert roles(AGREEMENT) == ("whole",)


def test_an_acknowledgement_that_is_not_signed_as_agreed_is_none() -> None:
    sent = perturb(AGREEMENT, PEOPLE, secret=BLANK.secret)
    one = next(iter(sent))
    for message, names in (
        (sent.to_bytes(), sent.identifiers.tobytes()),
        (one.to_bytes(), bytes.fromhex(one.identifier)),
    ):
        right = SIGNER.sign(about_submissions("receipt", MARK, "whole", names)).signature
        answer = Acknowledgement(1, 1, right)
        assert checked(answer, AGREEMENT.signing_keys, MARK, "whole", message) == right
        assert checked(Acknowledgement(1, 1), (), MARK, "whole", message) is None
        for wrong in (None, "", right[:-1] + "x", right[2:] + "00"):
            with pytest.raises(ServiceError, match="signed with the key"):
                checked(
                    Acknowledgement(1, 1, wrong), AGREEMENT.signing_keys, MARK, "whole", message
                )
